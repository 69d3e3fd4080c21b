"""The shell reader against labelled commands: the shared corpus, and cases of our own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import read_command

CASES = Path(__file__).parents[2] / "data" / "shell-cases.jsonl"
CLASSES = PathClasses()


@pytest.fixture(scope="module")
def detection(load_benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return load_benchmark("detection")


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


def cases() -> Iterator[tuple[str, str, str]]:
    for line in CASES.read_text("utf-8").splitlines():
        case = json.loads(line)
        yield case["command"], case["shell"], case["label"]


def test_every_command_has_its_label() -> None:
    wrong = [
        (command, shell, label, reading)
        for command, shell, label in cases()
        if (reading := read_command(command, CLASSES, dialect=shell)).label != label
    ]

    assert wrong == []


def test_dialect_of_every_bash_command_is_told_by_its_words() -> None:
    wrong = [
        (command, label, reading)
        for command, shell, label in cases()
        if shell == "bash" and (reading := read_command(command, CLASSES)).label != label
    ]

    assert wrong == []
