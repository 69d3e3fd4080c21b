"""A Chat Completions body, to be patched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from switchyard_core.jsonio.tree import ArrayText, ObjectText, encode
from switchyard_core.wire.chat.origin import origin_bound
from switchyard_core.wire.history import (
    INSTRUCTIONS,
    PLANNER,
    BlankPart,
    BodyView,
    MadeCall,
    OriginPart,
    ReasoningPart,
    ToolTurn,
    blank,
    blank_parts,
    is_odd,
    role_at,
    same_text,
)
from switchyard_core.wire.shapes import STRING, JsonType, Shape, list_of, text_or_list_of

__all__ = ["INSTEAD", "ChatView", "leading_instructions"]

#: Keys under which providers return reasoning on an assistant message.
_REASONING_KEYS: Mapping[str, JsonType] = {
    "reasoning_content": "string",
    "reasoning": "string",
    "reasoning_details": "array",
}
_RESULTS = ("tool", "function")
_SPEAKERS = (*INSTRUCTIONS, "user", "assistant")
#: A message without content has one of these.
INSTEAD = ("tool_calls", "function_call", "refusal", "audio")
_NOTHING = (b"null", b"[]", b'""')
#: What the role of an instruction looks like in JSON, unless its letters are escaped.
_ROLE = re.compile(rb'"(?:system|developer)"')
_ESCAPE = b"\\u00"


@dataclass(slots=True, eq=False)
class _Reasoning(ReasoningPart):
    message: ObjectText

    def become(self, text: str) -> None:
        self.remove()
        raw = self.message.raw("content") or b"null"
        content = self.message.array("content")
        if content is not None:
            content.insert(0, encode({"type": "text", "text": text}))
        elif raw[:1] == b'"' and raw != b'""':
            self.message.set("content", encode(text)[:-1] + rb"\n\n" + raw[1:])
        else:
            self.message.set("content", encode(text))

    def remove(self) -> Sequence[str]:
        return [
            f"{key} of messages[{self.item}]"
            for key, kind in _REASONING_KEYS.items()
            if (self.message.raw(key) or b"null") not in (b"null", b'""')
            and not is_odd(self.message, key, kind)
            and self.message.delete(key)
        ]


class _Turn(ToolTurn):
    """An assistant message and the run of results behind it."""

    def __init__(
        self,
        messages: ArrayText,
        calls: Sequence[MadeCall],
        results: Sequence[MadeCall],
        end: int,
    ) -> None:
        super().__init__(calls, results)
        self._messages = messages
        self._end = end

    def may_wait(self, *, answered: bool) -> bool:
        return not answered and self._end == len(self._messages)

    def repair(self, strays: Sequence[MadeCall], missing: Sequence[MadeCall], text: str) -> None:
        for call in reversed(missing):
            (name,) = call.ids
            legacy = call.place.endswith("function_call")
            result = (
                {"role": "function", "name": name}
                if legacy
                else {"role": "tool", "tool_call_id": name}
            )
            self._messages.insert(self._end, encode({**result, "content": text}))
        for stray in reversed(strays):
            self._messages.delete(stray.index)


class ChatView(BodyView):
    """A Chat Completions body, to be patched."""

    key = "messages"
    shape: ClassVar[Shape] = Shape(
        ("object",),
        {
            "messages": list_of(
                role=STRING,
                content=text_or_list_of(type=STRING, text=STRING),
                tool_call_id=STRING,
                tool_calls=list_of(id=STRING),
                function_call=Shape(("object",)),
                **{key: Shape((kind,)) for key, kind in _REASONING_KEYS.items()},
            )
        },
    )

    def reasoning(self) -> list[ReasoningPart]:
        """Return the reasoning keys of assistant messages, one part a message."""
        items = self.items
        return [
            _Reasoning(index, f"the reasoning of messages[{index}]", _readable(message), message)
            for index, message in (items.objects() if items is not None else ())
            if items is not None and items.tagged(index, PLANNER)
        ]

    def origin_bound(self) -> list[OriginPart]:
        """Return signatures and files."""
        return origin_bound(self.items)

    def drop_companions(self) -> list[str]:
        """Return nothing: reasoning is on the message itself, and nothing refers to it."""
        return []

    def id_fields(self) -> Iterator[tuple[ObjectText, str]]:
        """Yield the ids of tool calls, and those that results name."""
        for _, message in self._messages():
            if "tool_call_id" in message:
                yield message, "tool_call_id"
            calls = message.array("tool_calls")
            yield from ((call, "id") for _, call in calls.objects()) if calls is not None else ()

    def tool_turns(self) -> list[ToolTurn]:
        """Return each message that is not a result, with the run of results behind it."""
        messages = self.items
        if messages is None:
            return []
        turns: list[ToolTurn] = []
        index = 0
        while index < len(messages):
            calls: list[MadeCall] = []
            if role_at(messages, index) not in _RESULTS:
                calls = list(_calls(messages, index))
                index += 1
            first = index
            while index < len(messages) and role_at(messages, index) in _RESULTS:
                index += 1
            results = [
                _answers(message, n)
                for n in range(first, index)
                if (message := messages.object(n)) is not None
            ]
            if index < len(messages) and not role_at(messages, index):
                # It may be a result.
                results.append(MadeCall(frozenset(), index, f"messages[{index}]", unread=True))
            if calls or results:
                turns.append(_Turn(messages, calls, results, index))
        return turns

    def blanks(self, index: int) -> list[BlankPart]:
        """Return the content of a result, if blank; else the blank texts of a message."""
        message = self.items.object(index) if self.items is not None else None
        if message is None:
            return []
        place = f"messages[{index}]"
        if not blank(message, "content"):
            return blank_parts(message.array("content"), f"{place}.content")
        is_result = message.text("role") in _RESULTS
        return [BlankPart(place, message, "content")] if is_result else []

    def is_empty(self, index: int) -> bool:
        """Return whether a message has neither text nor what may be in its place."""
        message = self.items.object(index) if self.items is not None else None
        return (
            message is not None
            and message.text("role") in _SPEAKERS
            and blank(message, "content")
            and not any((message.raw(key) or b"null") not in _NOTHING for key in INSTEAD)
        )

    def append_user_text(self, text: str, end: int | None = None) -> str:
        """Add a user message at the end."""
        messages = self.items
        if messages is None:
            self.leave_history()
            return ""
        end = len(messages) if end is None else end
        if _ends_with(messages, text, end):
            return ""
        messages.insert(end, self.user_item(text))
        return f"added a user message as messages[{end}]"

    def add_instruction(self, text: str, *, append: bool) -> str:
        """Add a message before or after the leading instructions, in the role of the first."""
        messages = self.items
        if messages is None:
            self.leave_history()
            return ""
        count, role = leading_instructions(messages, self.body.raw("messages") or b"")
        if any(same_text(messages, index, text) for index in range(count)):
            return ""
        place = count if append else 0
        messages.insert(place, encode({"role": role, "content": text}))
        return f"added a {role} message as messages[{place}]"

    def _messages(self) -> Iterator[tuple[int, ObjectText]]:
        return self.items.objects() if self.items is not None else iter(())


def leading_instructions(messages: ArrayText, raw: bytes) -> tuple[int, str]:
    """Return the number of leading instruction messages, and the role of the first one at all."""
    count, role = 0, ""
    for index, message in messages.objects():
        found = message.text("role") or ""
        if found in INSTRUCTIONS:
            role = role or found
            count += index == count
        if index >= count and (role or not (_ROLE.search(raw) or _ESCAPE in raw)):
            break
    return count, role or "system"


def _ends_with(items: ArrayText, text: str, end: int) -> bool:
    """Return whether the text is among the user's messages at the end."""
    for index in range(end - 1, -1, -1):
        item = items.object(index)
        if item is None or item.text("role") != "user":
            return False
        if item.text("content") == text:
            return True
    return False


def _calls(messages: ArrayText, index: int) -> Iterator[MadeCall]:
    message, place = messages.object(index), f"messages[{index}]"
    if message is None or message.text("role") is None:
        yield MadeCall(frozenset(), index, place, unread=True)
        return
    if message.text("role") != "assistant":
        return
    calls = message.array("tool_calls")
    listed = list(calls.objects()) if calls is not None else []
    legacy = message.object("function_call")
    for number, call in listed:
        yield MadeCall.at(call, "id", index, f"{place}.tool_calls[{number}]")
    if legacy is not None:
        yield MadeCall.at(legacy, "name", index, f"{place}.function_call")
    odd = is_odd(message, "tool_calls", "array", "null")
    odd = odd or is_odd(message, "function_call", "object", "null")
    if odd or len(listed) < len(calls or ()):
        yield MadeCall(frozenset(), index, place, unread=True)


def _answers(message: ObjectText, index: int) -> MadeCall:
    # The older role `function` names the tool only.
    lacks = (message.raw("tool_call_id") or b"null") in (b"null", b'""')
    key = "name" if lacks and "name" in message else "tool_call_id"
    return MadeCall.at(message, key, index, f"messages[{index}]")


def _readable(message: ObjectText) -> str:
    """Return the reasoning that can become text: beside a content that takes it."""
    return "" if is_odd(message, "content", "string", "array", "null") else _reasoning(message)


def _reasoning(message: ObjectText) -> str:
    for key in ("reasoning_content", "reasoning"):
        text = message.text(key)
        if text and text.strip():
            return text
    details = message.array("reasoning_details")
    if details is None:
        return ""
    texts = [part.text("text") or part.text("summary") or "" for _, part in details.objects()]
    return "\n\n".join(text for text in texts if text.strip())
