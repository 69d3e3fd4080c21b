"""What the arguments of a tool hold under the usual keys: files that it writes, new content."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any
from urllib.parse import unquote

from switchyard_core.mutation.labels import Reading, strongest
from switchyard_core.mutation.names import fold_name, last_words, name_words
from switchyard_core.mutation.tables import load_table

__all__ = ["files_in", "read_hint"]

#: Maximum depth of objects in arguments.
_DEPTH = 4
#: Keys of an object that are searched for a hint.
_KEYS = 1000
_FILE_URI = "file://"
# Tuples are the fastest for `isinstance`, with the dictionary first.
_OBJECTS = (dict, Mapping)


def files_in(value: Any) -> Iterator[str]:
    """Yield the files that the value of a target names.

    A text is a file, a list holds several, and an object has them under the usual keys.
    """
    return _files(value, _DEPTH)


def _files(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip():
            yield _without_scheme(value)
    elif depth and isinstance(value, list):
        for item in value:
            yield from _files(item, depth - 1)
    elif depth and isinstance(value, _OBJECTS):
        for key, item in value.items():
            kinds = _kinds(key)
            if "file" in kinds or ("holder" in kinds and not isinstance(item, str)):
                yield from _files(item, depth - 1)


def _without_scheme(path: str) -> str:
    return unquote(path[len(_FILE_URI) :]) if path.startswith(_FILE_URI) else path


def read_hint(name: str, arguments: Any, label: Callable[[str], Reading]) -> Reading | None:
    """Return what a call that no rule decides may do, judged by the keys of its arguments.

    A file and new content make it ``unknown``, and an edit of the file if the name of the tool has
    a verb that edits and nothing that is not a file. ``None`` if one of them is absent.
    """
    found: dict[str, str] = {}
    _find(arguments, found, _DEPTH - 1)
    if "file" not in found or "content" not in found:
        return None
    detail = f"no rule knows it; it has a file (`{found['file']}`) and content"
    detail = f"{detail} (`{found['content']}`)"
    if not _edits_files(name):
        return Reading(label="unknown", detail=detail)
    reading = strongest(map(label, files_in(arguments)))
    if reading.label == "read_only":
        return Reading(label="unknown", detail=detail)
    return Reading(label=reading.label, word=reading.word, detail=detail)


def _find(value: Any, found: dict[str, str], depth: int) -> None:
    """Note the first key of each kind."""
    if isinstance(value, list):
        value = value[0] if value else None
    if not depth or not isinstance(value, _OBJECTS):
        return
    for key, item in islice(value.items(), _KEYS):
        kinds = _kinds(key)
        for kind in kinds:
            found.setdefault(kind, key)
        if kinds and not isinstance(item, str):
            _find(item, found, depth - 1)


def _kinds(key: str) -> tuple[str, ...]:
    """Return which kinds of argument a key is for."""
    table = _table()
    # Nearly all keys are spelled one of a few ways, but a model may make up any number.
    return table.get(key) or table.get(fold_name(key), ())


@cache
def _table() -> Mapping[str, tuple[str, ...]]:
    keys = load_table("arguments")
    kinds: dict[str, tuple[str, ...]] = {}
    for kind in ("file", "holder", "content"):
        for key in keys[kind]:
            kinds[key] = (*kinds.get(key, ()), kind)
    return kinds


def _edits_files(name: str) -> bool:
    table, last = load_table("names"), last_words(name)
    edits = last[0] not in table["verbs"] and not set(last).isdisjoint(table["edit_words"])
    return edits and name_words(name).isdisjoint(table["not_files"])
