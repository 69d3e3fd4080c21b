"""A policy file as values, and the place of each of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict, Unpack

import tomli

from switchyard_core.errors import Finding, PolicyError, Severity, nearest
from switchyard_core.policy.places import Lines, Location, Outline, Place, Positions
from switchyard_core.policy.secrets import looks_like_credential, shown
from switchyard_core.policy.slips import Slip, slip_at

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "Document",
    "Parts",
    "dotted",
    "is_file",
    "leaves",
    "near_file",
    "parse_document",
    "read_document",
]

#: The largest policy that is read, in bytes.
MAX_BYTES = 256 * 1024
#: The deepest nesting of tables and arrays.
MAX_DEPTH = 64

#: The most syntax errors that are reported at once.
MOST_ERRORS = 20

#: Beginnings of tomli's messages about repeated keys and tables.
_REPEATS = ("Cannot overwrite", "Cannot declare", "Cannot mutate", "Cannot redefine", "Duplicate")
#: Its messages about an unclosed string or bracket.
_UNCLOSED_STRING = frozenset(
    {
        "Unterminated string",
        "Illegal character '\\n'",
        "Found invalid character '\\n'",
        """Expected "'''\"""",
        """Expected "'\"""",
    }
)
_UNCLOSED_BRACKET = frozenset({"Unclosed array", "Unclosed inline table"})
#: An integer that Python may refuse to convert.
_LONG_NUMBER = re.compile(r"[+-]?[0-9_]{4000}")


def leaves(value: Any, location: Location = ()) -> Iterator[tuple[Location, Any]]:
    """Yield every scalar inside tables and arrays, with its location."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*location, key))
    else:
        yield location, value


def is_file(path: Path) -> bool:
    """Return whether a file exists; ``False`` for a path that cannot be used."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def dotted(location: Location) -> str:
    """Return a location as text: ``routes.main.targets[2].name``, odd keys in quotes."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        key = shown(part) if looks_like_credential(part) else part
        plain = key.replace("_", "").replace("-", "")
        name = key if plain.isascii() and plain.isalnum() else _quoted(key)
        text += f".{name}" if text else name
    return text


def _quoted(key: str) -> str:
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in key) + '"'


class Parts(TypedDict, total=False):
    """Optional parts of a finding."""

    at_key: bool  # point at the key and not at the value
    offset: int | None  # point at this character (0-based) of the string value
    fix: str
    notes: tuple[str, ...]
    severity: Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A TOML document that could be read."""

    name: str  # the file as the user gave it, for findings
    text: str  # its text with LF line ends
    #: The values, as tomli gives them, and the rule sets of included files.
    values: Mapping[str, Any]
    positions: Positions  # where each value of this file is
    #: Documents of included rule sets, by the name of the rule set.
    homes: Mapping[str, Document] = field(default_factory=dict)
    included: tuple[Document, ...] = ()  # documents of all included files, in order of inclusion

    def tables(self, name: str) -> Mapping[str, Any]:
        """Return the tables under a top-level key, empty when it is absent or not a table."""
        value = self.values.get(name)
        return value if isinstance(value, dict) else {}

    def finding(
        self, code: str, message: str, location: Location, **parts: Unpack[Parts]
    ) -> Finding:
        """Return a finding with the place of a location in this document."""
        home = self._home(location)
        at_key, offset = parts.get("at_key", False), parts.get("offset")
        place = home.positions.place(location, at_key=at_key, offset=offset)
        return Finding(
            code=code,
            message=message,
            file=home.name,
            line=place.line,
            column=place.column,
            path=dotted(location),
            severity=parts.get("severity", "error"),
            notes=parts.get("notes", ()),
            fix=parts.get("fix", ""),
        )

    def where(self, location: Location, *, at_key: bool = False) -> str:
        """Return ``file:line:column`` of a value or key, for a note that names a second place."""
        home = self._home(location)
        return home.positions.place(location, at_key=at_key).of(home.name)

    def _home(self, location: Location) -> Document:
        if len(location) > 1 and location[0] == "mutation_rules":
            return self.homes.get(str(location[1]), self)
        return self


def near_file(name: str) -> str:
    """Return what to write for a path that is not a file, ``""`` without a guess."""
    path = Path(name)
    try:
        if path.is_dir():
            inside = next(iter(sorted(path.glob("*.toml"))), path / "NAME.toml")
            return f"name a file in this folder, such as `{shown(str(inside))}`"
        if path.exists():
            return ""
        beside = [each.name for each in islice(path.parent.iterdir(), 1000) if each.is_file()]
    except (OSError, ValueError):
        return ""
    near = nearest(path.name, beside)
    return f"did you mean `{shown(str(path.with_name(near)))}`?" if near else ""


def read_document(path: str | os.PathLike[str]) -> Document:
    """Read a policy file.

    Raises:
        PolicyError: SY100 when the file cannot be read, SY101 when it is too large or nested
            too deeply, SY102 when it is not UTF-8, SY103 when it is not TOML.
    """
    name = os.fspath(path)
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable path"
        message, nowhere = f"cannot read the file: {reason.lower()}", Place(line=0, column=0)
        fix = near_file(name) or "check the path"
        raise _refusal(name, "SY100", message, place=nowhere, fix=fix) from None
    return parse_document(data, name)


def parse_document(source: str | bytes, name: str) -> Document:
    """Parse the text of a policy; bytes are UTF-8 and may begin with a byte order mark.

    Raises:
        PolicyError: As for :func:`read_document`.
    """
    _check_size(source, name)
    text = source if isinstance(source, str) else _decode(source, name)
    text = _plain(text)
    try:
        values = _values(text, name)
    except RecursionError:
        raise _too_deep(text, name, Outline(text, MAX_DEPTH)) from None
    except ValueError:
        # The only other error of tomli: an integer of more digits than Python converts.
        message, fix = "not TOML: a number is too long", "use a 64-bit integer"
        raise _refusal(name, "SY103", message, place=_long_number(text), fix=fix) from None
    outline = Outline(text, MAX_DEPTH)
    if outline.deep >= 0:
        raise _too_deep(text, name, outline)
    return Document(name=name, text=text, values=values, positions=Positions(text, outline))


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _check_size(source: str | bytes, name: str) -> None:
    if len(source) <= MAX_BYTES:
        return
    start = source[:MAX_BYTES]
    text = _plain(start if isinstance(start, str) else start.decode("utf-8", "ignore"))
    message = f"the policy is larger than {MAX_BYTES} bytes; the limit is here"
    raise _refusal(name, "SY101", message, place=Lines(text).place(len(text)), fix="split it")


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = _plain(data[: error.start].decode("utf-8"))
        place, fix = Lines(before).place(len(before)), "save the file as UTF-8"
        utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        message = "not UTF-8 text" + (", but UTF-16, as Windows writes it" if utf16 else "")
        raise _refusal(name, "SY102", message, place=place, fix=fix) from None


def _values(text: str, name: str) -> dict[str, Any]:
    """Return the values of a text, or raise with all syntax errors that can be read past."""
    findings: list[Finding] = []
    rest = text
    for _ in range(MOST_ERRORS):
        try:
            values = tomli.loads(rest)
            break
        except tomli.TOMLDecodeError as error:
            slip = slip_at(rest, error.pos, error.msg)
            found = _slipped(text, name, slip) if slip else _not_toml(rest, name, error)
            # A value in place of a slip may repeat a key.
            repeated = slip is None and error.msg.startswith(_REPEATS)
            if not findings or (found.line > findings[-1].line and not repeated):
                findings.append(found)
            if slip is None or not slip.instead:
                break
            rest = rest[: slip.start] + slip.instead + rest[slip.start + len(slip.instead) :]
    if findings:
        raise PolicyError(findings)
    return values


def _slipped(text: str, name: str, slip: Slip) -> Finding:
    notes = tuple[str, ...]()
    outline = Outline(text[: slip.start])
    if slip.bracket and outline.open_bracket >= 0:
        opened = Lines(text).place(outline.open_bracket).of(name)
        notes = (f"the bracket was opened at {opened}",)
    fix = slip.fix if slip.instead else f"{slip.fix}; nothing after this place was read"
    return _syntax(name, slip.message, Lines(text).place(slip.start), fix, notes)


def _not_toml(text: str, name: str, error: tomli.TOMLDecodeError) -> Finding:
    outline, lines = Outline(text[: error.pos]), Lines(text)
    message, fix = error.msg, "correct the syntax; nothing after this place was read"
    place, notes = Place(line=error.lineno, column=error.colno), tuple[str, ...]()
    repeat = outline.repeat
    if message.startswith(_REPEATS) and repeat is not None:
        word = "table" if repeat.kind == "table" else "key"
        message = f"{word} `{dotted(repeat.path)}` is given twice"
        place = lines.place(repeat.offset)
        fix = "remove one of them; nothing after this place was read"
        notes = (f"first given at {lines.place(repeat.first).of(name)}",)
    elif message.startswith(_REPEATS):
        # tomli's text shows a Python tuple.
        message = "this conflicts with an earlier key or table"
    elif message in _UNCLOSED_STRING and outline.open_string >= 0:
        at = outline.open_string
        quote = text[at] * (3 if text.startswith(text[at] * 3, at) else 1)
        message = "the string is not closed"
        fix = f"write `{quote}` at its end; nothing after this place was read"
        notes = (f"the string began at {lines.place(outline.open_string).of(name)}",)
    elif message in _UNCLOSED_BRACKET and outline.open_bracket >= 0:
        closing = "]" if message == "Unclosed array" else "}"
        message = f"the {'array' if closing == ']' else 'inline table'} is not closed"
        fix = f"write `{closing}` at its end; nothing after this place was read"
        notes = (f"the bracket was opened at {lines.place(outline.open_bracket).of(name)}",)
    return _syntax(name, f"{message[:1].lower()}{message[1:]}", place, fix, notes)


def _syntax(name: str, message: str, place: Place, fix: str, notes: tuple[str, ...]) -> Finding:
    (finding,) = _refusal(
        name, "SY103", f"not TOML: {message}", place=place, fix=fix, notes=notes
    ).findings
    return finding


def _too_deep(text: str, name: str, outline: Outline) -> PolicyError:
    place = Lines(text).place(max(outline.deep, 0))
    message = f"nested more than {MAX_DEPTH} levels deep"
    return _refusal(name, "SY101", message, place=place, fix="use fewer levels")


def _long_number(text: str) -> Place:
    waiting = [Outline(text, MAX_DEPTH).root]
    while waiting:
        node = waiting.pop()
        waiting += node.children.values()
        if node.value >= 0 and _LONG_NUMBER.match(text, node.value):
            return Lines(text).place(node.value)
    return Place(line=1, column=1)


def _refusal(
    name: str, code: str, message: str, *, place: Place, fix: str, notes: tuple[str, ...] = ()
) -> PolicyError:
    finding = Finding(code=code, message=message, file=name, notes=notes, fix=fix)
    return PolicyError([replace(finding, line=place.line, column=place.column)])
