"""What is known while one command is read: variables, directory, written files, effects."""

from __future__ import annotations

import posixpath
from typing import Any, Generic, TypeVar

import msgspec

from switchyard_core.mutation.budget import TOO_MUCH, Budget
from switchyard_core.mutation.labels import Reading
from switchyard_core.mutation.paths import PathClasses, clean_path

__all__ = ["MAX_DEPTH", "NO_INPUT", "Decided", "Input", "Scope", "Session"]

#: Shells in interpreters in shells that are followed.
MAX_DEPTH = 12
#: Effects that one command may have before further ones are dropped.
_MAX_READINGS = 2000
#: Characters of a directory that is followed; no system has longer ones.
_MAX_PATH = 4096
#: Steps that it takes to say what a written path is.
_WRITE = 6
#: Characters of a written file that are kept.
_MAX_FILE = 64 * 1024


class Decided(Exception):  # noqa: N818 - an outcome, not an error
    """The rest need not be read: nothing can outdo an edit, or the budget is spent."""


class Input(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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


V = TypeVar("V")


class Scope(msgspec.Struct, Generic[V], eq=False):
    """Names and their values in a shell; what a shell inside it sets does not last.

    Args:
        outer: The shell around it.
        own: What is set in this one.
    """

    outer: Scope[V] | None = None
    own: dict[str, V] = msgspec.field(default_factory=dict)

    def get(self, name: str) -> V | None:
        """Return the value of a name, if it has one."""
        scope: Scope[V] | None = self
        while scope is not None:
            if name in scope.own:
                return scope.own[name]
            scope = scope.outer
        return None

    def __setitem__(self, name: str, value: V) -> None:
        self.own[name] = value

    def __bool__(self) -> bool:
        return bool(self.own) or (self.outer is not None and bool(self.outer))


class Session(msgspec.Struct, kw_only=True, eq=False):
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
    variables: Scope[str] = msgspec.field(default_factory=Scope)
    functions: Scope[Any] = msgspec.field(default_factory=Scope)
    files: dict[str, str] = msgspec.field(default_factory=dict)
    directory: str = ""
    readings: list[Reading] = msgspec.field(default_factory=list)
    depth: int = 0
    running: set[str] = msgspec.field(default_factory=set)
    budget: Budget = msgspec.field(default_factory=Budget)

    def spend(self, steps: int = 1) -> None:
        """Take some steps from the budget.

        Raises:
            Decided: It is spent; the rest of the command is not read.
        """
        if not self.budget.spend(steps):
            self.add("unknown", "shell", TOO_MUCH)
            raise Decided

    def add(self, label: str, word: str, detail: str = "", *, placed: bool = False) -> None:
        """Record an effect.

        Args:
            label: What it is; what is no edit of a file, such as ``git init``, is a scratch
                write in a scratch directory.
            word: What has it.
            detail: For a person.
            placed: The label already knows the place.

        Raises:
            Decided: It is an edit.
        """
        # An edit by `git apply` stays one: whole workspaces lie under /tmp.
        if not placed and self.directory and label == "file_write_other":
            label = "scratch_write" if self.classes.is_scratch(f"{self.directory}/x") else label
        if label != "read_only" and len(self.readings) < _MAX_READINGS:
            self.readings.append(Reading(label=label, word=word, detail=detail))
        if label == "file_edit":
            raise Decided

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
        placed = bool(path)
        self.add(label, word, f"{word} writes {path or 'a file'}", placed=placed)
        # Behind the effect: an edit counts even if nothing is left to pay for it.
        self.spend(_WRITE)
        return label

    def resolve(self, path: str) -> str:
        """Return a path seen from where the command began."""
        path = clean_path(path)
        if not self.directory or path.startswith(("/", "~", "$", "%")) or path[1:2] == ":":
            return path
        if path in {"-", ""}:
            return path
        return posixpath.normpath(posixpath.join(self.directory, path))

    def remember(self, path: str, text: str) -> None:
        """Keep the start of what a file was given."""
        self.files[self.resolve(path)] = text[:_MAX_FILE]

    def enter(self, path: str) -> None:
        """Change the directory, as ``cd`` does."""
        place = self.resolve(path) if path not in {"", "-"} else ""
        self.directory = place if len(place) <= _MAX_PATH else ""

    def inner(self) -> Session:
        """Return a session for a shell inside this one; effects are shared, state is not."""
        return Session(
            classes=self.classes,
            variables=Scope(self.variables),
            functions=Scope(self.functions),
            files=self.files,
            directory=self.directory,
            readings=self.readings,
            depth=self.depth + 1,
            running=self.running,
            budget=self.budget,
        )
