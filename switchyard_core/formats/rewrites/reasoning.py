"""What happens to a planner's reasoning when another model takes over.

Only planner-made items are touched: assistant items up to and including the turn of the call
that handed off. What the executor made itself stays, in every later request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from switchyard_core.conversation import Conversation
from switchyard_core.declarations import RewriteScope
from switchyard_core.formats.openai_chat import REASONING_KEYS
from switchyard_core.formats.registry import format_of
from switchyard_core.formats.rewrites.texts import text as fixed_text
from switchyard_core.jsontext import ArrayText, ObjectText, encode

__all__ = [
    "ORPHAN",
    "STRIPPED",
    "DropParameters",
    "TextParameters",
    "drop_from_chat",
    "drop_from_messages",
    "drop_from_responses",
    "planner_items",
    "text_in_chat",
    "text_in_messages",
    "text_in_responses",
]

#: Mark of an item that followed a dropped reasoning item in the same turn.
ORPHAN = "orphan"
#: Mark of a message that lost its thinking.
STRIPPED = "stripped"
_PLANNER = "planner"
_THINKING = ("thinking", "redacted_thinking")


class DropParameters(BaseModel):
    """Which turns are the planner's.

    Args:
        through_call: Number of the call that handed off, from 0, among all tool calls of the
            history; the turn that holds it is the planner's last one.
        through_message: In place of it: index of the last message that may be the planner's,
            among the messages of :class:`~switchyard_core.Conversation`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    through_call: int | None = Field(default=None, ge=0)
    through_message: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _say_one(self) -> Self:
        if (self.through_call is None) == (self.through_message is None):
            msg = "needs either `through_call` or `through_message`"
            raise ValueError(msg)
        return self

    def last_item(self, conversation: Conversation) -> int:
        """Return the index of the planner's last wire item, -1 when nothing is the planner's."""
        number, calls = self.through_call or 0, conversation.calls
        message = self.through_message
        if message is None:
            message = calls[number].message if number < len(calls) else -1
        messages = conversation.messages[: message + 1]
        return messages[-1].last if messages else -1


class TextParameters(DropParameters):
    """Which turns are the planner's, and how much of their text is kept.

    Args:
        max_chars: Most characters of converted text in all; the newest are kept.
    """

    max_chars: int = Field(default=16000, ge=0)


def planner_items(
    body: ObjectText, parameters: DropParameters, scope: RewriteScope
) -> tuple[ArrayText | None, list[int]]:
    """Return the history and the indices of its planner-made items.

    They are found once per request and marked, since later rewrites insert and remove items.
    """
    fmt = format_of(scope.wire_format)
    items = body.array(fmt.history_key)
    if items is None:
        return None, []
    if not scope.facts.get("planner_marked"):
        scope.facts["planner_marked"] = True
        conversation = fmt.read(body)
        last = parameters.last_item(conversation)
        for message in conversation.messages:
            if message.role == "assistant":
                for index in range(message.first, min(message.last, last) + 1):
                    items.tag(index, _PLANNER)
    return items, [index for index in range(len(items)) if items.tagged(index, _PLANNER)]


def _budget(texts: Sequence[str], limit: int) -> tuple[list[str], int]:
    """Return the texts with the oldest characters cut, and how many characters went.

    The mark of a cut counts within the limit too.
    """
    mark = fixed_text("reasoning_cut")
    left, kept, cut = limit, [], 0
    for text in reversed(texts):
        if len(text) <= left:
            kept.append(text)
            left -= len(text)
            continue
        room = max(0, left - len(mark))
        kept.append(mark + text[len(text) - room :] if room else "")
        cut += len(text) - room
        left = 0
    return kept[::-1], cut


def _cut_note(cut: int) -> list[str]:
    return [f"left out the oldest {cut} characters of reasoning"] if cut else []


def _dropped(scope: RewriteScope) -> None:
    scope.facts["dropped_reasoning"] = True


def _converted(scope: RewriteScope) -> None:
    scope.facts["converted_reasoning"] = True


# --- Responses ---------------------------------------------------------------------------


def _summary(item: ObjectText) -> str:
    texts = []
    for key in ("summary", "content"):
        parts = item.array(key)
        if parts is not None:
            texts += [part.text("text") or "" for _, part in parts.objects()]
        if any(text.strip() for text in texts):
            break
    return "\n\n".join(text for text in texts if text.strip())


def _mark_followers(items: ArrayText, index: int) -> None:
    """Mark what providers pair with a reasoning item: what followed it, up to the next one."""
    for follower in range(index + 1, len(items)):
        item = items.object(follower)
        thinks = item is not None and item.text("type") == "reasoning"
        if thinks or not items.tagged(follower, _PLANNER):
            return
        items.tag(follower, ORPHAN)


def text_in_responses(
    body: ObjectText, parameters: TextParameters, scope: RewriteScope
) -> Sequence[str]:
    """Turn visible reasoning summaries into assistant messages at their places."""
    items, planner = planner_items(body, parameters, scope)
    if items is None:
        return ()
    found = []
    for index in planner:
        item = items.object(index)
        if item is not None and item.text("type") == "reasoning" and _summary(item).strip():
            found.append((index, _summary(item)))
    texts, cut = _budget([text for _, text in found], parameters.max_chars)
    changes = _cut_note(cut)
    for (index, _), text in reversed(list(zip(found, texts, strict=True))):
        _mark_followers(items, index)
        _converted(scope)
        if text:
            items.set(index, encode({"type": "message", "role": "assistant", "content": text}))
            changes.append(f"turned reasoning input[{index}] into text")
        else:
            items.delete(index)
            changes.append(f"removed reasoning input[{index}], its text is over the cap")
    return changes


def drop_from_responses(
    body: ObjectText, parameters: DropParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove the planner's reasoning items."""
    items, planner = planner_items(body, parameters, scope)
    if items is None:
        return ()
    changes = []
    for index in reversed(planner):
        item = items.object(index)
        if item is not None and item.text("type") == "reasoning":
            _mark_followers(items, index)
            items.delete(index)
            _dropped(scope)
            changes.append(f"removed reasoning input[{index}]")
    return changes[::-1]


# --- Messages ----------------------------------------------------------------------------


def text_in_messages(
    body: ObjectText, parameters: TextParameters, scope: RewriteScope
) -> Sequence[str]:
    """Turn visible thinking blocks into text blocks at their places."""
    items, planner = planner_items(body, parameters, scope)
    found: list[tuple[int, ArrayText, int, str]] = []
    for index in planner if items is not None else ():
        message = items.object(index) if items is not None else None
        content = message.array("content") if message is not None else None
        if content is None:
            continue
        for place, block in content.objects():
            text = block.text("thinking") if block.text("type") == "thinking" else None
            if text and text.strip():
                found.append((index, content, place, text))
    texts, cut = _budget([text for *_, text in found], parameters.max_chars)
    changes = _cut_note(cut)
    for (index, content, place, _), text in reversed(list(zip(found, texts, strict=True))):
        _converted(scope)
        if items is not None:
            items.tag(index, STRIPPED)
        if text:
            content.set(place, encode({"type": "text", "text": text}))
            changes.append(f"turned thinking messages[{index}].content[{place}] into text")
        else:
            content.delete(place)
            changes.append(f"removed thinking messages[{index}].content[{place}], over the cap")
    # Of a message that lost some of its thinking the rest is no use: it would stand behind text.
    stripped = [index for index in planner if items is not None and items.tagged(index, STRIPPED)]
    return changes + _drop_thinking(items, stripped)


def drop_from_messages(
    body: ObjectText, parameters: DropParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove the planner's thinking and redacted thinking blocks."""
    items, planner = planner_items(body, parameters, scope)
    changes = _drop_thinking(items, planner)
    if changes:
        _dropped(scope)
    return changes


def _drop_thinking(items: ArrayText | None, indices: Sequence[int]) -> list[str]:
    changes = []
    for index in indices if items is not None else ():
        message = items.object(index) if items is not None else None
        content = message.array("content") if message is not None else None
        if items is None or content is None:
            continue
        places = [place for place, block in content.objects() if block.text("type") in _THINKING]
        for place in reversed(places):
            content.delete(place)
            items.tag(index, STRIPPED)
            changes.append(f"removed thinking messages[{index}].content[{place}]")
    return changes


# --- Chat --------------------------------------------------------------------------------


def _chat_reasoning(message: ObjectText) -> str:
    for key in ("reasoning_content", "reasoning"):
        text = message.text(key)
        if text and text.strip():
            return text
    details = message.array("reasoning_details")
    if details is None:
        return ""
    texts = [part.text("text") or part.text("summary") or "" for _, part in details.objects()]
    return "\n\n".join(text for text in texts if text.strip())


def _put_text(message: ObjectText, text: str) -> None:
    raw = message.raw("content") or b"null"
    if raw[:1] == b"[":
        content = message.array("content")
        if content is not None:
            content.insert(0, encode({"type": "text", "text": text}))
    elif raw[:1] == b'"' and raw != b'""':
        message.set("content", encode(text)[:-1] + rb"\n\n" + raw[1:])
    else:
        message.set("content", encode(text))


def _drop_keys(message: ObjectText) -> list[str]:
    return [
        key
        for key in REASONING_KEYS
        if (message.raw(key) or b"null") not in (b"null", b'""') and message.delete(key)
    ]


def text_in_chat(
    body: ObjectText, parameters: TextParameters, scope: RewriteScope
) -> Sequence[str]:
    """Put visible reasoning before the text of its own message."""
    items, planner = planner_items(body, parameters, scope)
    found: list[tuple[int, ObjectText, str]] = []
    for index in planner if items is not None else ():
        message = items.object(index) if items is not None else None
        if message is not None and (text := _chat_reasoning(message)).strip():
            found.append((index, message, text))
    texts, cut = _budget([text for *_, text in found], parameters.max_chars)
    changes = _cut_note(cut)
    for (index, message, _), text in zip(found, texts, strict=True):
        _drop_keys(message)
        _converted(scope)
        if text:
            _put_text(message, text)
            changes.append(f"turned the reasoning of messages[{index}] into text")
        else:
            changes.append(f"removed the reasoning of messages[{index}], over the cap")
    return changes


def drop_from_chat(
    body: ObjectText, parameters: DropParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove the planner's reasoning keys."""
    items, planner = planner_items(body, parameters, scope)
    changes = []
    for index in planner if items is not None else ():
        message = items.object(index) if items is not None else None
        for key in _drop_keys(message) if message is not None else ():
            _dropped(scope)
            changes.append(f"removed {key} of messages[{index}]")
    return changes
