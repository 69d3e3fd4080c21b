"""Where the workspace is: the roots that the policy and the client's prompt name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

from switchyard_core.clients import workspaces_in
from switchyard_core.conversation import Text
from switchyard_core.mutation.memory import Memo
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.text_rules import TextHistory

__all__ = ["Root", "RootFinder"]

#: Conversations whose roots are remembered.
_MEMO = 4096


class Root(NamedTuple):
    """A directory that holds the workspace."""

    path: str  # as it was written
    known_from: str  # `policy` or `prompt`


class RootFinder:
    """Finds the roots of conversations; searches the start of each one once."""

    def __init__(self, classes: PathClasses) -> None:
        self._classes = classes
        self._declared = tuple(Root(path, "policy") for path in classes.workspace)
        self._found: Memo[tuple[int, ...], tuple[Root, ...]] = Memo(_MEMO)

    def of(self, history: TextHistory) -> tuple[Root, ...]:
        """Return the roots of a history, those of the policy first."""
        start = _start(history)
        # The texts themselves may be long; their hashes are keyed by a secret of the process.
        key = (hash(history.instructions_source), *(hash(part.source) for part in start))
        found = self._found.get(key)
        if found is None:
            found = self._found.keep(key, (*self._declared, *self._search(history, start)))
        return found

    def _search(self, history: TextHistory, start: Sequence[Text]) -> Iterable[Root]:
        texts = [history.instructions()] if history.instructions is not None else []
        texts += [part.text for part in start]
        return self._prompted(root for text in texts for root in workspaces_in(text))

    def _prompted(self, paths: Iterable[str]) -> Iterable[Root]:
        declared = self._classes.workspace
        for path in dict.fromkeys(paths):
            if path not in declared and self._classes.may_be_root(path):
                yield Root(path, "prompt")


def _start(history: TextHistory) -> list[Text]:
    """Return the texts of the client and the user before the assistant's first turn."""
    messages = takewhile(lambda m: m.role != "assistant", history.conversation.messages)
    return [part for message in messages for part in message.content if isinstance(part, Text)]
