"""When to try again and how long to wait."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from switchyard_core.errors import UpstreamError
from switchyard_core.upstream import UpstreamResponse
from switchyard_core.upstream.retries import Retries, backoff_s, is_retryable, retry_after_s

NOON = 1_700_000_000.0


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


def answer(status: int, **headers: str) -> UpstreamResponse:
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return UpstreamResponse(status, pairs, _nothing())


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"retry_after": "2"}, 2.0, id="seconds"),
        pytest.param({"retry_after": "0.5"}, 0.5, id="fraction"),
        pytest.param({"retry_after": "0"}, 0.0, id="zero"),
        pytest.param({"retry_after": "-1"}, None, id="negative"),
        pytest.param({"retry_after": "nan"}, None, id="nan"),
        pytest.param({"retry_after": "inf"}, None, id="infinite"),
        pytest.param({"retry_after": "soon"}, None, id="word"),
        pytest.param({"retry_after_ms": "250"}, 0.25, id="milliseconds"),
        pytest.param({"retry_after_ms": "250", "retry_after": "9"}, 0.25, id="milliseconds_first"),
        pytest.param({"retry_after_ms": "x", "retry_after": "9"}, 9.0, id="bad_milliseconds"),
        pytest.param({"retry_after": "Tue, 14 Nov 2023 22:13:30 GMT"}, 10.0, id="date"),
        pytest.param({"retry_after": "Tue, 14 Nov 2023 22:13:00 GMT"}, 0.0, id="past_date"),
        pytest.param({"retry_after": "Tue, 14 Nov 99999 22:13:00 GMT"}, None, id="bad_date"),
    ],
)
def test_retry_after_reads_seconds_and_dates(
    headers: dict[str, str], expected: float | None
) -> None:
    assert retry_after_s(answer(429, **headers), NOON) == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [(200, False), (400, False), (408, True), (409, True), (410, False), (429, True), (599, True)],
)
def test_is_retryable_follows_the_status(status: int, *, expected: bool) -> None:
    assert is_retryable(answer(status)) is expected


def test_provider_may_forbid_retries() -> None:
    assert not is_retryable(answer(503, x_should_retry="false"))
    assert is_retryable(answer(503, x_should_retry="true"))


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
