#!/bin/sh
# What Nsight Compute says of versions 1 and 4 of the sum of squares, as text: the lesson reads it line by line.
#
#   sh lessons/day13_performance/profile.sh          prints it
#   sh lessons/day13_performance/profile.sh --record also writes ncu_gpu.txt beside the lesson
#
# ncu comes with the CUDA toolkit. Where it says ERR_NVGPUCTRPERM, the machine's owner has to allow counters.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-"$here/../../.venv/bin/python"}
run() {
    ncu --kernel-name regex:square_sums --launch-count 1 --launch-skip 1 --page details --section SpeedOfLight \
        --section LaunchStats --section Occupancy --section MemoryWorkloadAnalysis --section WarpStateStats \
        "$python" "$here/profile_one.py" "$1" | grep -v "^==PROF=="
}
report=$(for version in 1 4; do echo "# version $version"; run "$version"; done)
echo "$report"
if [ "${1:-}" = --record ]; then echo "$report" > "$here/ncu_gpu.txt"; fi
