"""The named repairs, beyond what the table of the shipped rules shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from switchyard_core.decision import RewriteScope
from switchyard_core.declarations import WireFormat
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire.rewrites.repairs import REPAIRS

MESSAGES: WireFormat = "anthropic_messages"
BUDGETS = {"low": 2048, "high": 16384, "default": 8192}


def repaired(
    name: str,
    body: dict[str, Any],
    value: Any = None,
    wire_format: WireFormat = "openai_chat",
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return the repaired body; again must change nothing, and changes are told."""
    tree = ObjectText(json.dumps(body).encode())
    changes = REPAIRS[name].run(
        tree, value, RewriteScope(wire_format=wire_format, headers=headers or {})
    )
    once = tree.dump()
    assert bool(changes) is (json.loads(once) != body)
    again = ObjectText(once)
    assert REPAIRS[name].run(again, value, RewriteScope(wire_format=wire_format)) in ([], ())
    assert again.dump() == once
    found: dict[str, Any] = json.loads(once)
    return found


# --- thinking -------------------------------------------------------------------------------------


def loop(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    use = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    return [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [*blocks, use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]},
    ]


THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}
ADAPTIVE = {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize(
    ("body", "thinking"),
    [
        ({"max_tokens": 64000, "output_config": {"effort": "high"}}, 16384),
        ({"max_tokens": 64000, "output_config": {"effort": "low"}}, 2048),
        ({"max_tokens": 64000}, 8192),
        ({"max_tokens": 64000, "output_config": {"effort": "new"}}, 8192),
        ({"max_tokens": 4096, "output_config": {"effort": "high"}}, 2048),
        ({"max_tokens": 1500}, 1024),
        ({"max_tokens": 1024}, None),
        ({}, None),
        ({"max_tokens": 64000, "tool_choice": {"type": "tool", "name": "x"}}, None),
        ({"max_tokens": 64000, "tool_choice": {"type": "auto"}}, 8192),
        ({"max_tokens": 64000, "messages": loop(THINKING)}, 8192),
        ({"max_tokens": 64000, "messages": loop()}, None),
        ({"max_tokens": 64000, "messages": [*loop(), {"role": "system", "content": "x"}]}, None),
        ({"max_tokens": 64000, "messages": [*loop(), {"role": "assistant", "content": "x"}]}, 8192),
    ],
)
def test_adaptive_thinking_gets_a_budget_where_one_is_possible(
    body: dict[str, Any], thinking: int | None
) -> None:
    found = repaired("adaptive_to_budget", {**body, "thinking": ADAPTIVE}, BUDGETS, MESSAGES)

    expected = {**ADAPTIVE, "type": "enabled", "budget_tokens": thinking}
    assert found.get("thinking") == (expected if thinking else None)


def test_context_edit_of_thinking_goes_with_it() -> None:
    edits = [{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}]
    body = {"thinking": ADAPTIVE, "context_management": {"edits": edits}}

    found = repaired("adaptive_to_budget", body, None, MESSAGES)

    assert found == {"context_management": {"edits": edits[1:]}}


@pytest.mark.parametrize(
    ("budget", "limit", "headers", "fitting"),
    [
        (500, 8000, {}, 1024),
        (8000, 8000, {}, 4000),
        (7999, 8000, {}, 7999),
        (9000, None, {}, 9000),
        (9000, 8000, {"anthropic-beta": "a, interleaved-x"}, 9000),
        (500, 1500, {"anthropic-beta": "a, interleaved-x"}, 1024),
        (2000, 1000, {}, None),
    ],
)
def test_budget_fits_below_the_limit_unless_thinking_is_interleaved(
    budget: int, limit: int | None, headers: dict[str, str], fitting: int | None
) -> None:
    body: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": budget}}
    if limit is not None:
        body["max_tokens"] = limit
    tree = ObjectText(json.dumps(body).encode())
    value = {"header": "anthropic-beta", "member": "interleaved-x"}

    REPAIRS["fit_budget"].run(tree, value, RewriteScope(wire_format=MESSAGES, headers=headers))

    found = json.loads(tree.dump()).get("thinking")
    assert found == ({"type": "enabled", "budget_tokens": fitting} if fitting else None)


@pytest.mark.parametrize(
    ("native", "body", "after"),
    [
        ("thinking", {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        ("thinking", {"reasoning_effort": "low"}, {"thinking": {"type": "enabled"}}),
        ("enable_thinking", {"reasoning": {"effort": "none"}}, {"enable_thinking": False}),
        ("reasoning_effort", {"reasoning": {"effort": "high"}}, {"reasoning_effort": "high"}),
        ("reasoning_effort", {"reasoning_effort": "high"}, {"reasoning_effort": "high"}),
        (
            "thinking",
            {"thinking": {"type": "disabled"}, "reasoning_effort": "high"},
            {"thinking": {"type": "disabled"}},
        ),
        ("thinking", {"reasoning": {"max_tokens": 9}}, {}),
        ("thinking", {}, {}),
    ],
)
def test_effort_is_said_by_the_key_of_the_model(
    native: str, body: dict[str, Any], after: dict[str, Any]
) -> None:
    assert repaired("effort_to_native", body, native) == after


def test_missing_reasoning_gets_a_placeholder_or_its_other_name() -> None:
    call = [{"id": "c1"}]
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b", "reasoning": "so"},
        {"role": "assistant", "tool_calls": call},
        {"role": "assistant", "tool_calls": call, "reasoning_content": "kept"},
        {"role": "assistant", "content": "d", "reasoning_content": None},
    ]

    every = repaired("reasoning_placeholder", {"messages": messages}, {"text": "-"})
    calls = repaired("reasoning_placeholder", {"messages": messages}, {"calls_only": True})

    assert [m.get("reasoning_content") for m in every["messages"]] == [None, "so", "-", "kept", "-"]
    assert [m.get("reasoning_content") for m in calls["messages"]] == [None, None, "", "kept", None]


def test_first_call_of_each_message_gets_a_signature() -> None:
    signed = {"google": {"thought_signature": "own"}, "other": 1}
    messages = [
        {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]},
        {"role": "assistant", "tool_calls": [{"id": "c", "extra_content": signed}]},
        {"role": "assistant", "tool_calls": [{"id": "d", "extra_content": {"other": 1}}]},
        {"role": "assistant", "tool_calls": []},
        {"role": "user", "content": "x"},
    ]

    found = repaired("signature_placeholder", {"messages": messages}, "skip")["messages"]

    skip = {"google": {"thought_signature": "skip"}}
    assert found[0]["tool_calls"] == [{"id": "a", "extra_content": skip}, {"id": "b"}]
    assert found[1:2] == messages[1:2]
    assert found[2]["tool_calls"][0]["extra_content"] == {"other": 1, **skip}
    assert found[3:] == messages[3:]


def test_thinking_without_a_signature_goes_and_a_budget_with_it_in_an_open_loop() -> None:
    first, made, result = loop()
    signed = {"type": "thinking", "thinking": "a", "signature": "c2ln"}
    unsigned = {**signed, "signature": ""}
    alone = {"role": "assistant", "content": [unsigned]}
    kept = {"role": "assistant", "content": [signed, *made["content"]]}
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 2000}}
    open_loop = {**made, "content": [unsigned, *made["content"]]}

    def left(*messages: dict[str, Any]) -> dict[str, Any]:
        body = {"messages": list(messages), **thinking}
        return repaired("drop_unsigned_thinking", body, None, MESSAGES)

    assert left(first, kept, result, alone) == {"messages": [first, kept, result], **thinking}
    assert left(first, open_loop, result) == {"messages": [first, made, result]}
    assert left(first, kept, result) == {"messages": [first, kept, result], **thinking}


# --- roles and order ------------------------------------------------------------------------------


def test_instruction_between_a_call_and_its_result_moves_behind_the_result() -> None:
    first, made, result = loop()
    note = {"role": "system", "content": "note"}

    found = repaired(
        "system_row_to_user", {"messages": [first, made, note, result]}, None, MESSAGES
    )

    assert found["messages"] == [first, made, result, {"role": "user", "content": "note"}]


def test_directive_does_not_become_an_empty_message_of_the_user() -> None:
    said, more = {"role": "user", "content": "a"}, {"output_config": {"effort": "low"}}
    text, change = {"type": "text", "text": "b"}, {"type": "tool_removal", "tool": {"name": "x"}}
    rows: list[Any] = [
        {"role": "system", "content": [], **more},
        {"role": "system", "content": [change]},
        {"role": "system", "content": [text, change], "clear_at": "never", **more},
    ]

    found = repaired("system_row_to_user", {"messages": [said, *rows]}, None, MESSAGES)

    assert found["messages"] == [said, {"role": "user", "content": [text]}]


def test_report_of_instructions_tells_which_were_turned_and_which_went() -> None:
    said, more = {"role": "user", "content": "a"}, {"output_config": {"effort": "low"}}
    only, note = {"role": "system", "content": [], **more}, {"role": "system", "content": "b"}
    turned = "turned system messages of the history into the user's"
    rows: list[tuple[list[Any], list[str]]] = [
        ([said], []),
        ([said, only], ["removed output_config of messages[1]", "removed the empty messages[1]"]),
        ([said, note], [f"{turned}: 1"]),
        ([said, {**note, **more}], [f"{turned}: 1", "removed output_config of messages[1]"]),
        (
            [said, note, only],
            [
                f"{turned}: 1",
                "removed output_config of messages[2]",
                "removed the empty messages[2]",
            ],
        ),
    ]
    for messages, told in rows:
        body = ObjectText(json.dumps({"messages": messages}).encode())
        scope = RewriteScope(wire_format=MESSAGES)
        assert list(REPAIRS["system_row_to_user"].run(body, None, scope)) == told


def test_leading_instructions_of_chat_stay_and_later_ones_become_the_users() -> None:
    tool = {"role": "tool", "tool_call_id": "c", "content": "x"}
    rows = [("system", "a"), ("developer", "b"), ("user", "c"), ("system", "d")]
    messages = [{"role": role, "content": text} for role, text in rows]

    found = repaired("system_row_to_user", {"messages": [*messages, tool]})["messages"]

    assert [message["role"] for message in found] == [
        *("system", "developer", "user", "tool", "user"),
    ]


@pytest.mark.parametrize(
    ("left", "right", "joined"),
    [
        ("a", "b", "a\n\nb"),
        ("a", [{"type": "text", "text": "b"}], ["a", "b"]),
        ([{"type": "text", "text": "a"}], "b", ["a", "b"]),
        ("a", [], ["a"]),
        (None, "b", None),
    ],
)
def test_leading_instructions_become_one_message(left: Any, right: Any, joined: Any) -> None:
    user = {"role": "user", "content": "c"}
    rows = [{"role": "system", "content": left}, {"role": "developer", "content": right}]

    found = repaired("merge_system", {"messages": [*rows, user]})["messages"]

    if joined is None:
        assert found == [*rows, user]
        return
    parts = [{"type": "text", "text": text} for text in joined]
    expected = joined if isinstance(joined, str) else parts
    assert found == [{"role": "system", "content": expected}, user]


def test_results_come_to_their_calls_in_the_order_of_their_turns() -> None:
    def calls(*ids: str) -> dict[str, Any]:
        return {"role": "assistant", "tool_calls": [{"id": name} for name in ids]}

    def result(name: str) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": name, "content": name}

    said = {"role": "user", "content": "x"}
    messages = [calls("a", "b"), said, result("b"), calls("c"), result("a"), result("c"), said]

    found = repaired("pull_tool_results_up", {"messages": messages})["messages"]

    assert found == [
        *(calls("a", "b"), result("b"), result("a"), said),
        *(calls("c"), result("c"), said),
    ]


@pytest.mark.parametrize(
    ("wire_format", "key", "part", "text"),
    [
        ("openai_chat", "messages", {"type": "image_url", "image_url": {"url": "x"}}, "text"),
        ("openai_responses", "input", {"type": "input_image", "image_url": "x"}, "input_text"),
        (MESSAGES, "messages", {"type": "image", "source": {}}, "text"),
    ],
)
def test_image_becomes_a_text_of_the_format(
    wire_format: WireFormat, key: str, part: dict[str, Any], text: str
) -> None:
    said = {"type": text, "text": "see"}
    body = {key: [{"role": "user", "content": [said, part]}]}

    found = repaired("image_to_text", body, None, wire_format)[key][0]["content"]

    assert found[0] == said
    assert found[1]["type"] == text
    assert "image was left out" in found[1]["text"]


def test_image_within_a_result_becomes_a_text() -> None:
    inner = [{"type": "image", "source": {}}]
    block = {"type": "tool_result", "tool_use_id": "t", "content": inner}
    body = {"messages": [{"role": "user", "content": [block]}]}

    found = repaired("image_to_text", body, None, MESSAGES)["messages"][0]["content"][0]

    assert found["content"][0]["type"] == "text"


@pytest.mark.parametrize("name", sorted(REPAIRS))
@pytest.mark.parametrize("wire_format", ["openai_chat", "openai_responses", MESSAGES])
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": "text", "input": "text", "thinking": 3, "reasoning": 4, "reasoning_effort": 5},
        {"messages": [3, None, {}], "input": [None], "thinking": {"type": 7}},
        {"messages": [{"role": "assistant", "tool_calls": [3], "content": [4]}]},
    ],
)
def test_odd_bodies_are_left_to_the_provider(
    name: str, wire_format: WireFormat, body: dict[str, Any]
) -> None:
    if name == "reasoning_placeholder":
        body = {key: value for key, value in body.items() if key != "messages"}
    repaired(name, body, "x", wire_format)
