"""An answer of Chat Completions, told to whom it may concern."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec
import tomli

from switchyard_core.answering import ModelUsage
from switchyard_core.jsonio.tree import JsonTextError, ObjectText, encode, loads
from switchyard_core.wire.answers import AnswerPart
from switchyard_core.wire.chat.calls import Named, Piece, ToldCalls, odd_named, odd_pieces
from switchyard_core.wire.history import NULL, word
from switchyard_core.wire.replies import ReportedError, ShapeError, count, refuse_error, table
from switchyard_core.wire.retelling import AnswerReader, AnswerTeller

__all__ = ["ChatReader", "openai_usage"]

_Said = Literal["text", "reasoning", "refusal"]

_EMPTY = b'""'
_NOTHING = (b"null", _EMPTY)
_DONE = b"[DONE]"
#: What some servers write for the null of an answer that goes on.
_NO_REASON = "null"
#: Where other servers say how much of the input was cached.
_CACHED = frozenset({"prompt_cache_hit_tokens", "cached_tokens"})
_LAST_TIME = 2**40


class _Delta(msgspec.Struct):
    """What a chunk adds, or a whole message has."""

    content: msgspec.Raw = NULL
    reasoning_content: msgspec.Raw = NULL
    reasoning: msgspec.Raw = NULL
    reasoning_details: msgspec.Raw = NULL
    refusal: msgspec.Raw = NULL
    tool_calls: list[Piece] | None = None
    function_call: Named | None = None


class _Choice(msgspec.Struct):
    index: int | None = 0
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None
    error: msgspec.Raw = NULL
    usage: msgspec.Raw = NULL  # some servers have it here


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: msgspec.Raw = NULL
    error: msgspec.Raw = NULL
    object: str | None = None


_CHUNKS = msgspec.json.Decoder(_Chunk)


class ChatReader(AnswerReader):
    """Reads answers of Chat Completions; of several choices the first one."""

    def __init__(self, teller: AnswerTeller) -> None:
        super().__init__(teller)
        self._begun = self._over = False
        self._calls = ToldCalls(teller)
        #: The text that is being said, and its key: texts of one kind are one part until another
        #: kind begins.
        self._saying: _Said | None = None
        self._key = ""
        self._parts = 0
        self._stop: str | None = None
        self._usage = ModelUsage()

    def event(self, name: str, data: bytes) -> None:
        """Read one event of a stream."""
        if self._over:
            return
        try:
            chunk = _CHUNKS.decode(data)
        except (msgspec.MsgspecError, RecursionError):
            self._odd(data)
            return
        if name == "ping":
            self.teller.ping()
        self._read(name, data, chunk)

    def finish(self) -> None:
        """Note that the stream has ended."""
        if self._over:
            return
        if self._stop is None:
            msg = "the stream ends before its answer does"
            raise ShapeError(msg)
        self._end()

    def whole(self, body: bytes) -> None:
        """Read a whole answer."""
        chunk = _chunk(body)
        self._first("", body, chunk)
        if chunk.choices is None:
            msg = "`choices` is not an array"
            raise ShapeError(msg)
        choice = next((choice for choice in chunk.choices if not choice.index), None)
        if choice is None or choice.message is None:
            msg = "`choices` is empty" if choice is None else "`choices[0].message` is missing"
            raise ShapeError(msg)
        for place, piece in enumerate(choice.message.tool_calls or ()):
            piece.index = place
        self._choice(choice, choice.message)
        self._count(bytes(chunk.usage))
        self._end()

    # --- chunks ----------------------------------------------------------------------------------

    def _odd(self, data: bytes) -> None:
        """Read an event that has no usual shape: a word, half an emoji, a value of a wrong type."""
        if data.strip() == _DONE:
            self._end()
        elif data.strip():
            self._read("", data, _chunk(data))

    def _read(self, name: str, data: bytes, chunk: _Chunk) -> None:
        """Read a chunk; what it says comes before the error in it."""
        if not self._begun or name or chunk.error != NULL or chunk.object == "error":
            self._first(name, data, chunk)
        self._chunk(chunk)

    def _first(self, name: str, data: bytes, chunk: _Chunk) -> None:
        """Read what is beside the choices: an error, or the head of the answer."""
        tree = table(_load(data))
        failed = name == "error" or tree.get("object") == "error"
        try:
            refuse_error({**tree, "type": "error"} if failed else tree)
        except ShapeError:
            for choice in chunk.choices or ():
                if choice.delta is not None and not choice.index:
                    self._said(choice.delta)
            raise
        if not self._begun and (tree.get("choices") or tree.get("id")):
            self._begun = True
            created: Any = tree.get("created")
            self.teller.head(
                answer_id=word(tree.get("id")),
                model=word(tree.get("model")),
                created_s=int(created) if _is_time(created) else 0,
                usage=openai_usage(table(tree.get("usage"))),
            )

    def _chunk(self, chunk: _Chunk) -> None:
        for choice in chunk.choices or ():
            if choice.index:
                continue
            delta = choice.delta
            if delta is None and not self._parts and not self._calls:
                # A whole answer in one event; behind its pieces it would say them again.
                delta = choice.message
            self._choice(choice, delta)
        if chunk.usage != NULL:
            self._count(bytes(chunk.usage))

    def _choice(self, choice: _Choice, delta: _Delta | None) -> None:
        if delta is not None:
            self._said(delta)
        if choice.error != NULL:
            refuse_error({"error": _load(bytes(choice.error)) or {}, "type": "error"})
        if choice.finish_reason and choice.finish_reason != _NO_REASON:
            self._stop = _stop(choice.finish_reason)
        if choice.usage != NULL:
            self._count(bytes(choice.usage))

    def _said(self, delta: _Delta) -> None:
        """Tell what a message says, or a piece of it: thoughts come first."""
        # Servers with several keys leave all but one empty.
        thought = bytes(delta.reasoning_content)
        if thought in _NOTHING:
            thought = bytes(delta.reasoning)
        if thought not in _NOTHING:
            self._say("reasoning", thought)
        elif delta.reasoning_details != NULL:
            self._say("reasoning", _joined(bytes(delta.reasoning_details), "text", "summary"))
        if delta.content != NULL:
            raw = bytes(delta.content)
            if raw[:1] == b"[":
                self._parts_of(raw)
            else:
                self._say("text", raw)
        if delta.refusal != NULL:
            self._say("refusal", bytes(delta.refusal))
        if delta.tool_calls or delta.function_call is not None:
            self._hush()
            for piece in delta.tool_calls or (Piece(index=0, function=delta.function_call),):
                self._calls.add(piece)

    def _say(self, kind: _Said, raw: bytes) -> None:
        if raw == _EMPTY or raw[:1] != b'"':
            return
        if self._saying != kind:
            self._hush()
            self._calls.settle()
            self._saying, self._parts = kind, self._parts + 1
            self._key = f"{kind} {self._parts}"
            self.teller.open(self._key, AnswerPart(kind=kind))
        self.teller.more(self._key, raw)

    def _hush(self) -> None:
        if self._saying is not None:
            self._saying = None
            self.teller.close(self._key)

    def _parts_of(self, raw: bytes) -> None:
        """Tell content in parts, as some servers send it."""
        for part in _load(raw):
            kind = table(part).get("type")
            if kind == "thinking":
                self._say("reasoning", _joined(encode(part.get("thinking")), "text"))
            elif kind == "refusal":
                self._say("refusal", encode(word(part.get("refusal"))))
            else:
                self._say("text", encode(word(table(part).get("text"))))

    # --- its end ---------------------------------------------------------------------------------

    def _count(self, raw: bytes) -> None:
        usage = openai_usage(table(_load(raw)))
        if usage != ModelUsage():
            self._usage = usage

    def _end(self) -> None:
        if not self._begun:
            self._begun = True
            self.teller.head(answer_id="", model="", created_s=0, usage=self._usage)
        self._hush()
        self._calls.end()
        self._over = True
        self.teller.end(self._stop or "", self._usage)


def openai_usage(told: Mapping[str, Any]) -> ModelUsage:
    """Return what a ``usage`` of OpenAI says, in the words of either of its formats."""
    details = told.get("prompt_tokens_details") or told.get("input_tokens_details")
    spent = told.get("completion_tokens_details") or told.get("output_tokens_details")
    # Counted apart only where it is told: every answer comes through here.
    elsewhere = count(told, *_CACHED) if told.keys() & _CACHED else 0
    return ModelUsage(
        input_tokens=count(told, "prompt_tokens", "input_tokens"),
        output_tokens=count(told, "completion_tokens", "output_tokens"),
        cached_tokens=count(details, "cached_tokens") or elsewhere,
        cache_write_tokens=count(details, "cache_write_tokens"),
        reasoning_tokens=count(spent, "reasoning_tokens"),
    )


def _stop(reason: str) -> str:
    """Return the neutral word for a reason to stop; ``""`` leaves it to what was told."""
    found = _stops().get(reason.lower(), "")
    if found == "failed":
        msg = "the provider reports that the answer failed"
        raise ReportedError(msg, "")
    return found


@cache
def _stops() -> Mapping[str, str]:
    return tomli.loads((files(__package__) / "stops.toml").read_text("utf-8"))


def _load(data: bytes) -> Any:
    try:
        return loads(data)
    except JsonTextError as error:
        raise ShapeError(error.message) from None


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and 0 < value < _LAST_TIME


def _joined(raw: bytes, *keys: str) -> bytes:
    """Return the texts of some parts as one JSON string, of a string itself."""
    value = _load(raw)
    parts = value if isinstance(value, list) else [{keys[0]: value}]
    texts = [word(table(part).get(key)) for part in parts for key in keys]
    return encode("".join(texts))


# --- what has no usual shape -------------------------------------------------------------------


def _chunk(data: bytes) -> _Chunk:
    """Return a chunk, or a whole answer, whose values may have wrong types."""
    try:
        return _CHUNKS.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        pass
    tree = _load(data)
    if not isinstance(tree, dict):
        msg = "it is not a JSON object"
        raise ShapeError(msg)
    fields = ObjectText(data)
    choices = fields.array("choices")
    made = [_odd_choice(each) for _, each in choices.objects()] if choices is not None else None
    return _Chunk(choices=made, usage=_raw(fields, "usage"), error=_raw(fields, "error"))


def _odd_choice(choice: ObjectText) -> _Choice:
    index = choice.value("index")
    return _Choice(
        index=index if isinstance(index, int) else 0,
        delta=_odd_delta(choice.object("delta")),
        message=_odd_delta(choice.object("message")),
        finish_reason=choice.text("finish_reason"),
        error=_raw(choice, "error"),
        usage=_raw(choice, "usage"),
    )


def _odd_delta(delta: ObjectText | None) -> _Delta | None:
    if delta is None:
        return None
    texts = [key for key in _Delta.__struct_fields__ if key not in ("tool_calls", "function_call")]
    return _Delta(
        tool_calls=odd_pieces(delta.raw("tool_calls") or b""),
        function_call=odd_named(delta.raw("function_call") or b""),
        **{key: _raw(delta, key) for key in texts},
    )


def _raw(holder: ObjectText, key: str) -> msgspec.Raw:
    return msgspec.Raw(holder.raw(key) or b"null")
