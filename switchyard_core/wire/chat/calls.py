"""The tool calls of a Chat Completions answer, as servers send them in pieces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from switchyard_core.jsonio.tree import JsonTextError, encode, loads
from switchyard_core.wire.answers import AnswerPart
from switchyard_core.wire.history import NULL, decode_items, decode_one, word
from switchyard_core.wire.retelling import AnswerTeller

__all__ = ["ToldCalls"]

_EMPTY = b'""'
_NO_ARGUMENTS = b'"{}"'


class _Named(msgspec.Struct):
    name: Any = None
    arguments: msgspec.Raw = NULL
    input: msgspec.Raw = NULL


class _Piece(msgspec.Struct):
    index: Any = None
    id: Any = None
    function: _Named | None = None
    custom: _Named | None = None


class _OddPiece(msgspec.Struct):
    """A piece in which something has a wrong type, or which has half an emoji."""

    index: Any = None
    id: Any = None
    function: msgspec.Raw = NULL
    custom: msgspec.Raw = NULL


_PIECES = msgspec.json.Decoder(list[_Piece])


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
        self._by_index: dict[Any, _Call] = {}

    def add(self, raw: bytes) -> None:
        """Take pieces of calls: the JSON of ``tool_calls``."""
        try:
            pieces = _PIECES.decode(raw)
        except (msgspec.MsgspecError, RecursionError):
            pieces = [_as_usual(odd) for odd in decode_items(raw, _OddPiece) if odd is not None]
        for piece in pieces:
            self._add(piece)

    def add_old(self, raw: bytes) -> None:
        """Take a piece of the only call of the older form: the JSON of ``function_call``."""
        self.add(b'[{"index":0,"function":' + raw + b"}]")

    def end(self) -> None:
        """Tell that no call goes on."""
        for call in self._calls:
            self._close(call)

    def _add(self, piece: _Piece) -> None:
        named = piece.function or piece.custom or _Named()
        call = self._call(piece.index, word(piece.id), word(named.name))
        if piece.custom is not None and piece.function is None:
            call.custom = True
            self._take(call, _string(bytes(named.input)))
        else:
            self._take(call, _string(bytes(named.arguments)))

    def _call(self, index: Any, call_id: str, name: str) -> _Call:
        """Return the call that a piece belongs to, maybe a new one."""
        if isinstance(index, int):
            found = self._by_index.get(index)
        elif call_id:
            found = next((call for call in self._calls if call.id == call_id), None)
        else:
            found = self._calls[-1] if self._calls and not name else None
        if found is None or _begins_another(found, call_id, name):
            found = self._new()
            if isinstance(index, int):
                self._by_index[index] = found
        found.id, found.name = found.id or call_id, found.name or name
        return found

    def _new(self) -> _Call:
        for earlier in self._calls:
            # Pieces of several calls may take turns.
            if not earlier.closed and _is_object(earlier.text):
                self._close(earlier)
        self._calls.append(made := _Call(len(self._calls)))
        return made

    def _take(self, call: _Call, raw: bytes) -> None:
        if raw == _EMPTY or call.closed:
            self._tell(call, wait=True)
        elif raw == _NO_ARGUMENTS and not call.pieces and not call.custom:
            call.held = True
            self._tell(call, wait=True)
        elif not self._repeats(call, raw):
            call.pieces.append(raw)
            self._tell(call)

    def _repeats(self, call: _Call, raw: bytes) -> bool:
        """Return whether a piece says the whole arguments once more."""
        if call.custom or not call.pieces or not (raw[1:2] == b"{" and raw[-2:-1] == b"}"):
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
        for raw in call.pieces[call.told :]:
            self._teller.more(call.key, raw)
        call.told = len(call.pieces)

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


def _as_usual(odd: _OddPiece) -> _Piece:
    function, custom = _named(odd.function), _named(odd.custom)
    return _Piece(index=odd.index, id=odd.id, function=function, custom=custom)


def _named(raw: msgspec.Raw) -> _Named | None:
    return decode_one(raw, _Named) if bytes(raw)[:1] == b"{" else None


def _string(raw: bytes) -> bytes:
    """Return arguments as a JSON string; some servers send the object itself, or null."""
    if raw[:1] == b'"':
        return raw
    return _EMPTY if raw == b"null" else encode(raw.decode("utf-8", "replace"))
