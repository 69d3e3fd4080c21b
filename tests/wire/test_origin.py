"""What only its provider can read, in each wire format, and what another provider gets instead."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchyard_core import Request, Rewrite
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire.rewrites import CORE_REWRITES, apply_rewrites

TYPES = {rewrite.name: rewrite for rewrite in CORE_REWRITES}

#: Parts of an assistant's turn, the format's way, and what is left of each; ``None`` for nothing.
RESPONSES: dict[str, tuple[Any, Any]] = {
    "agent_message": ({"type": "agent_message", "content": []}, None),
    "sealed_item": ({"type": "notes", "encrypted_content": "E"}, None),
    "code_interpreter": ({"type": "code_interpreter_call", "id": "ci", "container_id": "c"}, None),
    "image_generation": ({"type": "image_generation_call", "id": "ig", "result": "AAAA"}, None),
    "mcp_list_tools": ({"type": "mcp_list_tools", "id": "ml", "server_label": "s"}, None),
    "mcp_approval": ({"type": "mcp_approval_request", "id": "ma", "name": "n"}, None),
    "hosted_shell": (
        {
            "type": "shell_call",
            "call_id": "s1",
            "action": {},
            "environment": {"type": "container_reference", "container_id": "c"},
        },
        {"type": "shell_call", "call_id": "s1", "action": {}},
    ),
    "annotation": (
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": "see",
                    "annotations": [
                        {"type": "file_citation", "file_id": "f"},
                        {"type": "url_citation", "url": "u"},
                    ],
                }
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": "see",
                    "annotations": [{"type": "url_citation", "url": "u"}],
                }
            ],
        },
    ),
    "sealed_part": (
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "hi"},
                {"type": "encrypted_content", "encrypted_content": "E"},
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "hi"}],
        },
    ),
}
MESSAGES: dict[str, tuple[Any, Any]] = {
    "server_tool_use": ({"type": "server_tool_use", "id": "srvtoolu_1", "name": "w"}, None),
    "server_result": (
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"type": "web_search_result", "encrypted_content": "E"}],
        },
        None,
    ),
    "sealed_block": ({"type": "search_result", "encrypted_content": "E"}, None),
    "citation": (
        {
            "type": "text",
            "text": "so",
            "citations": [{"type": "web_search_result_location", "encrypted_index": "I"}],
        },
        {"type": "text", "text": "so"},
    ),
    "readable_compaction": (
        {"type": "compaction", "content": "what was said"},
        {"type": "text", "text": "what was said"},
    ),
}
CHAT: dict[str, tuple[Any, Any]] = {
    "thinking_blocks": ({"thinking_blocks": [{"type": "thinking", "signature": "S"}]}, {}),
    "reasoning_signature": ({"reasoning_signature": "S"}, {}),
    "message_signatures": (
        {"provider_specific_fields": {"thought_signatures": ["S"], "other": 1}},
        {"provider_specific_fields": {"other": 1}},
    ),
    "message_extra": ({"extra_content": {"google": {"thought_signature": "S"}}}, {}),
}
LOST = "[a file of this message is not available here]"
GONE = "[an earlier part of this conversation is missing]"
SUMMARY = {"type": "message", "role": "user", "content": GONE}
#: Parts whose loss loses context: what is left where that is allowed.
CONTEXT: dict[str, dict[str, tuple[Any, Any]]] = {
    "openai_responses": {
        "compaction": ({"type": "compaction", "encrypted_content": "E"}, SUMMARY),
        "compaction_summary": ({"type": "compaction_summary", "encrypted_content": "E"}, SUMMARY),
        "context_compaction": ({"type": "context_compaction", "encrypted_content": "E"}, SUMMARY),
        "item_reference": ({"type": "item_reference", "id": "msg_1"}, None),
        "bare_reference": ({"id": "msg_1"}, None),
        "file": (
            {"role": "user", "content": [{"type": "input_file", "file_id": "f"}]},
            {"role": "user", "content": [{"type": "input_text", "text": LOST}]},
        ),
    },
    "anthropic_messages": {
        "compaction": (
            {"role": "assistant", "content": [
                {"type": "compaction", "content": None, "encrypted_content": "E"},
                {"type": "text", "text": "ok"},
            ]},
            {"role": "assistant", "content": [
                {"type": "text", "text": GONE},
                {"type": "text", "text": "ok"},
            ]},
        ),
        "file": (
            {"role": "user", "content": [
                {"type": "document", "source": {"type": "file", "file_id": "f"}}
            ]},
            {"role": "user", "content": [{"type": "text", "text": LOST}]},
        ),
        "upload": (
            {"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]},
            {"role": "user", "content": [{"type": "text", "text": LOST}]},
        ),
        "file_of_a_result": (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [
                {"type": "image", "source": {"type": "file", "file_id": "f"}}
            ]}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [
                {"type": "text", "text": LOST}
            ]}]},
        ),
    },
    "openai_chat": {
        "file": (
            {"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]},
            {"role": "user", "content": [{"type": "text", "text": LOST}]},
        ),
    },
}  # fmt: skip
CONTEXT_CASES = [
    pytest.param(wire_format, item, left, id=f"{wire_format}-{name}")
    for wire_format, cases in CONTEXT.items()
    for name, (item, left) in cases.items()
]


#: What may be in a history, as items of it.
ITEMS: dict[str, list[Any]] = {
    "openai_responses": [item for item, _ in RESPONSES.values()],
    "anthropic_messages": [
        {"role": "assistant", "content": [{"type": "text", "text": "x"}, block]}
        for block, _ in MESSAGES.values()
    ],
    "openai_chat": [{"role": "assistant", "content": "x"} | part for part, _ in CHAT.values()],
}
for _wire_format, _cases in CONTEXT.items():
    ITEMS[_wire_format] += [
        {"role": "user", "content": "y"},
        {"role": "assistant", "content": "z"},
        *(item for item, _ in _cases.values()),
    ]


def drop(*, context: bool = False, **place: Any) -> tuple[str, dict[str, Any]]:
    return "drop_origin_bound", {**(place or {"through_call": 0}), "context": context}


def body(wire_format: str, *before: Any, after: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Return a history with an edit by the planner, and items before and after it."""
    if wire_format == "openai_responses":
        edit = {"type": "function_call", "call_id": "c", "name": "edit", "arguments": "{}"}
        done = {"type": "function_call_output", "call_id": "c", "output": "ok"}
        return {"model": "m", "input": [*before, edit, done, *after]}
    if wire_format == "anthropic_messages":
        edit = {"type": "tool_use", "id": "c", "name": "edit", "input": {}}
        done = {"type": "tool_result", "tool_use_id": "c", "content": "ok"}
    else:
        edit = {"id": "c", "type": "function", "function": {"name": "edit", "arguments": "{}"}}
        done = {"role": "tool", "tool_call_id": "c", "content": "ok"}
        asked = {"role": "assistant", "content": None, "tool_calls": [edit]}
        return {"model": "m", "messages": [*before, asked, done, *after]}
    turn = [{"role": "assistant", "content": [edit]}, {"role": "user", "content": [done]}]
    return {"model": "m", "messages": [*before, *turn, *after]}


def left_of(wire_format: str, *items: Any) -> dict[str, Any]:
    return body(wire_format, *(item for item in items if item is not None))


@pytest.mark.parametrize("name", RESPONSES)
def test_responses_items_go_before_the_handoff_and_stay_behind_it(rewrite, name):
    item, left = RESPONSES[name]
    own = body("openai_responses", after=({"role": "assistant", "content": "x"}, item))

    out, reports = rewrite("openai_responses", body("openai_responses", item), drop())
    kept, silent = rewrite("openai_responses", own, drop())

    assert out == left_of("openai_responses", left)
    assert len(reports[0].changes) == 1
    assert "input[0]" in reports[0].changes[0]
    assert (kept, silent[0].changes) == (own, ())


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_blocks_go_before_the_handoff_and_stay_behind_it(rewrite, name):
    block, left = MESSAGES[name]
    said = {"type": "text", "text": "x"}
    turn = {"role": "assistant", "content": [said, block]}
    own = body("anthropic_messages", after=(turn,))

    out, reports = rewrite("anthropic_messages", body("anthropic_messages", turn), drop())
    kept, silent = rewrite("anthropic_messages", own, drop())

    blocks = [said] if left is None else [said, left]
    assert out == left_of("anthropic_messages", {"role": "assistant", "content": blocks})
    assert "messages[0].content[1]" in reports[0].changes[0]
    assert (kept, silent[0].changes) == (own, ())


@pytest.mark.parametrize("name", CHAT)
def test_chat_signatures_go_before_the_handoff_and_stay_behind_it(rewrite, name):
    fields, left = CHAT[name]
    turn = {"role": "assistant", "content": "x"}
    own = body("openai_chat", after=(turn | fields,))

    out, reports = rewrite("openai_chat", body("openai_chat", turn | fields), drop())
    kept, silent = rewrite("openai_chat", own, drop())

    assert out == left_of("openai_chat", turn | left)
    assert "messages[0]" in reports[0].changes[0]
    assert (kept, silent[0].changes) == (own, ())


def test_chat_signatures_of_tool_calls_go(rewrite):
    sent = body("openai_chat")
    sent["messages"][0]["tool_calls"][0] |= {
        "extra_content": {"google": {"thought_signature": "S"}},
        "provider_specific_fields": {"thought_signature": "S"},
    }

    out, reports = rewrite("openai_chat", sent, drop())

    assert out == body("openai_chat")
    assert reports[0].changes == (
        "removed extra_content.google.thought_signature of messages[0].tool_calls[0]",
        "removed provider_specific_fields.thought_signature of messages[0].tool_calls[0]",
    )


@pytest.mark.parametrize(("wire_format", "item", "left"), CONTEXT_CASES)
def test_context_goes_only_where_it_may_be_lost(rewrite, wire_format, item, left):
    sent = body(wire_format, item)

    kept, silent = rewrite(wire_format, sent, drop())
    out, reports = rewrite(wire_format, sent, drop(context=True))

    assert (kept, silent[0].changes) == (sent, ())
    assert out == left_of(wire_format, left)
    assert len(reports[0].changes) == 1


@pytest.mark.parametrize(("wire_format", "item", "left"), CONTEXT_CASES)
def test_request_knows_the_context_that_would_be_lost(wire_format, item, left):
    del left
    before = Request(wire_format=wire_format, body=body(wire_format, item))
    turn = {"role": "assistant", "content": "x"}
    behind = Request(wire_format=wire_format, body=body(wire_format, after=(turn, item)))

    assert len(before.foreign_context(through_call=0)) == 1
    assert behind.foreign_context(through_call=0) == ()
    assert before.foreign_context() == ()
    assert not before.fields.changed


def test_call_of_an_mcp_server_becomes_a_function_and_keeps_its_number(rewrite):
    item = {
        "type": "mcp_call",
        "id": "mcp_1",
        "server_label": "s",
        "name": "look",
        "arguments": '{"a":1}',
        "output": "found",
    }

    out, _ = rewrite("openai_responses", body("openai_responses", item), drop(through_call=1))

    assert out["input"][:2] == [
        {"type": "function_call", "call_id": "mcp_1", "name": "look", "arguments": '{"a":1}'},
        {"type": "function_call_output", "call_id": "mcp_1", "output": "found"},
    ]


@pytest.mark.parametrize("own", [False, True], ids=["planners", "executors"])
def test_container_goes_unless_the_executor_runs_tools_in_it(rewrite, own):
    call = {"type": "server_tool_use", "id": "srvtoolu_9", "name": "code_execution"}
    after = ({"role": "assistant", "content": [call]},) if own else ()
    sent = {**body("anthropic_messages", after=after), "container": "container_1"}

    out, _ = rewrite("anthropic_messages", sent, drop())

    assert ("container" in out) is own


def test_spans_are_the_planners_too(rewrite):
    item = {"type": "image_generation_call", "id": "ig", "result": "AAAA"}
    said = {"role": "assistant", "content": "x"}
    asked = {"role": "user", "content": "y"}
    sent = body("openai_responses", asked, after=(said, asked, item, asked, item))

    out, _ = rewrite("openai_responses", sent, drop(spans=[(5, 5)]))

    assert out == body("openai_responses", asked, after=(said, asked, asked, item))


@pytest.mark.parametrize(
    ("sent", "places"),
    [
        ({"input": [{"type": "compaction", "encrypted_content": "E"}]}, ("input[0]",)),
        ({"input": [{"type": "item_reference", "id": "m"}]}, ("input[0]",)),
        ({"input": "hi", "prompt": {"id": "pmpt_1"}}, ("prompt.id",)),
        ({"input": [{"type": "function_call_output", "call_id": "c"}]}, ("input",)),
        ({"input": [{"role": "user", "content": '"compaction"'}]}, ()),
    ],
    ids=["compaction", "reference", "prompt", "lone_result", "words"],
)
def test_responses_history_that_hides_is_missing(sent, places):
    request = Request(wire_format="openai_responses", body={"model": "m", **sent})

    assert request.missing_history == places
    assert request.misses_history is bool(places)


@pytest.mark.parametrize(
    ("content", "missing"), [(None, True), ("", True), ("all that was said", False)]
)
def test_messages_history_hides_in_a_sealed_compaction(content, missing):
    block = {"type": "compaction", "content": content}
    turn = {"role": "assistant", "content": [block]}
    request = Request(wire_format="anthropic_messages", body=json.dumps(
        {"model": "m", "messages": [turn]}
    ))  # fmt: skip

    assert request.misses_history is missing


@pytest.mark.parametrize("wire_format", ITEMS)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_whatever_is_there_goes_once_and_nothing_behind_the_handoff(wire_format, data):
    items = st.lists(st.sampled_from(ITEMS[wire_format]), max_size=6)
    before, after = data.draw(items), data.draw(items)
    key = "input" if wire_format == "openai_responses" else "messages"
    turn = {"role": "assistant", "content": "the executor's first"}
    sent = json.dumps(body(wire_format, *before, after=(turn, *after)), indent=1).encode()
    number = len(Request(wire_format=wire_format, body=sent).conversation.calls) - 1
    number -= sum(item.get("type") == "shell_call" for item in after)
    name, parameters = drop(context=True, through_call=number)
    rewrites = [Rewrite(name=name, parameters=parameters)]

    once, reports = apply_rewrites(ObjectText(sent), rewrites, TYPES, wire_format)
    twice, again = apply_rewrites(ObjectText(once), rewrites, TYPES, wire_format)

    assert (twice, again[0].changes) == (once, ())
    assert json.loads(once)[key][-len(after) - 1 :] == [turn, *after]
    if not reports[0].changes:
        assert once == sent
