"""The messages of a Chat Completions request as neutral turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from mimetypes import guess_type
from typing import Literal

from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire.chat.asked import (
    NOTHING,
    Holder,
    mark_of,
    objects_in,
    others_in,
    printable,
)
from switchyard_core.wire.history import INSTRUCTIONS
from switchyard_core.wire.naming import hashed_id
from switchyard_core.wire.neutral import (
    Call,
    Media,
    NeutralPart,
    Result,
    Thought,
    Told,
    ToolName,
    Turn,
    Words,
    is_empty_data,
)
from switchyard_core.wire.pairing import odd_result, result_parts

__all__ = ["read_history"]

_Role = Literal["system", "user", "assistant", "tool"]

#: Keys of a message that are read, or say nothing that another provider could use.
_OF_MESSAGE = frozenset(
    (
        *("role", "content", "refusal", "tool_calls", "function_call", "tool_call_id"),
        *("reasoning_content", "reasoning", "reasoning_details", "cache_control", "audio"),
    )
)
_OF_CALL = frozenset({"id", "type", "index", "function", "custom", "cache_control"})
_PARTS = ("text", "refusal", "image_url", "file")
_OF_PART = frozenset({"type", "cache_control", *_PARTS})
_RESULTS = ("tool", "function")


def read_history(fields: ObjectText, told: Told) -> tuple[tuple[Words, ...], tuple[Turn, ...]]:
    """Return the instructions that a history begins with, and its turns."""
    history = _History(told)
    for place, message in objects_in(fields, "messages", "", told.lost):
        history.add(message, place)
    return history.read()


class _History:
    """Collects messages into turns."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._instructions: list[Words] = []
        self._turns: list[tuple[_Role, list[NeutralPart]]] = []
        #: Ids of the last call of each function in the old form, and of calls with free text.
        self._old: dict[str, str] = {}
        self._custom: set[str] = set()

    def read(self) -> tuple[tuple[Words, ...], tuple[Turn, ...]]:
        """Return the instructions and the turns."""
        turns = [Turn(role=role, parts=tuple(parts)) for role, parts in self._turns]
        return tuple(self._instructions), tuple(turns)

    def add(self, message: Holder, place: str) -> None:
        """Read one message."""
        role = message.text("role") or ""
        # The name in a result is that of the call.
        known = _OF_MESSAGE | {"name"} if role in _RESULTS else _OF_MESSAGE
        self._told.left_out += others_in(message, known, place)
        if role in INSTRUCTIONS:
            said = self._content(message, place)
            words = [part for part in said if isinstance(part, Words)]
            if len(words) < len(said):
                self._told.lost.append(f"what is not text in {place}")
            if self._turns:
                self._turn("system", words)
            else:
                self._instructions += words
        elif role in _RESULTS:
            self._turn("tool", [self._result(message, place)])
        elif role == "assistant":
            self._turn("assistant", self._answer(message, place))
        elif role == "user":
            self._turn("user", self._content(message, place))
        else:
            self._told.lost.append(f"{place}, whose role is unknown")

    def _turn(self, role: _Role, parts: Sequence[NeutralPart]) -> None:
        if not parts:
            return
        if self._turns and self._turns[-1][0] == role != "system":
            self._turns[-1][1].extend(parts)
        else:
            self._turns.append((role, [*parts]))

    def _answer(self, message: Holder, place: str) -> list[NeutralPart]:
        thought = _thought(message)
        parts: list[NeutralPart] = [Thought(text=thought)] if thought else []
        if _is_sealed(message, readable=bool(thought)):
            self._told.left_out.append(f"reasoning_details of {place}")
        parts += self._content(message, place)
        refusal = message.text("refusal") or ""
        if refusal.strip():
            parts.append(Words(text=refusal, refusal=True))
        if (message.raw("audio") or b"null") not in NOTHING:
            self._told.lost.append(f"audio of {place}")
        for at, call in objects_in(message, "tool_calls", f"{place}.", self._told.lost):
            parts.append(self._call(call, at))
        old = message.object("function_call")
        name = (old.text("name") or "") if old is not None else ""
        if old is not None and name:
            # The older form names the tool alone, in the result too.
            self._old[name] = hashed_id(f"{place} {name}")
            tool = ToolName(name=name)
            parts.append(Call(id=self._old[name], tool=tool, arguments=_arguments(old)))
        last = parts[-1] if parts else None
        if isinstance(last, Call) and mark_of(message) and not last.cache:
            parts[-1] = replace(last, cache=mark_of(message))
        return parts

    def _call(self, call: Holder, place: str) -> Call:
        function = call.object("function")
        custom = call.object("custom") if function is None else None
        named = next((each for each in (function, custom) if each is not None), call)
        made = Call(
            id=call.text("id") or "",
            tool=ToolName(name=named.text("name") or ""),
            arguments=(named.text("input") or "") if custom is not None else _arguments(named),
            custom=custom is not None,
            cache=mark_of(call),
        )
        self._told.left_out += others_in(call, _OF_CALL, place)
        if made.custom:
            self._custom.add(made.id)
        return made

    def _result(self, message: Holder, place: str) -> Result:
        call_id = message.text("tool_call_id") or ""
        if not call_id:
            call_id = self._old.get(message.text("name") or "", "")
        # The mark of the message is the result's.
        lost = len(self._told.lost)
        odd = odd_result(message.raw("content") or b"null")
        read = odd or self._content(message, place, marked=False)
        parts = result_parts(read, lost=len(self._told.lost) > lost)
        custom = bool(call_id) and call_id in self._custom
        return Result(call_id=call_id, parts=parts, custom=custom, cache=mark_of(message))

    def _content(self, message: Holder, place: str, *, marked: bool = True) -> list[Words | Media]:
        mark = mark_of(message) if marked else b""
        text = message.text("content")
        if text is not None:
            return [Words(text=text, cache=mark)] if text.strip() else []
        listed = objects_in(message, "content", f"{place}.", self._told.lost)
        read = [_part(part, at, self._told) for at, part in listed]
        found = [part for part in read if part is not None]
        if mark and found and not found[-1].cache:
            found[-1] = replace(found[-1], cache=mark)
        return found


def _thought(message: Holder) -> str:
    for key in ("reasoning_content", "reasoning"):
        text = message.text(key) or ""
        if text.strip():
            return text
    details = objects_in(message, "reasoning_details", "", [])
    texts = [part.text("text") or part.text("summary") or "" for _, part in details]
    return "\n\n".join([text for text in texts if text.strip()])


def _is_sealed(message: Holder, *, readable: bool) -> bool:
    """Return whether reasoning has a form that only its provider can read."""
    if (message.raw("reasoning_details") or b"null") in NOTHING:
        return False
    details = objects_in(message, "reasoning_details", "", [])
    return not readable or any(part.text("data") or part.text("signature") for _, part in details)


def _arguments(named: Holder) -> str:
    """Return the arguments of a call as text; some clients send the object itself."""
    text = named.text("arguments")
    if text is not None:
        return text
    raw = named.raw("arguments") or b"null"
    return "" if raw == b"null" else raw.decode("utf-8", "replace")


def _part(part: Holder, place: str, told: Told) -> Words | Media | None:
    kind, cache = part.text("type") or "", mark_of(part)
    if kind in _PARTS:
        told.left_out += others_in(part, _OF_PART, place)
    if kind in ("text", "refusal"):
        text = part.text(kind) or ""
        words = Words(text=text, refusal=kind == "refusal", cache=cache)
        return words if text.strip() else None
    if kind == "image_url":
        image = part.object("image_url")
        url = (image.text("url") if image is not None else part.text("image_url")) or ""
        detail = (image.text("detail") if image is not None else "") or ""
        if url.strip() and not is_empty_data(url):
            return Media(kind="image", url=url, detail=detail, cache=cache)
    elif kind == "file":
        file = part.object("file")
        data = (file.text("file_data") if file is not None else "") or ""
        if file is not None and data.strip() and not is_empty_data(data):
            name = file.text("filename") or ""
            return Media(kind="file", url=_address(data, name), name=name, cache=cache)
    told.lost.append(f"{place} of type {printable(kind)}")
    return None


def _address(data: str, name: str) -> str:
    """Return the address of a file; some clients send its data bare."""
    if data[:8].lower().startswith(("data:", "https://", "http://")):
        return data
    return f"data:{guess_type(name)[0] or 'application/pdf'};base64,{data}"
