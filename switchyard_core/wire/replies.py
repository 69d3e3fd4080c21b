"""Reading a whole answer to a call of our own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from switchyard_core.answering import ModelReply, ModelUsage, RequestedCall
from switchyard_core.declarations import WireFormat
from switchyard_core.jsonio.tree import JsonTextError, ObjectText, encode, loads
from switchyard_core.wire.items import assistant_item
from switchyard_core.wire.parts import ShapeError, an_array, an_object, objects, text_in
from switchyard_core.wire.verbatim import Verbatim
from switchyard_core.wire.wants import (
    chat_wants,
    is_function,
    messages_wants,
    responses_wants,
)

__all__ = ["read_reply"]

_CODE = re.compile(r"[\w.-]{1,64}")
#: Refusals that come without a word.
_FILTERED = "the provider's content filter stopped the reply"
_REFUSED = "the model refused to answer"


def read_reply(wire_format: WireFormat, body: bytes, structured: str | None = None) -> ModelReply:
    """Return what a whole answer says.

    Args:
        wire_format: Wire format of the target.
        body: The answer.
        structured: Name of the schema when it was asked for with ``forced_tool``: the arguments
            of that tool become the reply's text, and its items an assistant message with this
            text, because a call without a result cannot be sent back.

    Raises:
        ValueError: The body is no answer of the wire format, or the report of an error.
    """
    try:
        fields = ObjectText(body)
        tree = loads(body)
        _refuse_error(tree)
        reply = _READERS[wire_format](tree, fields)
    except (JsonTextError, ShapeError) as error:
        msg = f"not an answer of {wire_format}: {error}"
        raise ValueError(msg) from None
    return reply if structured is None else _from_arguments(reply, structured)


def _refuse_error(tree: Mapping[str, Any]) -> None:
    """Refuse a report of an error, which may come with status 200 and with half an answer."""
    error = tree.get("error")
    if error or tree.get("type") == "error":
        told = error if isinstance(error, dict) else {}
        # Only a code: what else it says may quote the request or a credential.
        words = (told.get("code"), told.get("type"))
        code = next((w for w in words if isinstance(w, str) and _CODE.fullmatch(w)), "no code")
        msg = f"the provider reports an error ({code})"
        raise ShapeError(msg)


def _from_arguments(reply: ModelReply, name: str) -> ModelReply:
    call = next((call for call in reply.calls if call.name == name), None)
    if call is None:
        return reply
    return replace(reply, text=call.arguments, calls=(), items=(assistant_item(call.arguments),))


# --- Chat --------------------------------------------------------------------------------

#: Keys of a message that no request needs, and some providers refuse, when they say nothing; an
#: empty ``tool_calls`` is refused by OpenAI itself.
_EMPTY = ("refusal", "audio", "function_call", "tool_calls")


def _chat(tree: Mapping[str, Any], fields: ObjectText) -> ModelReply:
    choices = objects(an_array(tree, "choices"), "choices")
    if not choices:
        msg = "`choices` is empty"
        raise ShapeError(msg)
    place, choice = choices[0]
    stop = _word(choice.get("finish_reason"))
    if choice.get("error") or stop == "error":
        msg = "the provider reports an error in the choice"
        raise ShapeError(msg)
    message, place = an_object(choice, "message", place), f"{place}.message"
    text = _chat_text(message, place)
    called = objects(message.get("tool_calls") or None, f"{place}.tool_calls")
    refusal = _word(message.get("refusal"))
    if stop == "content_filter":
        refusal = refusal or text or _FILTERED
    usage = _table(tree.get("usage"))
    return ModelReply(
        text=text,
        calls=tuple(_chat_call(call, at) for at, call in called if is_function(call)),
        items=(_chat_item(fields, message),),
        stop=stop,
        refusal=refusal,
        wants=chat_wants(message, (call for _, call in called)),
        usage=ModelUsage(
            input_tokens=_count(usage, "prompt_tokens"),
            output_tokens=_count(usage, "completion_tokens"),
            cached_tokens=_count(_table(usage.get("prompt_tokens_details")), "cached_tokens"),
        ),
    )


def _chat_text(message: Mapping[str, Any], place: str) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = objects(content, f"{place}.content")
        return "".join(
            text_in(part, "text", at) for at, part in parts if part.get("type") == "text"
        )
    return text_in(message, "content", place) if content else ""


def _chat_call(call: Mapping[str, Any], place: str) -> RequestedCall:
    function, at = an_object(call, "function", place), f"{place}.function"
    name = text_in(function, "name", at)
    return _call(text_in(call, "id", place), name, function.get("arguments"), at)


def _chat_item(fields: ObjectText, message: Mapping[str, Any]) -> Verbatim:
    """Return the message as a request may hold it.

    The request's type of the official SDK has every key of the answer's but ``annotations``.
    """
    choices = fields.array("choices")
    choice = None if choices is None else choices.object(0)
    item = None if choice is None else choice.object("message")
    if item is None:
        msg = "`choices[0].message` is no object"
        raise ShapeError(msg)
    item.delete("annotations")
    for key in _EMPTY:
        if key in message and not message[key]:
            item.delete(key)
    if not message.get("role"):
        item.set("role", b'"assistant"')
    return Verbatim(item.dump())


# --- Responses ---------------------------------------------------------------------------


def _responses(tree: Mapping[str, Any], fields: ObjectText) -> ModelReply:
    status = _word(tree.get("status"))
    if status not in ("", "completed", "incomplete"):
        msg = f"the status is {status}" if _CODE.fullmatch(status) else "the status is unknown"
        raise ShapeError(msg)
    items = objects(an_array(tree, "output"), "output")
    parts = [
        part
        for at, item in items
        if item.get("type") == "message"
        for part in objects(item.get("content") or None, f"{at}.content")
    ]
    text = _texts(parts, "output_text", "text")
    refusal = _texts(parts, "refusal", "refusal")
    stop = status
    if status == "incomplete":
        reason = _word(_table(tree.get("incomplete_details")).get("reason"))
        stop = reason if reason in ("max_output_tokens", "content_filter") else status
    if stop == "content_filter":
        refusal = refusal or text or _FILTERED
    usage = _table(tree.get("usage"))
    return ModelReply(
        text=text,
        calls=tuple(
            _call(
                text_in(item, "call_id", at), text_in(item, "name", at), item.get("arguments"), at
            )
            for at, item in items
            if item.get("type") == "function_call"
        ),
        items=_items(fields),
        stop=stop,
        refusal=refusal,
        wants=responses_wants(item for _, item in items),
        usage=ModelUsage(
            input_tokens=_count(usage, "input_tokens"),
            output_tokens=_count(usage, "output_tokens"),
            cached_tokens=_count(_table(usage.get("input_tokens_details")), "cached_tokens"),
        ),
    )


def _items(fields: ObjectText) -> tuple[Verbatim, ...]:
    output = fields.array("output")
    if output is None:
        msg = "`output` is no array"
        raise ShapeError(msg)
    return tuple(Verbatim(output.raw(index)) for index in range(len(output)))


# --- Messages ----------------------------------------------------------------------------


def _messages(tree: Mapping[str, Any], fields: ObjectText) -> ModelReply:
    blocks, raw = objects(an_array(tree, "content"), "content"), fields.array("content")
    if raw is None:
        msg = "`content` is no array"
        raise ShapeError(msg)
    text = _texts(blocks, "text", "text")
    stop = _word(tree.get("stop_reason"))
    refusal = ""
    if stop == "refusal":
        details = _table(tree.get("stop_details"))
        refusal = text or _word(details.get("explanation")) or _REFUSED
    calls = []
    for index, (at, block) in enumerate(blocks):
        node = raw.object(index)
        if block.get("type") == "tool_use" and node is not None:
            arguments = node.raw("input")
            told = None if arguments is None else arguments.decode("utf-8", "replace")
            calls.append(_call(text_in(block, "id", at), text_in(block, "name", at), told, at))
    usage = _table(tree.get("usage"))
    cached = _count(usage, "cache_read_input_tokens")
    fresh = _count(usage, "input_tokens") + _count(usage, "cache_creation_input_tokens")
    return ModelReply(
        text=text,
        calls=tuple(calls),
        items=(Verbatim(b'{"role":"assistant","content":' + raw.dump() + b"}"),),
        stop=stop,
        refusal=refusal,
        wants=messages_wants(stop),
        usage=ModelUsage(
            # This format counts the tokens that came from a cache apart.
            input_tokens=fresh + cached,
            output_tokens=_count(usage, "output_tokens"),
            cached_tokens=cached,
        ),
    )


# --- what they share ---------------------------------------------------------------------


def _call(call_id: str, name: str, arguments: Any, place: str) -> RequestedCall:
    if isinstance(arguments, dict):  # some providers forget to write the JSON as text
        arguments = encode(arguments).decode()
    if arguments is not None and not isinstance(arguments, str):
        msg = f"`{place}.arguments` is no string"
        raise ShapeError(msg)
    return RequestedCall(id=call_id, name=name, arguments=arguments or "{}")


def _texts(parts: Iterable[tuple[str, Mapping[str, Any]]], kind: str, key: str) -> str:
    """Return the texts of the parts of one type, joined."""
    return "".join(text_in(part, key, at) for at, part in parts if part.get("type") == kind)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(usage: Mapping[str, Any], key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


_READERS: Mapping[WireFormat, Callable[[Mapping[str, Any], ObjectText], ModelReply]] = (
    MappingProxyType(
        {
            "openai_chat": _chat,
            "openai_responses": _responses,
            "anthropic_messages": _messages,
        }
    )
)
