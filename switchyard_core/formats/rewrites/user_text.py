"""Adding a user's words at the end of the history."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from switchyard_core.declarations import RewriteScope
from switchyard_core.formats.registry import format_of
from switchyard_core.formats.rewrites.texts import text
from switchyard_core.jsontext import ArrayText, ObjectText, encode

__all__ = [
    "UserTextParameters",
    "append_to_chat",
    "append_to_messages",
    "append_to_responses",
    "end_with_user",
]


class UserTextParameters(BaseModel):
    """The text to add; not blank."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str


def _open_call(body: ObjectText, scope: RewriteScope) -> bool:
    """Whether the history ends with an unanswered call: nothing may come between."""
    return format_of(scope.wire_format).read(body).ends_with_open_call


def append_to_chat(
    body: ObjectText, parameters: UserTextParameters, scope: RewriteScope
) -> Sequence[str]:
    """Add a user message at the end."""
    messages = body.array("messages")
    if messages is None or _ends_with(messages, parameters.text) or _open_call(body, scope):
        return ()
    messages.append(encode({"role": "user", "content": parameters.text}))
    return (f"added a user message as messages[{len(messages) - 1}]",)


def _ends_with(items: ArrayText, text: str) -> bool:
    """Whether the text is there already, among the user's words and reasoning at the end."""
    for index in range(len(items) - 1, -1, -1):
        item = items.object(index)
        if item is None:
            return False
        if _is_users(item, text):
            return True
        if item.text("role") != "user" and item.text("type") != "reasoning":
            return False
    return False


def _is_users(message: ObjectText, text: str) -> bool:
    return message.text("role") == "user" and message.text("content") == text


def append_to_responses(
    body: ObjectText, parameters: UserTextParameters, scope: RewriteScope
) -> Sequence[str]:
    """Add a user message at the end, but never between a reasoning item and its follower."""
    ours = encode({"type": "message", "role": "user", "content": parameters.text})
    raw = body.raw("input")
    if raw is not None and raw[:1] == b'"':
        body.set(
            "input", b'[{"type":"message","role":"user","content":' + raw + b"}," + ours + b"]"
        )
        return ("added a user message as input[1]",)
    items = body.array("input")
    if items is None or _ends_with(items, parameters.text) or _open_call(body, scope):
        return ()
    place = len(items)
    while place and (item := items.object(place - 1)) and item.text("type") == "reasoning":
        place -= 1
    items.insert(place, ours)
    return (f"added a user message as input[{place}]",)


def append_to_messages(
    body: ObjectText, parameters: UserTextParameters, scope: RewriteScope
) -> Sequence[str]:
    """Add a text block at the end of the last user message, or a new user message.

    The block stands after any tool result and has no cache mark.
    """
    messages = body.array("messages")
    if messages is None or _open_call(body, scope):
        return ()
    place = len(messages) - 1
    # Claude Code puts system messages behind the user's.
    while place >= 0 and (item := messages.object(place)) and item.text("role") == "system":
        place -= 1
    message = messages.object(place) if place >= 0 else None
    if message is None or message.text("role") != "user":
        messages.append(encode({"role": "user", "content": parameters.text}))
        return (f"added a user message as messages[{len(messages) - 1}]",)
    block = encode({"type": "text", "text": parameters.text})
    raw = message.raw("content") or b""
    if raw[:1] == b'"':
        if message.text("content") == parameters.text:
            return ()
        theirs = b"" if raw == b'""' else b'{"type":"text","text":' + raw + b"},"
        message.set("content", b"[" + theirs + block + b"]")
        return (f"added a text block to messages[{place}]",)
    blocks = message.array("content")
    if blocks is None:
        return ()
    last = blocks.object(len(blocks) - 1) if len(blocks) else None
    if last is not None and last.text("text") == parameters.text:
        return ()
    blocks.append(block)
    return (f"added a text block to messages[{place}]",)


def end_with_user(body: ObjectText, parameters: None, scope: RewriteScope) -> Sequence[str]:
    """Add a short user turn when the history ends with assistant text.

    The text is kept. A trailing tool call is an open call, and nothing follows it.
    """
    fmt = format_of(scope.wire_format)
    conversation = fmt.read(body)
    if not conversation.messages or conversation.messages[-1].role != "assistant":
        return ()
    items = body.array(fmt.history_key)
    if items is None or conversation.ends_with_open_call:
        return ()
    message = {"role": "user", "content": text("go_on")}
    if scope.wire_format == "openai_responses":
        message = {"type": "message", **message}
    items.append(encode(message))
    return (f"added a user message as {fmt.history_key}[{len(items) - 1}]",)
