"""The PowerShell dialect: a table of cmdlets, redirections and .NET calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from switchyard_core.mutation.shell.builtins import unquoted
from switchyard_core.mutation.shell.programs import run_program
from switchyard_core.mutation.shell.session import (
    MAX_DEPTH,
    NO_INPUT,
    TOO_DEEP,
    TOO_MUCH,
    Input,
    Session,
)
from switchyard_core.mutation.shell.table import command_table, select
from switchyard_core.mutation.tables import load_table

__all__ = ["read_powershell"]

#: Steps for one command.
_COMMAND = 4
#: Characters copied, and parentheses matched, in a step.
_COPIED = 500
_MATCHED = 4
#: Opening parentheses that are read; no hand-written text has as many.
_MOST_GROUPS = 1000
_PARENTHESIS = re.compile(r"[()]")
_TOKEN = re.compile(
    r"""(?P<space>[ \t`]+)
    |(?P<comment>\#[^\n]*)
    |(?P<redirect>(?:[0-9*]?>>?(?:&[0-9])?))
    |(?P<end>\n+|;|\|\||&&|\||\{|\}|&(?!&))
    |(?P<comma>,)
    |(?P<word>(?:'(?:[^']|'')*'|"(?:[^"`]|`.|"")*"|\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\)|@?\{[^{}]*\}(?=\.)|`.|[^\s;|&{},'"()><\#`]++|\#|[()>`])+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_HOST = re.compile(r"^(?:.*[\\/])?(?:powershell|pwsh)(?:\.exe)?$", re.IGNORECASE)
_HERE = re.compile(r"@(['\"])\r?\n(.*?)\r?\n\1@", re.DOTALL)
#: A comment between commands, or a text that may look like one.
_COMMENT = re.compile(r"('[^']*'|\"[^\"]*\")|<#.*?(?:#>|\Z)", re.DOTALL)
#: A cmdlet behind the name of its module.
_QUALIFIED = re.compile(r"[\w.]+\\([A-Za-z]+-[A-Za-z]+)")
#: Functions and blocks of a text that are looked for among its other words.
_MOST_DEFINITIONS = 20
_DEFINITION = re.compile(
    r"(?:^|[;\n{}])[ \t]*(?P<head>(?:function|filter)[ \t]+(?:\w+:)?(?P<function>[\w-]+)[^{};\n]*\{"
    r"|(?P<block>\$\w+)[ \t]*=[ \t]*\{)",
    re.IGNORECASE,
)
_USED = re.compile(r"\s*[.|]")
_BRACES = re.compile(r"'[^']*'|\"[^\"]*\"|[{}]")
#: What turns a cmdlet into a question.
_DRY = frozenset({"-whatif", "-wi", "-whatif:$true"})
#: A type before a value.
_CAST = re.compile(r"(?:\[[\w.\[\]]+\])+\(")
#: Begins the word in the place of a here-string.
_PLACE = "…"
_ASSIGNED = re.compile(r"(\$[\w:]+)\+?=(.+)$", re.DOTALL)
_CMDLET = re.compile(r"[a-z]+-[a-z]\w*")
_PARAMETER = re.compile(r"-[A-Za-z]")
#: Beginnings of values, not commands: texts, variables, groups, numbers.
_VALUE = re.compile(r"['\"$(\-@\[\d]")
_SWITCH_OF_CMD = re.compile(r"/[A-Za-z]")
#: Parameters that name what a cmdlet copies from.
_SOURCES = ("-path", "-literalpath")


def read_powershell(text: str, session: Session, _stdin: Input) -> None:
    """Record the effects of a PowerShell command; never raises on bad syntax."""
    texts: list[str] = []
    text = _HERE.sub(lambda found: _kept(found[2], texts), text)
    text = _COMMENT.sub(lambda found: found[1] or "", text)
    *_, rest = text.split("(", _MOST_GROUPS)
    if "(" in rest:
        session.add("unknown", "powershell", TOO_MUCH)
        text = text[: -len(rest)]
    text = _without_uncalled(text)
    _run_net(text, session)
    _Shell(session, texts).run(text)


def _kept(text: str, texts: list[str]) -> str:
    """Keep a text that may hold any sign; return a word in its place."""
    texts.append(text)
    return f"'{_PLACE}{len(texts) - 1}'"


def _without_uncalled(text: str) -> str:
    """Return a text without the functions and blocks that it defines and does not use."""
    if text.lstrip().startswith("{"):
        # A block is a value until something calls it.
        end = _closing(text, text.index("{") + 1)
        text = text if _USED.match(text, end) else text[end:]
    position = 0
    for _ in range(_MOST_DEFINITIONS):
        match = _DEFINITION.search(text, position)
        if match is None:
            break
        position = match.end()
        end = _closing(text, position)
        name = (match["function"] or match["block"] or "").casefold()
        start = match.start("head")
        if name and name in (text[:start] + "\n" + text[end:]).casefold():
            continue
        text, position = text[:start] + text[end:], start
    return text


def _closing(text: str, position: int) -> int:
    """Return where the block ends that is open at a position."""
    opened = 1
    for match in _BRACES.finditer(text, position):
        opened += {"{": 1, "}": -1}.get(match[0], 0)
        if not opened:
            return match.end()
    return len(text)


def _run_net(text: str, session: Session) -> None:
    for pattern, cap in _net():
        for match in pattern.finditer(text):
            path = match.groupdict().get("path") or ""
            if "Path]" not in text[max(0, match.start() - 6) : match.start() + 2]:
                session.write(unquoted(path), "[IO.File]", cap=cap)


@cache
def _net() -> tuple[tuple[re.Pattern[str], str | None], ...]:
    entries = load_table("powershell")["net"]
    return tuple((re.compile(e["pattern"], re.IGNORECASE), e.get("cap")) for e in entries)


class _Line(NamedTuple):
    """One command of a text."""

    words: list[str]
    redirects: list[str]  # the paths of its redirections
    sign: str  # the sign in front of it, such as ``|`` and ``&``


def _commands(text: str, session: Session, depth: int = 0) -> Iterator[_Line]:
    """Yield the commands of a text."""
    words: list[str] = []
    redirects: list[str] = []
    pending = joined = False
    sign = ""
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        session.spend()
        if kind == "end":
            if words or redirects:
                yield _Line(words, redirects, sign)
                words, redirects = [], []
            pending = joined = False
            sign = token
        elif kind == "redirect":
            pending = "&" not in token
        elif kind == "comma":
            joined = True
        elif kind == "word":
            if "(" in token and (token[0] not in "'[" or _CAST.match(token)):
                yield from _inner_commands(token, session, depth + 1)
            if pending:
                redirects.append(unquoted(token))
                pending = False
            elif joined and words:
                words[-1] += f",{token}"
                session.spend(len(words[-1]) // _COPIED)
            else:
                words.append(token)
            joined = False
    if words or redirects:
        yield _Line(words, redirects, sign)


def _inner_commands(token: str, session: Session, depth: int) -> Iterator[_Line]:
    if token[0] == '"':
        # In a text only `$(…)` is a command.
        token = token[token.find("$(") :] if "$(" in token else ""
    if depth > MAX_DEPTH:
        session.add("unknown", "powershell", TOO_DEEP)
        return
    session.spend(token.count("(") // _MATCHED)
    opened = start = 0
    for match in _PARENTHESIS.finditer(token):
        if match[0] == "(":
            opened += 1
            start = match.end() if opened == 1 else start
        elif opened:
            opened -= 1
            if not opened:
                yield from _commands(token[start : match.start()], session, depth)


class _Shell:
    """Runs the commands of one text, with their variables."""

    def __init__(self, session: Session, texts: list[str]) -> None:
        self.session = session
        #: The here-strings, by the numbers in their places.
        self.texts = texts
        self.variables: dict[str, str] = {}
        #: Functions and blocks, whose commands count where they are defined.
        self.defined: set[str] = set()
        #: The text that a command of one word gives.
        self.given: str | None = None
        self.table = load_table("powershell")

    def run(self, text: str) -> None:
        for spoken, redirects, sign in _commands(text, self.session):
            words = spoken
            self.session.spend(_COMMAND + len(words) // 2)
            for path in redirects:
                self.session.write(self._resolved(path), ">")
            if words and (match := _ASSIGNED.match(words[0])):
                words = [match[1], "=", match[2], *words[1:]]
            if len(words) == 2 and words[1] == "=":
                self.defined.add(words[0].casefold())
            if len(words) > 2 and words[0].startswith("$") and words[1] in {"=", "+="}:
                self.variables[words[0].casefold()] = self._assigned(words[2:])
                words = words[2:]
            if words and sign == "&":
                words = [self._called(words[0]), *words[1:]]
            if words:
                self._run_words(words, self.given if sign == "|" else None)
            self.given = self._text(words[0]) if len(words) == 1 else None

    def _text(self, word: str) -> str | None:
        """Return the text of a word or variable, if it is one."""
        word = self.variables.get(word.casefold(), word if word[0] in "'\"" else "")
        text = unquoted(word)
        place = text.removeprefix(_PLACE)
        if place != text and place.isdecimal() and int(place) < len(self.texts):
            return self.texts[int(place)]
        return text or None

    def _called(self, word: str) -> str:
        """Return the program behind ``&``: a word, a text, a variable, or what is looked up."""
        if word.startswith("("):
            return unquoted(word.strip("()").split()[-1]) if word.strip("()") else word
        return self._text(word) or unquoted(word)

    def _assigned(self, words: list[str]) -> str:
        """Return the value of an assignment if it is a text or a temporary file."""
        value = " ".join(words)
        if any(word in value.casefold() for word in self.table["keywords"]["scratch"]):
            return "$env:TEMP/new"
        return value if _JOINED.match(value) else unquoted(words[0])

    def _run_words(self, words: list[str], given: str | None = None) -> None:
        table, session = self.table, self.session
        keywords, verbs = table["keywords"], table["verbs"]
        name, rest = unquoted(words[0]), words[1:]
        if match := _QUALIFIED.fullmatch(name):
            name = match[1]
        folded = name.casefold()
        if folded in {"function", "filter"} and rest:
            self.defined.add(rest[0].split("(")[0].casefold())
        lowered = table["aliases"].get(folded, folded)
        if folded in keywords["cmd_aliases"] and any(map(_SWITCH_OF_CMD.fullmatch, rest)):
            session.read(" ".join(words), "cmd")
        elif _HOST.match(name):
            run_program(words, session, _input(given))
        elif any(word.casefold() in _DRY for word in rest):
            return
        elif lowered in _RUNNING:
            _RUNNING[lowered](self, rest, given)
        elif (entry := table["cmdlets"].get(lowered)) is not None:
            self._run_cmdlet(lowered, entry, rest)
        elif _CMDLET.fullmatch(lowered) and not re.match(r"[a-z]+-[a-z]+$", name):
            label = next((label for label, named in verbs.items() if _verb(lowered) in named), None)
            detail = "" if label else f"what {lowered} does cannot be seen"
            session.add(label or "unknown", lowered, detail)
        elif (
            (_CMDLET.fullmatch(lowered) and _verb(lowered) in verbs["read_only"])
            or _VALUE.match(words[0])
            or lowered.split("(")[0] in keywords["names"]
            or folded in self.defined
        ):
            return
        elif not command_table().knows(name) and _is_cmd_program(lowered):
            session.read(" ".join(words), "cmd")
        else:
            run_program([name, *map(unquoted, rest)], session, _input(given))

    def set_location(self, words: list[str], _given: str | None) -> None:
        if words:
            self.session.enter(unquoted(words[-1]))

    def invoke_expression(self, words: list[str], given: str | None) -> None:
        text = self._text(words[-1]) if words else given
        if text:
            self.session.inner().read(text, "powershell")
        else:
            self.session.add("unknown", "invoke-expression", "what it runs cannot be seen")

    def start_process(self, words: list[str], _given: str | None) -> None:
        given = _Parameters.of(words)
        programs = [*given.values("-filepath"), *given.positional[:1]][:1]
        arguments = [*given.values("-argumentlist"), *given.values("-args"), *given.positional[1:]]
        for path in given.values("-redirectstandardoutput"):
            self.session.write(unquoted(path), "start-process")
        # The table decides by the words; another program is unknown.
        listed = [word for text in arguments for word in _listed(text)]
        run_program([*map(unquoted, programs), *listed], self.session.inner())
        if not programs:
            self.session.add("unknown", "start-process")

    def _run_cmdlet(self, name: str, entry: Mapping[str, Any], words: list[str]) -> None:
        given = _Parameters.of(words)
        if "label" in entry:
            edits = not given.named.keys().isdisjoint(entry.get("edit_flags", ()))
            self.session.add("file_edit" if edits else entry["label"], name)
            return
        paths = given.paths(entry)
        if not paths and entry.get("optional"):
            return
        if entry.get("into") and paths:
            sources = [*given.values(*_SOURCES), *given.positional[:1]]
            paths = select("into", [*map(unquoted, sources[:1]), unquoted(paths[-1])])
        cap = "file_write_other" if given.of_directory() else entry.get("cap")
        for path in paths or [""]:
            for part in path.split(","):
                self.session.write(self._resolved(part), name, cap=cap)

    def _resolved(self, path: str) -> str:
        seen: set[str] = set()
        while True:
            path = unquoted(path)
            if _JOINED.match(path):
                words = path.strip("()").split()[1:]
                path = "/".join(unquoted(word) for word in words if not word.startswith("-"))
            name = path.casefold()
            value = self.variables.get(name)
            if value is None or name in seen:
                return path
            seen.add(name)
            path = value


_JOINED = re.compile(r"\(?\s*join-path\s", re.IGNORECASE)
#: Cmdlets that run something, or change where commands run.
_RUNNING: Mapping[str, Callable[[_Shell, list[str], str | None], None]] = MappingProxyType(
    {
        **dict.fromkeys(("set-location", "push-location"), _Shell.set_location),
        "pop-location": lambda shell, _words, _given: shell.session.enter(""),
        "invoke-expression": _Shell.invoke_expression,
        "start-process": _Shell.start_process,
    }
)


class _Parameters(NamedTuple):
    named: dict[str, list[str]]  # values by the parameter as written, in lower case
    positional: list[str]  # values without a name

    @classmethod
    def of(cls, words: list[str]) -> _Parameters:
        given = cls({}, [])
        key: str | None = None
        for word in words:
            if _PARAMETER.match(word):
                name, _, value = word.partition(":")
                key = name.casefold()
                values = given.named.setdefault(key, [])
                if value:
                    values.append(value)
                if value or _is_switch(key):
                    key = None
            elif key is not None:
                given.named[key].append(word)
                key = None
            else:
                given.positional.append(word)
        return given

    def values(self, *keys: str) -> list[str]:
        """Return values of parameters; PowerShell takes any unambiguous start of a name."""
        return [
            value
            for key in keys
            for name, values in self.named.items()
            if name == key or (len(name) > 3 and key.startswith(name))
            for value in values
        ]

    def paths(self, entry: Mapping[str, Any]) -> list[str]:
        paths = self.values(*entry.get("parameters", ()))
        if entry.get("all"):
            paths += self.positional
        elif not paths and "position" in entry:
            place = entry["position"]
            if place:
                # With the source named, an unnamed path is the next one in line.
                place -= sum(bool(self.values(key)) for key in _SOURCES)
            paths = self.positional[place : place + 1] if place >= 0 else []
        if entry.get("join") and (extra := self.named.get(entry["join"])):
            return [f"{path}/{extra[0]}" for path in paths] or extra
        return paths

    def of_directory(self) -> bool:
        kinds = [*self.named.get("-itemtype", ()), *self.named.get("-type", ())]
        return any("directory" in kind.casefold() for kind in kinds)


def _input(text: str | None) -> Input:
    return NO_INPUT if text is None else Input(text=text, connected=True)


def _is_switch(key: str) -> bool:
    """Return whether a parameter, possibly abbreviated, takes no value."""
    table = load_table("powershell")["keywords"]
    if key in table["switches"]:
        return True
    return any(switch.startswith(key) for switch in table["switches"]) and not any(
        name.startswith(key) for name in table["not_switches"]
    )


def _listed(text: str) -> list[str]:
    """Return the words of an argument list: ``'a','b'``, ``@('a', 'b')`` or ``'a b'``."""
    quoted = [unquoted(match[0]) for match in _QUOTED.finditer(text)]
    return quoted if len(quoted) > 1 else " ".join(quoted or [text]).split()


def _verb(cmdlet: str) -> str:
    return cmdlet.split("-", maxsplit=1)[0]


def _is_cmd_program(name: str) -> bool:
    table = load_table("cmd")
    name = name.removesuffix(".exe")
    return any(name in table[key] for key in ("read_only", "file_write_other", "writes"))
