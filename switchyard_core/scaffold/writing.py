"""Writes the files of a new plugin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from switchyard_core.scaffold.names import PluginNames

__all__ = ["plugin_files", "write_plugin"]

#: The folder of the templates that becomes the import package.
_PACKAGE = "package"
#: Keeps tools from taking a template for what it becomes.
_SUFFIX = ".tmpl"


def plugin_files(names: PluginNames) -> Mapping[PurePosixPath, str]:
    """Return the text of every file of a new plugin, by its path in the distribution."""
    found = {}
    for path, template in _templates(files("switchyard_core.scaffold") / "plugin"):
        parts = [names.module if part == _PACKAGE else part for part in path.parts]
        text = template.read_text(encoding="utf-8")
        for placeholder, word in names.replacements.items():
            text = text.replace(placeholder, word)
        found[PurePosixPath(*parts)] = text
    return dict(sorted(found.items()))


def write_plugin(names: PluginNames, folder: Path) -> tuple[Path, ...]:
    """Write a new plugin.

    Args:
        names: What it is called.
        folder: Becomes the folder of the distribution; absent or empty.

    Returns:
        The files, relative to the folder.

    Raises:
        FileExistsError: The folder holds something already; nothing was written.
        OSError: A file cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"`{folder}` is there already and is not empty")
    written = []
    for path, text in plugin_files(names).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")
        written.append(Path(path))
    return tuple(written)


def _templates(folder: Traversable) -> Iterator[tuple[PurePosixPath, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            for path, template in _templates(entry):
                yield PurePosixPath(entry.name) / path, template
        elif entry.name.endswith(_SUFFIX):
            yield PurePosixPath(entry.name.removesuffix(_SUFFIX)), entry
