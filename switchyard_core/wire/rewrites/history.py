"""Rewrites of a history that another model takes over, each for every wire format.

Reasoning goes only from what the planner made: assistant items up to and including the turn of the
call that handed off. The executor's own items stay, in every later request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from switchyard_core.conversation import Conversation
from switchyard_core.decision import RewriteScope
from switchyard_core.errors import BodyError
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.wire import FORMATS
from switchyard_core.wire.history import (
    FOREIGN,
    PLANNER,
    BodyView,
    ReasoningPart,
    fixed_text,
    says_nothing,
)
from switchyard_core.wire.shapes import odd_values

__all__ = [
    "CompanionParameters",
    "DropParameters",
    "OriginParameters",
    "RemapParameters",
    "TextParameters",
    "WhenParameters",
    "drop_empty_content",
    "drop_opaque_reasoning",
    "drop_origin_bound",
    "drop_reasoning_companions",
    "foreign_context",
    "limit_cache_marks",
    "read_history",
    "reasoning_as_text",
    "remap_tool_ids",
    "repair_tool_pairs",
    "view_of",
]

#: Most cache marks that a request may have.
MAX_MARKS = 4
#: Ids of targets that want exactly nine letters or digits.
_NINE = re.compile(r"[a-zA-Z0-9]{9}")
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class DropParameters(BaseModel):
    """Which turns are the planner's: up to a call or a message, and some spans of messages."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    through_call: int | None = Field(default=None, ge=0)
    through_message: int | None = Field(default=None, ge=0)
    #: First and last index of further messages that are the planner's.
    spans: tuple[tuple[int, int], ...] = ()

    @model_validator(mode="after")
    def _say_one(self) -> Self:
        ends = (self.through_call, self.through_message)
        if None not in ends or (ends == (None, None) and not self.spans):
            msg = "needs either `through_call` or `through_message`, or `spans`"
            raise ValueError(msg)
        return self

    def mark(self, view: BodyView, scope: RewriteScope) -> None:
        """Tag the planner's items, once per request: later rewrites insert and remove items."""
        items = view.items
        if items is None or scope.facts.get("planner_marked"):
            return
        scope.facts["planner_marked"] = True
        conversation = read_history(view, scope)
        if conversation is None:
            return
        last, behind = self._ends(conversation)
        for number, message in enumerate(conversation.messages):
            spanned = any(first <= number <= end for first, end in self.spans)
            for index in range(message.first, message.last + 1):
                if message.role == "assistant" and (index <= last or spanned):
                    items.tag(index, PLANNER)
                if index <= behind or spanned:
                    items.tag(index, FOREIGN)

    def _ends(self, conversation: Conversation) -> tuple[int, int]:
        """Return the index of the planner's last item, and of the last one that was sent to it.

        Both are -1 when nothing up to a call or message is the planner's.
        """
        number, calls = self.through_call, conversation.calls
        message = -1 if self.through_message is None else self.through_message
        if number is not None and number < len(calls):
            message = calls[number].message
        messages = conversation.messages
        if message < 0 or not messages:
            return -1, -1
        message = min(message, len(messages) - 1)
        return messages[message].last, messages[conversation.turn_end(message)].last


class TextParameters(DropParameters):
    """Which turns are the planner's, and how much of their text is kept."""

    #: Most characters of converted text in all; the newest are kept.
    max_chars: int = Field(default=16000, ge=0)


class OriginParameters(DropParameters):
    """Which turns are the planner's, and whether context of theirs may be lost."""

    #: Whether compactions, files and references to items go too.
    context: bool = False


class WhenParameters(BaseModel):
    """When to run: ``always`` at another origin, ``dropped`` after a rewrite removed reasoning."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    when: Literal["always", "dropped"] = "always"

    def applies(self, scope: RewriteScope) -> bool:
        """Return whether the rewrite has to run on a request."""
        return self.when == "always" or bool(scope.facts.get("dropped_reasoning"))


class CompanionParameters(WhenParameters):
    """When to run, and what happens to continuations."""

    #: Whether the continuation by id names something that only the planner's provider knows, while
    #: the history is all here.
    drop_continuation: bool = False

    def applies(self, scope: RewriteScope) -> bool:
        """As for others; reasoning that became text has companions too."""
        return super().applies(scope) or bool(scope.facts.get("converted_reasoning"))


class RemapParameters(WhenParameters):
    """When to run, and which ids are legal; ``alphanumeric_9`` is nine letters or digits."""

    style: Literal["format", "alphanumeric_9"] = "format"


def view_of(body: ObjectText, scope: RewriteScope) -> BodyView:
    """Return a body to be patched; what it cannot look into is told in the report."""
    return FORMATS[scope.wire_format].view(body, scope.untouched)


def history_view(body: ObjectText, scope: RewriteScope) -> BodyView:
    """Return the same for a rewrite of the whole history: all wrong types are told, once."""
    view = view_of(body, scope)
    if not scope.facts.get("types_told"):
        scope.facts["types_told"] = True
        scope.untouched += odd_values(body, view.shape)
    return view


def read_history(view: BodyView, scope: RewriteScope) -> Conversation | None:
    """Return the neutral view of a history, ``None`` when it has a wrong type."""
    try:
        return FORMATS[scope.wire_format].read(view.body)
    except BodyError:
        view.leave_history()
        return None


def reasoning_as_text(
    body: ObjectText, parameters: TextParameters, scope: RewriteScope
) -> Sequence[str]:
    """Put the planner's visible reasoning into assistant text, at its place."""
    view = history_view(body, scope)
    parts = _planners(view, parameters, scope)
    found = [part for part in parts if part.text.strip()]
    texts, cut = _newest([part.text for part in found], parameters.max_chars)
    kept, turned = dict(zip(map(id, found), texts, strict=True)), {part.item for part in found}
    changes = [f"left out the oldest {cut} characters of reasoning"] if cut else []
    scope.facts["converted_reasoning"] = bool(found) or scope.facts.get("converted_reasoning")
    for part in reversed(parts):
        text = kept.get(id(part))
        if text:
            part.become(text)
            changes.append(f"turned {part.name} into text")
        elif text is not None:
            part.remove()
            changes.append(f"removed {part.name}, its text is over the cap")
        elif part.needs_others and part.item in turned:
            changes += [f"removed {name}" for name in part.remove()]
    return changes


def drop_opaque_reasoning(
    body: ObjectText, parameters: DropParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove the planner's reasoning."""
    view = history_view(body, scope)
    gone: list[str] = []
    for part in reversed(_planners(view, parameters, scope)):
        gone[:0] = part.remove()
    if gone:
        scope.facts["dropped_reasoning"] = True
    return [f"removed {name}" for name in gone]


def drop_origin_bound(
    body: ObjectText, parameters: OriginParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove what only the planner's provider can read, except reasoning."""
    view = history_view(body, scope)
    parameters.mark(view, scope)
    gone: list[str] = []
    for part in reversed(view.origin_bound()):
        if parameters.context or not part.context:
            part.remove()
            gone.insert(0, f"{part.done} {part.name}")
    return gone


def foreign_context(
    body: ObjectText, parameters: DropParameters, scope: RewriteScope
) -> tuple[str, ...]:
    """Return the names of the planner's parts whose loss would lose context; tags the items."""
    view = history_view(body, scope)
    parameters.mark(view, scope)
    return tuple(part.name for part in view.origin_bound() if part.context)


def drop_reasoning_companions(
    body: ObjectText, parameters: CompanionParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove what refers to reasoning that is gone, and continuations that lead nowhere."""
    changes: list[str] = []
    if parameters.applies(scope):
        changes += history_view(body, scope).drop_companions()
    if parameters.drop_continuation:
        keys = FORMATS[scope.wire_format].continuation(body)
        changes += [f"removed {key}" for key in keys if body.delete(key)]
    return changes


def remap_tool_ids(
    body: ObjectText, parameters: RemapParameters, scope: RewriteScope
) -> Sequence[str]:
    """Replace every id that the target refuses by a hash of it, in calls and in results."""
    if not parameters.applies(scope):
        return ()
    wire_format = FORMATS[scope.wire_format]
    legal = wire_format.legal_id if parameters.style == "format" else _NINE
    renamed = set()
    for holder, key in history_view(body, scope).id_fields():
        old = holder.text(key)
        if old is not None and not legal.fullmatch(old):
            renamed.add(old)
            holder.set(key, encode(_hashed(old, parameters.style)))
    return [f"renamed {len(renamed)} tool ids"] if renamed else []


def repair_tool_pairs(
    body: ObjectText, parameters: WhenParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove results without a call; give calls without a result a fixed one.

    Providers pair by place: a result has to be in the turn right behind its call. The calls at
    the very end of the history may still be open.
    """
    if not parameters.applies(scope):
        return ()
    changes: list[str] = []
    for turn in reversed(history_view(body, scope).tool_turns()):
        strays, missing = turn.faults()
        scope.untouched += [made.told for made in (*turn.calls, *turn.results) if made.told]
        turn.repair(strays, missing, fixed_text("lost_result"))
        changes[:0] = [
            *(f"removed {stray.place}, its call is missing" for stray in strays),
            *(f"added a result for {call.place}" for call in missing),
        ]
    return changes


def drop_empty_content(
    body: ObjectText, parameters: WhenParameters, scope: RewriteScope
) -> Sequence[str]:
    """Remove empty texts and messages; give empty results a text."""
    if not parameters.applies(scope):
        return ()
    view = history_view(body, scope)
    items = view.items
    if items is None:
        return ()
    changes: list[str] = []
    for index in range(len(items) - 1, -1, -1):
        changes += [part.repair(fixed_text("empty_result")) for part in view.blanks(index)[::-1]]
        if view.is_empty(index):
            items.delete(index)
            changes.append(f"removed the empty {view.key}[{index}]")
    return changes + view.close_up(changed=bool(changes))


def limit_cache_marks(
    body: ObjectText, parameters: WhenParameters, scope: RewriteScope
) -> Sequence[str]:
    """Leave at most four ``cache_control`` marks, and none on an empty text block.

    The earliest marks on messages go first, then those on system blocks and tools from the front.
    """
    if not parameters.applies(scope):
        return ()
    changes = []
    marked: list[tuple[str, ObjectText]] = []
    # A mark on the request itself takes a place too.
    room = MAX_MARKS - _is_marked(body)
    for place, block in history_view(body, scope).cache_marks():
        if not _is_marked(block):
            continue
        if says_nothing(block):
            block.delete("cache_control")
            changes.append(f"removed the cache mark of the empty {place}")
        else:
            marked.append((place, block))
    # Marks on messages first; `sorted` keeps the order of equals.
    marked = sorted(marked, key=lambda entry: not entry[0].startswith("messages"))
    for place, block in marked[: max(0, len(marked) - room)]:
        block.delete("cache_control")
        changes.append(f"removed the cache mark of {place}")
    return changes


def _planners(
    view: BodyView, parameters: DropParameters, scope: RewriteScope
) -> list[ReasoningPart]:
    """Return the planner's reasoning, oldest first."""
    parameters.mark(view, scope)
    return view.reasoning()


def _newest(texts: Sequence[str], limit: int) -> tuple[list[str], int]:
    """Return the texts with the oldest characters cut, and the number of cut characters.

    The mark of a cut counts within the limit.
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


def _hashed(old: str, style: str) -> str:
    digest = blake2b(old.encode("utf-8", "surrogatepass"), digest_size=16)
    if style != "alphanumeric_9":
        return "call_" + digest.hexdigest()[:24]
    number, letters = int.from_bytes(digest.digest()), ""
    for _ in range(9):
        number, rest = divmod(number, len(_ALPHABET))
        letters += _ALPHABET[rest]
    return letters


def _is_marked(block: ObjectText) -> bool:
    return (block.raw("cache_control") or b"null") != b"null"
