"""Takes the heredocs of a script out, for scripts that the parser's grammar does not take whole.

The grammar has the word of a heredoc end at a blank alone, and knows few operators behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Inlined", "inline_heredocs", "substitutions"]

#: Quotes, brackets, operators and lines that are looked at one by one.
_MOST_STEPS = 4000
_START = re.compile(r"<<-?[ \t]*['\"\\]?[^\s<=]")
_OPEN = r"(?P<arithmetic>\$\(\()|(?P<open>\$\()|(?P<name>\$\{)|(?P<tick>`)|(?P<double>\")"
_SKIP = r"(?P<skip>(?:\\.)++"
_SINGLE = r"|\$'(?:[^'\\]|\\.)*+'|'[^']*+')|(?P<lone>')"
_SCANS = {
    kind: re.compile(pattern, re.VERBOSE | re.DOTALL)
    for kind, pattern in {
        '"': rf"{_SKIP})|{_OPEN}",
        "{": rf"{_SKIP})|{_OPEN}|(?P<close>}})",
        "((": rf"{_SKIP}{_SINGLE}|{_OPEN}|(?P<inner>\()|(?P<close>\))",
        "(": rf"""{_SKIP}|(?<![^\s;|&()])\#[^\n]*+|<<<{_SINGLE}|{_OPEN}
            |(?P<double_paren>\(\()|(?P<inner>\()|(?P<close>\))|(?P<line>\n)
            |<<(?P<tabs>-?)[ \t]*
            (?P<word>(?:'[^'\n]*+'|"[^"\n]*+"|\\.|[^\s;&|<>()'"\\`])++)""",
    }.items()
}
_QUOTES = re.compile(r"\\(.)|['\"]", re.DOTALL)


class Inlined(NamedTuple):
    """A script whose heredocs are herestrings of one quoted word.

    Args:
        source: With the bodies as they are, quotes in them too.
        code: Of the same layout, with bodies of letters, to be parsed.
        expanding: Where in it words begin in which the shell carries substitutions out.
    """

    source: str
    code: str
    expanding: frozenset[int]


class _Heredoc(NamedTuple):
    place: int
    end: str
    tabs: bool
    expands: bool


def inline_heredocs(text: str) -> Inlined | None:
    """Return a script without heredocs; one that is not understood yields ``None``.

    Args:
        text: The script. Without heredocs it comes back as it is.
    """
    if not _START.search(text):
        return Inlined(text, text, frozenset())
    scan = _Scan(text)
    if not scan.run():
        return None
    return scan.joined() if scan.bodies else Inlined(text, text, frozenset())


class _Scan:
    """One pass over a script."""

    def __init__(self, text: str) -> None:
        self.text = text
        #: What is open: a string, an expansion, arithmetic, a substitution.
        self.modes: list[str] = []
        #: How many heredocs were awaited where each pair of backticks begins.
        self.ticks: list[int] = []
        self.parts: list[str] = []
        self.awaited: list[_Heredoc] = []
        #: Of parts that stand for a heredoc: the body, and whether it has substitutions.
        self.bodies: dict[int, tuple[str, bool]] = {}

    def run(self) -> bool:
        """Go over the script; return whether everything in it is closed."""
        position = 0
        for _ in range(_MOST_STEPS):
            mode = self.modes[-1] if self.modes else "("
            match = _SCANS["(" if mode == "`" else mode].search(self.text, position)
            if match is None:
                self.parts.append(self.text[position:])
                self._read_bodies(len(self.text))
                return not self.modes
            kind = match.lastgroup or ""
            if kind == "lone":
                return not self.bodies and not _START.search(self.text, position)
            if kind == "word":
                self.parts += [self.text[position : match.start()], ""]
                self._start(match)
                position = match.end()
                continue
            self.parts.append(self.text[position : match.end()])
            position = match.end()
            if kind == "line":
                position = self._read_bodies(position)
            else:
                self._switch(kind)
        return False

    def _switch(self, kind: str) -> None:
        """Open or close what a token opens or closes."""
        modes = self.modes
        mode = modes[-1] if modes else ""
        if kind == "close":
            if mode in {"(", "((", "{"}:
                modes.pop()
        elif (kind, mode) == ("double", '"'):
            modes.pop()
        elif (kind, mode) == ("tick", "`"):
            modes.pop()
            # The shell reads what is in backticks on its own: what has not begun is empty.
            del self.awaited[self.ticks.pop() :]
        elif kind in {"arithmetic", "double_paren"}:
            # Each closes with a bracket of its own.
            modes += ["((", "(("]
        elif kind == "inner":
            modes.append(mode if mode == "((" else "(")
        elif kind in {"open", "name", "tick", "double"}:
            if kind == "tick":
                self.ticks.append(len(self.awaited))
            modes.append({"open": "(", "name": "{", "tick": "`", "double": '"'}[kind])

    def _start(self, match: re.Match[str]) -> None:
        word = match["word"]
        end = _QUOTES.sub(lambda found: found[1] or "", word)
        place = len(self.parts) - 1
        self.bodies[place] = ("", False)
        self.awaited.append(_Heredoc(place, end, bool(match["tabs"]), end == word))

    def _read_bodies(self, position: int) -> int:
        """Read the bodies of the heredocs of a line; return where the next line begins."""
        for place, word, tabs, expands in self.awaited:
            # In a substitution its bracket may stand behind the word.
            behind = r"\n|\Z|(?=\))" if self.modes else r"\n|\Z"
            indent = r"\t*" if tabs else ""
            pattern = f"^{indent}{re.escape(word)}(?:{behind})"
            found = re.compile(pattern, re.MULTILINE).search(self.text, position)
            stop = found.start() if found else len(self.text)
            self.bodies[place] = (self.text[position:stop], expands)
            position = found.end() if found else stop
        self.awaited.clear()
        return position

    def joined(self) -> Inlined:
        """Return the script with its heredocs replaced."""
        source: list[str] = []
        code: list[str] = []
        expanding: list[int] = []
        length = 0
        for place, part in enumerate(self.parts):
            shown = part
            written = part
            if place in self.bodies:
                body, expands = self.bodies[place]
                before = source[-1][-1:] if source else ""
                start = "<<<'" if before.isdigit() else " <<<'"
                body = body.removesuffix("\n")
                written, shown = f"{start}{body}' ", f"{start}{'x' * len(body)}' "
                if expands:
                    expanding.append(length + len(start) - 1)
            source.append(written)
            code.append(shown)
            length += len(written)
        return Inlined("".join(source), "".join(code), frozenset(expanding))


_SUBSTITUTION = re.compile(
    r"(?:\\.)++|(?P<tick>`(?P<ticked>(?:[^`\\]|\\.)*+)`?)|(?P<open>\$\()", re.DOTALL
)
_NESTED = re.compile(
    r"(?:\\.)++|'[^']*+'|\"(?:[^\"\\]|\\.)*+\"|(?P<open>\()|(?P<close>\))", re.DOTALL
)


def substitutions(body: str) -> Iterator[str]:
    """Yield the scripts that the shell runs to fill in the body of a heredoc."""
    position = 0
    while match := _SUBSTITUTION.search(body, position):
        position = match.end()
        if match["tick"] is not None:
            yield re.sub(r"\\([\\$`])", r"\1", match["ticked"])
        elif match["open"] is not None:
            end = _closing(body, position)
            yield body[position:end]
            position = end


def _closing(body: str, position: int) -> int:
    """Return the place of the bracket that closes one before a place, or the end."""
    depth = 1
    while match := _NESTED.search(body, position):
        position = match.end()
        depth += (match["open"] is not None) - (match["close"] is not None)
        if not depth:
            return match.start()
    return len(body)
