"""The tool calls of a Chat Completions answer, as servers send them in pieces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from switchyard_core.jsonio.tree import JsonTextError, encode, loads
from switchyard_core.wire.answers import AnswerPart
from switchyard_core.wire.history import NULL, decode_items, decode_one, word
from switchyard_core.wire.replies import ShapeError
from switchyard_core.wire.retelling import AnswerTeller

__all__ = ["Named", "Piece", "ToldCalls", "odd_named", "odd_pieces"]

_EMPTY = b'""'
_NO_ARGUMENTS = b'"{}"'


class Named(msgspec.Struct):
    """The tool of a call, and a piece of its arguments."""

    name: str | None = None
    arguments: msgspec.Raw = NULL
    input: msgspec.Raw = NULL


class Piece(msgspec.Struct):
    """A piece of a call."""

    index: int | None = None
    id: str | None = None
    function: Named | None = None
    custom: Named | None = None


class _OddNamed(msgspec.Struct):
    name: Any = None
    arguments: msgspec.Raw = NULL
    input: msgspec.Raw = NULL


class _OddPiece(msgspec.Struct):
    """A piece in which something has a wrong type, or which has half an emoji."""

    index: Any = None
    id: Any = None
    function: msgspec.Raw = NULL
    custom: msgspec.Raw = NULL


@dataclass(slots=True, eq=False)
class _Call:
    """A call that is not complete yet; its arguments are kept to see when it is."""

    key: int
    id: str = ""
    name: str = ""
    custom: bool = False
    opened: bool = False
    closed: bool = False
    pieces: list[bytes] = field(default_factory=list)
    told: int = 0  # number of the pieces that were told
    #: Arguments `{}` that came first: some servers send them in front of the real ones.
    held: bool = False

    @property
    def text(self) -> str:
        """The arguments so far."""
        return "".join([loads(piece) for piece in self.pieces])


class ToldCalls:
    """Takes pieces of calls and tells them.

    Servers disagree about all but the arguments: an index may be missing or 0 for every call, id
    and name may come late, never or with every piece, and the whole arguments after their pieces.
    """

    def __init__(self, teller: AnswerTeller) -> None:
        self._teller = teller
        self._calls: list[_Call] = []
        self._by_index: dict[int | None, _Call] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, piece: Piece) -> None:
        """Take a piece of a call."""
        named = piece.function or piece.custom or Named()
        call = None
        if piece.id is None and named.name is None:
            call = self._by_index.get(piece.index)
        if call is None:
            call = self._call(piece.index, piece.id or "", named.name or "")
            call.custom = call.custom or (piece.custom is not None and piece.function is None)
        raw = bytes(named.input if call.custom else named.arguments)
        self._take(call, raw if raw[:1] == b'"' else _string(raw))

    def settle(self) -> None:
        """End the calls whose arguments are complete: something else begins."""
        for call in self._calls:
            # Pieces of several calls may take turns.
            self._tell(call)
            if not call.closed and _is_object(call.text):
                self._close(call)

    def end(self) -> None:
        """End all calls; one that nobody could make is a ``ShapeError``."""
        for call in self._calls:
            if call.pieces and not call.name:
                msg = "a tool call has no name"
                raise ShapeError(msg)
            self._close(call)

    def _call(self, index: int | None, call_id: str, name: str) -> _Call:
        """Return the call that a piece belongs to, maybe a new one."""
        if index is not None:
            found = self._by_index.get(index)
        elif call_id:
            found = next((call for call in self._calls if call.id == call_id), None)
        else:
            last = self._calls[-1] if self._calls else None
            goes_on = last and (not name or (name == last.name and not _is_object(last.text)))
            found = last if goes_on else None
        if found is None or _begins_another(found, call_id, name):
            self.settle()
            found = _Call(len(self._calls))
            self._calls.append(found)
            if index is not None:
                self._by_index[index] = found
        found.id, found.name = found.id or call_id, found.name or name
        return found

    def _take(self, call: _Call, raw: bytes) -> None:
        if raw == _EMPTY or call.closed:
            self._tell(call, wait=True)
        elif raw == _NO_ARGUMENTS and not call.pieces and not call.custom:
            call.held = True
            self._tell(call, wait=True)
        elif raw[-2:] != b'}"' or not self._repeats(call, raw):
            call.pieces.append(raw)
            self._tell(call)

    def _repeats(self, call: _Call, raw: bytes) -> bool:
        """Return whether a piece says the whole arguments once more."""
        if call.custom or not call.pieces or raw[:2] != b'"{':
            return False
        return _is_object(call.text)

    def _tell(self, call: _Call, *, wait: bool = False) -> None:
        """Tell a call whose name is known; ``wait`` for its id."""
        if call.closed or not call.name:
            return
        if not call.opened:
            if wait and not call.id:
                return
            call.opened = True
            part = AnswerPart(kind="call", id=call.id, name=call.name, custom=call.custom)
            self._teller.open(call.key, part)
        while call.told < len(call.pieces):
            self._teller.more(call.key, call.pieces[call.told])
            call.told += 1

    def _close(self, call: _Call) -> None:
        if call.closed:
            return
        self._tell(call)
        call.closed, call.pieces = True, []
        if call.opened:
            self._teller.close(call.key)


def _begins_another(call: _Call, call_id: str, name: str) -> bool:
    """Return whether a piece with the index of a call is of another one."""
    if not call_id or not name or not call.id or call_id == call.id:
        return False
    # Some servers give each piece an id of its own.
    return name != call.name or call.closed or call.held or _is_object(call.text)


def _is_object(text: str) -> bool:
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(loads(text.encode("utf-8", "surrogatepass")), dict)
    except (JsonTextError, ValueError):
        return False


def odd_pieces(raw: bytes) -> list[Piece]:
    """Return the pieces in the JSON of ``tool_calls``, whatever its shape."""
    found = decode_items(raw, _OddPiece) if raw[:1] == b"[" else []
    return [_as_usual(odd) for odd in found if odd is not None]


def _as_usual(odd: _OddPiece) -> Piece:
    return Piece(
        index=odd.index if isinstance(odd.index, int) else None,
        id=word(odd.id),
        function=odd_named(bytes(odd.function)),
        custom=odd_named(bytes(odd.custom)),
    )


def odd_named(raw: bytes) -> Named | None:
    """Return a tool's name and arguments, whatever their types; ``None`` for none."""
    odd = decode_one(raw, _OddNamed) if raw[:1] == b"{" else None
    if odd is None:
        return None
    return Named(name=word(odd.name), arguments=odd.arguments, input=odd.input)


def _string(raw: bytes) -> bytes:
    """Return arguments as a JSON string; some servers send the object itself, or null."""
    if raw[:1] == b'"':
        return raw
    return _EMPTY if raw == b"null" else encode(raw.decode("utf-8", "replace"))
