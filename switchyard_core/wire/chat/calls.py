"""The tool calls of a Chat Completions answer, as servers send them in pieces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from switchyard_core.jsonio.tree import encode
from switchyard_core.wire.answers import AnswerPart
from switchyard_core.wire.chat.arguments import Arguments
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
    """A call that is not complete yet."""

    key: int
    id: str = ""
    name: str = ""
    custom: bool = False
    opened: bool = False
    closed: bool = False
    arguments: Arguments = field(default_factory=Arguments)
    told: int = 0  # number of the pieces that were told
    #: Arguments `{}` that came first: some servers send them in front of the real ones.
    held: bool = False

    @property
    def is_bare(self) -> bool:
        """Whether nothing but its id and its name came so far."""
        return not (self.opened or self.held or self.arguments.pieces)


class ToldCalls:
    """Takes pieces of calls and tells them.

    Servers disagree about all but the arguments: an index may be missing or 0 for every call, id
    and name may come late, never or with every piece, and arguments more than once. Each piece
    costs what it is long, however many there are.
    """

    def __init__(self, teller: AnswerTeller) -> None:
        self._teller = teller
        self._calls: list[_Call] = []
        self._by_index: dict[int | None, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        #: Calls that got a piece since they were looked at.
        self._fresh: dict[int, _Call] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, piece: Piece) -> None:
        """Take a piece of a call."""
        named = piece.function or piece.custom or Named()
        custom = piece.custom is not None and piece.function is None
        call = None
        if piece.id is None and named.name is None:
            call = self._by_index.get(piece.index)
        raw = bytes(named.input if custom or (call and call.custom) else named.arguments)
        raw = raw if raw[:1] == b'"' else _string(raw)
        if call is None:
            call = self._call(piece.index, piece.id or "", named.name or "", raw)
            call.custom = call.custom or custom
        self._fresh[call.key] = call
        self._take(call, raw)

    def settle(self) -> None:
        """End the calls whose arguments are complete: something else begins."""
        fresh, self._fresh = self._fresh, {}
        for key in sorted(fresh):
            # Pieces of several calls may take turns.
            call = fresh[key]
            self._tell(call)
            if not call.closed and not call.custom and call.arguments.is_object:
                self._close(call)

    def end(self) -> None:
        """End all calls; one that nobody could make is a ``ShapeError``."""
        for call in self._calls:
            if call.arguments.pieces and not call.name:
                msg = "a tool call has no name"
                raise ShapeError(msg)
            self._close(call)

    def _call(self, index: int | None, call_id: str, name: str, raw: bytes) -> _Call:
        """Return the call that a piece belongs to, maybe a new one."""
        if index is not None:
            found = self._by_index.get(index)
        elif call_id:
            found = self._by_id.get(call_id)
        else:
            found = self._calls[-1] if self._calls else None
            if found and name and found.arguments.is_object:
                found = None
        if found is None or _begins_another(found, call_id, name, raw):
            self.settle()
            found = _Call(len(self._calls))
            self._calls.append(found)
            if index is not None:
                self._by_index[index] = found
        if not found.id and call_id:
            found.id = call_id
            self._by_id[call_id] = found
        if name != found.name and (not found.name or found.is_bare):
            found.name += name
        return found

    def _take(self, call: _Call, raw: bytes) -> None:
        if raw == _EMPTY or call.closed:
            return
        if raw == _NO_ARGUMENTS and not call.arguments.pieces and not call.custom:
            call.held = True
            if call.id:
                self._tell(call)
        elif call.custom:
            call.arguments.pieces.append(raw)
            self._tell(call)
        else:
            call.arguments.add(raw)
            self._tell(call)

    def _tell(self, call: _Call) -> None:
        """Tell a call whose name is known."""
        if call.closed or not call.name:
            return
        if not call.opened:
            call.opened = True
            part = AnswerPart(kind="call", id=call.id, name=call.name, custom=call.custom)
            self._teller.open(call.key, part)
        pieces = call.arguments.pieces
        while call.told < len(pieces):
            self._teller.more(call.key, pieces[call.told])
            call.told += 1

    def _close(self, call: _Call) -> None:
        if call.closed:
            return
        call.arguments.end()
        self._tell(call)
        call.closed = True
        call.arguments.forget()
        if call.opened:
            self._teller.close(call.key)


def _begins_another(call: _Call, call_id: str, name: str, raw: bytes) -> bool:
    """Return whether a piece that has the index or the id of a call is of another one."""
    if not name or not call.name:
        return False
    if call_id and call.id and call_id != call.id:
        # Some servers give each piece an id of its own.
        return name != call.name or call.closed or call.held or call.arguments.is_object
    if name != call.name:
        # A name may come in pieces, in front of everything else.
        return not (call.id and call.is_bare)
    if raw[:2] != b'"{' or call.custom:
        return False
    if call.held and not call.arguments.pieces:
        return raw != _NO_ARGUMENTS and not call.id
    if not call.arguments.is_object or call.arguments.are(raw):
        return False
    return not call_id or raw[-2:] == b'}"'


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
