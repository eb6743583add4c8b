"""Tests of the checks on the corpus: every fault is reported at its line, and correct variants have no findings.

The result must not depend on the order of threads, the number of workers, or the compiler.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from grader.verdict.wording.findings import text
from tests.simulator.corpus_kernels import CORPUS, CorpusFile, Simulation, build_corpus, corpus_files, disagreements
from tests.simulator.harness import COMPILERS

FOLDERS = sorted(folder.name for folder in CORPUS.iterdir() if folder.is_dir())
FILES = {folder: corpus_files(CORPUS / folder) for folder in FOLDERS}
EVERY = [pytest.param(f, id=f.name) for folder in FOLDERS for f in FILES[folder]]
CORRECT = [pytest.param(f, id=f.name) for folder in FOLDERS for f in FILES[folder] if not f.fault]
SCHEDULES = [{"schedule": "reverse"}, {"workers": 2}] + [{"schedule": f"random:{seed}"} for seed in range(6)]


@functools.cache
def library(folder: str, compiler: str | None = None):
    """Return the kernels of one folder of the corpus, built once."""
    return build_corpus(FILES[folder], compiler)


@functools.cache
def simulation(libsim: Path) -> Simulation:
    return Simulation(libsim)


def check(corpus_file: CorpusFile, compiler: str | None = None, **settings: object) -> None:
    """Run the faulty and the correct variant, and compare the findings with the marks."""
    kernel = library(corpus_file.path.parent.name, compiler)
    sim = simulation(kernel.libsim)
    for clean in corpus_file.variants:
        error, report, _ = sim.run(kernel, corpus_file.n, corpus_file.launcher(clean), corpus_file.path, **settings)
        if clean:
            assert not report.findings, "the correct variant has findings:\n" + "\n".join(map(text, report.findings))
            assert error == 0
        else:
            wrong = disagreements(corpus_file, report.findings)
            assert not wrong, "\n".join(wrong)


def test_the_corpus_is_large_enough():
    faulty = [f for files in FILES.values() for f in files if f.marks]
    assert len(faulty) >= 50
    for folder in ("memcheck", "initcheck", "racecheck", "synccheck"):
        assert sum(f.path.parent.name == folder for f in faulty) >= 8


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("corpus_file", EVERY)
def test_faults_are_reported_and_correct_twins_are_not(corpus_file, compiler):
    check(corpus_file, compiler)


@pytest.mark.parametrize("corpus_file", EVERY)
def test_the_result_does_not_depend_on_the_schedule(corpus_file):
    for settings in SCHEDULES:
        check(corpus_file, **settings)


@pytest.mark.parametrize("corpus_file", EVERY)
def test_reports_and_outputs_are_the_same_every_time(corpus_file):
    kernel = library(corpus_file.path.parent.name)
    for clean in corpus_file.variants:
        launcher = corpus_file.launcher(clean)
        outcomes = [
            simulation(kernel.libsim).run(kernel, corpus_file.n, launcher, corpus_file.path, workers=workers)
            for workers in (1, 1, 2, 3)  # the first call only initializes __device__ variables
        ]
        for error, report, out in outcomes[2:]:
            assert (error, report) == outcomes[1][:2]
            assert out.tobytes() == outcomes[1][2].tobytes()


@pytest.mark.parametrize("corpus_file", CORRECT)
def test_correct_kernels_have_no_findings_if_only_some_blocks_are_checked(corpus_file: CorpusFile) -> None:
    kernel = library(corpus_file.path.parent.name)
    sim, launcher = simulation(kernel.libsim), corpus_file.launcher(clean=True)
    for _ in range(2):  # the first call only initializes __device__ variables
        error, _, expected = sim.run(kernel, corpus_file.n, launcher, corpus_file.path)
    for blocks, seed, workers in ((1, 0, 2), (2, 1, 1)):
        settings = {"check_blocks": blocks, "check_seed": seed, "workers": workers}
        sampled, report, out = sim.run(kernel, corpus_file.n, launcher, corpus_file.path, **settings)
        assert not report.findings, "\n".join(map(text, report.findings))
        assert sampled == error and out.tobytes() == expected.tobytes()


def test_writes_of_the_same_value_are_findings_on_request() -> None:
    [same] = [f for f in FILES["clean"] if f.path.stem == "same_value"]
    kernel = library("clean")
    for wanted, kinds in ((0, set()), (1, {"within_warp", "within_block", "between_blocks"})):
        _, report, _ = simulation(kernel.libsim).run(
            kernel, same.n, same.launcher(clean=True), same.path, same_value_races=wanted
        )
        found = {finding.kind for finding in report.findings}
        assert found <= kinds and bool(found) == bool(kinds)
        assert all(finding.access == "write" and finding.other for finding in report.findings)
