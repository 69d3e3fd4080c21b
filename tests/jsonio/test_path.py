"""JSONPath: our closures against jsonpath-ng, places of matches, and errors with a column."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonpath_ng.ext import parse

from switchyard_core.jsonio.path import MAX_PARTS, MAX_SPREADS, PathError, compile_path

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
    st.sampled_from(["[?(@.a)]", "[?(@.a == 1 && @.b == 'x')]", "[?(@.a > 1)]", "[?(!@.a)]"]),
    st.sampled_from(
        [
            "[?(@.a <= 'x' || @.b != null)]",
            "[?(@.a[*].b == 1)]",
            "[?(@[?(@.a)].b < 2)]",
            "[?(@ == 1 || (@ >= 'x' && @.`len` > 1))]",
        ]
    ),
)
descents = st.sampled_from(["..a", "..*", "..[?(@.a)]", "..['a','b']", "..[0]"])
chains = st.lists(steps, max_size=2).map("".join)
paths = st.builds(
    lambda before, descent, after: f"${before}{descent}{after}",
    chains,
    st.just("") | descents,
    chains,
)
functions = st.sampled_from(["", ".`len`"])


def _expected(expression: str, document: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return [match.value for match in parse(expression).find(document)]


@settings(max_examples=1500, deadline=None)
@given(paths, functions, documents)
def test_path_finds_what_jsonpath_ng_finds(path: str, function: str, document: Any) -> None:
    expression = path + function

    assert repr(_expected(expression, document)) == repr(compile_path(expression).values(document))


@settings(max_examples=500, deadline=None)
@given(paths, documents)
def test_location_leads_to_the_value(expression: str, document: Any) -> None:
    for location, value in compile_path(expression).find(document):
        place = document
        for step in location:
            assert not (isinstance(step, int) and step < 0)
            place = place[step]
        assert place is value


def test_default_rule_path_gives_places() -> None:
    path = compile_path("$.messages[*].content[?(@.type == 'tool_call')].name")

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


@pytest.mark.parametrize("expression", ["$[?(@.a =~ '^(a+)+$')]", "$..[?(@.a =~ '^(a+)+$')]"])
def test_pattern_filter_runs_in_linear_time(expression: str) -> None:
    path = compile_path(expression)
    document = [{"a": "a" * 5000 + "b"}, {"a": "aaa"}, {"a": 1}, {}, {"a": "\ud800"}, 3]

    assert path.find(document) == [((1,), {"a": "aaa"})]


@pytest.mark.parametrize(
    ("expression", "document", "values"),
    [
        ("$.a[?(@.b > 1)].b", {"a": [{"b": 1}, {"b": 2}]}, [2]),
        ("$.a.`len`", {"a": [1, 2]}, [2]),
        ("$.a.`keys`", {"a": {"b": 1, "c": 2}}, ["b", "c"]),
        ("$.a.`split(x, 1, -1)`", {"a": "1x2"}, ["2"]),
        ("$.a.`split(x, *, -1)`[*]", {"a": "1x2"}, ["1", "2"]),
        ("$.a.`str()`", {"a": 1}, ["1"]),
    ],
)
def test_functions(expression: str, document: Any, values: list[Any]) -> None:
    assert compile_path(expression).values(document) == values


@pytest.mark.parametrize("function", ["len", "keys", "split(x, 1, -1)", "str()"])
@pytest.mark.parametrize("value", [[], {}, {"b": []}, None, 7 * 10**5000], ids=str(type).format)
def test_function_never_fails_whatever_the_value_is(function: str, value: Any) -> None:
    assert isinstance(compile_path(f"$.a.`{function}`").find({"a": value}), list)


@pytest.mark.parametrize(
    "expression",
    ["$..*", "$..a", "$[*]" + "[*]" * 9, "$..[?(@.a == 1)].b", "$.a[?(@[0] == 'x')]"],
)
def test_nesting_of_any_depth_is_gone_through(expression: str) -> None:
    document: Any = "x"
    for _ in range(5000):
        document = [document]

    assert isinstance(compile_path(expression).find({"a": document}), list)


# --- what a path may cost -------------------------------------------------------------------


class _CountedList(list[Any]):
    looks = 0

    def __iter__(self) -> Iterator[Any]:
        for value in super().__iter__():
            _CountedList.looks += 1
            yield value

    def __getitem__(self, index: Any) -> Any:
        _CountedList.looks += 1
        return super().__getitem__(index)


def _nested(depth: int, width: int) -> Any:
    document: Any = _CountedList()
    for _ in range(depth):
        document = _CountedList([document, *(0,) * width])
    return document


spreading = st.sampled_from(["[*]", "[:]", "[0,-1,-7]", "[?(@[0])]", "[?(@[*][*] == 0)]", "..*"])
spreading_paths = st.lists(spreading, max_size=14).map(lambda parts: "$" + "".join(parts))


@settings(max_examples=300, deadline=None)
@given(spreading_paths, st.integers(1, 60), st.integers(0, 3))
def test_no_path_looks_at_a_value_more_often_than_it_has_parts(
    expression: str, depth: int, width: int
) -> None:
    try:
        path = compile_path(expression)
    except PathError:
        return
    document, size = _nested(depth, width), depth * (width + 1)
    _CountedList.looks = 0

    path.find(document)

    assert _CountedList.looks <= 3 * (MAX_SPREADS + 1) * size


@pytest.mark.parametrize(
    ("expression", "column", "words"),
    [
        pytest.param("$..*..*..*", 7, "one `..` at most", id="descendants"),
        pytest.param("$..a[?(@..b)]", 8, "one `..` at most", id="descendants_in_a_filter"),
        pytest.param("$" + "[*]" * 11, 0, "all children at most 10 times, not 11", id="wildcards"),
        pytest.param("$" + ".a" * 500, 0, "has 501 parts", id="steps"),
        pytest.param("$" + "[?(@.a" * 60 + ")]" * 60, 0, "parts", id="filters"),
        pytest.param("(" * 2000 + "$.a" + ")" * 2000, 0, "", id="brackets"),
        pytest.param("$." + "a" * 5000, 4096, "longer than 4096 characters", id="length"),
        pytest.param("$['a','a']", 1, "a name is listed twice", id="same_name"),
        pytest.param("$.a.`sub(/(a+)+$/, b)`", 5, "`=~`", id="sub"),
        pytest.param("$.a + $.b", 0, "arithmetic", id="arithmetic"),
        pytest.param("$.a.`parent`", 5, "filter the parent", id="parent"),
        pytest.param("$.a.`path`", 5, "`path`", id="path"),
        pytest.param("$.a.`sorted`", 0, "sorting", id="sorted"),
        pytest.param("$.a[/b]", 0, "sorting", id="sorted_by"),
        pytest.param("($.a)|($.b)", 5, "names in brackets", id="union"),
        pytest.param("$.a where b", 4, "use a filter", id="where"),
        pytest.param("$.a wherenot b", 4, "use a filter", id="wherenot"),
        pytest.param("$[?(@.a == $.b)]", 8, "right side", id="root_in_a_filter"),
        pytest.param("$[?(@.a == @.b)]", 8, "right side", id="two_paths"),
        pytest.param("$[?($.a == 1)]", 4, "`@` is the value", id="root_on_the_left"),
        pytest.param("$.a.$", 4, "only at the beginning", id="root_again"),
        pytest.param("$[?(@.a =~ 1)]", 8, "in quotes", id="pattern_is_no_text"),
        pytest.param("$[?(@.a =~ 'x{0,1000}y{0,1000}')]", 0, "instructions", id="large_pattern"),
        pytest.param("$[::0]", 3, "not 0", id="slice"),
    ],
)
def test_path_that_could_cost_too_much_is_refused(expression: str, column: int, words: str) -> None:
    if not words:
        assert compile_path(expression).head == ("a",)
        return
    with pytest.raises(PathError) as caught:
        compile_path(expression)

    assert words in caught.value.message
    assert caught.value.column == column


def test_path_may_have_as_many_parts_as_are_allowed() -> None:
    assert compile_path("$" + ".a" * (MAX_PARTS - 1)).head == ("a",) * (MAX_PARTS - 1)


def test_one_item_by_two_indices_is_found_once() -> None:
    assert compile_path("$[0,-1]").values([1]) == [1]
    assert compile_path("$" + "[0,-1]" * 49).values(_nested(50, 0)) != []


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
