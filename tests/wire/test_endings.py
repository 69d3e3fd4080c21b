"""Rewrites at the end of the history, on cache marks and on parameters."""

from __future__ import annotations

import pytest

TEXT = "Carry the plan out."
HANDOFF = ("append_user_text", {"text": TEXT})


def test_chat_handoff_prompt_is_a_new_user_message(rewrite):
    body = {"messages": [{"role": "user", "content": "x"}, {"role": "tool", "content": "ok"}]}

    out, _ = rewrite("openai_chat", body, HANDOFF)

    assert out["messages"] == [*body["messages"], {"role": "user", "content": TEXT}]


@pytest.mark.parametrize(
    ("wire_format", "key", "items"),
    [
        (
            "openai_chat",
            "messages",
            [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}],
        ),
        ("openai_responses", "input", [{"type": "function_call", "call_id": "c", "name": "f"}]),
        (
            "anthropic_messages",
            "messages",
            [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f"}]}],
        ),
    ],
)
@pytest.mark.parametrize("name", ["append_user_text", "end_with_user_turn"])
def test_open_call_gets_nothing_behind_it(rewrite, wire_format, key, items, name):
    parameters = {"text": TEXT} if name == "append_user_text" else {}

    assert rewrite(wire_format, {key: items}, (name, parameters))[0] == {key: items}


def test_responses_handoff_prompt_never_parts_reasoning_from_its_follower(rewrite):
    items = [{"role": "user", "content": "x"}, {"type": "reasoning", "id": "r", "summary": []}]

    out, _ = rewrite("openai_responses", {"input": items}, HANDOFF)

    ours = {"type": "message", "role": "user", "content": TEXT}
    assert out["input"] == [items[0], ours, items[1]]


def test_responses_input_text_becomes_two_messages(rewrite):
    out, _ = rewrite("openai_responses", rb'{"input":"caf\u00e9"}', HANDOFF)

    assert out == (
        rb'{"input":[{"type":"message","role":"user","content":"caf\u00e9"},'
        rb'{"type":"message","role":"user","content":"Carry the plan out."}]}'
    )


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("fix", [{"type": "text", "text": "fix"}, {"type": "text", "text": TEXT}]),
        (
            [{"type": "tool_result", "tool_use_id": "c", "cache_control": {"type": "ephemeral"}}],
            [
                {"type": "tool_result", "tool_use_id": "c", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": TEXT},
            ],
        ),
    ],
    ids=["text", "result"],
)
def test_messages_handoff_prompt_is_the_last_block_of_the_last_user_message(
    rewrite, last, expected
):
    body = {"messages": [{"role": "user", "content": last}, {"role": "system", "content": "s"}]}

    out, _ = rewrite("anthropic_messages", body, HANDOFF)

    assert out["messages"][0]["content"] == expected
    assert out["messages"][1] == body["messages"][1]


def test_messages_after_assistant_text_it_is_a_new_user_message(rewrite):
    body = {"messages": [{"role": "assistant", "content": "done"}]}

    out, _ = rewrite("anthropic_messages", body, HANDOFF)

    assert out["messages"][1] == {"role": "user", "content": TEXT}


@pytest.mark.parametrize("wire_format", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_prefill_is_kept_and_a_user_turn_follows(rewrite, wire_format):
    key = "input" if wire_format == "openai_responses" else "messages"
    body = {key: [{"role": "user", "content": "x"}, {"role": "assistant", "content": "so far"}]}

    out, _ = rewrite(wire_format, body, ("end_with_user_turn", {}))

    assert out[key][:2] == body[key]
    assert out[key][2]["role"] == "user"
    assert (
        rewrite(wire_format, {key: body[key][:1]}, ("end_with_user_turn", {}))[0][key]
        == body[key][:1]
    )


# --- cache marks -------------------------------------------------------------------------

MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def test_marks_over_four_go_from_the_earliest_messages(rewrite):
    text = [{"type": "text", "text": str(n), **MARK} for n in range(3)]
    body = {
        "tools": [{"name": "t", **MARK}],
        "system": [{"type": "text", "text": "s", **MARK}],
        "messages": [{"role": "user", "content": [block]} for block in text],
    }

    out, reports = rewrite("anthropic_messages", body, ("limit_cache_marks", {"when": "always"}))

    assert "cache_control" not in out["messages"][0]["content"][0]
    assert [m["content"][0] for m in out["messages"][1:]] == text[1:]
    assert (out["tools"], out["system"]) == (body["tools"], body["system"])
    assert reports[0].changes == ("removed the cache mark of messages[0].content[0]",)


def test_mark_on_an_empty_block_goes(rewrite):
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": "", **MARK}]}]}

    out, _ = rewrite("anthropic_messages", body, ("limit_cache_marks", {"when": "always"}))

    assert out["messages"][0]["content"][0] == {"type": "text", "text": ""}


def test_marks_inside_results_count(rewrite):
    inner = [{"type": "text", "text": str(n), **MARK} for n in range(5)]
    result = {"type": "tool_result", "tool_use_id": "c", "content": inner}
    body = {"messages": [{"role": "user", "content": [result]}]}

    out, _ = rewrite("anthropic_messages", body, ("limit_cache_marks", {"when": "always"}))

    assert (
        sum("cache_control" in block for block in out["messages"][0]["content"][0]["content"]) == 4
    )


# --- parameters --------------------------------------------------------------------------


def test_set_model_changes_its_bytes_only(rewrite):
    data = b'{ "n" : 1.10 ,"model":"a" , "x":1e400,"y":' + b"9" * 70 + b"}"

    out, _ = rewrite("openai_chat", data, ("set_model", {"id": "b/c"}))

    assert out == data.replace(b'"a"', b'"b/c"')


def test_extra_body_fills_only_what_is_not_set(rewrite):
    body = {"temperature": None, "messages": []}

    out, reports = rewrite(
        "openai_chat",
        body,
        ("target_parameters", {"extra_body": {"temperature": 1, "seed": {"a": 2}}}),
    )

    assert out == {**body, "seed": {"a": 2}}
    assert reports[0].changes == ("set seed",)


@pytest.mark.parametrize(
    ("wire_format", "before", "after"),
    [
        ("openai_chat", {}, {"reasoning_effort": "low"}),
        (
            "openai_responses",
            {"reasoning": {"summary": "auto"}},
            {"reasoning": {"summary": "auto", "effort": "low"}},
        ),
        ("openai_responses", {"reasoning": None}, {"reasoning": {"effort": "low"}}),
        (
            "anthropic_messages",
            {"output_config": {"effort": "high"}},
            {"output_config": {"effort": "low"}},
        ),
    ],
)
def test_effort_is_set_where_the_format_keeps_it(rewrite, wire_format, before, after):
    assert rewrite(wire_format, before, ("reasoning_effort", {"effort": "low"}))[0] == after


def test_mark_on_the_request_itself_takes_one_of_the_four(rewrite):
    text = [{"type": "text", "text": str(n), **MARK} for n in range(4)]
    body = {"messages": [{"role": "user", "content": text}], **MARK}

    out, _ = rewrite("anthropic_messages", body, ("limit_cache_marks", {"when": "always"}))

    assert sum("cache_control" in block for block in out["messages"][0]["content"]) == 3
    assert "cache_control" in out


def test_responses_prompt_before_reasoning_and_a_user_turn_is_added_once(rewrite):
    body = {"input": [{"role": "user", "content": "x"}, {"type": "reasoning", "summary": []}]}

    out, _ = rewrite("openai_responses", body, HANDOFF, ("end_with_user_turn", {}))

    assert str(out).count(TEXT) == 1


def test_interrupted_call_does_not_keep_the_prompt_away(rewrite):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = {
        "messages": [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "user", "content": "stop, do that instead"},
        ]
    }

    out, _ = rewrite("openai_chat", body, HANDOFF)

    assert out["messages"][-1]["content"] == TEXT
