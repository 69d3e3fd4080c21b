"""What is tried again, and when: the same for every client, without HTTP itself."""

from __future__ import annotations

import asyncio
import random as random_module
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from switchyard_core.errors import UpstreamError
from switchyard_core.upstream.base import UpstreamResponse

__all__ = ["LONGEST_WAIT_S", "Retries", "backoff_s", "is_retryable", "retry_after_s"]

#: The longest ``retry-after`` that is waited for here; a longer one is the caller's to keep.
LONGEST_WAIT_S = 30.0

_FIRST_WAIT_S = 0.5
_LAST_WAIT_S = 8.0
_JITTER = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """The way one client tries again."""

    max_retries: int
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random_module.random
    now: Callable[[], float] = time.time

    async def run(self, attempt: Callable[[], Awaitable[UpstreamResponse]]) -> UpstreamResponse:
        """Call ``attempt`` until it gives an answer that is good, or for the last time.

        A connection that failed or was closed and an answer of :func:`is_retryable` are tried
        again; a timeout is not. An answer that asks for a longer wait than
        :data:`LONGEST_WAIT_S` is returned at once, so that the caller can keep it.
        """
        tries = 0
        while True:
            wait: float | None = None
            try:
                response = await attempt()
            except UpstreamError as error:
                if tries >= self.max_retries or error.kind not in ("connect", "closed"):
                    raise
            else:
                if tries >= self.max_retries or not is_retryable(response):
                    return response
                wait = retry_after_s(response, self.now())
                if wait is not None and wait > LONGEST_WAIT_S:
                    return response
                await response.aclose()
            await self.sleep(backoff_s(tries, self.random) if wait is None else wait)
            tries += 1


def is_retryable(response: UpstreamResponse) -> bool:
    """Return whether to try again: 408, 409, 429 and 5xx, unless ``x-should-retry`` is false."""
    if response.header("x-should-retry") == "false":
        return False
    return response.status in (408, 409, 429) or response.status >= 500


def retry_after_s(response: UpstreamResponse, now: float) -> float | None:
    """Return the seconds to wait by ``retry-after-ms`` or ``retry-after``, ``None`` for neither."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = response.header(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        # A negative, infinite or NaN wait means nothing.
        return seconds if 0.0 <= seconds < float("inf") else None
    date = response.header("retry-after")
    if date is None:
        return None
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def backoff_s(attempt: int, random: Callable[[], float]) -> float:
    """Return the wait after failed try ``attempt``, 0.5 s doubled up to 8 s, less random jitter."""
    wait = min(_FIRST_WAIT_S * 2.0 ** min(attempt, 16), _LAST_WAIT_S)
    return wait * (1.0 - _JITTER * random())
