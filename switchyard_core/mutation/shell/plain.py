"""Takes a script of plain words apart, without a parser.

Whatever is not understood for certain makes the whole script no plain one: the parser's grammar
has its own view of many odd things.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

import msgspec

__all__ = ["Command", "Expanding", "Redirect", "Statement", "Word", "split_plain"]

#: Longer scripts are parsed: they may nest beyond the parser's bounds. A heredoc comes on top.
_MAX_LENGTH = 512
_MAX_HEREDOC = 16 * 1024
#: Commands of a script that has loops.
_MAX_LOOPED = 40
_NAME = r"[A-Za-z_]\w*"
#: What follows a variable is no part of its name, also for the parser, which takes any character
#: beyond ASCII for a letter.
_VARIABLE = rf"\$(?:{_NAME}+(?![\[\x80-\U0010ffff])|\{{{_NAME}\}})"
_QUOTED = rf""""(?:[^"$`\\\n]|{_VARIABLE})*"|'[^'\n]*'"""
_PLAIN = r"[\w./:=@%+,*?~^-]++"
_WORD = rf"(?:{_PLAIN}|{_VARIABLE}|{_QUOTED})++"
_END = r"(?=[\s|;&]|$)"
_TOKEN = re.compile(
    rf"""[ \t]*(?:
    (?<!\S)\#[^\n]*
    |((?!\d*[<>]){_PLAIN}(?!["'$]))
    |((?!\d*[<>]){_WORD})
    |(\|\||&&|\||;|\n[ \t\n]*
    |(?<=[ \t])(?:[12]?>&[12]|(?:[12]?>>?|&>>?|<)[ \t]*{_WORD}){_END}
    |(?<=[ \t])<<[ \t]*(?:'{_NAME}'|"{_NAME}"|{_NAME}){_END}
    |[^ \t]))""",
    re.VERBOSE | re.ASCII,
)
_REDIRECT = re.compile(r"([12]?)(&?>>?|<<?)[ \t]*(.*)", re.DOTALL)
_HEREDOC = re.compile(rf"<<[ \t]*(?:'({_NAME})'|\"({_NAME})\"|({_NAME}))(?!\w)[^\n]*\n", re.ASCII)
_PIECES = re.compile(rf"({_VARIABLE})|([^$]+)", re.ASCII)
_PARTS = re.compile(rf"\"([^\"]*)\"|'([^']*)'|({_VARIABLE})|([^\"'$]+)", re.ASCII)
_ENDS = frozenset({"|", "||", "&&", ";"})
_CHAINS = frozenset({"||", "&&"})
_PROGRAM = re.compile(r"[A-Za-z_./~][\w./+-]*", re.ASCII)
#: Words that the grammar takes for something else than a program or its argument, and programs
#: after which nothing is plain any more.
_KEYWORDS = frozenset(
    {
        *("if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case"),
        *("esac", "select", "function", "time", "coproc", "in", "export", "declare", "local"),
        *("readonly", "typeset", "unset", "unsetenv", "let"),
    }
)
#: They may define functions, which only the parser knows.
_DEFINING = frozenset({"eval", "source", "."})


class Expanding(msgspec.Struct, frozen=True, gc=False):
    """A word with variables in it.

    Args:
        parts: Pairs of a text and a variable as written; one of the two is empty.
        splits: Whether its value is as many words as it has.
    """

    parts: tuple[tuple[str, str], ...]
    splits: bool


Word: TypeAlias = str | Expanding


class Redirect(msgspec.Struct, frozen=True, gc=False):
    """A redirection.

    Args:
        operator: Such as ``>``; ``<<`` for a heredoc, ``""`` when it goes nowhere that counts.
        word: The file, or the text of the heredoc.
        output: Whether it takes what the program prints.
    """

    operator: str
    word: Word = ""
    output: bool = False


class Command(msgspec.Struct, gc=False):
    """A program with its words and redirections.

    Args:
        words: All of them texts unless it ``expands``.
        expands: Whether there are variables in its words.
        redirects: In order.
    """

    words: list[Word]
    expands: bool
    redirects: list[Redirect]


class Statement(msgspec.Struct, gc=False):
    """A pipeline, or a loop over words.

    Args:
        chained: Whether it follows the one before it behind ``&&`` or ``||``.
        commands: Of a pipeline, empty for a loop.
        variable: Of a loop.
        values: What the loop goes through.
        body: Of a loop.
    """

    chained: bool
    commands: list[Command] = []
    variable: str = ""
    values: list[Word] = []
    body: list[Statement] = []


class _Unusual(Exception):  # noqa: N818 - an outcome, not an error
    """The script is not a plain one."""


def split_plain(text: str) -> list[Statement] | None:
    """Return the statements of a script, ``None`` when it is not a plain one."""
    text = text.strip(" \t\n")
    heredoc: str | None = None
    if len(text) > _MAX_LENGTH + _MAX_HEREDOC:
        return None
    if "<<" in text:
        text, heredoc = _without_heredoc(text)
    if len(text) > _MAX_LENGTH:
        return None
    try:
        return _Reader(text, heredoc).script() or None
    except _Unusual:
        return None


def _without_heredoc(text: str) -> tuple[str, str | None]:
    """Return a script without the lines of its heredoc, and these lines."""
    match = _HEREDOC.match(text, text.find("<<"))
    # The parser ends a heredoc at its word at the beginning of some other word, too.
    if match is None:
        return text, None
    word = match[1] or match[2] or match[3]
    end = text.find(word, match.end())
    body, rest = text[match.end() : end], text[end + len(word) :]
    lines = end > match.end() and text[end - 1] == "\n" and rest[:1] in {"", "\n"}
    # The parser leaves out lines at the beginning that are empty.
    lines = lines and not body[:1].isspace()
    if not lines or len(body) > _MAX_HEREDOC or "<<" in rest:
        return text, None
    if match[3] and not {"$", "`", "\\"}.isdisjoint(body):
        return text, None
    return text[: match.end() - 1] + rest, body


class _Reader:
    """Reads the tokens of one script."""

    def __init__(self, text: str, heredoc: str | None) -> None:
        #: Each a word without quotes and variables, another word, or a sign; all are empty for a
        #: comment.
        self._tokens: Iterator[tuple[str, str, str]] = iter(_TOKEN.findall(text))
        self._heredoc = heredoc
        self._commands = 0
        self._looped = self._expands = False
        # Whether there is more than words, and a list that the parser takes for something else.
        self._rich = self._misread = False

    def script(self) -> list[Statement]:
        """Return the statements; all of them are plain.

        Raises:
            _Unusual: They are not.
        """
        found = self._statements(inner=False)
        if self._heredoc is not None or (self._looped and self._commands > _MAX_LOOPED):
            raise _Unusual
        # The grammar takes `a && b 2>&1 | c` for `(a && b) 2>&1 | c`, so that a `cd` does not last.
        # Of words alone the shell's own view is taken; whatever else there is keeps the parser's.
        if self._misread and (self._rich or self._looped):
            raise _Unusual
        return found

    def _statements(self, *, inner: bool) -> list[Statement]:
        """Return the statements up to the end, or to the ``done`` of a loop."""
        found: list[Statement] = []
        commands: list[Command] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        # What stands before the pipeline, and before the command.
        chain = joined = ""
        for plain, marked, sign in self._tokens:
            if plain and words and not redirects and plain not in _KEYWORDS:
                words.append(plain)
            elif word := plain or marked:
                if word not in _KEYWORDS:
                    words.append(self._word(word, first=not words, last=not redirects))
                    continue
                if word == "done" and inner and found and not (words or joined):
                    return found
                # The grammar has its own view of what follows a long pipeline.
                long = any(len(statement.commands) > 2 for statement in found)
                if word != "for" or inner or words or commands or long:
                    raise _Unusual
                found.append(self._loop(chained=chain in _CHAINS))
                chain = joined = self._end_of_loop()
            elif not sign:
                # A comment.
                continue
            elif sign in _ENDS or sign[0] == "\n":
                if not words and (joined or sign[0] != "\n"):
                    raise _Unusual
                if words:
                    commands.append(self._command(words, redirects, sign))
                    words, redirects = [], []
                    joined = sign if sign == "|" or sign in _CHAINS else ""
                    if sign != "|":
                        self._add(found, commands, chain, inner=inner)
                        commands, chain = [], joined
            else:
                redirects.append(self._redirect(sign, words, inner=inner))
        if inner or (joined and not words):
            raise _Unusual
        if words:
            commands.append(self._command(words, redirects, "\n"))
            self._add(found, commands, chain, inner=inner)
        return found

    def _add(
        self, found: list[Statement], commands: list[Command], chain: str, *, inner: bool
    ) -> None:
        """Add a pipeline behind the statements before it."""
        statement = Statement(chain in _CHAINS, commands)
        found.append(statement)
        redirects = commands[-1].redirects
        if inner and len(commands) > 2:
            # The grammar has its own view of what follows a long pipeline in a loop.
            raise _Unusual
        if len(commands) > 1 and statement.chained:
            self._misread |= any(command.redirects for command in commands[:-1])
        if not redirects:
            return
        if len(commands) > 1 and any(r.operator in {"<", "<<"} for r in redirects):
            # The parser's tree has them above the whole pipeline.
            raise _Unusual
        # The parser may take a list that ends with a redirection for a part of a pipeline before,
        # and a redirection for one of everything since a long pipeline.
        files = any(redirect.operator for redirect in redirects)
        if files and any(len(before.commands) > 2 for before in found[:-1]):
            raise _Unusual
        place = len(found) - 1
        while found[place].chained:
            place -= 1
            if len(found[place].commands) > 1:
                raise _Unusual

    def _word(self, word: str, *, first: bool, last: bool) -> Word:
        # What the parser makes of words behind a redirection depends on what is before them.
        if not last:
            raise _Unusual
        if first and (word in _DEFINING or not _PROGRAM.fullmatch(word)):
            raise _Unusual
        text = _text(word)
        self._expands = self._expands or not isinstance(text, str)
        return text

    def _command(self, words: list[Word], redirects: list[Redirect], sign: str) -> Command:
        self._commands += 1
        if redirects:
            heredoc = any(redirect.operator == "<<" for redirect in redirects)
            files = any(redirect.operator for redirect in redirects)
            # What follows the start of a heredoc on its line hangs under it in the parser's tree.
            if (heredoc and sign[0] != "\n") or (files and sign == "|"):
                raise _Unusual
        expands, self._expands = self._expands, False
        self._rich |= expands or any(redirect.operator for redirect in redirects)
        return Command(words, expands, redirects)

    def _redirect(self, sign: str, words: list[Word], *, inner: bool) -> Redirect:
        match = _REDIRECT.fullmatch(sign)
        # The parser takes what follows a dash for a part of it.
        if match is None or words[-1:] in ([], ["-"]):
            raise _Unusual
        descriptor, operator, written = match.groups()
        if operator == "<<":
            if self._heredoc is None or inner:
                raise _Unusual
            text, self._heredoc = self._heredoc, None
            return Redirect(operator, text)
        if written[:1] == "&" or (descriptor == "2" and written == "/dev/null"):
            return Redirect("")
        if not written or written[0] == "-" or written in _KEYWORDS:
            raise _Unusual
        return Redirect(operator, _text(written), descriptor != "2" and operator != "<")

    def _loop(self, *, chained: bool) -> Statement:
        """Return the loop behind its ``for``."""
        variable, keyword = self._next()[0], self._next()[0]
        values: list[Word] = []
        word, sign = self._next()
        while word:
            if word in _KEYWORDS:
                raise _Unusual
            values.append(_text(word))
            word, sign = self._next()
        if sign != ";" and sign[:1] != "\n":
            raise _Unusual
        if (
            not re.fullmatch(_NAME, variable, re.ASCII)
            or variable in _KEYWORDS
            or keyword != "in"
            or not values
            or self._next()[0] != "do"
        ):
            raise _Unusual
        self._looped = True
        return Statement(chained, [], variable, values, self._statements(inner=True))

    def _next(self) -> tuple[str, str]:
        token = next(self._tokens, None)
        if token is None:
            raise _Unusual
        plain, marked, sign = token
        return plain or marked, sign

    def _end_of_loop(self) -> str:
        """Return how a loop is joined to what follows."""
        plain, marked, sign = next(self._tokens, ("", "", ";"))
        if sign in _CHAINS:
            return sign
        if plain or marked or (sign != ";" and sign[:1] != "\n"):
            raise _Unusual
        return ""


def _text(word: str) -> Word:
    """Return the text of a word, or what it is made of."""
    if "$" not in word:
        quote = word[:1]
        if quote in {'"', "'"} and word.count(quote) == 2 and word[-1] == quote:
            return word[1:-1]
        if '"' not in word and "'" not in word:
            return word
        return "".join([a or b or c for a, b, _, c in _PARTS.findall(word)])
    parts: list[tuple[str, str]] = []
    for quoted, single, variable, plain in _PARTS.findall(word):
        if "$" in quoted:
            parts += [(text, inner) for inner, text in _PIECES.findall(quoted)]
        else:
            parts.append((quoted or single or plain, variable))
    if not any(variable for _, variable in parts):
        return "".join([text for text, _ in parts])
    return Expanding(tuple(parts), word[0] == "$" and len(parts) == 1)
