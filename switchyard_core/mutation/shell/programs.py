"""Says what one program does with its words, by the command table."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from switchyard_core.mutation.shell import special
from switchyard_core.mutation.shell.arguments import Arguments, split_arguments
from switchyard_core.mutation.shell.interpreters import run_interpreter
from switchyard_core.mutation.shell.session import MAX_DEPTH, NO_INPUT, Input, Session
from switchyard_core.mutation.shell.table import Program, UsageRule, command_table
from switchyard_core.mutation.shell.uses import USES, Use

__all__ = ["into", "run_program"]

_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_HELP = {"--help", "--version", "-help", "-version"}
_SHORT_HELP = {"-h", "-V", "-v", "-?", "help", "version"}
_DRY = {"--dry-run", "--dryrun", "--dry_run", "--simulate", "--just-print", "--what-if", "--whatif"}
_SCRIPT_NAME = re.compile(
    r"[\\/]|\.(?:sh|bash|zsh|py|js|mjs|cjs|ts|rb|pl|php|ps1|bat|cmd)$", re.IGNORECASE
)
#: Steps that it takes to look a program up and take its words apart; its words come on top.
_PROGRAM = 6
#: Command words that are followed from runner to runner.
_MAX_WORDS = 5000


def run_program(words: Sequence[str], session: Session, stdin: Input = NO_INPUT) -> str | None:
    """Record the effects of one program.

    Args:
        words: Program and arguments.
        session: Gets the effects.
        stdin: What the program reads.

    Returns:
        What it prints, when that can be told, else ``None``.
    """
    words = list(words[:_MAX_WORDS])
    while words and "=" in words[0] and _ASSIGNMENT.match(words[0]):
        words.pop(0)
    if not words or not words[0]:
        return None
    if session.depth > MAX_DEPTH:
        session.add("unknown", words[0], "nested too deeply")
        return None
    session.spend(_PROGRAM + len(words) // 2)
    path = words[0].replace("\\", "/") if words[0][1:3] == ":\\" else words[0]
    name = command_table().name_of(path)
    if not _stands_for_its_name(path, name):
        _run_unlisted(path, name, words[1:], session)
        return None
    rest = words[1:]
    if path.startswith(("$", "`")):
        session.add("unknown", path, "the program is a variable")
        return None
    if _asks_for_help(rest):
        return None
    if builtin := special.SPECIAL.get(name):
        return builtin(rest, session, stdin, run_program)
    table = command_table()
    listed = table.canonical(name)
    long = [word.split("=")[0] for word in rest if word[:2] == "--"]
    if long and not _DRY.isdisjoint(long) and listed not in table.words["no_dry_run"]:
        return None
    entries = table.programs.get(listed, ())
    for program in entries:
        done, output = _run_listed(program, listed, rest, session, stdin)
        if done:
            return output
    if label := table.simple.get(listed):
        session.add(label, name, f"{name} is known to do that")
        return None
    if any(program.kind == "program" for program in entries):
        return None
    _run_unlisted(path, name, rest, session)
    return None


def _stands_for_its_name(path: str, name: str) -> bool:
    """Tell whether a path is the program of its last part, not some script called so."""
    if "/" not in path or path.startswith("@"):
        return True
    directory = posixpath.basename(posixpath.dirname(path)).casefold()
    if directory in {"bin", "sbin", ".bin", "scripts", "libexec", "usr"}:
        return True
    return command_table().canonical(name) in command_table().words["local_programs"]


def _asks_for_help(rest: Sequence[str]) -> bool:
    before = rest[: rest.index("--")] if "--" in rest else rest
    if len(rest) == 1 and rest[0] in _SHORT_HELP:
        return True
    if rest and rest[0] == "help":
        return True
    # Only up to the first few words: behind a wrapper they belong to the inner program.
    before = before[:3]
    return not _HELP.isdisjoint(before) and not any(" " in word for word in before)


def _run_listed(
    program: Program, name: str, rest: list[str], session: Session, stdin: Input
) -> tuple[bool, str | None]:
    if program.kind == "wrapper":
        return _run_wrapper(program, name, rest, session, stdin)
    if program.kind == "interpreter":
        return run_interpreter(program, name, rest, session, stdin, run_program)
    arguments = split_arguments(
        rest,
        valued=program.valued,
        attached=program.attached,
        long_single=program.long_single,
        bundled=program.bundled,
        through=program.table.get("through", False),
    )
    for rule in program.rules_for(arguments.operands):
        operands = rule.applies(arguments)
        if operands is not None and _apply(rule, name, operands, arguments, session, stdin):
            return True, None
    return False, None


def _apply(
    rule: UsageRule,
    name: str,
    operands: list[str],
    arguments: Arguments,
    session: Session,
    stdin: Input,
) -> bool:
    """Carry out a rule; return whether it decided."""
    if rule.run:
        return USES[rule.run](
            Use(
                name=name,
                operands=operands,
                arguments=arguments,
                session=session,
                stdin=stdin,
                run=run_program,
            )
        )
    if not rule.writes:
        session.add(rule.label, " ".join([name, *operands[:0], *_shown(rule, arguments)]), "")
        return True
    paths = _written(rule, operands, arguments)
    if not paths:
        if rule.optional:
            return False
        paths = [_names_from(stdin)]
    for path in paths:
        session.write(path, name, cap=rule.cap)
    return True


def _names_from(stdin: Input) -> str:
    return stdin.file or ""


def _shown(rule: UsageRule, arguments: Arguments) -> list[str]:
    """Return the words of a use that decided, for the verdict."""
    shown = [flag for flag in rule.flags if flag in arguments.flags][:1]
    sub = rule.subs.firsts.get(arguments.operands[0]) if arguments.operands else None
    return shown if sub is None else [sub, *shown]


def _written(rule: UsageRule, operands: list[str], arguments: Arguments) -> list[str]:
    kind, _, name = rule.writes.partition(":")
    if kind == "all":
        return operands
    if kind == "last":
        return operands[-1:]
    if kind == "first":
        return operands[:1]
    if kind == "second":
        return operands[1:2]
    if kind == "into":
        return into(operands)
    if kind == "rest":
        return operands[1:]
    if kind == "value":
        return arguments.value(rule.flags)
    if kind == "key":
        return [word.removeprefix(f"{name}=") for word in operands if word.startswith(f"{name}=")]
    if kind == "urls":
        return [_url_name(word) for word in operands if "/" in word or "." in word]
    return []


def into(operands: list[str]) -> list[str]:
    """Return what a copy of the first operands to the last one writes.

    A destination that is spelled as a directory gets files with the names of the sources.
    """
    *sources, last = operands or [""]
    if not sources or not (last.endswith(("/", "\\")) or last in {".", ".."}):
        return [last] if operands else []
    names = [posixpath.basename(source.replace("\\", "/").rstrip("/")) for source in sources]
    return [posixpath.join(last.replace("\\", "/"), name) for name in names]


def _url_name(url: str) -> str:
    try:
        return posixpath.basename(urlsplit(url).path) or "download.out"
    except ValueError:
        return "download.out"


def _run_wrapper(
    program: Program, name: str, rest: list[str], session: Session, stdin: Input
) -> tuple[bool, str | None]:
    """Run the command inside a wrapper such as ``sudo`` or ``docker exec``."""
    table = program.table
    if subs := table.get("sub", ()):
        if program.behind.isdisjoint(rest):
            return False, None
        rest, taken = _behind_subcommand(program, subs, rest)
        if not taken:
            return False, None
    if runner := table.get("run_as"):
        return True, run_program([runner, *rest], session.inner(), stdin)
    shell_flags = table.get("shell_flags", ())
    arguments = split_arguments(
        rest,
        valued=program.valued | frozenset(shell_flags),
        long_single=program.long_single,
        stop=True,
    )
    if arguments.has(table.get("reads", ())):
        return True, None
    for path in arguments.value(table.get("output", ())):
        session.write(path, name, cap="file_write_other")
    command = _inner_command(table, rest, arguments)
    texts = arguments.value(shell_flags) or (
        command[1:2] if command[:1] in _alone(shell_flags) else []
    )
    for text in texts:
        special.run_text(text, session.inner(), stdin)
    if texts:
        return True, None
    if not command:
        if (empty := table.get("empty")) is not None:
            session.add(empty, name, f"{name} without a command")
        return empty is not None, None
    if table.get("shell"):
        return True, special.run_text(" ".join(command), session.inner(), stdin)
    return True, run_program(command, session.inner(), stdin)


def _alone(flags: Sequence[str]) -> list[list[str]]:
    return [[flag] for flag in flags]


def _behind_subcommand(
    program: Program, subs: Sequence[str], rest: list[str]
) -> tuple[list[str], int]:
    """Return the words behind a wrapper's subcommand, and how many words that has."""
    words = split_arguments(rest, valued=program.valued, stop=True).rest
    lengths = [len(sub.split()) for sub in subs if words[: len(sub.split())] == sub.split()]
    taken = max(lengths, default=0)
    return words[taken:], taken


def _inner_command(table: Mapping[str, Any], rest: list[str], arguments: Arguments) -> list[str]:
    """Return the words of the command inside a wrapper."""
    command = arguments.rest[table.get("skip", 0) :]
    if table.get("dashdash"):
        command = rest[rest.index("--") + 1 :] if "--" in rest else []
    for flag in table.get("command_flags", ()):
        if flag in rest:
            command = rest[rest.index(flag) + 1 :]
    if command[:1] == ["--"]:
        command = command[1:]
    while command and _ASSIGNMENT.match(command[0]):
        command = command[1:]
    return command


def _run_unlisted(path: str, name: str, rest: list[str], session: Session) -> None:
    words = command_table().words
    if _SCRIPT_NAME.search(path):
        known = session.files.get(session.resolve(path))
        if known is not None:
            special.run_text(known, session.inner(), NO_INPUT)
            return
        stem = re.sub(r"\.\w+$", "", name).casefold()
        parts = set(re.split(r"[-_.]", stem)) | {stem}
        if parts & words["reading_scripts"]:
            return
    elif not words["fixing_flags"].isdisjoint(word.split("=")[0] for word in rest):
        session.add("file_edit", name, f"{name} has a flag that writes")
        return
    session.add("unknown", name, f"what {name} does cannot be seen")
