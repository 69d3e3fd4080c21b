"""The answer object: peeking, reading, closing."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from switchyard_core.upstream import UpstreamResponse

pytestmark = pytest.mark.anyio


async def _source(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


class Closes:
    """Counts how often the call is ended."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> None:
        self.count += 1


def answer(*chunks: bytes) -> tuple[UpstreamResponse, Closes]:
    closes = Closes()
    headers = (("x-a", "1"), ("x-a", "2"))
    return UpstreamResponse(200, headers, _source(*chunks), closes), closes


async def test_peek_keeps_what_it_read_for_the_reader() -> None:
    response, closes = answer(b"ab", b"cd", b"ef")

    assert await response.peek(3) == b"abc"
    assert await response.peek(1) == b"a"
    assert [chunk async for chunk in response.chunks] == [b"ab", b"cd", b"ef"]
    assert closes.count == 0


async def test_peek_of_a_short_body_ends_at_its_end() -> None:
    response, _ = answer(b"ab")

    assert await response.peek(9) == b"ab"
    assert await response.read() == b"ab"
    assert await response.peek(9) == b""


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(None, b"abcdef"), (3, b"abc"), (4, b"abcd"), (99, b"abcdef")],
    ids=["whole", "inside_chunk", "at_chunk_end", "beyond"],
)
async def test_read_gives_up_to_the_limit_and_closes(limit: int | None, expected: bytes) -> None:
    response, closes = answer(b"ab", b"cd", b"ef")

    assert await response.read(limit) == expected
    assert closes.count == 1


async def test_closed_answer_has_no_further_chunk_and_closes_once() -> None:
    response, closes = answer(b"ab", b"cd")
    await response.peek(1)

    async with response as same:
        assert same is response
    await response.aclose()

    assert [chunk async for chunk in response.chunks] == []
    assert closes.count == 1


async def test_answer_without_a_close_function_can_be_closed() -> None:
    response = UpstreamResponse(204, (), _source())

    await response.aclose()

    assert await response.read() == b""


async def test_header_is_found_in_any_case_and_the_first_wins() -> None:
    response, _ = answer()

    assert response.header("X-A") == "1"
    assert response.header("x-b") is None
