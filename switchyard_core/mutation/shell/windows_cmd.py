"""The cmd.exe dialect: a table of builtins and redirections."""

from __future__ import annotations

import re

from switchyard_core.mutation.shell.programs import into, run_program
from switchyard_core.mutation.shell.session import MAX_DEPTH, NO_INPUT, Session
from switchyard_core.mutation.tables import load_table

__all__ = ["is_cmd", "is_cmd_program", "run_cmd", "run_inner"]

_TOKEN = re.compile(
    r"""(?P<space>[ \t]+)
    |(?P<redirect>[0-9]?>>?&?|<)
    |(?P<end>\r?\n|&&|\|\||&|\||[()])
    |(?P<word>(?:"[^"]*"?|\^.|[^\s"&|<>()^])+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_WINDOWS_PATH = re.compile(r"(?:^|[\s>\"])(?:[A-Za-z]:\\|\.{0,2}\\?[\w.%-]+\\[\w.*%-])")
_MARKS = re.compile(r"[12]?>\s*nul\b|%[A-Za-z_]\w*%|^\s*cmd(?:\.exe)?\s+/[ck]", re.IGNORECASE)
#: Heads of statements that only cmd has, and its escapes where they are not quoted.
_STATEMENTS = re.compile(
    r"^\s*(?:::|@?(?:rem|call)\s)"
    r"|\bfor\s+(?:/[a-z]\s+)?(?:\"[^\"]*\"\s+|\w+\s+)?%%?[a-z]\s+in\b"
    r"|(?:^|&)\s*@?if\s+(?:/i\s+)?(?:not\s+)?(?:exist|defined|errorlevel)\s",
    re.IGNORECASE,
)
_ESCAPED = re.compile(r"\^[<>&|]")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_SWITCH = re.compile(r"\s/[a-zA-Z?](?:[\s:]|$)")
_FIRST = re.compile(r"(?:^|&&|\|\||[&|(])\s*@?([A-Za-z.]+)")


#: The dialect shows in the first lines.
_SHOWN = 8192
#: Steps that it takes to look at a statement; its words come on top.
_STATEMENT = 4


def is_cmd(text: str) -> bool:
    """Tell by its words whether a text is a command for cmd.exe."""
    start = text[:_SHOWN]
    if _MARKS.search(start) or _STATEMENTS.search(start):
        return True
    if _ESCAPED.search(_QUOTED.sub("", start)):
        return True
    detect = load_table("cmd")["detect"]
    firsts = {word.casefold() for word in _FIRST.findall(start)}
    if firsts & set(detect["words"]):
        return True
    if not firsts & set(detect["shared"]):
        return False
    return bool(
        _WINDOWS_PATH.search(start)
        or (
            _SWITCH.search(start)
            and firsts & {"dir", "type", "rmdir", "tree", "where", "start", "set", "fc"}
        )
    )


def is_cmd_program(name: str) -> bool:
    """Tell whether a program is one of Windows that the table of cmd.exe lists."""
    table = load_table("cmd")
    name = name.casefold().removesuffix(".exe")
    return any(name in table[key] for key in ("read_only", "file_write_other", "writes"))


def run_cmd(text: str, session: Session) -> None:
    """Record the effects of a command line of cmd.exe; never raises on bad syntax."""
    if session.depth > MAX_DEPTH:
        session.add("unknown", "cmd", "nested too deeply")
        return
    words: list[str] = []
    pending = ""
    looping = False
    for match in _TOKEN.finditer(text + "\n"):
        kind, piece = match.lastgroup, match[0]
        session.spend()
        if kind == "end":
            if piece == "(" and words[-1:] in (["in"], ["IN"], ["In"]):
                # What a loop goes over is no command, unless `for /f` runs one for its output.
                looping = True
            elif words and not looping:
                _run_words(words, session)
            elif looping and words[:1] and words[0][:1] in "'`" and piece == ")":
                _run_words([word.strip("'`") for word in words], session)
            looping = looping and piece != ")"
            words, pending = [], ""
        elif kind == "redirect":
            pending = piece
        elif kind == "word":
            if pending:
                if not pending.endswith("&") and pending != "<":
                    session.write(_unquoted(piece), pending)
                pending = ""
            else:
                words.append(piece)


def _run_words(words: list[str], session: Session) -> None:
    # One statement stands in another: what is behind `do` is looked at once more for each.
    session.spend(_STATEMENT + len(words) // 4)
    table = load_table("cmd")
    name = _unquoted(words[0]).lstrip("@").casefold()
    name = name.removesuffix(".exe")
    rest = words[1:]
    if name.startswith(":") or any(word == "/?" for word in rest):
        return
    if name == "cmd":
        run_inner(rest, session)
    elif name in {"if", "for"}:
        _run_guarded(name, rest, session)
    elif name in {"else", "do", "not"}:
        _run_words(rest or ["rem"], session)
    elif name in {"cd", "chdir", "pushd"}:
        operands = [word for word in rest if not word.startswith("/")]
        session.enter(_unquoted(operands[-1]) if operands else "")
    elif name == "start":
        _run_start(rest, session)
    elif name in table["writes"]:
        _run_writer(name, table["writes"][name], rest, session)
    elif (
        name == "call"
        and rest
        and not rest[0].casefold().endswith((".bat", ".cmd"))
        and not rest[0].startswith(":")
    ):
        _run_words(rest, session)
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
        run_program([_unquoted(word) for word in words], session, NO_INPUT)


def _behind(rest: list[str], switches: object) -> list[str]:
    """Return the words behind a switch, without blanks as ``/o:file`` has it or in the next."""
    named = switches if isinstance(switches, list) else []
    lowered = [word.casefold() for word in rest]
    return [
        _unquoted(rest[place + 1])
        for place, word in enumerate(lowered[:-1])
        if any(word == switch for switch in named)
    ]


def _run_start(rest: list[str], session: Session) -> None:
    """Run what ``start`` is given, behind its title and switches."""
    words = list(rest)
    if words and words[0].startswith('"') and len(words) > 1:
        words.pop(0)
    while words and words[0].startswith("/"):
        # `/d` alone takes the directory in the next word.
        taken = 2 if words[0].casefold() == "/d" else 1
        words = words[taken:]
    if words:
        _run_words(words, session.inner())
    else:
        session.add("unknown", "start", "an interactive shell")


def run_inner(rest: list[str], session: Session) -> None:
    """Run ``cmd /c "..."``."""
    for place, word in enumerate(rest):
        if word.casefold()[:2] in {"/c", "/k"}:
            tail = [word[2:]] if len(word) > 2 else []
            text = " ".join([*tail, *rest[place + 1 :]]).strip()
            if text.startswith('"') and text.endswith('"') and len(text) > 1:
                text = text[1:-1]
            run_cmd(text, session.inner())
            return
    session.add("unknown", "cmd", "an interactive shell")


def _run_guarded(name: str, rest: list[str], session: Session) -> None:
    """Run the command behind a condition or loop head."""
    lowered = [word.casefold() for word in rest]
    if name == "for" and "do" in lowered:
        _run_words(rest[lowered.index("do") + 1 :] or ["rem"], session)
        return
    if name == "if":
        index = 0
        while index < len(lowered) and lowered[index] in {"not", "/i"}:
            index += 1
        head = (
            2
            if lowered[index : index + 1] and lowered[index] in {"exist", "defined", "errorlevel"}
            else 3
        )
        if "==" in "".join(lowered[index : index + 1]):
            head = 1
        if rest[index + head :]:
            _run_words(rest[index + head :], session)


def _run_writer(name: str, entry: dict[str, object], rest: list[str], session: Session) -> None:
    operands = [_unquoted(w) for w in rest if not re.match(r"/[A-Za-z-]", w) and w != "+"]
    kind = entry["operands"]
    if kind == "last":
        operands = operands[-1:]
    elif kind == "first":
        operands = operands[:1]
    elif kind == "second":
        operands = operands[1:2]
    elif kind == "into":
        operands = into(operands)
    elif kind == "after":
        operands = _behind(rest, entry["switches"])
    if isinstance(only := entry.get("only"), list) and not {w.casefold() for w in rest} & {*only}:
        return
    if not operands and entry.get("optional"):
        return
    cap = entry.get("cap")
    for path in operands or [""]:
        session.write(path, name, cap=cap if isinstance(cap, str) else None)


def _unquoted(word: str) -> str:
    return word.replace('"', "").replace("^", "")
