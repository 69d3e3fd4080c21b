"""The TOML of profiles: what a rule may say, and what is wrong with one that may not be said."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_core import to_json

from switchyard_core.models import Rule
from switchyard_core.models.schema import REPAIRS, glob_test
from switchyard_core.wire.rewrites.repairs import REPAIRS as RUN


def rule(**keys: Any) -> Rule:
    return Rule.model_validate_json(to_json(keys))


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"do": "dorp", "path": "x"}, "Input should be 'drop'"),
        ({"do": "drop"}, "`drop` needs `path`"),
        ({"do": "drop", "path": "x", "value": 1}, "`value` means nothing for `drop`"),
        ({"do": "drop", "path": "x."}, "must be keys joined by dots"),
        ({"do": "drop", "path": "tools[]"}, "must be keys joined by dots"),
        ({"do": "rename", "path": "x", "to": "a.b"}, "`to` is a key, not a path"),
        ({"do": "rename", "path": "a.b", "to": "b"}, "`to` is the name that the key has"),
        ({"do": "map", "path": "x", "values": {}}, "`map` needs a value in `values`, or `else`"),
        ({"do": "cap", "path": "x", "value": nan}, "a number is neither `nan` nor `inf`"),
        ({"do": "set", "path": "x", "value": inf}, "a number is neither `nan` nor `inf`"),
        ({"do": "map", "path": "x", "values": {"a": inf}}, "neither `nan` nor `inf`"),
        ({"do": "cap", "path": "x", "value": "1"}, "`value` is a number"),
        ({"do": "cap", "path": "x", "value": True}, "`value` is a number"),
        ({"do": "convert", "path": "x", "to": "magic"}, "there is no repair `magic`"),
        ({"do": "refuse", "why": " "}, "`why` is a sentence"),
        ({"do": "keep_only", "members": ["x"]}, "needs either `path` or `header`"),
        ({"do": "keep_only", "members": [], "path": "x"}, "at least 1 item"),
        ({"do": "keep_only", "members": ["[x"], "path": "x"}, "bad glob"),
        ({"do": "drop_header", "header": "X-Beta"}, "the name of a header in lower case"),
        ({"do": "add_header", "header": "x", "value": 1}, "`value` is a text"),
        ({"do": "drop", "path": "x", "when": {"has_tools": "yes"}}, "is true or false"),
        ({"do": "drop", "path": "x", "when": {"a b": 1}}, "is not a path"),
        ({"do": "drop", "path": "x", "when": {"a": {}}}, "a test has exactly one of"),
        ({"do": "drop", "path": "x", "when": {"a": {"gt": 1, "in": [1]}}}, "exactly one of"),
        (
            {"do": "map", "path": "x", "values": {"a": "b", "b": "c"}},
            "`a` becomes `b`, which becomes `c`",
        ),
        (
            {"do": "map", "path": "x", "values": {"a": "b"}, "else": "a"},
            "`else` is `a`, which becomes `b`",
        ),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:30],
)
def test_rule_that_means_nothing_says_why(keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        rule(**keys)

    assert problem in str(caught.value)


def test_summary_says_what_each_verb_does_and_when() -> None:
    assert [
        rule(do="drop", path="a", when={"b": 1, "has_tools": True}).summary,
        rule(do="rename", path="a", to="b", when={"c": {"present": True}}).summary,
        rule(do="set", path="a", value={"b": 1}, when={"c": {"present": False}}).summary,
        rule(do="default", path="a", value="x", when={"c": {"in": ["d", "e"]}}).summary,
        rule(do="map", path="a", values={"x": "y"}, **{"else": "z"}).summary,
        rule(do="cap", path="a", value=9, when={"a": {"gt": 9}}).summary,
        rule(do="floor", path="a", value=1, when={"a": {"not_in": [2, 3]}}).summary,
        rule(do="keep_only", path="tools[].type", members=["!x"]).summary,
        rule(do="convert", path="messages", to="merge_system").summary,
        rule(do="drop_header", header="h").summary,
        rule(do="drop_header", header="h", members=["m"]).summary,
        rule(do="add_header", header="h", value="m").summary,
        rule(do="refuse", why="no tools").summary,
    ] == [
        "drop a when b is 1 and has_tools is true",
        "rename a to b when c is there",
        'set a to {"b": 1} when c is absent',
        "set a to x if it is absent when c is one of d, e",
        "a: x to y, else z",
        "a at most 9 when a is above 9",
        "a at least 1 when a is not 2 or 3",
        "tools[].type: keep !x",
        "merge_system at messages",
        "drop header h",
        "drop header h: m",
        "add to header h: m",
        "refuse: no tools",
    ]


def test_repairs_of_the_vocabulary_are_those_that_run() -> None:
    assert tuple(sorted(RUN)) == REPAIRS


@pytest.mark.parametrize(
    ("globs", "inside", "outside"),
    [
        (("gpt-5*", "!*-chat*"), "gpt-5.5", "gpt-5-chat-latest"),
        (("claude-opus-4-[78]*",), "claude-opus-4-8-x", "claude-opus-4-6"),
        (("!api.openai.com",), "example.com", "api.openai.com"),
        (("MiniMax-M*",), "minimax-m2", "x/minimax-m2"),
    ],
    ids=["bar", "class", "only_bars", "case"],
)
def test_globs_are_anchored_and_may_exclude(
    globs: tuple[str, ...], inside: str, outside: str
) -> None:
    test = glob_test(globs)

    assert (test(inside), test(outside)) == (True, False)
