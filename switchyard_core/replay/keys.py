"""What makes two calls the same: the key of a recording."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from switchyard_core.upstream.played import is_deeper

__all__ = ["KEY_DIGITS", "fields_of", "key_of", "object_of"]

#: Hexadecimal digits of the key that name a file.
KEY_DIGITS = 16


def key_of(method: str, path: str, body: bytes, fields: Sequence[str]) -> str:
    """Return the key of a call, 16 hexadecimal digits.

    It is the beginning of the SHA-256 of method, path and the listed fields of the body as
    canonical JSON: neither the order of keys nor white space counts. A body that is no JSON
    object counts byte by byte.

    Args:
        method: HTTP method, upper case.
        path: Path without query.
        body: The body as sent.
        fields: Names of the fields that count; ``a.b`` is the key ``b`` of the object ``a``.
    """
    call: dict[str, Any] = {"method": method, "path": path}
    tree = object_of(body)
    if tree is None:
        call["bytes"] = hashlib.sha256(body).hexdigest()
    else:
        call["fields"] = dict(fields_of(tree, fields))
    text = json.dumps(call, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:KEY_DIGITS]


def fields_of(tree: dict[str, Any], fields: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield name and value of the listed fields that a body has, in the order of the list."""
    for name in fields:
        value: Any = tree
        for step in name.split("."):
            if not isinstance(value, dict) or step not in value:
                break
            value = value[step]
        else:
            yield name, value


def _refused(word: str) -> Any:
    msg = f"`{word}` is not JSON"
    raise ValueError(msg)


def object_of(body: bytes) -> dict[str, Any] | None:
    """Return a body as a tree, ``None`` when it is not a JSON object in UTF-8.

    One that is nested deeper than what is played is not taken for one either: how deep
    Python can read depends on who asks, and a key must not.
    """
    try:
        # As text: of bytes `json` guesses the encoding, and nobody here speaks UTF-16.
        tree = json.loads(body.decode("utf-8"), parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) and not is_deeper(tree) else None
