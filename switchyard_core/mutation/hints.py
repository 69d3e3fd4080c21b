"""What a call that no rule decides may do, by its name and the keys of its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

from switchyard_core.mutation.arguments import argument_kinds, files_in
from switchyard_core.mutation.labels import READ_ONLY, Reading, label_rank, strongest
from switchyard_core.mutation.names import fold_name, last_words, name_words
from switchyard_core.mutation.patch import MOST_FILES
from switchyard_core.mutation.readers import NOT_JSON, CallReader
from switchyard_core.mutation.shell.table import command_table
from switchyard_core.mutation.tables import load_table

__all__ = ["read_hint"]

#: Maximum depth of objects in arguments.
_DEPTH = 3
#: Keys of an object that are searched.
_KEYS = 1000
_SCHEME = re.compile(r"([a-z][a-z0-9+-]+):(?!\d+$)", re.IGNORECASE)
_SUFFIX = re.compile(r"\.\w*[a-z_]\w*~?(?::\d+)*$", re.IGNORECASE | re.ASCII)
_ONE_WORD = re.compile(r"\s*[\w.-]*\s*")
# Tuples are the fastest for `isinstance`, with the dictionary first.
_OBJECTS = (dict, Mapping)


def read_hint(reader: CallReader, arguments: Any) -> Reading:
    """Return what the name and the arguments of a call hint at; ``read_only`` without a hint."""
    if reader.broken:
        return NOT_JSON
    return strongest([_file_hint(reader, arguments), _run_hint(reader, arguments)])


def _file_hint(reader: CallReader, arguments: Any) -> Reading:
    """Return what a call does with the files that it names.

    With a file, a verb that edits makes it an edit of that file, as one that creates does together
    with new content. A file and one of the two make it ``unknown``, and so does a path that need
    not be a file's.
    """
    found: dict[str, str] = {}
    _find(arguments, found, _DEPTH)
    written = found.get("content")
    if not written and name_words(reader.tool).isdisjoint(_words("not_files")):
        # The body of a comment has a file, too.
        written = found.get("payload")
    verb, edits = _edit_verb(reader.tool) if "file" in found else ("", False)
    if "file" not in found or not (verb or written):
        return READ_ONLY
    seen = [f"a file (`{found['file']}`)"]
    seen += [f"content (`{written}`)"] if written else []
    seen += [f"`{verb}` in its name"] if verb else []
    detail = f"no rule knows it; it has {' and '.join(seen)}"
    if verb and (edits or "content" in found):
        files = filter(_is_file, files_in(arguments, MOST_FILES))
        reading = strongest(map(reader.classes.target_label, files))
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
        kinds = argument_kinds(key)
        for kind in kinds:
            if kind != "file" or any(map(_is_local, files_in(item, MOST_FILES))):
                found.setdefault(kind, key)
        if kinds and not isinstance(item, str):
            _find(item, found, depth - 1)
            if "file" not in found and any(map(_is_local, files_in({key: item}, MOST_FILES))):
                found["file"] = key


def _is_local(path: str) -> bool:
    """Return whether a value can be a path, and not an address of something else."""
    scheme = _SCHEME.match(path)
    return scheme is None or scheme[1].lower() in load_table("arguments")["file_schemes"]


def _is_file(path: str) -> bool:
    """Return whether a path looks like a file's: it has a suffix, or a name that is known."""
    if not _is_local(path):
        return False
    name = re.split(r"[/\\]", path.rstrip())[-1]
    return bool(_SUFFIX.search(name)) or name.lower() in load_table("arguments")["bare_files"]


def _edit_verb(name: str) -> tuple[str, bool]:
    """Return the word of a tool's name that edits or creates files, and whether it edits."""
    table, words = load_table("names"), last_words(name)
    if words[0] in table["verbs"] or not name_words(name).isdisjoint(_words("not_files")):
        return "", False
    edits = next((word for word in words if word in table["edit_words"]), "")
    creates = words[0] if words[0] in table["front_words"] else ""
    creates = creates or next((word for word in words if word in table["create_words"]), "")
    return edits or creates, bool(edits)


@cache
def _words(kind: str) -> frozenset[str]:
    return frozenset(load_table("names")[kind])


def _run_hint(reader: CallReader, arguments: Any) -> Reading:
    """Return what a call runs.

    A tool whose name says that it runs something does what its command does. Of any other, and of
    one that only shows, an effect makes it ``unknown``.
    """
    words = name_words(reader.tool)
    runs = not words.isdisjoint(_words("run_words")) and words.isdisjoint(_words("not_shells"))
    shows = last_words(reader.tool)[0] in load_table("names")["verbs"]
    if shows and not runs:
        return READ_ONLY
    texts = _runnable(arguments, _DEPTH)
    reading = strongest(_read_text(reader, *text, runs=runs) for text in islice(texts, _KEYS))
    if (runs and not shows) or reader.budget.spent:
        return reading
    if label_rank(reading.label) < label_rank("unknown"):
        detail = f"no rule knows it; if it runs this, {reading.detail or reading.label}"
        return Reading(label="unknown", word=reading.word, detail=detail)
    return READ_ONLY


def _runnable(value: Any, depth: int) -> Iterator[tuple[str, Any, str]]:
    """Yield the key, the text and the kind of what may be run, and the language if it is said."""
    if not depth or not isinstance(value, _OBJECTS):
        return
    shells = load_table("arguments")["shell_languages"]
    keys = [(key, item, argument_kinds(key)) for key, item in islice(value.items(), _KEYS)]
    shell = any(
        "language" in kinds and isinstance(item, str) and item.strip().lower() in shells
        for _, item, kinds in keys
    )
    for key, item, kinds in keys:
        if "runs" in kinds or ("runs_code" in kinds and shell):
            yield fold_name(key), item, "command"
        elif "runs_code" in kinds:
            yield fold_name(key), item, "code"
        elif "holder" in kinds:
            yield from _runnable(item, depth - 1)


def _read_text(reader: CallReader, key: str, value: Any, kind: str, *, runs: bool) -> Reading:
    """Return what a command or a program text does."""
    if isinstance(value, str):
        if _ONE_WORD.fullmatch(value) and not (runs and command_table().knows(value.strip())):
            # A subcommand of the tool, such as `view`.
            return READ_ONLY
        if program := load_table("arguments")["without_program"].get(key):
            value = f"{program} {value}"
    elif not isinstance(value, list) or not value:
        return READ_ONLY
    shell = not name_words(reader.tool).isdisjoint(_words("shell_words"))
    if kind == "command" or shell:
        return reader.shell(value, several=key in {"commands", "cmds"})
    reading = reader.code(value)
    if runs or reading.label != "unknown":
        return reading
    # A script of a shell, perhaps; other languages look like one, too.
    return reader.shell(value)
