"""Which script and turn answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from switchyard_core.declarations import WireFormat
from switchyard_core.scripted import Script, check_script
from switchyard_core.scripted.select import Asked, Selector
from switchyard_core.wire import format_of
from tests.upstream.loopback import script_of

USER = {"role": "user", "content": "go"}
SAID = {"role": "assistant", "content": "yes"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "1"}


def asked(body: dict[str, Any], wire_format: WireFormat = "openai_chat", **headers: str) -> Asked:
    return Asked(
        format=format_of(wire_format),
        body=body,
        raw=json.dumps(body).encode(),
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def scripts(*entries: dict[str, Any]) -> Script:
    whole = {
        "version": 1,
        "scripts": [{"turns": [{"text": str(n)}], **e} for n, e in enumerate(entries)],
    }
    script, findings = check_script(json.dumps(whole))
    assert script is not None, findings
    return script


@pytest.mark.parametrize(
    ("when", "yes", "no"),
    [
        pytest.param(
            {"model": "^big"}, asked({"model": "big-1"}), asked({"model": "x"}), id="model"
        ),
        pytest.param({"model": "x"}, asked({"model": "x"}), asked({"model": 7}), id="odd_model"),
        pytest.param(
            {"has_tools": True}, asked({"tools": [{"name": "a"}]}), asked({"tools": []}), id="tools"
        ),
        pytest.param(
            {"has_tools": False}, asked({"tools": "x"}), asked({"functions": [{}]}), id="no_tools"
        ),
        pytest.param(
            {"header": {"X-A": "^1"}}, asked({}, x_a="12"), asked({}, x_a="2"), id="header"
        ),
        pytest.param({"header": {"X-A": ""}}, asked({}, x_a=""), asked({}), id="header_is_there"),
        pytest.param({"body": "é t"}, asked({"a": ["é t"]}), asked({"a": "e t"}), id="body"),
        pytest.param(
            {"format": "openai_chat"}, asked({}), asked({}, "anthropic_messages"), id="format"
        ),
    ],
)
def test_when_holds_or_not(when: dict[str, Any], yes: Asked, no: Asked) -> None:
    selector = Selector(scripts({"when": when}))

    assert selector.choose(yes) is not None
    assert selector.choose(no) is None


@pytest.mark.parametrize("key", ["model", "body", "header"])
def test_no_request_makes_a_pattern_slow(key: str) -> None:
    pattern, text = "(a+)+!", "a" * 100_000
    when = {"header": {"x-a": pattern}} if key == "header" else {key: pattern}
    selector = Selector(scripts({"when": when}))

    assert selector.choose(asked({"model": text}, x_a=text)) is None


def test_all_conditions_must_hold_and_the_first_script_wins() -> None:
    selector = Selector(
        scripts({"when": {"model": "a", "body": "b"}}, {"when": {"model": "a"}}, {})
    )

    chosen = [selector.choose(asked({"model": model, "x": x})) for model, x in ("ab", "ac", "cb")]

    assert [choice.script for choice in chosen if choice] == [0, 1, 2]


def test_turn_follows_the_history_and_the_last_repeats() -> None:
    selector = Selector(script_of({"text": "0"}, {"text": "1"}))

    chosen = [selector.choose(asked({"messages": [USER, SAID] * n})) for n in range(4)]

    assert [(c.number, c.turn.text) for c in chosen if c] == [
        (0, "0"),
        (1, "1"),
        (2, "1"),
        (3, "1"),
    ]


def test_offset_moves_the_turn_but_never_below_the_first() -> None:
    selector = Selector(script_of({"text": "0"}, {"text": "1"}, offset=-1))

    chosen = [selector.choose(asked({"messages": [SAID, USER] * n})) for n in range(3)]

    assert [c.turn.text for c in chosen if c] == ["0", "0", "1"]


def test_faults_are_counted_per_script() -> None:
    faults = [{"turn": 1, "status": 500, "times": 2}, {"kind": "drop"}]
    selector = Selector(
        scripts({"when": {"model": "a"}, "faults": faults}, {"faults": [{"status": 429}]})
    )

    def played(model: str, turn: int) -> int | str | None:
        choice = selector.choose(asked({"model": model, "messages": [USER, SAID] * turn}))
        assert choice is not None
        return choice.fault.status or choice.fault.kind if choice.fault else None

    assert [played("a", 1) for _ in range(4)] == [500, 500, "drop", None]
    assert [played("b", 1), played("b", 1)] == [429, None]
    assert played("a", 0) is None


@pytest.mark.parametrize(
    ("wire_format", "body", "turns"),
    [
        pytest.param("openai_chat", {"messages": [USER]}, 0, id="chat_none"),
        pytest.param(
            "openai_chat",
            {"messages": [USER, SAID, {"role": "tool"}, SAID, SAID, USER]},
            2,
            id="chat_neighbours_are_one",
        ),
        pytest.param("openai_chat", {"messages": "odd", "input": [SAID]}, 0, id="chat_odd"),
        pytest.param("openai_chat", {"messages": [7, SAID, None]}, 1, id="chat_odd_items"),
        pytest.param(
            "anthropic_messages", {"messages": [USER, SAID, USER, SAID]}, 2, id="messages"
        ),
        pytest.param("openai_responses", {"input": "go"}, 0, id="responses_text"),
        pytest.param(
            "openai_responses",
            {
                "input": [
                    USER,
                    {"type": "reasoning"},
                    {"type": "message", **SAID},
                    {"type": "function_call"},
                    {"type": "custom_tool_call"},
                    OUTPUT,
                    {"type": "local_shell_call"},
                    {"type": "local_shell_call_output"},
                    SAID,
                    USER,
                ]
            },
            3,
            id="responses_items",
        ),
    ],
)
def test_number_of_the_turn_counts_runs_of_the_assistant(
    wire_format: WireFormat, body: dict[str, Any], turns: int
) -> None:
    choice = Selector(scripts({})).choose(asked(body, wire_format))

    assert choice is not None
    assert choice.number == turns


@pytest.mark.parametrize(
    ("wire_format", "body", "names"),
    [
        pytest.param(
            "openai_chat",
            {
                "tools": [
                    {"type": "function", "function": {"name": "plain"}},
                    {"type": "custom", "custom": {"name": "custom"}},
                    {},
                    "odd",
                ],
                "functions": [{"name": "old"}],
            },
            ("plain", "custom", "old"),
            id="chat",
        ),
        pytest.param(
            "openai_responses",
            {
                "tools": [
                    {"type": "function", "name": "plain"},
                    {"type": "web_search"},
                    {
                        "type": "namespace",
                        "name": "mcp__a",
                        "tools": [{"type": "function", "name": "x"}, 7],
                    },
                ],
                "input": [
                    {"type": "additional_tools", "tools": [{"type": "custom", "name": "lite"}]},
                    7,
                ],
            },
            ("plain", "web_search", "mcp__a.x", "lite"),
            id="responses",
        ),
        pytest.param(
            "anthropic_messages",
            {"tools": [{"name": "plain", "input_schema": {}}, "odd"]},
            ("plain",),
            id="messages",
        ),
    ],
)
def test_offered_tools_are_read_in_the_shapes_of_the_format(
    wire_format: WireFormat, body: dict[str, Any], names: tuple[str, ...]
) -> None:
    assert asked(body, wire_format).offered == names
