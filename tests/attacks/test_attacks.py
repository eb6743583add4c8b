"""Attacks get no undeserved pass and leave nothing behind; correct, slow and wrong kernels get the right verdict."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from grader.report.terminal import as_text
from grader.verdict import FAILED, PASSED
from grader.verdict.wording.results import as_json
from tests.attacks.conftest import EXPECTS_REFUSAL, EXPECTS_TIME_LIMIT, HERE, JAILS, SECRET, Judge, in_one_jail
from tests.attacks.reports import assert_clean, texts

DESERVED = {
    "honest": "builds=passed correct=passed safe=passed efficient=passed",
    "honest_host": "builds=passed correct=passed safe=passed efficient=passed",
    "honest_vectors": "builds=passed correct=passed safe=passed efficient=passed",
    "honest_header": "builds=passed correct=passed safe=passed efficient=passed",
    "slow": "builds=passed correct=passed safe=passed efficient=failed",
    "wrong": "builds=passed correct=failed safe=skipped efficient=skipped",
    "racy": "builds=passed correct=passed safe=failed efficient=skipped",
}


def files(folder: str) -> list[ParameterSet]:
    """Return the attacks of a folder, by name."""
    return [pytest.param(path, id=path.stem) for path in sorted((HERE / folder).glob("*.cu"))]


@pytest.mark.parametrize("file", files("controls"))
def test_controls_get_their_verdict(judged: Judge, tier: str, file: Path) -> None:
    verdict = judged(file)
    stages = " ".join(f"{s.name}={s.status}" for s in verdict.stages if s.name != "fast")
    assert stages == DESERVED[file.stem], as_text(verdict)
    assert verdict.isolation == tier


@in_one_jail
@pytest.mark.parametrize("file", files("honest"))
def test_harmless_uses_pass(judged: Judge, file: Path) -> None:
    """Check that honest kernels pass.

    They use features that an attack also uses, or that a defense once refused by mistake.
    """
    verdict = judged(file)
    assert verdict.passed, as_text(verdict)


def attacks_in_jails() -> list[ParameterSet]:
    """Return each attack at run time with each jail.

    One jail is enough for an attack that is not built, or that has no header and no assembly code for system calls.
    """
    found = []
    for path in sorted((HERE / "run").glob("*.cu")):
        text = path.read_text()
        calls = EXPECTS_REFUSAL not in text.splitlines() and re.search(r"#include|\basm\b", text)
        found += [pytest.param(path, jail, id=f"{path.stem}-{jail}") for jail in (JAILS if calls else ("any",))]
    return found


@pytest.mark.parametrize(("file", "tier"), attacks_in_jails(), indirect=["tier"])
def test_run_time_attacks_fail(judged: Judge, places: dict[str, str], file: Path, tmp_path: Path) -> None:
    before = sorted(os.listdir(places["@FOLDER@"]))
    verdict = judged(file)
    assert not verdict.passed, as_text(verdict)
    lines = file.read_text().splitlines()
    assert verdict.stage("builds").status == (FAILED if EXPECTS_REFUSAL in lines else PASSED), as_text(verdict)
    assert ("did not finish within" in as_text(verdict)) == (EXPECTS_TIME_LIMIT in lines), as_text(verdict)
    assert sorted(os.listdir(places["@FOLDER@"])) == before, "the attack left files behind"
    assert "\\u001b" not in as_json(verdict)
    assert_clean(verdict, tmp_path, (SECRET,))


@pytest.mark.parametrize("file", files("compile"))
def test_compile_time_attacks_fail(judged: Judge, file: Path, tmp_path: Path) -> None:
    verdict = judged(file)
    assert not verdict.passed, as_text(verdict)
    assert_clean(verdict, tmp_path, (SECRET,))
    assert len(as_json(verdict)) < 200_000


@in_one_jail
def test_one_long_line_is_cut_in_every_report(judged: Judge, tmp_path: Path) -> None:
    """Check reports that quote a line with 1500 mistakes, each of which causes a finding or a compiler error."""
    for wrong in ("x[n + {}] = 1;", "int v{} = nothing;"):
        file = tmp_path / "long.cu"
        body = " ".join(wrong.format(i) for i in range(1500))
        file.write_text(
            f"// One long line.\n__global__ void k(float* x, int n) {{ {body} }}\n"
            'extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { k<<<1, 1>>>(out, n); }\n'
        )
        verdict = judged(file)
        assert not verdict.passed
        assert_clean(verdict, tmp_path)
        assert max(map(len, texts(verdict, tmp_path).values())) < 500_000


@in_one_jail
def test_source_lines_have_no_control_and_bidirectional_characters(judged: Judge, tmp_path: Path) -> None:
    file = tmp_path / "shown.cu"
    line = "if (i < n) out[i] = 2.0f * x[i]"
    text = (HERE / "controls/slow.cu").read_text()
    assert line in text
    file.write_text(text.replace(line, f"/* \u202e\x1b[31m */ {line}"))
    verdict = judged(file)
    assert verdict.stage("efficient").status == FAILED, as_text(verdict)
    assert "\ufffd" in texts(verdict, tmp_path)["html"]
    assert_clean(verdict, tmp_path)


def test_every_attack_has_a_description() -> None:
    for folder, least in (("run", 45), ("compile", 16), ("honest", 3)):
        sources = sorted((HERE / folder).glob("*.cu"))
        assert len(sources) >= least
        for path in sources:
            first = path.read_text().splitlines()[0]
            assert first.startswith("// ") and first.endswith("."), path.name
