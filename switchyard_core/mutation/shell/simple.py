"""Takes a command without expansions apart without a parser.

Words, plain quotes, pipelines and lists are most of what agents write. What holds anything else
is left to the parser; a test holds both to the same result.
"""

from __future__ import annotations

import re

from switchyard_core.mutation.shell.programs import run_program
from switchyard_core.mutation.shell.session import Input, Session

__all__ = ["run_simple", "split_simple"]

#: Longer scripts are parsed: they may nest beyond the parser's bounds.
_MAX_LENGTH = 512
_TOKEN = re.compile(
    r"""[ \t]*(?:
    (?P<quiet>2>[ ]?(?:&1|/dev/null)(?=[\s|;&]|$))
    |(?P<word>(?:[\w./:=@%+,*?~^-]|"[^"$`\\\n]*"|'[^'\n]*')+)
    |(?P<end>\|\||&&|\||;|\n[ \t\n]*)
    |(?P<comment>(?<!\S)\#[^\n]*)
    |(?P<other>[^ \t]))""",
    re.VERBOSE | re.ASCII,
)
_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_PROGRAM = re.compile(r"[A-Za-z_./~][\w./+-]*", re.ASCII)
#: Words that the grammar takes for something else than a program or its argument.
_KEYWORDS = frozenset(
    {
        *("if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case"),
        *("esac", "select", "function", "time", "coproc", "in", "export", "declare", "local"),
        *("readonly", "typeset", "unset", "unsetenv", "let"),
    }
)

_Commands = list[list[list[str]]]


def run_simple(text: str, session: Session, stdin: Input) -> tuple[bool, str | None]:
    """Record the effects of a bash script when it is a simple one.

    Args:
        text: The script.
        session: Gets the effects.
        stdin: What the script's programs read.

    Returns:
        Whether it is simple, and what it prints, when that can be told.
    """
    if session.functions or (pipelines := split_simple(text)) is None:
        return False, None
    outputs: list[str | None] = []
    for pipeline in pipelines:
        output: str | None = None
        if len(pipeline) == 1:
            output = _run(pipeline[0], session, stdin)
        else:
            feed = stdin
            for words in pipeline:
                output = _run(words, session.inner(), feed)
                feed = Input(text=output, connected=True)
        outputs.append(output)
    known = [output for output in outputs if output is not None]
    return True, "".join(known) if known and len(known) == len(outputs) else None


def _run(words: list[str], session: Session, stdin: Input) -> str | None:
    return run_program(words, session, stdin)


def split_simple(text: str) -> _Commands | None:
    """Return the pipelines of a script as lists of words, ``None`` when it is not a simple one."""
    text = text.strip(" \t\n")
    if len(text) > _MAX_LENGTH:
        return None
    pipelines: _Commands = [[[]]]
    joined, redirected = "", False
    for quiet, word, end, _comment, other in _TOKEN.findall(text):
        words = pipelines[-1][-1]
        if other:
            return None
        if word:
            # What the parser makes of words behind a redirection depends on what is before it.
            if redirected or not _is_plain(word, first=not words):
                return None
            words.append(_QUOTED.sub(r"\1\2", word) if '"' in word or "'" in word else word)
        elif quiet:
            # The parser takes what follows a dash for a part of it.
            if words[-1:] in ([], ["-"]):
                return None
            redirected = True
        elif end and words:
            joined, redirected = end if end in {"|", "||", "&&"} else "", False
            if end == "|":
                pipelines[-1].append([])
            else:
                pipelines.append([[]])
        elif end and (end[0] != "\n" or joined):
            return None
    if not pipelines[-1][-1]:
        if joined:
            return None
        pipelines.pop()
    return pipelines or None


def _is_plain(word: str, *, first: bool) -> bool:
    """Tell whether a word is no keyword, and a program's name at the beginning of a command."""
    return word not in _KEYWORDS and (not first or _PROGRAM.fullmatch(word) is not None)
