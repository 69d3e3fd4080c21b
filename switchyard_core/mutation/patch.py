"""The ``patch`` reader: the files that a patch names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from switchyard_core.mutation.labels import Reading, strongest
from switchyard_core.mutation.tables import load_table

__all__ = ["patched_files", "read_patch"]

_ENVELOPE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): *(.+?) *$", re.MULTILINE)
_UNIFIED = re.compile(
    r"^(?:\+\+\+|---|rename to|rename from) +([^\t\n]+?) *(?:\t.*)?$", re.MULTILINE
)
_DEPTH = 4


def read_patch(value: Any, label: Callable[[str], Reading]) -> Reading:
    """Return the strongest label of the files that a patch names.

    Args:
        value: Patch text, or arguments that hold one, or an ``operation`` with a path.
        label: Gives the label of one path.

    Returns:
        ``file_edit`` when the patch names no file that can be read.
    """
    files = list(_files(value, 0))
    if not files:
        return Reading(label="file_edit", word="patch", detail="a patch that names no file")
    return strongest(label(path) for path in files)


def patched_files(text: str) -> list[str]:
    """Return the files that a patch text names, in either of the two common notations."""
    files = _ENVELOPE.findall(text)
    if files:
        return files
    names = [name for name in _UNIFIED.findall(text) if name != "/dev/null"]
    return [name[2:] if name[:2] in {"a/", "b/"} else name for name in names]


def _files(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield from patched_files(value)
    elif depth < _DEPTH and isinstance(value, Mapping):
        keys = load_table("arguments")
        if any(key in value for key in keys["patch"]):
            for key in keys["patch"]:
                if key in value:
                    yield from _files(value[key], depth + 1)
        for key in keys["patch_path"]:
            if isinstance(value.get(key), str):
                yield value[key]
    elif depth < _DEPTH and isinstance(value, list):
        for item in value:
            yield from _files(item, depth + 1)
