"""What labelling a long history costs, as a ratio to decoding the same body once.

    python benchmarks/labelling.py [--calls 500] [--rounds 9]

The history holds distinct shell commands, edits and reads with tool results of some kilobytes.
`first` labels a history that was never seen, `again` the next request of that conversation, in
which only the new call has to be read. Every figure is the median of rounds that alternate with
the yardstick, orjson's decoding of the whole body, so that the machine's mood cancels out.
Needs the extra ``dev``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import orjson
import tomli

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.formats import format_of
from switchyard_core.jsontext import ObjectText
from switchyard_core.mutation import MutationRules, RuleSetModel, compile_rules, core_packs

CORPUS = Path(__file__).parent.parent / "tests" / "data" / "shell-corpus-dev.jsonl"
RESULT = "".join(f"def name_{n}(value):\n    return value + {n}  # é\n" for n in range(90))


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


def body(wire_format: WireFormat, calls: int) -> bytes:
    """Return a history of some calls: of five, two run commands, two read, and one edits."""
    texts = commands()
    items: list[dict[str, object]] = [{"role": "user", "content": "fix the bug"}]
    for number in range(calls):
        name, arguments = "read_file", {"path": f"src/file_{number}.py"}
        if number % 5 in {0, 2}:
            name = "bash"
            arguments = {"command": f"{texts[number % len(texts)]} # {number}"}
        elif number % 5 == 4:
            name = "write_file"
        items += _turn(wire_format, f"call_{number}", name, arguments)
    if wire_format == "openai_responses":
        return orjson.dumps({"model": "r", "input": items})
    return orjson.dumps({"model": "r", "max_tokens": 9, "messages": items})


def _turn(
    wire_format: WireFormat, call_id: str, name: str, arguments: dict[str, str]
) -> list[dict[str, object]]:
    if wire_format == "openai_responses":
        call: dict[str, object] = {"type": "function_call", "call_id": call_id, "name": name}
        result: dict[str, object] = {
            "type": "function_call_output",
            "call_id": call_id,
            "output": RESULT,
        }
        return [{**call, "arguments": json.dumps(arguments)}, result]
    if wire_format == "openai_chat":
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls = [{"id": call_id, "type": "function", "function": function}]
        return [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": call_id, "content": RESULT},
        ]
    use = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
    answer = {"type": "tool_result", "tool_use_id": call_id, "content": RESULT}
    return [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [answer]},
    ]


def new_rules() -> MutationRules:
    """Return the default pack, compiled, with nothing remembered."""
    sets = {p.name: RuleSetModel.model_validate(tomli.loads(p.text)) for p in core_packs()}
    return compile_rules(["coding_agents"], sets)


def measure(wire_format: WireFormat, calls: int, rounds: int) -> Cost:
    """Return the medians of some rounds."""
    before, after = body(wire_format, calls), body(wire_format, calls + 1)
    reader = format_of(wire_format)
    # Tables, grammars and patterns are loaded once per process, not per history.
    new_rules().scan(reader.read(ObjectText(before)))
    seconds: dict[str, list[float]] = {"decoding": [], "first": [], "again": []}
    for _ in range(rounds):
        rules = new_rules()
        seconds["decoding"].append(_timed(partial(orjson.loads, before)))
        for name, data in (("first", before), ("again", after)):
            conversation = reader.read(ObjectText(data))
            seconds[name].append(_timed(partial(rules.scan, conversation)))
    return Cost(**{name: statistics.median(values) for name, values in seconds.items()})


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 when labelling again takes longer than decoding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    print(f"labelling {options.calls} calls, ratio to decoding the same body")
    slow = False
    for wire_format in WIRE_FORMATS:
        cost = measure(wire_format, options.calls, options.rounds)
        first, again = cost.first / cost.decoding, cost.again / cost.decoding
        slow = slow or again >= 1
        print(
            f"  {wire_format:19} decoding {1e3 * cost.decoding:6.2f} ms   "
            f"first {first:6.2f}   again {again:5.2f}"
        )
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
