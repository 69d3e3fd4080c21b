"""Prints how well commands and tools are labelled: precision, recall, misses, coverage.

Run ``python benchmarks/detection.py [CORPUS] [--tools CATALOGUE]``. The corpus is JSONL of one of
two kinds: labelled commands (``command``, ``shell``, ``label``), or calls that edit or do not
(``kind``, ``want``: ``edit`` or ``noedit``, ``tool``, and ``command`` or ``arguments``). The
catalogue is a JSON list of tools with their agent, arguments, and whether they edit ``always``,
``never``, or as their ``shell`` command does. The last lines are the summary.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli

from switchyard_core.conversation import ToolCall
from switchyard_core.mutation import MutationRules, RuleSetModel, compile_rules, core_packs
from switchyard_core.mutation.labels import LABELS
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import read_command

DATA = Path(__file__).parent.parent / "tests" / "data"
DEFAULT_CORPUS = DATA / "shell-corpus-dev.jsonl"
DEFAULT_TOOLS = DATA / "agent-tools.json"
PATCH = "*** Begin Patch\n*** Update File: src/app.py\n@@\n-a\n+b\n*** End Patch\n"
#: A name that is one tool: the catalogue also has naming schemes and families.
ONE_NAME = re.compile(r"[\w.\-]+")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """One call that edits or does not, and its label."""

    line: int
    kind: str
    edits: bool
    text: str
    got: str


def read_calls(path: Path) -> list[CallRow]:
    """Return every call of a corpus file with its label in the default pack."""
    rules = _default_rules()
    rows = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        entry = json.loads(line)
        given = entry["arguments"] if "arguments" in entry else {"command": entry["command"]}
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        rows.append(
            CallRow(
                line=number,
                kind=entry["kind"],
                edits=entry["want"] == "edit",
                text=f"{entry['tool']} {text}",
                got=_label(rules, entry["tool"], given),
            )
        )
    return rows


def print_calls(rows: Sequence[CallRow], *, misses: bool) -> None:
    """Print precision, recall and edits that are taken for reads, per kind and together."""
    if misses:
        for row in rows:
            if row.edits is not (row.got == "file_edit"):
                wanted = "edit" if row.edits else "noedit"
                print(f"{row.line} {row.kind}: want {wanted} got {row.got}: {row.text}")
    print(f"{'kind':40} {'calls':>5}  {'precision':>9}  {'recall':>6}  {'silent misses':>13}")
    kinds = dict.fromkeys(row.kind for row in rows)
    for kind in [*kinds, ""]:
        mine = [row for row in rows if row.kind == kind or not kind]
        edits = [row for row in mine if row.edits]
        found = [row for row in mine if row.got == "file_edit"]
        hits = sum(row.edits for row in found)
        silent = sum(row.got == "read_only" for row in edits)
        precision = hits / len(found) if found else 1.0
        recall = hits / len(edits) if edits else 1.0
        print(
            f"{kind or 'all':40} {len(mine):5}  {precision:9.3f}  {recall:6.3f}"
            f"  {f'{silent}/{len(edits)}':>13}"
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many tools of one agent get their label, by what they do.

    Args:
        edits: Right and all of those that always edit.
        reads: Right and all of those that never do.
        shells: Right and all of those that run a command, each tried with a read and an edit.
    """

    edits: tuple[int, int]
    reads: tuple[int, int]
    shells: tuple[int, int]


def _default_rules() -> MutationRules:
    sets = {p.name: RuleSetModel.model_validate(tomli.loads(p.text)) for p in core_packs()}
    return compile_rules(["coding_agents"], sets)


def read_tools(path: Path) -> dict[str, Coverage]:
    """Return the coverage of every agent of a catalogue."""
    rules = _default_rules()
    found: dict[str, dict[str, list[bool]]] = {}
    for row in json.loads(path.read_text("utf-8")):
        name = row["tool"].split(" ")[0].strip()
        kind = row["mutates"]
        counted = kind in {"always", "never", "shell"} and row["wire_kind"] != "text"
        if counted and ONE_NAME.fullmatch(name):
            agent = found.setdefault(row["agent"], {"always": [], "never": [], "shell": []})
            agent[kind].append(all(_labels(rules, row, name)))
    return {
        agent: Coverage(
            **{
                word: (sum(kinds[kind]), len(kinds[kind]))
                for word, kind in (("edits", "always"), ("reads", "never"), ("shells", "shell"))
            }
        )
        for agent, kinds in found.items()
    }


def _labels(rules: MutationRules, row: dict[str, Any], name: str) -> list[bool]:
    """Return for each call of a tool whether it gets the label of its row."""
    names = list(row["args"]) if isinstance(row["args"], dict) else []
    if row["mutates"] == "shell":
        key = next((key for key in ("cmd", "CommandLine", "commands") if key in names), "command")
        tried = {"git status": "read_only", "git apply x.patch": "file_edit"}
        return [
            _label(rules, name, {key: [text] if key == "commands" else text}) == label
            for text, label in tried.items()
        ]
    label, mark = "file_edit", "file_write_other"
    if row["mutates"] == "never":
        label, mark = "read_only", "(file_write_other)"
    if mark in row["condition"]:
        label = "file_write_other"
    given = {key: _value(key) for key in names}
    return [_label(rules, name, PATCH if names == ["<input>"] else given) == label]


def _value(key: str) -> object:
    lowered = key.lower()
    if lowered in {"input", "patch", "patchtext"}:
        return PATCH
    if "path" in lowered or ("file" in lowered and "text" not in lowered):
        return ["src/app.py"] if lowered.endswith("s") else "src/app.py"
    return "str_replace" if key == "command" else "x"


def _label(rules: MutationRules, name: str, given: str | dict[str, Any]) -> str:
    if isinstance(given, str):
        return rules.label(ToolCall(id="1", name=name, kind="custom", source=given)).label
    return rules.label(ToolCall(id="1", name=name, source=json.dumps(given))).label


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table for a corpus."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", nargs="?", type=Path, default=DEFAULT_CORPUS)
    parser.add_argument("--tools", type=Path, default=DEFAULT_TOOLS, help="catalogue of tools")
    parser.add_argument("--misses", action="store_true", help="print every wrong row")
    options = parser.parse_args(arguments)
    first = options.corpus.read_text("utf-8").partition("\n")[0]
    if "want" in json.loads(first):
        print_calls(read_calls(options.corpus), misses=options.misses)
        return 0
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
    print_tools(read_tools(options.tools))
    print_summary(rows)
    return 0


def print_tools(coverage: dict[str, Coverage]) -> None:
    """Print right of all tools, per agent and together."""
    print(f"\n{'tools of':45} {'edits':>9} {'reads':>9} {'shells':>9}")
    for agent in sorted(coverage, key=str.casefold):
        kinds = coverage[agent]
        print(f"  {agent:43} " + " ".join(map(_of, (kinds.edits, kinds.reads, kinds.shells))))
    every = coverage.values()
    sums = [
        (sum(right for right, _ in kind), sum(total for _, total in kind))
        for kind in ([c.edits for c in every], [c.reads for c in every], [c.shells for c in every])
    ]
    print(f"  {f'all {len(coverage)}':43} " + " ".join(map(_of, sums)))


def _of(pair: tuple[int, int]) -> str:
    return f"{pair[0]:3}/{pair[1]:3}".rjust(9) if pair[1] else "-".rjust(9)


def print_summary(rows: Sequence[Row]) -> None:
    """Print the figures of ``file_edit`` and the accuracy over five labels, per shell."""
    print("\nshell       commands  precision  recall  reads flipped  accuracy")
    for shell in Counter(row.shell for row in rows):
        mine = [row for row in rows if row.shell == shell]
        edits = score(mine, "file_edit")
        reads = [row for row in mine if row.label == "read_only"]
        flipped = sum(row.got == "file_edit" for row in reads)
        print(
            f"{shell:10}  {len(mine):8}  {edits.precision:9.3f}  {edits.recall:6.3f}"
            f"  {f'{flipped}/{len(reads)}':>13}  {accuracy(mine):8.3f}"
        )


if __name__ == "__main__":
    sys.exit(main())
