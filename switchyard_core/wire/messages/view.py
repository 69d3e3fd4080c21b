"""A Messages body, to be patched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from switchyard_core.jsonio.tree import ArrayText, ObjectText, encode
from switchyard_core.wire.history import (
    PLANNER,
    STRIPPED,
    BlankPart,
    BodyView,
    MadeCall,
    OriginPart,
    ReasoningPart,
    ToolTurn,
    blank,
    blank_parts,
    fixed_text,
    is_odd,
    role_at,
    says_nothing,
)
from switchyard_core.wire.messages.origin import origin_bound
from switchyard_core.wire.shapes import STRING, Shape, list_of, text_or_list_of, untouched

__all__ = [
    "MessagesView",
    "is_directive",
    "open_loop_lacks_thinking",
    "without_directives",
    "without_thinking",
]

_THINKING = ("thinking", "redacted_thinking")
#: What a message of the system may have in place of a content, and what else only it may have.
_DIRECTIVE = "output_config"
_DIRECTIVES = (_DIRECTIVE, "clear_at")
_TOOL_CHANGES = ("tool_addition", "tool_removal")
#: Contents of a message, and of a result within it.
_BLOCKS = text_or_list_of(
    type=STRING,
    text=STRING,
    id=STRING,
    tool_use_id=STRING,
    content=Shape(("string", "array", "object")),
)


@dataclass(slots=True, eq=False)
class _Thinking(ReasoningPart):
    needs_others: ClassVar[bool] = True

    messages: ArrayText
    content: ArrayText
    number: int

    def become(self, text: str) -> None:
        self.messages.tag(self.item, STRIPPED)
        self.content.set(self.number, encode({"type": "text", "text": text}))

    def remove(self) -> Sequence[str]:
        self.messages.tag(self.item, STRIPPED)
        self.content.delete(self.number)
        return [self.name]


class _Turn(ToolTurn):
    """A run of assistant messages, and the run of other messages behind it."""

    def __init__(
        self,
        messages: ArrayText,
        calls: Sequence[MadeCall],
        results: Sequence[tuple[MadeCall, int]],
        span: tuple[int, int],
    ) -> None:
        super().__init__(calls, [result for result, _ in results])
        self._messages = messages
        self._blocks = dict(results)
        self._first, self._end = span

    def may_wait(self, *, answered: bool) -> bool:
        del answered
        return self._first == len(self._messages)

    def repair(self, strays: Sequence[MadeCall], missing: Sequence[MadeCall], text: str) -> None:
        for stray in reversed(strays):
            content = _content(self._messages, stray.index)
            if content is not None:
                content.delete(self._blocks[stray])
        if missing:
            self._answer([name for call in missing for name in call.ids], text)

    def _answer(self, ids: Sequence[str], text: str) -> None:
        results = [
            encode({"type": "tool_result", "tool_use_id": name, "content": text}) for name in ids
        ]
        users = (n for n in range(self._first, self._end) if role_at(self._messages, n) == "user")
        place = next(users, None)
        message = self._messages.object(place) if place is not None else None
        raw = (message.raw("content") or b"") if message is not None else b""
        blocks = message.array("content") if message is not None else None
        joined = b",".join(results)
        if blocks is not None:
            for number, result in enumerate(results):
                blocks.insert(number, result)
        elif message is not None and raw[:1] == b'"':
            theirs = b"" if raw == b'""' else b"," + _text_block(raw)
            message.set("content", b"[" + joined + theirs + b"]")
        else:
            self._messages.insert(self._first, b'{"role":"user","content":[' + joined + b"]}")


class MessagesView(BodyView):
    """A Messages body, to be patched."""

    key = "messages"
    shape: ClassVar[Shape] = Shape(
        ("object",),
        {
            "system": text_or_list_of(type=STRING, text=STRING),
            "tools": list_of(),
            "messages": list_of(role=STRING, content=_BLOCKS),
        },
    )

    def reasoning(self) -> list[ReasoningPart]:
        """Return the thinking blocks of assistant messages."""
        return [
            _Thinking(
                index,
                f"thinking messages[{index}].content[{number}]",
                (block.text("thinking") or "") if block.text("type") == "thinking" else "",
                messages,
                content,
                number,
            )
            for messages, index, content in self._contents()
            if messages.tagged(index, PLANNER)
            for number, block in content.objects()
            if block.text("type") in _THINKING
        ]

    def origin_bound(self) -> list[OriginPart]:
        """Return server tools, seals, files and containers."""
        return origin_bound(self.body, self.items)

    def drop_companions(self) -> list[str]:
        """Remove ``thinking`` when the last tool loop has lost all its thinking.

        The ``clear_thinking_*`` context edit requires thinking and goes with it; other edits stay.
        """
        thinking = self.body.object("thinking")
        thinks = thinking is not None and thinking.text("type") != "disabled"
        if self.items is None or not thinks or not _loop_lacks_thinking(self.items):
            return []
        return without_thinking(self.body)

    def id_fields(self) -> Iterator[tuple[ObjectText, str]]:
        """Yield the ids of tool uses, and those that results name."""
        for *_, content in self._contents():
            for _, block in content.objects():
                if block.text("type") == "tool_use":
                    yield block, "id"
                elif block.text("type") == "tool_result":
                    yield block, "tool_use_id"

    def tool_turns(self) -> list[ToolTurn]:
        """Return each run of assistant messages with the run of other messages behind it."""
        messages = self.items
        if messages is None:
            return []
        turns: list[ToolTurn] = []
        index = 0
        while index < len(messages):
            start = index
            while index < len(messages) and role_at(messages, index) == "assistant":
                index += 1
            first = index
            while index < len(messages) and role_at(messages, index) != "assistant":
                index += 1
            calls = [
                call
                for n in range(start, first)
                for call, _ in _made(messages, n, "tool_use", "id")
            ]
            odd = {n for n in range(first, index) if not role_at(messages, n)}
            calls += [MadeCall(frozenset(), n, f"messages[{n}]", unread=True) for n in odd]
            results = [
                result
                for n in range(first, index)
                if n in odd or role_at(messages, n) == "user"
                for result in _made(messages, n, "tool_result", "tool_use_id")
            ]
            if calls or results:
                turns.append(_Turn(messages, calls, results, (first, index)))
        return turns

    def blanks(self, index: int) -> list[BlankPart]:
        """Return the blank text blocks, and the blank results."""
        content = _content(self.items, index) if self.items is not None else None
        found: list[BlankPart] = []
        for number, block in content.objects() if content is not None else ():
            place = f"messages[{index}].content[{number}]"
            if content is not None and says_nothing(block):
                remove = partial(content.delete, number)
                found.append(BlankPart(place, block, "text", remove))
            elif block.text("type") == "tool_result" and blank(block, "content"):
                found.append(BlankPart(place, block, "content"))
            elif block.text("type") == "tool_result":
                found += blank_parts(block.array("content"), f"{place}.content")
        return found

    def is_empty(self, index: int) -> bool:
        """Return whether a message has no content, and gives no directive in place of one."""
        message = self.items.object(index) if self.items is not None else None
        return message is not None and blank(message, "content") and not is_directive(message)

    def close_up(self, *, changed: bool) -> list[str]:
        """Merge neighbours of one role; begin with a user where the beginning went."""
        messages = self.items
        if messages is None:
            return []
        system = blank_parts(self.body.array("system"), "system")
        changes = [part.repair("") for part in reversed(system)]
        first = messages.object(0) if len(messages) else None
        if changed and (first is None or first.text("role") == "assistant"):
            messages.insert(0, self.user_item(fixed_text("lost_beginning")))
            changes.append("added a user message as messages[0]")
        return changes + _merge(messages)

    def append_user_text(self, text: str, end: int | None = None) -> str:
        """Add a text block behind the last user message's results, or a new user message."""
        messages = self.items
        if messages is None:
            self.leave_history()
            return ""
        end = len(messages) if end is None else end
        place = end - 1
        # Claude Code puts system messages behind the user's.
        while place >= 0 and role_at(messages, place) == "system":
            place -= 1
        message = messages.object(place) if place >= 0 else None
        if message is None or message.text("role") != "user":
            messages.insert(end, self.user_item(text))
            return f"added a user message as messages[{end}]"
        change = f"added a text block to messages[{place}]"
        return change if self._add_block(message, text, f"messages[{place}]") else ""

    def _add_block(self, message: ObjectText, text: str, place: str) -> bool:
        """Add a text block to a message that does not end with that text."""
        raw, blocks = message.raw("content") or b"null", message.array("content")
        block = encode({"type": "text", "text": text})
        if raw == b"null":
            message.set("content", encode(text))
        elif blocks is not None:
            last = blocks.object(len(blocks) - 1) if len(blocks) else None
            if last is not None and last.text("text") == text:
                return False
            blocks.append(block)
        elif raw[:1] == b'"':
            if message.text("content") == text:
                return False
            theirs = b"" if raw == b'""' else _text_block(raw) + b","
            message.set("content", b"[" + theirs + block + b"]")
        else:
            self.untouched.append(untouched(f"{place}.content", raw, "string", "array"))
            return False
        return True

    def add_instruction(self, text: str, *, append: bool) -> str:
        """Add the text to a ``system`` string, or as a block to ``system`` blocks."""
        blocks = self.body.array("system")
        if blocks is None:
            return self.join_text("system", "messages", text, append=append)
        if any(block.text("text") == text for _, block in blocks.objects()):
            return ""
        place = len(blocks) if append else 0
        blocks.insert(place, encode({"type": "text", "text": text}))
        return f"added system[{place}]"

    def cache_marks(self) -> Iterator[tuple[str, ObjectText]]:
        """Yield tools, system blocks, and content blocks with those inside results."""
        for key in ("tools", "system"):
            array = self.body.array(key)
            if array is not None:
                yield from ((f"{key}[{index}]", block) for index, block in array.objects())
        for _, index, content in self._contents():
            yield from _nested(f"messages[{index}].content", content)

    def _contents(self) -> Iterator[tuple[ArrayText, int, ArrayText]]:
        """Yield the messages, and index and content of each message that has blocks."""
        messages = self.items
        for index, message in messages.objects() if messages is not None else ():
            content = message.array("content")
            if messages is not None and content is not None:
                yield messages, index, content


def _content(messages: ArrayText, index: int) -> ArrayText | None:
    message = messages.object(index)
    return message.array("content") if message is not None else None


def is_directive(message: ObjectText) -> bool:
    """Return whether a message of the system sets something for what follows it."""
    return message.text("role") == "system" and bool(message.object(_DIRECTIVE))


def without_directives(message: ObjectText, place: str) -> list[str]:
    """Remove what only a message of the system may have; return a line per change."""
    gone = [f"removed {key} of {place}" for key in _DIRECTIVES if message.delete(key)]
    content = message.array("content")
    for number, block in reversed(list(content.objects() if content is not None else ())):
        kind = block.text("type") or ""
        if content is not None and kind in _TOOL_CHANGES:
            content.delete(number)
            gone.append(f"removed the {kind} {place}.content[{number}]")
    return gone


def _text_block(raw: bytes) -> bytes:
    return b'{"type":"text","text":' + raw + b"}"


def _made(messages: ArrayText, index: int, kind: str, key: str) -> list[tuple[MadeCall, int]]:
    message, place = messages.object(index), f"messages[{index}]"
    content = message.array("content") if message is not None else None
    found, seen = [], 0
    for number, block in content.objects() if content is not None else ():
        named, seen = block.text("type"), seen + (block.text("type") is not None)
        if named == kind:
            found.append((MadeCall.at(block, key, index, f"{place}.content[{number}]"), number))
    odd = message is None or is_odd(message, "content", "string", "array", "null")
    if odd or seen < len(content or ()):
        found.append((MadeCall(frozenset(), index, place, unread=True), -1))
    return found


def _nested(place: str, content: ArrayText) -> Iterator[tuple[str, ObjectText]]:
    for index, block in content.objects():
        inner = block.array("content") if block.text("type") == "tool_result" else None
        if inner is not None:
            yield from _nested(f"{place}[{index}].content", inner)
        yield f"{place}[{index}]", block


def _merge(messages: ArrayText) -> list[str]:
    changes = []
    for index in range(len(messages) - 1, 0, -1):
        first, second = messages.object(index - 1), messages.object(index)
        if first is None or second is None:
            continue
        role = first.text("role")
        if role in (None, "system") or second.text("role") != role:
            continue
        if first.keys() != second.keys() or set(first.keys()) != {"role", "content"}:
            continue
        if not (_is_content(first) and _is_content(second)):
            continue
        first.set("content", _as_blocks(first, second))
        messages.delete(index)
        changes.append(f"merged messages[{index}] into messages[{index - 1}]")
    return changes


def _is_content(message: ObjectText) -> bool:
    return (message.raw("content") or b"")[:1] in (b'"', b"[")


def _as_blocks(*messages: ObjectText) -> bytes:
    inner = []
    for message in messages:
        raw = message.raw("content") or b""
        if raw[:1] == b'"':
            inner.append(_text_block(raw))
        elif raw.strip(b" \t\r\n[]"):
            inner.append(raw.strip()[1:-1].strip())
    return b"[" + b",".join(inner) + b"]"


def _loop_lacks_thinking(messages: ArrayText) -> bool:
    """Return whether the history ends inside a tool loop that has lost all its thinking.

    Providers see neighbours of one role as one turn, and count a result only where its call is.
    """
    blocks = [
        [block for _, block in content.objects()] if (content := _content(messages, n)) else []
        for n in range(len(messages))
    ]
    calls = {b.text("id") for each in blocks for b in each if b.text("type") == "tool_use"}
    lost = answers = asked = False
    for index in range(len(messages) - 1, -1, -1):
        role = role_at(messages, index)
        if messages.object(index) is None or role == "system":
            continue
        if role != "assistant":
            answers = answers or any(
                block.text("type") == "tool_result" and block.text("tool_use_id") in calls
                for block in blocks[index]
            )
            asked = True
            continue
        if asked and not answers:
            return lost
        asked = answers = False
        if any(block.text("type") in _THINKING for block in blocks[index]):
            return False
        lost = lost or messages.tagged(index, STRIPPED)
    return lost


def open_loop_lacks_thinking(messages: ArrayText) -> bool:
    """Return whether results end the history and the turn of their calls begins without thinking.

    A model that thinks within a budget refuses such a history.
    """
    index, answers = len(messages) - 1, False
    while index >= 0 and role_at(messages, index) != "assistant":
        content = _content(messages, index)
        blocks = content.objects() if content is not None else ()
        answers = answers or any(block.text("type") == "tool_result" for _, block in blocks)
        index -= 1
    while index > 0 and role_at(messages, index - 1) == "assistant":
        index -= 1
    content = _content(messages, index) if index >= 0 else None
    first = content.object(0) if content is not None and len(content) else None
    return answers and (first is None or first.text("type") not in _THINKING)


def without_thinking(body: ObjectText) -> list[str]:
    """Switch thinking off, and what demands it; return a line per change."""
    if not body.delete("thinking"):
        return []
    return ["removed thinking", *_drop_clear_thinking(body)]


def _drop_clear_thinking(body: ObjectText) -> list[str]:
    management = body.object("context_management")
    edits = management.array("edits") if management is not None else None
    if management is None or edits is None:
        return []
    changes = []
    for index in range(len(edits) - 1, -1, -1):
        edit = edits.object(index)
        kind = edit.text("type") if edit is not None else None
        if kind is not None and kind.startswith("clear_thinking_"):
            edits.delete(index)
            changes.append(f"removed the context edit {kind}")
    if changes and not len(edits):
        management.delete("edits")
        if not len(management):
            body.delete("context_management")
    return changes
