"""The body of a call: JSON, perhaps compressed, and never larger than the server accepts."""

from __future__ import annotations

import asyncio
import re

from switchyard_core.errors import RequestError
from switchyard_core.server.exchange import Exchange, too_large
from switchyard_core.upstream.encoding import (
    ENCODINGS,
    Decoder,
    EncodingError,
    TooLongError,
    UnknownEncodingError,
)

__all__ = ["read_json"]

# No web page can send these without a preflight.
_JSON = re.compile(r"application/json|[\w.-]+/[\w.+-]+\+json", re.ASCII | re.IGNORECASE)
_FINAL = {"x-should-retry": "false"}


async def read_json(exchange: Exchange, limit: int, timeout_s: float) -> bytes:
    """Return the body of a request without its content encoding; ``limit`` counts both forms."""
    kind = exchange.headers.get("content-type", "").partition(";")[0].strip()
    if not _JSON.fullmatch(kind):
        raise RequestError(
            "the body must be JSON, and say so: send `content-type: application/json`",
            "unsupported_media_type",
            415,
        )
    encoding = exchange.headers.joined("content-encoding") or ""
    decoder = _decoder(encoding, limit)
    body = await exchange.read(limit, timeout_s)
    if decoder is None:
        return body
    # A few bytes may be many: other requests must not wait for them.
    return await asyncio.to_thread(_decode, decoder, body, limit)


def _decoder(encoding: str, limit: int) -> Decoder | None:
    if encoding.strip().lower() in ("", "identity"):
        return None
    try:
        return Decoder(encoding, limit)
    except UnknownEncodingError as error:
        raise RequestError(
            f"the body cannot be decoded: {error}; send one of these, or the body as it is without "
            "`content-encoding`",
            "unsupported_encoding",
            415,
            headers={"accept-encoding": ", ".join(ENCODINGS), **_FINAL},
        ) from None


def _decode(decoder: Decoder, body: bytes, limit: int) -> bytes:
    try:
        return decoder.decode(body)
    except TooLongError:
        raise too_large(limit, decoded=True) from None
    except EncodingError as error:
        raise RequestError(
            f"the body cannot be decoded: {error}; send it again, or without `content-encoding`",
            "invalid_encoding",
            400,
            headers=_FINAL,
        ) from None
