"""What the arguments of a tool hold under the usual keys: files, new content, commands."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any
from urllib.parse import unquote

from switchyard_core.mutation.names import fold_name
from switchyard_core.mutation.tables import load_table

__all__ = ["argument_kinds", "files_in"]

#: Maximum depth of objects in arguments.
_DEPTH = 4
#: Characters of a key that may have a meaning.
_LONGEST = 64
_FILE_URI = "file://"
# Tuples are the fastest for `isinstance`, with the dictionary first.
_OBJECTS = (dict, Mapping)


def files_in(value: Any, most: int) -> list[str]:
    """Return the first files that the value of a target names.

    A text is a file, a list holds several, and an object has them under the usual keys.
    """
    found: list[str] = []
    _find(value, found, most, _DEPTH)
    return found[:most]


def _find(value: Any, found: list[str], most: int, depth: int) -> None:
    if isinstance(value, str):
        if value.strip():
            found.append(_without_scheme(value))
    elif not depth or len(found) >= most:
        return
    elif isinstance(value, list):
        for item in value:
            if len(found) < most:
                _find(item, found, most, depth - 1)
    elif isinstance(value, _OBJECTS):
        for key, item in value.items():
            if key.startswith(_FILE_URI):
                # Edits of a language server are listed by their files.
                found.append(_without_scheme(key))
                continue
            kinds = argument_kinds(key)
            if isinstance(item, str):
                if "file" in kinds and item.strip():
                    found.append(_without_scheme(item))
            elif "file" in kinds or "holder" in kinds:
                _find(item, found, most, depth - 1)


def _without_scheme(path: str) -> str:
    if not path.startswith(_FILE_URI):
        return path
    path = unquote(path[len(_FILE_URI) :]).removeprefix("localhost")
    # `file:///C:/x` is a path with a drive.
    return path[1:] if path[2:3] == ":" else path


def argument_kinds(key: str) -> tuple[str, ...]:
    """Return which kinds of argument a key is for."""
    return _kinds_of(key) if len(key) <= _LONGEST else ()


@lru_cache(maxsize=4096)
def _kinds_of(key: str) -> tuple[str, ...]:
    return _table().get(fold_name(key), ())


@cache
def _table() -> Mapping[str, tuple[str, ...]]:
    keys = load_table("arguments")
    kinds: dict[str, tuple[str, ...]] = {}
    for kind in ("file", "holder", "content", "payload", "runs", "runs_code", "language"):
        for key in keys[kind]:
            kinds[key] = (*kinds.get(key, ()), kind)
    return kinds
