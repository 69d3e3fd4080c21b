"""Taking the content encoding off a body, never more of it than was asked for."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from itertools import islice

__all__ = ["EncodingError", "TooLongError", "content_encoding", "decoded"]

_PLAIN = frozenset({"", "identity"})
#: Window bits of zlib by the name of an encoding.
_WINDOW = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
#: How a part of a gzip body begins.
_MAGIC = b"\x1f\x8b"
#: Encodings in a row that are believed; each may blow its input up a thousandfold.
_MOST = 4


class EncodingError(ValueError):
    """A body cannot be decoded; the message says why, with the body as ``it``."""


class TooLongError(EncodingError):
    """A body is longer than it may be, once it is decoded."""


def content_encoding(headers: Iterable[tuple[str, str]]) -> str:
    """Return the content encoding that headers name, ``""`` for none.

    Args:
        headers: Names in any case, and values; several of one name count as one list.
    """
    return ", ".join(value for name, value in headers if name.lower() == "content-encoding")


def decoded(encoding: str, chunks: Sequence[bytes], limit: int) -> tuple[bytes, ...]:
    """Return the chunks of a body without its content encoding.

    Args:
        encoding: Value of ``content-encoding``, ``""`` without one.
        chunks: The body as it came.
        limit: Most bytes of the decoded body, and of what comes of each encoding but the last.

    Raises:
        TooLongError: The body is longer than ``limit``.
        EncodingError: The encoding is none of gzip and deflate, or the body is not what it says.
    """
    words = [word.strip().lower().removeprefix("x-") for word in encoding.split(",")]
    names = [word for word in words if word not in _PLAIN]
    if not set(names) <= _WINDOW.keys() or len(names) > _MOST:
        msg = (
            f"it has `content-encoding: {encoding[:40]}`, and only `gzip` and `deflate` can be read"
        )
        raise EncodingError(msg)
    found = tuple(chunks)
    for name in reversed(names):
        found = _without(name, found, limit)
    return found


def _without(name: str, chunks: tuple[bytes, ...], limit: int) -> tuple[bytes, ...]:
    decoder = zlib.decompressobj(_window(name, chunks))
    found: list[bytes] = []
    left = limit
    for chunk in chunks:
        waiting = chunk
        while waiting:
            try:
                # One byte more than may come tells a body at the limit from one beyond it.
                part = decoder.decompress(waiting, left + 1)
            except zlib.error as error:
                msg = f"it is not `{name}` as it says"
                raise EncodingError(msg) from error
            left -= len(part)
            if left < 0:
                msg = f"without its `{name}` it is longer than {limit} bytes"
                raise TooLongError(msg)
            found.append(part)
            waiting = b""
            if name == "gzip" and decoder.unused_data.startswith(_MAGIC):
                # A body of several parts, each with a head of its own.
                waiting, decoder = decoder.unused_data, zlib.decompressobj(_WINDOW[name])
    # One that breaks off is passed on as far as it goes: its reader knows what is missing.
    if any(chunks) and not any(found) and not decoder.eof:
        msg = f"it is not `{name}` as it says"
        raise EncodingError(msg)
    return tuple(part for part in found if part)


def _window(name: str, chunks: tuple[bytes, ...]) -> int:
    """Return the window bits to decode with; some senders leave the frame of ``deflate`` out."""
    if name != "deflate":
        return _WINDOW[name]
    head = b"".join(islice(filter(None, chunks), 2))[:2]
    # RFC 1950: method 8, and a check that makes the two bytes a multiple of 31.
    framed = head[:1] and head[0] & 15 == zlib.DEFLATED and int.from_bytes(head, "big") % 31 == 0
    return zlib.MAX_WBITS if framed else -zlib.MAX_WBITS
