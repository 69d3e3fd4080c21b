"""A policy file as values, and the place of each of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import tomli

from switchyard_core.errors import Finding, PolicyError, Severity
from switchyard_core.policy.positions import Location, Place, Positions
from switchyard_core.policy.secrets import looks_like_credential, shown

__all__ = ["MAX_BYTES", "MAX_DEPTH", "Document", "dotted", "parse_document", "read_document"]

#: The largest policy that is read, in bytes.
MAX_BYTES = 1024 * 1024
#: The deepest nesting of tables and arrays; the libraries that read values stop somewhere too.
MAX_DEPTH = 64


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A TOML document that could be read.

    Args:
        name: The file as the user gave it, for findings.
        text: Its text with LF line ends.
        values: The values, as tomli gives them.
        positions: Where each of them stands.
    """

    name: str
    text: str
    values: Mapping[str, Any]
    positions: Positions

    def finding(
        self,
        code: str,
        message: str,
        location: Location,
        *,
        at_key: bool = False,
        offset: int | None = None,
        fix: str = "",
        notes: tuple[str, ...] = (),
        severity: Severity = "error",
    ) -> Finding:
        """Return a finding with the place of a location in this document.

        Args:
            code: Code of the finding.
            message: What is wrong.
            location: The value it is about.
            at_key: Point at the key and not at the value.
            offset: Point at this character (0-based) of the string value.
            fix: What to do.
            notes: Further lines.
            severity: ``error`` or ``warning``.
        """
        place: Place
        if offset is not None:
            place = self.positions.inside(location, offset)
        elif at_key:
            place = self.positions.key(location)
        else:
            place = self.positions.value(location)
        return Finding(
            code=code,
            message=message,
            file=self.name,
            line=place.line,
            column=place.column,
            path=dotted(location),
            severity=severity,
            notes=notes,
            fix=fix,
        )

    def where(self, location: Location) -> str:
        """Return ``file:line:column`` of a value, for a note that names a second place."""
        place = self.positions.value(location)
        return f"{self.name}:{place.line}:{place.column}"


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
        _refuse(name, "SY100", f"cannot read the file: {reason.lower()}", fix="check the path")
    return parse_document(data, name)


def parse_document(source: str | bytes, name: str) -> Document:
    """Parse the text of a policy.

    Args:
        source: TOML, as text or as UTF-8 with or without a byte order mark.
        name: Name for findings.

    Raises:
        PolicyError: One finding, as for :func:`read_document`.
    """
    text = source if isinstance(source, str) else _decode(source, name)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if len(text) > MAX_BYTES or (isinstance(source, bytes) and len(source) > MAX_BYTES):
        _refuse(name, "SY101", f"the policy is larger than {MAX_BYTES} bytes", fix="split it")
    try:
        values = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        _refuse(
            name,
            "SY103",
            f"not TOML: {error.msg[:1].lower()}{error.msg[1:]}",
            line=error.lineno,
            column=error.colno,
            fix="correct the syntax; nothing after this place was read",
        )
    except RecursionError:
        _refuse(name, "SY101", "nested too deeply to be read", fix="use fewer levels")
    except ValueError:
        # The only other error of tomli: an integer of more digits than Python converts.
        _refuse(name, "SY103", "not TOML: a number is too long", fix="use a 64-bit integer")
    document = Document(name=name, text=text, values=values, positions=Positions(text))
    deep = _too_deep(values)
    if deep is not None:
        message = f"nested more than {MAX_DEPTH} levels deep"
        raise PolicyError([document.finding("SY101", message, (deep,), fix="use fewer levels")])
    return document


def _too_deep(values: Mapping[str, Any]) -> str | None:
    """Return the top-level key whose value is nested too deeply, if there is one."""
    for key, top in values.items():
        level: list[Any] = [top]
        for _ in range(MAX_DEPTH):
            level = [
                item
                for value in level
                if isinstance(value, dict | list)
                for item in (value.values() if isinstance(value, dict) else value)
            ]
        if level:
            return key
    return None


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        fix = "save the file as UTF-8"
        _refuse(name, "SY102", "not UTF-8 text", line=line, column=column, fix=fix)


def _refuse(
    name: str, code: str, message: str, *, line: int = 0, column: int = 0, fix: str
) -> NoReturn:
    raise PolicyError(
        [Finding(code=code, message=message, file=name, line=line, column=column, fix=fix)]
    ) from None
