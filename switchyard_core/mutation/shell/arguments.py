"""Takes a program's words apart into flags, their values and operands."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import msgspec

__all__ = ["Arguments", "split_arguments"]

#: Looks like a flag, so it is no value: many tools share a letter that takes one in some of them.
_FLAG = re.compile(r"-(?:[A-Za-z]{1,2}|-[A-Za-z][\w-]*)$")


class Arguments(msgspec.Struct, kw_only=True, eq=False):
    """The words after a program's name.

    Args:
        flags: Every flag that is there, ``-abc`` whole and taken apart; ``--`` when it is there.
        values: Values by flag, in order.
        operands: The words that are no flags and no values.
        rest: Words from the first operand on, untouched: the command of a wrapper.
        after: Operands behind ``--``, ``None`` without one.
    """

    flags: set[str] = msgspec.field(default_factory=set)
    values: dict[str, list[str]] = msgspec.field(default_factory=dict)
    operands: list[str] = msgspec.field(default_factory=list)
    rest: list[str] = msgspec.field(default_factory=list)
    after: list[str] | None = None

    def has(self, names: Collection[str]) -> bool:
        """Tell whether any of these flags is there; ``--x*`` means every flag with that start."""
        if not self.flags:
            return False
        if not self.flags.isdisjoint(names):
            return True
        starts = tuple(name[:-1] for name in names if name.endswith("*"))
        return bool(starts) and any(flag.startswith(starts) for flag in self.flags)

    def value(self, names: Collection[str]) -> list[str]:
        """Return the values of these flags."""
        if not self.values:
            return []
        starts = tuple(name[:-1] for name in names if name.endswith("*"))
        return [
            value
            for flag, values in self.values.items()
            if flag in names or (starts and flag.startswith(starts))
            for value in values
        ]


def split_arguments(
    words: Sequence[str],
    *,
    valued: Collection[str] = (),
    attached: Collection[str] = (),
    long_single: bool = False,
    bundled: bool = False,
    stop: bool = False,
    through: bool = False,
) -> Arguments:
    """Take words apart.

    Args:
        words: Without the program's name.
        valued: Flags that take a value, in the same word or the next one.
        attached: Short flags whose value, if any, is the rest of their word.
        long_single: Flags such as ``-check`` have one dash and are never taken apart.
        bundled: The first word is flags even without a dash, as in ``tar xzf``.
        stop: Everything from the first operand on is ``rest``, for wrappers.
        through: Words behind ``--`` are flags of an inner program and count as well.
    """
    result = Arguments()
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if bundled and index == 1 and not word.startswith("-"):
            word = f"-{word}"
        if word == "--" and through:
            result.flags.add(word)
            continue
        if word == "--":
            result.flags.add(word)
            result.after = list(words[index:])
            result.operands += words[index:]
            result.rest = list(words[index:])
            break
        if not word.startswith("-") or word == "-":
            if stop:
                result.rest = list(words[index - 1 :])
                result.operands += result.rest
                break
            result.operands.append(word)
            continue
        following = words[index] if index < len(words) else None
        if following is not None and _FLAG.match(following):
            following = None
        if _add_flag(result, word, following, valued, attached, long_single=long_single):
            index += 1
    return result


def _add_flag(
    result: Arguments,
    word: str,
    following: str | None,
    valued: Collection[str],
    attached: Collection[str],
    *,
    long_single: bool,
) -> bool:
    """Add one flag word; return whether it took the following word as its value."""
    name, equals, value = word.partition("=")
    if word.startswith("--") or long_single:
        result.flags.add(name)
        if equals:
            result.values.setdefault(name, []).append(value)
        elif name in valued and following is not None:
            result.values.setdefault(name, []).append(following)
            return True
        return False
    if word in valued:
        result.flags.add(word)
        if following is not None:
            result.values.setdefault(word, []).append(following)
        return following is not None
    # Some programs have long flags with one dash (`clang-tidy -fix`): the word counts, too.
    result.flags.add(word)
    for place in range(1, len(word)):
        flag, tail = f"-{word[place]}", word[place + 1 :]
        result.flags.add(flag)
        if flag in attached:
            if tail:
                result.values.setdefault(flag, []).append(tail.removeprefix("="))
            return False
        if flag in valued:
            if tail:
                result.values.setdefault(flag, []).append(tail.removeprefix("="))
                return False
            if following is not None:
                result.values.setdefault(flag, []).append(following)
                return True
    return False
