"""One request of a client: wire format, body and headers, with lazy views on them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any

from switchyard_core.conversation import Conversation, UserMessage, parse_json
from switchyard_core.decision import RewriteScope
from switchyard_core.declarations import Endpoint, WireFormat
from switchyard_core.errors import BodyError
from switchyard_core.identity import Headers, Mark, read_mark
from switchyard_core.jsonio.scan import cut_array
from switchyard_core.jsonio.tree import MAX_MEMBERS, JsonTextError, ObjectText, encode, loads
from switchyard_core.wire import FORMATS
from switchyard_core.wire.rewrites.history import DropParameters, foreign_context

__all__ = ["MAX_ITEMS", "Request", "refuse_flood"]

#: Most messages, parts, tool calls and tools of a body in which they are tiny. A session that
#: fills a window of a million tokens has a few thousand.
MAX_ITEMS = 20_000
#: Bytes for each comma from which on items are large enough to be worth what they cost.
BYTES_PER_COMMA = 24

_FINAL_HEADERS = ("x-switchyard-session-final", "x-dynamo-session-final")


class Request:
    """A request as a client sent it.

    Args:
        wire_format: ``openai_chat``, ``openai_responses`` or ``anthropic_messages``.
        body: The JSON body: bytes as they came, text, or a mapping (which is encoded once and
            never changed).
        headers: The client's headers, as a mapping or as pairs.
        endpoint: Which call of the wire format this is.
        query: Query string without ``?``; the provider gets it.
        session_final: Whether this is the session's last request; ``None`` reads it from
            ``x-switchyard-session-final``.

    Raises:
        ValueError: The wire format is unknown.

    Guarantees:
        Nothing is decoded until somebody looks, each thing at most once; the body given is
        never changed.
    """

    def __init__(
        self,
        *,
        wire_format: WireFormat,
        body: bytes | str | Mapping[str, Any],
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        endpoint: Endpoint = "create",
        query: str = "",
        session_final: bool | None = None,
    ) -> None:
        if wire_format not in FORMATS:
            msg = f"unknown wire format `{wire_format}`; known: {', '.join(FORMATS)}"
            raise ValueError(msg)
        self._format = FORMATS[wire_format]
        self.wire_format = wire_format
        self.body = body if isinstance(body, bytes) else _to_bytes(body)
        self.headers = headers if isinstance(headers, Headers) else Headers(headers)
        self.endpoint = endpoint
        self.query = query
        self._final = session_final

    @cached_property
    def fields(self) -> ObjectText:
        """The body's top level, for reading; rewrites get a copy.

        A :class:`BodyError` says that the body is not a JSON object in UTF-8, or has a key twice.
        """
        if not self.body.isascii():
            try:
                self.body.decode("utf-8")
            except UnicodeDecodeError as error:
                message = f"the body is not UTF-8: invalid byte at offset {error.start}"
                raise BodyError(message=message, code="invalid_json") from None
        try:
            return ObjectText(self.body, unique=True)
        except JsonTextError as error:
            if error.duplicate is not None:
                raise BodyError(
                    message=f"{error.message} in the body; send it once",
                    code="duplicate_key",
                    param=error.duplicate,
                ) from None
            raise BodyError(message=f"the body is {_unfit(error)}", code="invalid_json") from None

    @cached_property
    def model(self) -> str:
        """The model id that the client asked for, ``""`` for none; another type is an error."""
        model = self.fields.text("model")
        if model is None:
            if self.fields.raw("model") not in (None, b"null"):
                raise BodyError("`model` must be a string", code="invalid_type", param="model")
            return ""
        return model

    @property
    def stream(self) -> bool:
        """Whether the client asked for a stream."""
        return self.fields.raw("stream") == b"true"

    @cached_property
    def session_final(self) -> bool:
        """Whether the client marked this as its session's last request."""
        if self.endpoint != "create":
            return False
        if self._final is not None:
            return self._final
        return bool(self.headers.flag(*_FINAL_HEADERS))

    @cached_property
    def mark(self) -> Mark:
        """What the client's own turn metadata says."""
        return read_mark(self.headers)

    @cached_property
    def conversation(self) -> Conversation:
        """The neutral view of the history; one of a wrong type is a :class:`BodyError`."""
        return self._format.read(self.fields)

    @cached_property
    def user_message(self) -> UserMessage:
        """What the user said last, an empty message when the user said nothing."""
        return self._format.user_message(self.fields)

    @cached_property
    def instructions(self) -> str:
        """The caller's system and developer texts, joined by a blank line."""
        return self._format.instructions(self.fields)

    @property
    def instructions_source(self) -> bytes:
        """JSON of the instructions that are beside the history, ``b""`` without any."""
        key = self._format.instructions_key
        return (self.fields.raw(key) if key else None) or b""

    @cached_property
    def history_digest(self) -> bytes:
        """A 16-byte digest of the history's bytes: equal for a retry, whatever else differs."""
        return blake2b(self._format.history(self.fields), digest_size=16).digest()

    @cached_property
    def offers_tools(self) -> bool:
        """Whether the request offers tools to the model."""
        return self._format.offers_tools(self.fields, self.conversation)

    @property
    def lists_tools(self) -> bool:
        """Whether a key of the body lists tools; unlike ``offers_tools`` it reads no history."""
        lists = map(self.fields.raw, self._format.tool_keys)
        return not {None, b"null", b"[]"}.issuperset(lists)

    def history_end(self, size: int) -> bytes:
        """Return the last bytes of the history's JSON."""
        return self._format.history(self.fields)[-size:]

    @cached_property
    def misses_history(self) -> bool:
        """Whether the request continues, by id, a history that it does not hold."""
        return bool(self.missing_history)

    @cached_property
    def missing_history(self) -> tuple[str, ...]:
        """The places that name or seal history which the request does not hold otherwise."""
        fields, named = self.fields, self.continuation
        if not (named and self._format.misses_history(fields, self.conversation)):
            named = ()
        return (*named, *self._format.hidden_history(fields))

    def foreign_context(
        self,
        *,
        through_call: int | None = None,
        through_message: int | None = None,
        spans: Sequence[tuple[int, int]] = (),
    ) -> tuple[str, ...]:
        """Return what only one provider can read and whose loss would lose context.

        That is compactions, references to items, and files, in the part of the history that the
        arguments say; see :func:`~switchyard_core.router.handoff_rewrites`.
        """
        place = (through_call, through_message)
        if not self._format.context_mark.search(self.body) or (place == (None, None) and not spans):
            return ()
        part = DropParameters(
            through_call=through_call, through_message=through_message, spans=tuple(spans)
        )
        return foreign_context(self.fields.copy(), part, RewriteScope(wire_format=self.wire_format))

    @cached_property
    def continuation(self) -> tuple[str, ...]:
        """The keys by which the request continues an earlier response."""
        return self._format.continuation(self.fields)

    @property
    def continuation_keys(self) -> tuple[str, ...]:
        """All keys by which a request of this wire format may continue an earlier response."""
        return self._format.continuation_keys

    @property
    def history_key(self) -> str:
        """The body's key that holds the history."""
        return self._format.history_key

    def check(self) -> None:
        """Check the types of the few things that routing reads, without reading the history.

        Raises:
            BodyError: The body is not a JSON object, its model or history has a wrong type, or it
                has too many tiny items.
        """
        _ = self.model
        self._format.history(self.fields)
        # Of few items none can be too many.
        if self.body.count(b",") >= MAX_ITEMS:
            refuse_flood(self.fields, self._format.history_key)

    @cached_property
    def _tree(self) -> Any:
        return loads(self.body)

    def tree(self) -> Any:
        """Return the whole body as a tree, built once; only rules that need it ask for it."""
        try:
            return self._tree
        except JsonTextError as error:
            raise BodyError(message=f"the body is {_unfit(error)}", code="invalid_json") from None

    def at(self, path: str) -> Any:
        """Return the value at a dotted path of the body, ``None`` where there is nothing."""
        holder: ObjectText | None = self.fields
        *outer, last = path.split(".")
        for key in outer:
            holder = holder.object(key) if holder is not None else None
        with contextlib.suppress(JsonTextError):
            return holder.value(last) if holder is not None else None
        return None


def refuse_flood(fields: ObjectText, history_key: str) -> None:
    """Refuse a body of very many tiny items, each of which costs far more than its bytes.

    Items are elements of lists and members of the objects in them: messages, parts, calls, tools.
    Only a body with a comma every few bytes can hold too many; in any other only the history is
    counted.
    """
    body = fields.dump()
    commas = body.count(b",")
    # The reader of the body reports what cannot be read.
    with contextlib.suppress(ValueError):
        if len(body) < commas * BYTES_PER_COMMA:
            crowded = _is_crowded(parse_json(body))
        else:
            history = fields.raw(history_key) or b""
            many = history[:1] == b"[" and history.count(b",") >= MAX_ITEMS
            crowded = many and len(cut_array(history)) > MAX_ITEMS
        if crowded:
            raise BodyError(
                message=f"the body has over {MAX_ITEMS} messages, parts and tools, or over "
                f"{MAX_MEMBERS} members in one of them: send a shorter history",
                code="too_many_items",
            )


def _is_crowded(tree: Any) -> bool:
    """Return whether a body has too many list elements, or an object too many members.

    Objects in objects, such as a tool's arguments, are not counted.
    """
    left = MAX_ITEMS
    waiting: list[Any] = [tree]
    while waiting and left >= 0:
        value = waiting.pop()
        if isinstance(value, list):
            left -= len(value)
            inside: Iterable[Any] = value if left >= 0 else ()
        else:
            if len(value) > MAX_MEMBERS:
                return True
            inside = (v for v in value.values() if isinstance(v, list) or value is tree)
        waiting += (inner for inner in inside if isinstance(inner, list | dict))
    return left < 0


def _to_bytes(body: str | Mapping[str, Any]) -> bytes:
    if isinstance(body, (bytearray, memoryview)):
        return bytes(body)
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    return encode(dict(body))


def _unfit(error: JsonTextError) -> str:
    text = error.message
    for prefix in ("the body is ", "not "):
        if text.startswith(prefix):
            return text.removeprefix("the body is ")
    return f"not usable: {text}"
