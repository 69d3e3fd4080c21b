"""What the wire formats have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from switchyard_core.conversation import Conversation, Message, Part, Role, UserMessage
from switchyard_core.declarations import WireFormat
from switchyard_core.errors import BodyError, RequestError
from switchyard_core.jsonio.tree import JsonTextError, ObjectText, encode, loads
from switchyard_core.request import Endpoint

__all__ = ["Format", "Turns", "decode_items", "decode_one", "history_raw", "lacks_history", "word"]

T = TypeVar("T", bound=msgspec.Struct)

NULL = msgspec.Raw(b"null")


class Format(Protocol):
    """One wire format: a reader, its paths, and its shape of an error."""

    name: WireFormat
    #: The body's key that holds the history.
    history_key: str
    #: The body's keys by which a request may go on from an earlier response.
    continuation_keys: tuple[str, ...]
    #: Path of each endpoint that the format has, without a prefix.
    paths: Mapping[Endpoint, str]

    def read(self, fields: ObjectText) -> Conversation:
        """Return the neutral view of the history."""
        ...

    def history(self, fields: ObjectText) -> bytes:
        """Return the bytes of the history, ``b""`` where the format admits none."""
        ...

    def continuation(self, fields: ObjectText) -> tuple[str, ...]:
        """Return the keys by which the request names an earlier response that it goes on from."""
        ...

    def offers_tools(self, fields: ObjectText, conversation: Conversation) -> bool:
        """Return whether the request offers tools."""
        ...

    def misses_history(self, fields: ObjectText, conversation: Conversation) -> bool:
        """Return whether the request continues a history that it does not hold."""
        ...

    def user_message(self, fields: ObjectText) -> UserMessage:
        """Return the last message of the user, an empty one when there is none."""
        ...

    def instructions(self, fields: ObjectText) -> str:
        """Return the text of the caller's instructions, joined by a blank line."""
        ...

    def error_body(self, error: RequestError, request_id: str) -> bytes:
        """Return one of our errors as the JSON body that this format's clients expect.

        Its ``details`` are further members of the error object.
        """
        ...


class Turns:
    """Collects parts into messages: a run of one role is one message.

    Runs of ``assistant`` items are one turn and runs of ``tool`` results are one message, so
    that the three wire formats give the same conversation; user and system messages stay as
    they were sent.
    """

    def __init__(self) -> None:
        self._done: list[Message] = []
        self._role: Role | None = None
        self._parts: list[Part] = []
        self._first = 0
        self._last = 0

    def start(self, role: Role, item: int) -> int:
        """Go on with a role at a wire item; return the index of the message it belongs to."""
        if role == self._role and role in ("assistant", "tool"):
            self._last = item
            return len(self._done)
        self._flush()
        self._role, self._first, self._last = role, item, item
        return len(self._done)

    def add(self, part: Part) -> None:
        """Add a part to the message that was started last."""
        self._parts.append(part)

    def _flush(self) -> None:
        if self._role is not None:
            self._done.append(
                Message(
                    role=self._role, content=tuple(self._parts), first=self._first, last=self._last
                )
            )
        self._parts = []
        self._role = None

    def messages(self) -> tuple[Message, ...]:
        """Return all messages."""
        self._flush()
        return tuple(self._done)


def history_raw(fields: ObjectText, key: str, *, text_too: bool = False) -> bytes:
    """Return the bytes of the history.

    Raises:
        BodyError: It is missing or no array (nor a string, where the format admits one).
    """
    raw = fields.raw(key)
    if raw is not None and (raw[:1] == b"[" or (text_too and raw[:1] == b'"')):
        return raw
    what = "is missing" if raw is None else "must be an array"
    if raw is not None and text_too:
        what += " or a string"
    raise BodyError(message=f"`{key}` {what}", code="invalid_type", param=key)


def decode_items(raw: bytes, struct: type[T]) -> list[T | None]:
    """Decode an array of objects, each into the few fields that routing reads.

    Fields of the struct are ``Any`` (small values) or ``Raw`` (not looked into). Items that are
    no objects give ``None``: what the provider may understand is not refused here.
    """
    try:
        items: list[T | None] = msgspec.json.decode(raw, type=list[struct])  # type: ignore[valid-type]
    except (msgspec.MsgspecError, RecursionError):
        # Odd items, numbers out of range, lone surrogates: the lenient way gives the same view.
        try:
            tree = loads(raw)
        except JsonTextError:
            return []
        if not isinstance(tree, list):
            return []
        return [_from_tree(item, struct) for item in tree]
    return items


def decode_one(raw: bytes | msgspec.Raw, struct: type[T]) -> T | None:
    """Decode one object the same way, ``None`` when it is none."""
    found = decode_items(b"[" + bytes(raw) + b"]", struct)
    return found[0] if len(found) == 1 else None


def _from_tree(item: Any, struct: type[T]) -> T | None:
    if not isinstance(item, dict):
        return None
    values = {}
    for field in msgspec.structs.fields(struct):
        if field.encode_name in item:
            value = item[field.encode_name]
            values[field.name] = msgspec.Raw(encode(value)) if field.type is msgspec.Raw else value
    return struct(**values)


def lacks_history(raw: bytes, conversation: Conversation) -> bool:
    """Return whether a history, continued by id, is not all in the request.

    That is so when it is plain text, holds nothing that the assistant made, or holds a result
    whose call is missing.
    """
    if raw[:1] != b"[" or all(m.role != "assistant" for m in conversation.messages):
        return True
    return bool(conversation.result_ids - {call.id for call in conversation.calls})


def word(value: Any) -> str:
    """Return a value if it is a string, else ``""``: a wrong type matches nothing."""
    return value if isinstance(value, str) else ""
