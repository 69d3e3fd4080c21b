"""What labelling a long history costs, as a ratio to decoding the same body once.

    python benchmarks/labelling.py [--calls 500] [--rounds 9]

The histories are made up, not recorded: `usual` has the tools and commands that coding agents use
most, every command another one and one in ten no plain read; `planning` only those that read;
`hard` the commands of the labelled corpus, which was collected for its difficulty. Each call has
another result: two to six kilobytes out of the files of this repository, as agents read them, so
that 500 calls are about 2 MB, as a long session is. All calls are labelled, also those behind the
first edit, where a route stops. `first` labels a history that was never seen, by rules that have
labelled another one; `again` the next request of that conversation, in which only the new call
has to be read. Every figure is the best of rounds that alternate with the yardstick, orjson's
decoding of the whole body, in processor time, so that the machine's mood cancels out. Exits 1
when `first` of the usual history takes more than 4 times, or any `again` more than 0.2 times, as
long as decoding.
Needs the extra ``dev``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import TypeAlias

import orjson
import tomli

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.mutation import MutationRules, RuleSetModel, compile_rules, core_packs
from switchyard_core.wire import format_of

CORPUS = Path(__file__).parent.parent / "tests" / "data" / "shell-corpus-dev.jsonl"
#: What the files of this repository hold; tool results are pieces of it.
SOURCES = "".join(
    path.read_text("utf-8")
    for folder in ("switchyard_core", "docs", "tests/mutation")
    for path in sorted((Path(__file__).parent.parent / folder).rglob("*"))
    if path.suffix in {".py", ".md", ".toml"}
)

KINDS = ("planning", "usual", "hard")
#: Times that decoding takes: what labelling a usual history for the first time may cost, and
#: labelling the next request of any.
MOST_FIRST = 4
MOST_AGAIN = 0.2
#: A tool's name and its arguments.
Call: TypeAlias = tuple[str, dict[str, str]]

WORDS = ("parser", "server", "config", "routes", "models", "client", "store", "cache", "views")
#: Tools of the usual history, and how often each is used.
TOOLS = {"bash": 40, "read": 30, "grep": 12, "edit": 14, "ls": 4}
#: Commands of an agent that looks around, and how often each is used.
READS = {
    "ls -la src/{stem}": 8,
    "cat {path}": 7,
    "sed -n '{n},+40p' {path}": 2,
    "sed -n '{n},900p' {path}": 6,
    'grep -rn "def {stem}" --include="*.py" .': 8,
    "grep -n '{stem}' {path} | head -20": 6,
    "rg -n '{stem}\\(' src tests": 4,
    'cd /workspace/{stem} && grep -rn "{stem}" . | head -{n}': 5,
    "find . -name '{stem}*.py' -not -path './node_modules/*' | head": 5,
    "git status --short {path}": 3,
    "git diff HEAD~1 -- {path}": 5,
    "git log --oneline -5 -- {path} | cat": 3,
    "head -{n} {path}": 3,
    "wc -l {path} && tail -30 {path}": 3,
    "pytest tests/test_{stem}.py -x -q 2>&1 | tail -{n}": 6,
    "python -m pytest tests -k {stem} -q 2>&1 | tail -5": 4,
    "npm test -- {stem} 2>&1 | tail -40": 3,
    "cd /workspace && npx tsc --noEmit -p {stem} 2>&1 | head -30": 2,
    "ruff check {path}": 2,
}
#: Commands of the usual history: about one in ten does not plainly read.
COMMANDS = {
    **READS,
    'python -c "import {stem}; print({stem}.__file__)"': 2,
    'for f in src/{stem}/*.py; do echo "$f"; head -3 "$f"; done': 1,
    'git add {path} && git commit -q -m "Fix {stem}"': 2,
    "mkdir -p src/{stem}": 1,
    "sed -i 's/{stem}/other/g' {path}": 1,
    "cat > {path} << 'EOF'\nimport os\nprint({n})\nEOF": 1,
    "npm run build 2>&1 | tail -{n}": 1,
    "rm -f /tmp/{stem}.log": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds that one body takes.

    Args:
        decoding: orjson's decoding of the body.
        first: Labels for a history that was never seen, its reading not counted.
        again: Labels for the same history with one more call.
    """

    decoding: float
    first: float
    again: float


def commands() -> list[str]:
    """Return distinct bash commands of the corpus."""
    rows = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
    return list(dict.fromkeys(row["command"] for row in rows if row["shell"] == "bash"))


def hard_calls(count: int, seed: int = 0) -> list[Call]:
    """Return calls with commands of the corpus: of five, two run them, two read, one edits."""
    texts = commands()
    calls: list[Call] = []
    for number in range(count):
        name, arguments = "read_file", {"path": f"src/file_{seed}_{number}.py"}
        if number % 5 in {0, 2}:
            name = "bash"
            arguments = {"command": f"{texts[number % len(texts)]} # {seed} {number}"}
        elif number % 5 == 4:
            name = "write_file"
        calls.append((name, arguments))
    return calls


def usual_calls(count: int, seed: int = 0, *, planning: bool = False) -> list[Call]:
    """Return calls as coding agents make them, in drawn order, no two of them the same.

    Args:
        count: How many calls.
        seed: Histories with different seeds have no call in common.
        planning: Whether the agent only looks around.
    """
    random = Random(seed)
    tools = {**TOOLS, "edit": 0} if planning else TOOLS
    texts = READS if planning else COMMANDS
    calls: list[Call] = []
    for number in range(count):
        stem = f"{random.choice(WORDS)}_{seed}_{number}"
        names = {"n": str(number), "stem": stem, "path": f"src/{random.choice(WORDS)}/{stem}.py"}
        name = random.choices(list(tools), list(tools.values()))[0]
        if name == "bash":
            pattern = random.choices(list(texts), list(texts.values()))[0]
            calls.append((name, {"command": pattern.format(**names)}))
        elif name == "edit":
            new = f"    {stem} = {number}\n" * 8
            calls.append((name, {"path": names["path"], "oldText": stem, "newText": new}))
        elif name == "grep":
            calls.append((name, {"pattern": stem, "path": "src"}))
        else:
            calls.append((name, {"path": names["path"]}))
    return calls


def body(wire_format: WireFormat, calls: int, *, kind: str = "hard", seed: int = 0) -> bytes:
    """Return a request with a history of some calls.

    Args:
        wire_format: Its wire format.
        calls: How many calls.
        kind: ``planning``, ``usual`` or ``hard``.
        seed: Histories with different seeds have no call in common.
    """
    items: list[dict[str, object]] = [{"role": "user", "content": "fix the bug"}]
    made = hard_calls(calls, seed)
    if kind != "hard":
        made = usual_calls(calls, seed, planning=kind == "planning")
    random = Random(seed)
    for number, (name, arguments) in enumerate(made):
        size = random.randrange(2000, 6000)
        start = random.randrange(len(SOURCES) - size)
        result = SOURCES[start : start + size]
        items += _turn(wire_format, f"call_{number}", name, arguments, result)
    if wire_format == "openai_responses":
        return orjson.dumps({"model": "r", "input": items})
    return orjson.dumps({"model": "r", "max_tokens": 9, "messages": items})


def _turn(
    wire_format: WireFormat, call_id: str, name: str, arguments: dict[str, str], output: str
) -> list[dict[str, object]]:
    if wire_format == "openai_responses":
        call: dict[str, object] = {"type": "function_call", "call_id": call_id, "name": name}
        result: dict[str, object] = {
            "type": "function_call_output",
            "call_id": call_id,
            "output": output,
        }
        return [{**call, "arguments": json.dumps(arguments)}, result]
    if wire_format == "openai_chat":
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls = [{"id": call_id, "type": "function", "function": function}]
        return [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": call_id, "content": output},
        ]
    use = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
    answer = {"type": "tool_result", "tool_use_id": call_id, "content": output}
    return [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [answer]},
    ]


def new_rules() -> MutationRules:
    """Return the default pack, compiled, with nothing remembered."""
    sets = {p.name: RuleSetModel.model_validate(tomli.loads(p.text)) for p in core_packs()}
    return compile_rules(["coding_agents"], sets)


def measure(wire_format: WireFormat, calls: int, rounds: int, *, kind: str = "hard") -> Cost:
    """Return the best of some rounds."""
    reader = format_of(wire_format)
    # Tables, patterns and names are looked up once per process, not per history: rules have
    # labelled another history before, which has no call in common with this one.
    other = body(wire_format, calls, kind=kind, seed=1)
    before = body(wire_format, calls, kind=kind)
    after = body(wire_format, calls + 1, kind=kind)
    seconds: dict[str, list[float]] = {"decoding": [], "first": [], "again": []}
    for _ in range(rounds):
        rules = new_rules()
        rules.scan(reader.read(ObjectText(other)))
        seconds["decoding"].append(_timed(partial(orjson.loads, before)))
        for name, data in (("first", before), ("again", after)):
            conversation = reader.read(ObjectText(data))
            seconds[name].append(_timed(partial(rules.scan, conversation)))
    return Cost(**{name: min(values) for name, values in seconds.items()})


def _timed(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 when labelling takes too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    print(f"labelling {options.calls} calls, ratio to decoding the same body")
    slow = False
    for kind, wire_format in product(KINDS, WIRE_FORMATS):
        cost = measure(wire_format, options.calls, options.rounds, kind=kind)
        first, again = cost.first / cost.decoding, cost.again / cost.decoding
        slow = slow or again > MOST_AGAIN or (kind == "usual" and first > MOST_FIRST)
        size = len(body(wire_format, options.calls, kind=kind)) / 1e6
        print(
            f"  {kind:8} {wire_format:19} {size:4.1f} MB  decoding {1e3 * cost.decoding:6.2f} ms   "
            f"first {first:6.2f}   again {again:5.2f}"
        )
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
