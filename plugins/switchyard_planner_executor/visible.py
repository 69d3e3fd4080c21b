"""Text of models as people see it: it cannot hide, move or imitate what stands around it.

Whoever approves a plan approves what was shown. A line break in an action would look like one
more step, and a control character can clear a terminal or turn the direction of reading.
"""

from __future__ import annotations

import unicodedata

__all__ = ["is_blank", "one_line", "plain_lines"]

#: Joins the parts of one emoji; harmless, and common.
_JOINER = "\u200d"
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})


def is_blank(text: str) -> bool:
    """Return whether a text has nothing in it that can be seen."""
    return all(char.isspace() or unicodedata.category(char) in _HIDDEN for char in text)


def one_line(text: str) -> str:
    """Return a text in one line: runs of white space become a space, hidden characters escapes."""
    return " ".join(_escaped(word) for word in text.split())


def plain_lines(text: str) -> str:
    """Return a text with its lines and tabs, and with all other hidden characters as escapes."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join("\t".join(_escaped(part) for part in line.split("\t")) for line in lines)


def _escaped(text: str) -> str:
    return "".join(char if not _is_hidden(char) else f"\\u{ord(char):04x}" for char in text)


def _is_hidden(char: str) -> bool:
    return char != _JOINER and unicodedata.category(char) in _HIDDEN
