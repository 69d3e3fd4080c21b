"""What Responses can say stays what it is: written, and read again."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire.naming import ToolNames, id_at_target
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
    Turn,
    Words,
)
from switchyard_core.wire.responses.neutral import write_request
from tests.support.neutral import requests
from tests.wire.responses.bodies import RESPONSES, read, refused
from tests.wire.responses.test_neutral import captured

_OPEN = b'{"type":"object","properties":{}}'
#: Settings that Responses has a key for.
_KNOWN = frozenset(
    {
        *("temperature", "top_p", "top_logprobs", "user", "metadata", "service_tier", "store"),
        *("cache_key", "safety_identifier", "logprobs", "verbosity"),
    }
)
_SAMPLING = ("temperature", "top_p", "logprobs", "top_logprobs")


def sayable(request: NeutralRequest) -> NeutralRequest:
    """Return what of a request Responses can say, as it says it."""
    names = ToolNames(request.tools, RESPONSES)
    turns = [replace(turn, parts=_parts(turn, names)) for turn in request.turns]
    settings = {key: raw for key, raw in request.settings.items() if key in _KNOWN}
    said = "\n\n".join(words.text for words in request.instructions)
    return replace(
        request,
        instructions=(Words(text=said),) if said else (),
        turns=tuple(_joined(turns)),
        tools=_grouped([_tool(tool, names) for tool in request.tools]),
        choice=_choice(request, names),
        schema=_schema(request.schema),
        parallel=request.parallel if request.tools else None,
        limit=request.limit and max(request.limit, 16),
        stop=(),
        settings={"store": b"false", **settings},
    )


def _joined(turns: list[Turn]) -> list[Turn]:
    """Return the turns that say something, those of one role as one."""
    made: list[Turn] = []
    for turn in turns:
        if made and turn.parts and turn.role == made[-1].role != "system":
            turn = replace(turn, parts=(*made.pop().parts, *turn.parts))  # noqa: PLW2901
        if turn.parts:
            made.append(turn)
    return made


def _schema(schema: Schema | None) -> Schema | None:
    if schema is None or not schema.schema:
        return schema and Schema(schema=b"")
    return replace(schema, name=schema.name or "answer")


def _parts(turn: Turn, names: ToolNames) -> tuple[NeutralPart, ...]:
    return tuple(_part(part, names) for part in turn.parts if not isinstance(part, Thought))


def _part(part: NeutralPart, names: ToolNames) -> NeutralPart:
    if isinstance(part, Call):
        call_id, tool = id_at_target(part.id, RESPONSES), names.at_target(part.tool)
        arguments = part.arguments or ("" if part.custom else "{}")
        return replace(part, id=call_id, tool=tool, arguments=arguments, cache=b"")
    if isinstance(part, Result):
        call_id = id_at_target(part.call_id, RESPONSES)
        return replace(part, call_id=call_id, parts=_result(part), failed=False, cache=b"")
    return _media(part) if isinstance(part, Media) else replace(part, cache=b"")  # type: ignore[type-var]


def _media(part: Media) -> Media:
    name = part.name
    if part.kind == "file":
        name = (name or "file.pdf") if part.url.startswith("data:") else ""
    return replace(part, name=name, cache=b"")


def _result(result: Result) -> tuple[Words | Media, ...]:
    """Return the parts of a result: texts alone are one."""
    failed, parts = "[the tool call failed]", [replace(part, cache=b"") for part in result.parts]
    texts = [part.text for part in parts if isinstance(part, Words)]
    if len(texts) < len(parts):
        head = [Words(text=failed)] if result.failed else []
        return (*head, *(_media(part) if isinstance(part, Media) else part for part in parts))
    text = "\n\n".join(texts) or "[the tool returned nothing]"
    return (Words(text=f"{failed}\n{text}" if result.failed else text),)


def _tool(tool: AskedTool, names: ToolNames) -> AskedTool:
    made = replace(tool, tool=names.at_target(tool.tool), cache=b"")
    if not tool.custom:
        made = replace(made, strict=bool(tool.strict), parameters=tool.parameters or _OPEN)
    return made


def _grouped(tools: list[AskedTool]) -> tuple[AskedTool, ...]:
    """Return the tools in the order in which namespaces leave them."""
    first = {}
    for at, tool in enumerate(tools):
        first.setdefault(tool.tool.namespace or str(at), at)
    return tuple(
        sorted(tools, key=lambda tool: first[tool.tool.namespace or str(tools.index(tool))])
    )


def _choice(request: NeutralRequest, names: ToolNames) -> Choice | None:
    choice = request.choice
    if choice is None or not request.tools:
        return None
    if choice.mode == "none":
        return Choice(mode="none")
    return replace(choice, allowed=tuple(names.at_target(each) for each in choice.allowed))


def again(request: NeutralRequest) -> NeutralRequest:
    """Return what is read of the body that says a request."""
    return RESPONSES.neutral(ObjectText(write_request(request, Facts(), RESPONSES)))


def told_nothing(request: NeutralRequest) -> NeutralRequest:
    return replace(request, told=type(request.told)())


@given(requests())
def test_what_was_written_is_read_as_the_same(request: NeutralRequest) -> None:
    found = again(request)

    assert found.told.lines == []
    assert told_nothing(found) == told_nothing(sayable(request))


@given(requests())
def test_what_was_written_is_accepted_and_stays_as_it_is(request: NeutralRequest) -> None:
    # Which sampling and which efforts a model takes, profiles know.
    settings = {key: raw for key, raw in request.settings.items() if key not in _SAMPLING}
    fitted = replace(request, model="gpt-5.5", effort="low", settings=settings)
    once = write_request(fitted, Facts(), RESPONSES)
    found = RESPONSES.neutral(ObjectText(once))

    assert refused(once) == []
    assert write_request(found, Facts(), RESPONSES) == once


def test_captured_requests_are_read_as_the_same_again() -> None:
    for name, body in captured().items():
        if "previous_response_id" in body:
            continue
        request = read(**body)
        assert told_nothing(again(request)) == told_nothing(sayable(request)), name


def test_a_schema_without_a_name_gets_one() -> None:
    request = replace(read(), schema=Schema(schema=_OPEN))

    assert again(request).schema == Schema(schema=_OPEN, name="answer")
