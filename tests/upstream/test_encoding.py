"""Content encodings: what is taken off, what is refused, and never more than may come."""

from __future__ import annotations

import gzip
import os
import tracemalloc
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.upstream.encoding import (
    Decoder,
    EncodingError,
    TooLongError,
    content_encoding,
    decoded,
)

MEGABYTE = 1024 * 1024
TEXT = b"data: one\n\ndata: two\n\n" * 50


def bare_deflate(data: bytes) -> bytes:
    """Return what senders give that take the name for the bare format."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


ENCODERS = [
    pytest.param("gzip", gzip.compress, id="gzip"),
    pytest.param("X-GZIP", gzip.compress, id="x_gzip"),
    pytest.param("deflate", zlib.compress, id="deflate"),
    pytest.param("deflate", bare_deflate, id="bare_deflate"),
    pytest.param("br", brotli.compress, id="br"),
    pytest.param("zstd", zstandard.compress, id="zstd"),
    pytest.param("zstd, br", lambda b: brotli.compress(zstandard.compress(b)), id="newer"),
    pytest.param(
        "zstd", lambda b: zstandard.compress(b[:9]) + zstandard.compress(b[9:]), id="frames"
    ),
    pytest.param("identity", bytes, id="identity"),
    pytest.param("", bytes, id="none"),
    pytest.param("deflate, gzip", lambda b: gzip.compress(zlib.compress(b)), id="both"),
    pytest.param("gzip", lambda b: gzip.compress(b[:9]) + gzip.compress(b[9:]), id="parts"),
]


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(("encoding", "encode"), ENCODERS)
def test_a_content_encoding_is_taken_off_whatever_the_chunks_are(encoding, encode, size):
    data = encode(TEXT)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]

    assert b"".join(decoded(encoding, pieces, len(TEXT))) == TEXT


@pytest.mark.parametrize(("encoding", "encode"), ENCODERS)
def test_a_decoder_gives_what_it_has_as_soon_as_it_can(encoding, encode):
    decoder = Decoder(encoding, len(TEXT))
    data = encode(TEXT)

    found = [decoder.feed(data[:-1]), decoder.feed(data[-1:])]
    decoder.end()

    assert b"".join(found) == TEXT


@pytest.mark.parametrize("limit", [0, 1, len(TEXT) - 1])
@pytest.mark.parametrize(
    ("encoding", "encode"), [e for e in ENCODERS if e.id not in {"identity", "none"}]
)
def test_a_body_beyond_the_limit_is_refused(encoding, encode, limit):
    with pytest.raises(EncodingError, match=f"longer than {limit} bytes"):
        decoded(encoding, [encode(TEXT)], limit)


def test_a_bomb_is_not_unpacked(monkeypatch):
    taken = []
    real = zlib.decompressobj

    class Watched:
        def __init__(self, *args):
            self.inner = real(*args)

        def decompress(self, *args):
            part = self.inner.decompress(*args)
            taken.append(len(part))
            return part

    bomb = gzip.compress(bytes(20_000_000))
    monkeypatch.setattr(zlib, "decompressobj", Watched)

    with pytest.raises(EncodingError):
        decoded("gzip", [bomb], 1000)

    assert sum(taken) == 1001


@pytest.mark.parametrize("encoding", ["lz4", "gzip, lz4", ", ".join(["gzip"] * 5)])
def test_an_encoding_that_cannot_be_read_is_named(encoding):
    with pytest.raises(EncodingError, match=f"content-encoding: {encoding}`"):
        decoded(encoding, [b"x"], 10)


@pytest.mark.parametrize("body", [b"plain", b"x", b'{"a": 1}'])
@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_body_that_is_not_what_it_says_is_refused(encoding, body):
    with pytest.raises(EncodingError, match=f"not `{encoding}` as it says"):
        decoded(encoding, [body], 10)


def test_a_body_that_breaks_off_is_decoded_as_far_as_it_goes():
    packed = gzip.compress(TEXT, 0)

    found = b"".join(decoded("gzip", [packed[:-20]], len(TEXT)))

    assert found
    assert TEXT.startswith(found)


@given(st.sampled_from(["gzip", "deflate"]), st.lists(st.binary()), st.integers(0, 50))
def test_whatever_comes_is_decoded_within_the_limit_or_refused(encoding, chunks, limit):
    try:
        found = decoded(encoding, chunks, limit)
    except EncodingError:
        return
    assert len(b"".join(found)) <= limit


def test_an_empty_body_is_empty():
    assert decoded("gzip", [], 10) == decoded("deflate", [b""], 10) == ()


def test_several_headers_are_one_list():
    headers = [("content-encoding", "deflate"), ("x", "y"), ("Content-Encoding", "gzip")]

    assert content_encoding(headers) == "deflate, gzip"
    assert content_encoding([]) == ""


BOMBS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("encoding", BOMBS)
def test_a_bomb_is_refused_in_the_memory_of_its_limit(encoding):
    bomb = BOMBS[encoding](bytes(64 * MEGABYTE))
    tracemalloc.start()
    try:
        with pytest.raises(TooLongError):
            Decoder(encoding, MEGABYTE).decode(bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 12 * MEGABYTE


def test_a_bomb_in_a_bomb_is_refused_in_the_memory_of_its_limit():
    bomb = gzip.compress(gzip.compress(bytes(64 * MEGABYTE)))
    tracemalloc.start()
    try:
        with pytest.raises(TooLongError):
            Decoder("gzip, gzip", MEGABYTE).decode(bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 12 * MEGABYTE


@pytest.mark.parametrize("encoding", BOMBS)
def test_a_whole_body_that_breaks_off_is_refused(encoding):
    data = BOMBS[encoding](os.urandom(2000))

    assert len(Decoder(encoding, 2000).decode(data)) == 2000
    with pytest.raises(EncodingError, match="breaks off"):
        Decoder(encoding, 2000).decode(data[:-20])


@given(st.binary(max_size=3000), st.sampled_from([*BOMBS]), st.sampled_from([*BOMBS]))
def test_a_whole_body_comes_out_of_encodings_as_it_went_in(data, inner, outer):
    body = BOMBS[outer](BOMBS[inner](data))

    assert Decoder(f"{inner}, {outer}", 20_000).decode(body) == data
