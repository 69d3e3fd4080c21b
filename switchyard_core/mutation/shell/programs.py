"""The effects of one program: the dispatcher over the command table."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import msgspec

from switchyard_core.mutation.shell.arguments import Arguments
from switchyard_core.mutation.shell.builtins import BUILTINS, NO_ARGUMENTS, USES, Use
from switchyard_core.mutation.shell.session import (
    MAX_DEPTH,
    NO_INPUT,
    STANDARD_INPUT,
    TOO_DEEP,
    Input,
    Session,
)
from switchyard_core.mutation.shell.table import Program, UsageRule, command_table, is_plain
from switchyard_core.mutation.tables import load_table

__all__ = ["run_program"]

_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=(?!=)")
_HELP, _VERSION = frozenset({"--help", "-help"}), frozenset({"--version", "-version"})
_SHORT_HELP = {"-h", "-V", "-v", "-?", "help", "version"}
_DRY_RUN = {"--dry-run", "--dry_run", "--dryrun", "--simulate"}
_DRY_RUN |= {"--just-print", "--what-if", "--whatif"}
_SCRIPT_NAME = re.compile(
    r"[\\/]|\.(?:sh|bash|zsh|py|js|mjs|cjs|ts|rb|pl|php|ps1|bat|cmd)$", re.IGNORECASE
)
#: Directories of installed programs.
_INSTALLED = {"bin", "sbin", ".bin", "scripts", "libexec", "usr"}
#: What a label says about a program, for verdicts.
_MEANINGS = {
    "file_edit": "edits source files",
    "unknown": "may change anything",
    "file_write_other": "edits no source file, but changes something",
    "scratch_write": "writes temporary files only",
    "read_only": "only reads",
}
#: Files that an interpreter runs as a program.
_ARCHIVES = (".jar", ".phar")
#: Steps to look up a program, without its words.
_PROGRAM = 6
#: Words of a command that are read.
_MAX_WORDS = 5000
#: First words of a program that are searched for a command.
_HANDED = 24
#: Whether an entry decided, and the output if it is known.
_Done: TypeAlias = tuple[bool, str | None]


def run_program(words: Sequence[str], session: Session, stdin: Input = NO_INPUT) -> str | None:
    """Record the effects of one program; return its output if it is known."""
    if len(words) > _MAX_WORDS:
        words = words[:_MAX_WORDS]
    while words and "=" in words[0] and _ASSIGNMENT.match(words[0]):
        words = words[1:]
    if not words or not words[0]:
        return None
    if session.depth > MAX_DEPTH:
        session.add("unknown", words[0], TOO_DEEP)
        return None
    session.spend(_PROGRAM + len(words) // 2)
    path, *rest = words
    name, other, reading = path, False, _reading()
    if path not in reading:
        path = path.replace("\\", "/") if "\\" in path else path
        name = command_table().name_of(path)
        other = "/" in path and not _stands_for_its_name(path, name)
    if not other and name in reading:
        # Most commands only read.
        if rest:
            _note_outputs(name, rest, session)
        return None
    use = Use(
        name=name, words=rest, session=session, stdin=stdin, run=run_program, arguments=NO_ARGUMENTS
    )
    if other:
        _run_unlisted(path, use)
        return None
    if path[0] in "$`":
        session.add("unknown", path, "the program is a variable")
        return None
    flags = {word.partition("=")[0] for word in rest if word[:1] == "-"}
    if rest and _only_helps(name, rest, flags):
        return None
    return _run_known(path, use, flags)


@cache
def _reading() -> frozenset[str]:
    """Return the names of programs that only read and of which no more need be known."""
    table = command_table()
    return frozenset(n for n in table.reading if n not in BUILTINS and table.name_of(n) == n)


def _run_known(path: str, use: Use, flags: set[str]) -> str | None:
    if builtin := BUILTINS.get(use.name.removesuffix(".exe")):
        return builtin(use)
    if not _DRY_RUN.isdisjoint(flags):
        return None
    table = command_table()
    listed = table.canonical(use.name)
    listed_use = use if listed == use.name else msgspec.structs.replace(use, name=listed)
    before = len(use.session.readings)
    splits: dict[int, Arguments] = {}
    for program in table.entries(listed, use.words, flags):
        if not program.may_decide(use.words, flags):
            continue
        if program.kind == "program":
            place = id(program.splitting)
            arguments = splits.get(place) or splits.setdefault(place, program.split(use.words))
            done, output = _apply_first(program, listed_use, arguments), None
        else:
            run = _run_wrapper if program.kind == "wrapper" else _run_interpreter
            done, output = run(program, listed_use)
        if done:
            break
    else:
        program, output = None, None
        if label := table.simple.get(listed):
            if label == "unknown":
                _hand_on(use)
            told = f"{use.name} {_MEANINGS[label]}"
            if label == "file_edit":
                use.session.edit(use.name, told, named=use.operands())
            elif label != "read_only":
                use.session.add(label, use.name, told)
        elif all(entry.kind != "program" for entry in table.programs.get(listed, ())):
            _run_unlisted(path, use)
    reads = len(use.session.readings) == before
    if flags and reads and (program is None or program.kind == "program"):
        _note_outputs(listed, use.words, use.session)
    return output


def _note_outputs(name: str, words: Sequence[str], session: Session) -> None:
    """Record what a program that reads writes by flags that its entry does not explain."""
    for _flag, path in command_table().outputs(name, words):
        session.write(path, name, cap="unknown")


def _stands_for_its_name(path: str, name: str) -> bool:
    """Return whether a path is the program of its last part, not a script of that name."""
    directory = posixpath.basename(posixpath.dirname(path)).casefold()
    if path.casefold().endswith(".exe") and _is_program(name.casefold().removesuffix(".exe")):
        return True
    # Packages have a path, too, with a version: `golang.org/x/tools/cmd/goimports@latest`.
    packed = path.startswith("@") or "@" in posixpath.basename(path) or path.endswith(_ARCHIVES)
    return packed or directory in _INSTALLED or command_table().is_local(name)


def _is_listed_script(path: str) -> bool:
    """Return whether a script that an interpreter runs is a program of the table."""
    table = command_table()
    name = table.name_of(path)
    known = _stands_for_its_name(path, name) and table.knows(name)
    return name in table.words["local_programs"] or known


def _only_helps(name: str, rest: Sequence[str], flags: set[str]) -> bool:
    if rest[0] == "help":
        return True
    if len(rest) == 1 and rest[0] in _SHORT_HELP:
        return rest[0] != "version" or name not in command_table().words["version_writers"]
    if _HELP.isdisjoint(flags) and _VERSION.isdisjoint(flags):
        return False
    # Only the first words: after a wrapper they belong to the inner program.
    before = (rest[: rest.index("--")] if "--" in rest else rest)[:3]
    # `towncrier build --version 3.1.0` has a version to write.
    asked = not _HELP.isdisjoint(before) or (before[-1:] == rest[-1:] and rest[-1] in _VERSION)
    return asked and not any(" " in word for word in before)


def _apply_first(program: Program, use: Use, arguments: Arguments) -> bool:
    """Apply the first rule that decides; return whether one did."""
    for rule in program.rules_for(arguments.operands):
        operands = rule.applies(arguments)
        if operands is not None and _apply(rule, use, operands, arguments, program):
            return True
    return False


def _apply(
    rule: UsageRule, use: Use, operands: list[str], arguments: Arguments, program: Program
) -> bool:
    """Apply a rule; return whether it decided."""
    if rule.run:
        given = arguments.value(rule.flags) if rule.run == "commands" else operands
        return USES[rule.run](msgspec.structs.replace(use, words=given, arguments=arguments))
    if not rule.writes:
        if rule.label == "read_only":
            return True
        if rule.label == "unknown":
            _hand_on(use)
        word = " ".join([use.name, *rule.shown(arguments)])
        if rule.label == "file_edit":
            place = rule.place(operands, arguments)
            named = () if rule.at and place else (*operands, *arguments.given())
            use.session.edit(
                word,
                f"{word} {_MEANINGS['file_edit']}",
                place=place,
                named=named,
                repository=program.repository,
            )
        else:
            use.session.add(rule.label, word, f"{word} {_MEANINGS[rule.label]}")
        return True
    paths = rule.written(operands, arguments)
    if not paths and rule.optional:
        return False
    if not paths and not use.stdin.file and not (rule.cap or rule.usually):
        place = rule.place([], arguments)
        use.session.edit(use.name, f"{use.name} writes a file", place=place, named=operands)
        return True
    for path in paths or [use.stdin.file or ""]:
        use.session.write(path, use.name, cap=rule.strongest(path))
    return True


def _run_wrapper(program: Program, use: Use) -> _Done:
    """Run the command inside a wrapper such as ``sudo`` or ``docker exec``."""
    table, rest = program.table, use.words
    if program.behind:
        found = [words for sub in program.behind if (words := _behind(program, sub, rest))]
        if not any(found):
            return False, None
        rest = min(found, key=len)[1:]
    if runner := table.get("run_as"):
        return True, use.run_inner([runner, *rest], use.stdin)
    arguments = program.split(rest, stop=True)
    if arguments.has(table.get("reads", ())):
        return True, arguments.rest[0] if len(arguments.rest) == 1 else None
    _write_log(table, use, arguments)
    command = _wrapped(table, rest, arguments)
    if command and "append" in table and not any("{" in word for word in command):
        command = [*command, table["append"]]
    flags = table.get("shell_flags", ())
    texts = arguments.value(flags) or (command[1:2] if command and command[0] in flags else [])
    texts = [*texts, *(f"{use.name} {own}" for own in arguments.value(table.get("own_flags", ())))]
    if table.get("texts"):
        texts = [*texts, *command]
    if not command and not texts and table.get("stdin") and use.stdin.text is not None:
        texts = [use.stdin.text]
    if texts:
        for text in texts:
            use.read_inner(text, stdin=use.stdin)
        return True, None
    return _run_wrapped(table, command, msgspec.structs.replace(use, words=rest))


def _behind(program: Program, sub: Sequence[str], words: list[str]) -> list[str]:
    """Return a wrapper's words from the last one of its subcommand on, if they have it."""
    if sub[0] not in words and sub[0] != "*":
        return []
    for place, part in enumerate(sub):
        words = program.split(words[1:] if place else words, stop=True).rest
        if not words or (words[0] != part and part != "*"):
            return []
    return words


def _write_log(table: Mapping[str, Any], use: Use, arguments: Arguments) -> None:
    logs = arguments.value(table.get("output", ()))
    if table.get("log"):
        logs = [*logs, *arguments.rest[:1]]
    for path in logs:
        use.session.write(path, use.name, cap=None if is_plain(path) else "file_write_other")
    own = use.words[: len(use.words) - len(arguments.rest)]
    for flag, path in command_table().outputs(use.name, own):
        if flag not in table.get("values", ()):
            use.session.write(path, use.name, cap="unknown")


def _run_wrapped(table: Mapping[str, Any], command: list[str], use: Use) -> _Done:
    if command and (table.get("shell") or (table.get("typed") and " " in command[0])):
        return True, use.read_inner(" ".join(command), stdin=use.stdin)
    if table.get("typed") == "only":
        return False, None
    name = command_table().name_of(command[0]) if command else ""
    # `.` is a package for `go run`, and a command of a shell.
    known = name != "." and _is_program(name)
    if table.get("known") and not known:
        return False, None
    if not known:
        # A flag may have been taken for one with a value, or the other way round.
        _hand_on(use)
    if command:
        return True, use.run_inner(command, use.stdin)
    if (empty := table.get("empty")) is not None:
        use.session.add(empty, use.name, f"{use.name} without a command")
    return empty is not None, None


def _wrapped(table: Mapping[str, Any], rest: list[str], arguments: Arguments) -> list[str]:
    command = arguments.rest[table.get("skip", 0) :]
    if entry := arguments.value(table.get("entry", ())):
        command = [*entry[:1], *command]
    if table.get("dashdash"):
        command = rest[rest.index("--") + 1 :] if "--" in rest else []
    if table.get("reference"):
        # A package and its arguments: `nixpkgs#gnused -- -i …`.
        places = ["", *command[:1]][-1].rpartition(table["reference"])
        command = [places[2] if places[0] in table["packages"] else "", *command[1:]]
        command = [word for place, word in enumerate(command) if place != 1 or word != "--"]
    if table.get("inner_dashes") and "--" in command:
        command.remove("--")
    starts = [rest.index(flag) + 1 for flag in table.get("command_flags", ()) if flag in rest]
    if starts:
        command = rest[min(starts) :]
    if command == ["-"] and "dash" in table:
        return [table["dash"], "-"]
    while command and (command[0] in {"--", "-"} or _ASSIGNMENT.match(command[0])):
        command = command[1:]
    return command


def _hand_on(use: Use) -> None:
    """Run what looks like a command among the words of a program that is not known to run one.

    A shell, an interpreter or a wrapper with its arguments is a command: alone (`rlwrap sed -i …`)
    or in one word (`nodemon --exec 'sed -i …'`). Behind `--` and a flag such as `--exec` any
    program is one. What is left of the use is still unknown.
    """
    table = command_table()
    if use.name in table.words["prompted_programs"]:
        return
    flag = ""
    for place, word in enumerate(use.words[:_HANDED]):
        key, equals, value = word.partition("=")
        text = value if equals and key.startswith("-") else word
        flag = key if equals else flag
        first, blank, _ = text.strip().partition(" ")
        name = table.name_of(first)
        any_program = flag in table.words["command_flags"] or (not blank and flag == "--")
        if name in table.words["inner_programs"] or (any_program and _is_program(name)):
            if blank:
                use.read_inner(text, stdin=use.stdin)
            elif not equals:
                use.run_inner(use.words[place:], use.stdin)
                return
        flag = word if word.startswith("-") else ""


def _is_program(name: str) -> bool:
    return command_table().knows(name) or name in BUILTINS


def _run_interpreter(program: Program, use: Use) -> _Done:
    table = program.table
    arguments = program.split(use.words, stop=table.get("stop", True))
    if _apply_first(program, use, arguments):
        return True, None
    if modules := arguments.value(table.get("module", ())):
        return True, _run_module(modules[0], use)
    operands, first = arguments.operands, table.get("code_operand")
    file_flags = table.get("file", ())
    code = arguments.value(table.get("code", ()))
    if not code and first is not None and not arguments.has(file_flags):
        code = operands[first : first + 1]
    code = [*code, *_operand_code(table, operands)]
    if table.get("only_code") and not code:
        given = use.stdin.text
        if given is None or (operands and operands[-1] not in STANDARD_INPUT):
            return False, None
        return True, _read_code(table, given, use)
    output = None
    for text in code:
        output = _read_code(table, text, use, operands, use.stdin)
    for path in arguments.value(file_flags):
        _run_file(path, table, use, table.get("file_label", "unknown"))
    if code or arguments.has(file_flags):
        _add_rest(table, use)
        return True, output
    if (
        operands
        and operands[0] not in STANDARD_INPUT
        and first is None
        and "-s" not in arguments.flags
    ):
        if _is_listed_script(operands[0]) and use.session.content(operands[0]) is None:
            return True, use.run(operands, use.session, use.stdin)
        _run_file(operands[0], table, use, "unknown")
        return True, None
    if use.stdin.text is not None:
        output = _read_code(table, use.stdin.text, use)
        _add_rest(table, use)
        return True, output
    label = table.get("empty", "unknown")
    if use.stdin.connected:
        label = "unknown" if use.stdin.file is None else table.get("file_label", label)
    use.session.add(label, use.name, f"what {use.name} is given cannot be seen")
    return True, None


def _add_rest(table: Mapping[str, Any], use: Use) -> None:
    if label := table.get("rest_label"):
        use.session.add(label, use.name, f"what else {use.name} does cannot be seen")


def _operand_code(table: Mapping[str, Any], operands: Sequence[str]) -> list[str]:
    """Return the operand that is code: ``deno eval CODE``, ``bb '(code)'``."""
    if operands and operands[0] in table.get("code_after", ()):
        return [word for word in operands[1:] if not word.startswith("-")][:1]
    if mark := table.get("code_mark"):
        return [word.removeprefix(mark) for word in operands if word.startswith(mark)]
    glob = table.get("code_glob")
    return [operands[0]] if glob and operands and fnmatch.fnmatchcase(operands[0], glob) else []


def _read_code(
    table: Mapping[str, Any],
    text: str,
    use: Use,
    operands: Sequence[str] = (),
    stdin: Input = NO_INPUT,
) -> str | None:
    inner = use.session.inner(use.name)
    if table["language"] == "bash":
        inner.variables.update((str(place), word) for place, word in enumerate(operands))
    return inner.read(text, table["language"], stdin)


def _run_file(path: str, table: Mapping[str, Any], use: Use, label: str) -> None:
    content = use.stdin.text if path in STANDARD_INPUT else use.session.content(path)
    if content is not None:
        _read_code(table, content, use)
    elif not _only_checks(posixpath.basename(path).rsplit(".", 1)[0]):
        use.session.add(label, f"{use.name} {path}", f"what {path} does cannot be seen")


def _run_module(module: str, use: Use) -> str | None:
    """Run ``python -m module`` as the program of that name."""
    table, rest = command_table(), use.words
    if module in table.words["reading_modules"]:
        return None
    program = module if table.knows(module) else module.replace("_", "-")
    if table.knows(program):
        place = next((n for n, word in enumerate(rest) if module in word), len(rest) - 1)
        return use.run([program, *rest[place + 1 :]], use.session, use.stdin)
    use.session.add("unknown", f"{use.name} -m {module}", f"what {module} does cannot be seen")
    return None


def _only_checks(stem: str) -> bool:
    """Return whether the name of a script says that it only checks something."""
    stem = stem.casefold()
    names = command_table().words["reading_scripts"]
    return stem in names or not names.isdisjoint(re.split(r"[-_.]", stem))


def _is_of_windows(name: str) -> bool:
    """Return whether a name with ``.exe`` is a program that the table of cmd.exe has."""
    stem, suffix, _ = name.casefold().partition(".exe")
    table = load_table("cmd")
    return bool(suffix) and any(
        stem in table[key] for key in ("read_only", "file_write_other", "unknown", "writes")
    )


def _run_unlisted(path: str, use: Use) -> None:
    name, session = use.name, use.session
    if _is_of_windows(name):
        words = [f'"{word}"' if " " in word else word for word in use.words]
        use.read_inner(" ".join([name, *words]), "cmd")
        return
    if _SCRIPT_NAME.search(path):
        content = session.content(path)
        if content is not None:
            session.inner().read(content, "bash")
            return
        if _only_checks(re.sub(r"\.\w+$", "", name)):
            return
        _hand_on(use)
    elif (
        not command_table()
        .words["fixing_flags"]
        .isdisjoint(word.split("=")[0] for word in use.words)
    ):
        session.edit(name, f"{name} has a flag that writes", named=use.operands())
        return
    else:
        _hand_on(use)
    told = f"what {name} does cannot be seen"
    for flag, _path in command_table().outputs(name, use.words):
        told = f"{name} is not in the table, and {flag} seems to name an output"
    session.add("unknown", name, told)
