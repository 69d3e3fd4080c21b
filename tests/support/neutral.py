"""Requests as no wire format in particular: what property tests of translation are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import strategies as st

from switchyard_core.wire.neutral import (
    AskedTool,
    Call,
    Choice,
    Facts,
    Media,
    NeutralPart,
    NeutralRequest,
    Result,
    Schema,
    Thought,
    ToolName,
    Turn,
    Words,
)

__all__ = ["FACTS", "requests"]

_MARK = b'{"type":"ephemeral"}'
_SCHEMA = b'{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}'
_PNG = "data:image/png;base64,iVBORw0KGgo="
_PDF = "data:application/pdf;base64,JVBERi0="

TEXTS = st.sampled_from(
    [
        "fix the bug",
        "I look.",
        " leading and trailing ",
        "two\n\nparagraphs",
        'quotes " and \\ and \u2028',
        "日本語 🎉",
        "cut \ud83d",
        "data: [DONE]\n\n",
        "{}",
    ]
)
_MARKS = st.sampled_from([b"", b"", b"", _MARK])
#: Ids as clients and providers make them, legal in all formats, in some, or in none.
_IDS = (
    "call_1",
    "call_2",
    "toolu_01AbC",
    "functions.edit:0",
    "functions.edit:1",
    "x" * 40,
    "x" * 64 + "a",
    "x" * 64 + "b",
    "é",
    "chatcmpl-tool-0123456789abcdef0123456789abcdef",
)
_NAMES = (
    *("read", "edit_file", "mcp__server__do", "a.b", "naïve", "input"),
    *("n" * 64, "n" * 65, "n" * 70 + "a", "n" * 70 + "b", "n" * 128),
)
_TOOLS = tuple(
    ToolName(name=name, namespace=space)
    for space, names in (("", _NAMES), ("fs", ("read", "n" * 64)), ("fs__x", ("read",)))
    for name in names
)
_ARGUMENTS = st.sampled_from(
    [
        "",
        "{}",
        '{"path": "a.py"}',
        '{"n": 1.10, "big": 123456789012345678901234567890, "e": 1E5}',
        '{"deep": {"list": [1, null, true, "\\u00e9 é"]}}',
        '{"a": 1, "a": 2}',
        '{"input": "x"}',
        '{"_raw": "x"}',
        "not JSON",
        '{"path": "a',
        "[1]",
        "null",
        '"text"',
    ]
)
_FREE = st.sampled_from(["*** Begin Patch\n+x\n*** End Patch", "", "{}", "await f()"])


@st.composite
def _media(draw: st.DrawFn, *kinds: str) -> Media:
    kind = draw(st.sampled_from(kinds))
    if kind == "image":
        urls = (_PNG, "https://example.org/a.png")
        detail = draw(st.sampled_from(["", "", "low", "high"]))
        return Media(
            kind="image", url=draw(st.sampled_from(urls)), detail=detail, cache=draw(_MARKS)
        )
    name = draw(st.sampled_from(["", "paper.pdf"]))
    url = draw(st.sampled_from([_PDF, "https://example.org/a.pdf"]))
    return Media(kind="file", url=url, name=name, cache=draw(_MARKS))


_WORDS = st.builds(Words, text=TEXTS, cache=_MARKS)
_USER_PARTS = st.lists(_WORDS | _media("image", "file"), min_size=1, max_size=3).map(tuple)
_ASIDE = st.lists(
    st.builds(Words, text=TEXTS, cache=_MARKS)
    | st.builds(Words, text=TEXTS, refusal=st.just(True))
    | st.builds(Thought, text=TEXTS),
    max_size=2,
)
_RESULT_PARTS = st.lists(_WORDS | _media("image", "file"), max_size=2).map(tuple)


@st.composite
def _asked(draw: st.DrawFn) -> tuple[AskedTool, ...]:
    names = draw(st.lists(st.sampled_from(_TOOLS), max_size=4, unique=True))
    return tuple(draw(_tool(name)) for name in names)


@st.composite
def _tool(draw: st.DrawFn, name: ToolName) -> AskedTool:
    custom = draw(st.sampled_from([False, False, True]))
    made = AskedTool(
        tool=name,
        description=draw(st.sampled_from(["", "Reads a file."])),
        about_namespace="Files." if name.namespace == "fs" else "",
        cache=draw(_MARKS),
    )
    if custom:
        grammar = b'{"type":"grammar","syntax":"lark","definition":"start: /a/"}'
        return replace(made, custom=True, grammar=draw(st.sampled_from([b"", grammar])))
    schema, strict = (
        draw(st.sampled_from([b"", _SCHEMA])),
        draw(st.sampled_from([None, True, False])),
    )
    return replace(made, parameters=schema, strict=strict)


@st.composite
def _exchange(draw: st.DrawFn, tools: tuple[AskedTool, ...], ids: Iterator[str]) -> list[Turn]:
    """What the assistant does at once, what comes of it, and what the user says then."""
    parts: list[NeutralPart] = list(draw(_ASIDE))
    outcomes: list[Result] = []
    for _ in range(draw(st.integers(0, 3))):
        asked = draw(st.sampled_from(tools)) if tools else AskedTool(tool=ToolName(name="gone"))
        call_id = next(ids)
        text = draw(_FREE if asked.custom else _ARGUMENTS)
        cache, custom = draw(_MARKS), asked.custom
        made = Call(id=call_id, tool=asked.tool, arguments=text, custom=custom, cache=cache)
        parts.append(made)
        outcomes.append(
            Result(
                call_id=call_id,
                parts=draw(_RESULT_PARTS),
                failed=draw(st.sampled_from([False, False, True])),
                custom=custom,
                cache=draw(_MARKS),
            )
        )
        parts += draw(_ASIDE) if draw(st.integers(0, 3)) == 0 else []
    parts = parts or [Words(text=draw(TEXTS))]
    turns = [Turn(role="assistant", parts=tuple(parts))]
    if outcomes:
        turns.append(Turn(role="tool", parts=tuple(outcomes)))
    if draw(st.integers(0, 4)) == 0:
        turns.append(Turn(role="system", parts=(draw(_WORDS),)))
    if not outcomes or draw(st.booleans()):
        turns.append(Turn(role="user", parts=draw(_USER_PARTS)))
    return turns


_SETTINGS: dict[str, tuple[bytes, ...]] = {
    "temperature": (b"0", b"0.5", b"1.0"),
    "top_p": (b"0.95",),
    "top_k": (b"40",),
    "seed": (b"7",),
    "frequency_penalty": (b"0.1",),
    "presence_penalty": (b"0.1",),
    "logprobs": (b"true",),
    "top_logprobs": (b"3",),
    "verbosity": (b'"low"',),
    "user": (b'"u-1"',),
    "metadata": (b'{"a":"b"}',),
    "service_tier": (b'"auto"',),
    "store": (b"false",),
    "cache_key": (b'"key"',),
    "safety_identifier": (b'"s-1"',),
}


@st.composite
def _settings(draw: st.DrawFn) -> dict[str, bytes]:
    names = draw(st.lists(st.sampled_from(sorted(_SETTINGS)), max_size=4, unique=True))
    return {name: draw(st.sampled_from(_SETTINGS[name])) for name in names}


@st.composite
def _choice(draw: st.DrawFn, tools: tuple[AskedTool, ...]) -> Choice | None:
    if not tools:
        return None
    mode = draw(st.sampled_from([None, "none", "auto", "required"]))
    if mode is None:
        return None
    some = () if mode == "none" else tuple(draw(st.lists(st.sampled_from(tools), max_size=2)))
    return Choice(mode=mode, allowed=tuple(dict.fromkeys(each.tool for each in some)))


@st.composite
def requests(draw: st.DrawFn) -> NeutralRequest:
    """Return a request with anything that a body can say."""
    tools = draw(_asked())
    ids = iter(draw(st.permutations(_IDS)) + [f"call_more_{n}" for n in range(9)])
    turns = [Turn(role="user", parts=draw(_USER_PARTS))]
    for _ in range(draw(st.integers(0, 2))):
        turns += draw(_exchange(tools, ids))
    schema = st.builds(
        Schema,
        schema=st.sampled_from([b"", _SCHEMA]),
        name=st.just("answer"),
        strict=st.sampled_from([None, True]),
    )
    return NeutralRequest(
        model="switchyard/auto",
        instructions=tuple(draw(st.lists(_WORDS, max_size=2))),
        turns=tuple(turns),
        tools=tools,
        choice=draw(_choice(tools)),
        parallel=draw(st.sampled_from([None, True, False])) if tools else None,
        schema=draw(st.none() | schema),
        effort=draw(st.sampled_from(["", "", "none", "minimal", "low", "high", "xhigh", "max"])),
        limit=draw(st.sampled_from([None, 100, 64000])),
        stop=draw(st.sampled_from([(), (), ("END",), ("END", "\n\n")])),
        stream=draw(st.sampled_from([None, True, False])),
        settings=draw(_settings()),
    )


#: What a writer may know of a model.
FACTS = st.builds(
    Facts,
    max_output=st.sampled_from([None, 32000]),
    reasoning_key=st.sampled_from(["", "reasoning_content"]),
    system_rows=st.booleans(),
    thinks=st.booleans(),
    forced_schema=st.booleans(),
    cache_marks=st.booleans(),
)
