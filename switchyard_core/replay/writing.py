"""Recording the answer to one call, held back or while it is passed on as it comes."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import struct
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from io import RawIOBase
from pathlib import Path
from tempfile import TemporaryFile
from typing import cast

from switchyard_core.errors import RecordingError
from switchyard_core.replay.credentials import credential_in_body, credential_in_stream, listed
from switchyard_core.replay.folder import Folder
from switchyard_core.replay.recording import Answer, Recording
from switchyard_core.upstream.base import UpstreamResponse
from switchyard_core.upstream.encoding import EncodingError, TooLongError, content_encoding, decoded
from switchyard_core.upstream.played import answer_problems
from switchyard_core.wire import endpoint_of, format_of
from switchyard_core.wire.passing import StreamWatch

__all__ = ["ANSWER_BYTES", "Ledger", "Spool", "Tee", "Writer", "is_stream", "whole"]


_LOG = logging.getLogger("switchyard")
#: Maximum size in bytes of an answer that is recorded, with its content encoding and without.
ANSWER_BYTES = 16 * 1024 * 1024
_EVENT_STREAM = "text/event-stream"
#: Bytes that stay in memory; what comes after them goes to a temporary file without a name.
_MEMORY = 1024 * 1024
#: Each chunk counts with its length, which precedes it: chunks may be small and many.
_LENGTH = struct.Struct(">I")


@dataclass(slots=True)
class Ledger:
    """What happened to recordings in one run."""

    refresh: bool  # Whether the first answer to a call replaces those from before the run
    calls: Counter[str] = field(default_factory=Counter)  # How often each call came, by key
    written: set[str] = field(default_factory=set)  # Keys of the calls that were recorded
    #: Files that calls were answered from or recorded to
    used: set[Path] = field(default_factory=set)


class Spool:
    """Chunks in the order in which they came, as far as there is room for them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._head: list[bytes] = []
        self._file: RawIOBase | None = None
        self._end = 0
        #: Why a chunk could not be kept, ``""`` while all are.
        self.lost = ""

    def add(self, chunk: bytes) -> bool:
        """Keep one more chunk; return whether there was room. After one without, none is kept."""
        self._size += _LENGTH.size + len(chunk)
        if not self.lost and self._size > self._limit:
            self.lost = f"the answer is longer than {self._limit} bytes"
        if self.lost:
            return False
        if self._size <= _MEMORY:
            self._head.append(chunk)
            return True
        try:
            self._write(chunk)
        except OSError as error:
            self.lost = f"the answer cannot be kept: {error.strerror}"
        return not self.lost

    def chunks(self) -> Iterator[bytes]:
        """Yield what was kept, from the beginning; nothing is added meanwhile."""
        yield from self._head
        if self._file is None:
            return
        self._file.seek(0)
        while self._file.tell() < self._end:
            (size,) = _LENGTH.unpack(self._file.read(_LENGTH.size) or b"")
            yield self._file.read(size) or b""

    def close(self) -> None:
        """Free the memory and the file."""
        self._head.clear()
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def _write(self, chunk: bytes) -> None:
        if self._file is None:
            # Without a buffer, so that what could not be written is known at once.
            self._file = cast("RawIOBase", TemporaryFile(buffering=0))  # noqa: SIM115 - see `close`
        data = _LENGTH.pack(len(chunk)) + chunk
        if self._file.write(data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._end += len(data)


@dataclass(frozen=True, slots=True)
class Writer:
    """Records the answer to one call."""

    folder: Folder
    ledger: Ledger
    #: The call without an answer, as it is recorded when it has no file yet.
    call: Recording
    key: str

    def check_request(self) -> None:
        """Refuse a request that seems to hold a credential; the message names the field."""
        found = credential_in_body(self.call.body)
        if found is not None:
            raise self._refused("request", found)

    def gave_up(self, why: str) -> None:
        """Note that this call is not recorded."""
        # Who tries again after a failure asks for the same answer.
        self.ledger.calls[self.key] -= 1
        _LOG.warning("not recorded: %s, %s", self.call.file.name, why)

    def accepts(self, status: int) -> bool:
        """Return whether an answer is recorded; temporary errors are not."""
        if status >= 500 or status in listed("not_kept"):
            self.gave_up(f"the provider answered with status {status}")
            return False
        return True

    def keep(
        self, status: int, headers: Sequence[tuple[str, str]], chunks: Sequence[bytes]
    ) -> None:
        """Record an answer that was read to its end, unless it is too long."""
        try:
            self._write(status, headers, chunks)
        except TooLongError as error:
            self.gave_up(f"the answer: {error}")
        except RecordingError:
            self.gave_up("see the error")
            raise

    def _write(
        self, status: int, headers: Sequence[tuple[str, str]], chunks: Sequence[bytes]
    ) -> None:
        by_name = {name.lower(): value for name, value in reversed(headers)}
        stream = by_name.get("content-type", "").lower().startswith(_EVENT_STREAM)
        plain = tuple(chunk for chunk in self._decoded(headers, chunks) if chunk)
        body = b"".join(plain)
        found = credential_in_stream(body) if stream else credential_in_body(body)
        if found is not None:
            raise self._refused("answer", found)
        answer = Answer(
            status=status,
            headers=tuple((name, by_name[name]) for name in listed("headers") if name in by_name),
            chunks=plain if stream else (body,) if body else (),
            stream=stream,
        )
        for _, problem in answer_problems(status, dict(answer.headers), len(body)):
            self.gave_up(f"it cannot be replayed: {problem}")
            return
        before = self.folder.get(self.key)
        replaced = self.ledger.refresh and self.key not in self.ledger.written
        recording = self.call if before is None or replaced else before
        self.folder.write(recording.with_answer(answer))
        self.ledger.used.add(recording.file)
        self.ledger.written.add(self.key)

    def _decoded(
        self, headers: Sequence[tuple[str, str]], chunks: Sequence[bytes]
    ) -> tuple[bytes, ...]:
        try:
            return decoded(content_encoding(headers), chunks, ANSWER_BYTES)
        except TooLongError:
            raise
        except EncodingError as error:
            msg = f"the provider's answer cannot be recorded: {error}"
            raise RecordingError(msg, path=str(self.call.file)) from error

    def _refused(self, part: str, where: str) -> RecordingError:
        return RecordingError(
            f"the {part} seems to contain a credential in `{where}`, and recordings are shared: "
            "nothing was recorded. Remove it, or do not record this call",
            path=str(self.call.file),
        )


def is_stream(answer: UpstreamResponse) -> bool:
    """Return whether an answer is a stream of events that must not be held back."""
    kind = (answer.header("content-type") or "").lower()
    return answer.status < 400 and kind.startswith(_EVENT_STREAM)


async def whole(answer: UpstreamResponse, writer: Writer) -> UpstreamResponse:
    """Read an answer to its end, record and return it; hold it back only while there is room."""
    spool = Spool(ANSWER_BYTES)

    async def close() -> None:
        spool.close()
        await answer.aclose()

    try:
        async for chunk in answer.chunks:
            if not spool.add(chunk):
                writer.gave_up(spool.lost)
                passed = _passed(spool, chunk, answer)
                return UpstreamResponse(answer.status, answer.headers, passed, close)
    except BaseException as error:
        await close()
        writer.gave_up(type(error).__name__)
        raise
    try:
        await answer.aclose()
        writer.keep(answer.status, answer.headers, tuple(spool.chunks()))
    except BaseException:
        spool.close()
        raise
    return UpstreamResponse(answer.status, answer.headers, _passed(spool), close)


async def _passed(
    spool: Spool, chunk: bytes = b"", answer: UpstreamResponse | None = None
) -> AsyncIterator[bytes]:
    """Yield what was held back, the chunk behind it, and the rest of the answer as it comes."""
    for kept in spool.chunks():
        yield kept
    spool.close()
    if answer is not None:
        yield chunk
        async for more in answer.chunks:
            yield more


class Tee:
    """Passes a stream on chunk by chunk, and records it when it was read to its end.

    A client may close a stream after its end mark, without waiting for the connection's end:
    that stream is whole too. One that is too long to be recorded passes like any other.
    """

    def __init__(self, answer: UpstreamResponse, writer: Writer) -> None:
        self._answer = answer
        self._writer = writer
        self._spool = Spool(ANSWER_BYTES)
        self._done = False
        found = endpoint_of(writer.call.path)
        plain = answer.header("content-encoding") in (None, "", "identity")
        # Of a stream that cannot be read on the way only its end tells whether it is whole.
        self._watch = StreamWatch(format_of(found[0])) if found is not None and plain else None

    def __aiter__(self) -> Tee:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await anext(self._answer.chunks)
        except StopAsyncIteration:
            self._end()
            raise
        except BaseException as error:
            self._stop(f"the stream broke off ({type(error).__name__})")
            raise
        if not self._done:
            if self._watch is not None:
                self._watch.see(chunk)
            if not self._spool.add(chunk):
                self._stop(self._spool.lost)
        return chunk

    async def aclose(self) -> None:
        """End the call; a stream that had not reached its end is not recorded."""
        try:
            if not self._done and self._watch is not None and self._watch.succeeded:
                self._end()
        except RecordingError as error:
            # The reader is gone, so only the log can be told.
            _LOG.error("not recorded: %s", error.message)
        finally:
            self._stop("the stream was not read to its end")
            await self._answer.aclose()

    def _end(self) -> None:
        if self._done:
            return
        if self._watch is not None and self._watch.failed:
            self._stop("the stream holds an error event")
            return
        self._done = True
        try:
            chunks = tuple(self._spool.chunks())
            self._writer.keep(self._answer.status, self._answer.headers, chunks)
        finally:
            self._spool.close()

    def _stop(self, why: str) -> None:
        if not self._done:
            self._done = True
            self._spool.close()
            self._writer.gave_up(why)
