"""What the turns of a neutral request become in a Messages history."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from switchyard_core.testing import validity_problems
from switchyard_core.wire import FORMATS
from switchyard_core.wire.neutral import (
    Call,
    Facts,
    Media,
    NeutralPart,
    NeutralRequest,
    Result,
    Thought,
    ToolName,
    Turn,
    Words,
)

MESSAGES = FORMATS["anthropic_messages"]
EDIT = ToolName(name="edit")
EPHEMERAL = b'{"type":"ephemeral"}'
ANSWERED = {"type": "tool_result", "tool_use_id": "a", "content": "done"}


def user(*parts: NeutralPart | str) -> Turn:
    return _turn("user", parts)


def assistant(*parts: NeutralPart | str) -> Turn:
    return _turn("assistant", parts)


def system(text: str) -> Turn:
    return Turn(role="system", parts=(Words(text=text),))


def results(*parts: Result) -> Turn:
    return Turn(role="tool", parts=parts)


def _turn(role: Any, parts: tuple[NeutralPart | str, ...]) -> Turn:
    return Turn(role=role, parts=tuple(Words(text=p) if isinstance(p, str) else p for p in parts))


def call(call_id: str = "a", arguments: str = "{}", **more: Any) -> Call:
    return Call(id=call_id, tool=EDIT, arguments=arguments, **more)


def done(call_id: str = "a", text: str = "done", **more: Any) -> Result:
    return Result(call_id=call_id, parts=(Words(text=text),) if text else (), **more)


def written(*turns: Turn, **facts: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the messages, and what was told; a wrong body fails."""
    request = NeutralRequest(model="m", turns=turns)
    raw = MESSAGES.write(request, Facts(**facts))
    assert validity_problems("anthropic_messages", raw, sdk=True) == []
    return json.loads(raw)["messages"], request.told.lines


def only(*blocks: Any) -> Any:
    """Return the content of the first message of the user."""
    messages, _ = written(user(*blocks))
    return messages[0]["content"]


def test_plain_turns_are_messages_with_text() -> None:
    messages, told = written(user("go"), assistant("I look."), user("and?", "well?"))
    assert messages == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "I look."},
        {"role": "user", "content": [{"type": "text", "text": t} for t in ("and?", "well?")]},
    ]
    assert told == []


def test_blocks_keep_their_order_and_results_come_before_words() -> None:
    messages, _ = written(
        user("go"),
        assistant("First.", call("a", '{"n": 1.10}'), "Then.", call("b", "")),
        results(done("b", "B"), done("a", "A", failed=True)),
        user("and?"),
    )
    assert messages[1]["content"] == [
        {"type": "text", "text": "First."},
        {"type": "tool_use", "id": "a", "name": "edit", "input": {"n": 1.10}},
        {"type": "text", "text": "Then."},
        {"type": "tool_use", "id": "b", "name": "edit", "input": {}},
    ]
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "is_error": True, "content": "A"},
        {"type": "tool_result", "tool_use_id": "b", "content": "B"},
        {"type": "text", "text": "and?"},
    ]


#: Arguments as models write them, the input that they become, and whether that is told.
ARGUMENTS: list[tuple[Call, Any, bool]] = [
    (call(arguments=""), {}, False),
    (call(arguments=" {}\n"), {}, False),
    (call(arguments='{"a": {"b": [1]}}'), {"a": {"b": [1]}}, False),
    (call(arguments='{"a": "é \ud83d"}'), {"a": "é \ud83d"}, False),
    (call(arguments="not JSON"), {"_raw": "not JSON"}, True),
    (call(arguments='{"cut'), {"_raw": '{"cut'}, True),
    (call(arguments="[1]"), {"_raw": "[1]"}, True),
    (call(arguments="null"), {"_raw": "null"}, True),
    (call(arguments='{"a": NaN}'), {"_raw": '{"a": NaN}'}, True),
    (call(arguments="*** Begin Patch", custom=True), {"input": "*** Begin Patch"}, False),
    (call(arguments="", custom=True), {"input": ""}, False),
]


def test_arguments_are_an_object() -> None:
    wrong = []
    for asked, expected, is_told in ARGUMENTS:
        messages, told = written(user("go"), assistant(asked), results(done()))
        found, lines = messages[1]["content"][0]["input"], [line for line in told if "_raw" in line]
        if (found, bool(lines)) != (expected, is_told):
            wrong.append((asked, found, told))
    assert wrong == []


def test_numbers_of_arguments_keep_their_digits() -> None:
    turns = (user("go"), assistant(call(arguments='{"n":1.10,"e":1E5}')), results(done()))
    raw = MESSAGES.write(NeutralRequest(model="m", turns=turns), Facts())
    assert b'"input":{"n":1.10,"e":1E5}' in raw


def test_odd_pairs_become_legal_ones() -> None:
    illegal, twice = "functions.edit:0", call("a")
    messages, told = written(
        assistant(call(illegal), call(""), twice, twice),
        results(done("a", "one"), done("", "two"), done("a", "three"), done(illegal, "four")),
        results(done("gone", "five")),
        user("and?"),
        assistant(call("open")),
    )
    first, made, given, asked, last = messages
    assert first == {
        "role": "user",
        "content": "[an earlier part of this conversation is missing]",
    }
    ids = [block["id"] for block in made["content"]]
    assert len(set(ids)) == 4
    assert ids[2] == "a"
    answers = [b for b in given["content"] if b["type"] == "tool_result"]
    assert [(a["tool_use_id"], a["content"]) for a in answers] == list(
        zip(ids, ["four", "two", "one", "three"], strict=True)
    )
    assert given["content"][-1] == {"type": "text", "text": "and?"}
    assert asked["content"][0]["id"] == "open"
    assert last["content"][0]["content"] == "[no result was recorded for this tool call]"
    assert "left out the result of the call `gone`, which is missing" in told


def test_results_hold_texts_images_and_errors() -> None:
    image = Media(kind="image", url="data:image/png;base64,iVBO")
    messages, _ = written(
        user("go"),
        assistant(call("a"), call("b"), call("c")),
        results(
            Result(call_id="a", parts=(Words(text="seen"), image)),
            done("b", ""),
            done("c", "", failed=True),
        ),
    )
    assert messages[2]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [
                {"type": "text", "text": "seen"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"},
                },
            ],
        },
        {"type": "tool_result", "tool_use_id": "b"},
        {
            "type": "tool_result",
            "tool_use_id": "c",
            "is_error": True,
            "content": "[the tool returned nothing]",
        },
    ]


#: Images and files, and their blocks; `None` for what is lost.
MEDIA: list[tuple[Media, Any]] = [
    (
        Media(kind="image", url="data:image/jpg;base64,AA=="),
        ("image", {"type": "base64", "media_type": "image/jpeg", "data": "AA=="}),
    ),
    (Media(kind="image", url="https://x/a.png"), ("image", {"type": "url", "url": "https://x/a.png"})),
    (
        Media(kind="file", url="data:application/pdf;base64,AA=="),
        ("document", {"type": "base64", "media_type": "application/pdf", "data": "AA=="}),
    ),
    (
        Media(kind="file", url="data:image/png;base64,AA=="),
        ("image", {"type": "base64", "media_type": "image/png", "data": "AA=="}),
    ),
    (Media(kind="file", url="https://x/a.pdf"), ("document", {"type": "url", "url": "https://x/a.pdf"})),
    (
        Media(kind="file", url="data:text/csv;base64,YTti"),
        ("document", {"type": "text", "media_type": "text/plain", "data": "a;b"}),
    ),
    (
        Media(kind="file", url="data:application/json,%7B%7D"),
        ("document", {"type": "text", "media_type": "text/plain", "data": "{}"}),
    ),
    (Media(kind="image", url="data:image/svg+xml;base64,AA=="), None),
    (Media(kind="file", url="data:text/plain;base64,/w=="), None),
    (Media(kind="file", url="data:application/zip;base64,AA=="), None),
    (Media(kind="file", url="gs://bucket/a.pdf"), None),
]  # fmt: skip


def test_images_and_files_are_blocks_or_named() -> None:
    wrong = []
    for part, expected in MEDIA:
        messages, told = written(user("see", part))
        block = messages[0]["content"][1]
        lost = {"type": "text", "text": "[a file of this message is not available here]"}
        kind, source = expected or ("text", None)
        right = {"type": kind, "source": source} if expected else lost
        if block != right or bool(told) is bool(expected):
            wrong.append((part.url, block, told))
    assert wrong == []


def test_files_have_their_names_and_images_no_detail() -> None:
    url = "data:application/pdf;base64,AA=="
    assert only(Media(kind="file", url=url, name="paper.pdf"))[0]["title"] == "paper.pdf"
    _, told = written(user(Media(kind="image", url="https://x/a.png", detail="low")))
    assert told == ["left out how closely to look at images"]


def test_thoughts_are_left_out_once_and_media_of_others_are_lost() -> None:
    image = Media(kind="image", url="https://x/a.png")
    messages, told = written(
        user("go"), assistant(Thought(text="hm"), "a"), user("b"), assistant(Thought(text="x")),
        user("c"), assistant(image, "d")
    )  # fmt: skip
    assert [m["content"] for m in messages[:2]] == ["go", "a"]
    assert messages[2]["content"] == [{"type": "text", "text": t} for t in "bc"]
    assert told == ["left out the image of the assistant", "left out reasoning of earlier turns"]


def test_instructions_within_the_history_are_marked_words_of_the_user() -> None:
    messages, told = written(
        system("first"), user("go"), assistant(call()), results(done()), system("Be {brief}.")
    )
    assert messages[-1]["content"] == [
        ANSWERED,
        {"type": "text", "text": "<system-reminder>\nBe {brief}.\n</system-reminder>"},
    ]
    assert told[0] == "turned instructions within the history into the user's words"


#: Turns with instructions, and the roles of the messages where the model takes rows of the system.
PLACES: list[tuple[tuple[Turn, ...], list[str]]] = [
    ((user("a"), system("s")), ["user", "system"]),
    ((user("a"), system("s"), system("t"), assistant("b")), ["user", "system", "assistant"]),
    ((user("a"), system("s"), user("b")), ["user", "system"]),
    ((user("a"), assistant("b"), system("s"), user("c")), ["user", "assistant", "user", "system"]),
    ((user("a"), assistant("b"), system("s")), ["user", "assistant", "user"]),
    ((system("s"), user("a")), ["user"]),
    (
        (user("a"), assistant(call()), system("s"), results(done()), assistant("b")),
        ["user", "assistant", "user", "system", "assistant"],
    ),
]


def test_instructions_are_rows_of_the_system_behind_the_users_words() -> None:
    wrong = []
    for turns, roles in PLACES:
        messages, _ = written(*turns, system_rows=True)
        if (found := [m["role"] for m in messages]) != roles:
            wrong.append((turns, found))
    assert wrong == []


def test_first_instructions_are_the_systems() -> None:
    request = NeutralRequest(
        model="m", instructions=(Words(text="one"),), turns=(system("two"), user("go"))
    )
    body = json.loads(MESSAGES.write(request, Facts()))
    assert body["system"] == [{"type": "text", "text": text} for text in ("one", "two")]
    assert request.told.lines == []


def test_history_of_nothing_gets_a_word_of_the_user() -> None:
    messages, told = written(system("Say hi."))
    assert messages == [{"role": "user", "content": "Continue."}]
    assert told == ["added a message of the user, for there was none"]


def test_space_at_the_end_of_a_continued_text_is_cut() -> None:
    messages, told = written(user("go"), assistant("I am \n"))
    assert messages[-1]["content"] == "I am"
    assert told == ["cut the space at the end of the assistant's last text"]


# --- cache marks -----------------------------------------------------------------------------


def marked(body: Any) -> list[str]:
    """Return the texts, or ids, of all blocks with a mark, in order."""
    found = []
    if isinstance(body, list):
        for item in body:
            found += marked(item)
    elif isinstance(body, dict):
        for key in ("tools", "system", "messages", "content"):
            found += marked(body.get(key))
        if "cache_control" in body:
            found.append(str(body.get("text") or body.get("tool_use_id") or body.get("name")))
    return found


def test_marks_stay_where_they_are_up_to_four() -> None:
    result = Result(call_id="a", parts=(Words(text="in", cache=EPHEMERAL),), cache=EPHEMERAL)
    request = NeutralRequest(
        model="m",
        instructions=(Words(text="system", cache=EPHEMERAL),),
        turns=(
            user(Words(text="old", cache=EPHEMERAL)),
            assistant(replace(call(), cache=EPHEMERAL)),
            results(result),
            user(Words(text="new", cache=b'{"type":"ephemeral","ttl":"1h"}')),
        ),
    )
    body = json.loads(MESSAGES.write(request, Facts(cache_marks=True)))
    assert marked(body) == ["system", "in", "a", "new"]
    assert body["messages"][-1]["content"][-1]["cache_control"]["ttl"] == "1h"
    assert "left out 2 cache marks, for a request has at most four" in request.told.lines


def test_marks_are_added_where_they_are_asked_for() -> None:
    turns = (user("one"), assistant("x"), user("two", "three"), assistant(call()), results(done()))
    request = NeutralRequest(model="m", instructions=(Words(text="system"),), turns=turns)
    plain = json.loads(MESSAGES.write(request, Facts()))
    auto = json.loads(MESSAGES.write(request, Facts(cache_marks=True)))
    assert marked(plain) == []
    assert marked(auto) == ["edit", "system", "three", "a"]
