"""Taking the content encoding off a body, never more of it than was asked for."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

__all__ = [
    "ENCODINGS",
    "Decoder",
    "EncodingError",
    "TooLongError",
    "UnknownEncodingError",
    "content_encoding",
    "decoded",
]

_PLAIN = frozenset({"", "identity"})
#: Encodings in a row that are believed; each may blow its input up a thousandfold.
_MOST = 4
#: Window bits of zlib for ``gzip``.
_GZIP = zlib.MAX_WBITS | 16
#: How a part of a gzip body begins.
_MAGIC = b"\x1f\x8b"
#: Bytes of ``deflate`` that tell whether it has its frame.
_HEAD_BYTES = 2
#: Most bytes that Zstandard may look back: what RFC 9659 allows in a content encoding.
_ZSTD_WINDOW = 8 * 1024 * 1024
#: Bytes that Zstandard gets at a time: four may be 128 KiB, and it cannot be told to stop.
_ZSTD_STEP = 128
#: Bytes of a body that are decoded at a time.
_STEP = 64 * 1024


class EncodingError(ValueError):
    """A body cannot be decoded; the message says why, with the body as ``it``."""


class UnknownEncodingError(EncodingError):
    """A body has an encoding that is not known, or too many of them."""


class TooLongError(EncodingError):
    """A body is longer than it may be, once it is decoded."""


def content_encoding(headers: Iterable[tuple[str, str]]) -> str:
    """Return the content encoding that headers name, ``""`` for none."""
    return ", ".join(value for name, value in headers if name.lower() == "content-encoding")


class Decoder:
    """Takes encodings off a body that comes in parts; ``limit`` bounds each step in bytes."""

    def __init__(self, encoding: str, limit: int) -> None:
        words = [word.strip().lower().removeprefix("x-") for word in encoding.split(",")]
        names = [word for word in words if word not in _PLAIN]
        if not set(names) <= _CODECS.keys() or len(names) > _MOST:
            known = ", ".join(f"`{name}`" for name in ENCODINGS)
            raise UnknownEncodingError(
                f"it has `content-encoding: {encoding[:40]}`, and only {known}, at most {_MOST} in "
                "a row, can be read"
            )
        self._layers = [_Layer(name, limit) for name in reversed(names)]

    def feed(self, chunk: bytes) -> bytes:
        """Return what a part of the body decodes to."""
        for layer in self._layers:
            chunk = layer.feed(chunk)
        return chunk

    def end(self, *, whole: bool = False) -> None:
        """End the body; the rest of one that breaks off is an error only where it is ``whole``."""
        for layer in self._layers:
            layer.end(whole=whole)

    def decode(self, body: bytes) -> bytes:
        """Return a whole body decoded; one that breaks off is an :class:`EncodingError`."""
        parts = [self.feed(body[at : at + _STEP]) for at in range(0, len(body), _STEP)]
        self.end(whole=True)
        return b"".join(parts)


def decoded(encoding: str, chunks: Sequence[bytes], limit: int) -> tuple[bytes, ...]:
    """Return the chunks of a body without its content encoding; ``limit`` is in bytes."""
    if encoding.strip().lower() in _PLAIN:
        return tuple(chunks)
    decoder = Decoder(encoding, limit)
    found = tuple(part for part in map(decoder.feed, chunks) if part)
    decoder.end()
    return found


class _Layer:
    """One encoding of a body, and how much may still come out of it."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = self._left = limit
        self._codec = _CODECS[name]()
        self._fed = False

    def feed(self, chunk: bytes) -> bytes:
        self._fed = self._fed or bool(chunk)
        return self._count(chunk, last=False)

    def end(self, *, whole: bool) -> None:
        self._count(b"", last=True)
        begun = self._left < self._limit
        if self._fed and not self._codec.ended and (whole or not begun):
            raise self._other()

    def _count(self, chunk: bytes, *, last: bool) -> bytes:
        try:
            # One byte more than may come tells a body at the limit from one beyond it.
            part = self._codec.decode(chunk, self._left + 1, last=last)
        except Exception as error:
            # Each library has an exception of its own, and one of them is a bare `Exception`.
            raise self._other() from error
        self._left -= len(part)
        if self._left < 0:
            msg = f"without its `{self._name}` it is longer than {self._limit} bytes"
            raise TooLongError(msg)
        return part

    def _other(self) -> EncodingError:
        return EncodingError(f"it is not `{self._name}` as it says, or it breaks off")


class _Codec(Protocol):
    """Decodes a body part by part."""

    @property
    def ended(self) -> bool:
        """Whether the body is complete."""

    def decode(self, data: bytes, most: int, *, last: bool) -> bytes:
        """Return what the next part decodes to, not much more than ``most`` bytes."""


class _Gzip:
    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(_GZIP)

    @property
    def ended(self) -> bool:
        return self._decoder.eof

    def decode(self, data: bytes, most: int, *, last: bool) -> bytes:
        del last
        found, left = [], most
        while data and left > 0:
            found.append(self._decoder.decompress(data, left))
            left -= len(found[-1])
            data = b""
            if self._decoder.unused_data.startswith(_MAGIC):
                # A body of several parts, each with its own head.
                data = self._decoder.unused_data
                self._decoder = zlib.decompressobj(_GZIP)
        return b"".join(found)


class _Deflate:
    """The two forms that bear this name: the first bytes tell which it is."""

    def __init__(self) -> None:
        self._head = b""
        self._decoder: Any = None

    @property
    def ended(self) -> bool:
        return self._decoder is not None and bool(self._decoder.eof)

    def decode(self, data: bytes, most: int, *, last: bool) -> bytes:
        if self._decoder is None:
            self._head += data
            if not self._head or (len(self._head) < _HEAD_BYTES and not last):
                return b""
            data = self._head
            self._decoder = zlib.decompressobj(_deflate_window(data))
        found: bytes = self._decoder.decompress(data, most) if data else b""
        return found


class _Brotli:
    def __init__(self) -> None:
        import brotli  # noqa: PLC0415  # only for such bodies

        self._decoder = brotli.Decompressor()

    @property
    def ended(self) -> bool:
        return bool(self._decoder.is_finished())

    def decode(self, data: bytes, most: int, *, last: bool) -> bytes:
        del last
        found: bytes = self._decoder.process(data, output_buffer_limit=most) if data else b""
        return found


class _Zstd:
    def __init__(self) -> None:
        import zstandard  # noqa: PLC0415  # only for such bodies

        self._new = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj
        self._decoder = self._new()

    @property
    def ended(self) -> bool:
        return self._decoder.eof

    def decode(self, data: bytes, most: int, *, last: bool) -> bytes:
        del last
        found, size, at = [], 0, 0
        while at < len(data) and size < most:
            if self._decoder.eof:
                # A body of several frames.
                self._decoder = self._new()
            step = data[at : at + _ZSTD_STEP]
            found.append(self._decoder.decompress(step))
            size += len(found[-1])
            at += len(step) - len(self._decoder.unused_data)
        return b"".join(found)


_CODECS: dict[str, type[_Codec]] = {
    "gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
#: Names of the content encodings that can be read.
ENCODINGS = tuple(_CODECS)


def _deflate_window(head: bytes) -> int:
    """Return the window bits to decode with; some senders leave the frame of ``deflate`` out."""
    # RFC 1950: method 8, and a check that makes the two bytes a multiple of 31.
    framed = head[0] & 15 == zlib.DEFLATED and int.from_bytes(head[:2], "big") % 31 == 0
    return zlib.MAX_WBITS if framed else -zlib.MAX_WBITS
