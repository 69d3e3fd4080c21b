"""The words after a program's name as flags, values and operands."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

import msgspec

__all__ = ["Arguments", "is_value", "split_arguments"]

_FLAG = re.compile(r"-(?:[A-Za-z]{1,2}|-[A-Za-z][\w-]*)$")


class Arguments(msgspec.Struct, kw_only=True, eq=False):
    """The words after a program's name."""

    #: Every flag, ``-abc`` also as ``-a``, ``-b``, ``-c``; and ``--``.
    flags: set[str] = msgspec.field(default_factory=set)
    values: dict[str, list[str]] = msgspec.field(default_factory=dict)  # values by flag, in order
    #: The words that are neither flags nor values.
    operands: list[str] = msgspec.field(default_factory=list)
    #: Words from the first operand on, untouched: the command of a wrapper.
    rest: list[str] = msgspec.field(default_factory=list)

    def has(self, names: Collection[str]) -> bool:
        """Return whether any of these flags is present; ``--x*`` is a prefix."""
        if not self.flags:
            return False
        if not self.flags.isdisjoint(names):
            return True
        starts = _starts(tuple(names))
        return bool(starts) and any(flag.startswith(starts) for flag in self.flags)

    def has_exactly(self, names: Collection[str]) -> bool:
        """Return whether any of these flags is present, none of which is a prefix."""
        return not self.flags.isdisjoint(names)

    def value(self, names: Collection[str]) -> list[str]:
        """Return the values of these flags."""
        if not self.values:
            return []
        starts = _starts(tuple(names))
        return [
            value
            for flag, values in self.values.items()
            if flag in names or (starts and flag.startswith(starts))
            for value in values
        ]

    def given(self) -> list[str]:
        """Return the values of all flags."""
        return [value for values in self.values.values() for value in values]


@lru_cache(maxsize=4096)
def _starts(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name[:-1] for name in names if name.endswith("*"))


def split_arguments(
    words: Sequence[str],
    *,
    valued: Collection[str] = (),
    attached: Collection[str] = (),
    long_single: bool = False,
    bundled: bool = False,
    through: bool = False,
    stop: bool = False,
) -> Arguments:
    """Split the words after a program's name into flags, values and operands.

    Args:
        words: Without the program's name.
        valued: Flags that take a value, in the same word or the next one.
        attached: Short flags whose value, if any, is the rest of their word.
        long_single: Flags such as ``-check`` have one dash and are not split.
        bundled: The first word is flags even without a dash, as in ``tar xzf``.
        through: Words after ``--`` are flags of an inner program and count as well.
        stop: Everything from the first operand on is ``rest``, for wrappers.
    """
    result = Arguments()
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if bundled and index == 1 and word[:1] != "-":
            word = f"-{word}"
        if word[:1] != "-" or word == "-":
            if stop:
                result.rest = list(words[index - 1 :])
                result.operands += result.rest
                break
            result.operands.append(word)
        elif word == "--":
            result.flags.add(word)
            if not through:
                result.operands += words[index:]
                result.rest = list(words[index:])
                break
        else:
            following = words[index] if index < len(words) else None
            flag, value, taken = _value_of(
                result.flags, word, following, valued, attached, long_single=long_single
            )
            if value is not None:
                result.values.setdefault(flag, []).append(value)
            index += taken
    return result


def _value_of(
    flags: set[str],
    word: str,
    following: str | None,
    valued: Collection[str],
    attached: Collection[str],
    *,
    long_single: bool,
) -> tuple[str, str | None, bool]:
    """Add the flags of a word; return the flag with a value, the value, and if it is the next."""
    if long_single or word[:2] == "--":
        name, equals, value = word.partition("=")
        flags.add(name)
        if equals:
            return name, value, False
        takes = name in valued and is_value(following)
        return name, following if takes else None, takes
    # Some programs have long flags with one dash (`clang-tidy -fix`): the word counts, too.
    flags.add(word)
    if word in valued:
        takes = is_value(following)
        return word, following if takes else None, takes
    for place in range(1, len(word)):
        flag, tail = f"-{word[place]}", word[place + 1 :]
        flags.add(flag)
        if flag in valued or flag in attached:
            if tail or flag in attached:
                # `sed -i '' …` of BSD: the empty word is the value.
                return flag, tail.removeprefix("=") if tail else None, not tail and following == ""
            if is_value(following):
                return flag, following, True
    return word, None, False


def is_value(word: str | None) -> bool:
    """Return whether a word can be the value of the flag before it.

    A word like a flag cannot: many tools share a letter that takes a value in some of them.
    """
    return word is not None and not _FLAG.match(word)
