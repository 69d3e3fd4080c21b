"""A Chat Completions request as a neutral one: its settings; messages and tools are beside it."""

from __future__ import annotations

from switchyard_core.jsonio.tree import JsonTextError, ObjectText, loads
from switchyard_core.wire.chat.asked import NOTHING
from switchyard_core.wire.chat.history import read_history
from switchyard_core.wire.chat.offered import read_choice, read_tools
from switchyard_core.wire.chat.written import write_request
from switchyard_core.wire.neutral import NeutralRequest, Schema, Told

__all__ = ["read_request", "write_request"]

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
        *("reasoning", "thinking"),
    )
)
#: Values that ask for nothing.
_USUAL = {"n": b"1", "modalities": b'["text"]'}


def read_request(fields: ObjectText) -> NeutralRequest:
    """Return what a request says."""
    told = Told()
    instructions, turns = read_history(fields, told)
    return NeutralRequest(
        model=fields.text("model") or "",
        instructions=instructions,
        turns=turns,
        tools=read_tools(fields, told),
        choice=read_choice(fields, told),
        parallel=_flag(fields, "parallel_tool_calls", told),
        schema=_schema(fields, told),
        effort=_effort(fields, told),
        limit=_limit(fields, told),
        stop=_stop(fields, told),
        stream=_flag(fields, "stream", told),
        settings=_settings(fields, told),
        told=told,
    )


def _settings(fields: ObjectText, told: Told) -> dict[str, bytes]:
    """Return what has a counterpart; name what has none."""
    settings: dict[str, bytes] = {}
    for key in dict.fromkeys(fields.keys()):
        raw = fields.raw(key) or b"null"
        if key in _READ or raw in (b"null", _USUAL.get(key)):
            continue
        name = _SETTINGS.get(key)
        if name is None or raw[0] not in _TYPES.get(key, b'"'):
            told.left_out.append(key)
        else:
            settings[name] = raw
    return settings


def _effort(fields: ObjectText, told: Told) -> str:
    """Return the reasoning effort, from the keys of other vendors too."""
    effort = fields.text("reasoning_effort") or ""
    if not effort and fields.raw("reasoning_effort") not in (None, *NOTHING):
        told.left_out.append("reasoning_effort")
    asked = _member(fields, "reasoning", "effort", told)
    if _member(fields, "thinking", "type", told) == "disabled":
        return "none"
    return effort or asked


def _member(fields: ObjectText, key: str, wanted: str, told: Told) -> str:
    """Return the text of one member of an object; the others are named."""
    holder = fields.object(key)
    if holder is None:
        told.left_out += [key] if fields.raw(key) not in (None, *NOTHING) else []
        return ""
    told.left_out += [f"{key}.{each}" for each in dict.fromkeys(holder.keys()) if each != wanted]
    return holder.text(wanted) or ""


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
