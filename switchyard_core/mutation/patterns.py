"""Patterns that run in linear time: regular expressions and globs for names and paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import re2

__all__ = ["PatternError", "linear", "name_glob", "path_classes", "path_glob", "regex"]

#: Characters of a pattern that may become a set.
_LONG = 8192

_Search = Callable[[str], bool]


class PatternError(ValueError):
    """A regular expression or glob is malformed; the text says how."""


def regex(pattern: str, *, ignore_case: bool = False) -> _Search:
    """Compile a regular expression (RE2 syntax) to a test that finds it anywhere in a text.

    Raises:
        PatternError: RE2 refuses the pattern.
    """
    search = _compile(pattern, ignore_case=ignore_case).search
    return lambda text: search(_encoded(text)) is not None


def linear(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """Compile a pattern of a data file; ``^`` and ``$`` match at lines, ``.`` not their ends.

    Raises:
        PatternError: RE2 refuses the pattern.
    """
    compiled: re.Pattern[str] = _compile(f"(?m:{pattern})", ignore_case=ignore_case, lines=True)
    return compiled


def name_glob(glob: str) -> _Search:
    """Compile a glob on a whole name, ignoring case; ``*`` matches any text.

    Raises:
        PatternError: A bracket is not closed.
    """
    match = _compile(_translated(glob, star=".*"), ignore_case=True).fullmatch
    return lambda text: match(_encoded(text)) is not None


def path_glob(globs: Iterable[str]) -> _Search:
    """Compile globs on paths to one test that holds when any of them matches.

    A glob without ``/`` matches the last part of the path, any other one the whole path;
    ``*`` stays inside one part, ``**`` crosses parts.

    Raises:
        PatternError: A bracket is not closed.
    """
    pattern = _path_pattern(globs)
    if not pattern:
        return lambda _text: False
    match = _compile(pattern, ignore_case=True).fullmatch
    if len(pattern) > _LONG:
        return lambda text: match(_encoded(text)) is not None
    # A set says only whether it matches, in half the time; a long one might not fit its memory.
    options = _options(ignore_case=True, lines=False)
    found = re2.Set.FullMatchSet(options)
    found.Add(pattern)
    found.Compile()
    return lambda text: bool(found.Match(_encoded(text)))


def path_classes(classes: Mapping[str, Iterable[str]]) -> Callable[[str], Sequence[str]]:
    """Compile classes of path globs to one test; see :func:`path_glob`.

    Most paths are of no class, which one look says where one for each class would cost as much
    again.

    Raises:
        PatternError: A bracket is not closed.
    """
    found = re2.Set.FullMatchSet(_options(ignore_case=True, lines=False))
    names: list[str] = []
    for name, globs in classes.items():
        found.Add(_path_pattern(globs))
        names.append(name)
    found.Compile()
    match = found.Match

    def named(text: str) -> Sequence[str]:
        places = match(text.encode("utf-8", "replace"))
        return [names[place] for place in places] if places else ()

    return named


def _path_pattern(globs: Iterable[str]) -> str:
    parts = []
    for glob in globs:
        body = _translated(glob, star="[^/]*")
        parts.append(body if "/" in glob else f"(?:.*/)?{body}")
    return "|".join(f"(?:{part})" for part in parts)


def _options(*, ignore_case: bool, lines: bool) -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.dot_nl = not lines
    return options


def _compile(pattern: str, *, ignore_case: bool, lines: bool = False) -> Any:
    options = _options(ignore_case=ignore_case, lines=lines)
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raw = error.args[0] if error.args else error
        text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
        raise PatternError(text) from None
    return compiled


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
                msg = f"`[` at column {index} is not closed"
                raise PatternError(msg)
            inner = glob[index + 1 : end].replace("\\", "\\\\")
            result.append(f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]")
            index = end + 1
        else:
            result.append(re.escape(glob[index]))
            index += 1
    return "".join(result)
