"""Which route has a model id: ids and aliases, some of which are globs."""

from __future__ import annotations

from collections.abc import Iterable

from switchyard_core.patterns import id_glob

__all__ = ["ModelIds", "clash"]


class ModelIds:
    """The model ids of some routes, each given as its name, its id and its aliases.

    ``exact`` has the names by the ids that are written out.
    """

    def __init__(self, routes: Iterable[tuple[str, str, tuple[str, ...]]]) -> None:
        self.exact: dict[str, str] = {}
        globs: list[tuple[str, str]] = []
        for name, own, aliases in routes:
            self.exact[own] = name
            for alias in aliases:
                if "*" in alias:
                    globs.append((alias, name))
                else:
                    self.exact.setdefault(alias, name)
        globs.sort(key=lambda pair: _exactness(pair[0]), reverse=True)
        self._globs = [(id_glob(glob), name) for glob, name in globs]

    def find(self, model: str) -> str | None:
        """Return the name of the route with a model id: written out, or by its most exact glob."""
        name = self.exact.get(model)
        if name is None:
            name = next((route for matches, route in self._globs if matches(model)), None)
        return name


def clash(left: str, right: str) -> bool:
    """Return whether two globs match some of the same ids while neither is more exact."""
    return _exactness(left) == _exactness(right) and _overlap(left, right)


def _exactness(glob: str) -> int:
    """Return how many characters of a model id a glob fixes."""
    return len(glob.replace("*", ""))


def _overlap(left: str, right: str) -> bool:
    """Return whether a text matches both of two globs."""
    reached = {(0, 0)}
    waiting = [(0, 0)]
    while waiting:
        at, to = waiting.pop()
        if at == len(left) and to == len(right):
            return True
        steps = set()
        wide, other = left[at : at + 1] == "*", right[to : to + 1] == "*"
        if wide:
            steps |= {(at + 1, to), (at, to + 1)}
        if other:
            steps |= {(at, to + 1), (at + 1, to)}
        if not wide and not other and left[at : at + 1] == right[to : to + 1]:
            steps.add((at + 1, to + 1))
        new = {s for s in steps if s[0] <= len(left) and s[1] <= len(right)} - reached
        reached |= new
        waiting += new
    return False
