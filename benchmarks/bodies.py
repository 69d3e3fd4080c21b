"""What a decision and a rewrite cost, as a ratio to decoding and encoding the same body.

    python benchmarks/bodies.py [--rounds 7]

Every figure is the median of rounds that alternate with the yardstick in one process, so that
the machine's mood cancels out: orjson loads and dumps the whole body once. The body is a
coding agent's history with tool results of some kilobytes. Needs the extra ``dev``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Callable

import orjson

from switchyard_core import Request, Switchyard, WireFormat

POLICY = """
schema_version = 1
[llm_clients.p]
format = "{wire_format}"
base_url = "https://example.com"
[targets.planner]
id = "capable"
llm_client = "p"
[targets.executor]
id = "efficient"
llm_client = "p"
[routes.r]
id = "r"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
"""
RESULT = "".join(f"def name_{n}(value):\n    return value + {n}  # é\n" for n in range(90))


def body(wire_format: WireFormat, turns: int, *, edited: bool) -> bytes:
    """Return a history of some turns, each a call and its result of about 4 kB."""
    items: list[dict[str, object]] = [{"role": "user", "content": "fix the bug"}]
    for turn in range(turns):
        name = "edit_file" if edited and turn == 0 else "read_file"
        arguments = {"path": f"src/file_{turn}.py"}
        call_id = f"call_{turn}"
        if wire_format == "openai_responses":
            call = {"type": "function_call", "call_id": call_id, "name": name}
            items.append({**call, "arguments": json.dumps(arguments)})
            items.append({"type": "function_call_output", "call_id": call_id, "output": RESULT})
        elif wire_format == "openai_chat":
            function = {"name": name, "arguments": json.dumps(arguments)}
            calls = [{"id": call_id, "type": "function", "function": function}]
            items.append({"role": "assistant", "content": None, "tool_calls": calls})
            items.append({"role": "tool", "tool_call_id": call_id, "content": RESULT})
        else:
            use = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
            result = {"type": "tool_result", "tool_use_id": call_id, "content": RESULT}
            items.append({"role": "assistant", "content": [use]})
            items.append({"role": "user", "content": [result]})
    key = "input" if wire_format == "openai_responses" else "messages"
    return json.dumps({"model": "r", "stream": True, key: items}, ensure_ascii=False).encode()


def medians(rounds: int, *jobs: Callable[[], object]) -> list[float]:
    """Return the median time of each job, all of them run in turn, round by round."""
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(rounds):
        for job, found in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            found.append(time.perf_counter() - start)
    return [statistics.median(found) for found in times]


def main() -> None:
    """Print one row per body."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds per figure")
    rounds = parser.parse_args().rounds
    print("ratio to orjson loads + dumps of the same body (lower is better)")
    print(f"{'wire format':20} {'body':>9} {'planning':>9} {'handoff':>9} {'latched':>9}")
    for wire_format in ("openai_chat", "openai_responses", "anthropic_messages"):
        yard = Switchyard.from_policy_text(POLICY.format(wire_format=wire_format))
        with asyncio.Runner() as runner:
            for turns in (1, 40, 250):
                row(yard, runner, wire_format, turns, rounds)


def row(
    yard: Switchyard, runner: asyncio.Runner, wire_format: WireFormat, turns: int, rounds: int
) -> None:
    """Print the ratios for one size of body."""
    planning = body(wire_format, turns, edited=False)
    edited = body(wire_format, turns, edited=True)
    session = {"x-switchyard-session-id": f"{wire_format}-{turns}"}

    # Enough repetitions in a row that each job finds the heap as it left it.
    repeat = max(5, 400 // turns)

    def serve(data: bytes, headers: dict[str, str]) -> Callable[[], object]:
        async def repeated() -> None:
            for _ in range(repeat):
                request = Request(wire_format=wire_format, body=data, headers=headers)
                yard.rewrite(request, await yard.decide(request))

        return lambda: runner.run(repeated())

    def decode_and_encode() -> None:
        for _ in range(repeat):
            orjson.dumps(orjson.loads(planning))

    serve(edited, session)()
    base, *found = medians(
        rounds,
        decode_and_encode,
        serve(planning, {}),
        serve(edited, {}),
        serve(edited, session),
    )
    ratios = "".join(f" {value / base:>9.2f}" for value in found)
    print(f"{wire_format:20} {len(planning) / 1000:>6.0f} kB{ratios}")


if __name__ == "__main__":
    main()
