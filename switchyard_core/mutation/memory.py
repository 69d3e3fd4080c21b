"""What compiled rules remember from call to call, within bounds.

The next request of a conversation holds all calls of this one: only new ones are read.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeAlias, TypeVar

from switchyard_core.conversation import ToolCall
from switchyard_core.mutation.outcome import Outcome

__all__ = ["Memo", "Outcomes", "brief"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
H = TypeVar("H", bound=Hashable)

#: Calls whose outcomes are remembered.
_MAX_CALLS = 16384
#: Characters of arguments that are a key themselves; longer ones stand there by their digest.
_LONG = 256
# A union would be built for every look.
_TEXTS = (str, bytes)

#: What the rules say about the tool, its arguments and, if it matters, the id of the call.
_Key: TypeAlias = tuple[Hashable, str | bytes, str]


class Memo(Generic[K, V]):
    """A dictionary that forgets its oldest entries; safe to share between threads.

    Args:
        most: Entries that it keeps.
    """

    __slots__ = ("_most", "_values", "get")

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()
        #: Returns a remembered value or ``None``; the dictionary's own, as it is asked most.
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
    """Return a text as a part of a key: itself, or its digest when it is long."""
    if len(text) <= _LONG:
        return text
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()


class Outcomes:
    """The outcomes of calls by tool and arguments, wherever they stand."""

    def __init__(self) -> None:
        self._memo: Memo[_Key, Outcome] = Memo(_MAX_CALLS)

    def get(
        self,
        call: ToolCall,
        tool: H,
        read: Callable[[H, ToolCall], Outcome],
        *,
        uses_id: bool,
    ) -> Outcome:
        """Return the outcome of a call, read only when its like was not seen yet.

        Args:
            call: The call.
            tool: What all calls of its tool have in common.
            read: Reads a call of the tool.
            uses_id: Whether calls with the same arguments may differ by their ids.
        """
        source = call.source
        if not isinstance(source, _TEXTS):
            return read(tool, call)
        key = (tool, source if len(source) <= _LONG else brief(source), call.id if uses_id else "")
        return self._memo.get(key) or self._memo.keep(key, read(tool, call))
