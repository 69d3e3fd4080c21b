"""A neutral request as a Messages one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from switchyard_core.jsonio.tree import array_of, loads, object_of
from switchyard_core.wire.format import Format
from switchyard_core.wire.history import word
from switchyard_core.wire.messages.offered import schema_format, write_tools
from switchyard_core.wire.messages.written import contents, mark, text_block, write_history
from switchyard_core.wire.naming import ToolNames
from switchyard_core.wire.neutral import Facts, NeutralRequest

__all__ = ["write_request"]

#: Efforts in the words of Messages; other words are nobody's here.
_EFFORTS: Mapping[str, str] = {
    "minimal": "low",
    **{word: word for word in ("low", "medium", "high", "xhigh", "max")},
}
_TIERS: Mapping[str, str] = {"auto": "auto", "default": "standard_only"}
#: Most characters of the id of a user, says the API reference.
_LONGEST_USER = 256
#: Settings that mean nothing with some value: what Messages does anyway.
_USUAL: Mapping[str, tuple[bytes, ...]] = {
    "store": (b"false",),
    "logprobs": (b"false",),
    "frequency_penalty": (b"0", b"0.0"),
    "presence_penalty": (b"0", b"0.0"),
}
_PLACED = frozenset({"temperature", "top_p", "top_k", "user", "safety_identifier", "service_tier"})
#: Least `top_p` beside thinking (build-with-claude/extended-thinking).
_LEAST_TOP_P = 0.95


def write_request(request: NeutralRequest, facts: Facts, target: Format) -> bytes:
    """Return the body that says the same.

    Where ``facts.forced_schema`` says so, the answer is the arguments of the tool
    :data:`~switchyard_core.wire.neutral.SCHEMA_TOOL`: its reader has to undo that.
    """
    names, told = ToolNames(request.tools, target), request.told
    system = [text_block(part.text, part.cache) for part in request.instructions]
    leading, rows = write_history(request, names, target, facts)
    system += leading
    tools, choice = write_tools(request, names, facts)
    gone = mark(tools, system, rows, auto=facts.cache_marks)
    if gone:
        told.left_out.append(f"{gone} cache marks, for a request has at most four")
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.limit or facts.max_output or target.usual_limit,
    }
    if system:
        body["system"] = contents(system)
    body["messages"] = array_of([row.dump() for row in rows])
    if tools:
        body["tools"] = array_of([tool.dump() for tool in tools])
    if choice:
        body["tool_choice"] = choice
    body |= _reasoning(request, facts)
    body |= _sampling(request, thinks=body.get("thinking") == {"type": "adaptive"})
    body |= _others(request)
    if request.stream is not None:
        body["stream"] = request.stream
    return object_of(body)


def _reasoning(request: NeutralRequest, facts: Facts) -> dict[str, Any]:
    """Return ``thinking`` and ``output_config``.

    With adaptive thinking the API takes a tool loop that begins without thinking; what needs a
    budget in its place is a profile's to say.
    """
    made: dict[str, Any] = {}
    config: dict[str, Any] = {}
    effort = _EFFORTS.get(request.effort, "")
    if request.effort == "none":
        made["thinking"] = {"type": "disabled"}
    elif effort:
        config["effort"] = effort
        if effort != request.effort:
            request.told.changed.append(f"said the effort `{request.effort}` as `{effort}`")
        if facts.thinks:
            made["thinking"] = {"type": "adaptive"}
    elif request.effort:
        request.told.left_out.append(f"the effort `{request.effort}`")
    schema = b"" if facts.forced_schema and _has_schema(request) else schema_format(request)
    if schema:
        config["format"] = object_of({"type": "json_schema", "schema": schema})
    if config:
        made["output_config"] = object_of(config)
    return made


def _has_schema(request: NeutralRequest) -> bool:
    return request.schema is not None and bool(request.schema.schema)


def _sampling(request: NeutralRequest, *, thinks: bool) -> dict[str, bytes]:
    told, settings = request.told, request.settings
    asked = {key: settings[key] for key in ("temperature", "top_p", "top_k") if key in settings}
    values = {key: value for key, raw in asked.items() if (value := _number(raw)) is not None}
    made = {key: asked[key] for key in values}
    warmth, share = values.get("temperature"), values.get("top_p")
    if warmth is not None and warmth > 1:
        told.changed.append("lowered `temperature` to 1, the most that Messages takes")
        made["temperature"], warmth = b"1", 1.0
    if thinks:
        # Source: platform.claude.com/docs/en/build-with-claude/extended-thinking.
        refused = {
            "temperature": warmth not in (None, 1),
            "top_p": share is not None and not _LEAST_TOP_P <= share <= 1,
            "top_k": "top_k" in made,
        }
        for key in (key for key, refuses in refused.items() if refuses):
            told.left_out.append(f"`{key}`, which thinking does not go with")
            del made[key]
    if "temperature" in made and "top_p" in made:
        gone = "temperature" if warmth == 1 else "top_p"
        told.left_out.append(f"`{gone}`, for only one of `temperature` and `top_p` may be set")
        del made[gone]
    return made


def _number(raw: bytes) -> float | None:
    value = loads(raw)
    return float(value) if isinstance(value, int | float) else None


def _text(raw: bytes | None) -> str:
    return word(loads(raw)) if raw else ""


def _others(request: NeutralRequest) -> dict[str, Any]:
    told, settings = request.told, request.settings
    made: dict[str, Any] = {}
    stop = [text for text in request.stop if text.strip()]
    if len(stop) < len(request.stop):
        told.left_out.append("blank texts at which the answer ends")
    if stop:
        made["stop_sequences"] = stop
    user = _text(settings.get("user")) or _text(settings.get("safety_identifier"))
    if len(user) > _LONGEST_USER:
        told.left_out.append(f"the user, whose id has over {_LONGEST_USER} characters")
    elif user:
        made["metadata"] = {"user_id": user}
    tier = _text(settings.get("service_tier"))
    if tier in _TIERS:
        made["service_tier"] = _TIERS[tier]
    elif tier:
        told.left_out.append(f"the service tier `{tier}`")
    for name, raw in settings.items():
        if name not in _PLACED and raw not in _USUAL.get(name, ()):
            told.left_out.append(f"`{name}`")
    if "user" in settings and "safety_identifier" in settings:
        told.left_out.append("`safety_identifier`")
    return made
