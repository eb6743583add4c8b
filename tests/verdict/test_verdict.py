"""results.json contains every field, matches its schema, and can be read back unchanged."""

from __future__ import annotations

import json
import math
import typing
from pathlib import Path

import jsonschema
import msgspec
import pytest

import grader.verdict as v
from grader.setup.errors import GraderError
from grader.verdict import schema
from grader.verdict.findings.kind import Payload
from grader.verdict.record import Line, Record, Text, _limits
from grader.verdict.wording.results import as_json, results, save

SCHEMA = json.loads(schema.FILE.read_text())
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)


def filled(kind: typing.Any) -> typing.Any:
    """Return some value of a type, with one item in every list and every field filled."""
    if isinstance(kind, type) and issubclass(kind, Record):
        hints = typing.get_type_hints(kind)
        return kind(**{name: filled(hints[name]) for name in kind.__struct_fields__})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return [filled(arguments[0])]
    if origin is dict:
        return {"key": filled(arguments[1])}
    if origin is typing.Literal:
        return arguments[0]
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
    VALIDATOR.check_schema(SCHEMA)
    VALIDATOR.validate(results(example()))


def test_the_schema_is_generated_from_the_classes() -> None:
    assert schema.FILE.read_text() == schema.text(), "run python -m grader.verdict.schema"
    assert SCHEMA["title"] == f"The verdict of grader check, version {v.SCHEMA_VERSION}"


@pytest.mark.parametrize("path", ["seconds", "stages.0.bars.0.value", "stages.0.cases.0.dims.key"])
def test_the_schema_refuses_invalid_numbers_as_texts(path: str) -> None:
    data = results(example())
    *where, last = path.split(".")
    part = data
    for step in where:
        part = part[int(step) if step.isdigit() else step]
    part[last] = "nan"
    VALIDATOR.validate(data)
    part[last] = "many"
    assert not VALIDATOR.is_valid(data)


def test_a_verdict_is_read_back_unchanged(tmp_path: Path) -> None:
    verdict = example()
    save(verdict, tmp_path / "results.json")
    again = v.Verdict.load(tmp_path / "results.json")
    assert again == verdict
    assert again.stages[0].cases[0].outputs[0].worst[0].expected == math.inf


def test_numbers_that_json_lacks() -> None:
    verdict = example()
    verdict.stages[0].bars[0].value = math.nan
    assert '"nan"' in as_json(verdict) and "NaN" not in as_json(verdict)


def test_unknown_fields_are_ignored_and_other_versions_refused() -> None:
    data = example().to_dict()
    assert v.Verdict.from_dict({**data, "added_later": 1}) == example()
    with pytest.raises(GraderError, match="schema version 9"):
        v.Verdict.from_dict({**data, "schema_version": "9.0"})


def test_files_that_are_not_results(tmp_path: Path) -> None:
    foreign = ["not json", "[]", "[" * 100_000, json.dumps({"schema_version": v.SCHEMA_VERSION})]
    foreign.append(as_json(example()).replace('"points": 3', '"points": [3]'))
    for content in foreign:
        (tmp_path / "x.json").write_text(content)
        with pytest.raises(GraderError, match="not a results"):
            v.Verdict.load(tmp_path / "x.json")
    with pytest.raises(GraderError, match="cannot read"):
        v.Verdict.load(tmp_path / "missing.json")
    with pytest.raises(GraderError, match="cannot write"):
        save(example(), tmp_path / "x.json" / "folder.json")


def test_exit_codes() -> None:
    verdict = example()
    verdict.passed = False
    assert verdict.exit_code == 1 and verdict.failed_stage.name == "correct"
    verdict.stages[0].status = v.ERROR
    assert verdict.exit_code == 2
    verdict.stages, verdict.passed = [], True
    assert verdict.exit_code == 0


HOSTILE = "\x1b[2J\x00\u202e\ud800\x7f\u2028<b>\t\n" + "x" * 100_000


def kinds() -> list[type[Record]]:
    """Return the class Verdict and all classes that it contains."""
    payloads = [found for found in Payload.__subclasses__() if found.__module__.startswith("grader.")]
    facts = [found for found in Record.__subclasses__() if found.__module__.startswith("grader.")]
    return [found for found in [*facts, *payloads] if found is not Payload]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_texts_are_cleaned_and_shortened_on_construction(kind: type[Record]) -> None:
    fact = filled(kind)
    hints = typing.get_type_hints(kind)
    texts = [name for name, hint in hints.items() if hint is str]
    made = kind(**{name: HOSTILE if name in texts else getattr(fact, name) for name in kind.__struct_fields__})
    for name in texts:
        setattr(fact, name, HOSTILE)
        for text in (getattr(fact, name), getattr(made, name)):
            assert text.startswith("�[2J���� <b>\t\nxx") and text.endswith("...") and len(text) <= 20_000
    msgspec.json.encode(made)


class Part(Record):
    text: Line


class Whole(Record):
    line: Line
    text: Text
    lines: list[Line]
    texts: dict[str, Text]
    parts: list[Part]
    number: int | None


class Unlimited(Record):
    text: str


def test_the_limits_of_a_record_are_read_without_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msgspec.inspect.type_info", None)  # reads the types of all parts, too
    assert _limits(Whole) == {"line": 1_000, "text": 20_000, "lines": 1_000, "texts": 20_000}
    with pytest.raises(AssertionError, match="must be a Line or a Text"):
        _limits(Unlimited)


def test_texts_are_cleaned_when_a_file_is_read() -> None:
    data = example().to_dict()
    data["title"] = "\x1b[2J"
    assert v.Verdict.from_dict(data).title == "�[2J"
