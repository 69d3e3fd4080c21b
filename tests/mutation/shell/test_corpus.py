"""The shell reader against labelled commands: the shared corpus, and cases of our own."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import read_command

ROOT = Path(__file__).parents[3]
CASES = [
    json.loads(line)
    for line in (ROOT / "tests" / "data" / "shell-cases.jsonl").read_text("utf-8").splitlines()
]


@pytest.fixture(scope="module")
def detection() -> ModuleType:
    name = "switchyard_detection_benchmark"
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / "detection.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_bash_corpus_keeps_its_figures(detection: ModuleType) -> None:
    rows = [r for r in detection.read_corpus(detection.DEFAULT_CORPUS) if r.shell == "bash"]
    edits = detection.score(rows, "file_edit")

    assert edits.precision >= 0.98
    assert edits.recall >= 0.97
    assert detection.accuracy(rows) >= 0.97
    assert [r.command for r in rows if r.label == "read_only" and r.got == "file_edit"] == []


@pytest.mark.parametrize(("shell", "wrong"), [("powershell", 1), ("cmd", 1)])
def test_windows_corpus_keeps_its_figures(detection: ModuleType, shell: str, wrong: int) -> None:
    rows = [r for r in detection.read_corpus(detection.DEFAULT_CORPUS) if r.shell == shell]

    assert len([r for r in rows if r.label != r.got]) <= wrong


def test_benchmark_prints_a_table_and_every_miss(
    detection: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "corpus.jsonl"
    rows = [
        {"id": "1", "command": "rm a.py", "shell": "bash", "label": "file_edit"},
        {"id": "2", "command": "rm a.py", "shell": "bash", "label": "read_only"},
    ]
    corpus.write_text("\n".join(json.dumps(row) for row in rows))

    assert detection.main([str(corpus), "--misses"]) == 0
    output = capsys.readouterr().out
    assert "precision 0.500 recall 1.000" in output
    assert "2 bash want read_only got file_edit: 'rm a.py'" in output


@pytest.mark.parametrize("case", CASES, ids=[f"case_{n}" for n in range(len(CASES))])
def test_command_has_its_label(case: dict[str, str]) -> None:
    reading = read_command(case["command"], PathClasses(), dialect=case["shell"])

    assert case["label"] == reading.label, (case["command"], reading)


BASH_CASES = [case for case in CASES if case["shell"] == "bash"]


@pytest.mark.parametrize("case", BASH_CASES, ids=[f"bash_{n}" for n in range(len(BASH_CASES))])
def test_dialect_of_a_bash_command_is_told_by_its_words(case: dict[str, str]) -> None:
    assert case["label"] == read_command(case["command"], PathClasses()).label, case["command"]
