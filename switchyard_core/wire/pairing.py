"""Calls and results of a neutral history, as every provider wants them: in pairs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from switchyard_core.jsonio.tree import JsonTextError, ObjectText, encode
from switchyard_core.wire.history import fixed_text
from switchyard_core.wire.naming import hashed_id, id_at_target
from switchyard_core.wire.neutral import Call, Media, NeutralPart, Result, Told, Turn, Words

if TYPE_CHECKING:
    from switchyard_core.wire.format import Format

__all__ = ["arguments_object", "odd_result", "paired", "result_parts"]

_Waiting = dict[str, deque[tuple[int, Result]]]


def paired(turns: Sequence[Turn], target: Format, told: Told) -> tuple[Turn, ...]:
    """Return the turns with every result right behind the turn of its call, in call order.

    Ids are those of the target, each one used once. A call without a result gets one that says
    so; a result without a call is named and left out.
    """
    waiting: _Waiting = {}
    for at, result in _results(turns):
        waiting.setdefault(result.call_id, deque()).append((at, result))
    made: list[Turn] = []
    used: set[str] = set()
    for at, turn in enumerate(turns):
        if turn.role == "tool":
            continue
        answers: list[NeutralPart] = []
        parts: list[NeutralPart] = []
        for part in turn.parts:
            if isinstance(part, Call):
                call_id = _free_id(part.id, used, target)
                found = _answer(waiting, part, at, told)
                answers.append(replace(found, call_id=call_id, custom=part.custom))
                parts.append(replace(part, id=call_id))
            else:
                parts.append(part)
        made.append(replace(turn, parts=tuple(parts)))
        if answers:
            made.append(Turn(role="tool", parts=tuple(answers)))
    told.lost += [
        f"the result of the call `{result.call_id}`, which is missing"
        for queue in waiting.values()
        for _, result in queue
    ]
    return tuple(_joined(made))


def arguments_object(call: Call, told: Told) -> str:
    """Return the arguments of a call as the JSON object that a function is given.

    Anthropic demands one, and so do the templates of models that others serve.
    """
    if call.custom:
        return encode({"input": call.arguments}).decode()
    if not call.arguments.strip():
        return "{}"
    try:
        ObjectText(call.arguments.strip().encode("utf-8", "backslashreplace"))
    except JsonTextError:
        line = f"kept arguments of `{call.tool.name}` that are not a JSON object as `_raw`"
        told.changed.append(line)
        return encode({"_raw": call.arguments}).decode()
    return call.arguments


def odd_result(raw: bytes) -> tuple[Words, ...]:
    """Return the JSON of a result that is neither a text nor a list as what the tool returned."""
    if raw[:1] in b'"[' or raw in (b"null", b"{}", b""):
        return ()
    return (Words(text=raw.decode("utf-8", "replace")),)


def result_parts(parts: Iterable[NeutralPart], *, lost: bool) -> tuple[Words | Media, ...]:
    """Return the parts of a result; one of which all was lost says so, not that it was empty."""
    read = tuple([part for part in parts if isinstance(part, Words | Media)])
    return read if read or not lost else (Words(text=fixed_text("lost_output")),)


def _results(turns: Iterable[Turn]) -> Iterator[tuple[int, Result]]:
    for at, turn in enumerate(turns):
        for part in turn.parts if turn.role == "tool" else ():
            if isinstance(part, Result):
                yield at, part


def _answer(waiting: _Waiting, call: Call, at: int, told: Told) -> Result:
    """Take the first result behind a call that names it."""
    queue = waiting.get(call.id, deque())
    for place, (behind, result) in enumerate(queue):
        if behind > at:
            del queue[place]
            return result
    told.changed.append(f"answered the call of `{call.tool.name}`, which has no result")
    return Result(call_id="", parts=(Words(text=fixed_text("lost_result")),))


def _free_id(told: str, used: set[str], target: Format) -> str:
    """Return the id of a call at the target; the same history gives the same one."""
    made = id_at_target(told, target) if told else hashed_id(f"call {len(used)}")
    while made in used:
        made = hashed_id(f"{made} {len(used)}")
    used.add(made)
    return made


def _joined(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Yield the turns, neighbours of one role as one; what is left without a part goes."""
    last: Turn | None = None
    for turn in turns:
        if not turn.parts:
            continue
        if last is not None and turn.role == last.role != "system":
            last = replace(last, parts=(*last.parts, *turn.parts))
            continue
        if last is not None:
            yield last
        last = turn
    if last is not None:
        yield last
