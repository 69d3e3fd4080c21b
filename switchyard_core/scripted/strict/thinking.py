"""Thinking of Claude models: the signatures that the provider makes, and what it checks of them.

A signature holds the model that made the block, digests of its text and of the conversation before
it, and the block before it. So the provider needs no memory to see what a client changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from switchyard_core.scripted.strict.places import Place, Sent, found
from switchyard_core.scripted.strict.sealing import digest, seal, unseal

__all__ = ["Block", "Reading", "blocks", "bound_elsewhere", "modified", "signature"]

_MAKER = "anthropic"
#: Keys that hold the opaque form of a block, by its type.
_OPAQUE = {"thinking": "signature", "redacted_thinking": "data"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Which model can read whose thinking."""

    reads: Callable[[str, str], bool]  # whether the first model reads blocks of the second
    is_bound: Callable[[str], bool]  # whether a model checks the conversation before its blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One thinking block of a request."""

    place: Place
    kind: str
    text: Any
    opaque: Any
    facts: Mapping[str, Any] | None  # what its signature holds, `None` for a foreign one

    @property
    def message(self) -> int:
        """The number of its message."""
        return int(self.place[1])

    @property
    def model(self) -> str:
        """The model that made it."""
        return str((self.facts or {}).get("m", ""))


def blocks(sent: Sent) -> Iterator[Block]:
    """Yield the thinking blocks of a request in order."""
    for at, block in found(sent, "messages[role=assistant].content[]"):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in _OPAQUE:
            opaque = block.get(_OPAQUE[kind])
            yield Block(
                place=at,
                kind=kind,
                text=block.get("thinking", ""),
                opaque=opaque,
                facts=unseal(_MAKER, opaque),
            )


def signature(sent: Sent, text: str) -> str:
    """Return the signature of the thinking with which the asked model answers a request."""
    model, messages = sent.model, sent.asked.body.get("messages")
    own = [block for block in blocks(sent) if block.facts is not None and block.model == model]
    before = _conversation(sent.asked.body, len(messages) if isinstance(messages, list) else 0)
    facts = {"m": model, "t": digest(text), "x": before}
    return seal(_MAKER, facts | ({"b": digest(own[-1].opaque)} if own else {}))


def modified(sent: Sent, reading: Reading) -> Iterator[Block]:
    """Yield the blocks that are not as they were made, or behind one that is missing.

    The API leaves out silently what the asked model cannot read, so nothing of that is looked at.
    The model's first block may have lost those before it: old ones can be left out from the front.
    """
    last = ""
    for block in blocks(sent):
        if block.facts is None or not reading.reads(sent.model, block.model):
            continue
        if block.kind == "thinking" and block.facts.get("t") != digest(block.text):
            yield block
        if block.model == sent.model:
            if last and block.facts.get("b") != last:
                yield block
            last = digest(block.opaque)


def bound_elsewhere(sent: Sent, reading: Reading) -> Iterator[Block]:
    """Yield the blocks of prefix-bound models before which the conversation has changed."""
    model = sent.model
    if not reading.is_bound(model):
        return
    for block in blocks(sent):
        mine = block.facts is not None and reading.is_bound(block.model)
        if not mine or not reading.reads(model, block.model):
            continue
        before = _conversation(sent.asked.body, block.message, int(block.place[3]))
        if (block.facts or {}).get("x") != before:
            yield block


def _conversation(body: Mapping[str, Any], end: int, inside: int = 0) -> str:
    """Return the digest of all that is before a block: ``inside`` items of message ``end`` too.

    Where one message ends and the next begins does not count, and neither do cache marks.
    """
    messages = body.get("messages")
    messages = messages if isinstance(messages, list) else []
    said = [_said(message, None) for message in messages[:end]]
    if inside and end < len(messages):
        said.append(_said(messages[end], inside))
    flat = [item for items in said for item in items]
    tools = [_unmarked(tool) for tool in _listed(body.get("tools"))]
    return digest([_texts(body.get("system")), tools, flat])


def _said(message: Any, end: int | None) -> Sequence[Any]:
    if not isinstance(message, dict):
        return [message]
    items = _texts(message.get("content"))[:end]
    kept = [i for i in items if not (isinstance(i, dict) and i.get("type") in _OPAQUE)]
    return [[message.get("role"), item] for item in kept]


def _texts(content: Any) -> list[Any]:
    """Return a content as blocks without cache marks; a text is one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [_unmarked(item) for item in _listed(content)]


def _unmarked(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    plain = {key: value for key, value in item.items() if key != "cache_control"}
    if plain.get("type") == "tool_result":
        plain["content"] = _texts(plain.get("content"))
    return plain


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
