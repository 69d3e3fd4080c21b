"""Keeps credentials out of what is printed."""

from __future__ import annotations

import re

from switchyard_core.patterns import compile_pattern

__all__ = ["can_be_seen", "looks_like_credential", "one_line", "shown"]

_MAX_SHOWN = 80

_KINDS = (
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}",  # OpenAI, Anthropic, Stripe and the like
    r"\bgh[pousr]_[A-Za-z0-9]{16,}",
    r"\bgithub_pat_[A-Za-z0-9_]{16,}",
    r"\bglpat-[A-Za-z0-9_-]{12,}",
    r"\bhf_[A-Za-z0-9]{16,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{20,}",
    r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"(?i:\b(?:bearer|basic)\s+[A-Za-z0-9+/_.=-]{12,})",
    r"-----BEGIN [A-Z ]*PRIVATE KEY",
    r"://[^/\s@]*:[^/\s@]+@",  # user and password in a URL
)
# Searched in whole policies and in messages, so it must not slow down on any text.
_holds_credential = compile_pattern("|".join(_KINDS))
_WORD = re.compile(r"[A-Za-z0-9+_=-]{32,}")


def looks_like_credential(text: str) -> bool:
    """Return whether a text holds something with the shape of a key, token or password.

    Known prefixes count, a password in a URL, and long words that mix digits with both cases.
    """
    if _holds_credential(text):
        return True
    return any(
        sum(char.isdigit() for char in word) >= len(word) // 8
        and any(char.isupper() for char in word)
        and any(char.islower() for char in word)
        for word in _WORD.findall(text)
    )


def can_be_seen(name: str) -> bool:
    """Return whether a name can be told from others: not blank, nothing invisible or around it."""
    return name.isprintable() and name == name.strip() != ""


def shown(text: str) -> str:
    """Return user input for a message: printable, short, never a credential."""
    if looks_like_credential(text):
        return "(hidden)"
    plain = "".join(char if char.isprintable() and char != "`" else "?" for char in text)
    return plain if len(plain) <= _MAX_SHOWN else plain[: _MAX_SHOWN - 1] + "…"


def one_line(error: Exception) -> str:
    """Return an unexpected error as one printable line, never with a credential."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    if looks_like_credential(text):
        return type(error).__name__
    return "".join(char if char.isprintable() else "?" for char in text)
