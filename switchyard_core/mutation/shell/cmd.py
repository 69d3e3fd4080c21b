"""The cmd.exe dialect: a table of builtins and redirections."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from switchyard_core.mutation.shell.programs import run_program
from switchyard_core.mutation.shell.session import Input, Session
from switchyard_core.mutation.shell.table import select
from switchyard_core.mutation.tables import load_table

__all__ = ["read_cmd"]

_TOKEN = re.compile(
    r"""(?P<space>[ \t]+)
    |(?P<redirect>[0-9]?>>?&?|<)
    |(?P<end>\r?\n|&&|\|\||&|\||[()])
    |(?P<word>(?:"[^"]*"?|\^.|[^\s"&|<>()^])+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_SWITCH = re.compile(r"/[A-Za-z-]")
#: Steps for one statement, without its words.
_STATEMENT = 4


def read_cmd(text: str, session: Session, _stdin: Input) -> None:
    """Record the effects of a command line of cmd.exe; never raises on bad syntax."""
    words: list[str] = []
    pending = ""
    looping = False
    for match in _TOKEN.finditer(text + "\n"):
        kind, piece = match.lastgroup, match[0]
        session.spend()
        if kind == "end":
            if piece == "(" and words and words[-1].casefold() == "in":
                # The set of a loop is not a command, unless `for /f` reads its output.
                looping = True
            elif words and not looping:
                _run_words(words, session)
            elif words and piece == ")" and words[0][:1] in "'`":
                _run_words([word.strip("'`") for word in words], session)
            looping = looping and piece != ")"
            words, pending = [], ""
        elif kind == "redirect":
            pending = piece
        elif kind == "word":
            if not pending:
                words.append(piece)
            elif not pending.endswith("&") and pending != "<":
                session.write(_unquoted(piece), pending)
            pending = ""


def _run_words(words: list[str], session: Session) -> None:
    # Statements nest: the words after `do` are read again for each level.
    session.spend(_STATEMENT + len(words) // 4)
    table = load_table("cmd")
    name, rest = _unquoted(words[0]).lstrip("@").casefold().removesuffix(".exe"), words[1:]
    if name.startswith(":") or "/?" in rest:
        return
    if run := _STATEMENTS.get(name):
        run(rest, session)
    elif entry := table["writes"].get(name):
        _run_writer(name, entry, rest, session)
    elif name in table["read_only"]:
        return
    elif name in table["file_write_other"]:
        asks = name == "reg" and rest[:1] and rest[0].casefold() == "query"
        asks = asks or (name == "attrib" and not any(word[:1] in "+-" for word in rest))
        if not asks:
            session.add("file_write_other", name)
    elif name in table["unknown"]:
        session.add("unknown", name, f"what {name} runs cannot be seen")
    else:
        run_program([_unquoted(word) for word in words], session)


def _run_rest(rest: list[str], session: Session) -> None:
    if rest:
        _run_words(rest, session)


def _run_call(rest: list[str], session: Session) -> None:
    if rest and not rest[0].startswith(":") and not rest[0].casefold().endswith((".bat", ".cmd")):
        _run_words(rest, session)
    else:
        session.add("unknown", "call", "what call runs cannot be seen")


def _run_for_files(rest: list[str], session: Session) -> None:
    lowered = [word.casefold() for word in rest]
    if "/c" in lowered:
        session.inner().read(_unquoted(" ".join(rest[lowered.index("/c") + 1 :])), "cmd")


def _change_directory(rest: list[str], session: Session) -> None:
    operands = [word for word in rest if not word.startswith("/")]
    session.enter(_unquoted(operands[-1]) if operands else "")


def _run_start(rest: list[str], session: Session) -> None:
    words = rest[1:] if len(rest) > 1 and rest[0].startswith('"') else rest
    while words and words[0].startswith("/"):
        # `/d` alone takes the directory in the next word.
        words = words[2 if words[0].casefold() == "/d" else 1 :]
    if words:
        _run_words(words, session.inner())
    else:
        session.add("unknown", "start", "an interactive shell")


def _run_loop(rest: list[str], session: Session) -> None:
    lowered = [word.casefold() for word in rest]
    if "do" in lowered:
        _run_rest(rest[lowered.index("do") + 1 :], session)


def _run_condition(rest: list[str], session: Session) -> None:
    """Run the command after a condition: ``exist a``, ``a==b``, or ``a equ b``."""
    words = list(rest)
    while words and words[0].casefold() in {"not", "/i"}:
        words.pop(0)
    head = 3
    if words and "==" in words[0]:
        head = 1
    elif words and words[0].casefold() in {"exist", "defined", "errorlevel"}:
        head = 2
    _run_rest(words[head:], session)


#: Statements that run something, or change where commands run.
_STATEMENTS: Mapping[str, Callable[[list[str], Session], object]] = MappingProxyType(
    {
        "call": _run_call,
        **dict.fromkeys(("cd", "chdir", "pushd"), _change_directory),
        "cmd": lambda rest, session: run_program(["cmd", *rest], session),
        **dict.fromkeys(("else", "do", "not"), _run_rest),
        "for": _run_loop,
        "forfiles": _run_for_files,
        "if": _run_condition,
        "start": _run_start,
    }
)


def _run_writer(name: str, entry: Mapping[str, Any], rest: list[str], session: Session) -> None:
    lowered = [word.casefold() for word in rest]
    if "only" in entry and set(entry["only"]).isdisjoint(lowered):
        return
    if entry["operands"] == "after":
        paths = [
            _unquoted(path)
            for word, path in zip(lowered, rest[1:], strict=False)
            if word in entry["switches"]
        ]
    else:
        operands = [_unquoted(word) for word in rest if not _SWITCH.match(word) and word != "+"]
        paths = select(entry["operands"], operands)
    if not paths and entry.get("optional"):
        return
    for path in paths or [""]:
        session.write(path, name, cap=entry.get("cap"))


def _unquoted(word: str) -> str:
    return word.replace('"', "").replace("^", "")
