"""What a written path means: workspace file, artefact, plan document, scratch, or a device."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from switchyard_core.mutation.labels import Reading
from switchyard_core.mutation.tables import load_table
from switchyard_core.patterns import path_classes, path_glob

__all__ = ["PathClasses", "clean_path"]

#: Placeholder for home directories in the globs of the table.
_HOME = "<home>"
_DRIVE = re.compile(r"^[A-Za-z]:/")
#: Paths that are already clean.
_CLEAN = re.compile(r"/?[\w-][\w.-]*+(?:/[\w-][\w.-]*+)*+", re.ASCII)


def clean_path(text: str) -> str:
    """Return a path with forward slashes, without quotes, ``./`` and inner ``..``."""
    if _CLEAN.fullmatch(text):
        return text
    path = text.strip().strip("\"'")
    if "\\" in path:
        path = path.replace("\\", "/")
    for here in ("${PWD}/", "$PWD/", "$(pwd)/", "`pwd`/"):
        path = path.removeprefix(here)
    if not path:
        return ""
    directory = path.endswith("/")
    path = posixpath.normpath(path)
    return path + "/" if directory and path != "/" else path


@dataclass(frozen=True, slots=True, kw_only=True)
class PathClasses:
    """Labels for written paths, by globs."""

    #: Globs of temporary paths outside any workspace, such as ``/tmp/**``.
    scratch: tuple[str, ...] = ()
    artifact: tuple[str, ...] = ()  # globs of build output, logs and repository metadata
    plan: tuple[str, ...] = ()  # globs of plan documents
    workspace: tuple[str, ...] = ()  # globs that are workspace although a scratch glob matches

    def shell_label(self, path: str) -> Reading:
        """Return the label of a path that a shell command writes."""
        path = clean_path(path)
        shipped = _shipped(path)
        if "devices" in shipped:
            return Reading(label="read_only", word=path)
        if self._scratch(path, shipped):
            return Reading(label="scratch_write", word=path, detail=f"writes {path}")
        lowered = self._lowered(path, shipped) or "data" in shipped or "outside" in shipped
        lowered = lowered or ("/" not in path and "output_names" in shipped)
        label = "file_write_other" if lowered else "file_edit"
        return Reading(label=label, word=path, detail=f"writes {path}")

    def target_label(self, path: str, *, scratch: bool = False) -> Reading:
        """Return the label of a path that an edit tool writes.

        ``scratch`` says whether scratch paths count; a workspace may be under ``/tmp``.
        """
        path = clean_path(path)
        shipped = _shipped(path)
        if scratch and self._scratch(path, shipped):
            return Reading(label="scratch_write", word=path, detail=f"writes {path}")
        # A bare name may be any file: `out` is not an output directory here.
        bare = "/" not in path and "." not in path
        label = "file_write_other" if not bare and self._lowered(path, shipped) else "file_edit"
        return Reading(label=label, word=path, detail=f"writes {path}")

    def is_scratch(self, path: str) -> bool:
        """Tell whether a shell's write to the path would be a scratch write."""
        return self.shell_label(path).label == "scratch_write"

    def _scratch(self, path: str, shipped: Sequence[str]) -> bool:
        if self._is(self.workspace, path):
            return False
        return "scratch" in shipped or self._is(self.scratch, path)

    def _lowered(self, path: str, shipped: Sequence[str]) -> bool:
        if path[1:2] == ":":
            path = _DRIVE.sub("/", path)
            shipped = _shipped(path)
        if shipped and ("artifact" in shipped or "plan" in shipped):
            return True
        own = self.artifact or self.plan
        return bool(own) and (self._is(self.artifact, path) or self._is(self.plan, path))

    @staticmethod
    def _is(globs: tuple[str, ...], path: str) -> bool:
        return bool(globs) and _compiled(globs)(path)


@cache
def _compiled(globs: tuple[str, ...]) -> Callable[[str], bool]:
    expanded = [*globs, *(f"{glob}/**" for glob in globs if not glob.endswith("*"))]
    return path_glob(expanded)


def _shipped(path: str) -> Sequence[str]:
    return _shipped_classes()(path)


@cache
def _shipped_classes() -> Callable[[str], Sequence[str]]:
    table = dict(load_table("paths"))
    homes = [f"/{home}" for home in table.pop("homes")]
    return path_classes(
        {
            name: [
                glob.replace(_HOME, h) for glob in globs for h in (homes if _HOME in glob else "-")
            ]
            for name, globs in table.items()
        }
    )
