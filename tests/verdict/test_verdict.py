"""results.json: complete, described by its schema, and read back as it was."""

from __future__ import annotations

import dataclasses
import json
import math
import typing
from pathlib import Path

import jsonschema
import pytest

import grader.verdict as v
from grader.errors import GraderError

SCHEMA = json.loads((Path(v.__file__).parent / "results.schema.json").read_text())


def filled(kind: typing.Any) -> typing.Any:
    """A value of a type, every list with one item."""
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{f.name: filled(hints[f.name]) for f in dataclasses.fields(kind)})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return [filled(arguments[0])]
    if origin is dict:
        return {"key": filled(arguments[1])}
    if arguments:
        return filled(arguments[0])
    return {str: "text", int: 3, float: math.inf, bool: True, typing.Any: 1}[kind]


def example() -> v.Verdict:
    verdict = filled(v.Verdict)
    verdict.schema_version, verdict.device = v.SCHEMA_VERSION, "cpu"
    verdict.stages[0].name = "correct"
    verdict.stages[0].status = verdict.stages[0].cases[0].status = v.FAILED
    return verdict


def test_the_schema_describes_what_is_written() -> None:
    jsonschema.validate(json.loads(example().to_json()), SCHEMA)


def test_the_schema_says_its_version() -> None:
    assert SCHEMA["title"] == f"The verdict of grader check, version {v.SCHEMA_VERSION}"


def test_the_schema_knows_every_field() -> None:
    for name, part in [("", SCHEMA), *SCHEMA["$defs"].items()]:
        if name == "number":
            continue
        kind = getattr(v, name) if name else v.Verdict
        assert list(part["properties"]) == [f.name for f in dataclasses.fields(kind)], name or "Verdict"


def test_it_is_read_back_as_it_was(tmp_path: Path) -> None:
    verdict = example()
    verdict.save(tmp_path / "results.json")
    again = v.Verdict.load(tmp_path / "results.json")
    assert again == verdict
    assert again.stages[0].cases[0].outputs[0].worst[0].expected == math.inf


def test_numbers_that_json_lacks() -> None:
    verdict = example()
    verdict.stages[0].bars[0].value = math.nan
    assert '"nan"' in verdict.to_json() and "NaN" not in verdict.to_json()


def test_unknown_fields_are_ignored_and_other_versions_refused() -> None:
    data = example().to_dict()
    assert v.Verdict.from_dict({**data, "added_later": 1}) == example()
    with pytest.raises(GraderError, match="schema version 9"):
        v.Verdict.from_dict({**data, "schema_version": "9.0"})


def test_files_that_are_no_results(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("not json")
    with pytest.raises(GraderError, match="not a results"):
        v.Verdict.load(tmp_path / "x.json")
    with pytest.raises(GraderError, match="cannot read"):
        v.Verdict.load(tmp_path / "missing.json")
    with pytest.raises(GraderError, match="cannot write"):
        example().save(tmp_path / "no" / "folder.json")


def test_exit_codes() -> None:
    verdict = example()
    verdict.passed = False
    assert verdict.exit_code == 1 and verdict.failed_stage.name == "correct"
    verdict.stages[0].status = v.ERROR
    assert verdict.exit_code == 2
    verdict.stages, verdict.passed = [], True
    assert verdict.exit_code == 0
