"""Files that answer in a provider's place: how scripts and recordings are read and checked.

Whatever a file holds is noticed when it is read, with its line and column: a server that plays
it is not the one to find that an answer cannot be sent.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from switchyard_core.errors import Finding
from switchyard_core.identity import HEADER_NAME
from switchyard_core.jsonio.positions import locate_all

__all__ = [
    "MAX_DEPTH",
    "Problem",
    "UnreadableError",
    "answer_problems",
    "findings_of",
    "header_problem",
    "is_deeper",
    "parsed",
    "printable",
    "read_played",
]

#: Deepest nesting of what is played; readers of JSON stop somewhere, each at its own depth.
MAX_DEPTH = 100
#: Most problems of one file that are told.
MOST_FINDINGS = 200

#: Statuses of answers that have no body.
_BODILESS = frozenset({204, 304})
#: Headers that say how a body is sent; who sends it sets them.
_FRAMING = frozenset(
    {"connection", "content-encoding", "keep-alive", "proxy-connection", "te", "trailer",
     "transfer-encoding", "upgrade"}
)  # fmt: skip
# As HTTP has it: visible characters, spaces between them, and what is Latin-1 beyond ASCII.
_HEADER_VALUE = re.compile(r"(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?")
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
# Words and numbers that Python reads and others do not, or the other way round.
_ODD = re.compile(r'"(?:[^"\\]|\\.)*+"|(?P<odd>-?Infinity|NaN|-?[0-9]{4301,})', re.DOTALL)
_WIDEST = 80


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong at a place of a file."""

    path: tuple[str | int, ...]  # Keys and indices from the root
    message: str  # What is wrong, one sentence, lower case, no final stop
    fix: str
    code: str
    notes: tuple[str, ...] = ()


class UnreadableError(ValueError):
    """A file cannot be read, or is not usable JSON; the message follows the name of the file."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        self.message = message
        self.line = line
        self.column = column
        super().__init__(message)


def read_played(path: str | os.PathLike[str]) -> str:
    """Return the text of a file; it does not wait for anything but an ordinary file."""
    try:
        data = _read(Path(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise UnreadableError(f"cannot be read: {reason}") from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = _place(data[: error.start].decode("utf-8"))
        raise UnreadableError("cannot be read: it is not UTF-8", *place) from error


def _read(path: Path) -> bytes:
    # Without waiting for a writer of a pipe; the file may become one after the first look.
    _check_ordinary(path.stat().st_mode)
    how = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, os.O_RDONLY | how)
    with os.fdopen(descriptor, "rb") as file:
        _check_ordinary(os.fstat(descriptor).st_mode)
        return file.read()


def _check_ordinary(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not an ordinary file")


def parsed(text: str, depth: int = MAX_DEPTH) -> Any:
    """Return a JSON text as a tree."""
    try:
        tree = json.loads(text, parse_constant=_refused)
    except RecursionError:
        tree = None
    except json.JSONDecodeError as error:
        message = f"is not JSON: {error.msg.lower()}"
        raise UnreadableError(message, error.lineno, error.colno) from None
    except (_OddError, ValueError):
        found = next((each for each in _ODD.finditer(text) if each["odd"]), None)
        place = _place(text[: found.start()]) if found is not None else (0, 0)
        word = found["odd"] if found is not None and not found["odd"].strip("-").isdigit() else ""
        what = f"`{word}`" if word else "a number with thousands of digits"
        raise UnreadableError(f"is not portable JSON: it contains {what}", *place) from None
    else:
        if not is_deeper(tree, depth):
            return tree
    place = _place(text[: _deep_place(text, depth)])
    raise UnreadableError(f"is nested more than {depth} levels deep", *place)


class _OddError(Exception):
    """A word that Python takes for a number; no ``ValueError``, which has other causes."""


def _refused(_word: str) -> Any:
    raise _OddError


def is_deeper(tree: Any, depth: int = MAX_DEPTH) -> bool:
    """Return whether a tree is nested more deeply than some levels, however deep it is."""
    level = [tree]
    for _ in range(depth + 1):
        level = [each for each in level if isinstance(each, dict | list)]
        if not level:
            return False
        level = [
            child for each in level for child in (each.values() if isinstance(each, dict) else each)
        ]
    return True


def _deep_place(text: str, depth: int) -> int:
    level = 0
    for match in _BRACKET.finditer(text):
        if match[0] in "{[":
            level += 1
            if level > depth:
                return match.start()
        elif match[0] in "}]":
            level -= 1
    return 0


def _place(before: str) -> tuple[int, int]:
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def findings_of(text: str, file: str, problems: Iterable[Problem]) -> tuple[Finding, ...]:
    """Return problems as findings, sorted by position, with the text of the file at hand."""
    told: list[Problem] = []
    for problem in problems:
        told.append(problem)
        if len(told) == MOST_FINDINGS:
            break
    places = locate_all(text, [problem.path for problem in told])
    found = [
        Finding(
            code=problem.code,
            message=printable(problem.message, None),
            file=file,
            line=line,
            column=column,
            path=_dotted(problem.path),
            notes=tuple(printable(note, None) for note in problem.notes),
            fix=printable(problem.fix, None),
        )
        for problem, (line, column) in zip(told, places, strict=True)
    ]
    return tuple(sorted(found, key=lambda finding: (finding.line, finding.column)))


def _dotted(path: tuple[str | int, ...]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{printable(step)}" for step in path)
    return "".join(steps).removeprefix(".")


def printable(text: str, widest: int | None = _WIDEST) -> str:
    """Return what a file says as a message may repeat it: on one line, and short."""
    plain = "".join(char if char.isprintable() else "?" for char in text)
    return plain if widest is None or len(plain) <= widest else plain[: widest - 1] + "…"


def header_problem(name: str, value: Any) -> str:
    """Return why a header cannot be played, ``""`` when it can."""
    shown = printable(name)
    if not HEADER_NAME.fullmatch(name):
        return f"`{shown}` is not the name of a header"
    if name.lower() in _FRAMING:
        return f"the header `{shown}` describes how a body is sent, and is set by the sender"
    if not isinstance(value, str):
        return f"the value of the header `{shown}` must be a string"
    if not _HEADER_VALUE.fullmatch(value):
        return f"the header `{shown}` has characters that a header cannot contain"
    return ""


def answer_problems(
    status: int, headers: dict[str, Any], size: int
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the place and the message of all that keeps an answer from being sent."""
    if status in _BODILESS and size:
        yield ("status",), f"an answer with status {status} has no body"
    names: set[str] = set()
    for name, value in headers.items():
        problem = header_problem(name, value)
        if not problem and name.lower() in names:
            problem = f"the header `{name}` appears twice; header names are case-insensitive"
        if not problem and name.lower() == "content-length" and value != str(size):
            problem = f"`content-length` is `{printable(value)}`, and the body has {size} bytes"
        names.add(name.lower())
        if problem:
            yield ("headers", name), problem
