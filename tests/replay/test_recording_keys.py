"""The key of a call: what counts and what does not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.policy.recordings import default_key_fields
from switchyard_core.replay.recording import key_of

FIELDS = default_key_fields()
PATH = "/v1/responses"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
PLAIN = [name for name in FIELDS if "." not in name]
BODIES = st.dictionaries(st.sampled_from([*PLAIN, "temperature", "user", "metadata"]), VALUES)


def key(body: object, fields: tuple[str, ...] = FIELDS, **how: object) -> str:
    return key_of("POST", PATH, json.dumps(body, **how).encode(), fields)  # type: ignore[arg-type]


@given(BODIES, st.randoms())
def test_neither_order_of_keys_nor_white_space_nor_escapes_count(body, random):
    def shuffled(value):
        if isinstance(value, dict):
            items = [(name, shuffled(item)) for name, item in value.items()]
            random.shuffle(items)
            return dict(items)
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    other = json.dumps(shuffled(body), indent=random.choice([None, 1, 4])).encode()

    assert key_of("POST", PATH, other, FIELDS) == key(body)


@given(BODIES, st.sampled_from(FIELDS), VALUES)
def test_every_listed_field_counts(body, name, value):
    def placed(value):
        first, _, second = name.partition(".")
        inner = {**(body.get(first) or {}), second: value} if second else value
        return {**body, first: inner}

    if "." in name:
        body.pop(name.partition(".")[0], None)
    other = ["another", value]

    assert key(placed(value)) != key(placed(other))
    assert key(placed(value)) != key(body) or placed(value) == body


@given(BODIES, VALUES)
def test_what_is_not_listed_does_not_count(body, value):
    assert key({**body, "temperature": value, "max_tokens": value}) == key(body)


def test_method_and_path_count():
    body = b'{"model":"m"}'
    keys = {
        key_of(method, path, body, FIELDS)
        for method in ("POST", "GET")
        for path in ("/v1/messages", "/v1/responses")
    }

    assert len(keys) == 4


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(b"", b" ", id="bytes"),
        pytest.param(b"[1]", b"[1 ]", id="list"),
        pytest.param(b'{"model":NaN}', b'{"model": NaN}', id="no_json"),
        pytest.param(b"\xff", b"\xfe", id="no_utf8"),
    ],
)
def test_a_body_that_is_no_object_counts_byte_by_byte(one, other):
    assert key_of("POST", PATH, one, FIELDS) != key_of("POST", PATH, other, FIELDS)
    assert key_of("POST", PATH, one, FIELDS) == key_of("POST", PATH, one, ("model",))


def test_messages_with_other_instructions_have_other_keys():
    one = {"instructions": "plan", "input": "hi"}

    assert key(one) != key({**one, "instructions": "execute"})


def test_another_list_of_fields_makes_other_calls_equal():
    one, other = {"model": "a", "input": "x"}, {"model": "a", "input": "y"}

    assert key(one, ("model",)) == key(other, ("model",))
    assert key(one) != key(other)


def test_a_key_is_16_hexadecimal_digits_and_never_changes():
    assert key({"model": "m", "messages": []}) == "5d91de8ac4fbb599"
