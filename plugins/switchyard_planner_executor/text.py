"""Texts that models and callers wrote, as people may see them."""

from __future__ import annotations

import unicodedata

__all__ = ["is_blank", "is_hidden", "one_line", "plain_lines"]

#: Unicode categories of characters that show nothing, or change how others are shown.
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
#: Joins the parts of one emoji; harmless, and common.
_JOINER = "\u200d"


def is_hidden(char: str) -> bool:
    """Return whether a character shows nothing, or changes how others are shown."""
    return unicodedata.category(char) in _HIDDEN


def is_blank(text: str) -> bool:
    """Return whether nothing of a text can be seen."""
    return all(char.isspace() or is_hidden(char) for char in text)


def one_line(text: str) -> str:
    """Return a text in one line: runs of white space become a space, hidden characters escapes."""
    return " ".join(_escaped(word) for word in text.split())


def plain_lines(text: str) -> str:
    """Return a text with its lines and tabs, and with all other hidden characters as escapes."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join("\t".join(_escaped(part) for part in line.split("\t")) for line in lines)


def _escaped(text: str) -> str:
    return "".join(
        f"\\u{ord(char):04x}" if char != _JOINER and is_hidden(char) else char for char in text
    )
