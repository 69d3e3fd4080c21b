"""Reading Chat requests as neutral ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given

from switchyard_core.errors import BodyError
from switchyard_core.jsonio.tree import JsonTextError, ObjectText
from switchyard_core.testing import validity_problems
from switchyard_core.wire import FORMATS
from switchyard_core.wire.neutral import (
    AskedTool,
    Call,
    Choice,
    Facts,
    Media,
    NeutralRequest,
    Result,
    Schema,
    Thought,
    ToolName,
    Turn,
    Words,
)
from tests.support.neutral import FACTS, requests
from tests.support.strategies import VALUES

CHAT = FORMATS["openai_chat"]
CAPTURES = Path(__file__).parents[2] / "data" / "captures"
PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="
MARK = {"cache_control": {"type": "ephemeral"}}
MARKED = b'{"type":"ephemeral"}'


def read(*messages: Any, **more: Any) -> NeutralRequest:
    """Return what a body says; reading leaves the body alone."""
    body = {"model": "m", "messages": list(messages), **more}
    raw = json.dumps(body, separators=(",", ":")).encode()
    fields = ObjectText(raw)
    found = CHAT.neutral(fields)
    assert fields.dump() == raw
    assert not fields.changed
    return found


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def assistant(content: Any = None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def calling(*calls: Any, **more: Any) -> dict[str, Any]:
    return assistant(None, tool_calls=list(calls), **more)


def call(arguments: Any = "{}", call_id: Any = "call_1", **more: Any) -> dict[str, Any]:
    named = {"name": "f", "arguments": arguments}
    return {"id": call_id, "type": "function", "function": named, **more}


def tool(content: Any, call_id: str = "call_1", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def captured() -> dict[str, dict[str, Any]]:
    """Return the bodies of all captured Chat requests."""
    found = {}
    for path in sorted(CAPTURES.glob("*.json")):
        request = json.loads(path.read_text("utf-8"))["request"]
        if request["path"].endswith("/chat/completions"):
            found[path.stem] = request["body"]
    return found


def test_captured_requests_lose_nothing() -> None:
    told = {}
    for name, body in captured().items():
        raw = json.dumps(body).encode()
        fields = ObjectText(raw)
        told[name] = CHAT.neutral(fields).told.lines
        assert fields.dump() == raw
    assert len(told) > 8
    assert {name: lines for name, lines in told.items() if lines} == {}


def test_captured_requests_are_written_as_valid_ones() -> None:
    problems = {}
    for name, body in captured().items():
        request = CHAT.neutral(ObjectText(json.dumps(body).encode()))
        written = CHAT.write(request, Facts(reasoning_key="reasoning_content"))
        problems[name] = validity_problems("openai_chat", written, sdk=True)
    assert {name: found for name, found in problems.items() if found} == {}


def turn(role: Any, *parts: Any) -> Turn:
    return Turn(role=role, parts=parts)


def words(text: str, cache: bytes = b"", *, refusal: bool = False) -> Words:
    return Words(text=text, cache=cache, refusal=refusal)


def made(arguments: str = "{}", call_id: str = "call_1", **more: Any) -> Call:
    return Call(id=call_id, tool=ToolName(name="f"), arguments=arguments, **more)


def result(*parts: Any, call_id: str = "call_1", **more: Any) -> Result:
    return Result(call_id=call_id, parts=parts, **more)


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


#: Messages, and the turns that they are.
TURNS: dict[str, tuple[list[Any], list[Turn]]] = {
    "string": ([user("go")], [turn("user", words("go"))]),
    "parts": (
        [user([text("a"), text("b"), text(" ")])],
        [turn("user", words("a"), words("b"))],
    ),
    "neighbours": ([user("a"), user("b")], [turn("user", words("a"), words("b"))]),
    "later instructions": (
        [user("a"), {"role": "system", "content": "b"}, {"role": "developer", "content": "c"}],
        [turn("user", words("a")), turn("system", words("b")), turn("system", words("c"))],
    ),
    "blank": (
        [user(""), user(None), user([]), assistant(""), user("go")],
        [turn("user", words("go"))],
    ),
    "marks": (
        [
            user([text("a", **MARK)]),
            user("b", **MARK),
            user([text("c"), text("d")], **MARK),
            calling(call(call_id="a"), call(call_id="b"), **MARK),
        ],
        [
            turn("user", words("a", MARKED), words("b", MARKED), words("c"), words("d", MARKED)),
            turn("assistant", made(call_id="a"), made(call_id="b", cache=MARKED)),
        ],
    ),
    "images": (
        [
            user(
                [
                    {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}, **MARK},
                    {"type": "image_url", "image_url": "https://example.org/a.png"},
                ]
            )
        ],
        [
            turn(
                "user",
                Media(kind="image", url=PNG, detail="low", cache=MARKED),
                Media(kind="image", url="https://example.org/a.png"),
            )
        ],
    ),
    "files": (
        [
            user(
                [
                    {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}},
                    {"type": "file", "file": {"file_data": "eA==", "filename": "a.txt"}},
                    {"type": "file", "file": {"file_data": "JVBERi0="}},
                ]
            )
        ],
        [
            turn(
                "user",
                Media(kind="file", url=PDF, name="a.pdf"),
                Media(kind="file", url="data:text/plain;base64,eA==", name="a.txt"),
                Media(kind="file", url=PDF),
            )
        ],
    ),
    "text beside calls": (
        [assistant("I look.", tool_calls=[call()]), tool("done")],
        [turn("assistant", words("I look."), made()), turn("tool", result(words("done")))],
    ),
    "reasoning": (
        [assistant("Hi.", reasoning_content="Hm."), user("go"), assistant("Yes.", reasoning="So.")],
        [
            turn("assistant", Thought(text="Hm."), words("Hi.")),
            turn("user", words("go")),
            turn("assistant", Thought(text="So."), words("Yes.")),
        ],
    ),
    "readable details": (
        [assistant("Hi.", reasoning_details=[{"type": "reasoning.text", "text": "Hm."}])],
        [turn("assistant", Thought(text="Hm."), words("Hi."))],
    ),
    "refusals": (
        [assistant(None, refusal="No."), assistant([{"type": "refusal", "refusal": "Never."}])],
        [turn("assistant", words("No.", refusal=True), words("Never.", refusal=True))],
    ),
    "arguments": (
        [
            calling(
                call('{"n": 1.10}', "a"),
                call({"x": 1}, "b"),
                call("", "c"),
                call(None, "d"),
                call("not JSON", "e"),
                {"id": "g", "function": {"name": "f"}},
            )
        ],
        [
            turn(
                "assistant",
                made('{"n": 1.10}', "a"),
                made('{"x":1}', "b"),
                made("", "c"),
                made("", "d"),
                made("not JSON", "e"),
                made("", "g"),
            )
        ],
    ),
    "no ids": (
        [calling(call(call_id=""), call(call_id=None)), tool("a", ""), tool("b", "")],
        [
            turn("assistant", made(call_id=""), made(call_id="")),
            turn("tool", result(words("a"), call_id=""), result(words("b"), call_id="")),
        ],
    ),
    "free text": (
        [
            calling({"id": "c", "type": "custom", "custom": {"name": "f", "input": "*** Begin"}}),
            tool("ok", "c"),
        ],
        [
            turn("assistant", made("*** Begin", "c", custom=True)),
            turn("tool", result(words("ok"), call_id="c", custom=True)),
        ],
    ),
    "results": (
        [
            calling(call(call_id="a"), call(call_id="b"), call(call_id="c")),
            tool("x", "a", **MARK),
            tool([text("y"), {"type": "image_url", "image_url": {"url": PNG}}], "b"),
            tool("", "c"),
        ],
        [
            turn("assistant", made(call_id="a"), made(call_id="b"), made(call_id="c")),
            turn(
                "tool",
                result(words("x"), call_id="a", cache=MARKED),
                result(words("y"), Media(kind="image", url=PNG), call_id="b"),
                result(call_id="c"),
            ),
        ],
    ),
}


def test_messages_are_turns() -> None:
    misses = {}
    for case, (messages, turns) in TURNS.items():
        found = read(*messages)
        if list(found.turns) != turns or found.instructions or found.told.lines:
            misses[case] = (found.turns, found.told.lines)
    assert misses == {}


def test_leading_instructions_are_apart() -> None:
    found = read(
        {"role": "system", "content": "a", **MARK},
        {"role": "developer", "content": [text("b"), text("c")]},
        user("go"),
    )

    assert found.instructions == (words("a", MARKED), words("b"), words("c"))
    assert found.turns == (turn("user", words("go")),)


def test_functions_of_old_have_ids_that_stay() -> None:
    def step(n: int) -> list[Any]:
        old = {"name": "f", "arguments": f'{{"n":{n}}}'}
        said = assistant(None, function_call=old)
        return [said, {"role": "function", "name": "f", "content": f"r{n}"}]

    short, long = read(*step(1)), read(*step(1), *step(2))
    calls = [part for each in long.turns for part in each.parts if isinstance(part, Call)]
    results = [part for each in long.turns for part in each.parts if isinstance(part, Result)]
    assert [each.id for each in calls] == [each.call_id for each in results]
    assert len({each.id for each in calls}) == 2
    assert short.turns == long.turns[:2]
    assert long.told.lines == []


GRAMMAR = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /a/"}}
SCHEMA = {"type": "object", "properties": {"n": {"const": 1.5}}}
SCHEMA_RAW = b'{"type":"object","properties":{"n":{"const":1.5}}}'


def named(name: str = "f", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **more}}


def asked(name: str = "f", **more: Any) -> AskedTool:
    return AskedTool(tool=ToolName(name=name), **more)


def test_tools() -> None:
    found = read(
        user("go"),
        tools=[
            named(description="Does.", parameters=SCHEMA, strict=True),
            named("g", strict=False, parameters=None),
            {**named("h"), **MARK},
            {
                "type": "custom",
                "custom": {"name": "p", "description": "Patches.", "format": GRAMMAR},
            },
            {"type": "custom", "custom": {"name": "q", "format": {"type": "text"}}},
            {"type": "function", "name": "flat", "parameters": SCHEMA},
        ],
        functions=[{"name": "old"}],
    )

    assert found.tools == (
        asked(description="Does.", parameters=SCHEMA_RAW, strict=True),
        asked("g", strict=False),
        asked("h", cache=MARKED),
        asked(
            "p",
            description="Patches.",
            custom=True,
            grammar=b'{"type":"grammar","syntax":"lark","definition":"start: /a/"}',
        ),
        asked("q", custom=True),
        asked("flat", parameters=SCHEMA_RAW),
        asked("old"),
    )
    assert found.told.lines == []


F, G = ToolName(name="f"), ToolName(name="g")
ALLOWED = {"mode": "required", "tools": [named("f"), named("g")]}
#: ``tool_choice``, what it means and what of it is lost.
CHOICES: list[tuple[Any, Choice | None, int]] = [
    ("none", Choice(mode="none"), 0),
    ("auto", Choice(mode="auto"), 0),
    ("required", Choice(mode="required"), 0),
    ("any", Choice(mode="required"), 0),
    (None, None, 0),
    (named("f"), Choice(mode="required", allowed=(F,)), 0),
    ({"type": "custom", "custom": {"name": "g"}}, Choice(mode="required", allowed=(G,)), 0),
    ({"name": "f"}, Choice(mode="required", allowed=(F,)), 0),
    (
        {"type": "allowed_tools", "allowed_tools": ALLOWED},
        Choice(mode="required", allowed=(F, G)),
        0,
    ),
    (
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named("f")]}},
        Choice(mode="auto", allowed=(F,)),
        0,
    ),
    (
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
        Choice(mode="none"),
        0,
    ),
    ({"type": "web_search"}, Choice(mode="none"), 1),
    ("sometimes", None, 1),
    (7, None, 1),
]


def test_choices_are_never_widened() -> None:
    misses = []
    for given_choice, wanted, lost in CHOICES:
        found = read(user("go"), tools=[named("f"), named("g")], tool_choice=given_choice)
        if found.choice != wanted or len(found.told.lines) != lost:
            misses.append((given_choice, found.choice, found.told.lines))
    assert misses == []
    old = read(user("go"), functions=[{"name": "f"}], function_call={"name": "f"})
    assert old.choice == Choice(mode="required", allowed=(F,))


#: Members of a body, and what is read of them.
SETTINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"parallel_tool_calls": False}, {"parallel": False}),
    ({"stream": True, "stream_options": {"include_usage": True}}, {"stream": True}),
    ({"stop": "END"}, {"stop": ("END",)}),
    ({"stop": ["a", "b"]}, {"stop": ("a", "b")}),
    ({"stop": None}, {}),
    ({"max_tokens": 9}, {"limit": 9}),
    ({"max_completion_tokens": 9, "max_tokens": 9}, {"limit": 9}),
    ({"reasoning_effort": "high"}, {"effort": "high"}),
    ({"reasoning": {"effort": "low"}}, {"effort": "low"}),
    ({"thinking": {"type": "disabled"}}, {"effort": "none"}),
    ({"response_format": {"type": "text"}}, {}),
    ({"response_format": {"type": "json_object"}}, {"schema": Schema(schema=b"")}),
    (
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "x", "schema": SCHEMA, "strict": True, "description": "d"},
            }
        },
        {"schema": Schema(schema=SCHEMA_RAW, name="x", strict=True, description="d")},
    ),
    (
        {"temperature": 0.50, "top_p": 1, "top_k": 4, "seed": 7, "logprobs": True},
        {
            "settings": {
                "temperature": b"0.5",
                "top_p": b"1",
                "top_k": b"4",
                "seed": b"7",
                "logprobs": b"true",
            }
        },
    ),
    (
        {"prompt_cache_key": "k", "user": "u", "metadata": {"a": "b"}, "store": False},
        {
            "settings": {
                "cache_key": b'"k"',
                "user": b'"u"',
                "metadata": b'{"a":"b"}',
                "store": b"false",
            }
        },
    ),
    ({"n": 1, "modalities": ["text"], "temperature": None}, {}),
]
_UNSAID = {
    "parallel": None,
    "stream": None,
    "stop": (),
    "limit": None,
    "effort": "",
    "schema": None,
    "settings": {},
}


def test_settings() -> None:
    misses = []
    for members, wanted in SETTINGS:
        found = read(user("go"), **members)
        said = {key: getattr(found, key) for key in _UNSAID}
        if said != {**_UNSAID, **wanted} or found.told.lines:
            misses.append((members, said, found.told.lines))
    assert misses == []


#: Members of a body without a counterpart, or of a wrong type: what is said of them.
UNSAYABLE: list[tuple[dict[str, Any], list[str]]] = [
    ({"logit_bias": {"5": 1}}, ["left out logit_bias"]),
    ({"n": 2}, ["left out n"]),
    ({"temperature": "warm"}, ["left out temperature"]),
    ({"user": 7}, ["left out user"]),
    ({"stop": [7]}, ["left out stop"]),
    ({"max_tokens": "9"}, ["left out max_tokens"]),
    ({"max_tokens": -1}, ["left out max_tokens"]),
    ({"max_completion_tokens": 8, "max_tokens": 9}, ["left out max_tokens"]),
    ({"reasoning_effort": 3}, ["left out reasoning_effort"]),
    ({"reasoning": {"effort": "low", "max_tokens": 5}}, ["left out reasoning.max_tokens"]),
    ({"thinking": {"type": "enabled", "budget": 5}}, ["left out thinking.budget"]),
    ({"stream": "yes"}, ["left out stream"]),
    ({"response_format": {"type": "grammar"}}, ["left out response_format"]),
    ({"tools": 5}, ["left out tools, which is not an array"]),
    ({"tools": [5, named("")]}, ["left out tools[0], which is not an object"]),
    ({"web_search_options": {}}, ["left out web_search_options"]),
    (
        {"tools": [{**named(), "defer_loading": True}]},
        ["left out defer_loading of tools[0]"],
    ),
    ({"tools": [{"type": "web_search"}]}, ["left out tools[0] of type `web_search`"]),
]


def test_what_has_no_counterpart_is_named() -> None:
    misses = []
    for members, wanted in UNSAYABLE:
        lines = read(user("go"), **members).told.lines
        if lines[: len(wanted)] != wanted:
            misses.append((members, lines))
    assert misses == []


#: Messages of which something is lost: what is said, with its place.
LOST: list[tuple[Any, str]] = [
    (
        user([{"type": "input_audio", "input_audio": {"data": "x"}}]),
        "messages[0].content[0] of type `input_audio`",
    ),
    (user([{"type": "file", "file": {"file_id": "x"}}]), "messages[0].content[0] of type `file`"),
    (assistant("a", audio={"id": "x"}), "audio of messages[0]"),
    (assistant("a", reasoning_details=[{"data": "x"}]), "reasoning_details of messages[0]"),
    (
        assistant("a", reasoning="Hm.", reasoning_details=[{"text": "Hm.", "signature": "x"}]),
        "reasoning_details of messages[0]",
    ),
    (
        calling(call(extra_content={"google": {"thought_signature": "x"}})),
        "extra_content of messages[0].tool_calls[0]",
    ),
    (user([text("a", citations=[1])]), "citations of messages[0].content[0]"),
    (assistant("a", prefix=True), "prefix of messages[0]"),
    (user("a", name="Ann"), "name of messages[0]"),
    (user({"text": "a"}), "messages[0].content, which is not an array"),
    ({"role": "narrator", "content": "a"}, "messages[0], whose role is unknown"),
    ("go", "messages[0], which is not an object"),
    (
        {"role": "system", "content": [{"type": "image_url", "image_url": {"url": PNG}}]},
        "what is not text in messages[0]",
    ),
]


def test_what_is_lost_of_messages_is_named_with_its_place() -> None:
    told = [(message, read(message).told.lines) for message, _ in LOST]
    misses = [
        (message, lines)
        for (message, lines), (_, wanted) in zip(told, LOST, strict=True)
        if lines != [f"left out {wanted}"]
    ]
    assert misses == []


@given(value=VALUES)
def test_any_json_is_read_or_a_fault_of_the_body(value: str) -> None:
    inner = f'{{"role":"assistant","content":{value},"tool_calls":[{value}],"reasoning":{value}}}'
    results = f'{{"role":"tool","tool_call_id":{value},"content":[{value}]}}'
    keys = ("tools", "functions", "tool_choice", "stop", "response_format", "thinking", "user")
    members = ",".join(f'"{key}":{value}' for key in keys)
    for body in (
        f'{{"messages":{value},"model":{value}}}',
        f'{{"messages":[{value},{inner},{results},{{"role":{value}}}],{members}}}',
        f'{{"messages":[],"tools":[{value},{{"function":{value}}},{{"custom":{value}}}]}}',
    ):
        try:
            request = CHAT.neutral(ObjectText(body.encode("utf-8", "surrogatepass")))
            CHAT.write(request, Facts())
        except (JsonTextError, BodyError):
            continue


@given(request=requests(), facts=FACTS)
def test_what_chat_says_stays_what_it_is_read_and_written_again(
    request: NeutralRequest, facts: Facts
) -> None:
    written = CHAT.write(request, facts)
    assert validity_problems("openai_chat", written, sdk=True) == []
    again = CHAT.neutral(ObjectText(written))
    assert again.told.lines == []
    # The tool of a schema is offered once more otherwise.
    assert CHAT.write(again, replace(facts, forced_schema=False)) == written
