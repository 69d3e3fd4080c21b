"""Arguments are parsed as leniently as by the standard library, only faster."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.conversation import parse_json

PIECES = st.lists(
    st.sampled_from(
        [
            *("{", "}", "[", "]", ",", ":", '"', "\\", "\\u", "d800", "\\ud83d\\ude00", "a", " "),
            *("1", "0", "-", ".", "e", "E", "+", "999", "true", "null", "NaN", "Infinity", "é"),
            *("\n", "\t", "\x00", "\x0b", "\x7f", "\ufeff", '"a"', '{"a":1,"a":2}', "\\n", "/"),
            *("18446744073709551616", "1e400", "0.1", "-0", "\ud800", "'", "//", "\u2028"),
        ]
    ),
    max_size=8,
).map("".join)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
).map(json.dumps)


def outcome(parse: Any, text: str | bytes) -> str:
    # The representation tells 1 from 1.0 and True, -0.0 from 0.0, and has NaN equal itself.
    try:
        return repr(parse(text))
    except ValueError:
        return "no JSON"


@given(PIECES | TREES | st.tuples(TREES, PIECES).map("".join))
def test_text_is_parsed_as_by_the_standard_library(text: str) -> None:
    assert outcome(parse_json, text) == outcome(json.loads, text)
    data = text.encode("utf-8", "surrogatepass")
    assert outcome(parse_json, data) == outcome(json.loads, data)


@given(st.binary(max_size=12).map(lambda data: b'"' + data + b'"'))
def test_bytes_are_parsed_as_by_the_standard_library(data: bytes) -> None:
    assert outcome(parse_json, data) == outcome(json.loads, data)


def test_numbers_beyond_a_float_become_infinite() -> None:
    assert parse_json("[1e999]") == [math.inf]


def test_deep_nesting_is_refused_as_no_json() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 200_000)
