"""Calls of agents that edit or do not: those that the rules were fitted to, and fresh ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("file", "precision", "recall", "silent"),
    [("tests/data/calls.jsonl", 0.99, 0.97, 0), ("benchmarks/calls.jsonl", 0.985, 0.97, 1)],
    ids=["fitted", "fresh"],
)
def test_calls_keep_their_figures(
    file: str,
    precision: float,
    recall: float,
    silent: int,
    load_benchmark: Callable[[str], ModuleType],
    capsys: pytest.CaptureFixture[str],
) -> None:
    detection = load_benchmark("detection")
    rows = detection.read_calls(ROOT / file)
    found = [row for row in rows if row.got == "file_edit"]
    edits = [row for row in rows if row.edits]
    detection.print_calls(rows, misses=True)
    printed = capsys.readouterr().out

    assert sum(row.edits for row in found) / len(found) >= precision, printed
    assert sum(row.got == "file_edit" for row in edits) / len(edits) >= recall, printed
    assert sum(row.got == "read_only" for row in edits) <= silent, printed
