"""What only its maker can read: facts in a text that looks opaque and cannot be changed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["digest", "seal", "unseal"]

_CHECKED = 12  # characters of the digest that guards a seal


def digest(value: Any) -> str:
    """Return a short digest of a JSON value; key order and ``null`` members do not count."""
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def seal(maker: str, facts: Mapping[str, Any]) -> str:
    """Return facts as an opaque text, always the same for the same facts."""
    text = json.dumps(dict(facts), sort_keys=True, separators=(",", ":"))
    return base64.b64encode(f"{_guard(maker, text)}{text}".encode()).decode()


def unseal(maker: str, opaque: Any) -> Mapping[str, Any] | None:
    """Return the facts of a seal of this maker, ``None`` for anything else."""
    if not isinstance(opaque, str):
        return None
    try:
        text = base64.b64decode(opaque, validate=True).decode()
        facts = json.loads(text[_CHECKED:])
    except (ValueError, binascii.Error, RecursionError):
        return None
    if text[:_CHECKED] != _guard(maker, text[_CHECKED:]) or not isinstance(facts, dict):
        return None
    return facts


def _guard(maker: str, text: str) -> str:
    return hashlib.sha256(f"{maker}\n{text}".encode()).hexdigest()[:_CHECKED]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
