"""The command table: what programs do by their flags and operands, read from data files."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import zip_longest
from typing import Any

from switchyard_core.mutation.shell.arguments import Arguments, is_value, split_arguments
from switchyard_core.mutation.tables import load_table

__all__ = ["CommandTable", "Program", "UsageRule", "command_table", "is_plain", "select"]

#: A package of a registry with its version, as runners take it: `prettier@3`, `black==24.1`,
#: `golang.org/x/tools/cmd/goimports@latest`.
_VERSIONED = re.compile(
    r"^(@[^/@]+/[^@]+|[^@=<>~!\[]+)(?:\[[\w.,-]+\])?(?:@[\w.^~*-]+|[=<>~!]=[\w.,*+-]+)$"
)
#: Longer paths are not remembered.
_SHORT = 256
#: Earlier files are asked first when several know a program.
_FILES = ("asks", "outputs", "formatters", "programs", "git", "packages", "tools")
#: A path on another machine or in a store, such as `host:a` and `s3://b/a`; not `C:\\a`.
_ELSEWHERE = re.compile(r"[^/\\]*:(?!\\)")
_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,9}$", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRule:
    """One way of using a program and what it does; the first one that applies decides.

    The keys are those of the data files, which ``data/programs.toml`` explains.
    """

    sub: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    operand: tuple[str, ...] = ()
    value: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    at_least: int = 0
    at_most: int = 1_000_000
    label: str = "read_only"
    writes: str = ""
    cap: str | None = None
    usually: str | None = None
    optional: bool = False
    run: str = ""
    at: str = ""
    starred: bool = False  # whether `--x*` is among the flags, a prefix
    #: The subcommands of ``sub``, in words, by their first one.
    firsts: dict[str, list[list[str]]] = field(init=False, default_factory=dict)
    globs: list[list[str]] = field(init=False, default_factory=list)  # those that begin with a glob

    def __post_init__(self) -> None:
        """Split the subcommands into words."""
        for words in map(str.split, self.sub):
            if set("*?[").isdisjoint(words[0]):
                self.firsts.setdefault(words[0], []).append(words)
            else:
                self.globs.append(words)

    def applies(self, arguments: Arguments) -> list[str] | None:
        """Return the operands after the subcommand, ``None`` when the rule does not apply."""
        operands = arguments.operands
        if self.sub:
            taken = self._taken(operands)
            if not taken:
                return None
            operands = operands[taken:]
        has = arguments.has if self.starred else arguments.has_exactly
        if self.flags and not has(self.flags):
            return None
        if self.also and not has(self.also):
            return None
        if self.without and has(self.without):
            return None
        if not self.at_least <= len(operands) <= self.at_most:
            return None
        if self.operand and not _any_fits(operands, self.operand):
            return None
        if self.value and not _any_fits(arguments.value(self.flags), self.value):
            return None
        return operands

    def _taken(self, operands: list[str]) -> int:
        """Return how many leading operands are a subcommand."""
        if not operands:
            return 0
        taken = 0
        for words in self.firsts.get(operands[0], ()):
            if len(words) == 1:
                taken = taken or 1
            elif taken < len(words) <= len(operands) and all(map(_fits, operands, words)):
                taken = len(words)
        for words in self.globs:
            if taken < len(words) <= len(operands) and all(map(_fits, operands, words)):
                taken = len(words)
        return taken

    def shown(self, arguments: Arguments) -> list[str]:
        """Return the words of a use that decided, for the verdict."""
        shown = [flag for flag in self.flags if flag in arguments.flags][:1]
        first = self.firsts.get(arguments.operands[0]) if arguments.operands else None
        return [" ".join(first[0]), *shown] if first else shown

    def strongest(self, path: str) -> str | None:
        """Return the strongest label that writing a path may have, ``None`` for any."""
        return self.cap or (None if is_plain(path) else self.usually)

    def written(self, operands: list[str], arguments: Arguments) -> list[str]:
        """Return the paths that a use writes."""
        if self.writes == "value":
            return arguments.value(self.flags)
        paths = select(self.writes, operands)
        for directory in arguments.value(self.below)[:1]:
            paths = [posixpath.join(directory, path) for path in paths]
        return paths

    def place(self, operands: list[str], arguments: Arguments) -> str:
        """Return the directory in which a use edits, ``""`` for where the shell is."""
        places = [*arguments.value(self.below)[:1], *(select(self.at, operands) if self.at else ())]
        return posixpath.join(*places) if places else ""


def is_plain(path: str) -> bool:
    """Return whether a path says that it is a file: by its suffix, or a directory of sources."""
    *directories, name = path.replace("\\", "/").rstrip("/").split("/")
    sources = command_table().words["source_directories"]
    return bool(_SUFFIX.search(name)) or not sources.isdisjoint((*directories, name))


def _fits(word: str, glob: str) -> bool:
    return word == glob or fnmatch.fnmatchcase(word, glob)


def _any_fits(words: Sequence[str], globs: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(word, glob) for word in words for glob in globs)


def select(which: str, operands: list[str]) -> list[str]:
    """Return the operands that are written paths.

    ``which`` is ``all``, ``first``, ``second``, ``last``, ``rest``, ``into``, ``landed``, ``urls``,
    ``cloned`` or ``key:NAME``.
    """
    kind, _, name = which.partition(":")
    if kind == "key":
        return [word.removeprefix(f"{name}=") for word in operands if word.startswith(f"{name}=")]
    return _SELECT[kind](operands)


def _into(operands: list[str]) -> list[str]:
    """Return what a copy of the first operands to the last one writes.

    A destination that looks like a directory gets files with the names of the sources.
    """
    *sources, last = operands or [""]
    if not sources or not (last.endswith(("/", "\\")) or last in {".", ".."}):
        return [last] if operands else []
    names = [posixpath.basename(source.replace("\\", "/").rstrip("/")) for source in sources]
    return [posixpath.join(last.replace("\\", "/"), name) for name in names]


def _landed(operands: list[str]) -> list[str]:
    """Return what a copy between machines writes on this one."""
    return [] if _ELSEWHERE.match(operands[-1] if operands else "") else _into(operands)


def _urls(operands: list[str]) -> list[str]:
    """Return the names under which downloads of these addresses are kept."""
    paths = [re.split("[?#]", word, maxsplit=1)[0] for word in operands]
    return [posixpath.basename(path.partition("://")[2].partition("/")[2]) for path in paths]


def _cloned(operands: list[str]) -> list[str]:
    """Return the directory into which a repository is cloned."""
    name = re.split("[/:]", operands[0].rstrip("/"))[-1] if operands else ""
    return operands[1:2] or [name.removesuffix(".git")]


_SELECT: Mapping[str, Callable[[list[str]], list[str]]] = {
    "all": lambda operands: operands,
    "first": lambda operands: operands[:1],
    "second": lambda operands: operands[1:2],
    "last": lambda operands: operands[-1:],
    "rest": lambda operands: operands[1:],
    "into": _into,
    "landed": _landed,
    "urls": _urls,
    "cloned": _cloned,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program of the table."""

    kind: str  # ``program``, ``wrapper`` or ``interpreter`` (see the data files)
    splitting: Mapping[str, Any]  # how its words are split; see :func:`split_arguments`
    rules: tuple[UsageRule, ...]  # uses, the first that applies decides
    #: The rules that may apply by first operand.
    by_first: Mapping[str, tuple[UsageRule, ...]]
    others: tuple[UsageRule, ...]  # the rules that may apply to other operands
    repository: bool  # whether it edits a repository as a whole, as git does
    #: Words without which it decides nothing, first operands of rules or of a wrapper's ``sub``;
    #: ``None`` if it may decide without any.
    needs: frozenset[str] | None
    #: The same if there are no flags among the words.
    needs_bare: frozenset[str] | None
    #: Flags without which no rule applies; ``None`` if there are rules for any.
    needs_flag: frozenset[str] | None
    #: Subcommands, in words, before a wrapper's command; empty for any.
    behind: tuple[list[str], ...]
    table: Mapping[str, Any]  # the table as written, for the keys of one kind

    @property
    def telling(self) -> frozenset[str] | None:
        """Words or flags without which it decides nothing, ``None`` if it may without any."""
        return self.needs_flag if self.needs is None or self.needs_bare is None else self.needs

    def split(self, words: Sequence[str], *, stop: bool = False) -> Arguments:
        """Split the words after the program's name."""
        return split_arguments(words, stop=stop, **self.splitting)

    def may_decide(self, words: Sequence[str], flags: Collection[str]) -> bool:
        """Return whether a rule may apply; quicker than to split the words.

        ``flags`` are the words that begin with ``-``, without what is behind ``=``.
        """
        needs = self.needs if flags else self.needs_bare
        if needs is not None and needs.isdisjoint(words):
            return False
        return self.needs_flag is None or not self.needs_flag.isdisjoint(flags)

    def rules_for(self, operands: list[str]) -> tuple[UsageRule, ...]:
        """Return the rules that may apply to these operands, in order."""
        return self.by_first.get(operands[0], self.others) if operands else self.others


#: What :attr:`CommandTable.usual` has for other programs.
_NO_ENTRIES: tuple[frozenset[str], tuple[Program, ...]] = (frozenset(), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTable:
    """Every program by name."""

    #: Programs with rules; a name may have a wrapper and a program.
    programs: Mapping[str, tuple[Program, ...]]
    #: By program: words and flags without which only the entries that are named here may decide.
    usual: Mapping[str, tuple[frozenset[str], tuple[Program, ...]]]
    simple: Mapping[str, str]  # label of programs that always do the same
    reading: frozenset[str]  # those that only read
    globs: re.Pattern[str]  # other spellings such as ``python3.*``, each a group
    standing_for: Mapping[str, str]  # the name for each group of ``globs``
    #: Lists of words by name, such as the script names that only read.
    words: Mapping[str, frozenset[str]]
    #: By program, the flags whose meaning is known although other programs name outputs by them.
    explained: Mapping[str, frozenset[str]]

    def entries(
        self, name: str, words: Sequence[str], flags: Collection[str]
    ) -> tuple[Program, ...]:
        """Return the entries of a program that may decide; most need a word that is not there."""
        telling, few = self.usual.get(name, _NO_ENTRIES)
        if telling.isdisjoint(words) and telling.isdisjoint(flags):
            return few
        return self.programs[name]

    def canonical(self, name: str) -> str:
        """Return the name under which a program is listed."""
        if name in self.programs or name in self.simple:
            return name
        match = self.globs.match(name)
        return self.standing_for[match.lastgroup or ""] if match else name

    def knows(self, name: str) -> bool:
        """Return whether the table has a program."""
        name = self.canonical(name)
        return name in self.programs or name in self.simple

    def outputs(self, name: str, words: Sequence[str]) -> list[tuple[str, str]]:
        """Return each flag that seems to name an output, and the output (``""`` if unnamed).

        These are flags by which most programs write and that the entry of this one does not
        explain.
        """
        known = self.words["output_flags"]
        # Nearly every use of a program ends here.
        if known.isdisjoint(words) and "=" not in "".join(words):
            return []
        named = known & {word.partition("=")[0] for word in words if word[:1] == "-"}
        if not named:
            return []
        named -= self.explained.get(self.canonical(name), frozenset())
        words = words[: words.index("--")] if "--" in words else words
        found = []
        for word, following in zip_longest(words, words[1:], fillvalue=""):
            flag, equals, value = word.partition("=")
            value = value if equals else following if is_value(following) else ""
            if flag in named and not self._is_format(value):
                found.append((flag, value))
        return found

    def _is_format(self, value: str) -> bool:
        """Return whether the value of an output flag is the form of the output, such as `json`."""
        return re.split("[=:]", value, maxsplit=1)[0].casefold() in self.words["output_formats"]

    def is_local(self, name: str) -> bool:
        """Return whether a project may have a program of this name in its sources."""
        return self.canonical(name) in self.words["local_programs"]

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
        # `build.bat` is a script of the project, not the program `build`.
        if stem != lowered and table.knows(stem) and (suffix != ".bat" or table.is_local(stem)):
            return stem
    return name


@cache
def command_table() -> CommandTable:
    """Return the table of the shipped data files; built once."""
    programs: dict[str, list[Program]] = {}
    simple: dict[str, str] = {}
    globs: list[tuple[str, str]] = []
    words: dict[str, frozenset[str]] = {}
    explained: dict[str, set[str]] = defaultdict(set)
    for file in _FILES:
        table = load_table(file)
        for label, names in table.get("simple", {}).items():
            simple.update(dict.fromkeys(names, label))
        globs += table.get("globs", {}).items()
        words.update({name: frozenset(value) for name, value in table.get("words", {}).items()})
        for flag, names in table.get("other_meanings", {}).items():
            for name in names:
                explained[name].add(flag)
        for name, program in _programs(table):
            programs.setdefault(name, []).append(program)
            for rule in program.rules:
                explained[name].update(rule.flags, rule.also, rule.without)
    return CommandTable(
        programs={name: tuple(listed) for name, listed in programs.items()},
        usual={name: _usual(listed) for name, listed in programs.items()},
        simple=simple,
        reading=frozenset(n for n, v in simple.items() if v == "read_only" and n not in programs),
        globs=re.compile(
            "|".join(f"(?P<g{n}>{fnmatch.translate(glob)})" for n, (glob, _) in enumerate(globs))
        ),
        standing_for={f"g{n}": name for n, (_, name) in enumerate(globs)},
        words=words,
        explained={name: frozenset(flags) for name, flags in explained.items()},
    )


def _usual(listed: Sequence[Program]) -> tuple[frozenset[str], tuple[Program, ...]]:
    few = tuple(program for program in listed if program.telling is None)
    return frozenset().union(*(program.telling or () for program in listed)), few


def _programs(table: Mapping[str, Any]) -> Iterator[tuple[str, Program]]:
    for kind in ("wrapper", "interpreter", "program"):
        for entry in table.get(kind, ()):
            places = entry.get("places", ())
            rules = tuple(_rule({"below": places, **rule}) for rule in entry.get("rules", ()))
            valued = (*entry.get("values", ()), *entry.get("shell_flags", ()), *places)
            splitting = {
                "valued": frozenset(valued),
                "attached": frozenset(entry.get("attached", ())),
                **{key: True for key in ("long_single", "bundled", "through") if entry.get(key)},
            }
            others = tuple(rule for rule in rules if not rule.sub or rule.globs)
            firsts = {first for rule in rules for first in rule.firsts}
            program = Program(
                kind=kind,
                splitting=_SPLITTINGS.setdefault(frozenset(splitting.items()), splitting),
                rules=rules,
                by_first={
                    word: tuple(
                        rule for rule in rules if not rule.sub or rule.globs or word in rule.firsts
                    )
                    for word in firsts
                },
                others=others,
                repository=bool(entry.get("repository")),
                **_needs(kind, entry, rules),
                behind=tuple(map(str.split, entry.get("sub", ()))),
                table=entry,
            )
            for name in entry["names"]:
                yield name, program


def _needs(
    kind: str, entry: Mapping[str, Any], rules: Sequence[UsageRule]
) -> dict[str, frozenset[str] | None]:
    """Return what tells that an entry cannot decide."""
    if kind == "program":
        bare = _needed(rule for rule in rules if not rule.flags)
        return {
            "needs": _needed(rules),
            "needs_bare": None if entry.get("bundled") else bare,
            "needs_flag": _needed_flags(rules),
        }
    firsts = frozenset(sub.split()[0] for sub in entry.get("sub", ()))
    needs = firsts if firsts and "*" not in firsts else None
    return {"needs": needs, "needs_bare": needs, "needs_flag": None}


def _needed(rules: Iterable[UsageRule]) -> frozenset[str] | None:
    """Return the words of which one is needed for any of the rules, ``None`` if there are none."""
    listed = list(rules)
    if any(not rule.sub or rule.globs for rule in listed):
        return None
    return frozenset(first for rule in listed for first in rule.firsts)


def _needed_flags(rules: Iterable[UsageRule]) -> frozenset[str] | None:
    """Return the flags of which one is needed, ``None`` if they can be hidden in other words."""
    flags: set[str] = set()
    for rule in rules:
        # `-i` may be part of `-ni`, and `--x*` a longer word.
        if not rule.flags or any(flag[:2] != "--" or "*" in flag for flag in rule.flags):
            return None
        flags.update(rule.flags)
    return frozenset(flags)


#: Ways to split words that are alike, so that words need to be split once for all of them.
_SPLITTINGS: dict[Any, Mapping[str, Any]] = {}


def _rule(entry: Mapping[str, Any]) -> UsageRule:
    keys: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    flags = [flag for key in ("flags", "also", "without") for flag in keys.get(key, ())]
    return UsageRule(starred=any("*" in flag for flag in flags), **keys)
