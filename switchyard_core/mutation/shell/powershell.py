"""The PowerShell dialect: a table of cmdlets, redirections and .NET calls."""

from __future__ import annotations

import base64
import re
from functools import cache
from typing import Any

from switchyard_core.mutation.shell.programs import run_program
from switchyard_core.mutation.shell.session import MAX_DEPTH, NO_INPUT, Session
from switchyard_core.mutation.tables import load_table

__all__ = ["is_powershell", "run_powershell"]

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_VARIABLE = re.compile(r"^\s*\$(?:env:)?\w+\s*=|\$env:\w+", re.IGNORECASE)
_HOST = re.compile(r"^(?:.*[\\/])?(?:powershell|pwsh)(?:\.exe)?$", re.IGNORECASE)
_HERE = re.compile(r"@(['\"])\r?\n(.*?)\r?\n\1@", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<space>[ \t`]+)
    |(?P<comment>\#[^\n]*)
    |(?P<redirect>(?:[0-9*]?>>?(?:&[0-9])?))
    |(?P<end>\n|;|\|\||&&|\||\{|\}|&(?!&))
    |(?P<comma>,)
    |(?P<word>(?:'(?:[^']|'')*'|"(?:[^"`]|`.|"")*"|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|@?\{[^{}]*\}(?=\.)|`.|[^\s;|&{},'"()><\#]|\#|[()>])+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


def is_powershell(text: str) -> bool:
    """Tell by its words whether a text is PowerShell."""
    if _HOST.match(text.strip().split(" ")[0].split("\n")[0]):
        return True
    plain = _QUOTED.sub("''", text)
    return bool(
        _cmdlets().search(plain)
        or _VARIABLE.search(plain)
        or re.search(r"\[(?:System\.)?IO\.\w+\]::", plain, re.IGNORECASE)
    )


def run_powershell(text: str, session: Session) -> None:
    """Record the effects of a PowerShell command; never raises on bad syntax."""
    if session.depth > MAX_DEPTH:
        session.add("unknown", "powershell", "nested too deeply")
        return
    text = _HERE.sub("'…'", text)
    _run_net(text, session)
    variables: dict[str, str] = {}
    for spoken, redirects in _commands(text):
        words = spoken
        for path in redirects:
            session.write(_resolved(path, variables), ">")
        if len(words) > 2 and words[0].startswith("$") and words[1] in {"=", "+="}:
            variables[words[0].casefold()] = _unquoted(words[2])
            words = words[2:]
        if words:
            _run_words(words, session, variables)


def _run_net(text: str, session: Session) -> None:
    for pattern, cap in _net():
        for match in pattern.finditer(text):
            path = match.groupdict().get("path") or ""
            if "Path]" in text[max(0, match.start() - 6) : match.start() + 2]:
                continue
            session.write(_unquoted(path.strip()), "[IO.File]", cap=cap)


@cache
def _cmdlets() -> re.Pattern[str]:
    """Return what finds a Verb-Noun word at the start of a command."""
    table = load_table("powershell")
    verbs = {verb for listed in table["verbs"].values() for verb in listed}
    verbs |= {name.split("-")[0] for name in table["cmdlets"] if "-" in name}
    return re.compile(
        rf"(?:^|[|;&{{(=\n])\s*(?:{'|'.join(sorted(verbs))})-[A-Z][A-Za-z]+(?=[\s;|)}}]|$)",
        re.IGNORECASE,
    )


@cache
def _net() -> tuple[tuple[re.Pattern[str], str | None], ...]:
    entries = load_table("powershell")["net"]
    return tuple((re.compile(e["pattern"], re.IGNORECASE), e.get("cap")) for e in entries)


def _commands(text: str) -> list[tuple[list[str], list[str]]]:
    """Take a text apart into commands: their words, and the paths that they are redirected to."""
    commands: list[tuple[list[str], list[str]]] = []
    words: list[str] = []
    redirects: list[str] = []
    pending = False
    joined = False
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        if kind == "end":
            commands.append((words, redirects))
            words, redirects, pending, joined = [], [], False, False
        elif kind == "redirect":
            pending = "&" not in token
        elif kind == "comma":
            joined = True
        elif kind == "word":
            if "(" in token and token[0] not in "'[":
                commands += _commands(token[token.index("(") + 1 : -1])
            if pending:
                redirects.append(_unquoted(token))
                pending = False
            elif joined and words:
                words[-1] += f",{token}"
            else:
                words.append(token)
            joined = False
    commands.append((words, redirects))
    return [(w, r) for w, r in commands if w or r]


def _run_words(words: list[str], session: Session, variables: dict[str, str]) -> None:
    table = load_table("powershell")
    name = _unquoted(words[0])
    if _HOST.match(name):
        run_host(words[1:], session)
        return
    lowered = table["aliases"].get(name.casefold(), name.casefold())
    if any(word.casefold() == "-whatif" for word in words):
        return
    if lowered == "set-location" and len(words) > 1:
        session.enter(_unquoted(words[-1]))
    elif lowered == "invoke-expression" and len(words) > 1:
        inner = session.inner()
        run_powershell(_unquoted(words[-1]), inner)
    elif (entry := table["cmdlets"].get(lowered)) is not None:
        _run_cmdlet(lowered, entry, words[1:], session, variables)
    elif re.fullmatch(r"[a-z]+-[a-z]\w*", lowered) and not re.match(r"[a-z]+-[a-z]+$", name):
        _run_verb(lowered, session)
    elif (
        (
            re.fullmatch(r"[a-z]+-[a-z]\w*", lowered)
            and lowered.split("-")[0] in table["verbs"]["read_only"]
        )
        or words[0][:1] in {"'", '"', "$", "(", "-", "@", "["}
        or lowered.split("(")[0] in table["keywords"]["names"]
    ):
        return
    else:
        program = [_unquoted(word) for word in words]
        run_program([part for word in program for part in ([word])], session, NO_INPUT)


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
    switches = load_table("powershell")["keywords"]["switches"]
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
                key not in switches
                and index < len(words)
                and not re.match(r"-[A-Za-z]", words[index])
            ):
                named[key].append(words[index])
                index += 1
        else:
            positional.append(word)
    return named, positional


def run_host(words: list[str], session: Session) -> None:
    """Run what ``powershell.exe`` is given."""
    inner = session.inner()
    for place, word in enumerate(words):
        flag = _unquoted(word).casefold()
        rest = [_unquoted(w) for w in words[place + 1 :]]
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
            run_powershell(" ".join(_unquoted(w) for w in words[place:]), inner)
            return
    if not any(word.startswith("-") for word in words):
        session.add("unknown", "powershell", "an interactive shell")


def _resolved(path: str, variables: dict[str, str]) -> str:
    path = _unquoted(path)
    if path.startswith("(") and re.search(r"join-path", path, re.IGNORECASE):
        parts = [_unquoted(p) for p in path.strip("()").split()[1:] if not p.startswith("-")]
        path = "/".join(parts)
    known = variables.get(path.casefold())
    if known is not None and known != path:
        return _resolved(known, {k: v for k, v in variables.items() if k != path.casefold()})
    return path


def _unquoted(word: str) -> str:
    word = word.strip()
    if len(word) > 1 and word[0] in "'\"" and word[-1] == word[0]:
        return word[1:-1]
    return word
