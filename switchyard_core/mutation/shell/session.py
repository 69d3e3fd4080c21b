"""The state while one command is read: budget, variables, directory, files and effects."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from switchyard_core.mutation.labels import Reading
from switchyard_core.mutation.paths import PathClasses, clean_path, is_absolute

__all__ = [
    "NO_INPUT",
    "STANDARD_INPUT",
    "STEPS",
    "TOO_MUCH",
    "Budget",
    "Decided",
    "Input",
    "Reader",
    "Session",
]

#: Steps for one command or script; a step takes one or two microseconds.
STEPS = 10_000
#: Detail of a verdict on a call that was read in part.
TOO_MUCH = "too much to be read whole"
TOO_DEEP = "nested too deeply"
#: Maximum depth of shells and interpreters.
MAX_DEPTH = 12
#: Effects that one command may have before further ones are dropped.
_MAX_READINGS = 2000
#: Maximum length of a directory, as in operating systems.
_MAX_PATH = 4096
#: Steps to label a written path.
_WRITE = 6
#: Characters of a written file that are kept.
_MAX_FILE = 64 * 1024
#: Names of standard input where a program expects a file.
STANDARD_INPUT = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})


class Budget(msgspec.Struct, kw_only=True, eq=False, gc=False):
    """What reading one command may cost; counted, so that no label depends on time."""

    #: Steps that are left; a longer action, such as running a program, costs several.
    left: int = STEPS
    #: Characters of code and of expanded variables that are left; doubling a variable forty times
    #: would fill the memory.
    text: int = 1024 * 1024

    @property
    def spent(self) -> bool:
        """Whether more was needed than there was."""
        return self.left < 0

    def spend(self, steps: int = 1) -> bool:
        """Take steps; return whether the budget allows them."""
        self.left -= steps
        return self.left >= 0

    def take(self, characters: int) -> bool:
        """Take characters; return whether the budget allows them."""
        self.text -= characters
        return self.text >= 0


class Decided(Exception):  # noqa: N818 - an outcome, not an error
    """The rest need not be read: an edit was found, or the budget is spent."""


class Input(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a program reads from standard input."""

    text: str | None = None  # its content, when the command shows it
    connected: bool = False  # whether anything is connected
    file: str | None = None  # name of the file that it comes from, if it is one


#: A program whose standard input is the terminal.
NO_INPUT = Input()


class Session(msgspec.Struct, kw_only=True, eq=False):
    """The state of a shell while its command is read."""

    classes: PathClasses  # what written paths mean
    readers: Mapping[str, Reader]  # reads a text in a dialect or language: see :meth:`read`
    word: str = "shell"  # the program that reads, for verdicts
    #: Values of variables that the command itself sets.
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    #: Parsed bodies of functions that it defines, and texts of aliases.
    functions: dict[str, Any] = msgspec.field(default_factory=dict)
    #: Content of files that it writes, by path, where the command shows it.
    files: dict[str, str] = msgspec.field(default_factory=dict)
    directory: str = ""  # after ``cd``, ``""`` for a root of the workspace
    readings: list[Reading] = msgspec.field(default_factory=list)  # every effect so far
    #: Directories outside of the workspace that the command itself makes, such as fresh clones.
    made: set[str] = msgspec.field(default_factory=set)
    depth: int = 0  # shells and interpreters around it
    #: Functions that are running, which are not entered again.
    running: set[str] = msgspec.field(default_factory=set)
    #: Steps that are left, shared by all shells of one command.
    budget: Budget = msgspec.field(default_factory=Budget)

    def read(self, text: str, dialect: str, stdin: Input = NO_INPUT) -> str | None:
        """Record the effects of a text; dialects and languages call each other by this.

        Returns the output of the script if it is known.
        """
        if self.depth > MAX_DEPTH or not self.budget.take(len(text)):
            self.add("unknown", self.word, TOO_DEEP)
            return None
        return self.readers[dialect](text, self, stdin)

    def spend(self, steps: int = 1) -> None:
        """Take steps from the budget; raise Decided when it is spent."""
        self.budget.left -= steps
        if self.budget.left < 0:
            self.add("unknown", "shell", TOO_MUCH)
            raise Decided

    def add(self, label: str, word: str, detail: str = "", *, placed: bool = False) -> None:
        """Record an effect; raise Decided for an edit, since nothing outranks it.

        In a scratch directory an effect that is not an edit, such as ``git init``, is a scratch
        write, unless the label already takes the place into account (``placed``).
        """
        if not placed and self.directory and label == "file_write_other":
            label = "scratch_write" if self.classes.is_scratch(f"{self.directory}/x") else label
        if label != "read_only" and len(self.readings) < _MAX_READINGS:
            self.readings.append(Reading(label=label, word=word, detail=detail))
        if label == "file_edit":
            raise Decided

    def write(self, path: str, word: str, *, cap: str | None = None) -> None:
        """Record that a program writes a path, ``""`` when it is unknown.

        ``cap`` is the strongest label that the write may have.
        """
        told = f"{word} writes {path or 'a file whose name cannot be seen'}"
        reading = self.classes.shell_label(self.resolve(path), told)
        label = reading.label
        if cap is not None and label == "file_edit":
            label = cap
        if label == "scratch_write" and cap == "file_write_other":
            self.made.add(self.resolve(path))
        self.add(label, word, reading.detail, placed=bool(path))
        # After the effect: an edit counts even when the budget is spent.
        self.spend(_WRITE)

    def edit(
        self,
        word: str,
        detail: str = "",
        *,
        place: str = "",
        named: Iterable[str] = (),
        repository: bool = False,
    ) -> None:
        """Record an edit of what is in a directory, by default where the shell is.

        It is a scratch write if the place is scratch and no path in ``named`` leads out of it. Of a
        ``repository`` no more is known: whole workspaces can be under ``/tmp``. There it counts as
        scratch only if it is named, the workspace is known to be elsewhere, or it was just made.
        """
        path = self.resolve(place) if place else self.directory
        known = not repository or place or self.classes.workspace or self._is_made(path)
        if path and known and self.classes.is_scratch(f"{path}/x"):
            cleaned = map(clean_path, named)
            paths = [each if is_absolute(each) else posixpath.join(path, each) for each in cleaned]
            if all(self.classes.is_scratch(posixpath.normpath(each)) for each in paths):
                self.add("scratch_write", word, f"{word} writes in {path}")
                return
        self.add("file_edit", word, detail)

    def _is_made(self, path: str) -> bool:
        return any(path == made or path.startswith(f"{made}/") for made in self.made)

    def resolve(self, path: str) -> str:
        """Return a path seen from where the command began."""
        path = clean_path(path)
        if not self.directory or is_absolute(path):
            return path
        if path in {"-", ""}:
            return path
        return posixpath.normpath(posixpath.join(self.directory, path))

    def remember(self, path: str, text: str) -> None:
        """Keep the start of what was written to a file."""
        self.files[self.resolve(path)] = text[:_MAX_FILE]

    def content(self, path: str) -> str | None:
        """Return what the command wrote to a file, if known."""
        return self.files.get(self.resolve(path)) if self.files else None

    def enter(self, path: str) -> None:
        """Change the directory, as ``cd`` does; ``-`` is where the command began."""
        began = self.classes.directory
        place = self.resolve(path) if path not in {"", "-"} else began
        self.directory = place if len(place) <= _MAX_PATH else began

    def inner(self, word: str = "shell") -> Session:
        """Return a session for a shell inside this one; effects are shared, state is not."""
        variables, functions = self.variables.copy(), self.functions.copy()
        return msgspec.structs.replace(
            self, word=word, variables=variables, functions=functions, depth=self.depth + 1
        )


#: Records the effects of a text in a session and returns its output if it is known.
Reader: TypeAlias = Callable[[str, Session, Input], str | None]
