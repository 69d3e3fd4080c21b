"""``fit_model``: each verb and test, the headers, and that nothing else is touched."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.decision import Rewrite
from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.errors import PluginError, RefusedError
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.models import core_profiles, profile_of, read_profiles
from switchyard_core.wire.rewrites import CORE_REWRITES, apply_rewrites
from switchyard_core.wire.rewrites.fit import Rules
from tests.models.bodies import PLAIN

TYPES = {rewrite.name: rewrite for rewrite in CORE_REWRITES}
ENTRIES = [entry for declared in core_profiles() for entry in read_profiles(declared)]


def fit(
    body: Mapping[str, Any] | bytes,
    *rules: Mapping[str, Any],
    wire_format: WireFormat = "openai_chat",
    headers: dict[str, str] | None = None,
    **parameters: Any,
) -> tuple[Any, Sequence[str]]:
    """Return the fitted body and its changes; doing it again must change nothing."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    rewrite = Rewrite(name="fit_model", parameters={"rules": list(rules), **parameters})
    once, (report,) = apply_rewrites(
        ObjectText(data), [rewrite], TYPES, wire_format, headers=headers
    )
    twice, (more,) = apply_rewrites(
        ObjectText(once), [rewrite], TYPES, wire_format, headers=headers
    )
    assert (twice, more.changes) == (once, ())
    return (once if isinstance(body, bytes) else json.loads(once)), report.changes


VERBS: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
    ("drop", {"path": "a"}, {"a": 1, "b": 2}, {"b": 2}, "removed a"),
    ("drop", {"path": "a.b"}, {"a": {"b": 1}}, {}, "removed a.b"),
    ("drop", {"path": "a.b"}, {"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}, "removed a.b"),
    (
        "drop",
        {"path": "a[].b"},
        {"a": [{"b": 1}, 3, {"c": 2}, {"b": 4}]},
        {"a": [{}, 3, {"c": 2}, {}]},
        "removed a[].b in 2 places",
    ),
    ("rename", {"path": "a", "to": "b"}, {"a": 1, "c": 2}, {"b": 1, "c": 2}, "renamed a to b"),
    ("rename", {"path": "a", "to": "b"}, {"a": 1, "b": 2}, {"b": 2}, "removed a, b is there"),
    ("set", {"path": "a.b", "value": "x"}, {}, {"a": {"b": "x"}}, "set a.b to x"),
    ("set", {"path": "a", "value": {"b": 1}}, {"a": 3}, {"a": {"b": 1}}, 'set a to {"b": 1}'),
    ("default", {"path": "a", "value": 1}, {}, {"a": 1}, "set a to 1"),
    ("map", {"path": "a", "values": {"x": "y"}}, {"a": "x"}, {"a": "y"}, "set a to y"),
    (
        "map",
        {"path": "a", "values": {"x": "y"}, "else": "z"},
        {"a": "other"},
        {"a": "z"},
        "set a to z",
    ),
    ("cap", {"path": "a", "value": 5}, {"a": 9}, {"a": 5}, "lowered a from 9 to 5"),
    ("floor", {"path": "a", "value": 5}, {"a": 2}, {"a": 5}, "raised a from 2 to 5"),
    (
        "keep_only",
        {"path": "a[].t", "members": ["x*"]},
        {"a": [{"t": "x1"}, {"t": "y"}, {"u": 1}]},
        {"a": [{"t": "x1"}, {"u": 1}]},
        "removed from a: y",
    ),
    (
        "keep_only",
        {"path": "a", "members": ["!y"]},
        {"a": ["x", "y", 3]},
        {"a": ["x", 3]},
        "removed from a: y",
    ),
    ("keep_only", {"path": "a", "members": ["!y"]}, {"a": ["y"]}, {}, "removed from a: y"),
]


@pytest.mark.parametrize(
    ("verb", "keys", "before", "after", "change"),
    VERBS,
    ids=[f"{row[0]}-{row[4].replace(' ', '_')}" for row in VERBS],
)
def test_verb_changes_its_place_alone_and_tells(
    verb: str, keys: dict[str, Any], before: dict[str, Any], after: dict[str, Any], change: str
) -> None:
    found, changes = fit({"m": 1, **before}, {"do": verb, **keys, "by": "who"})

    assert found == {"m": 1, **after}
    assert list(changes) == [f"{change} (who)"]


@pytest.mark.parametrize(
    ("verb", "keys", "body"),
    [
        ("drop", {"path": "a"}, {"b": 1}),
        ("drop", {"path": "a.b"}, {"a": "text"}),
        ("drop", {"path": "a[].b"}, {"a": {"b": 1}}),
        ("rename", {"path": "a", "to": "b"}, {"b": 1}),
        ("set", {"path": "a", "value": 1}, {"a": 1}),
        ("set", {"path": "a.b", "value": 1}, {"a": "text"}),
        ("default", {"path": "a", "value": 1}, {"a": None}),
        ("map", {"path": "a", "values": {"x": "y"}}, {"a": "y"}),
        ("map", {"path": "a", "values": {"x": "y"}, "else": "z"}, {"a": "z"}),
        ("map", {"path": "a", "values": {"x": "y"}, "else": "z"}, {"a": None}),
        ("cap", {"path": "a", "value": 5}, {"a": 5}),
        ("cap", {"path": "a", "value": 5}, {"a": "9"}),
        ("cap", {"path": "a", "value": 0}, {"a": True}),
        ("floor", {"path": "a", "value": 5}, {"a": None}),
        ("keep_only", {"path": "a", "members": ["x"]}, {"a": "y"}),
        ("keep_only", {"path": "a[].t", "members": ["x"]}, {"a": [{"t": 3}]}),
        ("drop", {"path": "a[].b"}, {"a": [{"c": "the word b"}]}),
    ],
)
def test_verb_leaves_what_it_is_not_about(
    verb: str, keys: dict[str, Any], body: dict[str, Any]
) -> None:
    assert fit(body, {"do": verb, **keys}) == (body, ())


@pytest.mark.parametrize(
    ("when", "body", "holds"),
    [
        ({"b": 1}, {"b": 1}, True),
        ({"b": 1}, {"b": True}, False),
        ({"b": True}, {"b": 1}, False),
        ({"b.c": "x"}, {"b": {"c": "x"}}, True),
        ({"b[].c": "x"}, {"b": [{"c": "y"}, {"c": "x"}]}, True),
        ({"b": {"present": True}}, {"b": None}, False),
        ({"b": {"present": True}}, {"b": 0}, True),
        ({"b": {"present": False}}, {}, True),
        ({"b": {"in": [1, "x"]}}, {"b": "x"}, True),
        ({"b": {"in": [1, "x"]}}, {}, False),
        ({"b": {"not_in": [1]}}, {"b": 1.0}, False),
        ({"b": {"not_in": [1]}}, {"b": 0.5}, True),
        ({"b": {"not_in": [1]}}, {}, False),
        ({"b": {"gt": 3}}, {"b": 4}, True),
        ({"b": {"gt": 3}}, {"b": 3}, False),
        ({"b": {"gt": 3}}, {"b": "9"}, False),
        ({"b": 1, "c": 1}, {"b": 1}, False),
        ({"has_tools": True}, {"tools": [{}]}, True),
        ({"has_tools": True}, {"tools": []}, False),
        ({"has_tools": False}, {}, True),
    ],
)
def test_rule_runs_when_all_its_tests_hold(
    when: dict[str, Any], body: dict[str, Any], *, holds: bool
) -> None:
    found, changes = fit({"a": 1, **body}, {"do": "drop", "path": "a", "when": when})

    assert ("a" not in found, bool(changes)) == (holds, holds)


@pytest.mark.parametrize(
    ("wire_format", "body", "default", "thinks"),
    [
        ("anthropic_messages", {"thinking": {"type": "adaptive"}}, False, True),
        ("anthropic_messages", {"thinking": {"type": "disabled"}}, True, False),
        ("anthropic_messages", {"output_config": {"effort": "max"}}, False, False),
        ("anthropic_messages", {}, True, True),
        ("openai_chat", {"reasoning_effort": "none"}, True, False),
        ("openai_chat", {"reasoning_effort": "low"}, False, True),
        ("openai_chat", {"enable_thinking": False}, True, False),
        ("openai_chat", {"thinking": {"type": "enabled"}}, False, True),
        ("openai_responses", {"reasoning": {"effort": "none"}}, True, False),
        ("openai_responses", {"reasoning": {"effort": "high"}}, False, True),
        ("openai_responses", {"reasoning": {"summary": "auto"}}, False, False),
    ],
)
def test_thinking_is_on_as_the_request_says_or_the_model_does(
    wire_format: WireFormat,
    body: dict[str, Any],
    default: bool,
    thinks: bool,
) -> None:
    rule = {"do": "drop", "path": "a", "when": {"thinking_on": True}}

    found, _ = fit({"a": 1, **body}, rule, wire_format=wire_format, thinks=default)

    assert ("a" not in found) is thinks


def test_test_about_the_same_item_is_made_at_each_item() -> None:
    tools = [{"type": "web_search", "x": 1}, {"type": "function", "x": 1}]
    rule = {"do": "drop", "path": "tools[].x", "when": {"tools[].type": "web_search"}}

    found, changes = fit({"tools": tools}, rule)

    assert found == {"tools": [{"type": "web_search"}, {"type": "function", "x": 1}]}
    assert list(changes) == ["removed tools[].x (fit)"]


@pytest.mark.parametrize(
    ("tools", "left"),
    [
        ([{"type": "x"}], {}),
        ([{"type": "x"}, {"type": "y"}], {"tools": [{"type": "y"}], "tool_choice": "auto"}),
        ([], {"tools": [], "tool_choice": "auto"}),
    ],
)
def test_choice_of_a_tool_goes_with_the_last_tool(
    tools: list[dict[str, str]], left: dict[str, Any]
) -> None:
    rule = {"do": "keep_only", "path": "tools[].type", "members": ["!x"]}

    assert fit({"tools": tools, "tool_choice": "auto"}, rule)[0] == left


def test_escaped_key_within_a_history_is_found() -> None:
    body = rb'{"messages":[{"role":"user","\u0078y":1}]}'

    found, _ = fit(body, {"do": "drop", "path": "messages[].xy"})

    assert found == b'{"messages":[{"role":"user"}]}'


HEADERS = [
    ({"do": "drop_header", "header": "h"}, {"h": "a,b"}, {}),
    ({"do": "drop_header", "header": "h", "members": ["b*"]}, {"h": "a, b1 ,b2"}, {"h": "a"}),
    ({"do": "drop_header", "header": "h", "members": ["b"]}, {"h": "b"}, {}),
    ({"do": "drop_header", "header": "h", "members": ["x"]}, {"h": "a, b"}, {"h": "a, b"}),
    ({"do": "keep_only", "header": "h", "members": ["!b"]}, {"h": "a,b"}, {"h": "a"}),
    ({"do": "add_header", "header": "h", "value": "b"}, {}, {"h": "b"}),
    ({"do": "add_header", "header": "h", "value": "b"}, {"h": "a"}, {"h": "a,b"}),
    ({"do": "add_header", "header": "h", "value": "b"}, {"h": "a, b"}, {"h": "a, b"}),
    ({"do": "add_header", "header": "h", "value": "b", "when": {"x": 1}}, {}, {}),
]


@pytest.mark.parametrize(("rule", "before", "after"), HEADERS)
def test_rule_about_a_header_changes_its_members_and_tells(
    rule: dict[str, Any], before: dict[str, str], after: dict[str, str]
) -> None:
    headers = {"other": "1", **before}

    _, changes = fit({"a": 1}, rule, headers=headers)

    assert headers == {"other": "1", **after}
    assert bool(changes) is (before != after)


@pytest.mark.parametrize(
    ("rule", "refused"),
    [
        ({"why": "no"}, True),
        ({"why": "no", "path": "tools"}, True),
        ({"why": "no", "path": "other"}, False),
        ({"why": "no", "path": "tools[].x", "when": {"tools[].type": "b"}}, True),
        ({"why": "no", "path": "tools[].x", "when": {"tools[].type": "c"}}, False),
        ({"why": "no", "when": {"has_tools": False}}, False),
    ],
)
def test_refusal_says_why(rule: dict[str, Any], *, refused: bool) -> None:
    body = {"tools": [{"type": "a"}, {"type": "b", "x": 1}]}
    if not refused:
        assert fit(body, {"do": "refuse", **rule}) == (body, ())
        return
    with pytest.raises(RefusedError) as caught:
        fit(body, {"do": "refuse", "by": "who", **rule})

    assert (caught.value.status, caught.value.code) == (400, "model_refuses")
    assert "no (profile `who`); nothing was sent" in caught.value.message
    assert caught.value.headers["x-should-retry"] == "false"


@pytest.mark.parametrize(
    ("wire_format", "key"),
    [
        ("openai_chat", "max_tokens"),
        ("openai_chat", "max_completion_tokens"),
        ("openai_responses", "max_output_tokens"),
        ("anthropic_messages", "max_tokens"),
    ],
)
def test_limit_of_an_answer_is_lowered_to_that_of_the_model(
    wire_format: WireFormat, key: str
) -> None:
    found, changes = fit({key: 128000}, wire_format=wire_format, max_output=64000)

    assert found == {key: 64000}
    assert list(changes) == [f"lowered {key} from 128000 to 64000 (max_output)"]
    assert fit({key: 64000}, wire_format=wire_format, max_output=64000)[1] == ()


def test_rules_run_in_their_order() -> None:
    rules = [
        {"do": "rename", "path": "a", "to": "b"},
        {"do": "cap", "path": "b", "value": 3},
        {"do": "drop", "path": "c", "when": {"b": 3}},
    ]

    assert fit({"a": 9, "c": 1}, *rules)[0] == {"b": 3}


def test_rule_that_means_nothing_is_an_error_of_the_decision() -> None:
    with pytest.raises(PluginError, match="fit_model"):
        fit({}, {"do": "dorp"})


# --- what must always hold -----------------------------------------------------------------------

_MODELS = [
    ("claude-haiku-4-5", "anthropic_messages"),
    ("claude-opus-4-8", "anthropic_messages"),
    ("claude-sonnet-5-5", "anthropic_messages"),
    ("claude-opus-5-5", "anthropic_messages"),
    ("gpt-5.4-nano", "openai_responses"),
    ("gpt-5.6-sol", "openai_chat"),
    ("gpt-5.5", "openai_chat"),
    ("deepseek-v4-pro", "openai_chat"),
    ("kimi-k2.6", "openai_chat"),
    ("kimi-k3", "openai_chat"),
    ("glm-4.6", "openai_chat"),
    ("glm-5.3", "openai_chat"),
    ("gemini-3.1-pro", "openai_chat"),
    ("mistral-large", "openai_chat"),
    ("MiniMax-M3", "openai_chat"),
    ("grok-4.5", "openai_chat"),
]
_TEXT = st.sampled_from(["none", "minimal", "low", "medium", "high", "xhigh", "max", "auto"])
_PART = st.sampled_from(
    [
        {"type": "text", "text": "a"},
        {"type": "image", "source": {"type": "url", "url": "data:,"}},
        {"type": "image_url", "image_url": {"url": "data:,"}},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
        {"type": "tool_result", "tool_use_id": "t1", "content": "done"},
        {"type": "thinking", "thinking": "hm", "signature": "s"},
    ]
)
_MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system", "developer", "tool"]),
        "content": st.one_of(st.just("text"), st.lists(_PART, max_size=3)),
    },
    optional={
        "tool_call_id": st.sampled_from(["c1", "c2"]),
        "tool_calls": st.lists(
            st.sampled_from([{"id": "c1", "type": "function"}, {"id": "c2"}]), max_size=2
        ),
        "reasoning_content": st.just("hm"),
    },
)
_BODY = st.fixed_dictionaries(
    {},
    optional={
        "messages": st.lists(_MESSAGE, max_size=6),
        "input": st.lists(_MESSAGE, max_size=3),
        "max_tokens": st.sampled_from([1, 1024, 1025, 4096, 200000]),
        "max_completion_tokens": st.just(200000),
        "temperature": st.sampled_from([0, 0.5, 1]),
        "top_p": st.sampled_from([0.9, 0.95, 1]),
        "thinking": st.fixed_dictionaries(
            {"type": st.sampled_from(["enabled", "disabled", "adaptive", "between_tools"])},
            optional={"budget_tokens": st.sampled_from([1, 2000, 900000])},
        ),
        "output_config": st.fixed_dictionaries({}, optional={"effort": _TEXT}),
        "reasoning": st.fixed_dictionaries({}, optional={"effort": _TEXT, "mode": _TEXT}),
        "reasoning_effort": _TEXT,
        "tools": st.lists(
            st.sampled_from([{"type": "computer_20251124"}, {"function": {"strict": True}}]),
            max_size=2,
        ),
        "tool_choice": st.sampled_from(
            ["required", "auto", {"type": "any"}, {"type": "tool", "name": "x"}]
        ),
        "unknown": st.just(1.10),
    },
)


@given(body=_BODY, model=st.sampled_from(_MODELS))
def test_fitting_twice_is_fitting_once_and_reports_tell_of_every_change(
    body: dict[str, Any], model: tuple[str, WireFormat]
) -> None:
    name, wire_format = model
    profile = profile_of(ENTRIES, model=name, wire_format=wire_format, host="api.anthropic.com")
    parameters = {
        "rules": Rules.of(profile.rules),
        "max_output": profile.max_output,
        "thinks": profile.reasoning.default == "on",
    }
    rewrite = Rewrite(name="fit_model", parameters=parameters)
    data = json.dumps(body).encode()

    once, (report,) = apply_rewrites(ObjectText(data), [rewrite], TYPES, wire_format)
    twice, (again,) = apply_rewrites(ObjectText(once), [rewrite], TYPES, wire_format)

    assert (once != data) is bool(report.changes)
    assert (twice, again.changes) == (once, ())


@given(odd=st.text(max_size=20), spaces=st.text(" \t\r\n", max_size=3))
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_body_that_breaks_no_rule_keeps_its_bytes(
    wire_format: WireFormat, odd: str, spaces: str
) -> None:
    separators = (f"{spaces},{spaces}", f"{spaces}:")
    data = json.dumps({**PLAIN[wire_format], "odd": odd}, separators=separators).encode()
    for model, known in _MODELS:
        profile = profile_of(ENTRIES, model=model, wire_format=known, host="x")
        if known == wire_format:
            parameters = {"rules": Rules.of(profile.rules), "max_output": profile.max_output}
            rewrite = Rewrite(name="fit_model", parameters=parameters)
            assert apply_rewrites(ObjectText(data), [rewrite], TYPES, wire_format)[0] == data
