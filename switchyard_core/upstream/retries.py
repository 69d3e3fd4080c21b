"""Trying again: a client calls its provider once more when no answer came."""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from switchyard_core.errors import UpstreamError
from switchyard_core.upstream.base import UpstreamResponse

__all__ = ["Retries", "backoff_s"]

_FIRST_WAIT_S = 0.5
_LAST_WAIT_S = 8.0
_JITTER = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """The way one client tries again."""

    max_retries: int
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random_module.random

    async def run(self, attempt: Callable[[], Awaitable[UpstreamResponse]]) -> UpstreamResponse:
        """Call ``attempt`` until it gives an answer, or for the last time.

        Only a connection that failed, or was closed before the answer, is tried again.
        """
        for tries in range(self.max_retries):
            try:
                return await attempt()
            except UpstreamError as error:
                if error.kind not in ("connect", "closed"):
                    raise
            await self.sleep(backoff_s(tries, self.random))
        return await attempt()


def backoff_s(attempt: int, random: Callable[[], float]) -> float:
    """Return the wait after failed try ``attempt``, 0.5 s doubled up to 8 s, less random jitter."""
    wait = min(_FIRST_WAIT_S * 2.0 ** min(attempt, 16), _LAST_WAIT_S)
    return wait * (1.0 - _JITTER * random())
