"""What is changed in a passing answer: the model that it names, and a key that it repeats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.wire import FORMATS
from switchyard_core.wire.patching import KeyMask, ModelPatch
from switchyard_core.wire.success import HEAD_BYTES

KEY = "sk-abab-abac"
START = b'event: message_start\ndata: {"message":{"model":"big"}}\n\n'
DELTA = b'event: content_block_start\ndata: {"model":"big"}\n\n'


def patched(stream: bytes, *cuts: int) -> bytes:
    patch = ModelPatch(FORMATS["anthropic_messages"], "asked")
    ends = [*sorted(cuts), len(stream)]
    chunks = [stream[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    return b"".join(map(patch.feed, chunks)) + patch.end()


@given(st.sets(st.integers(1, len(START + DELTA) - 1)))
def test_only_the_first_model_is_changed_wherever_the_chunks_are_cut(cuts):
    assert patched(START + DELTA, *cuts) == START.replace(b'"big"', b'"asked"') + DELTA


@pytest.mark.parametrize(
    "stream",
    [
        b"event: ping\ndata: {}\n\n" + DELTA.replace(b"model", b"other") + START,
        b"data: [DONE]\n\n",
        b"data: {not json\n\n" + START,
        b'data: {"message":{"model":7}}\n\n',
        b"",
        START[:-2],
    ],
    ids=["after_content", "done", "garbage", "no_text", "empty", "unfinished"],
)
def test_stream_that_names_no_model_in_its_head_is_untouched(stream):
    assert patched(stream) == stream


def test_model_behind_a_very_long_head_is_untouched():
    head = b": " + b"x" * HEAD_BYTES + b"\n\n"

    assert patched(head + START, len(head)) == head + START


def test_patching_twice_is_patching_once():
    once = patched(START + DELTA)

    assert patched(once) == once


def test_what_follows_the_model_passes_at_once():
    patch = ModelPatch(FORMATS["anthropic_messages"], "asked")
    patch.feed(START)

    assert patch.feed(b"event: half") == b"event: half"


@given(
    st.lists(st.sampled_from([KEY.encode(), KEY[:5].encode(), b"sk-abab-sk-abab-abac", b"x"])),
    st.data(),
)
def test_key_is_masked_wherever_the_chunks_are_cut_and_the_length_stays(parts, data):
    body = b"".join(parts)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(body)))))
    chunks = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    mask = KeyMask(KEY, from_start=True)

    masked = b"".join(map(mask.feed, chunks)) + mask.end()

    assert masked == body.replace(KEY.encode(), b"*" * len(KEY))


@pytest.mark.parametrize(
    "mark",
    [b'{"error":{"m":"', b'{"error" : "', b'{"type": "error","m":"', b"\nevent: error\ndata: {"],
)
def test_mask_begins_with_the_error_even_if_a_chunk_cuts_its_mark(mark):
    said = b'data: {"content":"' + KEY.encode() + b' \\"error\\": {"}\n'
    body = said + mark + KEY.encode()
    mask = KeyMask(KEY, from_start=False)

    passed = b"".join(mask.feed(body[at : at + 1]) for at in range(len(body))) + mask.end()

    assert passed == said + mark + b"*" * len(KEY)


@pytest.mark.parametrize(("key", "worth"), [("", False), ("none", False), (KEY, True)])
def test_word_in_place_of_a_key_is_not_masked(key, worth):
    assert KeyMask.worth(key) is worth
