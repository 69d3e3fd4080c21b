"""A body that can be patched: what rewrites see, the same for every wire format.

A view works on the raw items of the lossless tree, so that untouched parts keep their bytes. Each
wire format has one view; each rewrite is written once, on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from switchyard_core.jsonio.tree import ArrayText, ObjectText, encode

__all__ = [
    "ORPHAN",
    "PLANNER",
    "STRIPPED",
    "BlankPart",
    "BodyView",
    "MadeCall",
    "ReasoningPart",
    "ToolTurn",
    "blank",
    "join_text",
    "same_text",
]

#: Tag of an item that the planner made.
PLANNER = "planner"
#: Tag of an item that followed dropped reasoning in the same turn.
ORPHAN = "orphan"
#: Tag of a message that lost reasoning.
STRIPPED = "stripped"
_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})


@dataclass(slots=True, eq=False)
class ReasoningPart(ABC):
    """Reasoning of one turn, or a piece of it that can be removed alone."""

    item: int
    name: str  # for reports, with its place
    text: str  # its readable part

    @abstractmethod
    def become(self, text: str) -> None:
        """Put visible text in its place."""

    @abstractmethod
    def remove(self) -> Sequence[str]:
        """Remove it; return the names of what went."""


@dataclass(slots=True, eq=False)
class BlankPart:
    """A blank text, or a result without a text, which a provider refuses."""

    place: str  # where it is, such as `messages[2].content[0]`
    holder: ObjectText
    key: str
    remove: Callable[[], None] | None = None  # removes it; `None` for a result, which must stay

    def mend(self, text: str) -> str:
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
        """Return the results without a call, and the calls without a result."""
        made = {name for call in self.calls for name in call.ids}
        seen: set[str] = set()
        strays = []
        for result in self.results:
            if result.ids & made and not (self._once and result.ids & seen):
                seen |= result.ids
            elif not self._elsewhere:
                strays.append(result)
        if self.may_wait(answered=bool(seen)):
            return strays, []
        return strays, [call for call in self.calls if not call.open and not call.ids & seen]

    def may_wait(self, *, answered: bool) -> bool:
        """Return whether the calls may still be open; ``answered`` says that one has a result."""
        del answered
        return False

    @abstractmethod
    def mend(self, strays: Sequence[MadeCall], missing: Sequence[MadeCall], text: str) -> None:
        """Remove some results, and answer some calls with a text."""


class BodyView(ABC):
    """A body of one wire format, to be patched."""

    #: The body's key that holds the history.
    key: ClassVar[str]

    def __init__(self, body: ObjectText) -> None:
        self.body = body

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
        """Repair the neighbours of removed items; return a line per change."""
        del changed
        return []

    @abstractmethod
    def append_user_text(self, text: str) -> str:
        """Add a text of the user at the end; return the change, ``""`` if it is there."""

    def user_item(self, text: str) -> bytes:
        """Return a message of the user as a wire item."""
        return encode({"role": "user", "content": text})

    @abstractmethod
    def add_instruction(self, text: str, *, append: bool) -> str:
        """Add an instruction before or after the caller's; return the change, or ``""``."""

    def cache_marks(self) -> Iterator[tuple[str, ObjectText]]:
        """Yield the places for a cache mark, in the order in which a prompt is cached."""
        return iter(())


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
    return len(found) == len(pieces) and all(
        piece.text("type") in _TEXT_TYPES and not (piece.text("text") or "").strip()
        for piece in found
    )


def same_text(items: ArrayText, index: int, text: str) -> bool:
    """Return whether a message is a text, whole, as a string or as its only part."""
    message = items.object(index)
    if message is None:
        return False
    pieces = message.array("content")
    if pieces is not None:
        return len(pieces) == 1 and any(piece.text("text") == text for _, piece in pieces.objects())
    return message.text("content") == text


def join_text(body: ObjectText, key: str, before: str, text: str, *, append: bool) -> str:
    """Add a text to a string member, or make it before ``before``; return the change, or ``""``.

    The caller's string keeps its bytes; a blank line separates the two.
    """
    raw = body.raw(key)
    if raw is None:
        body.insert(body.index(before), key, encode(text))
        return f"set {key}"
    if raw in (b"null", b'""'):
        body.set(key, encode(text))
        return f"set {key}"
    if raw[:1] != b'"':
        return ""  # The provider says itself that it does not take this.
    ours, gap, theirs = encode(text)[1:-1], encode("\n\n")[1:-1], raw[1:-1]
    # Another prompt of ours may be outside of this one: look for it as a piece of its own.
    if gap + ours + gap in gap + theirs + gap:
        return ""
    pieces = (theirs, gap, ours) if append else (ours, gap, theirs)
    body.set(key, b'"' + b"".join(pieces) + b'"')
    return f"put the text {'after' if append else 'before'} {key}"
