"""The command table: what programs, flags and subcommands do, read from data files."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from switchyard_core.mutation.shell.arguments import Arguments
from switchyard_core.mutation.tables import load_table

__all__ = ["CommandTable", "Program", "UsageRule", "command_table"]

#: A package of a registry with its version, as runners take it: `prettier@3`.
_VERSIONED = re.compile(r"^(@[^/@]+/[^@]+|[^/@]+)@[\w.^~*-]+$")
#: Longer paths are not remembered.
_SHORT = 256
_FILES = ("programs", "git", "packages", "tools")


@dataclass(frozen=True, slots=True)
class _Subcommands:
    """The subcommands of a rule, taken apart.

    Args:
        firsts: Every first word, and the first subcommand that has it.
        single: Those of one word, without globs.
        longer: Words of those of several words, by the first.
        patterns: Number of words and pattern of those with globs.
    """

    firsts: Mapping[str, str]
    single: frozenset[str]
    longer: Mapping[str, tuple[list[str], ...]]
    patterns: tuple[tuple[int, re.Pattern[str]], ...]

    def taken(self, operands: list[str]) -> int:
        """Return how many leading operands are one of them, 0 when they are none."""
        if not operands:
            return 0
        first = operands[0]
        taken = 1 if first in self.single else 0
        for words in self.longer.get(first, ()):
            if len(words) > taken and operands[: len(words)] == words:
                taken = len(words)
        for count, pattern in self.patterns:
            if taken < count <= len(operands) and pattern.fullmatch("\n".join(operands[:count])):
                taken = count
        return taken


def _subcommands(subs: tuple[str, ...]) -> _Subcommands:
    split = [_words(sub) for sub in subs]
    longer: dict[str, tuple[list[str], ...]] = {}
    for words, pattern in split:
        if len(words) > 1 and pattern is None:
            longer[words[0]] = (*longer.get(words[0], ()), words)
    return _Subcommands(
        firsts={sub.split()[0]: sub for sub in reversed(subs) if sub},
        single=frozenset(words[0] for words, p in split if len(words) == 1 and p is None),
        longer=longer,
        patterns=tuple((len(words), p) for words, p in split if p is not None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRule:
    """One way of using a program and what it does; the first one that applies decides.

    Args:
        sub: Leading operands, each ``"word"`` or ``"word word"``; empty for any.
        flags: At least one of these flags is there.
        also: At least one of these is there, too.
        without: None of these is there.
        operand: Some operand matches one of these globs.
        at_least: Operands behind the subcommand, at least.
        at_most: Operands behind the subcommand, at most.
        label: What it does, unless it ``writes`` paths.
        writes: Which words are the written paths.
        cap: The most that the writing may count for.
        optional: Whether a use that names no path is left to the next rule.
        run: What to do with the operands instead: ``script``, ``shell``, ``program``.
        subs: The subcommands, taken apart.
    """

    sub: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    operand: tuple[str, ...] = ()
    at_least: int = 0
    at_most: int = 1_000_000
    label: str = "read_only"
    writes: str = ""
    cap: str | None = None
    optional: bool = False
    run: str = ""
    subs: _Subcommands = field(init=False)

    def __post_init__(self) -> None:
        """Take the subcommands apart."""
        object.__setattr__(self, "subs", _subcommands(self.sub))

    @property
    def firsts(self) -> frozenset[str] | None:
        """The first operands to which the rule may apply, ``None`` for any."""
        if not self.sub or any(not sub or set("*?[") & set(sub) for sub in self.sub):
            return None
        return frozenset(sub.split()[0] for sub in self.sub)

    def applies(self, arguments: Arguments) -> list[str] | None:
        """Return the operands behind the subcommand, ``None`` when the rule is not about this."""
        operands = arguments.operands
        if self.sub:
            taken = self.subs.taken(operands)
            if not taken:
                return None
            operands = operands[taken:]
        if self.flags and not arguments.has(self.flags):
            return None
        if self.also and not arguments.has(self.also):
            return None
        if self.without and arguments.has(self.without):
            return None
        if not self.at_least <= len(operands) <= self.at_most:
            return None
        if self.operand and not any(
            fnmatch.fnmatchcase(word, glob) for word in operands for glob in self.operand
        ):
            return None
        return operands


def _words(sub: str) -> tuple[list[str], re.Pattern[str] | None]:
    """Return the words of a subcommand, and a pattern for them joined when they hold globs."""
    words = sub.split()
    if not any(sign in sub for sign in "*?["):
        return words, None
    return words, re.compile("\n".join(fnmatch.translate(word)[:-2] for word in words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program of the table.

    Args:
        kind: ``program``, ``wrapper``, ``interpreter`` or ``language`` (see the data files).
        valued: Flags that take a value.
        attached: Short flags whose value is the rest of their word.
        long_single: Long flags have one dash.
        bundled: The first word is flags even without a dash.
        rules: Uses, the first that applies decides.
        by_first: The rules that may apply when the first operand is a certain word.
        others: The rules that may apply when it is another one.
        behind: First words of the subcommands behind which a wrapper's command stands.
        table: The table as written, for the keys of one kind.
    """

    kind: str
    valued: frozenset[str]
    attached: frozenset[str]
    long_single: bool
    bundled: bool
    rules: tuple[UsageRule, ...]
    by_first: Mapping[str, tuple[UsageRule, ...]]
    others: tuple[UsageRule, ...]
    behind: frozenset[str]
    table: Mapping[str, Any]

    def rules_for(self, operands: list[str]) -> tuple[UsageRule, ...]:
        """Return the rules that may apply to a use with these operands, in order."""
        return self.by_first.get(operands[0], self.others) if operands else self.others


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTable:
    """Every program by name.

    Args:
        programs: Programs with rules; a name may have a wrapper and a program.
        simple: Label of programs that always do the same.
        globs: Matches other spellings such as ``python3.*``, each a group.
        standing_for: The name that each group of ``globs`` stands for.
        words: Lists of words by name, such as the script names that only read.
    """

    programs: Mapping[str, tuple[Program, ...]]
    simple: Mapping[str, str]
    globs: re.Pattern[str]
    standing_for: Mapping[str, str]
    words: Mapping[str, frozenset[str]]

    def canonical(self, name: str) -> str:
        """Return the name under which a program is listed."""
        if name in self.programs or name in self.simple:
            return name
        match = self.globs.match(name)
        return self.standing_for[match.lastgroup or ""] if match else name

    def knows(self, name: str) -> bool:
        """Tell whether the table says anything about a program."""
        name = self.canonical(name)
        return name in self.programs or name in self.simple

    def name_of(self, path: str) -> str:
        """Return the name of a program as the table lists it, from its path or package."""
        return _name_of(path) if len(path) <= _SHORT else _name_of.__wrapped__(path)


@lru_cache(maxsize=1024)
def _name_of(path: str) -> str:
    table = command_table()
    if match := _VERSIONED.match(path):
        path = match[1]
    name = path if path.startswith("@") else posixpath.basename(path.rstrip("/")) or path
    lowered = name.lower()
    for suffix in (".exe", ".cmd", ".bat"):
        stem = lowered.removesuffix(suffix)
        if stem == lowered or not table.knows(stem):
            continue
        # `build.bat` is a script of the project, whatever is called `build` elsewhere.
        if suffix != ".bat" or table.canonical(stem) in table.words["local_programs"]:
            return stem
    return name


@cache
def command_table() -> CommandTable:
    """Return the table of the shipped data files; built once."""
    programs: dict[str, list[Program]] = {}
    simple: dict[str, str] = {}
    globs: list[tuple[str, str]] = []
    words: dict[str, frozenset[str]] = {}
    for file in _FILES:
        table = load_table(file)
        for label, names in table.get("simple", {}).items():
            simple.update(dict.fromkeys(names, label))
        globs += [(glob, name) for glob, name in table.get("globs", {}).items()]
        words.update({name: frozenset(value) for name, value in table.get("words", {}).items()})
        for name, program in _programs(table):
            programs.setdefault(name, []).append(program)
    return CommandTable(
        programs={name: tuple(listed) for name, listed in programs.items()},
        simple=simple,
        globs=re.compile(
            "|".join(f"(?P<g{n}>{fnmatch.translate(glob)})" for n, (glob, _) in enumerate(globs))
        ),
        standing_for={f"g{n}": name for n, (_, name) in enumerate(globs)},
        words=words,
    )


def _programs(table: Mapping[str, Any]) -> Iterator[tuple[str, Program]]:
    for kind in ("wrapper", "interpreter", "program"):
        for entry in table.get(kind, ()):
            rules = tuple(_rule(rule) for rule in entry.get("rules", ()))
            firsts = {word for rule in rules for word in rule.firsts or ()}
            program = Program(
                kind=kind,
                valued=frozenset(entry.get("values", ())),
                attached=frozenset(entry.get("attached", ())),
                long_single=entry.get("long_single", False),
                bundled=entry.get("bundled", False),
                rules=rules,
                by_first={
                    word: tuple(r for r in rules if r.firsts is None or word in r.firsts)
                    for word in firsts
                },
                others=tuple(rule for rule in rules if rule.firsts is None),
                behind=frozenset(sub.split()[0] for sub in entry.get("sub", ())),
                table=entry,
            )
            for name in entry["names"]:
                yield name, program


def _rule(entry: Mapping[str, Any]) -> UsageRule:
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    return UsageRule(**values)
