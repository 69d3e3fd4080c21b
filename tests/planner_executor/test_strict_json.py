from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_planner_executor.strict_json import NotJsonError, RepeatedKeyError, loads

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values)
def test_reads_what_json_says_from_text_and_bytes(value: object) -> None:
    text = json.dumps(value)

    assert loads(text) == value
    assert loads(text.encode()) == value


@given(st.text() | st.binary())
def test_no_text_brings_it_down(text: str | bytes) -> None:
    with contextlib.suppress(NotJsonError, RepeatedKeyError):
        json.dumps(loads(text), allow_nan=False)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '[{"b": {"a": 1, "c": 2, "a": 3}}]'])
def test_key_that_stands_twice_is_named(text: str) -> None:
    with pytest.raises(RepeatedKeyError) as caught:
        loads(text)

    assert caught.value.key == "a"


@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", "1e999", b"\xff", "{", "", "[" * 100_000])
def test_what_is_no_json_is_said_to_be_none(text: str | bytes) -> None:
    with pytest.raises(NotJsonError):
        loads(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1" * 5000, "an integer of 5000 digits is too long"),
        ('{"a": [-' + "1" * 5000 + "]}", "an integer of 5000 digits is too long"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        (b"\xff", "not UTF-8"),
        ("NaN", "NaN is no number of JSON"),
    ],
    ids=["integer", "negative", "arrays", "objects", "bytes", "nan"],
)
def test_fault_is_told_in_plain_words(text: str | bytes, told: str) -> None:
    with pytest.raises(NotJsonError) as caught:
        loads(text)

    assert str(caught.value) == told
