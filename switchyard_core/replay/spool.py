"""Keeping an answer aside while it passes: little memory, and no more than may be recorded."""

from __future__ import annotations

import contextlib
import errno
import os
import struct
from collections.abc import Iterator
from io import RawIOBase
from tempfile import TemporaryFile
from typing import cast

__all__ = ["Spool"]

#: Bytes that stay in memory; what comes after them goes to a temporary file without a name.
_MEMORY = 1024 * 1024
#: Each chunk counts with its length, which stands before it: chunks may be small and many.
_LENGTH = struct.Struct(">I")


class Spool:
    """Chunks in the order in which they came, as far as there is room for them.

    Args:
        limit: Most bytes that are kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._head: list[bytes] = []
        self._file: RawIOBase | None = None
        self._end = 0
        #: Why a chunk could not be kept, ``""`` while all are.
        self.lost = ""

    def add(self, chunk: bytes) -> bool:
        """Keep one more chunk; return whether there was room for it.

        After the first one without room no other is kept; those before it still are.
        """
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
