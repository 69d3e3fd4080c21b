"""Patterns that run in linear time: regular expressions, and globs for names and paths.

The only module that runs RE2. All patterns of policies, scripts and recordings are compiled here,
so that no text can make a pattern take longer than the text is long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import re2

__all__ = [
    "MAX_PROGRAM",
    "PatternError",
    "compile_pattern",
    "id_glob",
    "linear",
    "name_glob",
    "name_set",
    "path_classes",
    "path_glob",
    "pattern_set",
]

#: Most instructions that a regular expression of a policy or script may compile to. RE2 may run
#: all of them at each character: with this many, a megabyte of the worst text takes seconds.
MAX_PROGRAM = 2000
#: Most bytes that one compiled pattern takes, its cache included.
_MAX_MEMORY = 8 * 1024 * 1024
#: Characters of a pattern that may become a set.
_LONG = 8192

#: A run of characters without a meaning in a glob.
_PLAIN = re.compile(r"[^*?\[]+")

_Search = Callable[[str], bool]


class PatternError(ValueError):
    """A regular expression or glob is malformed, or costs too much.

    Args:
        message: What is wrong.
        column: 0-based column inside the pattern.
    """

    def __init__(self, message: str, column: int = 0) -> None:
        self.message = message
        self.column = column
        super().__init__(message)


def compile_pattern(
    pattern: str, *, ignore_case: bool = False, dot_all: bool = False
) -> Callable[[str], bool]:
    """Compile a regular expression (RE2 syntax) to a test that finds it anywhere in a text.

    Args:
        pattern: The expression; it has no look-around and no back-references.
        ignore_case: Whether letters match in any case.
        dot_all: Whether ``.`` matches line breaks too.

    Raises:
        PatternError: RE2 refuses the expression, or it compiles to too large a program.
    """
    compiled = _compile(pattern, ignore_case=ignore_case, dot_all=dot_all)
    if compiled.programsize > MAX_PROGRAM:
        msg = (
            f"it compiles to {compiled.programsize} instructions, and {MAX_PROGRAM} are allowed: "
            "use shorter repetitions, or several expressions"
        )
        raise PatternError(msg)
    search = compiled.search
    return lambda text: search(_encoded(text)) is not None


def linear(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """Compile a pattern of our own; ``^`` and ``$`` match at lines, ``.`` not their ends."""
    compiled: re.Pattern[str] = _compile(f"(?m:{pattern})", ignore_case=ignore_case)
    return compiled


def name_glob(glob: str) -> _Search:
    """Compile a glob on a whole name, ignoring case; ``*`` matches any text."""
    pattern = _translated(glob, star=".*")
    match = _compile(pattern, ignore_case=True, dot_all=True).fullmatch
    return lambda text: match(_encoded(text)) is not None


def name_set(entries: Iterable[str]) -> Callable[[str], Sequence[int]]:
    """Compile globs on whole names and ``re:`` expressions to one search, ignoring case.

    It gives the places of the entries that match a name.
    """
    patterns = [
        entry[3:] if entry.startswith("re:") else rf"\A(?:{_translated(entry, star='.*')})\z"
        for entry in entries
    ]
    if not patterns:
        return lambda _name: ()
    found = pattern_set(patterns, ignore_case=True, dot_all=True)
    return lambda name: found(_encoded(name)) or ()


def id_glob(glob: str) -> _Search:
    """Compile a glob on a whole model id, in which only ``*`` is special; letters have case."""
    pattern = ".*".join(map(re.escape, glob.split("*")))
    match = _compile(pattern, dot_all=True).fullmatch
    return lambda text: match(_encoded(text)) is not None


def path_glob(globs: Iterable[str]) -> _Search:
    """Compile globs on paths to one test that holds when any of them matches.

    A glob without ``/`` matches the last part of the path, any other one the whole path;
    ``*`` stays inside one part, ``**`` crosses parts.
    """
    pattern = _path_pattern(globs)
    if not pattern:
        return lambda _text: False
    if len(pattern) > _LONG:
        match = _compile(pattern, ignore_case=True, dot_all=True).fullmatch
        return lambda text: match(_encoded(text)) is not None
    # A set says only whether it matches, in half the time; a long one might not fit its memory.
    found = pattern_set([pattern], whole=True, ignore_case=True, dot_all=True)
    return lambda text: bool(found(_encoded(text)))


def path_classes(classes: Mapping[str, Iterable[str]]) -> Callable[[str], Sequence[str]]:
    """Compile classes of path globs to one test; see :func:`path_glob`.

    Most paths have no class, which a single search tells.
    """
    names = list(classes)
    patterns = map(_path_pattern, classes.values())
    match = pattern_set(patterns, whole=True, ignore_case=True, dot_all=True)

    def named(text: str) -> Sequence[str]:
        places = match(_encoded(text))
        return [names[place] for place in places] if places else ()

    return named


def pattern_set(
    patterns: Iterable[str],
    *,
    whole: bool = False,
    ignore_case: bool = False,
    dot_all: bool = False,
) -> Callable[[str | bytes], Sequence[int] | None]:
    """Compile our own patterns to one search that gives the places of those that match.

    ``whole`` demands that they match the whole text; without a match the result is ``None``.
    """
    made = re2.Set.FullMatchSet if whole else re2.Set.SearchSet
    found = made(_options(ignore_case=ignore_case, dot_all=dot_all))
    try:
        for pattern in patterns:
            found.Add(pattern)
        found.Compile()
    except re2.error as error:
        raise PatternError(_said(error)) from None
    match: Callable[[str | bytes], Sequence[int] | None] = found.Match
    return match


def _path_pattern(globs: Iterable[str]) -> str:
    parts = []
    for glob in globs:
        body = _translated(glob, star="[^/]*")
        parts.append(body if "/" in glob else f"(?:.*/)?{body}")
    return "|".join(f"(?:{part})" for part in parts)


def _options(*, ignore_case: bool, dot_all: bool) -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    options.case_sensitive = not ignore_case
    options.dot_nl = dot_all
    return options


def _compile(pattern: str, *, ignore_case: bool = False, dot_all: bool = False) -> Any:
    # A script may hold half of an emoji, which the engine cannot encode; no text has that.
    plain = pattern.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    try:
        return re2.compile(plain, _options(ignore_case=ignore_case, dot_all=dot_all))
    except re2.error as error:
        said = _said(error)
        # RE2 names no column, but ends with the part of the expression that it cannot read.
        part = said.partition(": ")[2]
        raise PatternError(said, max(pattern.find(part), 0) if part else 0) from None


def _said(error: Exception) -> str:
    raw = error.args[0] if error.args else error
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)


def _encoded(text: str) -> bytes:
    # The engine works on bytes, and would count the characters of a text for every test.
    return text.encode("utf-8", "replace")


def _translated(glob: str, *, star: str) -> str:
    result: list[str] = []
    index = 0
    while index < len(glob):
        if glob.startswith("**/", index):
            result.append("(?:.*/)?")
            index += 3
        elif glob.startswith("**", index):
            result.append(".*")
            index += 2
        elif glob[index] == "*":
            result.append(star)
            index += 1
        elif glob[index] == "?":
            result.append("[^/]")
            index += 1
        elif glob[index] == "[":
            end = glob.find("]", index + 2)
            if end < 0:
                msg = "`[` is not closed"
                raise PatternError(msg, index)
            inner = glob[index + 1 : end].replace("\\", "\\\\")
            result.append(f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]")
            index = end + 1
        else:
            end = _PLAIN.match(glob, index).end()  # type: ignore[union-attr]  # one at least
            result.append(re.escape(glob[index:end]))
            index = end
    return "".join(result)
