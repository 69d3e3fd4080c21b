"""Sees what a router or a rewrite must not do: read a clock, draw at random, or block."""

from __future__ import annotations

import gc
import os
import random
import socket
import sys
import sysconfig
import time
from collections.abc import Awaitable, Callable, Collection, Generator
from datetime import date
from types import FrameType
from typing import Any, Self

__all__ = ["Watch", "blocks_loop", "reads_clock", "reads_randomness", "watched"]

_CLOCKS = frozenset(
    f"{name}{unit}"
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time")
    for unit in ("", "_ns")
)
_DATES = frozenset({"now", "utcnow", "today"})
#: Functions that wait, by module; the methods of sockets are checked separately.
_WAITS = {
    "time": {"sleep"},
    "select": {"select"},
    "_socket": {"getaddrinfo", "gethostbyaddr", "gethostbyname", "gethostbyname_ex"},
    "posix": {"system", "wait", "waitid", "waitpid"},
    "builtins": {"input"},
    "_posixsubprocess": {"fork_exec"},
}
_ON_SOCKETS = frozenset(
    {"accept", "connect", "recv", "recv_into", "recvfrom", "send", "sendall", "sendto"}
)
#: What these do for a router is not its own look at the clock.
_INFRASTRUCTURE = frozenset({"asyncio", "logging", "threading"})
_STDLIB = sysconfig.get_path("stdlib")


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


def blocks_loop(function: Any) -> str:
    """Return the name of a built-in that blocks the event loop, ``""`` for any other."""
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if isinstance(owner, socket.socket):
        waits = name in _ON_SOCKETS and owner.gettimeout() != 0
        return f"socket.{name}" if waits else ""
    module = getattr(function, "__module__", None) or ""
    if name in _WAITS.get(module, ()):
        return "subprocess" if name == "fork_exec" else f"{module.lstrip('_')}.{name}"
    return ""


class Watch:
    """Notes calls of built-ins while it is entered, under whatever name they were imported.

    Patching names would miss ``from time import time``, and ``datetime`` cannot be patched.
    ``name`` says what to call a forbidden built-in; calls by ``spared`` packages do not matter.
    """

    def __init__(self, name: Callable[[Any], str], spared: Collection[str] = ()) -> None:
        self.seen: list[str] = []
        self.longest_s = 0.0
        self._name = name
        self._spared = _INFRASTRUCTURE | set(spared)
        self._outer: Any = None
        self._collects = False
        self._begun = 0.0

    def __enter__(self) -> Self:
        # Listeners to collections, such as hypothesis, may look at the clock.
        self._collects = gc.isenabled()
        gc.disable()
        self._begun = time.perf_counter()
        self._outer = sys.getprofile()
        sys.setprofile(self._note)
        return self

    def __exit__(self, *exc_info: object) -> None:
        sys.setprofile(self._outer)
        self.longest_s = max(self.longest_s, time.perf_counter() - self._begun)
        if self._collects:
            gc.enable()

    def _note(self, frame: FrameType, event: str, function: Any) -> None:
        if event != "c_call":
            return
        name = self._name(function)
        module = str(frame.f_globals.get("__name__", ""))
        if name and module.partition(".")[0] not in self._spared:
            self.seen.append(f"{name} at {_place(frame)}")


def _place(frame: FrameType) -> str:
    """Return file and line of a call, of its caller's where the standard library makes it."""
    own: FrameType | None = frame
    while own is not None and _is_library(own.f_code.co_filename):
        own = own.f_back
    own = own or frame
    return f"{own.f_code.co_filename}:{own.f_lineno}"


def _is_library(file: str) -> bool:
    inside = file.startswith((_STDLIB, "<frozen "))
    return inside and "site-packages" not in file


class _Stepped:
    """Awaits something and watches only while its own code runs, not the event loop's."""

    def __init__(self, awaitable: Awaitable[Any], watch: Watch) -> None:
        self._steps = awaitable.__await__()
        self._watch = watch

    def __await__(self) -> Generator[Any, Any, Any]:
        while True:
            try:
                with self._watch:
                    waits_for = next(self._steps)
            except StopIteration as end:
                return end.value
            yield waits_for


async def watched(awaitable: Awaitable[Any], watch: Watch | None) -> Any:
    """Await something under a watch, if there is one, and return its result."""
    return await (awaitable if watch is None else _Stepped(awaitable, watch))
