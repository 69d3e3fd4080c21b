"""Neutral turns as the messages of a Messages request."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

from switchyard_core.jsonio.tree import array_of, encode, object_of
from switchyard_core.wire.format import Format
from switchyard_core.wire.history import fixed_text
from switchyard_core.wire.naming import ToolNames
from switchyard_core.wire.neutral import (
    Call,
    Facts,
    Media,
    NeutralRequest,
    Result,
    Thought,
    Told,
    Turn,
    Words,
)
from switchyard_core.wire.pairing import arguments_object, paired

__all__ = ["Block", "Row", "contents", "mark", "text_block", "write_history"]

#: Types of images that the API takes, some by a further name.
_IMAGES = {
    "image/jpeg": "image/jpeg",
    "image/jpg": "image/jpeg",
    "image/png": "image/png",
    "image/gif": "image/gif",
    "image/webp": "image/webp",
}
_PDF = "application/pdf"
#: Types of files that are text, besides all of ``text/``.
_TEXTS = re.compile(r"text/.*|application/(?:.*\+)?(?:json|xml|yaml|x-yaml|toml|javascript|x-sh)")
_DATA = re.compile(r"data:(?P<type>[^;,]*)(?P<more>[^,]*),(?P<data>.*)", re.DOTALL)
_LONGEST_TITLE = 500
#: Source: platform.claude.com/docs/en/build-with-claude/prompt-caching.
_MOST_MARKS = 4


@dataclass(slots=True)
class Block:
    """A block that is about to be written; values of members that are bytes are JSON already."""

    members: dict[str, Any]
    cache: bytes = b""
    content: list[Block] = field(default_factory=list)  # of a result

    def dump(self) -> bytes:
        """Return its JSON."""
        members = dict(self.members)
        if self.content:
            members["content"] = contents(self.content)
        if self.cache:
            members["cache_control"] = self.cache
        return object_of(members)

    @property
    def all(self) -> Iterator[Block]:
        """It and what is inside, in the order of a prompt."""
        for inner in self.content:
            yield from inner.all
        yield self


@dataclass(slots=True)
class Row:
    """A message that is about to be written."""

    role: Literal["user", "assistant", "system"]
    blocks: list[Block]

    def dump(self) -> bytes:
        """Return its JSON."""
        return object_of({"role": self.role, "content": contents(self.blocks)})


def text_block(text: str, cache: bytes = b"") -> Block:
    """Return a block of text."""
    return Block({"type": "text", "text": text}, cache)


def contents(blocks: Sequence[Block]) -> bytes:
    """Return the JSON of blocks; of a single text without a mark it is a string."""
    first = blocks[0]
    if len(blocks) == 1 and not first.cache and first.members["type"] == "text":
        return encode(first.members["text"])
    return array_of([block.dump() for block in blocks])


def write_history(
    request: NeutralRequest, names: ToolNames, target: Format, facts: Facts
) -> tuple[list[Block], list[Row]]:
    """Return the instructions that a history begins with, and its messages."""
    rows = _Rows(request.told, names, facts)
    for turn in paired(request.turns, target, request.told):
        rows.add(turn)
    return rows.leading, rows.finish()


class _Rows:
    """Makes messages of turns that are in pairs: the user's first, roles that alternate."""

    def __init__(self, told: Told, names: ToolNames, facts: Facts) -> None:
        self.leading: list[Block] = []
        self._told = told
        self._names = names
        self._facts = facts
        self._rows: list[Row] = []
        #: Instructions that wait for a place: behind the user's words, in front of the assistant.
        self._waiting: list[Block] = []

    def add(self, turn: Turn) -> None:
        """Add a turn."""
        blocks = list(self._blocks(turn))
        if turn.role == "system":
            self._instruct(blocks)
        elif turn.role == "assistant":
            if blocks:
                self._place()
                self._begin()
                self._put("assistant", blocks)
        elif blocks:
            if self._waiting:
                self._told.changed.append("moved instructions behind the user's next words")
            self._put("user", blocks)

    def finish(self) -> list[Row]:
        """Return all messages."""
        self._place()
        if not self._rows:
            self._told.changed.append("added a message of the user, for there was none")
            self._put("user", [text_block(fixed_text("go_on"))])
        last = self._rows[-1]
        text = last.blocks[-1].members.get("text")
        if last.role == "assistant" and isinstance(text, str) and text != text.rstrip():
            # The API refuses to continue a text that ends with a space.
            last.blocks[-1].members["text"] = text.rstrip()
            self._told.changed.append("cut the space at the end of the assistant's last text")
        return self._rows

    def _put(self, role: Literal["user", "assistant", "system"], blocks: list[Block]) -> None:
        if self._rows and self._rows[-1].role == role:
            self._rows[-1].blocks += blocks
        else:
            self._rows.append(Row(role, blocks))

    def _begin(self) -> None:
        if not self._rows:
            self._told.changed.append("added a message of the user in front of the assistant's")
            self._put("user", [text_block(fixed_text("lost_beginning"))])

    def _instruct(self, blocks: list[Block]) -> None:
        if not self._rows and not self._waiting:
            self.leading += blocks
        elif self._facts.system_rows:
            self._waiting += blocks
        else:
            self._mark(blocks)

    def _place(self) -> None:
        """Place the instructions that wait, behind the user's words.

        Source: platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
        (a message of the system follows the user's, and is the last or in front of an assistant's).
        """
        if self._waiting and self._rows[-1].role == "user":
            self._put("system", self._waiting)
        elif self._waiting:
            self._mark(self._waiting)
        self._waiting = []

    def _mark(self, blocks: list[Block]) -> None:
        """Say instructions by the user, marked as such."""
        self._told.changed.append("turned instructions within the history into the user's words")
        for block in blocks:
            block.members["text"] = fixed_text("instructions_by_user").format(
                text=block.members["text"]
            )
        self._put("user", blocks)

    # --- blocks ----------------------------------------------------------------------------------

    def _blocks(self, turn: Turn) -> Iterator[Block]:
        for part in turn.parts:
            if isinstance(part, Thought):
                # A block of thinking is nothing without its signature.
                self._told.left_out.append("reasoning of earlier turns")
            elif isinstance(part, Media) and turn.role not in ("user", "tool"):
                self._told.lost.append(f"the {part.kind} of the {turn.role}")
            else:
                yield self._block(part)

    def _block(self, part: Words | Media | Call | Result) -> Block:
        if isinstance(part, Words):
            if part.refusal:
                self._told.changed.append("wrote the refusals of earlier turns as text")
            return text_block(part.text, part.cache)
        if isinstance(part, Media):
            return self._media(part)
        if isinstance(part, Call):
            name = self._names.at_target(part.tool).name
            made = {"type": "tool_use", "id": part.id, "name": name, "input": self._input(part)}
            return Block(made, part.cache)
        return self._result(part)

    def _input(self, call: Call) -> bytes:
        """Return the arguments as the object that the API demands."""
        # Half an emoji is legal in JSON as an escape only.
        return arguments_object(call, self._told).strip().encode("utf-8", "backslashreplace")

    def _result(self, result: Result) -> Block:
        made: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call_id}
        if result.failed:
            made["is_error"] = True
        content = [self._block(part) for part in result.parts]
        if result.failed and not content:
            # The API refuses an error without a text.
            content = [text_block(fixed_text("empty_result"))]
        return Block(made, result.cache, content)

    def _media(self, part: Media) -> Block:
        if part.detail:
            self._told.left_out.append("how closely to look at images")
        found = _DATA.fullmatch(part.url)
        title = {"title": part.name[:_LONGEST_TITLE]} if part.name.strip() else {}
        source: dict[str, Any] | None = None
        kind = "image" if part.kind == "image" else "document"
        if found is not None:
            kind, source = _inline(found)
        elif part.url[:8].lower().startswith(("https://", "http://")):
            source = {"type": "url", "url": part.url}
        if source is None:
            about = found["type"] if found is not None else part.url.partition(":")[0]
            self._told.lost.append(f"a file of the type `{about}`")
            return text_block(fixed_text("lost_file"))
        named = title if kind == "document" else {}
        return Block({"type": kind, "source": source, **named}, part.cache)


def _inline(found: re.Match[str]) -> tuple[str, dict[str, Any] | None]:
    """Return the block and the source for the data of an address, ``None`` for other types."""
    media, data = found["type"].lower(), found["data"]
    coded = ";base64" in found["more"]
    if coded and media in _IMAGES:
        return "image", {"type": "base64", "media_type": _IMAGES[media], "data": data}
    if coded and media == _PDF:
        return "document", {"type": "base64", "media_type": _PDF, "data": data}
    if _TEXTS.fullmatch(media or "text/plain"):
        try:
            text = (b64decode(data) if coded else unquote_to_bytes(data)).decode("utf-8")
        except (Error, ValueError):
            return "document", None
        if text.strip():
            return "document", {"type": "text", "media_type": "text/plain", "data": text}
    return "document", None


def mark(
    tools: Sequence[Block], system: Sequence[Block], rows: Iterable[Row], *, auto: bool
) -> int:
    """Keep at most four cache marks, the last of messages first; return how many went.

    Without any, ``auto`` marks tools, instructions and the last two messages of the user.
    """
    listed = list(rows)
    said = [block for row in listed for each in row.blocks for block in each.all]
    marked = [block for block in (*said, *tools, *system) if block.cache]
    if auto and not marked:
        asked = [row.blocks[-1] for row in listed if row.role == "user"][-2:]
        for block in (*tools[-1:], *system[-1:], *asked):
            block.cache = b'{"type":"ephemeral"}'
    extra = marked[: max(0, len(marked) - _MOST_MARKS)]
    for block in extra:
        block.cache = b""
    return len(extra)
