"""Shell builtins and the programs whose words are a language of their own."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from switchyard_core.mutation.patch import patched_files
from switchyard_core.mutation.shell.arguments import split_arguments
from switchyard_core.mutation.shell.session import NO_INPUT, Input, Session

__all__ = ["SPECIAL", "Run", "run_text"]

#: Runs a program inside another one.
Run: TypeAlias = Callable[[Sequence[str], Session, Input], str | None]
_Special: TypeAlias = Callable[[list[str], Session, Input, Run], str | None]

#: Stands for a temporary file; nothing is opened there.
SCRATCH = "$TMPDIR/mktemp"
_XARGS_VALUED = frozenset(
    {
        "-I",
        "-n",
        "-P",
        "-d",
        "-L",
        "-s",
        "-E",
        "-a",
        "--max-args",
        "--max-procs",
        "--delimiter",
        "--replace",
        "--arg-file",
    }
)
_FIND_TESTS = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename"})


def run_text(text: str, session: Session, stdin: Input = NO_INPUT) -> str | None:
    """Record the effects of a bash script inside another command."""
    # The walker runs programs, which run scripts: one of the two imports has to wait.
    from switchyard_core.mutation.shell.bash import run_bash  # noqa: PLC0415

    return run_bash(text, session, stdin)


def _cd(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    del stdin, run
    operands = [word for word in words if not word.startswith("-") or word == "-"]
    session.enter(operands[0] if operands else "~")
    return None


def _popd(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    del words, stdin, run
    session.enter("")
    return None


def _echo(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    del session, stdin, run
    while words and re.fullmatch(r"-[neE]+", words[0]):
        words = words[1:]
    return " ".join(words) + "\n"


def _printf(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    del stdin, run
    if words[:1] == ["-v"]:
        session.variables[words[1] if len(words) > 1 else "_"] = " ".join(words[3:])
        return ""
    if not words:
        return ""
    template = words[0].replace("\\n", "\n").replace("\\t", "\t")
    values = iter(words[1:])
    text = re.sub(r"%[-+ #0-9.]*[sdbqifxc]", lambda _m: next(values, ""), template)
    return text + "".join(f" {value}" for value in values)


def _cat(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    del run
    files = [word for word in words if not word.startswith("-")]
    if not files:
        return stdin.text
    known = [session.files.get(session.resolve(file)) for file in files]
    if any(text is None for text in known):
        return None
    found = [text for text in known if text]
    return "".join(found) if session.budget.take(sum(map(len, found))) else None


def _mktemp(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    del stdin, run
    arguments = split_arguments(words, valued={"-p", "--tmpdir", "--suffix"})
    directory = next(iter(arguments.value({"-p", "--tmpdir"})), "")
    template = next(iter(arguments.operands), "")
    path = SCRATCH
    if template and (directory or not arguments.has({"-t", "--tmpdir"})):
        path = posixpath.join(directory, template)
    elif directory:
        path = posixpath.join(directory, "mktemp")
    if not arguments.has({"-u", "--dry-run"}):
        session.write(path, "mktemp", cap="file_write_other")
    return f"{path}\n"


def _trap(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    """Run what a shell does when it ends or gets a signal."""
    del stdin, run
    if len(words) > 1 and not words[0].startswith("-"):
        run_text(words[0], session.inner())
    return None


def _eval(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    del run
    return run_text(" ".join(words), session, stdin)


def _source(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    del stdin, run
    if not words:
        return None
    known = session.files.get(session.resolve(words[0]))
    if known is not None:
        return run_text(known, session.inner())
    if re.search(
        r"(?:^|/)(?:activate|\.?\w*(?:bashrc|zshrc|profile|nvm\.sh|cargo/env))(?:\.\w+)?$", words[0]
    ):
        # Activating an environment only sets variables.
        return None
    session.add("unknown", "source", f"what {words[0]} does cannot be seen")
    return None


def _pwd(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    del words, stdin, run
    return session.directory or "."


def _which(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    del session, stdin, run
    names = [word for word in words if not word.startswith("-")]
    return names[0] if len(names) == 1 else None


def _basename(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    del session, stdin, run
    return posixpath.basename(words[0]) if words else None


def _dirname(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    del session, stdin, run
    return posixpath.dirname(words[0]) or "." if words else None


def _xargs(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    arguments = split_arguments(words, valued=_XARGS_VALUED, attached={"-i", "-l"}, stop=True)
    command = arguments.rest
    if not command:
        return None
    names = (stdin.text or "").split()[:50] or ["{}"]
    marks = [*arguments.value({"-I", "--replace"}), "{}"]
    if any(mark in word for mark in marks for word in command):
        for name in names[:8]:
            filled = list(command)
            for mark in marks:
                filled = [word.replace(mark, name) for word in filled]
            run(filled, session.inner(), NO_INPUT)
        return None
    run([*command, *names], session.inner(), NO_INPUT)
    return None


def _parallel(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    valued = {"-j", "--jobs", "-N", "-n", "--colsep", "-a", "--joblog"}
    arguments = split_arguments(words, valued=valued, stop=True)
    command = arguments.rest
    marks = [word for word in command if word in {":::", "::::", ":::+"}]
    names = (stdin.text or "").split()[:50] or ["{}"]
    if marks:
        place = command.index(marks[0])
        command, names = command[:place], command[place + 1 :] or ["{}"]
    if len(command) == 1 and " " in command[0]:
        for name in names[:4]:
            text = command[0].replace("{}", name) if "{}" in command[0] else f"{command[0]} {name}"
            run_text(text, session.inner())
        return None
    return _xargs(command, session, Input(text=" ".join(names), connected=True), run)


def _find(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    """Run ``-exec`` and ``-delete`` of find; print what it finds as one pattern."""
    del stdin
    starts: list[str] = []
    for word in words:
        if word.startswith(("-", "(", "!")) and word not in {"-L", "-P", "-H"}:
            break
        if not word.startswith("-"):
            starts.append(word)
    names = [
        words[i + 1]
        for i, word in enumerate(words[:-1])
        if word in _FIND_TESTS and words[i - 1 : i] != ["!"] and words[i - 1 : i] != ["-not"]
    ]
    found = [
        name if "/" in name else posixpath.join(start, name)
        for start in starts or ["."]
        for name in (names or [""])
    ]
    for place, word in enumerate(words):
        if word == "-delete":
            for path in found:
                session.write(path, "find -delete")
        elif word in {"-fprint", "-fprintf", "-fls", "-fprint0"} and place + 1 < len(words):
            session.write(words[place + 1], "find")
        elif word in {"-exec", "-execdir", "-ok", "-okdir"}:
            command = _until_end(words[place + 1 :])
            for path in found[:8]:
                run([part.replace("{}", path) for part in command], session.inner(), NO_INPUT)
    return " ".join(found) + "\n" if names or starts else None


def _until_end(words: list[str]) -> list[str]:
    for place, word in enumerate(words):
        if word in {";", "+"}:
            return words[:place]
    return words


def _fd(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    """Run what fd is told to run by ``-x`` or ``-X``."""
    del stdin
    for flag in ("-x", "-X", "--exec", "--exec-batch"):
        if flag in words:
            command = words[words.index(flag) + 1 :]
            if not any("{" in word for word in command):
                command = [*command, "{}"]
            run(command, session.inner(), NO_INPUT)
    return None


def _busybox(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    return run(words, session, stdin) if words else None


def _powershell(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    from switchyard_core.mutation.shell.powershell import run_host  # noqa: PLC0415 - as above

    del stdin, run
    run_host(words, session)
    return None


def _cmd(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    from switchyard_core.mutation.shell.windows_cmd import run_inner  # noqa: PLC0415 - as above

    del stdin, run
    run_inner(words, session)
    return None


def _apply_patch(words: list[str], session: Session, stdin: Input, run: Run) -> str | None:
    del run
    text = " ".join(words) if words else stdin.text or ""
    for path in patched_files(text) or [""]:
        session.write(path, "apply_patch")
    return None


#: Programs by name that are not in the table.
SPECIAL: Mapping[str, _Special] = MappingProxyType(
    {
        "apply_patch": _apply_patch,
        "applypatch": _apply_patch,
        "apply-patch": _apply_patch,
        "cmd": _cmd,
        "powershell": _powershell,
        "pwsh": _powershell,
        "cd": _cd,
        "pushd": _cd,
        "popd": _popd,
        "echo": _echo,
        "printf": _printf,
        "cat": _cat,
        "mktemp": _mktemp,
        "trap": _trap,
        "eval": _eval,
        "source": _source,
        ".": _source,
        "pwd": _pwd,
        "which": _which,
        "basename": _basename,
        "dirname": _dirname,
        "xargs": _xargs,
        "gxargs": _xargs,
        "parallel": _parallel,
        "find": _find,
        "gfind": _find,
        "fd": _fd,
        "fdfind": _fd,
        "busybox": _busybox,
        "toybox": _busybox,
    }
)
