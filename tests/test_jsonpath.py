"""JSONPath: our closures against jsonpath-ng, places of matches, and errors with a column."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonpath_ng.ext import parse

from switchyard_core.jsonpath import PathError, compile_path

DOCUMENT = {
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_call", "name": "read", "arguments": {"path": "a"}},
                {"type": "tool_call", "name": "edit", "arguments": {"path": "b", "n": 1}},
            ],
        },
    ],
    "a b": {"*": 1},
}

names = st.sampled_from(["a", "b", "type", "name", "a b", "*"])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, 1.0, 1.5]),
    st.sampled_from(["x", "tool_call", "", "1"]),
)
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
    max_leaves=25,
)
literals = st.sampled_from(["'x'", "'tool_call'", "1", "0", "1.5", "true", "false", "null", "-1"])
steps = st.one_of(
    names.map(lambda name: f"['{name}']"),
    st.sampled_from([".a", ".b", ".type", ".*", "[*]", "[0]", "[-1]", "[1]", "[0,1]", "['a','b']"]),
    st.sampled_from(["[1:]", "[:2]", "[0:3:2]", "[-2:]", "[:]", "[::-1]"]),
    st.tuples(
        st.sampled_from(["a", "b", "type", "a.b"]), st.sampled_from(["==", "!=", "="]), literals
    ).map(lambda parts: f"[?(@.{parts[0]} {parts[1]} {parts[2]})]"),
    st.sampled_from(["[?(@.a)]", "[?(@.a == 1 && @.b == 'x')]", "..a", "..*", "[?(@.a > 1)]"]),
)
expressions = st.lists(steps, max_size=5).map(lambda parts: "$" + "".join(parts))


def _expected(expression: str, document: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return [match.value for match in parse(expression).find(document)]


@settings(max_examples=1500, deadline=None)
@given(expressions, documents)
def test_path_finds_what_jsonpath_ng_finds(expression: str, document: Any) -> None:
    path = compile_path(expression)

    assert repr(_expected(expression, document)) == repr(path.values(document))


@settings(max_examples=500, deadline=None)
@given(expressions, documents)
def test_location_leads_to_the_value(expression: str, document: Any) -> None:
    for location, value in compile_path(expression).find(document):
        place = document
        for step in location:
            assert not (isinstance(step, int) and step < 0)
            place = place[step]
        assert place is value


def test_default_rule_path_is_simple_and_gives_places() -> None:
    path = compile_path("$.messages[*].content[?(@.type == 'tool_call')].name")

    assert path.simple
    assert path.find(DOCUMENT) == [
        (("messages", 1, "content", 0, "name"), "read"),
        (("messages", 1, "content", 1, "name"), "edit"),
    ]


@pytest.mark.parametrize(
    ("expression", "head"),
    [
        ("$.arguments.command", ("arguments", "command")),
        ("$", ()),
        ("arguments", ("arguments",)),
        ("$.a[0]", None),
        ("$['a','b']", None),
        ("$..a", None),
    ],
)
def test_head_is_the_members_of_a_plain_path(expression: str, head: tuple[str, ...] | None) -> None:
    assert compile_path(expression).head == head


def test_pattern_filter_runs_in_linear_time() -> None:
    path = compile_path("$[?(@.a =~ '^(a+)+$')]")
    document = [{"a": "a" * 5000 + "b"}, {"a": "aaa"}, {"a": 1}, {}, {"a": "\ud800"}, 3]

    assert path.find(document) == [((1,), {"a": "aaa"})]


@pytest.mark.parametrize(
    ("expression", "document", "values"),
    [
        ("$.a.`len`", {"a": [1, 2]}, [2]),
        ("$.a + $.b", {"a": 1, "b": 2}, [3]),
        ("$.a.`split(x, 1, -1)`", {"a": "1x2"}, ["2"]),
        ("$.a.`sub(/x/, y)`", {"a": "axb"}, ["ayb"]),
        ("$.a[?(@.b > 1)].b", {"a": [{"b": 1}, {"b": 2}]}, [2]),
    ],
)
def test_other_functions_run_through_jsonpath_ng(
    expression: str, document: Any, values: list[Any]
) -> None:
    path = compile_path(expression)

    assert not path.simple
    assert path.values(document) == values


def test_function_on_a_value_of_another_type_finds_nothing() -> None:
    assert compile_path("$.a.`sub(/x/, y)`").find({"a": 3}) == []


@pytest.mark.parametrize(
    ("expression", "column", "message"),
    [
        ("", 0, "the path is empty"),
        ("  ", 0, "the path is empty"),
        ("$.a[?(@.b ==", 12, "the path ends too early"),
        ("$.a[", 4, "the path ends too early"),
        ("$.a b", 4, "unexpected `b`"),
        ("$.a'b", 5, "the path ends too early"),
        ("%a", 0, "unexpected character `%`"),
        ("$.a[?(@.b == 'x']", 16, "unexpected `]`"),
        ("$.a & $.b", 4, "`&` between paths is not available"),
        ("$[?(@.a =~ '(')]", 0, "bad regular expression `(`: missing ): ("),
        ("$..a[?(@.b =~ 'x')]", 11, "`=~` works only in a filter that compares a plain member"),
    ],
)
def test_bad_path_says_what_and_where(expression: str, column: int, message: str) -> None:
    with pytest.raises(PathError) as caught:
        compile_path(expression)

    assert (caught.value.message, caught.value.column) == (message, column)
    assert str(caught.value) == f"{message} at column {column}"


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="$.a[]*?(@)='\"1,:& `|<>!~-+/", max_size=25))
def test_any_text_is_a_path_or_a_path_error(expression: str) -> None:
    try:
        found = compile_path(expression).find(DOCUMENT)
    except PathError as error:
        found = []
        column = error.column
    else:
        column = 0

    assert isinstance(found, list)
    assert 0 <= column <= len(expression)
