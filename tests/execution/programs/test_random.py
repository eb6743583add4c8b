"""cuRAND's numbers, compared with those of NVIDIA's implementation.

The expected numbers come from cuRAND 10.4 on a machine without a GPU. For the device API, g++ compiled ``draw`` and
``draw_four`` of ``random.cu`` with NVIDIA's ``curand_kernel.h``. Its functions also work on the host if ``QUALIFIERS``
is ``static inline``. The expected lines that begin with ``host`` come from generators that
``curandCreateGeneratorHost`` created.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.execution.programs.running import KERNELS, findings_of, refusal, without_findings

FILE = KERNELS / "random.cu"
BITS = """\
bd7f03b6 3ee07cab efebc316 3fc41831 faebf04a 9c2f4e4f 0d3336be 00000000
6627e8d5 3f6169c6 89a00000 3fe78af5 811fc11c 59059804 7d36c745 00000000
bc57ac4c 9b00dbd8 f8e4cca4 5cb200db 3ea38e65 baa1de53 3fda911c 00000000
253d5e15 3edeab0c 58cdb5e5 3fdd216d cb0e88fb afb50e91 86fabf13 00000000
2090b348 3f5a7cf1 1c000000 3fd10064 2a80308d f5feec01 06acc8e0 00000000
4401906f cbca470e 9eeede35 1cbe137c 3f7c06fa 6d1a68fa 3fc1db9c 00000000
8051a417 3e5b3846 42750155 3fd45043 c27ada00 922c2bac 5141abf1 00000000
b7a11b7a 3f0b27a1 99200000 3fe7b2b5 6de359c2 1548e72a 864f9567 00000000
bd95acc8 5c5cf6f4 3fc0ce58 32773955 3d08f211 915fcc81 3fd4aa43 00000000
81409d4b 3f01f049 b6dde130 3f988b99 25026607 e0532716 7765c669 00000000
f9190e0f 3e871cdb 09c00000 3fe17260 691c15d1 c3f1aed8 1b7d44bd 00000000
8b93004d 42542107 790dbece 70358798 3f436c9f cdbbcef4 3fe192b1 00000000
82167a2c 3f2dc245 1fb5d756 3fca5bc0 099cfd87 f99b9289 018695b2 00000000
90ab778f 3e1c7d15 c3000000 3fddbeb5 9d089a25 55d9c527 49fd1e95 00000000
76fad70b 7ce18e70 0a1c9e0a e8543a58 3dd982c5 c02accaa 3fecfe82 00000000
"""
NORMAL = """\
0.3022 -0.5103 1.4749 1.5292 -0.4573 -1.0774
1.3750 -0.5952 3.7069 1.8125 0.3827 0.1351
-1.0222 -0.9711 5.4336 -1.6199 0.6041 -0.0418
-1.0643 1.3321 1.1454 -2.6866 0.2371 1.1044
-1.2052 -0.2244 3.1419 0.9889 0.9646 0.6996
-0.4887 0.6414 2.5268 0.3806 -1.6058 1.8316
-1.5528 -1.1215 1.7759 0.3880 0.6555 0.0317
-0.3186 -0.6383 1.2176 0.3788 0.2402 0.7643
-0.5697 -0.1284 2.2475 -1.3141 -0.4534 1.4211
-0.2401 0.4091 2.2810 -1.0531 -0.9550 -0.1304
"""
HOST = """\
host 253d5e15 d1f7605a 6f558604 ed29ae49
host 0.92641692020243771 0.53759377731372671 -0.28085 0.45498 -0.09150 1.00261
host 2090b348 da7cf0ab 07129e5f 653d7a73
host 0.79605514883270523 0.61303247646692371 -1.56054 -2.12178 1.00820 -1.18777
"""


def numbers(text: str, skip: int = 0) -> list[float]:
    return [float(word) for line in text.splitlines() for word in line.split()[skip:]]


def test_numbers_are_nvidias(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = without_findings(program)
    assert outcome.leaked == 0
    lines = capfd.readouterr().out.splitlines(keepends=True)
    assert "".join(lines[:15]) == BITS
    np.testing.assert_allclose(numbers("".join(lines[15:25])), numbers(NORMAL), atol=2e-4)
    expected = HOST.splitlines(keepends=True)
    assert lines[25::2] == expected[::2]
    np.testing.assert_allclose(numbers("".join(lines[26::2]), 1), numbers("".join(expected[1::2]), 1), atol=2e-5)
    assert [line.split()[:3] for line in lines[26::2]] == [line.split()[:3] for line in expected[1::2]]


def test_an_output_that_is_too_short_is_found(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    findings = findings_of(program, "wrong")
    kernel, call = sorted(findings, key=lambda finding: finding.line)
    assert kernel.kind == call.kind == "out_of_bounds"
    assert "out[i] = curand_uniform" in kernel.source_line and "curandGenerateUniform" in call.source_line
    # CURAND_STATUS_LENGTH_NOT_MULTIPLE: normal numbers come in pairs.
    assert capfd.readouterr().out.splitlines()[-1] == "105"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("__global__ void k(curandStateMRG32k3a* s) {}", "curandStateMRG32k3a"),
        ("__device__ unsigned f(curandState* s) { return curand_poisson(s, 3.0); }", "curand_poisson"),
        ("void f(curandState* s) { curand_init(1, 2, 3, s); }", "the host cannot call it"),
    ],
)
def test_unsupported_functions_are_named(code: str, says: str, tmp_path: Path) -> None:
    message = refusal(f"#include <curand_kernel.h>\n{code}\n", tmp_path).message
    assert says in message and message.startswith("one.cu:2:")
