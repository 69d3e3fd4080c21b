"""When to try again and how long to wait."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from switchyard_core.errors import UpstreamError
from switchyard_core.upstream import UpstreamResponse
from switchyard_core.upstream.retries import Retries, backoff_s


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


def answer(status: int, **headers: str) -> UpstreamResponse:
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return UpstreamResponse(status, pairs, _nothing())


@pytest.mark.anyio
@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
async def test_failing_answer_is_returned_at_once_since_agents_try_again(status: int) -> None:
    told = answer(status, retry_after="1")

    async def attempt() -> UpstreamResponse:
        return told

    async def sleep(seconds: float) -> None:
        raise AssertionError(seconds)

    assert await Retries(max_retries=2, sleep=sleep).run(attempt) is told


def test_backoff_doubles_to_a_limit_and_jitter_takes_up_to_a_quarter() -> None:
    assert [backoff_s(n, lambda: 0.0) for n in (0, 1, 2, 3, 4, 5, 9999)] == [
        0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0,
    ]  # fmt: skip
    assert backoff_s(0, lambda: 1.0) == 0.375


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "tries"),
    [("connect", 3), ("closed", 3), ("timeout", 1), ("protocol", 1), ("cut", 1)],
)
async def test_run_tries_again_only_what_may_help(kind: str, tries: int) -> None:
    made = 0

    async def attempt() -> UpstreamResponse:
        nonlocal made
        made += 1
        raise UpstreamError("x", kind=kind)

    async def sleep(seconds: float) -> None:
        assert seconds > 0

    with pytest.raises(UpstreamError):
        await Retries(max_retries=2, sleep=sleep).run(attempt)

    assert made == tries
