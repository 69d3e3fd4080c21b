"""What bodies that are made to cost much cost, against their size and against decoding them.

    python benchmarks/hostile_bodies.py [--sizes 65536,1048576,8388608] [--only WORD]

Every place of a body that is read or rewritten is filled with the smallest things that may be
there, in the three wire formats; each body is decided and rewritten, once for a session that plans
and once for one that hands off to another provider. Refusing a body counts as much as serving it.
`time` is processor time as a multiple of orjson's decoding of the same body, `memory` the growth of
a child process as a multiple of the body. Prints the worst of each. A body that is not refused has
20,000 tiny items at most, so beside the multiples there is an amount that every body may cost:
exits 1 when a body costs more than both (MOST_TIME and FREE_S, MOST_MEMORY and FREE_BYTES).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Iterator

import orjson

from switchyard_core import Request, RequestError, Switchyard
from switchyard_core.declarations import WIRE_FORMATS

MOST_TIME, FREE_S = 10.0, 1.5
MOST_MEMORY, FREE_BYTES = 40.0, 48 * 1024 * 1024
SIZES = (64 * 1024, 1024 * 1024, 8 * 1024 * 1024)

POLICY = """
schema_version = 1
[llm_clients.one]
format = "{0}"
base_url = "https://one.example"
[llm_clients.other]
format = "{0}"
base_url = "https://other.example"
[targets.planner]
id = "capable"
llm_client = "one"
system_prompt = "Be brief."
[targets.executor]
id = "efficient"
llm_client = "other"
tool_id_style = "alphanumeric_9"
[routes.coding]
id = "coder"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
planning_prompt = "Plan."
handoff_prompt = "Go."
"""
KEYS = {"openai_chat": "messages", "openai_responses": "input", "anthropic_messages": "messages"}
CALLS = {
    "openai_chat": '{"role":"assistant","tool_calls":[{"id":"c","type":"function",'
    '"function":{"name":"edit_file","arguments":"{}"}}]}',
    "openai_responses": '{"type":"function_call","call_id":"c","name":"edit_file",'
    '"arguments":"{}"}',
    "anthropic_messages": '{"role":"assistant","content":[{"type":"tool_use","id":"c",'
    '"name":"edit_file","input":{}}]}',
}
UNITS = {
    "zeros": "0",
    "nulls": "null",
    "empty texts": '""',
    "empty objects": "{}",
    "empty arrays": "[]",
    "huge numbers": "1e400",
    "surrogates": '"\\ud800"',
    "types": '{"type":""}',
    "roles": '{"role":"user"}',
    "assistants": '{"role":"assistant","content":""}',
    "results": '{"role":"tool","tool_call_id":"x"}',
    "outputs": '{"type":"function_call_output","call_id":"x"}',
    "reasoning": '{"type":"reasoning","summary":[]}',
    "texts": '{"type":"text","text":""}',
    "thinking": '{"type":"thinking","thinking":""}',
    "tool uses": '{"type":"tool_use","id":"!","name":"a","input":{}}',
    "marks": '{"type":"text","text":"","cache_control":{}}',
    "tools": '{"name":"a","input_schema":{}}',
}


def fill(unit: str, size: int) -> str:
    """Return as many units as fit, with commas between them."""
    return ",".join([unit] * max(1, size // (len(unit) + 1)))


def bodies(wire_format: str, size: int, *, edited: bool) -> Iterator[tuple[str, bytes]]:
    """Yield each kind of body of about a size, with its name."""
    key = KEYS[wire_format]
    call = CALLS[wire_format] if edited else ""

    def body(history: str, rest: str = "") -> bytes:
        items = ",".join(filter(None, (call, history)))
        return f'{{"model":"coder",{rest}"{key}":[{items}]}}'.encode()

    for name, unit in UNITS.items():
        flood = fill(unit, size)
        yield f"history of {name}", body(flood)
        yield f"content of {name}", body(f'{{"role":"user","content":[{flood}]}}')
        yield f"answer of {name}", body(f'{{"role":"assistant","content":[{flood}]}}')
        yield f"calls of {name}", body(f'{{"role":"assistant","tool_calls":[{flood}]}}')
        yield f"tools of {name}", body("", f'"tools":[{flood}],')
        yield f"system of {name}", body("", f'"system":[{flood}],')
        half = f'"{"x" * (size // 2)}"'
        yield f"padded history of {name}", body(fill(unit, size // 2), f'"user":{half},')
    members = ",".join(f'"k{number}":0' for number in range(size // 10))
    yield "members", f'{{"model":"coder",{members},"{key}":[]}}'.encode()
    yield "members of a message", body(f'{{"role":"user",{members}}}')
    yield (
        "one member again and again",
        body(f'{{"role":"user",{fill(chr(34) + "a" + chr(34) + ":0", size)}}}'),
    )
    for name, inside in {
        "letters": "a",
        "escapes": "\\u0061",
        "surrogates": "\\ud800",
        "quotes": '\\"',
        "commands": "rm -rf a;",
    }.items():
        text = inside * (size // len(inside))
        yield f"text of {name}", body(f'{{"role":"user","content":"{text}"}}')
        arguments = json.dumps(json.dumps({"command": inside * (size // 2 // len(inside))}))
        yield (
            f"arguments of {name}",
            body(
                f'{{"role":"assistant","type":"function_call","name":"bash","call_id":"d","arguments":'
                f'{arguments},"tool_calls":[{{"id":"d","function":{{"name":"bash","arguments":'
                f'{arguments}}}}}],"content":[{{"type":"tool_use","id":"d","name":"bash","input":'
                f"{json.loads(arguments)}}}]}}"
            ),
        )
    yield "spaces", body(" " * size + UNITS["roles"])
    yield "levels", body("[" * min(size, 900) + "]" * min(size, 900))


def serve(yard: Switchyard, wire_format: str, body: bytes) -> str:
    """Decide and rewrite a body; return what came of it."""

    async def run() -> str:
        request = Request(wire_format=wire_format, body=body, headers={"x-session-id": "s"})
        try:
            decision = await yard.decide(request)
            yard.rewrite(request, decision)
        except RequestError as error:
            return error.code
        return decision.phase

    return asyncio.run(run())


def measured(yard: Switchyard, wire_format: str, body: bytes) -> tuple[float, int, str]:
    """Return seconds of processor time, bytes of growth, and what came of it, from a child."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        result = serve(yard, wire_format, body)
        seconds = time.process_time() - start
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        os.write(writing, json.dumps([seconds, grown * 1024, result]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.wait()
    seconds, grown, result = json.loads(text)
    return seconds, grown, result


def decoding(body: bytes) -> float:
    """Return the seconds that orjson takes for a body, the best of three."""
    best = 1e9
    for _ in range(3):
        start = time.process_time()
        try:
            orjson.loads(body)
        except orjson.JSONDecodeError:
            json.loads(body)  # a lone surrogate: what reads it is Python's own
        best = min(best, time.process_time() - start)
    return max(best, 1e-6)


def main() -> int:
    """Print the worst bodies; return 1 when one costs too much."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    rows = []
    for wire_format in WIRE_FORMATS:
        yard = Switchyard.from_policy_text(POLICY.format(wire_format))
        serve(yard, wire_format, b'{"model":"coder","messages":[],"input":[]}')
        for size in map(int, options.sizes.split(",")):
            for edited in (False, True):
                for name, body in bodies(wire_format, size, edited=edited):
                    if options.only in name:
                        seconds, grown, result = measured(yard, wire_format, body)
                        ratio = seconds / decoding(body)
                        rows.append((ratio, seconds, grown, len(body), wire_format, name, result))
    print(f"{len(rows)} bodies")
    late = [row for row in rows if row[0] > MOST_TIME and row[1] > FREE_S]
    large = [row for row in rows if row[2] > MOST_MEMORY * row[3] and row[2] > FREE_BYTES]
    orders = {
        "time": lambda row: row[0],
        "seconds": lambda row: row[1],
        "memory": lambda row: row[2] / row[3],
        "bytes": lambda row: row[2],
    }
    for title, order in orders.items():
        print(f"\nworst {title}")
        for row in sorted(rows, key=order, reverse=True)[:8]:
            ratio, seconds, grown, length, wire_format, name, result = row
            print(
                f"  {ratio:7.1f} x {seconds * 1000:8.1f} ms {grown / length:7.1f} x "
                f"{grown / 1e6:7.1f} MB of {length / 1e6:5.2f} MB  "
                f"{wire_format}: {name} -> {result}"
            )
    print(f"\nover the bounds: {len(late)} in time, {len(large)} in memory")
    for row in late + large:
        print("  ", *row)
    return 1 if late or large else 0


if __name__ == "__main__":
    sys.exit(main())
