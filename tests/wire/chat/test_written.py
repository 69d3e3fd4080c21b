"""Writing neutral requests as Chat ones."""

from __future__ import annotations

import json
from typing import Any

from switchyard_core.testing import validity_problems
from switchyard_core.wire import FORMATS
from switchyard_core.wire.history import fixed_text
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

CHAT = FORMATS["openai_chat"]
PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="
F = ToolName(name="f")
KEY = Facts(reasoning_key="reasoning_content")


def written(request: NeutralRequest, facts: Facts | None = None) -> dict[str, Any]:
    """Return the body of a request, which is valid."""
    raw = CHAT.write(request, facts or Facts())
    assert raw.startswith(b'{"model":"m"')
    body: dict[str, Any] = json.loads(raw)
    assert validity_problems("openai_chat", raw, sdk=True) == []
    return body


def request(*turns: Turn, **more: Any) -> NeutralRequest:
    return NeutralRequest(model="m", turns=turns or (turn("user", words("go")),), **more)


def turn(role: Any, *parts: Any) -> Turn:
    return Turn(role=role, parts=parts)


def words(text: str, **more: Any) -> Words:
    return Words(text=text, **more)


def call(call_id: str = "call_1", arguments: str = "{}", name: ToolName = F, **more: Any) -> Call:
    return Call(id=call_id, tool=name, arguments=arguments, **more)


def result(*parts: Any, call_id: str = "call_1", **more: Any) -> Result:
    return Result(call_id=call_id, parts=parts, **more)


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def calls(*ids: str, content: Any = None, arguments: str = "{}", **more: Any) -> dict[str, Any]:
    function = {"name": "f", "arguments": arguments}
    listed = [{"id": each, "type": "function", "function": function} for each in ids]
    return said("assistant", content, **more, tool_calls=listed)


def answer(content: str, call_id: str = "call_1") -> dict[str, Any]:
    return said("tool", content, tool_call_id=call_id)


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def image(url: str = PNG, **more: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **more}}


GO = turn("user", words("go"))
CALLED = turn("assistant", call())
DONE = turn("tool", result(words("done")))
FAILED = fixed_text("failed_result")
MOVED = fixed_text("moved_elsewhere")
LEAD = fixed_text("moved_result").format(tool="f")

#: Turns, the messages that they are, and what is told.
MESSAGES: dict[str, tuple[list[Turn], list[Any], list[str]]] = {
    "texts are one": ([turn("user", words("a"), words("b"))], [said("user", "a\n\nb")], []),
    "images keep parts": (
        [turn("user", words("a"), Media(kind="image", url=PNG, detail="low"), words("b"))],
        [said("user", [text("a"), image(detail="low"), text("b")])],
        [],
    ),
    "files": (
        [turn("user", Media(kind="file", url=PDF, name="a.pdf"), Media(kind="file", url=PDF))],
        [
            said(
                "user",
                [
                    {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}},
                    {"type": "file", "file": {"filename": "file", "file_data": PDF}},
                ],
            )
        ],
        [],
    ),
    "a text file": (
        [turn("user", Media(kind="file", url="data:text/plain;base64,aGk=", name="a.txt"))],
        [said("user", "a.txt:\nhi")],
        ["wrote the file `a.txt` as text"],
    ),
    "a file by its address": (
        [turn("user", Media(kind="file", url="https://example.org/a.pdf"))],
        [said("user", fixed_text("lost_file"))],
        ["left out a file that is given by its address"],
    ),
    "later instructions": (
        [GO, turn("system", words("a"), words("b")), turn("user", words("c"))],
        [said("user", "go"), said("system", "a\n\nb"), said("user", "c")],
        [],
    ),
    "text beside calls": (
        [GO, turn("assistant", words("a"), call(), words("b")), DONE],
        [said("user", "go"), calls("call_1", content="a\n\nb"), answer("done")],
        ["moved text in front of the calls of its turn"],
    ),
    "parallel results in call order": (
        [
            GO,
            turn("assistant", call("a"), call("b"), call("c")),
            turn("tool", result(words("2"), call_id="b"), result(words("3"), call_id="c")),
            turn("system", words("between")),
            turn("tool", result(words("1"), call_id="a")),
        ],
        [
            said("user", "go"),
            calls("a", "b", "c"),
            answer("1", "a"),
            answer("2", "b"),
            answer("3", "c"),
            said("system", "between"),
        ],
        [],
    ),
    "a call without a result": (
        [GO, CALLED, turn("user", words("more"))],
        [
            said("user", "go"),
            calls("call_1"),
            answer(fixed_text("lost_result")),
            said("user", "more"),
        ],
        ["answered the call of `f`, which has no result"],
    ),
    "a result without a call": (
        [GO, turn("tool", result(words("x"), call_id="z")), turn("user", words("more"))],
        [said("user", "go\n\nmore")],
        ["left out the result of the call `z`, which is missing"],
    ),
    "an empty result": (
        [GO, CALLED, turn("tool", result())],
        [said("user", "go"), calls("call_1"), answer(fixed_text("empty_result"))],
        [],
    ),
    "a failed result": (
        [GO, CALLED, turn("tool", result(words("no"), failed=True))],
        [said("user", "go"), calls("call_1"), answer(f"{FAILED}no")],
        [],
    ),
    "a failed result that says so": (
        [GO, CALLED, turn("tool", result(words(f"{FAILED}no"), failed=True))],
        [said("user", "go"), calls("call_1"), answer(f"{FAILED}no")],
        [],
    ),
    "images in results": (
        [
            GO,
            turn("assistant", call("a"), call("b")),
            turn(
                "tool",
                result(words("see"), Media(kind="image", url=PNG), call_id="a"),
                result(Media(kind="image", url=PNG), call_id="b"),
            ),
            turn("user", words("and?")),
        ],
        [
            said("user", "go"),
            calls("a", "b"),
            answer("see", "a"),
            answer(MOVED, "b"),
            said("user", [text(LEAD), image(), text(LEAD), image(), text("and?")]),
        ],
        ["moved what `f` returned to a message of the user"],
    ),
    "images in results before instructions": (
        [
            GO,
            CALLED,
            turn("tool", result(Media(kind="image", url=PNG))),
            turn("system", words("s")),
            turn("user", words("and?")),
        ],
        [
            said("user", "go"),
            calls("call_1"),
            answer(MOVED),
            said("user", [text(LEAD), image()]),
            said("system", "s"),
            said("user", "and?"),
        ],
        ["moved what `f` returned to a message of the user"],
    ),
    "images in the last results": (
        [
            GO,
            CALLED,
            turn("tool", result(Media(kind="image", url=PNG))),
            turn("assistant", words("k")),
        ],
        [
            said("user", "go"),
            calls("call_1"),
            answer(MOVED),
            said("user", [text(LEAD), image()]),
            said("assistant", "k"),
        ],
        ["moved what `f` returned to a message of the user"],
    ),
    "reasoning": (
        [
            GO,
            turn("assistant", Thought(text="Hm."), words("a")),
            GO,
            turn("assistant", Thought(text="x")),
        ],
        [said("user", "go"), said("assistant", "a"), said("user", "go")],
        ["left out reasoning of earlier turns"],
    ),
    "refusals": (
        [GO, turn("assistant", words("No.", refusal=True)), GO],
        [said("user", "go"), said("assistant", "No."), said("user", "go")],
        ["wrote the refusals of earlier turns as text"],
    ),
    "arguments": (
        [GO, turn("assistant", call(arguments='{"n": 1.10}')), DONE],
        [said("user", "go"), calls("call_1", arguments='{"n": 1.10}'), answer("done")],
        [],
    ),
    "empty arguments": (
        [GO, turn("assistant", call(arguments=" ")), DONE],
        [said("user", "go"), calls("call_1"), answer("done")],
        [],
    ),
    "free text": (
        [GO, turn("assistant", call(arguments="*** é", custom=True)), DONE],
        [said("user", "go"), calls("call_1", arguments='{"input":"*** é"}'), answer("done")],
        [],
    ),
    "an image of the assistant": (
        [GO, turn("assistant", words("a"), Media(kind="image", url=PNG))],
        [said("user", "go"), said("assistant", "a")],
        ["left out the image of an answer"],
    ),
    "nothing": (
        [turn("user")],
        [said("user", fixed_text("go_on"))],
        ["added a message of the user, for there was none"],
    ),
    "marks": (
        [turn("user", words("a", cache=b"{}"), words("b", cache=b"{}"))],
        [said("user", "a\n\nb")],
        ["left out 2 cache marks"],
    ),
}


def test_turns_are_messages() -> None:
    misses = {}
    for case, (turns, messages, told) in MESSAGES.items():
        asked = request(*turns)
        found = written(asked)["messages"]
        if found != messages or asked.told.lines != told:
            misses[case] = (found, asked.told.lines)
    assert misses == {}


def test_instructions_are_one_message() -> None:
    body = written(request(instructions=(words("a"), words("b"))))

    assert body["messages"] == [said("system", "a\n\nb"), said("user", "go")]


def test_reasoning_goes_where_the_model_takes_it_back() -> None:
    thought = Thought(text="Hm.")
    asked = request(
        GO, turn("assistant", thought, thought, call()), DONE, turn("assistant", thought)
    )

    assert written(asked, KEY)["messages"][1] == calls("call_1", reasoning_content="Hm.\n\nHm.")
    assert asked.told.lines == ["left out reasoning of earlier turns"]


def test_ids_are_legal_unique_and_the_same_for_call_and_result() -> None:
    ids = ("functions.edit:0", "x" * 70, "x" * 64 + "y", "", "", "call_1", "call_1")
    turns = [
        each
        for call_id in ids
        for each in (
            turn("assistant", call(call_id)),
            turn("tool", result(words("r"), call_id=call_id)),
        )
    ]
    messages = written(request(GO, *turns))["messages"]
    longer = written(request(GO, *turns, turn("user", words("more"))))["messages"]

    told = [each["tool_call_id"] for each in messages if each["role"] == "tool"]
    assert [each["tool_calls"][0]["id"] for each in messages if "tool_calls" in each] == told
    assert len(set(told)) == len(ids)
    assert told[0] == ids[0]
    assert longer[: len(messages)] == messages


SCHEMA = b'{"type":"object","properties":{"n":{"const":1.50}}}'
NOTHING = {"type": "object", "properties": {}}
GRAMMAR = b'{"type":"grammar","syntax":"lark","definition":"start: /a/"}'


def test_tools_are_functions() -> None:
    long = ToolName(name="n" * 70)
    tools = (
        AskedTool(tool=F, description="Does.", parameters=SCHEMA, strict=True),
        AskedTool(tool=ToolName(name="f", namespace="fs"), about_namespace="Files.", strict=False),
        AskedTool(tool=ToolName(name="g", namespace="fs"), about_namespace="Files."),
        AskedTool(tool=ToolName(name="p"), custom=True, grammar=GRAMMAR, strict=True),
        AskedTool(tool=long),
    )
    asked = request(
        GO, turn("assistant", call(name=long)), DONE, tools=tools, choice=None, parallel=False
    )
    raw = CHAT.write(asked, Facts())
    body = written(asked)

    functions = [each["function"] for each in body["tools"]]
    assert functions[:3] == [
        {"name": "f", "description": "Does.", "parameters": json.loads(SCHEMA), "strict": True},
        {"name": "fs__f", "description": "Files.", "parameters": NOTHING, "strict": False},
        {"name": "fs__g", "parameters": NOTHING},
    ]
    assert SCHEMA in raw
    assert functions[3]["parameters"]["required"] == ["input"]
    assert "start: /a/" in functions[3]["description"]
    assert "lark" in functions[3]["description"]
    assert len(functions[4]["name"]) == 64
    assert body["messages"][1]["tool_calls"][0]["function"]["name"] == functions[4]["name"]
    assert body["parallel_tool_calls"] is False


G, H, GONE = ToolName(name="g"), ToolName(name="h"), ToolName(name="gone")
BY_NAME = {"type": "function", "function": {"name": "f"}}
#: Choices, what is written of them, and the tools that are offered.
CHOICES: list[tuple[Choice | None, Any, str]] = [
    (None, None, "fgh"),
    (Choice(mode="none"), "none", "fgh"),
    (Choice(mode="auto"), "auto", "fgh"),
    (Choice(mode="required"), "required", "fgh"),
    (Choice(mode="required", allowed=(F,)), BY_NAME, "fgh"),
    (Choice(mode="required", allowed=(F, G)), "required", "fg"),
    (Choice(mode="auto", allowed=(G,)), "auto", "g"),
    (Choice(mode="required", allowed=(F, GONE)), "required", "f"),
    (Choice(mode="required", allowed=(GONE,)), "none", "fgh"),
    (Choice(mode="auto", allowed=(GONE,)), "none", "fgh"),
    (Choice(mode="none", allowed=(F,)), "none", "fgh"),
]


def test_choices_are_never_widened() -> None:
    misses = []
    tools = tuple(AskedTool(tool=each) for each in (F, G, H))
    for choice, wanted, offered in CHOICES:
        body = written(request(tools=tools, choice=choice))
        names = "".join(each["function"]["name"] for each in body["tools"])
        if (body.get("tool_choice"), names) != (wanted, offered):
            misses.append((choice, body.get("tool_choice"), names))
    assert misses == []


def test_choice_without_tools_is_not_written() -> None:
    body = written(request(choice=Choice(mode="required"), parallel=True))

    assert body.keys() == {"model", "messages"}


#: Settings of a request, what is written of them, and what is told.
SETTINGS: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({"limit": 9, "stop": ("a",)}, {"max_completion_tokens": 9, "stop": ["a"]}, []),
    ({"stop": tuple("abcde")}, {"stop": ["a", "b", "c", "d"]}, ["left out all stop texts but 4"]),
    ({"limit": -1}, {}, ["left out the limit of -1 tokens"]),
    ({"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}, []),
    ({"stream": False}, {"stream": False}, []),
    ({"effort": "max"}, {"reasoning_effort": "max"}, []),
    ({"effort": "none"}, {"reasoning_effort": "none"}, []),
    ({"effort": "ultra"}, {}, ["left out the reasoning effort `ultra`"]),
    ({"schema": Schema(schema=b"")}, {"response_format": {"type": "json_object"}}, []),
    (
        {"schema": Schema(schema=SCHEMA)},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": json.loads(SCHEMA)},
            }
        },
        [],
    ),
    (
        {"settings": {"temperature": b"1.10", "top_k": b"4", "cache_key": b'"k"'}},
        {"temperature": 1.1, "prompt_cache_key": "k"},
        ["left out top_k"],
    ),
    (
        {"settings": {"user": b'"' + b"x" * 65 + b'"', "service_tier": b'"batch"'}},
        {},
        [
            "left out user, which the provider refuses as it is",
            "left out service_tier, which the provider refuses as it is",
        ],
    ),
    (
        {"settings": {"user": b'"' + b"\\u00e9" * 64 + b'"', "service_tier": b'"flex"'}},
        {"user": "é" * 64, "service_tier": "flex"},
        [],
    ),
    (
        {"settings": {"metadata": b'{"a":"b"}', "store": b"true"}},
        {"metadata": {"a": "b"}, "store": True},
        [],
    ),
    (
        {"settings": {"metadata": b'{"a":"b"}', "store": b"false"}},
        {},
        [
            "left out metadata, which the provider takes of answers that it stores",
            "left out store=false",
        ],
    ),
    ({"settings": {"top_logprobs": b"3"}}, {}, ["left out top_logprobs"]),
    (
        {"settings": {"top_logprobs": b"3", "logprobs": b"true"}},
        {"logprobs": True, "top_logprobs": 3},
        [],
    ),
]


def test_settings() -> None:
    misses = []
    for given, wanted, told in SETTINGS:
        asked = request(**given)
        found = {
            key: value for key, value in written(asked).items() if key not in ("model", "messages")
        }
        if found != wanted or asked.told.lines != told:
            misses.append((given, found, asked.told.lines))
    assert misses == []


def test_numbers_stay_what_they_are() -> None:
    raw = CHAT.write(request(settings={"temperature": b"1.10"}), Facts())

    assert b'"temperature":1.10' in raw


def test_schema_may_be_asked_for_by_a_tool() -> None:
    facts = Facts(forced_schema=True)
    schema = Schema(schema=SCHEMA, description="What is wanted.")
    alone = written(request(schema=schema), facts)
    beside = written(request(schema=schema, tools=(AskedTool(tool=F),)), facts)
    asked = request(
        schema=schema,
        tools=(AskedTool(tool=F),),
        choice=Choice(mode="required", allowed=(F,)),
    )
    demanded = written(asked, facts)

    (tool,) = alone["tools"]
    assert tool["function"]["parameters"] == json.loads(SCHEMA)
    assert alone["tool_choice"]["function"]["name"] == tool["function"]["name"]
    assert beside["tool_choice"] == "required"
    assert beside["tools"][0]["function"]["name"] == "f"
    assert demanded["tool_choice"] == BY_NAME
    assert not any("response_format" in body for body in (alone, beside, demanded))
    assert asked.told.lines == ["left out the schema of the answer, for a tool must be called"]
