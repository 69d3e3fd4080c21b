"""An answer of Responses, told to whom it may concern."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from switchyard_core.wire.answers import AnswerPart
from switchyard_core.wire.chat.answer import openai_usage
from switchyard_core.wire.history import word
from switchyard_core.wire.replies import ShapeError, refuse_error, table
from switchyard_core.wire.responses.sent import (
    CALLS,
    EMPTY,
    Delta,
    Done,
    Item,
    ItemEvent,
    Mark,
    Response,
    ResponseEvent,
    Typed,
    as_text,
    cut_reason,
    delta_in,
    given,
    item_in,
    listed,
    load,
    names_of,
    pieces_of,
    placed,
    read_as,
    refuse_failed,
    thoughts,
)
from switchyard_core.wire.retelling import AnswerReader, AnswerTeller

__all__ = ["ResponsesReader"]

#: A part: the place of its item, and its own in the item or one of the two below.
_Place = int | str | None
_Key = tuple[_Place, int | str | None]
_CALL = -1
_REASONING = -2

_LAST_TIME = 2**40
_BLANK_LINE = b'"\\n\\n"'
#: What some servers send behind the last event.
_DONE = (b"", b"[DONE]")


class ResponsesReader(AnswerReader):
    """Reads answers of Responses."""

    def __init__(self, teller: AnswerTeller) -> None:
        super().__init__(teller)
        self._begun = False
        self._over = False
        #: Parts that are open, with the id of a call; those that have a text, or are closed.
        self._live: dict[_Key, str] = {}
        self._said: set[_Key] = set()
        self._closed: set[_Key] = set()
        #: Which piece of reasoning the last text was of.
        self._thinking: dict[_Key, tuple[str, Any]] = {}
        #: Arguments that came with the beginning of a call.
        self._early: dict[_Key, bytes] = {}
        #: Items that were told: place with sort, and ids; some proxies change ids on the way.
        self._known: set[Any] = set()
        #: Some servers give every item the same place: the item that is complete at a place, and
        #: the place in our count of the one that followed it there.
        self._complete_at: dict[_Place, str] = {}
        self._moved: dict[_Place, _Place] = {}
        self._calls = False

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
        response = read_as(body, Response, "the answer")
        refuse_error({"error": response.error, "type": response.type, "code": response.code})
        refuse_failed(word(response.status), response.incomplete_details)
        if bytes(memoryview(response.output)[:1]) != b"[":
            msg = "`output` is not an array"
            raise ShapeError(msg)
        self._end(response)

    def _unnamed(self, data: bytes) -> Callable[[ResponsesReader, bytes], None] | None:
        """Return what reads an event by the type in it; an unknown one is left alone."""
        if data.strip() in _DONE:
            return None
        kind = word(read_as(data, Typed).type)
        if kind not in self._events and b'"error"' in data:
            refuse_error(table(load(data)))
        return self._events.get(kind)

    # --- pieces of text ------------------------------------------------------------------

    def _text(self, data: bytes) -> None:
        piece = delta_in(data)
        key = (self._at(piece.output_index), piece.content_index)
        raw = bytes(piece.delta)
        if (key in self._live and raw[:1] == b'"') or self._opens(key, "text", raw):
            self.teller.more(key, raw)

    def _refusal(self, data: bytes) -> None:
        piece = delta_in(data)
        key, raw = (self._at(piece.output_index), piece.content_index), bytes(piece.delta)
        if (key in self._live and raw[:1] == b'"') or self._opens(key, "refusal", raw):
            self.teller.more(key, raw)

    def _call_piece(self, data: bytes) -> None:
        piece = delta_in(data)
        key, raw = (self._at(piece.output_index), _CALL), bytes(piece.delta)
        # A call that was not announced is told when it is complete.
        if key in self._live and raw[:1] == b'"' and raw != EMPTY:
            self._said.add(key)
            self._known |= {key[0], (key[0], "call")}
            self.teller.more(key, raw)

    def _summary_piece(self, data: bytes) -> None:
        piece = delta_in(data)
        self._think(piece, ("summary", piece.summary_index))

    def _reasoning_piece(self, data: bytes) -> None:
        piece = delta_in(data)
        self._think(piece, ("content", piece.content_index))

    def _think(self, piece: Delta, place: tuple[str, Any]) -> None:
        key, raw = (self._at(piece.output_index), _REASONING), bytes(piece.delta)
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
        if raw[:1] != b'"' or raw == EMPTY or key in self._live or key in self._closed:
            return False
        self._begin()
        self._live[key] = ""
        self._said.add(key)
        self._known |= {key[0], (key[0], "reasoning" if kind == "reasoning" else "message")}
        self.teller.open(key, AnswerPart(kind=kind))
        return True

    def _close(self, key: _Key) -> None:
        if key not in self._live:
            return
        early = self._early.pop(key, EMPTY)
        if key not in self._said and early != EMPTY:
            self.teller.more(key, early)
        del self._live[key]
        self._closed.add(key)
        self.teller.close(key)

    # --- whole texts ---------------------------------------------------------------------

    def _text_done(self, data: bytes) -> None:
        done = placed(data, Done)
        self._complete((self._at(done.output_index), done.content_index), "text", done.text)

    def _refusal_done(self, data: bytes) -> None:
        done = placed(data, Done)
        self._complete((self._at(done.output_index), done.content_index), "refusal", done.refusal)

    def _call_done(self, data: bytes) -> None:
        done = placed(data, Done)
        raw = done.arguments if bytes(done.arguments) != b"null" else done.input
        key = (self._at(done.output_index), _CALL)
        if key in self._live:
            self._known.add((key[0], "call"))
            self._arguments(key, as_text(bytes(raw)))
            self._close(key)

    def _complete(self, key: _Key, kind: str, raw: bytes | msgspec.Raw) -> None:
        """End a part; its text is told if no piece of it was, and else not even copied."""
        if key not in self._live and key not in self._closed:
            text = bytes(raw)
            if self._opens(key, kind, text):
                self.teller.more(key, text)
        self._close(key)

    def _arguments(self, key: _Key, raw: bytes) -> None:
        if key not in self._said and raw != EMPTY:
            self._said.add(key)
            self.teller.more(key, raw)

    # --- items ---------------------------------------------------------------------------

    def _item_added(self, data: bytes) -> None:
        event = placed(data, ItemEvent)
        item = item_in(event.item)
        if item is not None and word(item.type) in CALLS:
            self._open_call((self._place(event.output_index, item), _CALL), item)
        elif item is not None:
            self._place(event.output_index, item)

    def _item_done(self, data: bytes) -> None:
        event = placed(data, ItemEvent)
        item = item_in(event.item)
        if item is not None:
            place = self._place(event.output_index, item)
            self._tell(place, item)
            self._complete_at[place] = word(item.call_id) or word(item.id)

    def _at(self, index: _Place) -> _Place:
        return self._moved.get(index, index) if self._moved else index

    def _place(self, index: _Place, item: Item) -> _Place:
        """Return the place of an item; another one than the complete one there has its own."""
        place, made = self._at(index), word(item.call_id) or word(item.id)
        if made and self._complete_at.get(place, made) != made:
            place = self._moved[index] = f"{index} again {len(self._complete_at)}"
        return place

    def _open_call(self, key: _Key, item: Item) -> None:
        kind, name = word(item.type), word(item.name)
        if not name or key in self._live or key in self._closed:
            return
        self._begin()
        self._live[key] = word(item.call_id) or word(item.id)
        self._calls = True
        self._early[key] = given(item)
        part = AnswerPart(
            kind="call",
            id=word(item.call_id) or word(item.id),
            name=name,
            namespace=word(item.namespace),
            custom=kind == "custom_tool_call",
        )
        self.teller.open(key, part)

    def _tell(self, index: int | str | None, item: Item) -> None:
        """Tell of a complete item what was not told yet."""
        kind = word(item.type)
        self._known |= names_of(index, item)
        if kind in CALLS:
            key = (index, _CALL)
            self._open_call(key, item)
            if key in self._live:
                self._arguments(key, given(item))
                self._close(key)
        elif kind == "message":
            for number, piece in enumerate(pieces_of(item.content)):
                refused = word(piece.type) == "refusal"
                raw = piece.refusal if refused else piece.text
                self._complete((index, number), "refusal" if refused else "text", raw)
        elif kind == "reasoning":
            key = (index, _REASONING)
            self._complete(key, kind, b"" if key in self._live else thoughts(item))

    # --- the response --------------------------------------------------------------------

    def _head(self, data: bytes) -> None:
        response = read_as(read_as(data, ResponseEvent).response, Response)
        refuse_error({"error": response.error})
        if not self._begun:
            self._begin(response)

    def _begin(self, response: Response | None = None) -> None:
        if self._begun:
            return
        self._begun = True
        known = response or Response()
        made = known.created_at
        self.teller.head(
            answer_id=word(known.id),
            model=word(known.model),
            created_s=int(made) if isinstance(made, int | float) and 0 < made < _LAST_TIME else 0,
            usage=openai_usage(table(known.usage)),
        )

    def _last(self, data: bytes) -> None:
        response = read_as(read_as(data, ResponseEvent).response, Response)
        refuse_error({"error": response.error})
        refuse_failed(word(response.status), response.incomplete_details)
        self._end(response)

    def _incomplete(self, data: bytes) -> None:
        response = read_as(read_as(data, ResponseEvent).response, Response)
        refuse_error({"error": response.error})
        refuse_failed("incomplete", response.incomplete_details)
        response.status = "incomplete"
        self._end(response)

    def _failed(self, data: bytes) -> None:
        refuse_error(table(table(load(data)).get("response")))
        refuse_failed("failed", None)

    def _cancelled(self, data: bytes) -> None:
        del data
        refuse_failed("cancelled", None)

    def _end(self, response: Response) -> None:
        self._begin(response)
        marks = listed(response.output, Mark)
        missing = [
            at for at, mark in enumerate(marks) if mark and not names_of(at, mark) & self._known
        ]
        items = listed(response.output, Item) if missing else []
        for at in missing:
            item = items[at]
            if item is not None:
                self._tell(self._place_of(item, at), item)
        for key in tuple(self._live):
            self._close(key)
        self._over = True
        self.teller.end(self._stop(response), openai_usage(table(response.usage)))

    def _place_of(self, item: Item, at: int) -> int | str | None:
        """Return where a call was announced; other places may differ from those of a stream."""
        made = word(item.call_id) or word(item.id)
        announced = (key[0] for key, call_id in self._live.items() if call_id and call_id == made)
        return next(announced, f"whole {at}")

    def _stop(self, response: Response) -> str:
        cut = cut_reason(response.incomplete_details)
        if response.status == "incomplete" and cut:
            return cut
        return "calls" if self._calls else "stop"

    def _ping(self, data: bytes) -> None:
        del data
        self.teller.ping()

    def _error(self, data: bytes) -> None:
        refuse_error({**table(load(data)), "type": "error"})

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
        "response.reasoning.delta": _reasoning_piece,
        "response.output_item.added": _item_added,
        "response.output_item.done": _item_done,
        "response.created": _head,
        "response.in_progress": _head,
        "response.queued": _head,
        "response.completed": _last,
        "response.incomplete": _incomplete,
        "response.failed": _failed,
        "response.cancelled": _cancelled,
        "ping": _ping,
        "keepalive": _ping,
        "error": _error,
    }
