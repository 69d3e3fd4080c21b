"""Arguments of tools that take free text, between formats that have such tools and others.

Where a format has none, the text is the one member of an object: ``{"input": "…"}``. Texts come and
leave in pieces, JSON strings with their quotes; ``b""`` is nothing yet.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from switchyard_core.jsonio.tree import JsonTextError, encode, loads

__all__ = ["ObjectOnly", "Retelling", "Unwrapped", "Wrapped"]

_OPENING = '{"input":"'
_CLOSING = '"}'
_START = re.compile(r'\s*\{\s*"input"\s*:\s*"')
#: What may become that beginning.
_MAY_START = re.compile(
    r'\s*(?:\{\s*(?:"(?:i(?:n(?:p(?:u(?:t(?:"\s*(?::\s*)?)?)?)?)?)?)?)?)?', re.DOTALL
)
#: What stands in a JSON string as it does in another one.
_PLAIN = re.compile(
    r'(?:[^"\\\x00-\x1f]+|\\["\\/bfnrt]'
    r"|\\u(?![dD][89abAB])[0-9a-fA-F]{4}"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*"
)
#: The beginning of an escape, or of two that are one character.
_MAY_GO_ON = re.compile(
    r"\\(?:u(?:[0-9a-fA-F]{0,3}"
    r"|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?)?)?"
)
_HALF = re.compile(r"\\u[0-9a-fA-F]{4}")


class Retelling(Protocol):
    """Makes other pieces of the pieces of one text."""

    #: Whether further pieces stay as they are.
    passes: bool

    def piece(self, raw: bytes) -> bytes:
        """Return what a piece becomes."""

    def rest(self) -> bytes:
        """Return what follows the last piece."""


class Unwrapped:
    """The free text in arguments; arguments of another shape are the text themselves.

    What a model writes behind the member is left out: by then the text has passed.
    """

    def __init__(self) -> None:
        self._held = ""
        self.passes = self._inside = self._over = False

    def piece(self, raw: bytes) -> bytes:
        """Return the text in a piece; an escape that is cut waits for its end."""
        if self._over:
            return b""
        if self.passes:
            return raw
        self._held += loads(raw)
        if not self._inside:
            start = _START.match(self._held)
            if start is None:
                return b"" if _MAY_START.fullmatch(self._held) else self._whole()
            self._inside = True
            self._held = self._held[start.end() :]
        return self._passed()

    def rest(self) -> bytes:
        """Return what was held back of arguments that break off."""
        held, self._held = self._held, ""
        return encode(held) if held and not self._over else b""

    def _whole(self) -> bytes:
        self.passes = True
        held, self._held = self._held, ""
        return encode(held)

    def _passed(self) -> bytes:
        """Return what is complete of the string, escaped as it was."""
        found, at, held = [], 0, self._held
        while True:
            plain = _PLAIN.match(held, at)
            if plain is not None:
                found.append(plain[0])
                at = plain.end()
            if at == len(held) or held[at] == '"':
                self._over = at < len(held)
                break
            if _MAY_GO_ON.fullmatch(held, at):
                break
            half = _HALF.match(held, at)
            # Models forget to escape line breaks and backslashes.
            odd = held[at] if half is None else half[0]
            found.append(odd if half is not None else encode(odd)[1:-1].decode())
            at += len(odd)
        self._held = held[at:]
        # What is not Unicode by itself, half a pair, has an escape of the same form.
        return b'"' + "".join(found).encode("utf-8", "backslashreplace") + b'"'


class Wrapped:
    """Free text as arguments."""

    def __init__(self) -> None:
        self._before = _OPENING
        self.passes = False

    def piece(self, raw: bytes) -> bytes:
        """Return a piece of the arguments."""
        before, self._before = self._before, ""
        return encode(before + encode(loads(raw))[1:-1].decode())

    def rest(self) -> bytes:
        """Return the end of the arguments."""
        return encode(self._before + _CLOSING)


class ObjectOnly:
    """Arguments for a format that takes an object and no other JSON.

    Args:
        key: Key of the object that holds what is none.
        waits: Whether all of them are held back, to be read; a stream tells by the first letter.
    """

    def __init__(self, key: str, *, waits: bool) -> None:
        self._key = key
        self._waits = waits
        self._held: list[str] = []
        self._blank = True
        self.passes = False

    def piece(self, raw: bytes) -> bytes:
        """Return a piece, or nothing while it may be something else."""
        if self.passes:
            return raw
        text: str = loads(raw)
        self._held.append(text)
        begins = self._blank and text.lstrip().startswith("{")
        self._blank = self._blank and not text.strip()
        if self._waits or not begins:
            return b""
        self.passes = True
        return encode("".join(self._held))

    def rest(self) -> bytes:
        """Return the object that holds what is none."""
        text = "".join(self._held).strip()
        if self.passes or text in ("", "null"):
            return b""
        # Some servers write the object as text within the text.
        inner = _text_in(text)
        text = inner if _is_object(inner) else text
        return encode(text if _is_object(text) else encode({self._key: text}).decode())


def _is_object(text: str) -> bool:
    try:
        value: Any = loads(text.encode("utf-8", "surrogatepass"))
    except JsonTextError:
        return False
    return isinstance(value, dict)


def _text_in(text: str) -> str:
    """Return the text that a JSON string holds, ``""`` for other JSON."""
    try:
        value: Any = loads(text.encode("utf-8", "surrogatepass"))
    except JsonTextError:
        return ""
    return value if isinstance(value, str) else ""
