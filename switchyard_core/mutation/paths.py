"""What a written path means: workspace file, artefact, plan document, scratch, or a device.

A path below a root of the workspace is judged as if it were written from there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import NamedTuple

from switchyard_core.mutation.labels import Reading
from switchyard_core.mutation.tables import load_table
from switchyard_core.patterns import path_classes, path_glob

__all__ = ["NO_ROOT", "PathClasses", "clean_path", "is_absolute", "is_root", "standard_path"]

#: What a verdict says of an absolute path when nobody told where the workspace is.
NO_ROOT = "no workspace root is known"
#: Paths that are already clean.
_CLEAN = re.compile(r"/?[\w-][\w.-]*+(?:/[\w-][\w.-]*+)*+", re.ASCII)
#: Classes that tell what a path is wherever the workspace is.
_PLACES = frozenset({"devices", "scratch", "dot_entries", "outside"})
#: Directories that no workspace is as a whole.
_TOO_HIGH = frozenset({"", "/"})
#: Standard spellings of absolute directories.
_ROOT = re.compile(r"[/~]|[A-Za-z]:")
#: Maximum length of a root, as in operating systems.
_MAX_PATH = 4096


def clean_path(text: str) -> str:
    """Return a path with forward slashes, without quotes, ``./`` and inner ``..``."""
    if _CLEAN.fullmatch(text):
        return text
    path = text.strip().strip("\"'")
    if "\\" in path:
        path = path.replace("\\", "/")
    for here in ("${PWD}/", "$PWD/", "$(pwd)/", "`pwd`/", "file://"):
        path = path.removeprefix(here)
    if not path:
        return ""
    directory = path.endswith("/")
    path = posixpath.normpath(path)
    return path + "/" if directory and path != "/" else path


def is_absolute(path: str) -> bool:
    """Return whether a clean path does not depend on the directory, or may not, as ``$x/a``."""
    return path[:1] in _BEGINS or path[1:2] == ":"


_BEGINS = frozenset("/~$%")


def standard_path(path: str) -> str:
    """Return the standard spelling of a clean absolute path: ``~/a`` for ``/home/dev/a``."""
    if not _spelled().match(path):
        return path
    for like, stands_for in _spellings():
        path = like.sub(stands_for, path, count=1)
    return path


def is_root(directory: str) -> bool:
    """Return whether somebody who names a root may name this directory: it is absolute."""
    return bool(_ROOT.match(standard_path(clean_path(directory))))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathClasses:
    """Labels for written paths, by globs and by where the workspace is."""

    #: Globs of temporary paths outside any workspace, such as ``/tmp/**``.
    scratch: tuple[str, ...] = ()
    artifact: tuple[str, ...] = ()  # globs of build output, logs and repository metadata
    plan: tuple[str, ...] = ()  # globs of plan documents
    workspace: tuple[str, ...] = ()  # the workspace's roots: directories that are never scratch
    directory: str = ""  # where commands start, ``""`` for a root

    def shell_label(self, path: str, told: str = "") -> Reading:
        """Return the label of a path that a shell command writes.

        ``told`` is the detail for people, by default that the path is written.
        """
        path = clean_path(path)
        told = told or f"writes {path}"
        place = self._place(path)
        if "devices" in place.classes:
            return Reading(label="read_only", word=path)
        if self._is_scratch(place):
            return Reading(label="scratch_write", word=path, detail=told)
        lowered = self._is_lowered(place) or "outside" in place.classes
        lowered = lowered or ("data" in place.classes and "fixtures" not in place.classes)
        lowered = lowered or ("/" not in place.name and "output_names" in place.classes)
        label = "file_write_other" if lowered else "file_edit"
        return Reading(label=label, word=path, detail=f"{told}{self._note(place)}")

    def target_label(self, path: str, *, scratch: bool = False) -> Reading:
        """Return the label of a path that an edit tool writes.

        ``scratch`` says whether scratch paths count; a workspace may be under ``/tmp``.
        """
        path = clean_path(path)
        place = self._place(path)
        if scratch and self._is_scratch(place):
            return Reading(label="scratch_write", word=path, detail=f"writes {path}")
        # A bare name may be any file: `out` is not an output directory here.
        bare = "/" not in place.name and "." not in place.name
        label = "file_write_other" if not bare and self._is_lowered(place) else "file_edit"
        return Reading(label=label, word=path, detail=f"writes {path}{self._note(place)}")

    def is_scratch(self, path: str) -> bool:
        """Tell whether a shell's write to the path would be a scratch write."""
        return self.shell_label(path).label == "scratch_write"

    def may_be_root(self, directory: str) -> bool:
        """Tell whether a directory that a prompt names can hold a workspace.

        A scratch directory can, but not all of them at once; agents name their plans there, too.
        """
        path = standard_path(clean_path(directory)).rstrip("/")
        if not is_absolute(path) or path[:1] in "$%" or len(path) > _MAX_PATH:
            return False
        if path in _TOO_HIGH or path[1:] == ":":
            return False
        if "scratch" in _shipped(path) and "scratch" not in _shipped(posixpath.dirname(path)):
            return False
        return "plan" not in _shipped(f"{path}/x.md")

    def within(self, workspace: tuple[str, ...]) -> PathClasses:
        """Return the classes for a workspace with further roots."""
        further = [root for root in workspace if root not in self.workspace]
        return replace(self, workspace=(*self.workspace, *further)) if further else self

    def starting_in(self, directory: str) -> PathClasses:
        """Return the classes for a call that starts in a directory.

        A directory outside the known workspace is taken for a root unless it is scratch, belongs to
        the system, or has a name that lowers a label (``/repo/dist``), as after ``cd``.
        """
        path = clean_path(directory)
        if path in {"", ".", "./"}:
            return self
        known = self.workspace
        if is_absolute(path) and self.may_be_root(path):
            place = self._place(f"{path}/x")
            if not place.inside and not _lowers(place) and _PLACES.isdisjoint(place.classes):
                known = (*known, path)
        return replace(self, workspace=known, directory=path)

    def _place(self, path: str) -> _Place:
        """Return what is known of a clean path."""
        if not is_absolute(path):
            if not (self.workspace and path.startswith("..")):
                return _Place(path, path, _shipped(path), inside=True)
            path = posixpath.normpath(posixpath.join(self.workspace[0], path))
        path = standard_path(path)
        for root, length in _roots(self.workspace):
            if path[:length].lower() == root and (path[length : length + 1] in {"", "/"}):
                name = path[length:].strip("/") or "."
                if root != "~" or name[0] != ".":
                    return _Place(name, path, _shipped(name), inside=True)
        classes = _shipped(path)
        if not _PLACES.isdisjoint(classes):
            return _Place(path, path, classes, inside=False)
        first = _first().match(path)
        name = path[first.end() :] if first else path.lstrip("~/")
        below = [each for each in _shipped(name) if each not in _PLACES] if name else []
        return _Place(name or path, path, [*classes, *below], inside=False, open=True)

    def _is_scratch(self, place: _Place) -> bool:
        if "scratch" in place.classes:
            return True
        return self._is(self.scratch, place.name if place.inside else place.path)

    def _is_lowered(self, place: _Place) -> bool:
        if place.classes and _lowers(place):
            return True
        if not (self.artifact or self.plan):
            return False
        path = place.path
        if self.workspace and not is_absolute(path):
            path = standard_path(posixpath.join(self.workspace[0], path))
        return any(
            self._is(globs, p) for globs in (self.artifact, self.plan) for p in (place.name, path)
        )

    def _note(self, place: _Place) -> str:
        return f"; {NO_ROOT}" if place.open and not self.workspace else ""

    @staticmethod
    def _is(globs: tuple[str, ...], path: str) -> bool:
        return bool(globs) and _compiled(globs)(path)


class _Place(NamedTuple):
    """Where a path is."""

    name: str  # from below the root, or what is taken for one
    path: str  # the whole path in its standard spelling
    classes: Sequence[str]
    inside: bool  # whether it is in the workspace for sure
    open: bool = False  # whether its label could depend on where the workspace is


#: Tables of the data file that are not classes.
_NOT_CLASSES = frozenset({"shelves", "spellings"})


def _lowers(place: _Place) -> bool:
    """Return whether a path is no source, whatever writes it."""
    classes = place.classes
    if "dot_entries" in classes or ("artifact" in classes and "sources" not in classes):
        return True
    if "artifact_names" in classes and "fixtures" not in classes:
        return True
    if "instructions" in classes:
        return False
    return "plan" in classes or ("plan_names" in classes and "/" not in place.name)


@lru_cache(maxsize=1024)
def _roots(workspace: tuple[str, ...]) -> list[tuple[str, int]]:
    """Return roots in their standard spelling and small letters, the innermost first."""
    paths = {standard_path(clean_path(root)).rstrip("/") for root in workspace}
    return sorted(((path.lower(), len(path)) for path in paths if path), key=lambda each: -each[1])


@cache
def _compiled(globs: tuple[str, ...]) -> Callable[[str], bool]:
    spelled = [standard_path(glob) for glob in globs]
    return path_glob([*spelled, *(f"{glob}/**" for glob in spelled if not glob.endswith("*"))])


def _shipped(path: str) -> Sequence[str]:
    found = _shipped_classes()(path)
    if found and "worktree" in found:
        return [each for each in found if each not in {"dot_entries", "outside", "worktree"}]
    return found


@cache
def _shipped_classes() -> Callable[[str], Sequence[str]]:
    table = dict(load_table("paths"))
    # Who removes the whole directory writes no more than who writes into it.
    table["artifact"] = [*table["artifact"], *(g.removesuffix("/**") for g in table["artifact"])]
    return path_classes({name: globs for name, globs in table.items() if name not in _NOT_CLASSES})


@cache
def _first() -> re.Pattern[str]:
    """Return what is in front of the path below a directory that may be a root, as `/repo/`."""
    # The longest first: `~/Documents/GitHub` before `~/Documents`.
    listed = sorted(load_table("paths")["shelves"], key=len, reverse=True)
    shelves = "|".join(shelf.replace("*", "[^/]+") for shelf in listed)
    likes = rf"[$%][^/]*|(?:{shelves})/[^/]+|(?:~|[A-Za-z]:)?/+[^/]+"
    return re.compile(rf"(?:{likes})/+", re.IGNORECASE)


@cache
def _spellings() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return other spellings of the beginning of a path and what they stand for."""
    return tuple(
        (re.compile(rf"^(?:{row['like']})(?=/|$)", re.IGNORECASE), row["stands_for"])
        for row in load_table("paths")["spellings"]
    )


@cache
def _spelled() -> re.Pattern[str]:
    likes = "|".join(row["like"] for row in load_table("paths")["spellings"])
    return re.compile(rf"(?:{likes})(?=/|$)", re.IGNORECASE)
