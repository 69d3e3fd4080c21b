"""Uses of a program that need more than a label: tasks by name, code, requests by method."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from switchyard_core.mutation.shell import special
from switchyard_core.mutation.shell.arguments import Arguments
from switchyard_core.mutation.shell.code import scan_code
from switchyard_core.mutation.shell.session import Input, Session
from switchyard_core.mutation.shell.table import command_table

__all__ = ["USES", "Use"]

_UNSEEN = "what the script does cannot be seen"


class Use(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One use of a program that the table names.

    Args:
        name: The program.
        operands: Its operands behind the subcommand.
        arguments: All its words, taken apart.
        session: Gets the effects.
        stdin: What the program reads.
        run: Runs another program.
    """

    name: str
    operands: list[str]
    arguments: Arguments
    session: Session
    stdin: Input
    run: special.Run


def _run_script(use: Use) -> bool:
    """Judge named scripts, tasks or targets (``npm run lint``, ``make test``) by their words."""
    words = command_table().words
    targets = [word for word in use.operands if "=" not in word and not word.startswith("-")]
    if use.name in words["single_script"]:
        targets = targets[:1]
    if use.arguments.has(words["editing_flags"]) or set(use.operands) & words["editing_flags"]:
        use.session.add("file_edit", use.name, "with a flag that writes")
        return True
    if not targets:
        use.session.add("file_write_other", use.name, "builds")
        return True
    for target in targets:
        parts = [part for part in re.split(r"[:_./\-]+", _last_task(target).casefold()) if part]
        if not parts:
            continue
        if not words["unclear_tasks"].isdisjoint(parts):
            use.session.add("unknown", f"{use.name} {target}", _UNSEEN)
        elif parts[0] in words["reading_tasks"] or parts[-1] in words["reading_tasks"]:
            continue
        elif not words["building_tasks"].isdisjoint(parts):
            use.session.add("file_write_other", f"{use.name} {target}", "builds")
        else:
            use.session.add("unknown", f"{use.name} {target}", _UNSEEN)
    return True


def _last_task(target: str) -> str:
    """Return the task of a Gradle path such as ``:app:testDebug`` in words."""
    task = target.rsplit(":", maxsplit=1)[-1] if target.startswith(":") else target
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", task)


def _run_shell(use: Use) -> bool:
    if use.operands:
        special.run_text(" ".join(use.operands), use.session.inner(), use.stdin)
    return bool(use.operands)


def _run_inner(use: Use) -> bool:
    """Run the program that a runner is given with all its words, when the table knows it."""
    table = command_table()
    if not use.operands or not table.knows(table.name_of(use.operands[0])):
        return False
    use.run(use.operands, use.session.inner(), use.stdin)
    return True


def _run_elisp(use: Use) -> bool:
    for text in use.arguments.value({"--eval", "-eval"}):
        scan_code("elisp", text, use.session, use.name)
    if use.arguments.has({"-l", "--load", "--script"}):
        use.session.add("unknown", use.name, _UNSEEN)
    return True


def _run_sed(use: Use) -> bool:
    scripts = use.arguments.value({"-e", "--expression"}) or use.operands[:1]
    for text in scripts:
        scan_code("sed", text, use.session, use.name)
    return True


def _run_method(use: Use) -> bool:
    """Judge an HTTP request by its method."""
    if not {"GET", "HEAD"} & {
        v.upper() for v in use.arguments.value({"-X", "--method", "--request"})
    }:
        use.session.add("file_write_other", use.name, "sends a request that changes something")
    return True


def _run_values(use: Use) -> bool:
    targets = use.arguments.value({"--target", "-t", "--targets"})
    names = [target for value in targets for target in value.split(",")]
    for target in names or use.operands:
        _run_script(msgspec.structs.replace(use, operands=[target]))
    return True


def _run_python(use: Use) -> bool:
    """Run code in a project's shell, such as ``manage.py shell -c``."""
    code = use.arguments.value({"-c", "--command"})
    if not code and use.stdin.text is not None:
        code = [use.stdin.text]
    for text in code:
        scan_code("python", text, use.session.inner(), use.name)
    if not code:
        use.session.add("unknown", use.name, f"what {use.name} is given cannot be seen")
    return True


def _run_javascript(use: Use) -> bool:
    """Run the code that ``bun -e`` or ``deno eval`` is given."""
    code = use.arguments.value({"-e", "--eval", "-p", "--print"}) or use.operands[:1]
    for text in code:
        scan_code("javascript", text, use.session.inner(), use.name)
    return bool(code)


def _run_bare_name(use: Use) -> bool:
    """Judge a tool that builds when it is given nothing to do but tests when it is a test tool."""
    if use.name in command_table().words["bare_builders"]:
        use.session.add("file_write_other", use.name, "builds")
    elif use.name in command_table().words["bare_servers"]:
        use.session.add("unknown", use.name, "serves")
    return True


#: What ``run`` of a usage rule can name; each returns whether it decided.
USES: Mapping[str, Callable[[Use], bool]] = MappingProxyType(
    {
        "bare_name": _run_bare_name,
        "elisp": _run_elisp,
        "javascript": _run_javascript,
        "method": _run_method,
        "program": _run_inner,
        "python": _run_python,
        "script": _run_script,
        "sed": _run_sed,
        "shell": _run_shell,
        "values": _run_values,
    }
)
