"""The ``patch`` reader: the files that a patch names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from switchyard_core.mutation.labels import Reading, strongest
from switchyard_core.mutation.tables import load_table

__all__ = ["MOST_FILES", "patched_files", "read_patch"]

_ENVELOPE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): *(.+)$", re.MULTILINE)
_UNIFIED = re.compile(r"^(?:\+\+\+|---|rename to|rename from) +([^\t\n]+)(?:\t.*)?$", re.MULTILINE)
_DEPTH = 4
#: Files of one call that are looked at.
MOST_FILES = 1000


def read_patch(value: Any, label: Callable[[str], Reading]) -> Reading:
    """Return the strongest label of the files that a patch names.

    ``value`` is patch text, or arguments that hold one or an ``operation`` with a path. A patch
    whose files cannot be read is a ``file_edit``.
    """
    files = list(islice(_files(value, 0), MOST_FILES + 1))
    if not files:
        return Reading(label="file_edit", word="patch", detail="a patch that names no file")
    reading = strongest(label(path) for path in files[:MOST_FILES])
    if len(files) > MOST_FILES and reading.label != "file_edit":
        # Like an unreadable path: an edit tool writes a file unless another path is shown.
        return Reading(label="file_edit", word="patch", detail="a patch of too many files")
    return reading


def patched_files(text: str) -> list[str]:
    """Return the files that a patch text names, in either of the two common notations."""
    files = _names(_ENVELOPE, text)
    if files:
        return files
    names = [name for name in _names(_UNIFIED, text) if name != "/dev/null"]
    return [name[2:] if name[:2] in {"a/", "b/"} else name for name in names]


def _names(pattern: re.Pattern[str], text: str) -> list[str]:
    """Return each file once, without trailing spaces; a patch may have a part per line."""
    return list(dict.fromkeys(name.rstrip(" ") or " " for name in pattern.findall(text)))


def _files(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield from patched_files(value)
    elif depth < _DEPTH and isinstance(value, Mapping):
        keys = load_table("arguments")
        for key in keys["patch"]:
            if key in value:
                yield from _files(value[key], depth + 1)
        for key in keys["patch_path"]:
            if isinstance(value.get(key), str):
                yield value[key]
    elif depth < _DEPTH and isinstance(value, list):
        for item in value:
            yield from _files(item, depth + 1)
