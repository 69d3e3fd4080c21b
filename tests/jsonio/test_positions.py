"""Positions in JSON text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.jsonio.positions import locate, locate_all

TEXT = """
{
  "a": [1, {"b" : "x,]}", "c\\u0041": [ [], {} ]}],
  "a": [2]
}"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param([], (2, 1), id="root"),
        pytest.param(["a"], (4, 3), id="last_of_a_repeated_key"),
        pytest.param(["a", 0], (4, 9), id="item"),
        pytest.param(["a", 1], (4, 3), id="index_beyond"),
        pytest.param(["a", 9], (4, 3), id="index_far_beyond"),
        pytest.param(["x", "y"], (2, 1), id="missing_key"),
        pytest.param(["a", "x"], (4, 3), id="key_of_an_array"),
        pytest.param([0], (2, 1), id="index_of_an_object"),
    ],
)
def test_locate_ends_at_the_last_step_found(
    path: Sequence[str | int], expected: tuple[int, int]
) -> None:
    assert locate(TEXT, path) == expected


def test_locate_reads_escaped_keys_and_empty_containers() -> None:
    text = '{"c\\u0041": [ [], {} , "é", 1]}'

    assert locate(text, ["cA", 3]) == (1, 29)
    assert locate(text, ["cA", 0, 0]) == (1, 15)
    assert locate(text, ["cA", 1, "x"]) == (1, 19)


def test_places_of_many_paths_are_those_of_each() -> None:
    paths: list[list[str | int]] = [[], ["a"], ["a", 0], ["a", 1], ["x"], ["a", 0, "y"]]

    assert locate_all(TEXT, paths) == [locate(TEXT, path) for path in paths]


def test_many_places_are_found_in_one_walk() -> None:
    size = 30_000
    text = json.dumps({str(number): [number] for number in range(size)}, indent=0)

    places = locate_all(text, [[str(number), 0] for number in range(size)])

    assert [line for line, _ in places] == [3 * number + 3 for number in range(size)]


def _paths(
    tree: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    yield path, tree
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _paths(value, (*path, key))
    if isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from _paths(value, (*path, index))


def _tree() -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        ),
        max_leaves=8,
    )


@given(_tree(), st.sampled_from([None, 1]), st.booleans())
def test_every_value_of_any_json_is_found(tree: Any, indent: int | None, ascii_: bool) -> None:

    text = json.dumps(tree, indent=indent, ensure_ascii=ascii_)
    lines = text.split("\n")
    for path, value in _paths(tree):
        line, column = locate(text, path)
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        expected = path[-1] if path and isinstance(path[-1], str) else value
        assert json.JSONDecoder().raw_decode(rest)[0] == expected
