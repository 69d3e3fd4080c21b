"""Items of a reply that are sent back in the bytes they came in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from switchyard_core.jsonio.tree import encode, loads

__all__ = ["Verbatim", "encode_items"]


class Verbatim(dict[str, Any]):
    """An item to read as a tree, with the bytes that are written.

    Numbers such as ``1.10``, escapes and key order survive, which a tree would lose. Whoever
    wants to send something else makes a ``dict`` of it: a change in place is not written.

    Args:
        raw: JSON of an object.

    Raises:
        JsonTextError: It is none.
    """

    def __init__(self, raw: bytes) -> None:
        super().__init__(loads(raw))
        self.raw = raw


def encode_items(items: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the JSON array of some items, verbatim ones as they came."""
    return (
        b"["
        + b",".join(
            item.raw if isinstance(item, Verbatim) else encode(dict(item)) for item in items
        )
        + b"]"
    )
