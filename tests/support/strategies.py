"""What property tests are made of: JSON as clients might write it."""

from __future__ import annotations

import json

from hypothesis import strategies as st

# Number tokens that a decoder would print differently, lose digits of, or refuse.
NUMBERS = st.one_of(
    st.integers().map(str),
    st.integers(min_value=10**69, max_value=10**70).map(str),
    st.sampled_from(["1.10", "1.0", "-0", "0.1e1", "1E5", "1e400", "-1e-400", "5e-324", "100.000"]),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
# Strings as tokens: raw unicode, escapes, lone surrogates, escaped backslashes before a `u`.
STRINGS = st.one_of(
    st.text(max_size=20).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.text(max_size=20).map(json.dumps),
    st.sampled_from(
        [
            r'"\ud83d"',
            r'"\ude00x"',
            r'"\ud83d\ude00"',
            r'"\\ud800"',
            r'"\/\b\f\n\u0041"',
            '""',
            r'"\\\""',
        ]
    ),
).filter(lambda token: not any(0xD800 <= ord(character) <= 0xDFFF for character in token))
SPACES = st.sampled_from(["", "", "", " ", "\n  ", "\t", "\r\n"])
SCALARS = st.one_of(NUMBERS, STRINGS, st.sampled_from(["true", "false", "null"]))
# A few names on purpose: duplicate keys in nested objects are legal and must survive.
KEYS = st.one_of(
    st.sampled_from(['"type"', '"text"', '"id"', '"id"', '"cache_control"', '"x"', r'"\u0069d"']),
    STRINGS,
)


def _array(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    item = st.tuples(SPACES, inner, SPACES).map("".join)
    return st.lists(item, max_size=4).map(lambda items: "[" + ",".join(items) + "]")


def _object(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.tuples(SPACES, KEYS, SPACES, st.just(":"), SPACES, inner, SPACES).map("".join)
    return st.lists(member, max_size=4).map(lambda members: "{" + ",".join(members) + "}")


#: Texts of JSON values of every kind, nested a few levels deep.
VALUES = st.recursive(SCALARS, lambda inner: _array(inner) | _object(inner), max_leaves=12)


@st.composite
def objects(draw: st.DrawFn, reserved: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Members of a JSON object: distinct keys, as tokens, with values as tokens."""
    members = draw(st.lists(st.tuples(KEYS, VALUES), max_size=5))
    seen = set(reserved)
    kept = []
    for key, value in members:
        name = json.loads(key)
        if name not in seen:
            seen.add(name)
            kept.append((key, value))
    return kept
