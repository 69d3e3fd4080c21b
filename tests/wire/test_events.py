"""Server-sent events as servers write them, wherever the network cuts them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.wire.events import EventCutter

ODD = {
    "plain": (b'event: a\ndata: {"x":1}\n\ndata: [DONE]\n\n', [("a", b'{"x":1}'), ("", b"[DONE]")]),
    "crlf": (b"event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", [("a", b"1"), ("", b"2")]),
    "cr": (b"event: a\rdata: 1\r\rdata: 2\r\r", [("a", b"1"), ("", b"2")]),
    "mixed": (b"data: 1\r\n\r\ndata: 2\n\ndata: 3\r\r", [("", b"1"), ("", b"2"), ("", b"3")]),
    "no blank": (b"event:a\ndata:1\n\n", [("a", b"1")]),
    "two blanks": (b"data:  1\n\n", [("", b" 1")]),
    "comment": (b": hold on\n\ndata: 1\n\n", [("", b""), ("", b"1")]),
    "comment inside": (b": x\ndata: 1\n: y\n\n", [("", b"1")]),
    "lines": (b"data: {\ndata: }\n\n", [("", b"{\n}")]),
    "other fields": (b"id: 7\nretry: 10\nevent: a\ndata: 1\n\n", [("a", b"1")]),
    "data first": (b"data: 1\nevent: a\n\n", [("a", b"1")]),
    "mark": (b"\xef\xbb\xbfdata: 1\n\ndata: 2\n\n", [("", b"1"), ("", b"2")]),
    "mark before a name": (b"\xef\xbb\xbfevent: a\ndata: 1\n\n", [("a", b"1")]),
    "no end": (b"data: 1\n\ndata: 2", [("", b"1"), ("", b"2")]),
    "half an end": (b"data: 1\n\ndata: 2\n", [("", b"1"), ("", b"2")]),
    "name like data": (b"event: data: x\ndata: 1\n\n", [("data: x", b"1")]),
    "data within": (b'data: {"t":"\\ndata: 2"}\n\n', [("", b'{"t":"\\ndata: 2"}')]),
    "only a name": (b"event: a\n\ndata: 1\n\n", [("a", b""), ("", b"1")]),
    "field without a colon": (b"data\ndata: 1\n\n", [("", b"\n1")]),
    "characters": ("data: é\u2028😀\n\n".encode(), [("", "é\u2028😀".encode())]),
    "blank lines": (b"\n\ndata: 1\n\n\n\n", [("", b"1")]),
    "two names": (
        b"event: a\ndata: 1\nevent: b\n\nevent: a\ndata: 2\n\nevent: a\ndata: 3\n\n",
        [("b", b"1"), ("a", b"2"), ("a", b"3")],
    ),
    "in turn": (
        b"event: a\ndata: 1\n\n" * 2 + b"data: 2\n\n" * 2 + b"event: b\ndata: 3\n\n",
        [("a", b"1"), ("a", b"1"), ("", b"2"), ("", b"2"), ("b", b"3")],
    ),
    "nothing": (b"", []),
}  # fmt: skip


def events(*chunks: bytes) -> list[tuple[str, bytes]]:
    cutter = EventCutter()
    found = [each for chunk in chunks for each in cutter.feed(chunk)] + cutter.end()
    return [(each.name, each.data) for each in found if each.raw.strip()]


def test_what_servers_write():
    missed = [kind for kind, (stream, expected) in ODD.items() if events(stream) != expected]
    # Event by event, too, as they mostly come.
    missed += [
        kind
        for kind, (stream, expected) in ODD.items()
        if events(*stream.replace(b"\n\n", b"\n\n\0").split(b"\0")) != expected
    ]

    assert missed == []


@given(st.data())
def test_borders_of_chunks_make_no_difference(data):
    stream, expected = data.draw(st.sampled_from(list(ODD.values())))
    if not stream:
        return
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream)))))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    cutter = EventCutter()

    assert events(*chunks) == expected
    passed = [each.raw for chunk in chunks for each in cutter.feed(chunk)]
    assert b"".join(passed) + cutter.left() == stream


def test_a_comment_alone_is_one():
    kinds = {
        b": ping\n\n": True,
        b":\r\n\r\n": True,
        b"\n: ping\n\n": True,
        b"data: 1\n\n": False,
        b": x\ndata: 1\n\n": False,
        b"id: 1\n\n": False,
        b"\n\n": False,
    }

    assert {raw: EventCutter().feed(raw)[0].is_comment for raw in kinds} == kinds


def test_what_waits_is_left_once():
    cutter = EventCutter()
    cutter.feed(b"data: 1")

    assert cutter.left() == b"data: 1"
    assert cutter.left() == b""
    assert cutter.end() == []


@pytest.mark.parametrize("size", [64, 4096])
def test_a_large_event_in_small_chunks_costs_what_it_weighs(size):
    def spent(length: int) -> float:
        event = b"data: " + b"x" * length + b"\n\n"
        chunks = [event[at : at + size] for at in range(0, len(event), size)]
        start = time.process_time()
        assert len(events(*chunks)) == 1
        return time.process_time() - start

    small, large = (min(spent(length) for _ in range(3)) for length in (500_000, 4_000_000))

    # Eight times as long: linear is 8, quadratic 64.
    assert large < 30 * max(small, 0.001)


def test_many_events_in_one_chunk_cost_what_they_weigh():
    def spent(count: int) -> float:
        chunk = b'data: {"a":1}\n\n' * count
        start = time.process_time()
        assert len(events(chunk)) == count
        return time.process_time() - start

    small, large = (min(spent(count) for _ in range(3)) for count in (2_000, 16_000))

    assert large < 30 * max(small, 0.001)
