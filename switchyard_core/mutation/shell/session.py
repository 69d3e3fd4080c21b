"""What is known while one command is read: variables, directory, written files, effects."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import Any

from switchyard_core.mutation.labels import Reading
from switchyard_core.mutation.paths import PathClasses, clean_path

__all__ = ["MAX_DEPTH", "NO_INPUT", "Budget", "Input", "Session"]

#: Shells in interpreters in shells that are followed.
MAX_DEPTH = 12
#: Effects that one command may have before further ones are dropped.
_MAX_READINGS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What a program reads from standard input.

    Args:
        text: Its content, when the command shows it.
        connected: Whether anything is connected at all.
        file: Name of the file that it comes from, if it is one.
    """

    text: str | None = None
    connected: bool = False
    file: str | None = None


#: A program whose standard input is the terminal.
NO_INPUT = Input()


@dataclass(slots=True, kw_only=True)
class Budget:
    """Steps that reading one command may take: loops in loops would take for ever.

    Args:
        left: Steps that are left.
    """

    left: int = 100_000

    def spend(self) -> bool:
        """Take one step; return whether there was one left."""
        self.left -= 1
        return self.left >= 0


@dataclass(slots=True, kw_only=True)
class Session:
    """The state of a shell while its command is read.

    Args:
        classes: What written paths mean.
        variables: Values of variables that the command itself sets.
        functions: Parsed bodies of functions that it defines.
        files: Content of files that it writes, by path, where the command shows it.
        directory: Where it went with ``cd``, ``""`` for where it began.
        readings: Every effect so far.
        depth: How many shells and interpreters are around it.
        running: Functions that are running, which are not entered again.
        budget: Steps that are left, shared by all shells of one command.
    """

    classes: PathClasses
    variables: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    directory: str = ""
    readings: list[Reading] = field(default_factory=list)
    depth: int = 0
    running: set[str] = field(default_factory=set)
    budget: Budget = field(default_factory=Budget)

    def add(self, label: str, word: str, detail: str = "") -> None:
        """Record an effect."""
        if label != "read_only" and len(self.readings) < _MAX_READINGS:
            self.readings.append(Reading(label=label, word=word, detail=detail))

    def write(self, path: str, word: str, *, cap: str | None = None) -> str:
        """Record that a program writes a path and return the label.

        Args:
            path: As the command gives it.
            word: The program or redirection.
            cap: The most that the write may count for, ``None`` for no limit.
        """
        place = self.resolve(path)
        label = self.classes.shell_label(place).label
        if cap is not None and label == "file_edit":
            label = cap
        self.add(label, word, f"{word} writes {path or 'a file'}")
        return label

    def resolve(self, path: str) -> str:
        """Return a path seen from where the command began."""
        path = clean_path(path)
        if not self.directory or path.startswith(("/", "~", "$", "%")) or path[1:2] == ":":
            return path
        if path in {"-", ""}:
            return path
        return posixpath.normpath(posixpath.join(self.directory, path))

    def enter(self, path: str) -> None:
        """Change the directory, as ``cd`` does."""
        self.directory = self.resolve(path) if path not in {"", "-"} else ""

    def inner(self) -> Session:
        """Return a session for a shell inside this one; effects are shared, state is copied."""
        return Session(
            classes=self.classes,
            variables=dict(self.variables),
            functions=dict(self.functions),
            files=self.files,
            directory=self.directory,
            readings=self.readings,
            depth=self.depth + 1,
            running=self.running,
            budget=self.budget,
        )
