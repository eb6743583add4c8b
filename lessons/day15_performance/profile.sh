#!/bin/sh
# Profile versions 1 and 4 of the sum of squares with Nsight Compute, as text, which the lesson reads line by line.
#
#   sh lessons/day15_performance/profile.sh          print it
#   sh lessons/day15_performance/profile.sh --record also write ncu_gpu.txt beside the lesson
#
# ncu comes with the CUDA toolkit. If it reports ERR_NVGPUCTRPERM, the administrator must allow counters.
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
