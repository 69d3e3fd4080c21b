"""Bodies in a recording: readable where they can be, exact always."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from switchyard_core.replay.keys import object_of

__all__ = [
    "dumped_body",
    "dumped_chunk",
    "is_layout",
    "is_shown_as_object",
    "loaded_body",
    "loaded_chunk",
]

#: Ways to write JSON that providers use, by the word that stands in a recording.
_LAYOUTS: dict[str, dict[str, Any]] = {
    "compact": {"separators": (",", ":")},
    "spaced": {},
    "indented": {"indent": 2},
}
#: Behind a layout's word: the body ends with a line break.
_LINE = ", line break"
_BASE64 = "base64"


def is_shown_as_object(tree: Any) -> bool:
    """Return whether a body stands in a file as it is, and not as a string or as base64."""
    return isinstance(tree, dict) and set(tree) != {_BASE64}


def is_layout(word: Any) -> bool:
    """Return whether a word says how a body was spaced."""
    return isinstance(word, str) and (word.removesuffix(_LINE) or "compact") in _LAYOUTS


def dumped_body(body: bytes) -> tuple[bytes, str]:
    """Return a body as JSON text for a file, and its layout, ``""`` when it is no object.

    A JSON object stands there as it is if its bytes can be had back from it; anything else is a
    string, and base64 in an object when it is not UTF-8.
    """
    tree = object_of(body)
    if is_shown_as_object(tree):
        text = body.decode("utf-8")
        end = _LINE if text.endswith("\n") else ""
        for layout, arguments in _LAYOUTS.items():
            if json.dumps(tree, ensure_ascii=False, **arguments) == text.removesuffix("\n"):
                return body, layout + end
    return dumped_chunk(body), ""


def loaded_body(value: Any, layout: str) -> bytes:
    """Return a body of a file; the inverse of :func:`dumped_body`.

    Raises:
        ValueError: The value is none.
    """
    if is_shown_as_object(value):
        arguments = _LAYOUTS[layout.removesuffix(_LINE) or "compact"]
        text = json.dumps(value, ensure_ascii=False, **arguments)
        return (text + "\n" * layout.endswith(_LINE)).encode("utf-8", "surrogatepass")
    return loaded_chunk(value)


def dumped_chunk(chunk: bytes) -> bytes:
    """Return a piece of a body as JSON text: a string, or base64 when it is not UTF-8.

    The latter is also what becomes of a piece that begins or ends inside a character.
    """
    try:
        value: Any = chunk.decode("utf-8")
    except UnicodeDecodeError:
        value = {_BASE64: base64.b64encode(chunk).decode("ascii")}
    return json.dumps(value, ensure_ascii=False).encode("utf-8")


def loaded_chunk(value: Any) -> bytes:
    """Return a piece of a body; the inverse of :func:`dumped_chunk`.

    Raises:
        ValueError: The value is none.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, dict) and set(value) == {_BASE64} and isinstance(value[_BASE64], str):
        try:
            return base64.b64decode(value[_BASE64], validate=True)
        except binascii.Error as error:
            raise ValueError(str(error)) from error
    msg = "a body is an object, a string, or base64 in an object"
    raise ValueError(msg)
