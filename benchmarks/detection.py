"""Prints how well the shell reader labels a corpus of commands: precision, recall, misses.

Run ``python benchmarks/detection.py [CORPUS]``; the corpus is JSONL with ``command``, ``shell``
and ``label``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from switchyard_core.mutation.labels import LABELS
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import read_command

DEFAULT_CORPUS = Path(__file__).parent.parent / "tests" / "data" / "shell-corpus-dev.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One labelled command and what the reader says about it."""

    id: str
    command: str
    shell: str
    label: str
    got: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Figures of some rows for one label."""

    support: int
    precision: float
    recall: float


def read_corpus(path: Path) -> list[Row]:
    """Return every row of a corpus file with the label that the reader gives it."""
    classes = PathClasses()
    rows = []
    for line in path.read_text("utf-8").splitlines():
        entry = json.loads(line)
        got = read_command(entry["command"], classes, dialect=entry["shell"]).label
        rows.append(
            Row(
                id=entry["id"],
                command=entry["command"],
                shell=entry["shell"],
                label=entry["label"],
                got=got,
            )
        )
    return rows


def score(rows: Sequence[Row], label: str) -> Score:
    """Return precision and recall of one label."""
    expected = sum(row.label == label for row in rows)
    predicted = sum(row.got == label for row in rows)
    hits = sum(row.label == row.got == label for row in rows)
    return Score(
        support=expected,
        precision=hits / predicted if predicted else 1.0,
        recall=hits / expected if expected else 1.0,
    )


def accuracy(rows: Sequence[Row]) -> float:
    """Return the share of rows whose label is right."""
    return sum(row.label == row.got for row in rows) / len(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table for a corpus."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", nargs="?", type=Path, default=DEFAULT_CORPUS)
    parser.add_argument("--misses", action="store_true", help="print every wrong row")
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    rows = read_corpus(options.corpus)
    seconds = time.perf_counter() - began
    for shell in Counter(row.shell for row in rows):
        mine = [row for row in rows if row.shell == shell]
        flipped = sum(row.label == "read_only" and row.got == "file_edit" for row in mine)
        print(
            f"{shell}: {len(mine)} commands, accuracy {accuracy(mine):.3f}, reads flipped {flipped}"
        )
        for label in LABELS:
            figures = score(mine, label)
            print(
                f"  {label:17} n={figures.support:4} "
                f"precision {figures.precision:.3f} recall {figures.recall:.3f}"
            )
    print(f"{1e6 * seconds / len(rows):.0f} us per command")
    if options.misses:
        for row in rows:
            if row.label != row.got:
                print(f"{row.id} {row.shell} want {row.label} got {row.got}: {row.command!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
