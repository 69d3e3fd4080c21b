"""What labelling costs, and the figures that the benchmarks print."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire import format_of


@pytest.fixture(scope="module")
def labelling(load_benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return load_benchmark("labelling")


@pytest.fixture(scope="module")
def detection(load_benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return load_benchmark("detection")


@pytest.mark.parametrize("kind", ["usual", "hard"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_second_request_of_a_conversation_labels_only_its_new_calls(
    labelling: ModuleType, wire_format: WireFormat, kind: str
) -> None:
    rules = labelling.new_rules()
    reader = format_of(wire_format)
    first = rules.scan(reader.read(ObjectText(labelling.body(wire_format, 40, kind=kind))))
    read = len(rules._verdicts)
    # What a name alone decides is not read at all.
    assert 15 < read < 40
    longer = reader.read(ObjectText(labelling.body(wire_format, 43, kind=kind)))
    second = rules.scan(longer)

    assert 0 < len(rules._verdicts) - read <= 3
    assert second[:40] == first
    assert [v.label for v in second] == [rules.label(call).label for call in longer.calls]


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_histories_of_the_benchmark_are_what_it_says(
    labelling: ModuleType, wire_format: WireFormat
) -> None:
    for kind, least, most in (("usual", 0.75, 0.95), ("planning", 1, 1)):
        body = ObjectText(labelling.body(wire_format, 300, kind=kind, seed=5))
        calls = [call for call in format_of(wire_format).read(body).calls if call.name == "bash"]
        commands = [call.arguments["command"] for call in calls]
        rules = labelling.new_rules()
        reads = [call for call in calls if rules.label(call).label == "read_only"]

        assert len(set(commands)) == len(commands) > 50, kind
        assert least <= len(reads) / len(calls) <= most, kind


def test_labelling_benchmark_prints_every_wire_format(
    labelling: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    labelling.main(["--calls", "10", "--rounds", "1"])
    lines = capsys.readouterr().out.splitlines()

    assert lines[0] == "labelling 10 calls, ratio to decoding the same body"
    assert [tuple(line.split()[:2]) for line in lines[1:]] == [
        (kind, wire_format)
        for kind in ("planning", "usual", "hard")
        for wire_format in WIRE_FORMATS
    ]


def test_coverage_of_the_catalogue_is_whole(detection: ModuleType) -> None:
    wrong = {
        agent: kinds
        for agent, kinds in detection.read_tools(detection.DEFAULT_TOOLS).items()
        if any(right != total for right, total in (kinds.edits, kinds.reads, kinds.shells))
    }

    assert wrong == {}


def test_detection_prints_tools_that_it_misses_and_ends_with_the_summary(
    detection: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus, tools = tmp_path / "corpus.jsonl", tmp_path / "tools.json"
    rows = [
        {"id": "1", "command": "rm a.py", "shell": "bash", "label": "file_edit"},
        {"id": "2", "command": "rm b.py", "shell": "bash", "label": "read_only"},
    ]
    corpus.write_text("\n".join(json.dumps(row) for row in rows))
    row = {"agent": "X", "wire_kind": "function", "args": {}, "condition": ""}
    tools.write_text(
        json.dumps(
            [
                {**row, "tool": "write_file", "mutates": "always", "args": {"path": "str"}},
                {**row, "tool": "frobnicate", "mutates": "always"},
                {**row, "tool": "bash", "mutates": "shell", "args": {"command": "str"}},
                {**row, "tool": "a naming scheme", "mutates": "never", "wire_kind": "text"},
            ]
        )
    )

    assert detection.main([str(corpus), "--tools", str(tools)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "X 1/ 2 - 1/ 1" in [" ".join(line.split()) for line in lines]
    assert lines[-2:] == [
        "shell       commands  precision  recall  reads flipped  accuracy",
        "bash               2      0.500   1.000            1/1     0.500",
    ]
