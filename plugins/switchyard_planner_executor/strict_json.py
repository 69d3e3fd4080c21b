"""JSON as its standard has it: no key twice, no NaN, and no text that brings the reader down."""

from __future__ import annotations

import json
from collections import Counter
from math import isinf
from typing import Any, NoReturn

__all__ = ["NotJsonError", "RepeatedKeyError", "loads"]


class NotJsonError(ValueError):
    """A text is not JSON; the message says why and where."""


class RepeatedKeyError(ValueError):
    """An object has a key twice, so that readers may disagree about what it says.

    Args:
        key: The key.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"the key `{key}` stands twice in one object")


def loads(text: str | bytes) -> Any:
    """Return what a JSON text says.

    Raises:
        NotJsonError: It is not JSON, holds NaN or a number out of range, or is nested too deeply.
        RepeatedKeyError: An object has a key twice.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(
            text,
            object_pairs_hook=_members,
            parse_constant=_no_number,
            parse_float=_finite,
            parse_int=_integer,
        )
    except RepeatedKeyError:
        raise
    except UnicodeDecodeError:
        msg = "not UTF-8"
    except RecursionError:
        msg = "nested too deeply"
    except json.JSONDecodeError as error:
        msg = f"{error.msg[:1].lower()}{error.msg[1:]} in line {error.lineno}, column {error.colno}"
    except ValueError as error:
        msg = str(error)
    raise NotJsonError(msg)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise RepeatedKeyError(counts.most_common(1)[0][0])
    return found


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        # Python's own message advises a change of its settings.
        msg = f"an integer of {len(digits.lstrip('-'))} digits is too long"
        raise ValueError(msg) from None


def _finite(text: str) -> float:
    number = float(text)
    if isinf(number):
        msg = f"{text[:20]} is beyond the range of numbers"
        raise ValueError(msg)
    return number


def _no_number(word: str) -> NoReturn:
    msg = f"{word} is no number of JSON"
    raise ValueError(msg)
