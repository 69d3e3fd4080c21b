"""Bodies in files: exact to the byte, readable where they can be."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.replay.recording import (
    dumped_body,
    dumped_chunk,
    loaded_body,
    loaded_chunk,
)

TREE = {"id": "x", "text": "ü “q”", "list": [1, 2.5, None], "empty": {}}


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_come_back(body):
    text, layout = dumped_body(body)

    assert loaded_body(json.loads(text), layout) == body
    assert loaded_chunk(json.loads(dumped_chunk(body))) == body


@pytest.mark.parametrize(
    ("arguments", "layout"),
    [
        pytest.param({"separators": (",", ":")}, "compact", id="compact"),
        pytest.param({}, "spaced", id="spaced"),
        pytest.param({"indent": 2}, "indented", id="indented"),
    ],
)
@pytest.mark.parametrize(("end", "word"), [("", ""), ("\n", ", line break")])
def test_an_object_stands_in_the_file_as_it_is(arguments, layout, end, word):
    body = (json.dumps(TREE, ensure_ascii=False, **arguments) + end).encode()

    text, found = dumped_body(body)

    assert (json.loads(text), found) == (TREE, layout + word)
    assert loaded_body(TREE, found) == body


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"a":1.10}', id="number_spelt_otherwise"),
        pytest.param(b'{"a":"\\u00fc"}', id="escape"),
        pytest.param(b'{"a":1,"a":2}', id="key_twice"),
        pytest.param(b'{"a":1}\n\n', id="two_final_newlines"),
        pytest.param(b'{"base64":"YQ=="}', id="looks_like_ours"),
        pytest.param(b"", id="empty"),
        pytest.param(b"[1]", id="list"),
    ],
)
def test_what_would_come_back_otherwise_stands_as_text(body):
    text, layout = dumped_body(body)

    assert json.loads(text) == body.decode()
    assert layout == ""


def test_only_what_is_not_utf8_stands_as_base64():
    whole = "wörld".encode()

    assert json.loads(dumped_chunk(whole)) == "wörld"
    assert json.loads(dumped_chunk(whole[:2])) == {"base64": "d8M="}


@pytest.mark.parametrize("value", [3, None, {"base64": "%"}, {"base64": 1}, ["x"]])
def test_what_is_no_chunk_is_refused(value):
    with pytest.raises(ValueError, match=r"."):
        loaded_chunk(value)
