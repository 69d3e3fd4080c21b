"""What the rules of the three wire formats have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["Problems", "objects"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


class Problems:
    """Collects what is wrong, each with the wire path of its place."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, path: str, problem: str) -> None:
        """Note a problem."""
        self.found.append(f"{path}: {problem}")

    def require(self, condition: object, path: str, problem: str) -> bool:
        """Note a problem unless a condition holds; return whether it holds."""
        if not condition:
            self.add(path, problem)
        return bool(condition)

    def text(self, value: Any, path: str) -> bool:
        """Require a string with something in it that is no space."""
        return self.require(isinstance(value, str) and value.strip(), path, "must not be empty")

    def name(self, value: Any, path: str) -> None:
        """Require a tool name."""
        legal = isinstance(value, str) and _NAME.fullmatch(value)
        self.require(legal, path, f"is no tool name: {value!r} (letters, digits, `_`, `-`)")

    def id(self, value: Any, path: str, legal: re.Pattern[str], seen: set[str]) -> None:
        """Require a call id that is legal and new."""
        if not isinstance(value, str) or not legal.fullmatch(value):
            self.add(path, f"is no legal id: {value!r} ({legal.pattern})")
        elif value in seen:
            self.add(path, f"the id `{value}` is used twice")
        else:
            seen.add(value)


def objects(value: Any, path: str, problems: Problems) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of an array with their wire paths; anything else is a problem."""
    if not isinstance(value, list):
        problems.add(path, "must be an array")
        return
    problems.require(value, path, "must not be empty")
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        if problems.require(isinstance(item, dict), place, "must be an object"):
            yield place, item
