"""What each block of a Messages history is read as."""

from __future__ import annotations

import json
from typing import Any

from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire import FORMATS
from switchyard_core.wire.neutral import Call, Media, Result, Thought, Told, ToolName, Words

MESSAGES = FORMATS["anthropic_messages"]
PNG = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
MARK = b'{"type": "ephemeral"}'
Read = list[tuple[dict[str, Any], tuple[Any, ...]]]


def parts(role: str, block: Any) -> tuple[tuple[Any, ...], Told]:
    body = {"messages": [{"role": role, "content": [block]}]}
    request = MESSAGES.neutral(ObjectText(json.dumps(body).encode()))
    return tuple(part for turn in request.turns for part in turn.parts), request.told


def misses(role: str, table: Read) -> list[Any]:
    return [
        (block, found) for block, expected in table if (found := parts(role, block)[0]) != expected
    ]


USERS: Read = [
    ({"type": "text", "text": "hi"}, (Words(text="hi"),)),
    ({"type": "text", "text": " \n"}, ()),
    (
        {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}},
        (Words(text="hi", cache=MARK),),
    ),
    ({"type": "image", "source": PNG}, (Media(kind="image", url="data:image/png;base64,iVBO"),)),
    (
        {"type": "image", "source": {"type": "url", "url": "https://x.org/a.png"}},
        (Media(kind="image", url="https://x.org/a.png"),),
    ),
    (
        {
            "type": "document",
            "title": "paper",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
        },
        (Media(kind="file", url="data:application/pdf;base64,JVBE", name="paper"),),
    ),
    (
        {"type": "document", "source": {"type": "url", "url": "https://x.org/a.pdf"}},
        (Media(kind="file", url="https://x.org/a.pdf"),),
    ),
    (
        {
            "type": "document",
            "title": "notes",
            "context": "of May",
            "source": {"type": "text", "media_type": "text/plain", "data": "all well"},
        },
        (Words(text="notes\nof May"), Words(text="all well")),
    ),
    (
        {
            "type": "document",
            "source": {
                "type": "content",
                "content": [{"type": "text", "text": "a"}, {"type": "image", "source": PNG}],
            },
        },
        (Words(text="a"), Media(kind="image", url="data:image/png;base64,iVBO")),
    ),
    (
        {"type": "document", "source": {"type": "content", "content": "plain"}},
        (Words(text="plain"),),
    ),
    (
        {
            "type": "search_result",
            "title": "Page",
            "source": "https://x.org",
            "content": [{"type": "text", "text": "found"}],
        },
        (Words(text="Page\nhttps://x.org"), Words(text="found")),
    ),
    ({"type": "tool_result", "tool_use_id": "a"}, (Result(call_id="a"),)),
    (
        {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True},
        (Result(call_id="a", parts=(Words(text="no"),), failed=True),),
    ),
    (
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "cache_control": {"type": "ephemeral"},
            "content": [{"type": "text", "text": "seen"}, {"type": "image", "source": PNG}],
        },
        (
            Result(
                call_id="a",
                parts=(Words(text="seen"), Media(kind="image", url="data:image/png;base64,iVBO")),
                cache=MARK,
            ),
        ),
    ),
    ({"type": "compaction", "content": "so far"}, (Words(text="so far"),)),
]


def test_blocks_of_the_user() -> None:
    assert misses("user", USERS) == []


ASSISTANTS: Read = [
    ({"type": "text", "text": "hi", "citations": [{"type": "char_location"}]}, (Words(text="hi"),)),
    ({"type": "thinking", "thinking": "hm", "signature": "s"}, (Thought(text="hm"),)),
    ({"type": "thinking", "thinking": "", "signature": "s"}, ()),
    ({"type": "redacted_thinking", "data": "s"}, ()),
    (
        {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "x"}},
        (Call(id="a", tool=ToolName(name="read"), arguments='{"path": "x"}'),),
    ),
    ({"type": "tool_use", "name": "read"}, (Call(id="", tool=ToolName(name="read")),)),
    (
        {"type": "tool_use", "id": "a", "name": "read", "input": "half"},
        (Call(id="a", tool=ToolName(name="read"), arguments='"half"'),),
    ),
]


def test_blocks_of_the_assistant() -> None:
    assert misses("assistant", ASSISTANTS) == []


#: Blocks that only the provider that made them can read.
BOUND: list[tuple[str, Any]] = [
    ("assistant", {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"}),
    ("assistant", {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1"}),
    ("assistant", {"type": "mcp_tool_use", "id": "m", "name": "x"}),
    ("assistant", {"type": "mcp_tool_result", "tool_use_id": "m"}),
    ("assistant", {"type": "compaction", "content": None}),
    ("assistant", {"type": "tool_result", "tool_use_id": "a"}),
    ("user", {"type": "container_upload", "file_id": "file_1"}),
    ("user", {"type": "image", "source": {"type": "file", "file_id": "file_1"}}),
    ("user", {"type": "document", "source": {"type": "file", "file_id": "file_1"}}),
    ("user", {"type": "image", "source": {"type": "base64", "data": "iVBO"}}),
    ("user", {"type": "tool_use", "id": "a", "name": "read", "input": {}}),
    ("user", {"text": "hi"}),
    ("user", {"type": "text", "text": 3}),
    ("user", "hi"),
]


def test_blocks_that_nobody_else_can_read_are_lost_by_place() -> None:
    wrong = []
    for role, block in BOUND:
        found, told = parts(role, block)
        if found or len(told.lost) != 1 or "messages[0].content[0]" not in told.lost[0]:
            wrong.append((block, found, told))
    assert wrong == []


def test_blocks_within_a_result_are_named_by_their_place() -> None:
    _, told = parts(
        "user",
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [{"type": "hologram", "tool_name": "x"}],
        },
    )
    assert told.lost == ["hologram messages[0].content[0].content[0]"]


def test_signatures_and_citations_are_told_once() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    cited = {"type": "text", "text": "hi", "citations": [{"type": "char_location"}]}
    asked = {"type": "document", "citations": {"enabled": True},
             "source": {"type": "url", "url": "https://x.org"}}  # fmt: skip
    body = {
        "messages": [
            {"role": "user", "content": [asked]},
            {"role": "assistant", "content": [thinking, thinking, cited, cited]},
        ]
    }
    told = MESSAGES.neutral(ObjectText(json.dumps(body).encode())).told
    assert told.left_out == ["the opaque form of 2 thinking blocks", "citations"]


def test_half_an_emoji_and_odd_numbers_stay() -> None:
    body = rb"""{"messages":[{"role":"assistant","content":[
        {"type":"text","text":"cut \ud83d"},
        {"type":"tool_use","id":"a","name":"read","input":{"n":1.10,"big":12345678901234567890123}}
    ]}]}"""
    words, call = MESSAGES.neutral(ObjectText(body)).turns[0].parts
    assert words == Words(text="cut \ud83d")
    assert isinstance(call, Call)
    assert call.arguments == '{"n":1.10,"big":12345678901234567890123}'
