"""Places of keys, values and characters."""

from __future__ import annotations

import math
from typing import Any

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.policy.places import Location, Outline, Place, Positions

TEXT = """\
a = 1
[x."y z".w]
\tq . r = [1, {"é" = "ü\\u0041bc", z=[ 2,
 # ] }
 3 ]}]
[[t]]
k=1
[[t]]
k = 1979-05-27 07:32:00 # x
[t.s]
m=\"\"\"
\\
  abc\\n
def\"\"\"
[late.part]
p = 1
[late]
"""
DEEP: Location = ("x", "y z", "w", "q", "r")


def at(line: int, column: int) -> Place:
    return Place(line=line, column=column)


@pytest.mark.parametrize(
    ("location", "key", "value"),
    [
        pytest.param(("a",), (1, 1), (1, 5), id="plain"),
        pytest.param(("x",), (2, 2), (2, 2), id="implicit_table"),
        pytest.param(("x", "y z"), (2, 4), (2, 4), id="quoted_key_in_header"),
        pytest.param((*DEEP[:3], "q"), (3, 2), (3, 2), id="dotted_key_after_tab"),
        pytest.param(DEEP, (3, 6), (3, 10), id="array"),
        pytest.param((*DEEP, 0), (3, 11), (3, 11), id="array_element"),
        pytest.param((*DEEP, 1, "é"), (3, 15), (3, 21), id="inline_table_value"),
        pytest.param((*DEEP, 1, "z", 1), (5, 2), (5, 2), id="element_after_comment"),
        pytest.param(("t", 0, "k"), (7, 1), (7, 3), id="first_table_of_array"),
        pytest.param(("t", 1, "k"), (9, 1), (9, 5), id="date_with_space"),
        pytest.param(("t", 1, "s", "m"), (11, 1), (11, 3), id="table_under_array"),
        pytest.param(("late",), (17, 2), (17, 2), id="table_declared_after_its_child"),
        pytest.param(("a", "missing"), (1, 1), (1, 5), id="missing_gives_parent"),
        pytest.param((), (1, 1), (1, 1), id="root"),
    ],
)
def test_positions_of_a_location_point_at_key_and_value(
    location: Location, key: tuple[int, int], value: tuple[int, int]
) -> None:
    positions = Positions(TEXT)
    assert positions.place(location, at_key=True) == at(*key)
    assert positions.place(location) == at(*value)


@pytest.mark.parametrize(
    ("literal", "offset", "place"),
    [
        pytest.param(r'"ab\"c\u00e9d"', 0, (1, 6), id="first"),
        pytest.param(r'"ab\"c\u00e9d"', 3, (1, 10), id="after_escape"),
        pytest.param(r'"ab\"c\u00e9d"', 5, (1, 17), id="after_unicode_escape"),
        pytest.param(r'"ab\"c\u00e9d"', 99, (1, 18), id="past_the_end"),
        pytest.param(r'"\U0001F600x"', 1, (1, 16), id="after_long_escape"),
        pytest.param("'a\\b'", 2, (1, 8), id="literal_has_no_escapes"),
        pytest.param('"""\nab\n\ncd"""', 4, (4, 1), id="multi_line"),
        pytest.param('"""a\\\n   b"""', 1, (2, 4), id="line_continuation"),
        pytest.param("'''\nab\ncd'''", 3, (3, 1), id="multi_line_literal"),
        pytest.param('"""a"""""', 1, (1, 9), id="quotes_at_the_end"),
        pytest.param("12", 1, (1, 5), id="no_string"),
    ],
)
def test_inside_a_string_counts_decoded_characters(
    literal: str, offset: int, place: tuple[int, int]
) -> None:
    assert Positions(f"k = {literal}\n").place(("k",), offset=offset) == at(*place)


def test_outline_of_a_broken_text_ends_without_an_error() -> None:
    texts = ["a", "[", "[[", "a = ", 'a = "', "= [", '"\\x" = 1', "a = [=,}", ""]

    assert [text for text in texts if Outline(text).repeat is not None] == []


# --- a property: whatever a document looks like, each value is where it is said to be ---------

CHARACTERS = st.characters(exclude_categories=["Cs"])
KEYS = st.text(alphabet=CHARACTERS, max_size=3)
SCALARS = st.one_of(
    st.integers(-(10**12), 10**12),
    st.booleans(),
    st.floats(allow_nan=False),
    st.text(alphabet=CHARACTERS, max_size=8),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


def _quoted(text: str) -> str:
    return (
        '"'
        + "".join(f"\\U{ord(c):08x}" if c in '"\\' or not c.isprintable() else c for c in text)
        + '"'
    )


def _written(value: Any, gap: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, dict):
        pairs = (f"{_quoted(k)}{gap}={gap}{_written(v, gap)}" for k, v in value.items())
        return "{" + gap + f"{gap},{gap}".join(pairs) + gap + "}"
    if isinstance(value, list):
        lines = gap + "\n# ], }\n"
        return "[" + lines + f"{gap},{lines}".join(_written(v, gap) for v in value) + "]"
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def _leaves(value: Any, location: Location) -> list[tuple[Location, Any]]:
    if isinstance(value, dict):
        return [leaf for k, v in value.items() for leaf in _leaves(v, (*location, k))]
    if isinstance(value, list):
        return [leaf for i, v in enumerate(value) for leaf in _leaves(v, (*location, i))]
    return [(location, value)]


@given(
    tables=st.dictionaries(
        KEYS,
        st.dictionaries(KEYS, VALUES, max_size=3),
        max_size=3,
    ),
    gap=st.sampled_from(["", " ", "\t "]),
)
def test_every_value_of_any_document_is_at_its_place(
    tables: dict[str, dict[str, Any]], gap: str
) -> None:
    text = ""
    for name, table in tables.items():
        text += f"[[{gap}{_quoted(name)}{gap}]]{gap}\n"
        for key, value in table.items():
            text += f"{gap}{_quoted(key)}{gap}={gap}{_written(value, gap)}{gap}# c\n"
    document = tomli.loads(text)
    assert document == {name: [table] for name, table in tables.items()}
    positions, lines = Positions(text), text.split("\n")
    for location, value in _leaves(document, ()):
        place = positions.place(location)
        assert lines[place.line - 1][place.column - 1 :].startswith(_written(value, gap))
        if isinstance(value, str):
            for offset, char in enumerate(value):
                inside = positions.place(location, offset=offset)
                found = lines[inside.line - 1][inside.column - 1]
                assert found in {char, "\\"}
