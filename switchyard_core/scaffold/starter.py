"""What ``switchyard init`` writes: a commented policy for one client, and its tests."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path

__all__ = ["CLIENTS", "starter_files", "write_starter"]

#: Clients that there is a starter policy for: two by their wire format, three by name.
CLIENTS: tuple[str, ...] = ("codex", "claude-code", "opencode", "openai", "anthropic")


def starter_files(client: str, path: Path) -> dict[Path, str]:
    """Return the texts of a policy and of its test file, by path.

    Args:
        client: One of :data:`CLIENTS`.
        path: The policy, ``<name>.toml``; its tests are ``<name>.test.toml`` beside it.

    Raises:
        ValueError: The path is not a name for a policy; the text says what would be.
    """
    if path.suffix != ".toml" or path.stem.endswith(".test"):
        name = path.name.removesuffix(".toml").removesuffix(".test") or "policy"
        msg = f"`{path}` is not a name for a policy; did you mean `{path.with_name(name)}.toml`?"
        raise ValueError(msg)
    if not str(path).isprintable():
        msg = "the name of a policy holds printable characters only"
        raise ValueError(msg)
    tests = path.with_suffix(".test.toml")
    folder = files("switchyard_core.scaffold") / "policies"
    # The names stand in commands that people copy.
    words = {"<<file>>": shlex.quote(str(path)), "<<tests>>": shlex.quote(str(tests))}
    found = {}
    for target, ending in ((path, "toml"), (tests, "test.toml")):
        text = (folder / f"{client}.{ending}.tmpl").read_text(encoding="utf-8")
        for placeholder, word in words.items():
            text = text.replace(placeholder, word)
        found[target] = text
    return found


def write_starter(client: str, path: Path) -> tuple[Path, ...]:
    """Write a policy and its test file.

    Args:
        client: As for :func:`starter_files`.
        path: As for :func:`starter_files`.

    Returns:
        Both paths.

    Raises:
        ValueError: As for :func:`starter_files`.
        FileExistsError: One of the files is there already; nothing was written.
        OSError: A file cannot be written.
    """
    texts = starter_files(client, path)
    for target in texts:
        # A dangling link would be written through.
        if target.exists() or target.is_symlink():
            raise FileExistsError(f"`{target}` is there already")
    for target, text in texts.items():
        with target.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    return tuple(texts)
