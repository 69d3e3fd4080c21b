"""Taking the content encoding off a body, never more of it than was asked for."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

__all__ = ["Decoder", "EncodingError", "TooLongError", "content_encoding", "decoded"]

_PLAIN = frozenset({"", "identity"})
#: Window bits of zlib by the name of an encoding.
_WINDOW = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
#: How a part of a gzip body begins.
_MAGIC = b"\x1f\x8b"
#: Bytes of ``deflate`` that tell whether it has its frame.
_HEAD_BYTES = 2
#: Encodings in a row that are believed; each may blow its input up a thousandfold.
_MOST = 4


class EncodingError(ValueError):
    """A body cannot be decoded; the message says why, with the body as ``it``."""


class TooLongError(EncodingError):
    """A body is longer than it may be, once it is decoded."""


def content_encoding(headers: Iterable[tuple[str, str]]) -> str:
    """Return the content encoding that headers name, ``""`` for none."""
    return ", ".join(value for name, value in headers if name.lower() == "content-encoding")


class Decoder:
    """Takes gzip or deflate off a body that comes in parts; ``limit`` bounds each step in bytes."""

    def __init__(self, encoding: str, limit: int) -> None:
        words = [word.strip().lower().removeprefix("x-") for word in encoding.split(",")]
        names = [word for word in words if word not in _PLAIN]
        if not set(names) <= _WINDOW.keys() or len(names) > _MOST:
            raise EncodingError(
                f"it has `content-encoding: {encoding[:40]}`, and only `gzip` and `deflate` can "
                "be read"
            )
        self._layers = [_Layer(name, limit) for name in reversed(names)]

    def feed(self, chunk: bytes) -> bytes:
        """Return what a part of the body decodes to."""
        for layer in self._layers:
            chunk = layer.feed(chunk)
        return chunk

    def end(self) -> None:
        """End the body; the rest of one that breaks off is not an error: its reader knows."""
        for layer in self._layers:
            layer.end()


def decoded(encoding: str, chunks: Sequence[bytes], limit: int) -> tuple[bytes, ...]:
    """Return the chunks of a body without its content encoding; ``limit`` is in bytes."""
    if encoding.strip().lower() in _PLAIN:
        return tuple(chunks)
    decoder = Decoder(encoding, limit)
    found = tuple(part for part in map(decoder.feed, chunks) if part)
    decoder.end()
    return found


class _Layer:
    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = self._left = limit
        # The first bytes of ``deflate`` tell which of its two forms it is.
        self._head = b""
        self._decoder = None if name == "deflate" else zlib.decompressobj(_WINDOW[name])
        self._fed = False

    def feed(self, chunk: bytes) -> bytes:
        self._fed = self._fed or bool(chunk)
        if self._decoder is None:
            self._head += chunk
            if len(self._head) < _HEAD_BYTES:
                return b""
            chunk = self._head
        return self._decode(chunk)

    def end(self) -> None:
        if self._decoder is None and self._head:
            self._decode(self._head)
        if self._fed and self._left == self._limit and not self._ended:
            raise self._other()

    @property
    def _ended(self) -> bool:
        return self._decoder is not None and self._decoder.eof

    def _decode(self, waiting: bytes) -> bytes:
        found = []
        if self._decoder is None:
            self._decoder = zlib.decompressobj(_deflate_window(waiting))
        while waiting:
            try:
                # One byte more than may come tells a body at the limit from one beyond it.
                part = self._decoder.decompress(waiting, self._left + 1)
            except zlib.error as error:
                raise self._other() from error
            self._left -= len(part)
            if self._left < 0:
                msg = f"without its `{self._name}` it is longer than {self._limit} bytes"
                raise TooLongError(msg)
            found.append(part)
            waiting = b""
            if self._name == "gzip" and self._decoder.unused_data.startswith(_MAGIC):
                # A body of several parts, each with its own head.
                waiting = self._decoder.unused_data
                self._decoder = zlib.decompressobj(_WINDOW[self._name])
        return b"".join(found)

    def _other(self) -> EncodingError:
        return EncodingError(f"it is not `{self._name}` as it says")


def _deflate_window(head: bytes) -> int:
    """Return the window bits to decode with; some senders leave the frame of ``deflate`` out."""
    # RFC 1950: method 8, and a check that makes the two bytes a multiple of 31.
    framed = head[0] & 15 == zlib.DEFLATED and int.from_bytes(head[:2], "big") % 31 == 0
    return zlib.MAX_WBITS if framed else -zlib.MAX_WBITS
