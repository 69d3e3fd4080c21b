"""What the arguments of a tool hold under the usual keys: files that it writes, new content."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import Any
from urllib.parse import unquote

from switchyard_core.mutation.labels import Reading, strongest
from switchyard_core.mutation.names import fold_name, last_words, name_words
from switchyard_core.mutation.tables import load_table

__all__ = ["files_in", "read_hint"]

#: Maximum depth of objects in arguments.
_DEPTH = 4
#: Keys of an object that are searched for a hint, and characters of a key that may have a meaning.
_KEYS = 1000
_LONGEST = 64
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
    if not path.startswith(_FILE_URI):
        return path
    path = unquote(path[len(_FILE_URI) :]).removeprefix("localhost")
    # `file:///C:/x` is a path with a drive.
    return path[1:] if path[2:3] == ":" else path


def read_hint(name: str, arguments: Any, label: Callable[[str], Reading]) -> Reading | None:
    """Return what a call that no rule decides may do, by its name and the keys of its arguments.

    With a file, a verb that edits makes it an edit of that file, as one that creates does together
    with new content. A file and one of the two make it ``unknown``. ``None`` without a hint.
    """
    found: dict[str, str] = {}
    _find(arguments, found, _DEPTH - 1)
    verb, edits = _edit_verb(name) if "file" in found else ("", False)
    if "file" not in found or not (verb or "content" in found):
        return None
    seen = [f"a file (`{found['file']}`)"]
    seen += [f"content (`{found['content']}`)"] if "content" in found else []
    seen += [f"`{verb}` in its name"] if verb else []
    detail = f"no rule knows it; it has {' and '.join(seen)}"
    if verb and (edits or "content" in found):
        reading = strongest(map(label, files_in(arguments)))
        if reading.label != "read_only":
            return Reading(label=reading.label, word=reading.word, detail=detail)
    return Reading(label="unknown", detail=detail)


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
    return _kinds_of(key) if len(key) <= _LONGEST else ()


@lru_cache(maxsize=4096)
def _kinds_of(key: str) -> tuple[str, ...]:
    return _table().get(fold_name(key), ())


@cache
def _table() -> Mapping[str, tuple[str, ...]]:
    keys = load_table("arguments")
    kinds: dict[str, tuple[str, ...]] = {}
    for kind in ("file", "holder", "content"):
        for key in keys[kind]:
            kinds[key] = (*kinds.get(key, ()), kind)
    return kinds


def _edit_verb(name: str) -> tuple[str, bool]:
    """Return the word of a tool's name that edits or creates files, and whether it edits."""
    table, words = load_table("names"), last_words(name)
    if words[0] in table["verbs"] or not name_words(name).isdisjoint(table["not_files"]):
        return "", False
    edits = next((word for word in words if word in table["edit_words"]), "")
    return edits or next((word for word in words if word in table["create_words"]), ""), bool(edits)
