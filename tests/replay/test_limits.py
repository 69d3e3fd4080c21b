"""Answers that are too long to be recorded: they pass, and little of them is held."""

from __future__ import annotations

import gzip
import logging

import pytest

from switchyard_core import Replay
from switchyard_core.replay import writing
from switchyard_core.replay.writing import Spool
from switchyard_core.testing import FakeReply, FakeUpstream
from switchyard_core.upstream import UpstreamResponse
from tests.replay.calls import call, chunks, files

JSON = (("content-type", "application/json"),)
EVENTS = (("content-type", "text/event-stream"),)
LIMIT = 100_000

kinds = pytest.mark.parametrize("headers", [JSON, EVENTS], ids=["whole", "stream"])


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(writing, "ANSWER_BYTES", LIMIT)
    monkeypatch.setattr(writing, "_MEMORY", LIMIT // 10)


def recording(folder, reply):
    return Replay(folder, "record").upstream(None, lambda _client: FakeUpstream(reply))


@pytest.fixture
def held(monkeypatch):
    """Return a list of how many bytes were kept of each answer, at most."""
    sizes = []

    class Counted(Spool):
        def __init__(self, limit):
            super().__init__(limit)
            self.place = len(sizes)
            sizes.append(0)

        def add(self, chunk):
            kept = super().add(chunk)
            sizes[self.place] += len(chunk) * kept
            return kept

    monkeypatch.setattr(writing, "Spool", Counted)
    return sizes


@kinds
@pytest.mark.parametrize("size", [1, 1000, LIMIT * 2])
async def test_a_long_answer_passes_as_it_is_and_is_not_recorded(
    tmp_path, headers, size, held, caplog
):
    sent = tuple(bytes([65 + number % 26]) * size for number in range(LIMIT * 5 // size // 2))

    answer = await recording(tmp_path, FakeReply(headers=headers, chunks=sent)).send(
        call("openai_chat")
    )

    assert b"".join(await chunks(answer)) == b"".join(sent)
    assert answer.headers == headers
    assert held[0] <= LIMIT
    assert files(tmp_path) == []
    assert caplog.text.count("not recorded") == 1
    assert f"longer than {LIMIT} bytes" in caplog.text


class Endless:
    """An upstream whose answer has no end."""

    def __init__(self, headers):
        self.headers = headers
        self.read = 0
        self.closed = False

    async def send(self, _outgoing):
        async def body():
            while True:
                self.read += 1
                yield b"data: x\n\n" * 100

        async def close():
            self.closed = True

        return UpstreamResponse(200, self.headers, body(), close)


@kinds
async def test_an_endless_answer_passes_while_it_comes_and_is_ended_with_the_caller(
    tmp_path, headers, held, caplog
):
    inner = Endless(headers)
    upstream = Replay(tmp_path, "record").upstream(None, lambda _client: inner)

    async with await upstream.send(call("openai_chat")) as answer:
        for number in range(5000):
            await anext(answer.chunks)
            assert inner.read <= number + 2 + LIMIT // 900

    assert inner.closed
    assert held[0] <= LIMIT
    assert files(tmp_path) == []
    assert caplog.text.count("not recorded") == 1


@kinds
async def test_an_answer_that_is_too_long_once_decoded_passes_and_is_not_recorded(
    tmp_path, headers, caplog
):
    packed = gzip.compress(b"x" * (LIMIT + 1))
    reply = FakeReply(headers=(*headers, ("content-encoding", "gzip")), chunks=(packed,))

    answer = await recording(tmp_path, reply).send(call("openai_chat"))

    assert await chunks(answer) == [packed]
    assert files(tmp_path) == []
    assert f"longer than {LIMIT} bytes" in caplog.text


@kinds
async def test_a_full_disk_costs_the_recording_and_not_the_answer(
    tmp_path, headers, monkeypatch, caplog
):
    class Full:
        def write(self, data):
            return len(data) // 2

        def seek(self, _place):
            pass

        def tell(self):
            return 0

        def close(self):
            pass

    monkeypatch.setattr(writing, "TemporaryFile", lambda **_how: Full())
    sent = (b"a" * 9000, b"b" * 9000, b"c" * 9000)

    answer = await recording(tmp_path, FakeReply(headers=headers, chunks=sent)).send(
        call("openai_chat")
    )

    assert await chunks(answer) == list(sent)
    assert files(tmp_path) == []
    assert "cannot be kept: No space left" in caplog.text


@kinds
async def test_an_answer_just_below_the_limit_is_recorded_chunk_by_chunk(tmp_path, headers):
    sent = tuple(b"data: %d\n\n" % number + b" " * 990 for number in range(90))
    await chunks(
        await recording(tmp_path, FakeReply(headers=headers, chunks=sent)).send(call("openai_chat"))
    )

    played = await chunks(await Replay(tmp_path).upstream(None, None).send(call("openai_chat")))

    assert b"".join(played) == b"".join(sent)
    assert len(played) == (90 if headers is EVENTS else 1)


async def test_an_answer_that_is_never_recorded_is_not_held_back(tmp_path, held, caplog):
    inner = Endless(JSON)
    upstream = Replay(tmp_path, "record").upstream(None, lambda _client: inner)
    send = inner.send

    async def failing(outgoing):
        answer = await send(outgoing)
        answer.status = 503
        return answer

    inner.send = failing
    with caplog.at_level(logging.WARNING, "switchyard"):
        async with await upstream.send(call("openai_chat")) as answer:
            await anext(answer.chunks)

    assert inner.read == 1
    assert held == []
    assert "status 503" in caplog.text


def test_nothing_is_left_of_a_spool_that_is_closed():
    kept = Spool(LIMIT)
    for _ in range(30):
        assert kept.add(b"x" * 1000)

    assert b"".join(kept.chunks()) == b"x" * 30_000
    kept.close()

    assert list(kept.chunks()) == []
