from __future__ import annotations

import asyncio

import pytest

from switchyard_core.errors import BodyTooLargeError
from switchyard_core.server.exchange import ClientGoneError, Exchange, header_value


def exchange(*messages, headers=(), path="/v1/x", **scope):
    """Return an exchange that receives these messages and then a disconnect, and what it sent."""
    waiting, sent = list(messages), []

    async def receive():
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    base = {"method": "POST", "path": path, "query_string": b"a=1", "headers": list(headers)}
    return Exchange({**base, **scope}, receive, send), sent


def part(body, more=False):
    return {"type": "http.request", "body": body, "more_body": more}


async def test_read_joins_the_parts():
    made, _ = exchange(part(b"a", more=True), part(b"b", more=True), part(b"c"))
    assert await made.read(3, 1.0) == b"abc"
    assert made.bytes_in == 3
    assert not made.body_waits


async def test_read_refuses_an_announced_length_before_it_receives_anything():
    made, _ = exchange(headers=[(b"content-length", b"4")])
    with pytest.raises(BodyTooLargeError) as caught:
        await made.read(3, 1.0)
    assert caught.value.status == 413
    assert made.body_waits


async def test_read_ends_when_the_client_leaves():
    made, _ = exchange(part(b"a", more=True))
    with pytest.raises(ClientGoneError):
        await made.read(3, 1.0)


async def test_watched_turns_a_disconnect_into_an_error_and_leaves_the_task_usable():
    made, _ = exchange(part(b""))
    with pytest.raises(ClientGoneError):
        async with made.watched():
            await asyncio.sleep(5)
    assert asyncio.current_task().cancelling() == 0
    await asyncio.sleep(0)


async def test_watched_passes_a_cancellation_from_outside_on():
    started = asyncio.Event()

    async def receive():
        await asyncio.sleep(5)

    made, _ = exchange()
    made._receive = receive

    async def work():
        async with made.watched():
            started.set()
            await asyncio.sleep(5)

    task = asyncio.create_task(work())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_watched_ignores_the_disconnect_that_follows_the_last_announced_byte():
    made, _ = exchange(part(b""))
    async with made.watched():
        await made.start(200, [(b"Content-Length", b"2")])
        await made.write(b"ok")
        await asyncio.sleep(0.01)


async def test_watched_ignores_the_disconnect_that_follows_a_whole_answer():
    made, sent = exchange()
    async with made.watched():
        await made.respond(200, b"x")
        await asyncio.sleep(0.01)
    assert sent[-1]["more_body"] is False


async def test_answer_to_an_unread_body_is_sent_before_the_rest_is_drained():
    made, sent = exchange(part(b"x", more=True), part(b"y"), headers=[(b"content-length", b"2")])
    await made.respond(413, b"no", drain=True)
    assert (b"connection", b"close") in sent[0]["headers"]
    assert [m.get("body") for m in sent[1:]] == [b"no", b""]
    assert (await made._receive())["type"] == "http.disconnect"


@pytest.mark.parametrize(
    ("scope", "path", "raw"),
    [
        ({"path": "/v1/a b", "raw_path": b"/v1/a%20b"}, "/v1/a b", "/v1/a%20b"),
        ({"path": "/v1/a b"}, "/v1/a b", "/v1/a%20b"),
        ({"path": "/m/v1/a", "raw_path": b"/m/v1/a", "root_path": "/m"}, "/v1/a", "/v1/a"),
    ],
)
def test_paths_are_those_below_the_mount(scope, path, raw):
    made, _ = exchange(**scope)
    assert (made.path, made.raw_path) == (path, raw)


def test_without_headers_forgets_them():
    made, _ = exchange(headers=[(b"A", b"1"), (b"b", b"2")])
    made.without_headers(["a"])
    assert made.headers.items_ == (("b", "2"),)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plan_execute", b"plan_execute"),
        ("100% a b", b"100% a b"),
        ("a\r\nset-cookie: x", b"a%0D%0Aset-cookie: x"),
        ("größe", b"gr%C3%B6%C3%9Fe"),
    ],
)
def test_header_value_never_holds_what_a_header_may_not(text, value):
    assert header_value(text) == value
