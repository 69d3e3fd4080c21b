"""A Responses request as a neutral one, and back: its settings; items and tools are beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from switchyard_core.jsonio.tree import ObjectText, encode, loads, object_of
from switchyard_core.wire.format import Format
from switchyard_core.wire.naming import ToolNames
from switchyard_core.wire.neutral import Facts, NeutralRequest, Schema, Told, tell_lost_choice
from switchyard_core.wire.responses.items import read_history, read_instructions
from switchyard_core.wire.responses.offered import (
    Offered,
    by_tool,
    in_spaces,
    read_choice,
    write_choice,
    write_tools,
)
from switchyard_core.wire.responses.written import write_history
from switchyard_core.wire.shapes import JsonType, type_of

__all__ = ["read_request", "write_request"]

#: Settings with a counterpart, by key: neutral name and JSON type.
_SETTINGS: Mapping[str, tuple[str, JsonType]] = {
    "temperature": ("temperature", "number"),
    "top_p": ("top_p", "number"),
    "top_logprobs": ("top_logprobs", "number"),
    "user": ("user", "string"),
    "metadata": ("metadata", "object"),
    "service_tier": ("service_tier", "string"),
    "store": ("store", "boolean"),
    "prompt_cache_key": ("cache_key", "string"),
    "safety_identifier": ("safety_identifier", "string"),
}
#: Keys by which a history is at the provider, or a prompt.
_ELSEWHERE = ("previous_response_id", "conversation", "prompt")
#: Keys that are read one by one.
_READ = frozenset(
    {
        *("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls"),
        *("text", "reasoning", "include", "max_output_tokens", "stream"),
    }
)
#: Values that ask for nothing.
_USUAL: Mapping[str, bytes] = {"truncation": b'"disabled"', "background": b"false"}
_NOTHING = (None, b"null", b"{}", b"[]", b'""')
_LOGPROBS = "message.output_text.logprobs"
#: Tiers that the format knows, and the ones that other formats call otherwise.
_TIERS: Mapping[str, str] = {
    **{
        tier: tier for tier in ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")
    },
    "standard_only": "default",
}
#: Settings that name somebody or something, the most characters that OpenAI takes of them
#: (earendil-works/pi#4719, maximhq/bifrost#1000), and the least tokens of an answer (pi#6265).
_IDENTITIES = ("user", "safety_identifier", "prompt_cache_key")
_LEAST_TOKENS = 16
_LONGEST = 64


def read_request(fields: ObjectText, history: bytes) -> NeutralRequest:
    """Return what a request says; ``history`` is the JSON of its ``input``, ``b""`` for none."""
    told = Told()
    reader = _Reader(fields, told)
    offered = Offered(told)
    offered.add(fields.raw("tools"), "tools")
    apart = read_instructions(fields.raw("instructions"), told)
    leading, turns = read_history(history, offered, told)
    told.lost += [key for key in _ELSEWHERE if fields.raw(key) not in _NOTHING]
    choice = in_spaces(read_choice(fields.raw("tool_choice"), told), offered.tools)
    schema, verbosity = reader.text()
    settings = reader.settings()
    if verbosity:
        settings["verbosity"] = verbosity
    return NeutralRequest(
        model=fields.text("model") or "",
        instructions=(*apart, *leading),
        turns=turns,
        tools=offered.tools,
        choice=choice,
        parallel=reader.value("parallel_tool_calls", "boolean"),
        schema=schema,
        effort=reader.effort(),
        limit=reader.limit(),
        stream=reader.value("stream", "boolean"),
        settings=settings,
        told=told,
    )


class _Reader:
    """Reads settings; one of a wrong type is named and left out."""

    def __init__(self, fields: ObjectText, told: Told) -> None:
        self._fields = fields
        self._told = told

    def value(self, key: str, kind: JsonType) -> Any:
        """Return a member if it has a type."""
        raw = self._raw(self._fields, key, kind)
        return None if raw is None else loads(raw)

    def limit(self) -> int | None:
        """Return the most tokens of the answer."""
        key = "max_output_tokens"
        limit = self.value(key, "number")
        if limit is None or isinstance(limit, int):
            return limit
        self._told.left_out.append(f"{key}, which is not a whole number")
        return None

    def settings(self) -> dict[str, bytes]:
        """Return what has a counterpart; name what has none."""
        found: dict[str, bytes] = {}
        for key, (name, kind) in _SETTINGS.items():
            raw = self._raw(self._fields, key, kind)
            if raw is not None and raw not in _NOTHING:
                found[name] = raw
        for asked in self._asked_besides():
            if asked == _LOGPROBS:
                found["logprobs"] = b"true"
            else:
                self._told.left_out.append(f"include ({asked})")
        known = _READ | _SETTINGS.keys() | set(_ELSEWHERE)
        self._told.left_out += [
            key
            for key in dict.fromkeys(self._fields.keys())
            if key not in known and self._fields.raw(key) not in (*_NOTHING, _USUAL.get(key))
        ]
        return found

    def text(self) -> tuple[Schema | None, bytes]:
        """Return the form of the answer, and JSON of its verbosity."""
        asked = self._object(self._fields, "text")
        if asked is None:
            return None, b""
        self._name_others(asked, "text", ("format", "verbosity"))
        verbosity = self._raw(asked, "verbosity", "string", "text.") or b""
        form = self._object(asked, "format", "text.")
        return (None if form is None else self._schema(form)), verbosity

    def _schema(self, form: ObjectText) -> Schema | None:
        kind = form.text("type")
        if kind == "json_object":
            return Schema(schema=b"")
        if kind == "text":
            return None
        schema = self._raw(form, "schema", "object", "text.format.")
        if kind != "json_schema" or schema is None:
            self._told.left_out.append(f"text.format ({kind or 'of no known type'})")
            return None
        strict = form.raw("strict")
        return Schema(
            schema=schema,
            name=form.text("name") or "",
            description=form.text("description") or "",
            strict=None if strict not in (b"true", b"false") else strict == b"true",
        )

    def effort(self) -> str:
        """Return the reasoning effort."""
        asked = self._object(self._fields, "reasoning")
        if asked is None:
            return ""
        self._name_others(asked, "reasoning", ("effort",))
        raw = self._raw(asked, "effort", "string", "reasoning.")
        return "" if raw is None else str(loads(raw))

    def _asked_besides(self) -> list[str]:
        raw = self._raw(self._fields, "include", "array")
        return [each for each in (loads(raw) if raw else ()) if isinstance(each, str)]

    def _name_others(self, asked: ObjectText, place: str, known: tuple[str, ...]) -> None:
        self._told.left_out += [
            f"{place}.{key}"
            for key in dict.fromkeys(asked.keys())
            if key not in known and asked.raw(key) not in _NOTHING
        ]

    def _object(self, holder: ObjectText, key: str, place: str = "") -> ObjectText | None:
        found = self._raw(holder, key, "object", place)
        return None if found is None else ObjectText(found)

    def _raw(self, holder: ObjectText, key: str, kind: JsonType, place: str = "") -> bytes | None:
        raw = holder.raw(key)
        if raw is None or raw == b"null":
            return None
        if type_of(raw) == kind:
            return raw
        self._told.left_out.append(f"{place}{key}, which is not of the type {kind}")
        return None


def write_request(request: NeutralRequest, facts: Facts, target: Format) -> bytes:
    """Return the body that says the same."""
    if facts.forced_schema:
        request = by_tool(request)
    told, names = request.told, ToolNames(request.tools, target)
    history = write_history(request, names, target)
    tools = write_tools(request.tools, names, told)
    said = "\n\n".join([words.text for words in request.instructions])
    members: dict[str, Any] = {"model": request.model}
    if said and history != b"[]":
        members["instructions"] = said
    elif said:
        part = {"type": "input_text", "text": said}
        history = encode([{"type": "message", "role": "developer", "content": [part]}])
    members["input"] = history
    if tools:
        members["tools"] = tools
        members |= write_choice(request, names)
        if request.parallel is not None:
            members["parallel_tool_calls"] = request.parallel
    tell_lost_choice(request)
    members |= _written_settings(request)
    _name_rest(request)
    return object_of(members)


def _written_settings(request: NeutralRequest) -> dict[str, Any]:
    settings, members = request.settings, _written_text(request)
    if request.effort:
        members["reasoning"] = {"effort": request.effort}
    if request.limit is not None:
        members["max_output_tokens"] = max(request.limit, _LEAST_TOKENS)
        if request.limit < _LEAST_TOKENS:
            least = f"raised the limit of {request.limit} tokens to {_LEAST_TOKENS}, the least"
            request.told.changed.append(least)
    for key, (name, _) in _SETTINGS.items():
        raw = settings.get(name)
        if raw is not None and key != "store" and _may_be(key, raw, request.told):
            members[key] = encode(_TIERS[loads(raw)]) if key == "service_tier" else raw
    if settings.get("logprobs") == b"true":
        members["include"] = [_LOGPROBS]
    # A caller that did not ask for it could never refer to it.
    members["store"] = settings.get("store") == b"true"
    if request.stream is not None:
        members["stream"] = request.stream
    return members


def _written_text(request: NeutralRequest) -> dict[str, Any]:
    text: dict[str, Any] = {}
    schema = request.schema
    if schema is not None and not schema.schema:
        text["format"] = object_of({"type": "json_object"})
    elif schema is not None:
        form: dict[str, Any] = {"type": "json_schema", "name": schema.name or "answer"}
        if schema.description:
            form["description"] = schema.description
        if schema.strict is not None:
            form["strict"] = schema.strict
        text["format"] = object_of({**form, "schema": schema.schema})
    if "verbosity" in request.settings:
        text["verbosity"] = request.settings["verbosity"]
    return {"text": object_of(text)} if text else {}


def _may_be(key: str, raw: bytes, told: Told) -> bool:
    """Return whether a setting of another format can be said; name it when it cannot."""
    if key == "metadata" and not all(isinstance(text, str) for text in loads(raw).values()):
        told.left_out.append(f"{key}, of which some values are not texts")
    elif key == "service_tier" and loads(raw) not in _TIERS:
        told.left_out.append(f"{key} ({loads(raw)})")
    elif key in _IDENTITIES and len(loads(raw)) > _LONGEST:
        told.left_out.append(f"{key}, which is longer than {_LONGEST} characters")
    else:
        return True
    return False


def _name_rest(request: NeutralRequest) -> None:
    """Name what the format has no place for."""
    if request.stop:
        request.told.left_out.append("stop")
    known = {name for name, _ in _SETTINGS.values()} | {"verbosity", "logprobs"}
    request.told.left_out += [name for name in request.settings if name not in known]
