"""Programs whose arguments are a language, and uses that need more than a label."""

from __future__ import annotations

import base64
import fnmatch
import posixpath
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from switchyard_core.mutation.patch import patched_files
from switchyard_core.mutation.shell.arguments import Arguments, split_arguments
from switchyard_core.mutation.shell.session import NO_INPUT, STANDARD_INPUT, Input, Session
from switchyard_core.mutation.shell.table import command_table

__all__ = ["BUILTINS", "NO_ARGUMENTS", "USES", "Run", "Use", "unquoted"]

#: Runs a program inside another one.
Run: TypeAlias = Callable[[Sequence[str], Session, Input], str | None]

#: A path to classify as a temporary file; it is not opened.
_SCRATCH = "$TMPDIR/mktemp"
_XARGS_VALUED = frozenset(
    {
        *("-I", "-n", "-P", "-d", "-L", "-s", "-E", "-a"),
        *("--max-args", "--max-procs", "--delimiter", "--replace", "--arg-file"),
    }
)
_PARALLEL_VALUED = frozenset(("-j", "--jobs", "-N", "-n", "--colsep", "-a", "--joblog"))
_FIND_TESTS = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename"})
#: Scripts that only set variables, such as those of environments.
_ACTIVATION = re.compile(
    r"(?:^|/)(?:activate|\.?\w*(?:bashrc|zshrc|profile|nvm\.sh|cargo/env))(?:\.\w+)?$"
)
#: Inputs that a program is run for, names that it gets at once, and jobs of GNU parallel.
_MOST_INPUTS = 8
_MOST_NAMES = 50
_MOST_JOBS = 4
#: Flags of powershell.exe that take a value, and those that are not abbreviations.
_POWERSHELL_VALUED = frozenset(
    {
        *("-executionpolicy", "-ep", "-version", "-windowstyle"),
        *("-outputformat", "-inputformat", "-workingdirectory"),
    }
)
_NOT_ENCODED = frozenset({"-ep", "-executionpolicy", "-ex", "-exec"})
_UNSEEN = "what the script does cannot be seen"


#: The arguments of a use that is not of the table.
NO_ARGUMENTS = Arguments()


class Use(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One use of a program."""

    name: str  # the program
    #: The words after its name, or after its subcommand in a use of the table.
    words: list[str]
    session: Session  # gets the effects
    stdin: Input  # what the program reads
    run: Run  # runs another program
    #: All its words, in a use of the table; else :data:`NO_ARGUMENTS`.
    arguments: Arguments

    def run_inner(self, words: Sequence[str], stdin: Input = NO_INPUT) -> str | None:
        """Run another program in its own shell."""
        return self.run(words, self.session.inner(), stdin)

    def read_inner(self, text: str, dialect: str = "bash", stdin: Input = NO_INPUT) -> str | None:
        """Read a script in its own shell or interpreter."""
        return self.session.inner(self.name).read(text, dialect, stdin)

    def operands(self) -> list[str]:
        """Return the words that are not flags."""
        return [word for word in self.words if not word.startswith("-")]


def _cd(use: Use) -> None:
    operands = [word for word in use.words if not word.startswith("-") or word == "-"]
    use.session.enter(operands[0] if operands else "~")


def _echo(use: Use) -> str:
    words, escapes = use.words, False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        escapes = escapes or "e" in words[0]
        words = words[1:]
    text = " ".join(words) + "\n"
    return text.replace("\\n", "\n").replace("\\t", "\t") if escapes else text


def _printf(use: Use) -> str:
    words = use.words
    if words[:1] == ["-v"]:
        use.session.variables[words[1] if len(words) > 1 else "_"] = " ".join(words[3:])
        return ""
    if not words:
        return ""
    template = words[0].replace("\\n", "\n").replace("\\t", "\t")
    values = iter(words[1:])
    text = re.sub(r"%[-+ #0-9.]*[sdbqifxc]", lambda _m: next(values, ""), template)
    return text + "".join(f" {value}" for value in values)


def _cat(use: Use) -> str | None:
    files = use.operands()
    if not files:
        return use.stdin.text
    found = [use.session.content(file) for file in files]
    if None in found:
        return None
    texts = [text for text in found if text]
    return "".join(texts) if use.session.budget.take(sum(map(len, texts))) else None


def _mktemp(use: Use) -> str:
    arguments = split_arguments(use.words, valued={"-p", "--tmpdir", "--suffix"})
    directory = next(iter(arguments.value({"-p", "--tmpdir"})), "")
    template = next(iter(arguments.operands), "")
    path = _SCRATCH
    if template and (directory or not arguments.has({"-t", "--tmpdir"})):
        path = posixpath.join(directory, template)
    elif directory:
        path = posixpath.join(directory, "mktemp")
    if not arguments.has({"-u", "--dry-run"}):
        use.session.write(path, "mktemp", cap="file_write_other")
    return f"{path}\n"


def _trap(use: Use) -> None:
    words = use.words[1:] if use.words[:1] == ["--"] else use.words
    if len(words) > 1 and not words[0].startswith("-"):
        use.read_inner(words[0])


def _alias(use: Use) -> None:
    for name, _, text in (word.partition("=") for word in use.operands()):
        if text:
            use.session.functions[name] = text


def _source(use: Use) -> str | None:
    if not use.words:
        return None
    path = use.words[0]
    content = use.stdin.text if path in STANDARD_INPUT else use.session.content(path)
    if content is not None:
        return use.read_inner(content)
    if not _ACTIVATION.search(path):
        use.session.add("unknown", "source", f"what {path} does cannot be seen")
    return None


def _which(use: Use) -> str | None:
    names = use.operands()
    return names[0] if len(names) == 1 else None


def _xargs(use: Use) -> None:
    arguments = split_arguments(use.words, valued=_XARGS_VALUED, attached={"-i", "-l"}, stop=True)
    command = arguments.rest
    if not command:
        return
    names = (use.stdin.text or "").split()[:_MOST_NAMES] or ["{}"]
    placeholders = [*arguments.value({"-I", "--replace"}), "{}"]
    if not any(placeholder in word for placeholder in placeholders for word in command):
        use.run_inner([*command, *names])
        return
    for name in names[:_MOST_INPUTS]:
        filled = command
        for placeholder in placeholders:
            filled = [word.replace(placeholder, name) for word in filled]
        use.run_inner(filled)


def _parallel(use: Use) -> None:
    command = split_arguments(use.words, valued=_PARALLEL_VALUED, stop=True).rest
    names = (use.stdin.text or "").split()[:_MOST_NAMES] or ["{}"]
    place = next((n for n, word in enumerate(command) if word in {":::", "::::", ":::+"}), None)
    if place is not None:
        command, names = command[:place], command[place + 1 :] or ["{}"]
    if not command:
        for name in names[:_MOST_JOBS]:
            use.read_inner(name)
        return
    if len(command) == 1 and " " in command[0]:
        for name in names[:_MOST_JOBS]:
            text = command[0].replace("{}", name) if "{}" in command[0] else f"{command[0]} {name}"
            use.read_inner(text)
        return
    stdin = Input(text=" ".join(names), connected=True)
    _xargs(msgspec.structs.replace(use, words=command, stdin=stdin))


def _find(use: Use) -> str | None:
    """Run ``-exec`` and ``-delete`` of find; its output is one pattern."""
    words, session = use.words, use.session
    starts: list[str] = []
    for word in words:
        if word.startswith(("-", "(", "!")) and word not in {"-L", "-P", "-H"}:
            break
        if not word.startswith("-"):
            starts.append(word)
    names = [
        name
        for before, test, name in zip(["", *words], words, words[1:], strict=False)
        if test in _FIND_TESTS and before not in {"!", "-not"}
    ]
    found = [
        name if "/" in name else posixpath.join(start, name)
        for start in starts or ["."]
        for name in names or [""]
    ]
    for place, word in enumerate(words):
        if word == "-delete":
            for path in found:
                session.write(path, "find -delete")
        elif word in {"-fprint", "-fprintf", "-fls", "-fprint0"} and place + 1 < len(words):
            session.write(words[place + 1], "find")
        elif word in {"-exec", "-execdir", "-ok", "-okdir"}:
            command = list(takewhile(lambda word: word not in {";", "+"}, words[place + 1 :]))
            for path in found[:_MOST_INPUTS]:
                use.run_inner([part.replace("{}", path) for part in command])
    return " ".join(found) + "\n" if names or starts else None


def _apply_patch(use: Use) -> None:
    text = " ".join(use.words) if use.words else use.stdin.text or ""
    for path in patched_files(text) or [""]:
        use.session.write(path, "apply_patch")


def unquoted(word: str) -> str:
    """Return a word without the quotes around it."""
    word = word.strip()
    if len(word) > 1 and word[0] in "'\"" and word[-1] == word[0]:
        return word[1:-1]
    return word


def _powershell(use: Use) -> None:
    """Read the arguments of ``powershell.exe``; a word without a flag begins the command, too."""
    words = [unquoted(word) for word in use.words]
    for place, word in enumerate(words):
        flag, rest = word.casefold(), words[place + 1 :]
        if flag in {"-command", "-c", "/c", "-commandwithargs"}:
            text = use.stdin.text if rest == ["-"] else " ".join(rest)
            use.read_inner(text or "", "powershell")
            return
        if flag in {"-file", "-f"}:
            use.session.add("unknown", "powershell -File", _UNSEEN)
            return
        if flag.startswith("-e") and flag not in _NOT_ENCODED and rest:
            try:
                text = base64.b64decode(rest[0], validate=True).decode("utf-16-le")
            except ValueError:
                use.session.add("unknown", "powershell -EncodedCommand")
            else:
                use.read_inner(text, "powershell")
            return
    place = 0
    while place < len(words) and words[place].startswith(("-", "/")):
        place += 2 if words[place].casefold() in _POWERSHELL_VALUED else 1
    if place < len(words):
        use.read_inner(" ".join(words[place:]), "powershell")
    elif use.stdin.text is not None:
        use.read_inner(use.stdin.text, "powershell")
    elif not any(word.startswith("-") for word in words):
        use.session.add("unknown", "powershell", "an interactive shell")


def _cmd(use: Use) -> None:
    for place, word in enumerate(use.words):
        # The shells of Git for Windows need a second slash.
        switch = word.replace("//", "/", 1) if word.startswith("//") else word
        if switch.casefold()[:2] in {"/c", "/k"}:
            text = " ".join([switch[2:], *use.words[place + 1 :]]).strip()
            use.read_inner(unquoted(text), "cmd")
            return
    use.session.add("unknown", "cmd", "an interactive shell")


#: Programs by name that are not in the table; each returns its output if it is known.
BUILTINS: Mapping[str, Callable[[Use], str | None]] = MappingProxyType(
    {
        **dict.fromkeys(("apply_patch", "applypatch", "apply-patch"), _apply_patch),
        "cmd": _cmd,
        **dict.fromkeys(("powershell", "pwsh"), _powershell),
        **dict.fromkeys(("cd", "pushd"), _cd),
        "popd": lambda use: use.session.enter(""),
        "echo": _echo,
        "printf": _printf,
        "cat": _cat,
        "mktemp": _mktemp,
        "trap": _trap,
        "alias": _alias,
        "eval": lambda use: use.session.read(" ".join(use.words), "bash", use.stdin),
        **dict.fromkeys(("source", "."), _source),
        "pwd": lambda use: use.session.directory or ".",
        "which": _which,
        "basename": lambda use: posixpath.basename(use.words[0]) if use.words else None,
        "dirname": lambda use: posixpath.dirname(use.words[0]) or "." if use.words else None,
        **dict.fromkeys(("xargs", "gxargs"), _xargs),
        "parallel": _parallel,
        **dict.fromkeys(("find", "gfind"), _find),
    }
)


def _use_script(use: Use) -> bool:
    """Label scripts, tasks or targets (``npm run lint``, ``make test``) by their words."""
    words = command_table().words
    if use.arguments.has(words["editing_flags"]) or set(use.words) & words["editing_flags"]:
        use.session.edit(use.name, "with a flag that writes", named=use.operands())
        return True
    targets = [word for word in use.operands() if "=" not in word]
    if use.name in words["single_script"]:
        targets = targets[:1]
    if not targets:
        use.session.add("file_write_other", use.name, "builds")
    for target in targets:
        parts = [part for part in re.split(r"[:_./\-]+", _last_task(target).casefold()) if part]
        if not parts:
            continue
        unclear = not words["unclear_tasks"].isdisjoint(parts)
        if not unclear and {parts[0], parts[-1]} & words["reading_tasks"]:
            continue
        if not unclear and not words["building_tasks"].isdisjoint(parts):
            use.session.add("file_write_other", f"{use.name} {target}", "builds")
        else:
            use.session.add("unknown", f"{use.name} {target}", _UNSEEN)
    return True


def _last_task(target: str) -> str:
    """Return the words of the last task of a Gradle path such as ``:app:testDebug``."""
    task = target.rsplit(":", maxsplit=1)[-1] if target.startswith(":") else target
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", task)


def _use_targets(use: Use) -> bool:
    named = use.arguments.value({"--target", "-t", "--targets"})
    for target in [target for value in named for target in value.split(",")] or use.words:
        _use_script(msgspec.structs.replace(use, words=[target]))
    return True


def _use_shell(use: Use) -> bool:
    if use.words:
        use.read_inner(" ".join(use.words), stdin=use.stdin)
    return bool(use.words)


def _use_settings(use: Use) -> bool:
    """Run the alias and the programs of git that the command itself sets."""
    operands = use.arguments.operands
    settings = command_table().words["command_settings"]
    for setting in use.arguments.value({"-c"}):
        name, _, text = setting.partition("=")
        if operands and name.casefold() == f"alias.{operands[0].casefold()}":
            given = " ".join(map(shlex.quote, operands[1:]))
            command = text[1:] if text.startswith("!") else f"{use.name} {text}"
            use.read_inner(f"{command} {given}", stdin=use.stdin)
            return True
        if any(fnmatch.fnmatchcase(name.casefold(), glob) for glob in settings):
            use.read_inner(text, stdin=use.stdin)
    return False


def _use_commands(use: Use) -> bool:
    """Run the command lines in the values of flags, each with a file or standard input."""
    for text in use.words:
        use.read_inner(f"{text} {{}}", stdin=use.stdin)
    return False


def _use_escapes(use: Use) -> bool:
    """Run the command lines that a pager runs when it starts: ``less '+!ls'``."""
    for word in use.words:
        if word.startswith("+!"):
            use.read_inner(word[2:], stdin=use.stdin)
    return False


def _use_program(use: Use) -> bool:
    """Run the program that a runner is given, when the table knows it."""
    table = command_table()
    if not use.words or not table.knows(table.name_of(use.words[0])):
        return False
    use.run_inner(use.words, use.stdin)
    return True


def _use_python(use: Use) -> bool:
    """Read code in a project's shell, such as ``manage.py shell -c``."""
    code = use.arguments.value({"-c", "--command"})
    if not code and use.stdin.text is not None:
        code = [use.stdin.text]
    for text in code:
        use.read_inner(text, "python")
    if not code:
        use.session.add("unknown", use.name, f"what {use.name} is given cannot be seen")
    return True


def _use_javascript(use: Use) -> bool:
    code = use.arguments.value({"-e", "--eval", "-p", "--print"}) or use.words[:1]
    for text in code:
        use.read_inner(text, "javascript")
    return bool(code)


def _use_method(use: Use) -> bool:
    methods = use.arguments.value({"-X", "--method", "--request"})
    if {"GET", "HEAD"}.isdisjoint(method.upper() for method in methods):
        use.session.add("file_write_other", use.name, "sends a request that changes something")
    return True


def _use_bare_name(use: Use) -> bool:
    """Label a tool without arguments: a build tool builds, a test tool tests."""
    words = command_table().words
    if use.name in words["bare_builders"]:
        use.session.add("file_write_other", use.name, "builds")
    elif use.name in words["bare_servers"]:
        use.session.add("unknown", use.name, "serves")
    return True


#: What ``run`` of a usage rule can name; each returns whether it decided.
USES: Mapping[str, Callable[[Use], bool]] = MappingProxyType(
    {
        "bare_name": _use_bare_name,
        "commands": _use_commands,
        "escapes": _use_escapes,
        "javascript": _use_javascript,
        "method": _use_method,
        "program": _use_program,
        "python": _use_python,
        "script": _use_script,
        "settings": _use_settings,
        "shell": _use_shell,
        "values": _use_targets,
    }
)
