"""Sees calls that a router or a rewrite must not make: to a clock, or to chance of its own."""

from __future__ import annotations

import gc
import os
import random
import sys
from collections.abc import Callable, Collection, Coroutine, Generator
from datetime import date
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["Watch", "reads_clock", "reads_randomness", "watched"]

_CLOCKS = frozenset(
    f"{name}{unit}"
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time")
    for unit in ("", "_ns")
)
_DATES = frozenset({"now", "utcnow", "today"})
#: What these do for a router is not the router's own look at the clock.
_INFRASTRUCTURE = frozenset({"asyncio", "logging", "threading"})


def reads_clock(function: Any) -> str:
    """Return the name of a built-in that tells the time, ``""`` for any other function."""
    name = getattr(function, "__name__", "")
    if getattr(function, "__module__", None) == "time" and name in _CLOCKS:
        return f"time.{name}"
    owner = getattr(function, "__self__", None)
    if name in _DATES and isinstance(owner, type) and issubclass(owner, date):
        return f"{owner.__name__}.{name}"
    return ""


def reads_randomness(function: Any) -> str:
    """Return the name of a built-in that gives chance of the process, ``""`` for any other."""
    if function is os.urandom:
        return "os.urandom"
    # The functions of the module are methods of one hidden generator.
    if getattr(function, "__self__", None) is random.random.__self__:  # type: ignore[attr-defined]
        return f"random.{function.__name__}"
    if getattr(function, "__module__", None) == "_uuid":
        return "uuid.uuid1"
    return ""


class Watch:
    """Notes calls of built-ins while it is entered, under whatever name they were imported.

    Patching names would miss ``from time import time``, and ``datetime`` cannot be patched.

    Args:
        name: Returns what to call a built-in in a message, ``""`` if it may be called.
        spared: Packages whose own calls do not matter, beside asyncio, logging and threading.
    """

    def __init__(self, name: Callable[[Any], str], spared: Collection[str] = ()) -> None:
        self._name = name
        self._spared = _INFRASTRUCTURE | set(spared)
        self._outer: Any = None
        self._collects = False
        #: Every forbidden call with its place.
        self.seen: list[str] = []

    def __enter__(self) -> Self:
        """Begin to watch this thread."""
        # Whoever is told of collections, as hypothesis is, may look at the clock for it.
        self._collects = gc.isenabled()
        gc.disable()
        self._outer = sys.getprofile()
        sys.setprofile(self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Watch no longer."""
        sys.setprofile(self._outer)
        if self._collects:
            gc.enable()

    def _note(self, frame: FrameType, event: str, function: Any) -> None:
        if event != "c_call":
            return
        name = self._name(function)
        module = str(frame.f_globals.get("__name__", ""))
        if name and module.partition(".")[0] not in self._spared:
            self.seen.append(f"{name} at {frame.f_code.co_filename}:{frame.f_lineno}")


class _Stepped:
    """Awaits a coroutine and watches only while its own code runs, not the event loop's."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], watch: Watch) -> None:
        self._coroutine = coroutine
        self._watch = watch

    def __await__(self) -> Generator[Any, Any, Any]:
        sent: Any = None
        while True:
            try:
                with self._watch:
                    waits_for = self._coroutine.send(sent)
            except StopIteration as end:
                return end.value
            sent = yield waits_for


async def watched(coroutine: Coroutine[Any, Any, Any], watch: Watch) -> Any:
    """Await a coroutine under a watch and return its result."""
    return await _Stepped(coroutine, watch)
