"""Reading JSON bytes leniently: extents of values, parsing, and error messages.

msgspec finds the extent of each value at memory speed; what it cannot express, such as lone
surrogates or duplicate keys, is handled here.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

__all__ = [
    "ARRAY",
    "OBJECT",
    "SPACE",
    "STRING",
    "JsonTextError",
    "cut_array",
    "cut_object",
    "loads",
    "match_end",
    "readable",
    "skip_value",
]

OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
SPACE = re.compile(rb"[ \t\r\n]*")
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_SCALAR = re.compile(rb"[^,\]}\s]+")
# A string, or (group 1) one of the words that Python reads and JSON does not know.
_CONSTANT = re.compile(rb'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)', re.DOTALL)
# A surrogate pair, a lone surrogate (group 1), or any other escape: left to right, so that the
# second half of an escaped backslash never starts an escape.
_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|\\.",
    re.DOTALL,
)


class JsonTextError(ValueError):
    """The bytes are not JSON of the expected kind.

    Args:
        message: What is wrong, lower case, with line and column where they are known.
        duplicate: The key that an object has twice, when that is the problem.
    """

    def __init__(self, message: str, *, duplicate: str | None = None) -> None:
        self.message = message
        self.duplicate = duplicate
        super().__init__(message)


def loads(data: bytes) -> Any:
    """Parse JSON leniently: any number, lone surrogates, as deep as Python can hold."""
    try:
        return json.loads(data)
    except RecursionError:
        raise JsonTextError(_depth_message(data)) from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise JsonTextError(_syntax_message(data)) from None
    except ValueError:
        # Python converts no integer of more than some thousand digits.
        return _loads_long(data)


def _loads_long(data: bytes) -> Any:
    """Parse JSON that has an integer too long for Python: it becomes a float, so an infinity."""
    try:
        return json.loads(data, parse_int=_integer)
    except RecursionError:
        raise JsonTextError(_depth_message(data)) from None
    except ValueError:
        raise JsonTextError(_syntax_message(data)) from None


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def readable(data: bytes) -> bytes:
    """Return bytes of the same length in which lone surrogate escapes are replaced.

    Clients in JavaScript cut emoji in half; msgspec refuses the result, providers accept it.
    Offsets in the returned bytes are offsets in the argument.
    """

    def mask(match: re.Match[bytes]) -> bytes:
        return rb"\ufffd" if match.group(1) else match.group(0)

    return _SURROGATE.sub(mask, data)


def _decode(decoder: msgspec.json.Decoder[Any], data: bytes) -> tuple[Any, bytes]:
    """Return the decoder's result and the bytes it came from."""
    try:
        return decoder.decode(data), data
    except RecursionError:
        raise JsonTextError(_depth_message(data)) from None
    except msgspec.ValidationError as error:
        raise JsonTextError(_kind_message(data, error)) from None
    except msgspec.DecodeError:
        masked = readable(data)
        if masked != data:
            try:
                return decoder.decode(masked), masked
            except msgspec.ValidationError as error:
                raise JsonTextError(_kind_message(data, error)) from None
            except (msgspec.DecodeError, RecursionError):
                pass
        raise JsonTextError(_syntax_message(data)) from None


def _kind_message(data: bytes, error: Exception) -> str:
    kind = {ord("["): "an array", ord('"'): "a string", ord("{"): "an object"}
    kind |= dict.fromkeys(b"-0123456789", "a number")
    text = data.strip()
    found = kind.get(text[0] if text else 0) or f"`{text[:5].decode('utf-8', 'replace')}`"
    wanted = "object" if "object" in str(error) else "array"
    return f"expected a JSON {wanted}, found {found}"


def _syntax_message(data: bytes) -> str:
    """Say where invalid bytes stop being JSON."""
    if not data.strip():
        return "the body is empty"
    if data.startswith(b"\xef\xbb\xbf"):
        return "the body starts with a byte order mark; send plain UTF-8"
    try:
        text = data.decode("utf-8")
        json.loads(text, parse_int=_integer, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        return f"not UTF-8: invalid byte at offset {error.start}"
    except RecursionError:
        return _depth_message(data)
    except json.JSONDecodeError as error:
        what = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        return f"not JSON: {what} at line {error.lineno} column {error.colno}"
    except _ConstantError:
        return _constant_message(data)
    return "not JSON"


class _ConstantError(Exception):
    """Not a ``ValueError``, which has other causes."""


def _refuse_constant(_name: str) -> None:
    raise _ConstantError


def _constant_message(data: bytes) -> str:
    """Return the place of the first word such as ``NaN``."""
    for match in _CONSTANT.finditer(data):
        if match[1]:
            name = match[1].decode("ascii")
            return f"not JSON: `{name}` is not a JSON value at {_place(data, match.start())}"
    return "not JSON"


def _depth_message(data: bytes) -> str:
    depth = deepest = position = 0
    for match in _TOKEN.finditer(data):
        token = match.group()
        if token in (b"{", b"["):
            depth += 1
            if depth > deepest:
                deepest, position = depth, match.start()
        elif token in (b"}", b"]"):
            depth -= 1
    return f"nested too deeply: {deepest} levels at {_place(data, position)}"


def _place(data: bytes, position: int) -> str:
    """Return line and column, in characters and counted from 1, of an offset."""
    start = data.rfind(b"\n", 0, position) + 1
    column = len(data[start:position].decode("utf-8", "replace")) + 1
    line = data.count(b"\n", 0, position) + 1
    return f"line {line} column {column}"


def skip_value(data: bytes, start: int) -> int:
    """Return the end of the value that starts at ``start`` in valid JSON."""
    first = data[start : start + 1]
    if first == b'"':
        match = STRING.match(data, start)
        return match.end() if match else len(data)
    if first not in (b"{", b"["):
        match = _SCALAR.match(data, start)
        return match.end() if match else len(data)
    depth, position = 0, start
    while match := _TOKEN.search(data, position):
        position = match.end()
        token = match.group()
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return position
    return len(data)


def cut_object(data: bytes) -> tuple[dict[str, msgspec.Raw], bytes]:
    """Return the values of an object, and the bytes (of equal length) that they were cut from."""
    return _decode(OBJECT, data)


def cut_array(data: bytes) -> list[msgspec.Raw]:
    """Return the items of an array."""
    items: list[msgspec.Raw] = _decode(ARRAY, data)[0]
    return items


def match_end(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
    """Return where a match at a position ends, the position itself without one."""
    match = pattern.match(data, position)
    return match.end() if match else position
