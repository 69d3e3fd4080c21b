"""Callers that ask, read to the end or leave at any moment, and check whose answer they got.

A caller speaks HTTP by hand, so that it can leave between any two bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import socket
import struct
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.server.servers import PATHS
from tests.stress.marks import REPEATS, Mark, count_in, numbers_in
from tests.stress.provider import FAULTS

#: A caller that waits longer than this for the end of an answer will never get it: three times what
#: the server waits for a provider that has fallen silent.
PATIENCE_S = 30.0
#: A swarm stops after so many broken promises: more would say nothing new.
MOST_PROBLEMS = 20

_GOOD = frozenset({200})
#: Statuses that a caller may see for a fault of the provider, where it is not 200.
STATUSES: dict[str, frozenset[int]] = {
    "body_on_204": frozenset({204, 502}),
    "cut": frozenset({200, 502}),
    "cut_head": frozenset({502}),
    "silent": frozenset({502}),
    "garbage": frozenset({502}),
    "refused": frozenset({400}),
    "once_429": frozenset({200, 429}),
    "once_500": frozenset({200, 500}),
    "once_529": frozenset({200, 529}),
}
assert set(STATUSES) <= set(FAULTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one caller does.

    Args:
        mark: Its number and the provider's fault.
        wire_format: Of the request.
        stream: Whether it asks for a stream.
        edited: Whether its history has an edit, so that the executor answers.
        leave: When it leaves: ``sending`` (with half the request sent), ``time`` (after
            ``moment`` seconds), ``answer`` (with that part of the answer read, 1.0 being the last
            word of it), or ``None``.
        moment: See ``leave``.
        reset: Whether it leaves with a reset, or closes as usual.
    """

    mark: Mark
    wire_format: str
    stream: bool
    edited: bool
    leave: str | None = None
    moment: float = 0.0
    reset: bool = False

    @property
    def request(self) -> bytes:
        """The whole request."""
        body = json.dumps(_body(self)).encode()
        head = (
            f"POST {PATHS[self.wire_format]} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    @property
    def marks(self) -> int:
        """How many marks a whole answer has."""
        # The events at the end of a Responses stream repeat the text four times.
        repeated = self.stream and self.wire_format == "openai_responses"
        return REPEATS * (5 if repeated else 1)


def plans(seed: int, *, faults: float, aborts: float) -> Iterator[Plan]:
    """Yield plans without end, the same ones for the same seed.

    Args:
        seed: Of the chance by which they are made.
        faults: Share of requests at which the provider commits a fault.
        aborts: Share of callers that leave.
    """
    chance = random.Random(seed)
    # A late duplicate that meets the next request cannot be told from its answer by anybody.
    bad = sorted(set(FAULTS) - {"none", "late_duplicate"})
    number = seed << 32
    while True:
        number += 1
        fault = chance.choice(bad) if chance.random() < faults else "none"
        leave = None
        if chance.random() < aborts:
            leave = chance.choices(("sending", "time", "answer"), (1, 9, 10))[0]
        yield Plan(
            mark=Mark(number, fault),
            wire_format=chance.choice(tuple(PATHS)),
            stream=chance.random() < 0.6,
            edited=chance.random() < 0.5,
            leave=leave,
            # An answer takes 10 to 40 ms, so that all its moments are met.
            moment=chance.random() if leave == "answer" else chance.uniform(0.0, 0.04),
            reset=chance.random() < 0.5,
        )


@dataclass(slots=True)
class Tally:
    """What happened to all callers, and what should not have."""

    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    aborts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def hopeless(self) -> bool:
        """Whether so much went wrong that going on is no use."""
        return len(self.problems) >= MOST_PROBLEMS

    def report(self, plan: Plan, problem: str) -> None:
        """Note a broken promise."""
        kind = f"{plan.wire_format}{' stream' if plan.stream else ''}, fault {plan.mark.fault}"
        self.problems.append(f"{plan.mark.number:x} ({kind}): {problem}")


class _Left(Exception):  # noqa: N818  # no error: the caller means to leave
    """The caller leaves now."""


@dataclass(slots=True)
class _Answer:
    """What came, as far as it came."""

    head: bytes = b""
    body: bytearray = field(default_factory=bytearray)

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1])

    def header(self, name: str) -> str:
        found = re.search(rf"\r\n{name}: *([^\r]*)", self.head.decode("latin-1"), re.IGNORECASE)
        return found[1].strip() if found else ""

    @property
    def plain(self) -> bytes:
        """The body without its compression."""
        if not self.body.startswith(b"\x1f\x8b"):
            return bytes(self.body)
        return zlib.decompressobj(31).decompress(self.body)

    @property
    def numbers(self) -> set[int]:
        """The numbers of all marks in it, of which there should be one."""
        return numbers_in(self.head) | numbers_in(self.plain)


class Caller:
    """One caller with one connection, which it keeps while it can."""

    def __init__(self, url: str, tally: Tally) -> None:
        place = urlsplit(url)
        self._address = (str(place.hostname), int(place.port or 80))
        self._tally = tally
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used = 0.0

    async def ask(self, plan: Plan) -> None:
        """Carry out a plan and note what came of it."""
        tally = self._tally
        tally.requests += 1
        tally.faults[plan.mark.fault] += 1
        answer = _Answer()
        begun = time.monotonic()
        limit = plan.moment if plan.leave == "time" else PATIENCE_S
        try:
            async with asyncio.timeout(limit):
                await self._exchange(plan, answer)
        except _Left:
            self._leave(plan)
        except TimeoutError:
            if plan.leave == "time":
                self._leave(plan)
            else:
                await self.close()
                tally.report(plan, f"no end of an answer within {PATIENCE_S:g} s")
        except (OSError, asyncio.IncompleteReadError) as error:
            await self.close()
            if plan.mark.fault != "cut" or not answer.head:
                tally.report(plan, f"the server broke the connection off: {error!r}")
        else:
            tally.statuses[answer.status] += 1
            if plan.mark.fault == "none":
                tally.seconds.append(time.monotonic() - begun)
            self._judge(plan, answer.status, answer.plain)
        if foreign := answer.numbers - {plan.mark.number}:
            tally.report(plan, f"got the answer of {', '.join(f'{n:x}' for n in foreign)}")

    async def close(self) -> None:
        """Close the connection, if there is one."""
        if self._streams is not None:
            _, writer = self._streams
            self._streams = None
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _judge(self, plan: Plan, status: int, body: bytes) -> None:
        fault = plan.mark.fault
        wanted = STATUSES.get(fault, _GOOD)
        if status not in wanted:
            text = f"status {status}, expected {' or '.join(map(str, sorted(wanted)))}"
            self._tally.report(plan, f"{text}: {body[:300].decode(errors='replace')}")
        elif status == 200 and fault == "cut" and b"upstream_cut" not in body:
            self._tally.report(plan, "an answer that was cut looks complete")
        elif status == 200 and fault != "cut" and count_in(body) != plan.marks:
            self._tally.report(plan, f"the answer is not whole: {len(body)} bytes")

    def _leave(self, plan: Plan) -> None:
        self._tally.aborts[str(plan.leave)] += 1
        if self._streams is None:
            return
        _, writer = self._streams
        self._streams = None
        if plan.reset:
            linger = struct.pack("ii", 1, 0)
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, linger
                )
            writer.transport.abort()
        else:
            writer.close()

    async def _exchange(self, plan: Plan, answer: _Answer) -> None:
        # The server closes a connection at rest after 5 s, maybe just when we use it.
        if self._streams is not None and time.monotonic() - self._used > 2:
            await self.close()
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        request = plan.request
        if plan.leave == "sending":
            writer.write(request[: len(request) // 2])
            raise _Left
        writer.write(request)
        answer.head = await reader.readuntil(b"\r\n\r\n")
        enough = max(plan.moment * plan.marks, 1)
        async for piece in _body_pieces(reader, answer):
            answer.body += piece
            if plan.leave == "answer" and count_in(answer.body) >= enough:
                raise _Left
        self._used = time.monotonic()
        if answer.header("connection") == "close":
            await self.close()


async def swarm(
    url: str, todo: Iterable[Plan], *, callers: int, tally: Tally | None = None
) -> Tally:
    """Let callers carry out plans side by side until there are none, or too much went wrong."""
    tally = Tally() if tally is None else tally
    shared = iter(todo)

    async def work() -> None:
        caller = Caller(url, tally)
        for plan in shared:
            if tally.hopeless:
                break
            await caller.ask(plan)
        await caller.close()

    await asyncio.gather(*[work() for _ in range(callers)])
    return tally


def _body(plan: Plan) -> dict[str, Any]:
    question = {"role": "user", "content": plan.mark.question}
    arguments = {"file_path": "a.py", "old_string": "a", "new_string": "b"}
    text = json.dumps(arguments)
    history: list[dict[str, Any]] = [question]
    if plan.wire_format == "openai_chat":
        call = {"id": "c1", "type": "function", "function": {"name": "Edit", "arguments": text}}
        edit = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ]
    elif plan.wire_format == "openai_responses":
        edit = [
            {"type": "function_call", "call_id": "c1", "name": "Edit", "arguments": text},
            {"type": "function_call_output", "call_id": "c1", "output": "done"},
        ]
    else:
        use = {"type": "tool_use", "id": "c1", "name": "Edit", "input": arguments}
        result = {"type": "tool_result", "tool_use_id": "c1", "content": "done"}
        edit = [
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
    if plan.edited:
        history += edit
    key = "input" if plan.wire_format == "openai_responses" else "messages"
    body: dict[str, Any] = {"model": plan.wire_format, "max_tokens": 100, key: history}
    if plan.stream:
        body["stream"] = True
    return body


async def _body_pieces(reader: asyncio.StreamReader, answer: _Answer) -> AsyncIterator[bytes]:
    if answer.status in (204, 304):
        return
    if "chunked" in answer.header("transfer-encoding"):
        while size := int(await reader.readuntil(b"\r\n"), 16):
            yield (await reader.readexactly(size + 2))[:-2]
        await reader.readuntil(b"\r\n")
        return
    left = int(answer.header("content-length"))
    while left:
        piece = await reader.read(min(left, 1 << 16))
        if not piece:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(piece)
        yield piece
