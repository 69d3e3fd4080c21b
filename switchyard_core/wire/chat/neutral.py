"""A Chat Completions request as a neutral one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from switchyard_core.jsonio.tree import JsonTextError, ObjectText, loads, object_of
from switchyard_core.wire.chat.written import write_request
from switchyard_core.wire.history import INSTRUCTIONS
from switchyard_core.wire.naming import hashed_id
from switchyard_core.wire.neutral import (
    AskedTool,
    Call,
    Choice,
    Media,
    NeutralPart,
    NeutralRequest,
    Result,
    Schema,
    Thought,
    Told,
    ToolName,
    Turn,
    Words,
)

__all__ = ["read_request", "write_request"]

_Role = Literal["system", "user", "assistant", "tool"]

#: Keys of a body whose neutral name is another one, and those that keep theirs.
_SETTINGS = {
    "prompt_cache_key": "cache_key",
    **{
        key: key
        for key in (
            *("temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty"),
            *("logprobs", "top_logprobs", "verbosity", "user", "metadata", "service_tier"),
            *("store", "safety_identifier"),
        )
    },
}
_NUMBERS = ("temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty")
_TYPES = {
    **dict.fromkeys((*_NUMBERS, "top_logprobs"), b"-0123456789"),
    **dict.fromkeys(("logprobs", "store"), b"tf"),
    "metadata": b"{",
}
#: Keys that are read elsewhere, or mean nothing in another format.
_READ = frozenset(
    (
        *("model", "messages", "tools", "functions", "tool_choice", "function_call"),
        *("parallel_tool_calls", "response_format", "reasoning_effort", "stop", "stream"),
        *("max_completion_tokens", "max_tokens", "stream_options", "web_search_options"),
    )
)
#: Keys of a message that are read, or say nothing that another provider could use.
_OF_MESSAGE = frozenset(
    (
        *("role", "content", "refusal", "tool_calls", "function_call", "tool_call_id"),
        *("reasoning_content", "reasoning", "reasoning_details", "cache_control", "audio"),
    )
)
_RESULTS = ("tool", "function")
_NOTHING = (b"null", b'""', b"[]", b"{}")
_MODES: dict[str, Literal["none", "auto", "required"]] = {
    "none": "none",
    "auto": "auto",
    "required": "required",
}


def read_request(fields: ObjectText) -> NeutralRequest:
    """Return what a request says."""
    request = NeutralRequest(model=fields.text("model") or "")
    history = _History(request.told)
    for place, message in _objects(fields, "messages", "", request.told.left_out):
        history.add(message, place)
    request.instructions, request.turns = history.read()
    _read_tools(fields, request)
    _read_settings(fields, request)
    return request


class _History:
    """Collects messages into turns."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._instructions: list[Words] = []
        self._turns: list[tuple[_Role, list[NeutralPart]]] = []
        #: Ids of the last call of each function in the old form, and of calls with free text.
        self._old: dict[str, str] = {}
        self._custom: set[str] = set()

    def read(self) -> tuple[tuple[Words, ...], tuple[Turn, ...]]:
        """Return the instructions and the turns."""
        turns = [Turn(role=role, parts=tuple(parts)) for role, parts in self._turns]
        return tuple(self._instructions), tuple(turns)

    def add(self, message: ObjectText, place: str) -> None:
        """Read one message."""
        role = message.text("role") or ""
        # The name in a result is that of the call.
        known = _OF_MESSAGE | {"name"} if role in _RESULTS else _OF_MESSAGE
        self._told.left_out += [
            f"{key} of {place}"
            for key in dict.fromkeys(message.keys())
            if key not in known and message.raw(key) not in _NOTHING
        ]
        if role in INSTRUCTIONS:
            words = [part for part in self._content(message, place) if isinstance(part, Words)]
            if self._turns:
                self._turn("system", words)
            else:
                self._instructions += words
        elif role in _RESULTS:
            self._turn("tool", [self._result(message, place)])
        elif role == "assistant":
            self._turn("assistant", self._answer(message, place))
        elif role == "user":
            self._turn("user", list(self._content(message, place)))
        else:
            self._told.lost.append(f"{place}, whose role is unknown")

    def _turn(self, role: _Role, parts: Sequence[NeutralPart]) -> None:
        if not parts:
            return
        if self._turns and self._turns[-1][0] == role != "system":
            self._turns[-1][1].extend(parts)
        else:
            self._turns.append((role, [*parts]))

    def _answer(self, message: ObjectText, place: str) -> list[NeutralPart]:
        thought = _thought(message)
        parts: list[NeutralPart] = [Thought(text=thought)] if thought else []
        if not thought and (message.raw("reasoning_details") or b"null") not in _NOTHING:
            self._told.left_out.append(f"reasoning_details of {place}")
        parts += self._content(message, place)
        refusal = message.text("refusal") or ""
        if refusal.strip():
            parts.append(Words(text=refusal, refusal=True))
        if (message.raw("audio") or b"null") not in _NOTHING:
            self._told.lost.append(f"audio of {place}")
        for at, call in _objects(message, "tool_calls", f"{place}.", self._told.left_out):
            parts.append(self._call(call, at))
        old = message.object("function_call")
        name = (old.text("name") or "") if old is not None else ""
        if old is not None and name:
            # The older form names the tool alone, in the result too.
            self._old[name] = hashed_id(f"{place} {name}")
            tool = ToolName(name=name)
            parts.append(Call(id=self._old[name], tool=tool, arguments=_arguments(old)))
        return parts

    def _call(self, call: ObjectText, place: str) -> Call:
        function = call.object("function")
        custom = call.object("custom") if function is None else None
        named = next((each for each in (function, custom) if each is not None), call)
        made = Call(
            id=call.text("id") or "",
            tool=ToolName(name=named.text("name") or ""),
            arguments=(named.text("input") or "") if custom is not None else _arguments(named),
            custom=custom is not None,
            cache=_cache(call),
        )
        if not made.tool.name:
            self._told.changed.append(f"{place} names no tool")
        if made.custom:
            self._custom.add(made.id)
        return made

    def _result(self, message: ObjectText, place: str) -> Result:
        call_id = message.text("tool_call_id") or ""
        if not call_id:
            call_id = self._old.get(message.text("name") or "", "")
        parts = tuple(self._content(message, place, mark=False))
        custom = bool(call_id) and call_id in self._custom
        return Result(call_id=call_id, parts=parts, custom=custom, cache=_cache(message))

    def _content(
        self, message: ObjectText, place: str, *, mark: bool = True
    ) -> Iterator[Words | Media]:
        text = message.text("content")
        if text is not None:
            if text.strip():
                yield Words(text=text, cache=_cache(message) if mark else b"")
            return
        for at, part in _objects(message, "content", f"{place}.", self._told.left_out):
            found = _part(part, at, self._told)
            if found is not None:
                yield found


def _objects(
    holder: ObjectText, key: str, place: str, odd: list[str]
) -> Iterator[tuple[str, ObjectText]]:
    """Yield the objects of an array with their places; whatever else is there is named."""
    raw, items = holder.raw(key), holder.array(key)
    if items is None:
        if raw is not None and raw != b"null":
            odd.append(f"{place}{key}, which is not an array")
        return
    for index in range(len(items)):
        item = items.object(index)
        if item is None:
            odd.append(f"{place}{key}[{index}], which is not an object")
        else:
            yield f"{place}{key}[{index}]", item


def _cache(holder: ObjectText) -> bytes:
    raw = holder.raw("cache_control") or b""
    return raw if raw[:1] == b"{" else b""


def _thought(message: ObjectText) -> str:
    for key in ("reasoning_content", "reasoning"):
        text = message.text(key) or ""
        if text.strip():
            return text
    details = message.array("reasoning_details")
    if details is None:
        return ""
    texts = [part.text("text") or part.text("summary") or "" for _, part in details.objects()]
    return "\n\n".join([text for text in texts if text.strip()])


def _arguments(named: ObjectText) -> str:
    """Return the arguments of a call as text; some clients send the object itself."""
    text = named.text("arguments")
    if text is not None:
        return text
    raw = named.raw("arguments") or b"null"
    return "" if raw == b"null" else raw.decode("utf-8", "replace")


def _part(part: ObjectText, place: str, told: Told) -> Words | Media | None:
    kind, cache = part.text("type") or "", _cache(part)
    if kind in ("text", "refusal"):
        text = part.text(kind) or ""
        words = Words(text=text, refusal=kind == "refusal", cache=cache)
        return words if text.strip() else None
    if kind == "image_url":
        image = part.object("image_url")
        url = (image.text("url") if image is not None else part.text("image_url")) or ""
        detail = (image.text("detail") if image is not None else "") or ""
        if url:
            return Media(kind="image", url=url, detail=detail, cache=cache)
    elif kind == "file":
        file = part.object("file")
        data = (file.text("file_data") if file is not None else "") or ""
        if file is not None and data:
            return Media(kind="file", url=data, name=file.text("filename") or "", cache=cache)
    told.lost.append(f"{place} of type {_printable(kind)}")
    return None


def _printable(kind: str) -> str:
    return f"`{kind[:64]}`" if kind and kind.isprintable() else "unknown"


# --- tools -----------------------------------------------------------------------------------


def _read_tools(fields: ObjectText, request: NeutralRequest) -> None:
    told, tools = request.told, list[AskedTool]()
    for place, tool in _objects(fields, "tools", "", told.left_out):
        function = tool.object("function")
        custom = tool.object("custom") if function is None else None
        if function is not None:
            asked = _function(function, _cache(tool))
        elif custom is not None:
            asked = _custom(custom, _cache(tool))
        else:
            told.lost.append(f"{place} of type {_printable(tool.text('type') or '')}")
            continue
        if asked.tool.name:
            tools.append(asked)
        else:
            told.left_out.append(f"{place}, which has no name")
    for _, function in _objects(fields, "functions", "", told.left_out):
        tools.append(_function(function, b""))
    if "web_search_options" in fields:
        told.lost.append("web_search_options")
    request.tools = tuple(tools)
    key = "function_call" if "tool_choice" not in fields else "tool_choice"
    request.choice = _choice(fields, key, told)
    request.parallel = _flag(fields, "parallel_tool_calls", told)


def _function(function: ObjectText, cache: bytes) -> AskedTool:
    parameters = function.raw("parameters") or b""
    return AskedTool(
        tool=ToolName(name=function.text("name") or ""),
        description=function.text("description") or "",
        parameters=parameters if parameters[:1] == b"{" else b"",
        strict={b"true": True, b"false": False}.get(function.raw("strict") or b""),
        cache=cache or _cache(function),
    )


def _custom(custom: ObjectText, cache: bytes) -> AskedTool:
    form = custom.object("format")
    grammar = form.object("grammar") if form is not None else None
    return AskedTool(
        tool=ToolName(name=custom.text("name") or ""),
        description=custom.text("description") or "",
        custom=True,
        grammar=_grammar(grammar) if grammar is not None else b"",
        cache=cache,
    )


def _grammar(grammar: ObjectText) -> bytes:
    # Without the level that no other format has.
    members = {key: grammar.raw(key) for key in dict.fromkeys(grammar.keys())}
    return object_of({"type": "grammar", **members})


def _choice(fields: ObjectText, key: str, told: Told) -> Choice | None:
    raw = fields.raw(key) or b"null"
    if raw == b"null":
        return None
    mode = _MODES.get(fields.text(key) or "")
    chosen = fields.object(key)
    if mode is not None:
        return Choice(mode=mode)
    if chosen is not None:
        allowed = chosen.object("allowed_tools")
        if allowed is not None:
            listed = [
                named for _, tool in _objects(allowed, "tools", "", []) for named in _name(tool)
            ]
            mode = _MODES.get(allowed.text("mode") or "", "auto")
            return Choice(mode=mode, allowed=tuple(listed))
        named = tuple(_name(chosen))
        if named:
            return Choice(mode="required", allowed=named)
    told.left_out.append(key)
    return None


def _name(tool: ObjectText) -> Iterator[ToolName]:
    inner = tool.object("function") or tool.object("custom") or tool
    name = inner.text("name") or ""
    if name:
        yield ToolName(name=name)


# --- settings --------------------------------------------------------------------------------


def _read_settings(fields: ObjectText, request: NeutralRequest) -> None:
    told = request.told
    request.schema = _schema(fields, told)
    request.stream = _flag(fields, "stream", told)
    request.effort = _word(fields, "reasoning_effort", told)
    request.limit = _limit(fields, told)
    request.stop = _stop(fields, told)
    settings: dict[str, bytes] = {}
    for key in dict.fromkeys(fields.keys()):
        raw = fields.raw(key) or b"null"
        if key in _READ or raw == b"null":
            continue
        name = _SETTINGS.get(key)
        if name is None or raw[0] not in _TYPES.get(key, b'"'):
            told.left_out.append(key)
        else:
            settings[name] = raw
    request.settings = settings


def _word(fields: ObjectText, key: str, told: Told) -> str:
    text = fields.text(key)
    if text is None and (fields.raw(key) or b"null") != b"null":
        told.left_out.append(key)
    return text or ""


def _flag(fields: ObjectText, key: str, told: Told) -> bool | None:
    raw = fields.raw(key) or b"null"
    if raw in (b"true", b"false"):
        return raw == b"true"
    if raw != b"null":
        told.left_out.append(key)
    return None


def _limit(fields: ObjectText, told: Told) -> int | None:
    found = None
    for key in ("max_completion_tokens", "max_tokens"):
        raw = fields.raw(key) or b"null"
        if raw == b"null":
            continue
        if found is None and raw.isdigit() and 0 < len(raw) < 10 and int(raw):
            found = int(raw)
        elif found is None or raw != str(found).encode():
            told.left_out.append(key)
    return found


def _stop(fields: ObjectText, told: Told) -> tuple[str, ...]:
    raw = fields.raw("stop") or b"null"
    try:
        value = loads(raw)
    except JsonTextError:  # pragma: no cover  # the body was read already
        value = raw
    values = [value] if isinstance(value, str) else value or []
    if isinstance(values, list) and all(isinstance(each, str) for each in values):
        return tuple([each for each in values if each])
    told.left_out.append("stop")
    return ()


def _schema(fields: ObjectText, told: Told) -> Schema | None:
    form = fields.object("response_format")
    kind = (form.text("type") if form is not None else "") or ""
    if form is not None and kind == "json_object":
        return Schema(schema=b"")
    named = form.object("json_schema") if form is not None and kind == "json_schema" else None
    schema = (named.raw("schema") if named is not None else b"") or b""
    if named is not None and schema[:1] == b"{":
        return Schema(
            schema=schema,
            name=named.text("name") or "",
            description=named.text("description") or "",
            strict={b"true": True, b"false": False}.get(named.raw("strict") or b""),
        )
    if kind != "text" and (fields.raw("response_format") or b"null") != b"null":
        told.left_out.append("response_format")
    return None
