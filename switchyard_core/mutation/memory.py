"""What compiled rules remember from call to call, within bounds.

The next request of a conversation holds all calls of this one: only new ones are read.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeVar

__all__ = ["Memo", "brief"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: Characters of a text that is its own key; a longer one is replaced by its digest.
_LONG = 256


class Memo(Generic[K, V]):
    """A dictionary that forgets its oldest entries; safe to share between threads."""

    __slots__ = ("_most", "_values", "get")

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()
        #: Returns a remembered value or ``None``; the dictionary's own method, for speed.
        self.get: Callable[[K], V | None] = self._values.get

    def __len__(self) -> int:
        """Return how many entries there are."""
        return len(self._values)

    def keep(self, key: K, value: V) -> V:
        """Remember a value and return it."""
        self._values[key] = value
        if len(self._values) > self._most:
            # Another thread may have emptied it meanwhile; then there is nothing to drop.
            with suppress(KeyError):
                self._values.popitem(last=False)
        return value


def brief(text: str | bytes) -> str | bytes:
    """Return a text as part of a key: the text, or its digest when it is long."""
    if len(text) <= _LONG:
        return text
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()
