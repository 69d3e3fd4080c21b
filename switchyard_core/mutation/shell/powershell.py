"""The PowerShell dialect: a table of cmdlets, redirections and .NET calls."""

from __future__ import annotations

import base64
import re
from functools import cache
from typing import Any

from switchyard_core.mutation.budget import TOO_MUCH
from switchyard_core.mutation.shell.powershell_words import commands_of, unquoted
from switchyard_core.mutation.shell.programs import into, run_program
from switchyard_core.mutation.shell.session import MAX_DEPTH, NO_INPUT, Session
from switchyard_core.mutation.shell.table import command_table
from switchyard_core.mutation.shell.windows_cmd import is_cmd_program, run_cmd
from switchyard_core.mutation.tables import load_table

__all__ = ["is_powershell", "run_powershell"]

#: What shows the dialect, and the steps that it takes to look at a command.
_SHOWN = 16384
_COMMAND = 4
#: Opening parentheses that are read; nobody writes that many by hand.
_MOST_GROUPS = 1000
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_VARIABLE = re.compile(r"^\s*\$(?:env:)?\w+\s*=|\$env:\w+", re.IGNORECASE)
_HOST = re.compile(r"^(?:.*[\\/])?(?:powershell|pwsh)(?:\.exe)?$", re.IGNORECASE)
_HERE = re.compile(r"@(['\"])\r?\n(.*?)\r?\n\1@", re.DOTALL)
_ASSIGNED = re.compile(r"(\$[\w:]+)\+?=(.+)$", re.DOTALL)


def is_powershell(text: str) -> bool:
    """Tell by its words whether a text is PowerShell."""
    if _HOST.match(text.strip().split(" ")[0].split("\n")[0]):
        return True
    plain = _QUOTED.sub("''", text)[:_SHOWN]
    return bool(
        _cmdlets().search(plain)
        or _aliases().search(plain)
        or _VARIABLE.search(plain)
        or re.search(r"\[(?:System\.)?IO\.\w+\]::", plain, re.IGNORECASE)
    )


def run_powershell(text: str, session: Session) -> None:
    """Record the effects of a PowerShell command; never raises on bad syntax."""
    if session.depth > MAX_DEPTH:
        session.add("unknown", "powershell", "nested too deeply")
        return
    text = _HERE.sub("'…'", text)
    *_, rest = text.split("(", _MOST_GROUPS)
    if "(" in rest:
        session.add("unknown", "powershell", TOO_MUCH)
        text = text[: -len(rest)]
    _run_net(text, session)
    variables: dict[str, str] = {}
    for spoken, redirects in commands_of(text, session):
        words = spoken
        session.spend(_COMMAND + len(words) // 2)
        for path in redirects:
            session.write(_resolved(path, variables), ">")
        if words and (match := _ASSIGNED.match(words[0])):
            words = [match[1], "=", match[2], *words[1:]]
        if len(words) > 2 and words[0].startswith("$") and words[1] in {"=", "+="}:
            variables[words[0].casefold()] = _assigned(words[2:])
            words = words[2:]
        if words:
            _run_words(words, session, variables)


def _assigned(words: list[str]) -> str:
    """Return the value that an assignment gives, where it is a text or a temporary file."""
    value = " ".join(words)
    if any(word in value.casefold() for word in load_table("powershell")["keywords"]["scratch"]):
        return "$env:TEMP/new"
    return unquoted(words[0])


def _run_net(text: str, session: Session) -> None:
    for pattern, cap in _net():
        for match in pattern.finditer(text):
            path = match.groupdict().get("path") or ""
            if "Path]" in text[max(0, match.start() - 6) : match.start() + 2]:
                continue
            session.write(unquoted(path.strip()), "[IO.File]", cap=cap)


@cache
def _cmdlets() -> re.Pattern[str]:
    """Return what finds a Verb-Noun word at the start of a command."""
    table = load_table("powershell")
    verbs = {verb for listed in table["verbs"].values() for verb in listed}
    verbs |= {name.split("-")[0] for name in table["cmdlets"] if "-" in name}
    return re.compile(
        rf"(?:^|[|;&{{(=\n])[ \t]*(?:{'|'.join(sorted(verbs))})-[A-Z][A-Za-z]+(?=[\s;|)}}]|$)",
        re.IGNORECASE,
    )


@cache
def _aliases() -> re.Pattern[str]:
    """Return what finds an alias that no other shell has at the start of a command."""
    names = "|".join(load_table("powershell")["keywords"]["telling"])
    return re.compile(
        rf"(?:^|[|;{{(\n])[ \t]*"
        rf"(?:(?:{names})(?=[\s)]|$)|\$PSVersionTable|foreach\s*\(\$|\[\w+\]::)",
        re.IGNORECASE,
    )


@cache
def _net() -> tuple[tuple[re.Pattern[str], str | None], ...]:
    entries = load_table("powershell")["net"]
    return tuple((re.compile(e["pattern"], re.IGNORECASE), e.get("cap")) for e in entries)


def _run_words(words: list[str], session: Session, variables: dict[str, str]) -> None:
    table = load_table("powershell")
    name = unquoted(words[0])
    if name.casefold() in table["keywords"]["cmd_aliases"] and any(
        re.fullmatch(r"/[A-Za-z]", word) for word in words[1:]
    ):
        run_cmd(" ".join(words), session)
        return
    if _HOST.match(name):
        run_host(words[1:], session)
        return
    lowered = table["aliases"].get(name.casefold(), name.casefold())
    if any(word.casefold() == "-whatif" for word in words):
        return
    if lowered == "set-location" and len(words) > 1:
        session.enter(unquoted(words[-1]))
    elif lowered == "invoke-expression":
        _run_expression(words[1:], session)
    elif lowered == "start-process":
        _run_process(words[1:], session)
    elif (entry := table["cmdlets"].get(lowered)) is not None:
        _run_cmdlet(lowered, entry, words[1:], session, variables)
    elif re.fullmatch(r"[a-z]+-[a-z]\w*", lowered) and not re.match(r"[a-z]+-[a-z]+$", name):
        _run_verb(lowered, session)
    elif (
        (
            re.fullmatch(r"[a-z]+-[a-z]\w*", lowered)
            and lowered.split("-")[0] in table["verbs"]["read_only"]
        )
        or re.match(r"['\"$(\-@\[\d]", words[0])
        or lowered.split("(")[0] in table["keywords"]["names"]
    ):
        return
    elif not command_table().knows(name) and is_cmd_program(lowered):
        run_cmd(" ".join(words), session)
    else:
        run_program([unquoted(word) for word in words], session, NO_INPUT)


def _run_expression(words: list[str], session: Session) -> None:
    """Run the text that ``Invoke-Expression`` is given, if it is there to be read."""
    text = words[-1] if words else ""
    if text[:1] in {"'", '"'}:
        run_powershell(unquoted(text), session.inner())
    else:
        session.add("unknown", "invoke-expression", "what it runs cannot be seen")


def _run_process(words: list[str], session: Session) -> None:
    named, positional = _parameters(words)
    names = [*_given(named, "-filepath"), *positional[:1]]
    arguments = [*_given(named, "-argumentlist"), *_given(named, "-args"), *positional[1:]]
    for path in _given(named, "-redirectstandardoutput"):
        session.write(unquoted(path), "start-process")
    program = [unquoted(name) for name in names[:1]]
    given = [part for text in arguments for part in _listed(text)]
    # A program of unknown effect stays unknown; one of the table does what its words say.
    run_program([*program, *given], session.inner(), NO_INPUT)
    if not program:
        session.add("unknown", "start-process")


def _listed(text: str) -> list[str]:
    """Return the words of an argument list: ``'a','b'``, ``@('a', 'b')`` or ``'a b'``."""
    quoted = [unquoted(match[0]) for match in _QUOTED.finditer(text)]
    return quoted if len(quoted) > 1 else " ".join(quoted or [text]).split()


def _run_verb(name: str, session: Session) -> None:
    verb = name.split("-", maxsplit=1)[0]
    for label, verbs in load_table("powershell")["verbs"].items():
        if verb in verbs:
            session.add(label, name)
            return
    session.add("unknown", name, f"what {name} does cannot be seen")


def _run_cmdlet(
    name: str,
    entry: dict[str, Any],
    words: list[str],
    session: Session,
    variables: dict[str, str],
) -> None:
    named, positional = _parameters(words)
    if "label" in entry:
        edits = set(entry.get("edit_flags", ())) & set(named)
        session.add("file_edit" if edits else entry["label"], name)
        return
    cap = entry.get("cap")
    if (
        "directory" in " ".join(named.get("-itemtype", [])).casefold()
        or named.get("-type", [""])[0].casefold() == "directory"
    ):
        cap = "file_write_other"
    paths = [value for key in entry.get("parameters", ()) for value in _given(named, key)]
    if entry.get("all"):
        paths += positional
    elif not paths and "position" in entry:
        # With the source named, an unnamed path is the next one in line.
        place = entry["position"] - sum(
            1 for key in ("-path", "-literalpath") if _given(named, key) and entry["position"] > 0
        )
        paths = positional[place : place + 1] if place >= 0 else []
    if entry.get("join") and (extra := named.get(entry["join"])):
        paths = [f"{path}/{extra[0]}" for path in paths] or extra
    if not paths and entry.get("optional"):
        return
    if entry.get("into") and paths:
        sources = _given(named, "-path") + _given(named, "-literalpath") + positional[:1]
        paths = into([*(unquoted(source) for source in sources[:1]), unquoted(paths[-1])])
    for path in paths or [""]:
        for part in path.split(","):
            session.write(_resolved(part, variables), name, cap=cap)


def _given(named: dict[str, list[str]], key: str) -> list[str]:
    """Return the values of a parameter; PowerShell takes any unambiguous start of its name."""
    return [
        value
        for name, values in named.items()
        if name == key or (len(name) > 3 and key.startswith(name))
        for value in values
    ]


def _parameters(words: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    named: dict[str, list[str]] = {}
    positional: list[str] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if re.match(r"-[A-Za-z]", word):
            key, _, value = word.casefold().partition(":")
            named.setdefault(key, [])
            if value:
                named[key].append(word.partition(":")[2])
            elif (
                not _is_switch(key)
                and index < len(words)
                and not re.match(r"-[A-Za-z]", words[index])
            ):
                named[key].append(words[index])
                index += 1
        else:
            positional.append(word)
    return named, positional


def _is_switch(key: str) -> bool:
    """Tell whether a parameter, perhaps cut short, takes no value."""
    table = load_table("powershell")["keywords"]
    if key in table["switches"]:
        return True
    return any(switch.startswith(key) for switch in table["switches"]) and not any(
        name.startswith(key) for name in table["not_switches"]
    )


def run_host(words: list[str], session: Session) -> None:
    """Run what ``powershell.exe`` is given."""
    inner = session.inner()
    for place, word in enumerate(words):
        flag = unquoted(word).casefold()
        rest = [unquoted(w) for w in words[place + 1 :]]
        if flag in {"-command", "-c", "/c", "-commandwithargs"}:
            run_powershell(" ".join(rest), inner)
            return
        if flag in {"-file", "-f"}:
            session.add("unknown", "powershell -File", "what the script does cannot be seen")
            return
        if (
            flag.startswith("-e")
            and flag not in {"-ep", "-executionpolicy", "-ex", "-exec"}
            and rest
        ):
            try:
                run_powershell(base64.b64decode(rest[0], validate=True).decode("utf-16-le"), inner)
            except ValueError:
                session.add("unknown", "powershell -EncodedCommand")
            return
    skip = 0
    for place, word in enumerate(words):
        if skip:
            skip -= 1
        elif word.casefold() in {
            "-executionpolicy",
            "-ep",
            "-version",
            "-windowstyle",
            "-outputformat",
            "-inputformat",
            "-workingdirectory",
        }:
            skip = 1
        elif not word.startswith(("-", "/")):
            run_powershell(" ".join(unquoted(w) for w in words[place:]), inner)
            return
    if not any(word.startswith("-") for word in words):
        session.add("unknown", "powershell", "an interactive shell")


def _resolved(path: str, variables: dict[str, str]) -> str:
    path = unquoted(path)
    if path.startswith("(") and re.search(r"join-path", path, re.IGNORECASE):
        parts = [unquoted(p) for p in path.strip("()").split()[1:] if not p.startswith("-")]
        path = "/".join(parts)
    known = variables.get(path.casefold())
    if known is not None and known != path:
        return _resolved(known, {k: v for k, v in variables.items() if k != path.casefold()})
    return path
