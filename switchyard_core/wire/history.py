"""Reading a history: what the wire formats have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from switchyard_core.conversation import Conversation, Image, Message, Part, Role, UserMessage
from switchyard_core.jsonio.tree import JsonTextError, encode, loads

__all__ = [
    "NULL",
    "Turns",
    "decode_items",
    "decode_one",
    "instruction_text",
    "lacks_history",
    "only_results",
    "said_by_user",
    "word",
]

T = TypeVar("T", bound=msgspec.Struct)

NULL = msgspec.Raw(b"null")
#: Types of a part with text, in the three wire formats.
_TEXT = frozenset({"text", "input_text", "output_text"})
#: A part of a Messages user message that is not a word of the user.
_RESULT = "tool_result"


class Turns:
    """Collects parts into messages.

    Runs of ``assistant`` items are one turn and runs of ``tool`` results one message, so that the
    wire formats give the same conversation; user and system messages stay as they were sent.
    """

    def __init__(self) -> None:
        #: Parts of the message that was started last.
        self.parts: list[Part] = []
        self._made: list[tuple[Role, list[Part], list[int]]] = []
        self._role: Role | None = None

    def start(self, role: Role, item: int) -> int:
        """Continue with a role at a wire item; return the index of its message."""
        if role == self._role and role in ("assistant", "tool"):
            self._made[-1][2].append(item)
        else:
            self._role, self.parts = role, []
            self._made.append((role, self.parts, [item]))
        return len(self._made) - 1

    def messages(self) -> tuple[Message, ...]:
        """Return all messages."""
        made = []
        for role, parts, items in self._made:
            first, last = items[0], items[-1]
            made.append(Message(role=role, content=tuple(parts), first=first, last=last))
        return tuple(made)


def decode_items(raw: bytes, struct: type[T]) -> list[T | None]:
    """Decode an array of objects, each into the few fields that routing reads.

    Fields of the struct are ``Any`` (small values) or ``Raw`` (not looked into). Items that are not
    objects give ``None``: the provider decides about them.
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
    """Decode one object, ``None`` when it is not one."""
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
    """Return whether a history that continues by id is incomplete in the request.

    It is when it is plain text, has no assistant message, or has a result without its call.
    """
    if raw[:1] != b"[" or all(m.role != "assistant" for m in conversation.messages):
        return True
    return bool(conversation.result_ids - {call.id for call in conversation.calls})


def word(value: Any) -> str:
    """Return a value if it is a string, else ``""``: a wrong type matches nothing."""
    return value if isinstance(value, str) else ""


# --- what the caller says itself ---------------------------------------------------------


def said_by_user(content: bytes | msgspec.Raw) -> UserMessage:
    """Return a user message, from the JSON of its content in any wire format."""
    texts: list[str] = []
    images: list[Image] = []
    left_out: list[str] = []
    for part in _parts(content):
        kind = word(part.get("type"))
        if kind in _TEXT:
            texts.append(word(part.get("text")))
        elif kind != _RESULT:
            image = _image(part)
            if image is None:
                left_out.append(kind)
            else:
                images.append(image)
    return UserMessage(text=_joined(texts), images=tuple(images), left_out=tuple(left_out))


def only_results(content: bytes | msgspec.Raw) -> bool:
    """Return whether the content of a message is tool results and nothing else."""
    parts = _parts(content)
    return bool(parts) and all(part.get("type") == _RESULT for part in parts)


def instruction_text(contents: Iterable[bytes | msgspec.Raw]) -> str:
    """Return the texts of some instructions, joined by a blank line."""
    return _joined(
        word(part.get("text"))
        for content in contents
        for part in _parts(content)
        if word(part.get("type")) in _TEXT
    )


def _parts(content: bytes | msgspec.Raw) -> list[Mapping[str, Any]]:
    raw = bytes(content)
    if raw[:1] not in (b'"', b"["):
        return []
    try:
        tree = loads(raw)
    except JsonTextError:
        return []
    if isinstance(tree, str):
        return [{"type": "text", "text": tree}]
    return [part if isinstance(part, dict) else {} for part in tree]


def _image(part: Mapping[str, Any]) -> Image | None:
    """Return the image of a part, ``None`` when it has none that can be passed on."""
    kind = part.get("type")
    if kind == "image":
        source = part.get("source")
        url = _source_url(source) if isinstance(source, dict) else ""
        return Image(url=url) if url else None
    if kind not in ("image_url", "input_image"):
        return None
    place = part.get("image_url")
    # Chat has address and detail in an object of their own.
    holder = place if isinstance(place, dict) else {**part, "url": place}
    url, detail = word(holder.get("url")), word(holder.get("detail"))
    return Image(url=url, detail="" if detail == "auto" else detail) if url else None


def _source_url(source: Mapping[str, Any]) -> str:
    if source.get("type") == "base64":
        media, data = word(source.get("media_type")), word(source.get("data"))
        return f"data:{media};base64,{data}" if media and data else ""
    return word(source.get("url")) if source.get("type") == "url" else ""


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)
