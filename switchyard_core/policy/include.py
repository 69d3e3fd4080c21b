"""Reads the files that a policy includes and puts their rule sets beside its own.

An included file has only ``[mutation_rules.<name>]`` tables and further includes, so that a
policy's clients, targets and routes are in one file. Findings name the file that they are about.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Unpack

from switchyard_core.errors import Finding, PolicyError
from switchyard_core.policy.document import MAX_BYTES, Document, Parts, is_file, read_document
from switchyard_core.policy.models import IncludedFile
from switchyard_core.policy.places import Location
from switchyard_core.policy.secrets import shown
from switchyard_core.policy.validation import validate
from switchyard_core.policy.wording import suggestion

__all__ = ["MAX_FILES", "with_included"]

#: The most files that a policy includes, directly or through others; together they may have as
#: many bytes as one policy.
MAX_FILES = 32

#: Most files in which the intended name is looked for.
_LOOKED_AT = 100
_READABLE = "check its permissions"
_INSIDE = "write a path below the folder of this file, such as `rules/mine.toml`"


def with_included(
    document: Document, base: Path, path: Path | None = None
) -> tuple[Document, list[Finding], bool]:
    """Return a document with the rule sets of its includes; nothing outside of base is read.

    The findings are about the includes; the last value is whether every file could be read, so that
    a name that is still unknown is an error.
    """
    if not _entries(document):
        return document, [], True
    own = document.tables("mutation_rules")
    reading = _Reading(base=base, root=_resolved(base) or base, homes=dict.fromkeys(own, document))
    real = None if path is None else _resolved(path)
    reading.follow(document, PurePosixPath(), () if real is None else (real,))
    values = document.values
    if isinstance(values.get("mutation_rules", {}), dict):
        values = {**values, "mutation_rules": {**own, **reading.rule_sets}}
    homes = {name: reading.homes[name] for name in reading.rule_sets}
    whole = replace(document, values=values, homes=homes, included=tuple(reading.files))
    return whole, reading.findings, reading.complete


def _entries(document: Document) -> list[tuple[int, str]]:
    raw = document.values.get("include")
    found = enumerate(raw if isinstance(raw, list) else ())
    return [(index, text) for index, text in found if isinstance(text, str)]


def _resolved(path: Path) -> Path | None:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return None


@dataclass(slots=True, kw_only=True)
class _Reading:
    base: Path  # the policy's folder as it was given, for names of files
    root: Path  # the same folder without symbolic links
    complete: bool = True
    findings: list[Finding] = field(default_factory=list)
    files: list[Document] = field(default_factory=list)
    rule_sets: dict[str, Any] = field(default_factory=dict)
    homes: dict[str, Document] = field(default_factory=dict)  # by rule set
    places: dict[Path, str] = field(default_factory=dict)  # where each file was first included
    entries: int = 0
    size: int = 0  # in bytes
    names: dict[PurePosixPath, list[str]] = field(default_factory=dict)  # TOML files by folder

    def follow(self, holder: Document, folder: PurePosixPath, chain: tuple[Path, ...]) -> None:
        """Read what a document includes."""
        for index, text in _entries(holder):
            location = ("include", index)
            if self.entries >= MAX_FILES:
                self._too_many(holder, location)
                return
            self.entries += 1
            found = self._find(holder, location, folder, chain)
            if found is None:
                continue
            relative = folder / text
            self.places[found] = holder.where(location)
            part = self._read(holder, location, relative, found)
            if part is not None:
                self.files.append(part)
                self._take(part)
                self.follow(part, relative.parent, (*chain, found))

    def _find(
        self, holder: Document, location: Location, folder: PurePosixPath, chain: tuple[Path, ...]
    ) -> Path | None:
        """Return the real path of an include, or report why it cannot be used."""
        text = str(holder.values["include"][location[1]])
        inside = bool(text.strip()) and not _is_elsewhere(text)
        real = _resolved(self.root / folder / text) if inside else None
        notes: tuple[str, ...] = ()
        if not text.strip():
            code, message, fix = "SY108", "must not be blank", _INSIDE
        elif not inside:
            message = f"`{shown(text)}` is not a relative path inside the policy's folder"
            code, fix = "SY111", _INSIDE
        elif real is not None and not real.is_relative_to(self.root):
            message = f"`{shown(text)}` leads out of the policy's folder"
            code, fix = "SY111", "replace the symbolic link with the file"
        elif real is None or not is_file(real):
            message = f"unknown include `{shown(text)}`: there is no such file"
            otherwise = "check the path, or write the file"
            code, fix = "SY110", suggestion(text, self._near(folder), otherwise)
        elif real in chain:
            first = self.places.get(real)
            notes = (f"first included at {first}",) if first else ("it is the policy itself",)
            message, fix = f"`{shown(text)}` includes itself", "remove this include"
            code = "SY112"
        elif real in self.places:
            notes = (f"first included at {self.places[real]}",)
            message = f"`{shown(text)}` is included twice"
            fix = "remove one of them; the whole policy sees included rule sets"
            code = "SY112"
        else:
            return real
        self._report(holder, code, message, location, notes=notes, fix=fix)
        # A file that was already read is complete.
        self.complete = self.complete and real in (*chain, *self.places)
        return None

    def _too_many(self, holder: Document, location: Location) -> None:
        # Once is enough: the rest is not read.
        if self.entries == MAX_FILES:
            message = f"the policy includes more than {MAX_FILES} files"
            self._report(holder, "SY101", message, location, fix="merge some of them")
        self.entries = MAX_FILES + 1
        self.complete = False

    def _read(
        self, holder: Document, location: Location, relative: PurePosixPath, real: Path
    ) -> Document | None:
        try:
            self.size += real.stat().st_size
            if self.size <= MAX_BYTES:
                return read_document(self.base / relative)
            message = f"the included files are larger than {MAX_BYTES} bytes"
            self._report(holder, "SY101", message, location, fix="include less")
        except OSError:
            self._report(holder, "SY110", "cannot read the file", location, fix=_READABLE)
        except PolicyError as error:
            for finding in error.findings:
                if finding.code == "SY100":
                    self._report(holder, "SY110", finding.message, location, fix=_READABLE)
                else:
                    self.findings.append(finding)
        self.complete = False
        return None

    def _take(self, part: Document) -> None:
        """Check the shape of an included file and add its rule sets."""
        raw = part.values.get("mutation_rules")
        # Only the shape at the top; each rule set is validated by its own model.
        shape = {k: {} if isinstance(v, dict) else v for k, v in part.values.items()}
        self.findings += validate(part, (), IncludedFile, shape)[1]
        for name, rule_set in raw.items() if isinstance(raw, dict) else ():
            first = self.homes.setdefault(name, part)
            if first is part:
                self.rule_sets[name] = rule_set
                continue
            place = ("mutation_rules", name)
            notes = (f"first declared at {first.where(place, at_key=True)}",)
            self.findings.append(
                part.finding(
                    "SY113",
                    f"rule set `{shown(name)}` is declared twice",
                    place,
                    at_key=True,
                    notes=notes,
                    fix="rename or remove one of them",
                )
            )

    def _near(self, folder: PurePosixPath) -> list[str]:
        """Return the TOML files below a folder, as an include would name them."""
        if folder not in self.names:
            here = self.root / folder
            walk = islice(_toml_files(here), _LOOKED_AT)
            self.names[folder] = sorted(path.relative_to(here).as_posix() for path in walk)
        return self.names[folder]

    def _report(
        self, holder: Document, code: str, message: str, location: Location, **parts: Unpack[Parts]
    ) -> None:
        self.findings.append(holder.finding(code, message, location, **parts))


def _toml_files(folder: Path) -> Iterator[Path]:
    # A policy may be at the top of a home folder, so the number of folders is limited.
    for path, folders, names in islice(os.walk(folder), 200):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(path, name) for name in sorted(names) if name.endswith(".toml"))


def _is_elsewhere(text: str) -> bool:
    """Return whether a path is absolute on any system or leads upwards."""
    windows = PureWindowsPath(text)
    rooted = text.startswith(("/", "~")) or bool(windows.drive or windows.root)
    # A backslash separates folders on one system only, so the policy would not be portable.
    return rooted or "\\" in text or ".." in PurePosixPath(text).parts
