"""What is quoted in a bash script, and its heredocs, found in one pass.

The parser's grammar misreads many heredocs: their word ends only at a blank, and few operators may
follow it. So the parser gets a script in which each heredoc is a redirection from a file.
Its recovery from some errors takes time that grows with the square of the pipes, redirections or
brackets before them: 100 KB of ``a|a|a|`` take minutes, without the parser's counter moving. What
is quoted does not count, and is hidden from the parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

__all__ = ["MOST_OPERATORS", "Heredoc", "Inlined", "bounded", "inline_heredocs", "substitutions"]

#: Operators of a script that are parsed; no hand-written script has as many outside quotes.
MOST_OPERATORS = 300
#: Quotes, brackets, heredocs and lines that are read one by one.
_MOST_STEPS = 4000
_OPERATORS = b"|<>()[]{"
_OPERATOR = re.compile(rb"[|<>()\[\]{]")
_HIDE = bytes.maketrans(_OPERATORS, b"x" * len(_OPERATORS))
_START = re.compile(r"<<-?[ \t]*['\"\\]?[^\s<=]")
_OPEN = r"(?P<arithmetic>\$\(\()|(?P<open>\$\()|(?P<name>\$\{)|(?P<tick>`)|(?P<double>\")"
_SKIP = r"(?P<skip>(?:\\.)++)"
_SINGLE = r"\$'(?:[^'\\]|\\.)*+'|'[^']*+'"
#: What is looked for in a string, an expansion, arithmetic, and a script or substitution.
_SCANS = {
    kind: re.compile(pattern, re.VERBOSE | re.DOTALL)
    for kind, pattern in {
        '"': rf"{_SKIP}|{_OPEN}",
        "{": rf"{_SKIP}|{_OPEN}|(?P<close>}})",
        "((": rf"{_SKIP}|(?P<quoted>{_SINGLE})|(?P<lone>')|{_OPEN}|(?P<inner>\()|(?P<close>\))",
        "(": rf"""{_SKIP}|(?P<quoted>(?<![^\s;|&()])\#[^\n]*+|{_SINGLE})|(?P<herestring><<<)
            |(?P<lone>')|{_OPEN}
            |(?P<double_paren>\(\()|(?P<inner>\()|(?P<close>\))|(?P<line>\n)
            |<<(?P<tabs>-?)[ \t]*
            (?P<word>(?:'[^'\n]*+'|"[^"\n]*+"|\\.|[^\s;&|<>()'"\\`])++)""",
    }.items()
}
_OPENED = {"open": "(", "name": "{", "tick": "`", "double": '"'}
_QUOTES = re.compile(r"\\(.)|['\"]", re.DOTALL)
_EXPANDS = re.compile(r"\$[({]|`")


class Heredoc(NamedTuple):
    """What a heredoc gives its command."""

    body: str  # its text
    expands: bool  # whether the shell expands it


class Inlined(NamedTuple):
    """A script in which each heredoc is a redirection from a file with a quoted name."""

    source: str  # the script
    heredocs: Mapping[int, Heredoc]  # by the place of the name
    whole: bool  # whether everything in the script is closed and was read


def inline_heredocs(text: str) -> Inlined:
    """Return a script without heredocs."""
    if "<<" not in text or not _START.search(text):
        return Inlined(text, {}, whole=True)
    scan = _Scan(text)
    whole = scan.run()
    return scan.joined(whole=whole)


def bounded(code: bytes) -> tuple[bytes, int]:
    """Return a script of the same layout with a bounded number of operators, and that number.

    Operators in quotes may become letters; the end may be missing.
    """
    operators = len(code) - len(code.translate(None, _OPERATORS))
    if operators <= MOST_OPERATORS:
        return code, operators
    scan = _Scan(code.decode("ascii"))
    scan.run()
    shown = bytearray(code)
    # After a quote that is not closed everything counts.
    certain = scan.opened[0] if scan.opened else len(code)
    for start, end in scan.quoted:
        if end <= certain:
            shown[start:end] = code[start:end].translate(_HIDE)
    operators = 0
    for match in _OPERATOR.finditer(shown):
        if operators == MOST_OPERATORS:
            return bytes(shown[: match.start()]), operators
        operators += 1
    return bytes(shown), operators


class _Scan:
    def __init__(self, text: str) -> None:
        self.text = text
        #: What is open: a string, an expansion, arithmetic, a substitution; and where it begins.
        self.modes: list[str] = []
        self.opened: list[int] = []
        #: How many heredocs were awaited where each pair of backticks begins.
        self.ticks: list[int] = []
        #: Ranges that are quoted.
        self.quoted: list[tuple[int, int]] = []
        self.parts: list[str] = []
        #: Heredocs whose bodies begin on the next line: numbers of parts, and their starts.
        self.awaited: list[tuple[int, re.Match[str]]] = []
        #: By the number of the part that stands for it.
        self.heredocs: dict[int, Heredoc] = {}

    def run(self) -> bool:
        """Scan the script; return whether all of it was seen and is closed."""
        position = 0
        for _ in range(_MOST_STEPS):
            mode = self.modes[-1] if self.modes else "("
            match = _SCANS["(" if mode == "`" else mode].search(self.text, position)
            if match is None:
                self.parts.append(self.text[position:])
                self._read_bodies(len(self.text))
                return not self.modes
            kind = match.lastgroup or ""
            if mode == '"':
                self.quoted.append((position, match.start()))
            if kind == "lone":
                self.parts.append(self.text[position:])
                return not self.heredocs and not _START.search(self.text, position)
            if kind == "word":
                self.parts += [self.text[position : match.start()], ""]
                self._start(match)
                position = match.end()
                continue
            self.parts.append(self.text[position : match.end()])
            position = match.end()
            if kind == "line":
                position = self._read_bodies(position)
            elif kind == "quoted":
                self.quoted.append(match.span())
            else:
                self._switch(kind, match.start())
        self.parts.append(self.text[position:])
        return False

    def _switch(self, kind: str, place: int) -> None:
        mode = self.modes[-1] if self.modes else ""
        if kind == "close":
            if mode in {"(", "((", "{"}:
                self._close()
        elif (kind, mode) == ("double", '"'):
            self._close()
        elif (kind, mode) == ("tick", "`"):
            self._close()
            # The shell reads backticks separately: a heredoc that has not begun is empty.
            del self.awaited[self.ticks.pop() :]
        elif kind in {"arithmetic", "double_paren"}:
            # Each closes with its own bracket.
            self._open("((", place)
            self._open("((", place)
        elif kind == "inner":
            self._open(mode if mode == "((" else "(", place)
        elif kind in _OPENED:
            if kind == "tick":
                self.ticks.append(len(self.awaited))
            self._open(_OPENED[kind], place)

    def _open(self, mode: str, place: int) -> None:
        self.modes.append(mode)
        self.opened.append(place)

    def _close(self) -> None:
        self.modes.pop()
        self.opened.pop()

    def _start(self, match: re.Match[str]) -> None:
        number = len(self.parts) - 1
        self.heredocs[number] = Heredoc("", expands=False)
        self.awaited.append((number, match))

    def _read_bodies(self, position: int) -> int:
        """Read the bodies of the heredocs of a line; return where the next line begins."""
        for number, start in self.awaited:
            word = _QUOTES.sub(lambda found: found[1] or "", start["word"])
            expands = word == start["word"]
            tabs = bool(start["tabs"])
            # In a substitution its bracket may be right behind the word.
            behind = "\n)" if self.modes else "\n"
            found = _line(self.text, word, position, tabs=tabs, behind=behind)
            if found is None and (
                found := _line(self.text, word, position, tabs=tabs, behind=" ;&|)")
            ):
                # A shell would read to the end of the script, but `E; done` is meant as the end.
                self.parts[-1] = self.parts[-1].removesuffix("\n")
            stop, following = found or (len(self.text), len(self.text))
            body = self.text[position:stop]
            self.heredocs[number] = Heredoc(body, expands)
            if found and not (expands and _EXPANDS.search(body)):
                self.quoted.append((position, stop))
            position = following
        self.awaited.clear()
        return position

    def joined(self, *, whole: bool) -> Inlined:
        heredocs: dict[int, Heredoc] = {}
        length = 0
        for number in range(len(self.parts)):
            if number in self.heredocs:
                # A digit before it is a descriptor, which a blank would separate.
                before = self.parts[number - 1][-1:] if number else ""
                self.parts[number] = "<'h' " if before.isdigit() else " <'h' "
                heredocs[length + self.parts[number].index("'")] = self.heredocs[number]
            length += len(self.parts[number])
        return Inlined("".join(self.parts), heredocs, whole)


def _line(
    text: str, word: str, position: int, *, tabs: bool, behind: str
) -> tuple[int, int] | None:
    """Return where the line that ends a heredoc begins, and where the next one does.

    The line begins with ``word``, after tabs if ``tabs``; a character of ``behind`` or the end of
    the script follows it.
    """
    place = text.find(word, position)
    while place >= 0:
        start, end = place, place + len(word)
        while tabs and start > position and text[start - 1] == "\t":
            start -= 1
        if (start == position or text[start - 1] == "\n") and text[end : end + 1] in behind:
            return start, end + text.startswith("\n", end)
        place = text.find(word, place + 1)
    return None


_SUBSTITUTION = re.compile(
    r"(?:\\.)++|(?P<tick>`(?P<ticked>(?:[^`\\]|\\.)*+)`?)|(?P<open>\$\()", re.DOTALL
)
_NESTED = re.compile(
    r"(?:\\.)++|'[^']*+'|\"(?:[^\"\\]|\\.)*+\"|(?P<open>\()|(?P<close>\))", re.DOTALL
)


def substitutions(body: str) -> Iterator[str]:
    """Yield the scripts that the shell runs to expand the body of a heredoc."""
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
    depth = 1
    while match := _NESTED.search(body, position):
        position = match.end()
        depth += (match["open"] is not None) - (match["close"] is not None)
        if not depth:
            return match.start()
    return len(body)
