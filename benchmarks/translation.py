"""What an answer costs that is told in another wire format, as a ratio of one run.

    python benchmarks/translation.py [--rounds 7] [--events 2000] [--megabytes 100]

For each pair of formats: the CPU of a stream of text and of one of tool arguments, one event per
chunk, against orjson loads and dumps of the same events, both the best of rounds that alternate in
one process; the delay of an event at p99, beyond that of a stream that passes as it is; and the
memory that a long stream needs, at its peak. Exits 1 above a limit. Needs the extra ``dev``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
import tracemalloc
from collections.abc import Iterator

import orjson

from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire import FORMATS
from switchyard_core.wire.passing import AnswerTrace
from switchyard_core.wire.translation import AnswerTranslation

#: Most times the CPU of orjson; longest added delay in milliseconds; most memory of a stream in
#: bytes, for callers whose format repeats the answer at its end beyond its text.
CPU_LIMIT, DELAY_LIMIT, MEMORY_LIMIT = 4.0, 1.0, 2_000_000

WORDS = ["The", " provider", " sends", " a", " text", " in", " piece", "s", " of", " words", ".\n"]
ARGUMENTS = ['{"path', '":"', "src/", "main", ".py", '","', "content", '":"', "def ", "\\n", "a()"]
TOOL = "write_file"
#: The beginning of a stream, the events of its pieces, its end.
Events = tuple[list[bytes], list[bytes], list[bytes]]
REQUESTS = {
    "openai_chat": {"model": "m", "stream": True, "messages": [{"role": "user", "content": "go"}]},
    "openai_responses": {"model": "m", "stream": True, "input": "go"},
    "anthropic_messages": {
        "model": "m",
        "max_tokens": 9,
        "stream": True,
        "messages": [{"role": "user", "content": "go"}],
    },
}


def events(name: str, pieces: list[str], *, call: bool) -> Events:
    """Return the events of a stream: its beginning, those of its pieces, its end."""
    return {
        "openai_chat": chat_events,
        "openai_responses": responses_events,
        "anthropic_messages": messages_events,
    }[name](pieces, call=call)


def sse(data: dict[str, object], name: str = "") -> bytes:
    """Return an event as a provider sends it."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


def chat_events(pieces: list[str], *, call: bool) -> Events:
    """Return a stream of OpenAI's, with the padding that hides the length of the pieces."""
    head = {
        "id": "chatcmpl-CXyz1234567890abcdefghijklmn",
        "object": "chat.completion.chunk",
        "created": 1764500000,
        "model": "gpt-5.2-2026-01-01",
        "service_tier": "default",
        "system_fingerprint": None,
    }

    def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse({**head, "choices": [choice], "usage": None, "obfuscation": "aB3dE5gHi7"})

    if call:
        function = {"name": TOOL, "arguments": ""}
        told = {"index": 0, "id": "call_Ab1", "type": "function", "function": function}
        first = [chunk({"role": "assistant", "content": None, "tool_calls": [told]})]
        said = [
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": each}}]})
            for each in pieces
        ]
    else:
        first = [chunk({"role": "assistant", "content": "", "refusal": None})]
        said = [chunk({"content": each}) for each in pieces]
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    last = sse({**head, "choices": [], "usage": usage})
    return first, said, [chunk({}, "tool_calls" if call else "stop"), last, b"data: [DONE]\n\n"]


def responses_events(pieces: list[str], *, call: bool) -> Events:
    """Return a stream of OpenAI's; its end, which repeats the text, holds none of it here."""
    number = itertools.count()
    item_id = "msg_0f2b3c4d5e6f7a8b0069aabbccddeeff00112233445566"

    def event(kind: str, **fields: object) -> bytes:
        return sse({"type": kind, "sequence_number": next(number), **fields}, kind)

    response = {"id": "resp_0f2b3c", "object": "response", "created_at": 1764500000}
    item: dict[str, object] = {"id": item_id, "type": "message", "content": [], "status": "x"}
    place: dict[str, object] = {"item_id": item_id, "output_index": 0}
    kind, more = "response.output_text.delta", {"content_index": 0}
    padding: dict[str, object] = {"logprobs": [], "obfuscation": "aB3dE5gHi7"}
    if call:
        item = {"id": item_id, "type": "function_call", "call_id": "call_Ab1", "name": TOOL}
        kind, more, padding = "response.function_call_arguments.delta", {}, {"obfuscation": "aB3dE"}
    first = [
        event("response.created", response={**response, "status": "in_progress", "model": "gpt"}),
        event("response.output_item.added", output_index=0, item=item),
    ]
    said = [event(kind, **place, **more, delta=each, **padding) for each in pieces]
    usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
    ended = {**response, "status": "completed", "model": "gpt", "output": [item], "usage": usage}
    return first, said, [event("response.completed", response=ended)]


def messages_events(pieces: list[str], *, call: bool) -> Events:
    """Return a stream of Anthropic's."""

    def event(kind: str, **fields: object) -> bytes:
        return sse({"type": kind, **fields}, kind)

    message = {
        "model": "claude-sonnet-5",
        "id": "msg_01AbCdEfGhIjKlMnOpQrStUv",
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 1, "service_tier": "standard"},
    }
    block: dict[str, object] = {"type": "text", "text": ""}
    kind, key = "text_delta", "text"
    if call:
        block = {"type": "tool_use", "id": "toolu_01AbCd", "name": TOOL, "input": {}}
        kind, key = "input_json_delta", "partial_json"
    first = [
        event("message_start", message=message),
        event("content_block_start", index=0, content_block=block),
        event("ping"),
    ]
    said = [
        event("content_block_delta", index=0, delta={"type": kind, key: each}) for each in pieces
    ]
    delta = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    usage = {"input_tokens": 9, "output_tokens": 9}
    last = [
        event("content_block_stop", index=0),
        event("message_delta", delta=delta, usage=usage),
        event("message_stop"),
    ]
    return first, said, last


def pieces(count: int, *, call: bool) -> list[str]:
    """Return the pieces of a text, or of arguments that are JSON."""
    words = itertools.cycle(ARGUMENTS[6:] if call else WORDS)
    inner = list(itertools.islice(words, count))
    if not call:
        return inner
    text = [each for each in inner if '"' not in each]
    return [*ARGUMENTS[:8], *text, '"}']


def translation(source: str, caller: str) -> AnswerTranslation:
    """Return a translation of an answer to a small request."""
    return AnswerTranslation(
        source=FORMATS[source],
        caller=FORMATS[caller],
        request=ObjectText(json.dumps(REQUESTS[caller]).encode()),
        model="m",
        answer_model="requested",
        new_id="{}_new".format,
        created_s=1,
    )


def told(source: str, caller: str, stream: list[bytes]) -> int:
    """Return the CPU time in nanoseconds of a translated stream."""
    begun = translation(source, caller)
    feed = begun.feed
    start = time.thread_time_ns()
    for chunk in stream:
        feed(chunk)
    begun.end()
    return time.thread_time_ns() - start


def decoded(stream: list[bytes]) -> int:
    """Return the CPU time in nanoseconds of orjson, which reads and writes the same events."""
    bodies = [chunk[chunk.index(b"{") :] for chunk in stream if b"{" in chunk]
    start = time.thread_time_ns()
    for body in bodies:
        orjson.dumps(orjson.loads(body))
    return time.thread_time_ns() - start


def ratio(source: str, caller: str, stream: list[bytes], rounds: int) -> float:
    """Return the CPU of a translated stream as a multiple of orjson's."""
    times = [(told(source, caller, stream), decoded(stream)) for _ in range(rounds)]
    return min(a for a, _ in times) / min(b for _, b in times)


def delay(source: str, caller: str, stream: list[bytes]) -> float:
    """Return the delay of an event at p99 in milliseconds, beyond that of one that passes."""

    def p99(times: list[int]) -> float:
        return statistics.quantiles(times, n=100)[98] / 1e6

    begun, trace = translation(source, caller), AnswerTrace(FORMATS[source], "text/event-stream")
    spent: list[int] = []
    passed: list[int] = []
    for chunk in stream:
        start = time.perf_counter_ns()
        begun.feed(chunk)
        spent.append(time.perf_counter_ns() - start)
        start = time.perf_counter_ns()
        trace.note(chunk)
        passed.append(time.perf_counter_ns() - start)
    return p99(spent) - p99(passed)


def memory(source: str, caller: str, megabytes: int) -> tuple[int, int]:
    """Return what a long stream needs at its peak before its end, and the size of its text."""
    text = "x" * 2000
    first, said, _ = events(source, [text], call=False)
    begun, size = translation(source, caller), 0
    for chunk in first:
        begun.feed(chunk)
    tracemalloc.start()
    try:
        while size < megabytes * 1_000_000:
            begun.feed(said[0])
            size += len(text)
        return tracemalloc.get_traced_memory()[1], size
    finally:
        tracemalloc.stop()


def rows(rounds: int, count: int, megabytes: int) -> Iterator[bool]:
    """Print one row per pair and yield whether it is within the limits."""
    for source, caller in itertools.permutations(FORMATS, 2):
        streams = []
        for call in (False, True):
            first, said, last = events(source, pieces(count, call=call), call=call)
            streams.append([*first, *said, *last])
        ratios = [ratio(source, caller, stream, rounds) for stream in streams]
        late = max(delay(source, caller, stream) for stream in streams)
        peak, size = memory(source, caller, megabytes)
        beyond = peak - size * 1.2 if FORMATS[caller].ends_with_whole_answer else peak
        fine = max(ratios) <= CPU_LIMIT and late <= DELAY_LIMIT and beyond <= MEMORY_LIMIT
        figures = (
            f"{ratios[0]:>6.2f} {ratios[1]:>9.2f} {late * 1000:>9.1f} µs {peak / 1e6:>8.1f} MB"
        )
        print(f"{source:18} → {caller:18} {figures}{'' if fine else '  ABOVE A LIMIT'}")
        yield fine


def main() -> None:
    """Print one row per pair of formats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds per figure")
    parser.add_argument("--events", type=int, default=2000, help="events of a stream")
    parser.add_argument("--megabytes", type=int, default=100, help="size of the long stream")
    given = parser.parse_args()
    print(f"limits: {CPU_LIMIT} times orjson, {DELAY_LIMIT} ms, memory that does not grow")
    print(f"{'provider':18}   {'caller':18} {'text':>6} {'arguments':>9} {'p99':>12} {'peak':>11}")
    if not all(list(rows(given.rounds, given.events, given.megabytes))):
        sys.exit(1)


if __name__ == "__main__":
    main()
