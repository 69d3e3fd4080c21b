"""What labelling costs, and the figures that the benchmarks print."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from switchyard_core.conversation import ToolCall
from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.mutation import MutationRules
from switchyard_core.mutation.outcome import Outcome
from switchyard_core.mutation.shell.quick import only_reads
from switchyard_core.wire import format_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"switchyard_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name.
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def labelling() -> ModuleType:
    return load("labelling")


@pytest.fixture(scope="module")
def detection() -> ModuleType:
    return load("detection")


@pytest.mark.parametrize("kind", ["usual", "hard"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_second_request_of_a_conversation_labels_only_its_new_calls(
    labelling: ModuleType, monkeypatch: pytest.MonkeyPatch, wire_format: WireFormat, kind: str
) -> None:
    read: list[str] = []
    keep = MutationRules._read

    def counted(self: MutationRules, plan: Any, call: ToolCall) -> Outcome:
        read.append(call.path)
        return keep(self, plan, call)

    monkeypatch.setattr(MutationRules, "_read", counted)
    rules = labelling.new_rules()
    reader = format_of(wire_format)
    first = rules.scan(reader.read(ObjectText(labelling.body(wire_format, 40, kind=kind))))
    # What a name alone decides is not read at all.
    assert 15 < len(read) < 40
    known = set(read)
    read.clear()
    longer = reader.read(ObjectText(labelling.body(wire_format, 43, kind=kind)))
    second = rules.scan(longer)

    assert 0 < len(read) <= 3
    assert not known & set(read)
    assert second[:40] == first
    assert [v.label for v in second] == [rules.label(call).label for call in longer.calls]


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_usual_history_is_mostly_known_without_parsing(
    labelling: ModuleType, wire_format: WireFormat
) -> None:
    calls = (
        format_of(wire_format)
        .read(ObjectText(labelling.body(wire_format, 300, kind="usual", seed=5)))
        .calls
    )
    texts = [call.arguments["command"] for call in calls if call.name == "bash"]

    assert len(set(texts)) == len(texts) > 100
    assert 0.75 < sum(map(only_reads, texts)) / len(texts) < 0.95


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_planning_history_has_no_edit_and_is_nearly_all_known_without_parsing(
    labelling: ModuleType, wire_format: WireFormat
) -> None:
    calls = (
        format_of(wire_format)
        .read(ObjectText(labelling.body(wire_format, 300, kind="planning", seed=5)))
        .calls
    )
    texts = [call.arguments["command"] for call in calls if call.name == "bash"]

    assert len(texts) > 50
    assert sum(map(only_reads, texts)) / len(texts) > 0.95
    assert {labelling.new_rules().label(call).label for call in calls} == {"read_only"}


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
