"""JSON as its standard has it; what is none is told in plain words."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Sequence
from math import isinf
from typing import Any, NoReturn

from switchyard_planner_executor.text import is_hidden, one_line

__all__ = ["BOM", "NotJsonError", "RepeatedKeyError", "strict_json"]


#: The invisible character that some programs write before a text.
BOM = "\ufeff"

#: What the messages of Python's reader mean, by their beginning.
_TOLD = {
    "Expecting value": "a value must stand {where}, not {found}",
    "Expecting property name": "a key in double quotes must stand {where}, not {found}",
    "Expecting ':'": "a `:` must stand {where}, not {found}",
    "Expecting ','": "a `,` or a closing bracket must stand {where}, not {found}",
    "Illegal trailing comma": "a `,` stands before a closing bracket {where}",
    "Extra data": "nothing may follow the JSON value, and {where} {found} follows",
    "Unterminated string": 'the string that begins {where} has no closing `"`',
    "Invalid control character": "a string holds a line break or another control character "
    "{where}; write it as an escape such as `\\n`",
    "Invalid \\": "a string holds a `\\` {where} that begins no escape; write it as `\\\\`",
    "Unexpected UTF-8 BOM": "a byte order mark, which is invisible, stands before it: remove the "
    "first character, or save it without one",
}
_SHOWN_CHARS = 20


class NotJsonError(ValueError):
    """A text is not JSON; the message says why and where."""


class RepeatedKeyError(NotJsonError):
    """Objects have a key twice, so that readers may disagree about what they say.

    Args:
        faults: One sentence per object and key.
        value: The value of the text, with the last of each key.
    """

    def __init__(self, faults: Sequence[str], value: Any) -> None:
        self.faults = tuple(faults)
        self.value = value
        super().__init__("; ".join(faults))


def strict_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; NotJsonError also for NaN, huge numbers and deep nesting."""
    repeated: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            repeated.extend(_repeated(key, count) for key, count in counts.items() if count > 1)
        return found

    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=members,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_integer,
        )
    except NotJsonError:
        raise
    except UnicodeDecodeError:
        raise NotJsonError("not UTF-8") from None
    except RecursionError:
        raise NotJsonError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise NotJsonError(_plainly(error)) from None
    if repeated:
        raise RepeatedKeyError(repeated, value)
    return value


def _repeated(key: str, count: int) -> str:
    times = "twice" if count == 2 else f"{count} times"
    return f"one object has the key `{one_line(key[:100])}` {times}"


def _plainly(error: json.JSONDecodeError) -> str:
    """Return what is wrong and where, without the words of Python's reader."""
    told = next((told for words, told in _TOLD.items() if error.msg.startswith(words)), "")
    where = f"in line {error.lineno}, column {error.colno}"
    told = told or "what stands {where}, {found}, is no JSON"
    return told.format(where=where, found=_found(error.doc[error.pos :]))


def _found(text: str) -> str:
    if not text:
        return "the end of the text"
    char = text[0]
    if char.isspace() or is_hidden(char):
        name = unicodedata.name(char, "a control character").lower()
        return f"the invisible character U+{ord(char):04X} ({name})"
    if text.startswith(("```", "~~~")):
        return "a code fence"
    first = text.split("\n", 1)[0]
    return f"`{one_line(first[:_SHOWN_CHARS])}{'…' * (len(first) > _SHOWN_CHARS)}`"


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        # Python's own message advises a change of its settings.
        raise NotJsonError(f"an integer of {len(digits.lstrip('-'))} digits is too long") from None


def _finite(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise NotJsonError(f"{text[:20]} is out of range")
    return number


def _refuse_constant(word: str) -> NoReturn:
    raise NotJsonError(f"{word} is not a number in JSON")
