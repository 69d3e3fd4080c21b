"""A history as all wire formats see it: read into the neutral view, and patched in place.

A :class:`BodyView` works on the raw items of the lossless tree, so that untouched parts keep their
bytes. Each wire format has one view; each rewrite is written once, on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Any, ClassVar, TypeVar

import msgspec
import tomli

from switchyard_core.conversation import Conversation, Message, Part, Role
from switchyard_core.jsonio.tree import ArrayText, JsonTextError, ObjectText, encode, loads
from switchyard_core.wire.shapes import JsonType, Shape, type_of, untouched

__all__ = [
    "FOREIGN",
    "INSTRUCTIONS",
    "NULL",
    "ORPHAN",
    "PLANNER",
    "STRIPPED",
    "TEXT_TYPES",
    "BlankPart",
    "BodyView",
    "MadeCall",
    "OriginPart",
    "ReasoningPart",
    "ToolTurn",
    "Turns",
    "blank",
    "blank_parts",
    "decode_items",
    "decode_one",
    "fixed_text",
    "is_odd",
    "lacks_history",
    "role_at",
    "same_text",
    "says_nothing",
    "word",
]

T = TypeVar("T", bound=msgspec.Struct)

NULL = msgspec.Raw(b"null")
#: Types of a part with text, in the three wire formats.
TEXT_TYPES = frozenset({"text", "input_text", "output_text"})


class Turns:
    """Collects parts into messages.

    Runs of ``assistant`` items are one turn and runs of ``tool`` results one message, so that the
    wire formats give the same conversation; user and system messages stay as they were sent.
    """

    def __init__(self) -> None:
        #: Parts of the message that was started last.
        self.parts: list[Part] = []
        self._made: list[tuple[Role, list[Part], list[int]]] = []
        self._role: Role | None = None

    def start(self, role: Role, item: int) -> int:
        """Continue with a role at a wire item; return the index of its message."""
        if role == self._role and role in ("assistant", "tool"):
            self._made[-1][2].append(item)
        else:
            self._role, self.parts = role, []
            self._made.append((role, self.parts, [item]))
        return len(self._made) - 1

    def messages(self) -> tuple[Message, ...]:
        """Return all messages."""
        made = []
        for role, parts, items in self._made:
            first, last = items[0], items[-1]
            made.append(Message(role=role, content=tuple(parts), first=first, last=last))
        return tuple(made)


def decode_items(raw: bytes, struct: type[T]) -> list[T | None]:
    """Decode an array of objects, each into the few fields that routing reads.

    Fields of the struct are ``Any`` (small values) or ``Raw`` (not looked into). Items that are not
    objects give ``None``: the provider decides about them.
    """
    try:
        items: list[T | None] = msgspec.json.decode(raw, type=list[struct])  # type: ignore[valid-type]
    except (msgspec.MsgspecError, RecursionError):
        # Odd items, numbers out of range, lone surrogates: the lenient way gives the same view.
        try:
            listed = ArrayText(raw)
            return [_from_node(listed.object(at), struct) for at in range(len(listed))]
        except JsonTextError:
            return []
    return items


def decode_one(raw: bytes | msgspec.Raw, struct: type[T]) -> T | None:
    """Decode one object, ``None`` when it is not one."""
    found = decode_items(b"[" + bytes(raw) + b"]", struct)
    return found[0] if len(found) == 1 else None


def _from_node(item: ObjectText | None, struct: type[T]) -> T | None:
    """Return an item in the bytes that it has."""
    if item is None:
        return None
    values = {}
    for field in msgspec.structs.fields(struct):
        raw = item.raw(field.encode_name)
        if raw is not None:
            values[field.name] = msgspec.Raw(raw) if field.type is msgspec.Raw else loads(raw)
    return struct(**values)


def lacks_history(raw: bytes, conversation: Conversation) -> bool:
    """Return whether a history that continues by id is incomplete in the request.

    It is when it is plain text, has no assistant message, or has a result without its call.
    """
    if raw[:1] != b"[" or all(m.role != "assistant" for m in conversation.messages):
        return True
    return bool(conversation.result_ids - {call.id for call in conversation.calls})


def word(value: Any) -> str:
    """Return a value if it is a string, else ``""``: a wrong type matches nothing."""
    return value if isinstance(value, str) else ""


def fixed_text(name: str) -> str:
    """Return one of the texts in ``texts.toml`` that are put into bodies."""
    return _texts()[name]


@cache
def _texts() -> dict[str, str]:
    return tomli.loads((files(__package__) / "texts.toml").read_text("utf-8"))


# --- patching ----------------------------------------------------------------------------

#: Roles of instructions.
INSTRUCTIONS = ("system", "developer")
#: Tag of an item that the planner made.
PLANNER = "planner"
#: Tag of an item that another provider made, or that was sent to it.
FOREIGN = "foreign"
#: Tag of an item that followed dropped reasoning in the same turn.
ORPHAN = "orphan"
#: Tag of a message that lost reasoning.
STRIPPED = "stripped"


@dataclass(slots=True, eq=False)
class ReasoningPart(ABC):
    """Reasoning of one turn, or a piece of it that can be removed alone."""

    #: Whether it is of no use when another piece of its item became text.
    needs_others: ClassVar[bool] = False

    item: int
    name: str  # for reports, with its place
    text: str  # its readable part

    @abstractmethod
    def become(self, text: str) -> None:
        """Put visible text in its place."""

    @abstractmethod
    def remove(self) -> Sequence[str]:
        """Remove it; return the names of what went."""


@dataclass(frozen=True, slots=True)
class OriginPart:
    """A part that only its provider can read.

    Args:
        name: What it is, with its place.
        remove: Removes it, or puts what anybody can read in its place. Parts are removed last
            first, so that the places of the others hold.
        context: Whether it holds context of its own, which is lost with it: a compaction, a file,
            a reference to an item.
        done: What removing it does, for reports.
    """

    name: str
    remove: Callable[[], object]
    context: bool = False
    done: str = "removed"


@dataclass(slots=True, eq=False)
class BlankPart:
    """A blank text, or a result without a text, which a provider refuses."""

    place: str  # where it is, such as `messages[2].content[0]`
    holder: ObjectText
    key: str
    remove: Callable[[], None] | None = None  # removes it; `None` for a result, which must stay

    def repair(self, text: str) -> str:
        """Remove it, or give it a text; return the change."""
        if self.remove is not None:
            self.remove()
            return f"removed the empty {self.place}"
        self.holder.set(self.key, encode(text))
        return f"gave the empty result {self.place} a text"


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A tool call, or the result of one, for pairing."""

    #: Names by which a result may refer to the call; a result has the one that it uses.
    ids: frozenset[str]
    index: int
    place: str
    open: bool = False  # it may still wait for its result
    unread: bool = False  # it has no id, or what may hold it has a wrong type
    told: str = ""  # what a report says of its id, if it has another type

    @classmethod
    def at(cls, holder: ObjectText, key: str, index: int, place: str) -> MadeCall:
        """Return the one whose id is under a key of an object."""
        name = holder.text(key) or ""
        if name:
            return cls(frozenset({name}), index, place)
        raw = holder.raw(key) or b"null"
        told = "" if raw[:1] == b'"' else untouched(f"{place}.{key}", raw, "string")
        return cls(frozenset(), index, place, unread=True, told=told)


class ToolTurn(ABC):
    """Calls, and the results that may answer them."""

    def __init__(
        self,
        calls: Sequence[MadeCall],
        results: Sequence[MadeCall],
        *,
        once: bool = True,
        elsewhere: bool = False,
    ) -> None:
        self.calls = calls
        self.results = results
        self._once = once
        self._elsewhere = elsewhere

    def faults(self) -> tuple[list[MadeCall], list[MadeCall]]:
        """Return the results without a call, and the calls without a result.

        What cannot be read is neither, and may be the other half of what can.
        """
        hidden_call = any(call.unread for call in self.calls)
        hidden_result = any(result.unread for result in self.results)
        made = {name for call in self.calls for name in call.ids}
        seen: set[str] = set()
        strays = []
        for result in self.results:
            if result.ids & made and not (self._once and result.ids & seen):
                seen |= result.ids
            elif not (self._elsewhere or hidden_call or result.unread):
                strays.append(result)
        if hidden_result or self.may_wait(answered=bool(seen)):
            return strays, []
        lacking = [call for call in self.calls if not call.open and not call.ids & seen]
        return strays, [call for call in lacking if not call.unread]

    def may_wait(self, *, answered: bool) -> bool:
        """Return whether the calls may still be open; ``answered`` says that one has a result."""
        del answered
        return False

    @abstractmethod
    def repair(self, strays: Sequence[MadeCall], missing: Sequence[MadeCall], text: str) -> None:
        """Remove some results, and answer some calls with a text."""


class BodyView(ABC):
    """A body of one wire format, to be patched."""

    #: The body's key that holds the history.
    key: ClassVar[str]
    #: The types of what rewrites look into.
    shape: ClassVar[Shape] = Shape(("object",))

    def __init__(self, body: ObjectText, untouched: list[str] | None = None) -> None:
        self.body = body
        #: A line for each value that cannot be looked into because of its type.
        self.untouched = [] if untouched is None else untouched

    @property
    def items(self) -> ArrayText | None:
        """The history's wire items, ``None`` when it is not an array."""
        return self.body.array(self.key)

    @abstractmethod
    def reasoning(self) -> list[ReasoningPart]:
        """Return the reasoning in items with the tag :data:`PLANNER`, oldest first."""

    @abstractmethod
    def drop_companions(self) -> list[str]:
        """Remove what refers to dropped reasoning; return a line per change."""

    def origin_bound(self) -> list[OriginPart]:
        """Return what only its provider can read in items with the tag :data:`FOREIGN`."""
        return []

    @abstractmethod
    def id_fields(self) -> Iterator[tuple[ObjectText, str]]:
        """Yield object and key of every tool id, of calls and of results."""

    @abstractmethod
    def tool_turns(self) -> list[ToolTurn]:
        """Return the turns with tool calls or results, oldest first."""

    @abstractmethod
    def blanks(self, index: int) -> list[BlankPart]:
        """Return the blank parts of an item, which a provider refuses."""

    @abstractmethod
    def is_empty(self, index: int) -> bool:
        """Return whether an item is empty, so that a provider refuses it."""

    def close_up(self, *, changed: bool) -> list[str]:
        """Repair what is around removed items; return a line per change.

        A history of nothing but instructions is refused, too: something stands for what went.
        """
        items = self.items
        if not changed or items is None:
            return []
        if any(role_at(items, n) not in INSTRUCTIONS for n in range(len(items))):
            return []
        items.append(self.user_item(fixed_text("lost_beginning")))
        return [f"added a user message as {self.key}[{len(items) - 1}]"]

    @abstractmethod
    def append_user_text(self, text: str, end: int | None = None) -> str:
        """Add a text of the user at the end; return the change, ``""`` if it is there.

        ``end`` is the number of items in front of the place, ``None`` for all of them.
        """

    def user_item(self, text: str) -> bytes:
        """Return a message of the user as a wire item."""
        return encode({"role": "user", "content": text})

    @abstractmethod
    def add_instruction(self, text: str, *, append: bool) -> str:
        """Add an instruction before or after the caller's; return the change, or ``""``."""

    def leave(self, key: str, *wanted: JsonType) -> None:
        """Tell that a member of the body is sent untouched, as it has none of some types."""
        raw = self.body.raw(key)
        if raw is not None:
            self.untouched.append(untouched(key, raw, *wanted))

    def leave_history(self) -> None:
        """Tell the same of the history."""
        shape = self.shape.members.get(self.key)
        self.leave(self.key, *(("array",) if shape is None else shape.types))

    def join_text(self, key: str, before: str, text: str, *, append: bool) -> str:
        """Add a text to a string member, or make it in front of ``before``; return the change.

        The caller's string keeps its bytes; a blank line separates the two.
        """
        body, raw = self.body, self.body.raw(key)
        if raw is None:
            body.insert(body.index(before), key, encode(text))
            return f"set {key}"
        if raw in (b"null", b'""'):
            body.set(key, encode(text))
            return f"set {key}"
        if raw[:1] != b'"':
            self.leave(key, "string", "array")
            return ""
        ours, gap, theirs = encode(text)[1:-1], encode("\n\n")[1:-1], raw[1:-1]
        # Another prompt of ours may be outside of this one: look for it as a separate piece.
        if gap + ours + gap in gap + theirs + gap:
            return ""
        pieces = (theirs, gap, ours) if append else (ours, gap, theirs)
        body.set(key, b'"' + b"".join(pieces) + b'"')
        return f"put the text {'after' if append else 'before'} {key}"

    def cache_marks(self) -> Iterator[tuple[str, ObjectText]]:
        """Yield the places for a cache mark, in the order in which a prompt is cached."""
        return iter(())


def role_at(items: ArrayText, index: int) -> str:
    """Return the role of an item, ``""`` without one."""
    item = items.object(index)
    return (item.text("role") or "") if item is not None else ""


def is_odd(holder: ObjectText, key: str, *wanted: JsonType) -> bool:
    """Return whether a member is there, and has none of some types."""
    raw = holder.raw(key)
    return raw is not None and type_of(raw) not in wanted


def blank(holder: ObjectText, key: str) -> bool:
    """Return whether a value is missing, null, blank text, or only blank texts."""
    raw = holder.raw(key)
    if raw is None or raw == b"null":
        return True
    if raw[:1] == b'"':
        return not (holder.text(key) or "").strip()
    pieces = holder.array(key)
    if pieces is None:
        return False
    found = [piece for _, piece in pieces.objects()]
    return len(found) == len(pieces) and all(map(says_nothing, found))


def says_nothing(part: ObjectText) -> bool:
    """Return whether a part is a text, and blank; one of a wrong type is not."""
    if part.text("type") not in TEXT_TYPES:
        return False
    text = part.text("text")
    return (part.raw("text") or b"null") == b"null" if text is None else not text.strip()


def blank_parts(parts: ArrayText | None, place: str) -> list[BlankPart]:
    """Return the blank texts among the parts of a value; they can go."""
    return [
        BlankPart(f"{place}[{number}]", part, "text", partial(parts.delete, number))
        for number, part in (parts.objects() if parts is not None else ())
        if parts is not None and says_nothing(part)
    ]


def same_text(items: ArrayText, index: int, text: str) -> bool:
    """Return whether a message is a text, whole, as a string or as its only part."""
    message = items.object(index)
    if message is None:
        return False
    pieces = message.array("content")
    if pieces is not None:
        return len(pieces) == 1 and any(piece.text("text") == text for _, piece in pieces.objects())
    return message.text("content") == text
