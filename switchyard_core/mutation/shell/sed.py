"""Reads scripts of sed: the files that they write, and the commands that they run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from switchyard_core.mutation.shell.session import Input, Session

__all__ = ["read_sed"]

#: Steps for a command of the script.
_COMMAND = 2
#: Commands of a script that are read, and lines of input that a script runs.
_MOST_COMMANDS = 500
_MOST_LINES = 8
_TELLING = re.compile(r"[wWe]")
_ADDRESS = re.compile(
    r"(?:[\s;{}]|(?:\d+|\$)(?:~\d+)?|[,+~!]|/(?:\[\^?\]?[^\]\n]{0,60}\]|[^/\\\n]|\\.)*+/[IM]*|\\(?!\n)(?P<sign>.))",
    re.DOTALL,
)
_LINE = re.compile(r"[^\n]*")
#: The text of `a`, `i` and `c`: lines that end in a backslash go on.
_TEXT = re.compile(r"(?:[^\\\n]|\\.)*", re.DOTALL)
_LABEL = re.compile(r"[^;}\n]*")
_FLAGS = re.compile(r"[gpiImMe0-9]*")
_REFERENCE = re.compile(r"\\(.)|&", re.DOTALL)
#: Patterns that match a whole line, and its start and end.
_WHOLE = frozenset(
    {".*", "^.*", ".*$", "^.*$", r"\(.*\)", "(.*)", r"^\(.*\)$", "^(.*)$", ".+", "^.+$"}
)
_UNKNOWN = "{}"


class _Command(NamedTuple):
    name: str  # one letter
    argument: str  # the rest of its line, or the flags of a substitution
    pattern: str = ""
    replacement: str = ""


def read_sed(text: str, session: Session, stdin: Input) -> None:
    """Record what a script of sed writes and runs; never raises on bad syntax."""
    if not _TELLING.search(text):
        return
    for command in _commands(text):
        session.spend(_COMMAND)
        argument = command.argument
        if command.name in {"w", "W"}:
            session.write(argument.strip(), session.word)
        elif command.name == "e":
            _run(argument.strip(), session, stdin)
        elif command.name == "s":
            flags, writes, path = argument.partition("w")
            if writes:
                session.write(path.strip(), session.word)
            if "e" in flags:
                _run_lines(command, session, stdin)


def _run(text: str, session: Session, stdin: Input) -> None:
    for line in [text] if text else _lines(stdin):
        session.inner().read(line, "bash")
    if not text and stdin.text is None:
        session.add("unknown", session.word, "runs lines that cannot be seen")


def _run_lines(command: _Command, session: Session, stdin: Input) -> None:
    """Run the lines of the input as a substitution changes them."""
    for line in _lines(stdin) or [_UNKNOWN]:
        whole = command.pattern in _WHOLE
        found = line if whole else ""
        text = _referred(command.replacement, found)
        if command.pattern == "^":
            text += line
        elif command.pattern == "$":
            text = line + text
        session.inner().read(text, "bash")
    if stdin.text is None:
        session.add("unknown", session.word, "runs lines that cannot be seen")


def _referred(replacement: str, found: str) -> str:
    """Return a replacement with what was found in the places of its references."""

    def value(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped is None or escaped.isdigit():
            return found
        return "\n" if escaped == "n" else escaped

    return _REFERENCE.sub(value, replacement)


def _lines(stdin: Input) -> list[str]:
    return (stdin.text or "").split("\n")[:_MOST_LINES] if (stdin.text or "").strip() else []


def _commands(text: str) -> Iterator[_Command]:
    position = 0
    for _ in range(_MOST_COMMANDS):
        position = _skip_addresses(text, position)
        if position >= len(text):
            return
        name, position = text[position], position + 1
        if name in {"s", "y"}:
            command, position = _substitution(name, text, position)
        else:
            rest = (_TEXT if name in "aic" else _LABEL if name not in "#rRwWe" else _LINE).match(
                text, position
            )
            argument = rest[0] if rest else ""
            if name in "=dDgGhHnNpPxlqQzF":
                # Only a number may follow, then the next command.
                argument = argument[: len(argument) - len(argument.lstrip(" 0123456789"))]
            command, position = _Command(name, argument), position + len(argument)
        yield command


def _skip_addresses(text: str, position: int) -> int:
    while match := _ADDRESS.match(text, position):
        position = match.end()
        if match["sign"] is not None:
            _, position = _part(text, position, match["sign"])
    return position


def _substitution(name: str, text: str, position: int) -> tuple[_Command, int]:
    sign = text[position : position + 1]
    pattern, position = _part(text, position + 1, sign, brackets=name == "s")
    replacement, position = _part(text, position, sign)
    flags = _FLAGS.match(text, position) if name == "s" else None
    given = flags[0] if flags else ""
    position += len(given)
    if name == "s" and text[position : position + 1] == "w":
        line = _LINE.match(text, position)
        path = line[0] if line else ""
        given, position = given + path, position + len(path)
    return _Command(name, given, pattern, replacement), position


def _part(text: str, position: int, sign: str, *, brackets: bool = False) -> tuple[str, int]:
    """Return the text up to a delimiter, without its escapes, and where it ends."""
    parts: list[str] = []
    bracket = -1
    while position < len(text):
        letter = text[position]
        if letter == "\\" and bracket < 0:
            following = text[position + 1 : position + 2]
            parts.append(following if following == sign else letter + following)
            position += 2
            continue
        if letter == sign and bracket < 0:
            return "".join(parts), position + 1
        if brackets and letter == "[" and bracket < 0:
            bracket = len(parts)
        elif letter == "]" and 0 <= bracket < len(parts) - 1 + (parts[-1:] == ["^"]):
            bracket = -1
        parts.append(letter)
        position += 1
    return "".join(parts), position
