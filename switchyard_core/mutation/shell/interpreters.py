"""Programs that run code: what their code writes, where the command shows it."""

from __future__ import annotations

import posixpath
import re

from switchyard_core.mutation.shell.arguments import Arguments, split_arguments
from switchyard_core.mutation.shell.code import scan_code
from switchyard_core.mutation.shell.session import Input, Session
from switchyard_core.mutation.shell.special import Run, run_text
from switchyard_core.mutation.shell.table import Program, command_table

__all__ = ["run_interpreter"]


def run_interpreter(
    program: Program, name: str, rest: list[str], session: Session, stdin: Input, run: Run
) -> tuple[bool, str | None]:
    """Record what an interpreter does.

    Args:
        program: Its entry in the table.
        name: The name that it was called by.
        rest: Its words.
        session: Gets the effects.
        stdin: What it reads when it is given no code.
        run: Runs a module as the program of its name.

    Returns:
        Whether this entry decided, and the output if it can be told.
    """
    table = program.table
    arguments = split_arguments(
        rest,
        valued=program.valued,
        attached=program.attached,
        long_single=program.long_single,
        stop=table.get("stop", True),
    )
    for rule in program.rules:
        if (operands := rule.applies(arguments)) is not None:
            if rule.writes:
                paths = arguments.value(rule.flags) if rule.writes == "value" else operands
                paths = paths[1:] if rule.writes == "rest" else paths
                for path in paths or [""]:
                    session.write(path, name, cap=rule.cap)
            else:
                session.add(rule.label, name)
            if table.get("decided", True):
                return True, None
    return _run_code(program, name, rest, arguments, session, stdin, run)


def _run_code(
    program: Program,
    name: str,
    rest: list[str],
    arguments: Arguments,
    session: Session,
    stdin: Input,
    run: Run,
) -> tuple[bool, str | None]:
    table, language = program.table, program.table["language"]
    if modules := arguments.value(table.get("module", ())):
        return True, _run_module(modules[0], name, rest, session, stdin, run)
    code = arguments.value(table.get("code", ()))
    operands = arguments.operands
    first = table.get("code_operand")
    if (
        not code
        and first is not None
        and len(operands) > first
        and not arguments.has(table.get("file", ()))
    ):
        code = operands[first : first + 1]
    if code:
        output = None
        for text in code:
            output = _scan(language, text, session, name, operands)
        return True, output
    if arguments.has(table.get("file", ())):
        for path in arguments.value(table.get("file", ())):
            _run_file(path, language, name, session, table.get("file_label", "unknown"))
        return True, None
    if operands and operands[0] != "-" and first is None and "-s" not in arguments.flags:
        script = posixpath.basename(operands[0])
        if script in command_table().words["local_programs"]:
            return True, run([script, *operands[1:]], session, stdin)
        _run_file(operands[0], language, name, session, "unknown")
        return True, None
    return True, _run_input(table, language, name, session, stdin)


def _run_input(
    table: object, language: str, name: str, session: Session, stdin: Input
) -> str | None:
    if stdin.text is not None:
        return _scan(language, stdin.text, session, name, [])
    empty = table.get("empty", "unknown") if isinstance(table, dict) else "unknown"
    if stdin.connected and stdin.file is not None and isinstance(table, dict):
        empty = table.get("file_label", empty)
    elif stdin.connected:
        empty = "unknown"
    session.add(empty, name, f"what {name} is given cannot be seen")
    return None


def _scan(language: str, text: str, session: Session, name: str, operands: list[str]) -> str | None:
    if language == "shell":
        inner = session.inner()
        for place, word in enumerate(operands):
            inner.variables[str(place)] = word
        return run_text(text, inner)
    scan_code(language, text, session.inner(), name)
    return None


def _run_file(path: str, language: str, name: str, session: Session, label: str) -> None:
    known = session.files.get(session.resolve(path))
    if known is not None:
        _scan(language, known, session, name, [])
        return
    words = command_table().words
    stem = posixpath.basename(path).rsplit(".", 1)[0].casefold()
    if ({stem} | set(re.split(r"[-_.]", stem))) & words["reading_scripts"]:
        return
    session.add(label, f"{name} {path}", f"what {path} does cannot be seen")


def _run_module(
    module: str, name: str, rest: list[str], session: Session, stdin: Input, run: Run
) -> str | None:
    """Run ``python -m module`` as the program of that name."""
    place = next((i for i, word in enumerate(rest) if module in word), len(rest) - 1)
    words = command_table().words
    program = module.replace("_", "-") if not command_table().knows(module) else module
    if module in words["reading_modules"]:
        return None
    if command_table().knows(program):
        return run([program, *rest[place + 1 :]], session, stdin)
    session.add("unknown", f"{name} -m {module}", f"what {module} does cannot be seen")
    return None
