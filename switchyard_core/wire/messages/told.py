"""An answer of Messages, told to whom it may concern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from switchyard_core.answering import ModelUsage
from switchyard_core.jsonio.tree import JsonTextError, ObjectText, encode, loads
from switchyard_core.wire.answers import AnswerPart
from switchyard_core.wire.replies import ShapeError, count, refuse_error, table
from switchyard_core.wire.retelling import AnswerReader, AnswerTeller

__all__ = ["MessagesReader", "usage_of"]

#: The neutral word of each reason to stop; others are left to what was told.
_STOPS: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "refusal": "refusal",
}
_NONE = msgspec.Raw(b"")
_EMPTY = b'""'
_QUOTE = ord('"')
#: What some providers send behind the last event.
_DONE = b"[DONE]"


class _Delta(msgspec.Struct, gc=False):
    text: msgspec.Raw = _NONE
    partial_json: msgspec.Raw = _NONE
    thinking: msgspec.Raw = _NONE


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    index: int = 0
    delta: _Delta | None = None


_decode = msgspec.json.Decoder(_Event).decode


@dataclass(slots=True)
class _Block:
    """A block that has begun; its part is told with its first text."""

    part: AnswerPart | None  # `None` for what nobody else can read
    key: str  # of the delta that adds to it
    given: bytes = _EMPTY  # its text in the event that began it
    opened: bool = False


class MessagesReader(AnswerReader):
    """Reads answers of Messages.

    A part without a text is not told, but for a call, whose arguments are then ``{}``. An answer
    whose stream has said why it stops is complete.
    """

    def __init__(self, teller: AnswerTeller) -> None:
        super().__init__(teller)
        self._begun = self._ended = self._spoke = False
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, Any] = {}
        self._stop: str | None = None
        self._why = ""  # a refusal's explanation

    def event(self, name: str, data: bytes) -> None:
        """Read one event of a stream."""
        try:
            event = _decode(data)
        except (msgspec.MsgspecError, RecursionError):
            self._odd(name, data)
            return
        delta = event.delta
        kind = event.type or name
        if kind != "content_block_delta":
            if not self._ended:
                self._other(kind, data)
        elif delta is not None and not self._ended:
            # Nearly every event comes here: what is usual is done at once.
            block = self._blocks.get(event.index)
            if block is not None and block.opened:
                raw = bytes(getattr(delta, block.key))
                if len(raw) > 2 and raw[0] == _QUOTE:
                    block.given = _EMPTY
                    self.teller.more(event.index, raw)
            else:
                self._more(event.index, delta)

    def finish(self) -> None:
        """Note that the stream has ended."""
        if self._ended:
            return
        if self._stop is None:
            msg = "the stream ends before its answer does"
            raise ShapeError(msg)
        self._end()

    def whole(self, body: bytes) -> None:
        """Read a whole answer."""
        tree, fields = _read(body)
        refuse_error(tree)
        self._begin(tree)
        blocks = fields.array("content")
        if blocks is None:
            msg = "`content` is not an array"
            raise ShapeError(msg)
        for index, block in blocks.objects():
            self._start(index, block)
            self._close(index)
        self._stopped(tree)
        self._end()

    def _odd(self, name: str, data: bytes) -> None:
        """Read an event that has no usual shape: a word, half an emoji, a value of a wrong type."""
        if self._ended or not data.strip() or data.strip() == _DONE:
            return
        tree, fields = _read(data)
        kind, delta = fields.text("type") or name, fields.object("delta")
        if kind != "content_block_delta":
            self._other(kind, data)
        elif delta is not None:
            keys = [key for key in ("text", "partial_json", "thinking") if delta.text(key)]
            told = {key: msgspec.Raw(delta.raw(key) or b"") for key in keys}
            self._more(count(tree, "index"), _Delta(**told))

    def _other(self, kind: str, data: bytes) -> None:
        if kind == "ping":
            self.teller.ping()
            return
        tree, fields = _read(data)
        if kind == "error":
            refuse_error({"type": "error", **tree})
        refuse_error(tree)
        if kind == "message_start":
            self._begin(table(tree.get("message")))
        elif kind == "content_block_start":
            block = fields.object("content_block")
            if block is not None:
                self._start(count(tree, "index"), block)
        elif kind == "content_block_stop":
            self._close(count(tree, "index"))
        elif kind == "message_delta":
            self._count(tree.get("usage"))
            self._stopped(table(tree.get("delta")))
        elif kind == "message_stop":
            self._end()

    # --- its parts -------------------------------------------------------------------------------

    def _begin(self, message: Mapping[str, Any]) -> None:
        self._count(message.get("usage"))
        if not self._begun:
            self._begun = True
            answer, model = message.get("id"), message.get("model")
            self.teller.head(
                answer_id=answer if isinstance(answer, str) else "",
                model=model if isinstance(model, str) else "",
                created_s=0,
                usage=usage_of(self._usage),
            )

    def _start(self, index: int, block: ObjectText) -> None:
        if not self._begun:
            self._begin({})
        if index in self._blocks:
            self._close(index)
        kind = block.text("type") or ""
        if kind == "text":
            found = _Block(AnswerPart(kind="text"), "text", block.raw("text") or _EMPTY)
        elif kind == "thinking":
            thought = block.raw("thinking") or _EMPTY
            found = _Block(AnswerPart(kind="reasoning"), "thinking", thought)
        elif kind == "tool_use":
            name, made = block.text("name") or "", block.text("id") or ""
            part = AnswerPart(kind="call", id=made, name=name)
            found = _Block(part, "partial_json", _arguments(block.raw("input")), opened=True)
            self.teller.open(index, part)
        else:
            found = _Block(None, "")
        self._blocks[index] = found
        if found.key in ("text", "thinking") and found.given[:1] == b'"':
            self._tell(index, found, found.given)

    def _more(self, index: int, delta: _Delta) -> None:
        block = self._blocks.get(index)
        if block is None:
            block = self._unannounced(index, delta)
        raw = getattr(delta, block.key) if block.part is not None else _NONE
        self._tell(index, block, bytes(raw))

    def _unannounced(self, index: int, delta: _Delta) -> _Block:
        """Begin a block whose beginning the provider did not send."""
        kind: Any = "text" if bytes(delta.text) else "reasoning" if bytes(delta.thinking) else ""
        key = "text" if kind == "text" else "thinking"
        block = self._blocks[index] = _Block(AnswerPart(kind=kind) if kind else None, key)
        if not self._begun:
            self._begin({})
        return block

    def _tell(self, index: int, block: _Block, raw: bytes) -> None:
        if block.part is None or raw[:1] != b'"' or raw == _EMPTY:
            return
        if not block.opened:
            block.opened = self._spoke = True
            self.teller.open(index, block.part)
        block.given = _EMPTY
        self.teller.more(index, raw)

    def _close(self, index: int) -> None:
        block = self._blocks.pop(index, None)
        if block is None or block.part is None:
            return
        if block.key == "partial_json" and block.given != _EMPTY:
            self.teller.more(index, block.given)
        if block.opened:
            self.teller.close(index)

    # --- its end ---------------------------------------------------------------------------------

    def _count(self, usage: Any) -> None:
        """Take the latest counts; those that a later event leaves out stay."""
        told = table(usage)
        self._usage |= {key: value for key, value in told.items() if value is not None}

    def _stopped(self, told: Mapping[str, Any]) -> None:
        stop, details = told.get("stop_reason"), table(told.get("stop_details"))
        if isinstance(stop, str):
            self._stop = stop
        why = details.get("explanation")
        self._why = why if isinstance(why, str) else self._why

    def _end(self) -> None:
        if not self._begun:
            self._begin({})
        for index in list(self._blocks):
            self._close(index)
        if self._stop == "refusal" and self._why and not self._spoke:
            part = AnswerPart(kind="refusal")
            self.teller.open("refusal", part)
            self.teller.more("refusal", encode(self._why))
            self.teller.close("refusal")
        self._ended = True
        self.teller.end(_STOPS.get(self._stop or "", ""), usage_of(self._usage))


def usage_of(told: Mapping[str, Any]) -> ModelUsage:
    """Return what a ``usage`` says, tokens of a cache counted as input."""
    cached = count(told, "cache_read_input_tokens")
    written = count(told, "cache_creation_input_tokens")
    return ModelUsage(
        input_tokens=count(told, "input_tokens") + cached + written,
        output_tokens=count(told, "output_tokens"),
        cached_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=count(told.get("output_tokens_details"), "thinking_tokens"),
    )


def _arguments(raw: bytes | None) -> bytes:
    """Return the arguments that a call begins with, as a JSON string."""
    if raw is None or raw in (b"null", _EMPTY):
        return b'"{}"'
    # Some providers forget that it is an object.
    return raw if raw[:1] == b'"' else encode(raw.decode("utf-8", "replace"))


def _read(data: bytes) -> tuple[Mapping[str, Any], ObjectText]:
    try:
        return loads(data), ObjectText(data)
    except JsonTextError as error:
        msg = f"not an answer of Messages: {error}"
        raise ShapeError(msg) from None
