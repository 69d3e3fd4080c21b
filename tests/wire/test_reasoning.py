from __future__ import annotations

import pytest

from switchyard_core import PluginError

CUT = "[earlier reasoning left out]\n"


def as_text(through: int = 0, cap: int = 16000):
    return ("reasoning_as_text", {"through_call": through, "max_chars": cap})


def drop(through: int = 0):
    return ("drop_opaque_reasoning", {"through_call": through})


def drop_to(message: int):
    return ("drop_opaque_reasoning", {"through_message": message})


COMPANIONS = ("drop_reasoning_companions", {"when": "dropped"})


def responses() -> dict:
    return {
        "model": "m",
        "input": [
            {"role": "user", "content": "fix"},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "think"}],
                "encrypted_content": "E1",
            },
            {"type": "message", "id": "msg_1", "role": "assistant", "content": "plan"},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "c1",
                "name": "e",
                "arguments": "{}",
            },
            {"type": "function_call_output", "id": "o_1", "call_id": "c1", "output": "ok"},
            {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "E2"},
            {
                "type": "function_call",
                "id": "fc_2",
                "call_id": "c2",
                "name": "e",
                "arguments": "{}",
            },
            {"type": "function_call_output", "id": "o_2", "call_id": "c2", "output": "ok"},
        ],
    }


def messages() -> dict:
    return {
        "model": "m",
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "context_management": {
            "edits": [{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}]
        },
        "messages": [
            {"role": "user", "content": "fix"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "think", "signature": "S1"},
                    {"type": "redacted_thinking", "data": "R"},
                    {"type": "tool_use", "id": "c1", "name": "e", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}],
            },
        ],
    }


def chat(content: object = None) -> dict:
    return {
        "model": "m",
        "messages": [
            {"role": "user", "content": "fix"},
            {
                "role": "assistant",
                "content": content,
                "reasoning_content": "think",
                "reasoning_details": [{"type": "reasoning.encrypted", "data": "D"}],
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "e", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            {"role": "assistant", "content": "x", "reasoning_content": "mine"},
        ],
    }


# --- as text -----------------------------------------------------------------------------


def test_responses_summary_becomes_an_assistant_message_at_its_place(rewrite):
    out, _ = rewrite("openai_responses", responses(), as_text())

    assert out["input"][1] == {"type": "message", "role": "assistant", "content": "think"}
    assert out["input"][2:] == responses()["input"][2:]


def test_responses_blank_summary_is_left_to_the_next_rewrite(rewrite):
    out, _ = rewrite("openai_responses", responses(), as_text(through=1))

    assert out["input"][5] == responses()["input"][5]


def test_messages_thinking_becomes_text_and_the_rest_of_it_goes(rewrite):
    out, _ = rewrite("anthropic_messages", messages(), as_text())

    kinds = [block["type"] for block in out["messages"][1]["content"]]
    assert kinds == ["text", "tool_use"]
    assert out["messages"][1]["content"][0] == {"type": "text", "text": "think"}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "think"),
        ("", "think"),
        ("plan", "think\n\nplan"),
        (
            [{"type": "text", "text": "plan"}],
            [{"type": "text", "text": "think"}, {"type": "text", "text": "plan"}],
        ),
    ],
    ids=["null", "empty", "text", "parts"],
)
def test_chat_reasoning_becomes_text_of_its_own_message(rewrite, content, expected):
    out, _ = rewrite("openai_chat", chat(content), as_text())

    message = out["messages"][1]
    assert message["content"] == expected
    assert list(message) == ["role", "content", "tool_calls"]
    assert out["messages"][3] == chat()["messages"][3]


def test_cap_keeps_the_newest_within_the_limit_and_reports_the_cut(rewrite):
    body = responses()
    body["input"][1]["summary"][0]["text"] = "x" * 60 + "nk"
    body["input"][5]["summary"] = [{"type": "summary_text", "text": "newer"}]

    out, reports = rewrite("openai_responses", body, as_text(through=1, cap=len(CUT) + 7))

    assert out["input"][1]["content"] == f"{CUT}nk"
    assert out["input"][5]["content"] == "newer"
    assert reports[0].changes[0] == "left out the oldest 60 characters of reasoning"


def test_cap_of_nothing_removes_the_reasoning(rewrite):
    out, _ = rewrite("anthropic_messages", messages(), as_text(cap=0))

    assert [b["type"] for b in out["messages"][1]["content"]] == ["tool_use"]


# --- dropping ----------------------------------------------------------------------------


def test_responses_planner_reasoning_goes_and_the_executors_stays(rewrite):
    out, reports = rewrite("openai_responses", responses(), drop())

    assert [item.get("id") for item in out["input"]] == [
        None,
        "msg_1",
        "fc_1",
        "o_1",
        "rs_2",
        "fc_2",
        "o_2",
    ]
    assert reports[0].changes == ("removed reasoning input[1]",)


def test_responses_followers_of_dropped_reasoning_lose_their_ids(rewrite):
    out, reports = rewrite("openai_responses", responses(), drop(), COMPANIONS)

    assert [item.get("id") for item in out["input"]] == [
        None,
        None,
        None,
        "o_1",
        "rs_2",
        "fc_2",
        "o_2",
    ]
    assert out["input"][2]["call_id"] == "c1"
    assert len(reports[1].changes) == 2


def test_messages_thinking_goes_with_its_parameter_and_its_context_edit(rewrite):
    out, reports = rewrite("anthropic_messages", messages(), drop(), COMPANIONS)

    assert [b["type"] for b in out["messages"][1]["content"]] == ["tool_use"]
    assert "thinking" not in out
    assert out["context_management"] == {"edits": [{"type": "clear_tool_uses_20250919"}]}
    assert reports[1].changes == (
        "removed thinking",
        "removed the context edit clear_thinking_20251015",
    )


def test_messages_only_edit_takes_context_management_with_it(rewrite):
    body = messages()
    del body["context_management"]["edits"][1]

    out, _ = rewrite("anthropic_messages", body, drop(), COMPANIONS)

    assert "context_management" not in out


def test_messages_thinking_parameter_stays_outside_a_tool_loop(rewrite):
    body = messages()
    body["messages"] += [
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
        {"role": "user", "content": "and now?"},
    ]

    out, _ = rewrite("anthropic_messages", body, drop(), COMPANIONS)

    assert out["thinking"] == body["thinking"]
    assert out["context_management"] == body["context_management"]


def test_messages_thinking_parameter_stays_while_the_executors_loop_thinks(rewrite):
    body = messages()
    body["messages"] += [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "own", "signature": "S2"},
                {"type": "tool_use", "id": "c2", "name": "r", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c2", "content": "ok"}],
        },
    ]

    out, _ = rewrite("anthropic_messages", body, drop(), COMPANIONS)

    assert out["thinking"] == body["thinking"]
    assert out["messages"][3] == body["messages"][3]


def test_messages_nothing_dropped_leaves_companions_alone(rewrite):
    body = messages()
    body["messages"][1]["content"] = body["messages"][1]["content"][2:]

    out, reports = rewrite("anthropic_messages", body, drop(), COMPANIONS)

    assert out == body
    assert [report.changes for report in reports] == [(), ()]


def test_chat_reasoning_keys_go_from_the_planners_messages(rewrite):
    out, _ = rewrite("openai_chat", chat("plan"), drop())

    assert list(out["messages"][1]) == ["role", "content", "tool_calls"]
    assert out["messages"][3]["reasoning_content"] == "mine"


@pytest.mark.parametrize(
    ("wire_format", "body"),
    [
        ("openai_responses", responses()),
        ("openai_chat", chat()),
        ("anthropic_messages", messages()),
    ],
)
def test_deciding_call_that_is_gone_leaves_everything(rewrite, wire_format, body):
    out, _ = rewrite(wire_format, body, as_text(through=9), drop(through=9), COMPANIONS)

    assert out == body


def test_foreign_continuation_id_is_removed_only_when_asked(rewrite):
    body = responses() | {"previous_response_id": "resp_1", "conversation": None}

    kept, _ = rewrite("openai_responses", body, ("drop_reasoning_companions", {"when": "always"}))
    gone, _ = rewrite(
        "openai_responses",
        body,
        ("drop_reasoning_companions", {"when": "always", "drop_continuation": True}),
    )

    assert kept["previous_response_id"] == "resp_1"
    assert "previous_response_id" not in gone


def test_responses_kept_reasoning_keeps_its_id_and_its_follower_too(rewrite):
    body = responses()
    blank = {"type": "reasoning", "id": "rs_x", "summary": [], "encrypted_content": "E"}
    body["input"].insert(2, blank)

    out, _ = rewrite("openai_responses", body, as_text(), COMPANIONS)

    assert out["input"][2:] == body["input"][2:]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "a", "annotations": []}],
            },
            {"type": "message", "role": "assistant", "content": "a"},
        ),
        (
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "content": [{"type": "refusal", "refusal": "no"}],
            },
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "refusal", "refusal": "no"}],
            },
        ),
        (
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "web_search_call", "id": "ws_", "status": "completed"},
        ),
    ],
    ids=["message", "refusal", "search"],
)
def test_responses_follower_loses_its_id_as_its_type_allows(rewrite, item, expected):
    body = responses()
    body["input"][2] = item

    out, _ = rewrite("openai_responses", body, drop(), COMPANIONS)

    found = out["input"][1]
    if "id" in expected:
        assert found["id"].startswith(expected["id"])
        assert found["id"] != item["id"]
        found["id"] = expected["id"]
    assert found == expected


def test_messages_user_turn_in_two_messages_is_one_tool_loop(rewrite):
    body = messages()
    body["messages"].append({"role": "user", "content": "and also"})

    out, _ = rewrite("anthropic_messages", body, drop(), COMPANIONS)

    assert "thinking" not in out


def test_messages_executors_own_loop_without_thinking_keeps_the_parameter(rewrite):
    body = messages()
    use = {"type": "tool_use", "id": "c2", "name": "r", "input": {}}
    body["messages"] += [
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "next task"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c2", "content": "k"}]},
    ]

    out, _ = rewrite(
        "anthropic_messages", body, drop(), ("drop_reasoning_companions", {"when": "always"})
    )

    assert out["thinking"] == body["thinking"]


@pytest.mark.parametrize(
    ("message", "left"),
    [(0, ["rs_1", "rs_2"]), (1, ["rs_2"]), (2, ["rs_2"]), (3, []), (99, [])],
)
def test_drop_through_a_message_takes_the_assistants_turns_up_to_there(rewrite, message, left):
    body, _ = rewrite("openai_responses", responses(), drop_to(message))

    assert [item["id"] for item in body["input"] if item.get("type") == "reasoning"] == left


@pytest.mark.parametrize("parameters", [{}, {"through_call": 0, "through_message": 0}])
def test_drop_needs_one_place(rewrite, parameters):
    with pytest.raises(PluginError, match="either `through_call` or `through_message`"):
        rewrite("openai_responses", responses(), ("drop_opaque_reasoning", parameters))
