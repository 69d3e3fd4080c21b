"""The ``shell`` reader: what a command line writes, in the dialect that it is in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from switchyard_core.mutation.labels import Reading, label_rank, strongest
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell.bash import read_bash
from switchyard_core.mutation.shell.cmd import read_cmd
from switchyard_core.mutation.shell.code import pattern_reader
from switchyard_core.mutation.shell.javascript import read_javascript
from switchyard_core.mutation.shell.powershell import read_powershell
from switchyard_core.mutation.shell.programs import run_program
from switchyard_core.mutation.shell.python import read_python
from switchyard_core.mutation.shell.sed import read_sed
from switchyard_core.mutation.shell.session import TOO_DEEP, Budget, Decided, Reader, Session
from switchyard_core.mutation.tables import load_table
from switchyard_core.patterns import pattern_set

__all__ = ["MAX_COMMAND", "dialect_of", "new_session", "read_argv", "read_command"]

#: Characters of a command that are read; the rest of a longer one is not.
MAX_COMMAND = 256 * 1024
#: Characters that decide the dialect.
_SHOWN = 16384
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_SEPARATED = re.compile(r"\w[ \t]*;[ \t]*\w")
_HOSTED = re.compile(r"\s*(?:\S*[\\/])?(cmd|powershell|pwsh)(?:\.exe)?\s", re.IGNORECASE)
_HOST = re.compile(r"(?:.*[\\/])?(?:powershell|pwsh)(?:\.exe)?", re.IGNORECASE)


def read_command(
    command: str, classes: PathClasses, *, dialect: str = "auto", budget: Budget | None = None
) -> Reading:
    """Return the strongest effect of a command line; never raises.

    ``dialect`` is ``bash``, ``powershell``, ``cmd``, or ``auto`` to detect it; ``budget`` tells the
    caller what the reading took.
    """
    text = command[:MAX_COMMAND]
    if dialect == "auto":
        dialect = dialect_of(text)
    session = new_session(classes, budget)
    reading = _reading(session, session.read, text, dialect)
    if len(command) <= MAX_COMMAND:
        return reading
    note = f"only the first {MAX_COMMAND // 1024} KiB were read"
    if label_rank(reading.label) > label_rank("unknown"):
        return Reading(label="unknown", word=reading.word, detail=note)
    return Reading(label=reading.label, word=reading.word, detail=f"{reading.detail}; {note}")


def read_argv(
    words: Sequence[str],
    classes: PathClasses,
    *,
    dialect: str = "auto",
    budget: Budget | None = None,
) -> Reading:
    """Return the strongest effect of a program and its arguments; never raises."""
    if len(words) == 1:
        return read_command(words[0], classes, dialect=dialect, budget=budget)
    if _HOST.fullmatch(words[0]) or dialect_of(words[0]) == "powershell":
        return read_command(" ".join(words), classes, dialect="powershell", budget=budget)
    session = new_session(classes, budget)
    return _reading(session, run_program, words, session)


def _reading(session: Session, run: Callable[..., object], *given: object) -> Reading:
    try:
        run(*given)
    except Decided:
        pass
    except RecursionError:
        session.add("unknown", "shell", TOO_DEEP)
    return strongest(session.readings)


def new_session(classes: PathClasses, budget: Budget | None = None) -> Session:
    """Return a session in which every dialect and language can be read."""
    return Session(
        classes=classes,
        readers=_readers(),
        budget=budget or Budget(),
        directory=classes.directory,
    )


@cache
def _readers() -> Mapping[str, Reader]:
    """Return what reads each dialect and language; most languages have patterns only."""
    return MappingProxyType(
        {
            **{language: pattern_reader(language) for language in load_table("languages")},
            "bash": read_bash,
            "powershell": read_powershell,
            "cmd": read_cmd,
            "python": read_python,
            "javascript": read_javascript,
            "sed": read_sed,
        }
    )


def dialect_of(text: str) -> str:
    """Return ``bash``, ``powershell`` or ``cmd`` by the words of a command."""
    if host := _HOSTED.match(text):
        # Bash reads the words of other hosts; their arguments have their own reader.
        return "cmd" if host[1].casefold() == "cmd" else "bash"
    shown = text[:_SHOWN]
    signs = _signs(shown)
    if any(bare for _, bare in signs):
        unquoted = _signs(_QUOTED.sub("''", shown))
        signs = {sign for sign in signs if not sign[1]} | {sign for sign in unquoted if sign[1]}
    names = {name for name, _ in signs}
    if "powershell" in names:
        return "powershell"
    if names >= {"shared", "path"} and _SEPARATED.search(_QUOTED.sub("''", shown)):
        # `;` separates commands in PowerShell only.
        return "powershell"
    if "cmd" in names or names >= {"shared", "path"} or names >= {"switched", "switch"}:
        return "cmd"
    return "bash"


def _signs(text: str) -> set[tuple[str, bool]]:
    """Return the signs of dialects in a text, and whether each counts only unquoted."""
    signs, found = _known_signs()
    # The engine works on bytes, and would take longer to make them.
    return {signs[place] for place in found(text.encode("utf-8", "replace")) or ()}


@cache
def _known_signs() -> tuple[list[tuple[str, bool]], Callable[[str | bytes], Sequence[int] | None]]:
    """Return all signs, and a function that finds those of a text."""
    table, detect = load_table("powershell"), load_table("cmd")["detect"]
    verbs = {verb for listed in table["verbs"].values() for verb in listed}
    verbs |= {name.split("-")[0] for name in table["cmdlets"] if "-" in name}
    telling = "|".join(table["keywords"]["telling"])
    unquoted = [
        # A Verb-Noun word, or an alias that no other shell has, at the start of a command.
        (
            "powershell",
            (
                r"(?:^|[|;&{(=\n])[ \t]*(?:[\w.]+\\)?"
                rf"(?:{'|'.join(sorted(verbs))})-[A-Z]{{2,}}(?:[\s;|)}}]|$)"
            ),
        ),
        ("powershell", rf"(?:^|[|;{{(\n])[ \t]*(?:{telling})(?:[\s)]|$)"),
        ("powershell", r"(?:^|[|;{(\n])[ \t]*(?:\$PSVersionTable|foreach\s*\(\$|\[\w+\]::)"),
        ("powershell", r"^\s*\$(?:env:)?\w+\s*=|\$env:\w+|\[(?:System\.)?IO\.\w+\]::"),
        # An escape of cmd.exe.
        ("cmd", r"""\^(?:'[^']*'|"[^"]*")*[<>&|]"""),
    ]
    first = {
        key: rf"(?:^|[&|(])\s*@?(?:{'|'.join(map(re.escape, detect[key]))})(?:[^A-Za-z.]|$)"
        for key in ("words", "shared", "switched")
    }
    as_written = [
        ("cmd", first["words"]),
        ("shared", first["shared"]),
        ("switched", first["switched"]),
        ("cmd", r"[12]?>\s*nul\b|%[A-Za-z_]\w*%"),
        # Heads of statements that only cmd.exe has.
        ("cmd", r"^\s*(?:::|@?(?:rem|call)\s)"),
        ("cmd", r"\bfor\s+(?:/[a-z]\s+)?(?:\"[^\"]*\"\s+|\w+\s+)?%%?[a-z]\s+in\b"),
        ("cmd", r"(?:^|&)\s*@?if\s+(?:/i\s+)?(?:not\s+)?(?:exist|defined|errorlevel)\s"),
        ("path", r"(?:^|[\s>\"])(?:[A-Za-z]:\\|\.{0,2}\\?[\w.%-]+\\[\w.*%-])"),
        ("switch", r"\s/[a-zA-Z?](?:[\s:]|$)"),
    ]
    found = pattern_set([p for _, p in (*unquoted, *as_written)], ignore_case=True)
    return [
        *((name, True) for name, _ in unquoted),
        *((name, False) for name, _ in as_written),
    ], found
