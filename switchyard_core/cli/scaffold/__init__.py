"""What ``switchyard init`` and ``switchyard new-plugin`` write, from templates shipped as data.

A policy for one client with its tests, from ``policies/``; and a route plugin that installs and
passes its tests, from ``plugin/``: ``<<type>>``, ``<<distribution>>``, ``<<module>>`` and
``<<class>>`` in their text are replaced by the plugin's names.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

__all__ = [
    "CLIENTS",
    "PluginNames",
    "nearest_name",
    "plugin_files",
    "plugin_names",
    "starter_files",
    "write_plugin",
    "write_starter",
]

#: Clients with a starter policy: two by their wire format, three by name.
CLIENTS: tuple[str, ...] = ("codex", "claude-code", "opencode", "openai", "anthropic")


def starter_files(client: str, path: Path) -> dict[Path, str]:
    """Return the texts of a policy ``<name>.toml`` and of its test file, by path.

    Raises:
        ValueError: The path is not a valid name for a policy; the message suggests one.
    """
    if path.suffix != ".toml" or path.stem.endswith(".test"):
        name = path.name.removesuffix(".toml").removesuffix(".test") or "policy"
        near = f"{path.with_name(name)}.toml"
        msg = f"`{path}` is not a valid name for a policy; did you mean `{near}`?"
        raise ValueError(msg)
    if not str(path).isprintable():
        msg = "the name of a policy may only contain printable characters"
        raise ValueError(msg)
    tests = path.with_suffix(".test.toml")
    folder = files(__name__) / "policies"
    # The names are part of commands that people copy.
    words = {"<<file>>": shlex.quote(str(path)), "<<tests>>": shlex.quote(str(tests))}
    return {
        target: _filled(folder / f"{client}.{ending}.tmpl", words)
        for target, ending in ((path, "toml"), (tests, "test.toml"))
    }


def _filled(template: Traversable, words: Mapping[str, str]) -> str:
    text = template.read_text(encoding="utf-8")
    for placeholder, word in words.items():
        text = text.replace(placeholder, word)
    return text


def write_starter(client: str, path: Path) -> tuple[Path, ...]:
    """Write a policy and its test file and return both paths; see :func:`starter_files`.

    Raises:
        FileExistsError: One of the files already exists; nothing was written.
    """
    texts = starter_files(client, path)
    for target in texts:
        # A dangling link would be written through.
        if target.exists() or target.is_symlink():
            raise FileExistsError(f"`{target}` already exists")
    for target, text in texts.items():
        with target.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    return tuple(texts)


#: Maximum length of a name, in characters.
MAX_LENGTH = 40

_LEGAL = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_PREFIX = re.compile(r"(?:switchyard|[-0-9])+")
_OTHER = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginNames:
    """The names of a plugin."""

    type: str
    distribution: str
    module: str
    class_prefix: str


def plugin_names(name: str) -> PluginNames:
    """Return the names of the plugin ``name``: lower-case words joined by hyphens or underscores.

    Raises:
        ValueError: The name is not valid; the message suggests one.

    Example:
        >>> plugin_names("by-hour").module
        'switchyard_by_hour'
    """
    if not _LEGAL.fullmatch(name) or len(name) > MAX_LENGTH or _PREFIX.match(name):
        rule = "lower-case words of letters and digits, joined by hyphens, "
        rule += f"at most {MAX_LENGTH} characters, without the prefix `switchyard`"
        msg = f"`{name}` is not a valid name for a plugin: use {rule}"
        raise ValueError(f"{msg}; did you mean `{nearest_name(name)}`?")
    words = re.split("[-_]", name)
    # A plugin called `by-hour-router` should not have the class `ByHourRouterRouter`.
    spoken = words[:-1] if len(words) > 1 and words[-1] == "router" else words
    return PluginNames(
        type="_".join(words),
        distribution="-".join(["switchyard", *words]),
        module="_".join(["switchyard", *words]),
        class_prefix="".join(word.capitalize() for word in spoken),
    )


def nearest_name(name: str) -> str:
    """Return the valid name that is nearest to any text."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    words = _OTHER.sub("-", plain).strip("-")
    prefix = _PREFIX.match(words)
    words = words[prefix.end() :] if prefix else words
    return words[:MAX_LENGTH].rstrip("-") or "my-router"


#: The folder of the templates that becomes the import package.
_PACKAGE = "package"
#: Without it, tools would treat a template as source code.
_SUFFIX = ".tmpl"


def plugin_files(names: PluginNames) -> Mapping[PurePosixPath, str]:
    """Return the text of every file of a new plugin, by its path in the distribution."""
    words = {
        "<<type>>": names.type,
        "<<distribution>>": names.distribution,
        "<<module>>": names.module,
        "<<class>>": names.class_prefix,
    }
    found = {}
    for path, template in _templates(files(__name__) / "plugin"):
        parts = [names.module if part == _PACKAGE else part for part in path.parts]
        found[PurePosixPath(*parts)] = _filled(template, words)
    return dict(sorted(found.items()))


def write_plugin(names: PluginNames, folder: Path) -> tuple[Path, ...]:
    """Write a new plugin and return its files, relative to the folder.

    Raises:
        FileExistsError: The folder is not empty; nothing was written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"`{folder}` already exists and is not empty")
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
