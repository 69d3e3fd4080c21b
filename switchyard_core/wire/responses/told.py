"""An answer of Responses, told to whom it may concern."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import msgspec

from switchyard_core.answering import ModelUsage
from switchyard_core.jsonio.tree import JsonTextError, encode, loads
from switchyard_core.wire.answers import AnswerPart
from switchyard_core.wire.chat.answer import openai_usage
from switchyard_core.wire.history import NULL, decode_items, word
from switchyard_core.wire.replies import ShapeError, refuse_error, status_word, table
from switchyard_core.wire.retelling import AnswerReader, AnswerTeller

__all__ = ["ENDS", "ResponsesReader", "cut_reason", "refuse_failed"]

T = TypeVar("T", bound=msgspec.Struct)
#: A part: the place of its item, and its own in the item or one of the two below.
_Key = tuple[int | str | None, int | str | None]
_CALL = -1
_REASONING = -2

#: Events that end a stream.
ENDS = frozenset(
    f"response.{status}" for status in ("completed", "incomplete", "failed", "cancelled")
)
#: Why an answer may be cut and yet be an answer.
_CUT_REASONS: Mapping[str, str] = {"max_output_tokens": "length", "content_filter": "filter"}
_CALLS = frozenset({"function_call", "custom_tool_call"})
_BLANK_LINE = b'"\\n\\n"'
_EMPTY = b'""'


class _Delta(msgspec.Struct):
    """A piece of text; nothing of it is decoded."""

    delta: msgspec.Raw = NULL
    output_index: int | str | None = 0
    content_index: int | str | None = 0
    summary_index: int | str | None = 0


class _Done(msgspec.Struct):
    output_index: int | str | None = 0
    content_index: int | str | None = 0
    text: msgspec.Raw = NULL
    refusal: msgspec.Raw = NULL
    arguments: msgspec.Raw = NULL
    input: msgspec.Raw = NULL


class _Piece(msgspec.Struct):
    type: Any = None
    text: msgspec.Raw = NULL
    refusal: msgspec.Raw = NULL


class _Item(msgspec.Struct):
    type: Any = None
    id: Any = None
    call_id: Any = None
    name: Any = None
    namespace: Any = None
    arguments: msgspec.Raw = NULL
    input: msgspec.Raw = NULL
    content: msgspec.Raw = NULL
    summary: msgspec.Raw = NULL


class _ItemEvent(msgspec.Struct):
    item: msgspec.Raw = NULL
    output_index: int | str | None = 0


class _Typed(msgspec.Struct):
    type: Any = None


class _Response(msgspec.Struct):
    id: Any = None
    model: Any = None
    created_at: Any = None
    status: Any = None
    incomplete_details: Any = None
    error: Any = None
    type: Any = None
    code: Any = None
    usage: Any = None
    output: msgspec.Raw = NULL


class _ResponseEvent(msgspec.Struct):
    response: msgspec.Raw = NULL


class _Mark(msgspec.Struct):
    """Which item one is, without its texts."""

    type: Any = None
    id: Any = None
    call_id: Any = None


_decode_delta = msgspec.json.Decoder(_Delta).decode


class ResponsesReader(AnswerReader):
    """Reads answers of Responses."""

    def __init__(self, teller: AnswerTeller) -> None:
        super().__init__(teller)
        self._begun = False
        self._over = False
        #: Parts that are open, those that have a text by now, and those that are closed.
        self._live: set[_Key] = set()
        self._said: set[_Key] = set()
        self._closed: set[_Key] = set()
        #: Which piece of reasoning the last text was of.
        self._thinking: dict[_Key, tuple[str, Any]] = {}
        #: Arguments that came with the beginning of a call.
        self._early: dict[_Key, bytes] = {}
        #: Items that were told, by place and by their ids.
        self._known: set[Any] = set()
        self._calls = self._refused = False

    def event(self, name: str, data: bytes) -> None:
        """Read one event of a stream."""
        read = self._events.get(name)
        if read is None:
            read = self._unnamed(data)
        if read is not None and not self._over:
            read(self, data)

    def finish(self) -> None:
        """Note that the stream has ended."""
        if not self._over:
            msg = "the stream ended before its answer did"
            raise ShapeError(msg)

    def whole(self, body: bytes) -> None:
        """Read a whole answer."""
        response = _read(body, _Response)
        refuse_error({"error": response.error, "type": response.type, "code": response.code})
        refuse_failed(word(response.status), response.incomplete_details)
        if bytes(response.output)[:1] != b"[":
            msg = "`output` is not an array"
            raise ShapeError(msg)
        self._end(response)

    def _unnamed(self, data: bytes) -> Callable[[ResponsesReader, bytes], None] | None:
        """Return what reads an event by the type in it; an unknown one is left alone."""
        if data[:1] != b"{":
            return None
        kind = word(_read(data, _Typed).type)
        if kind not in self._events and b'"error"' in data:
            refuse_error(table(_loads(data)))
        return self._events.get(kind)

    # --- pieces of text ------------------------------------------------------------------

    def _text(self, data: bytes) -> None:
        try:
            piece = _decode_delta(data)
        except msgspec.MsgspecError:
            piece = _read(data, _Delta)
        key = (piece.output_index, piece.content_index)
        raw = bytes(piece.delta)
        if key in self._live or self._opens(key, "text", raw):
            self.teller.more(key, raw)

    def _refusal(self, data: bytes) -> None:
        piece = _read(data, _Delta)
        key, raw = (piece.output_index, piece.content_index), bytes(piece.delta)
        if key in self._live or self._opens(key, "refusal", raw):
            self.teller.more(key, raw)

    def _call_piece(self, data: bytes) -> None:
        piece = _read(data, _Delta)
        key, raw = (piece.output_index, _CALL), bytes(piece.delta)
        # A call that was not announced is told when it is complete.
        if key in self._live and raw[:1] == b'"' and raw != _EMPTY:
            self._said.add(key)
            self.teller.more(key, raw)

    def _summary_piece(self, data: bytes) -> None:
        piece = _read(data, _Delta)
        self._think(piece, ("summary", piece.summary_index))

    def _reasoning_piece(self, data: bytes) -> None:
        piece = _read(data, _Delta)
        self._think(piece, ("content", piece.content_index))

    def _think(self, piece: _Delta, place: tuple[str, Any]) -> None:
        key, raw = (piece.output_index, _REASONING), bytes(piece.delta)
        if key not in self._live and not self._opens(key, "reasoning", raw):
            return
        last = self._thinking.setdefault(key, place)
        if last[0] != place[0] or raw[:1] != b'"':  # the same thoughts, in other words
            return
        if last != place:
            self._thinking[key] = place
            self.teller.more(key, _BLANK_LINE)
        self.teller.more(key, raw)

    def _opens(self, key: _Key, kind: Any, raw: bytes) -> bool:
        """Open a part whose first text comes; return whether it is open."""
        if raw[:1] != b'"' or raw == _EMPTY or key in self._closed:
            return False
        self._begin()
        self._live.add(key)
        self._said.add(key)
        self._known.add(key[0])
        self._refused = self._refused or kind == "refusal"
        self.teller.open(key, AnswerPart(kind=kind))
        return True

    def _close(self, key: _Key) -> None:
        if key not in self._live:
            return
        early = self._early.pop(key, _EMPTY)
        if key not in self._said and early != _EMPTY:
            self.teller.more(key, early)
        self._live.discard(key)
        self._closed.add(key)
        self.teller.close(key)

    # --- whole texts ---------------------------------------------------------------------

    def _text_done(self, data: bytes) -> None:
        done = _read(data, _Done)
        self._complete((done.output_index, done.content_index), "text", bytes(done.text))

    def _refusal_done(self, data: bytes) -> None:
        done = _read(data, _Done)
        self._complete((done.output_index, done.content_index), "refusal", bytes(done.refusal))

    def _call_done(self, data: bytes) -> None:
        done = _read(data, _Done)
        raw = done.arguments if bytes(done.arguments) != b"null" else done.input
        key = (done.output_index, _CALL)
        if key in self._live:
            self._arguments(key, _as_text(bytes(raw)))
            self._close(key)

    def _complete(self, key: _Key, kind: str, raw: bytes) -> None:
        """End a part; its text is told if no piece of it was."""
        if key not in self._live and self._opens(key, kind, raw):
            self.teller.more(key, raw)
        self._close(key)

    def _arguments(self, key: _Key, raw: bytes) -> None:
        if key not in self._said and raw != _EMPTY:
            self._said.add(key)
            self.teller.more(key, raw)

    # --- items ---------------------------------------------------------------------------

    def _item_added(self, data: bytes) -> None:
        event = _read(data, _ItemEvent)
        item = _item(event.item)
        if item is not None and word(item.type) in _CALLS:
            self._open_call((event.output_index, _CALL), item)

    def _item_done(self, data: bytes) -> None:
        event = _read(data, _ItemEvent)
        item = _item(event.item)
        if item is not None:
            self._tell(event.output_index, item)

    def _open_call(self, key: _Key, item: _Item) -> None:
        kind, name = word(item.type), word(item.name)
        if not name or key in self._live or key in self._closed:
            return
        self._begin()
        self._live.add(key)
        self._known |= {key[0], word(item.call_id) or None, word(item.id) or None}
        self._calls = True
        self._early[key] = _given(item)
        part = AnswerPart(
            kind="call",
            id=word(item.call_id) or word(item.id),
            name=name,
            namespace=word(item.namespace),
            custom=kind == "custom_tool_call",
        )
        self.teller.open(key, part)

    def _tell(self, index: int | str | None, item: _Item) -> None:
        """Tell of a complete item what was not told yet."""
        kind = word(item.type)
        self._known |= {index, word(item.call_id) or None, word(item.id) or None}
        if kind in _CALLS:
            key = (index, _CALL)
            self._open_call(key, item)
            if key in self._live:
                self._arguments(key, _given(item))
                self._close(key)
        elif kind == "message":
            for number, piece in enumerate(_pieces(item.content)):
                refused = word(piece.type) == "refusal"
                raw = bytes(piece.refusal if refused else piece.text)
                self._complete((index, number), "refusal" if refused else "text", raw)
        elif kind == "reasoning":
            self._complete((index, _REASONING), "reasoning", _thoughts(item))

    # --- the response --------------------------------------------------------------------

    def _head(self, data: bytes) -> None:
        response = _read(bytes(_read(data, _ResponseEvent).response), _Response)
        refuse_error({"error": response.error})
        if not self._begun:
            self._begin(response)

    def _begin(self, response: _Response | None = None) -> None:
        if self._begun:
            return
        self._begun = True
        made = response.created_at if response is not None else 0
        self.teller.head(
            answer_id=word(response.id) if response is not None else "",
            model=word(response.model) if response is not None else "",
            created_s=int(made) if isinstance(made, int | float) else 0,
            usage=ModelUsage(),
        )

    def _last(self, data: bytes) -> None:
        raw = bytes(_read(data, _ResponseEvent).response)
        response = _read(raw, _Response) if raw[:1] == b"{" else _Response()
        refuse_error({"error": response.error})
        kind = word(_read(data, _Typed).type).removeprefix("response.")
        for status in (kind, word(response.status)):
            refuse_failed(status, response.incomplete_details)
        self._end(response)

    def _end(self, response: _Response) -> None:
        self._begin(response)
        raw = bytes(response.output)
        marks = decode_items(raw, _Mark) if raw[:1] == b"[" else []
        missing = [at for at, mark in enumerate(marks) if mark and not self._knows(at, mark)]
        items = decode_items(raw, _Item) if missing else []
        for at in missing:
            item = items[at]
            if item is not None:
                # Places of a stream may be others than those of the whole.
                self._tell(f"whole {at}", item)
        for key in sorted(self._live, key=str):
            self._close(key)
        self._over = True
        self.teller.end(self._stop(response), openai_usage(table(response.usage)))

    def _knows(self, at: int, mark: _Mark) -> bool:
        names = {word(mark.id), word(mark.call_id)} - {""}
        return bool(names & self._known) or (not names and at in self._known)

    def _stop(self, response: _Response) -> str:
        cut = cut_reason(response.incomplete_details)
        if response.status == "incomplete" and cut:
            return cut
        return "calls" if self._calls else "refusal" if self._refused else "stop"

    def _ping(self, data: bytes) -> None:
        del data
        self.teller.ping()

    def _error(self, data: bytes) -> None:
        refuse_error({**table(_loads(data)), "type": "error"})

    #: What reads an event, by its type; any other is left alone.
    _events: ClassVar[Mapping[str, Callable[[ResponsesReader, bytes], None]]] = {
        "response.output_text.delta": _text,
        "response.output_text.done": _text_done,
        "response.refusal.delta": _refusal,
        "response.refusal.done": _refusal_done,
        "response.function_call_arguments.delta": _call_piece,
        "response.custom_tool_call_input.delta": _call_piece,
        "response.function_call_arguments.done": _call_done,
        "response.custom_tool_call_input.done": _call_done,
        "response.reasoning_summary_text.delta": _summary_piece,
        "response.reasoning_text.delta": _reasoning_piece,
        "response.output_item.added": _item_added,
        "response.output_item.done": _item_done,
        "response.created": _head,
        "response.in_progress": _head,
        "response.queued": _head,
        **dict.fromkeys(ENDS, _last),
        "ping": _ping,
        "keepalive": _ping,
        "error": _error,
    }


def cut_reason(details: Any) -> str:
    """Return the neutral word for why an answer was cut, ``""`` when it is not an answer."""
    return _CUT_REASONS.get(word(table(details).get("reason")), "")


def refuse_failed(status: str, details: Any) -> None:
    """Refuse an answer that failed, was cancelled, or is incomplete for an unknown reason."""
    unfinished = status == "incomplete" and not cut_reason(details)
    if unfinished or status in ("failed", "cancelled"):
        raise ShapeError(status_word(status))


def _read(data: bytes, struct: type[T]) -> T:
    """Decode an event, or a part of one."""
    try:
        return msgspec.json.decode(data, type=struct)
    except (msgspec.MsgspecError, RecursionError):
        found = decode_items(b"[" + data + b"]", struct)
    if len(found) != 1 or found[0] is None:
        msg = "an event is not a JSON object"
        raise ShapeError(msg)
    return found[0]


def _loads(data: bytes) -> Any:
    try:
        return loads(data)
    except JsonTextError as error:
        msg = f"an event is not JSON: {error}"
        raise ShapeError(msg) from None


def _item(raw: msgspec.Raw) -> _Item | None:
    return _read(bytes(raw), _Item) if bytes(raw)[:1] == b"{" else None


def _pieces(raw: msgspec.Raw) -> Sequence[_Piece]:
    found = decode_items(bytes(raw), _Piece) if bytes(raw)[:1] == b"[" else []
    return [piece or _Piece() for piece in found]


def _thoughts(item: _Item) -> bytes:
    """Return JSON of the text to read of a reasoning item."""
    for raw in (item.summary, item.content):
        texts = [bytes(piece.text) for piece in _pieces(raw)]
        told = [text for text in texts if text[:1] == b'"' and text != _EMPTY]
        if told:
            return b'"' + rb"\n\n".join([text[1:-1] for text in told]) + b'"'
    return _EMPTY


def _given(item: _Item) -> bytes:
    return _as_text(bytes(item.input if item.type == "custom_tool_call" else item.arguments))


def _as_text(raw: bytes) -> bytes:
    """Return a JSON string; some providers forget to write arguments as text."""
    if raw[:1] == b'"':
        return raw
    return _EMPTY if raw == b"null" else encode(raw.decode("utf-8", "replace"))
