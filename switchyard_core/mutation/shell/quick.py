"""Knows most reading commands by one look, and tells dialects apart by another.

Parsing a command takes fifty times as long as matching it, and most commands of an agent read.
Both looks run in linear time and only ever send a command on to the parser and the full tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from switchyard_core.mutation.shell.special import SPECIAL
from switchyard_core.mutation.shell.table import command_table
from switchyard_core.mutation.tables import load_table
from switchyard_core.patterns import pattern_set

__all__ = ["may_be_windows", "only_reads"]

_Look = Callable[[str | bytes], Sequence[int] | None]

#: Longer commands are parsed: they may nest or repeat beyond the parser's bounds.
_MAX_LENGTH = 512
_PIECE = r"""(?:[\w./:=@%+,*?~^-]|"[^"$`\\\n]*"|'[^'\n]*')"""
#: A word that begins with no dash, quoted or not.
_FIRST = r"""(?:[\w./:=@%+,*?~^]|"[^"$`\\\n-][^"$`\\\n]*"|'[^'\n-][^'\n]*')"""
#: A word with a variable, for programs that read whatever their words are.
_NAME = r"[A-Za-z_]\w*"
_VARIABLE = (
    rf"""(?:\${_NAME}|"(?:[^"$`\\\n]|\${_NAME}[^\w"$`\\\n\[]|\$\{{{_NAME}\}})*(?:\${_NAME})?")"""
)
#: What a loop goes through: no word of letters alone, which may be a keyword.
_VALUE = rf"(?:{_PIECE}*[./*0-9]{_PIECE}*)"
_LOOP_NAME = "(?:[A-Za-z]|file|dir|path|name|line|pkg|repo|branch|test|module|commit|word|item)"
_QUIET = r"(?: (?:2>&1|[12]?> ?/dev/null))*"
_JOIN = r" *(?:\|\|?|&&|;) *"
#: What other shells show, and the characters that patterns here and there treat differently.
_TELLING = (
    r"powershell|pwsh|\$env:|\[(?:System\.)?IO\.\w+\]::|\[\w+\]::|\$PSVersionTable|foreach\s*\(",
    r"^\s*\$\w+\s*=",
    r"^\s*(?:\S*[\\/])?cmd(?:\.exe)?\s",
    r"[12]?>\s*nul\b|%[A-Za-z_]\w*%",
    r"(?:^|[&|(])\s*@?(?:rem|call|::|if|for)",
    r"\bfor\s",
    r"""\^(?:'[^']*'|"[^"]*")*[<>&|]""",
    r"(?:^|[\s>\"])(?:[A-Za-z]:\\|\.{0,2}\\?[\w.%-]+\\[\w.*%-])",
    r"\s/[a-zA-Z?](?:[\s:]|$)",
    r"[\x00-\x08\x0b-\x1f]",
)


def only_reads(command: str) -> bool:
    """Tell whether a bash command is one of those that certainly change nothing.

    ``False`` says nothing: such a command has to be parsed.
    """
    if len(command) > _MAX_LENGTH or not command.isascii():
        return False
    # The engine works on bytes, and would take longer to make them.
    return bool(_reads()(command.encode()))


def may_be_windows(text: str) -> bool:
    """Tell whether a text may be for PowerShell or cmd; ``False`` is certain."""
    if not text.isascii():
        return True
    return _tells(text) if len(text) <= _MAX_LENGTH else bool(_telling()(text))


# A command that is no plain read is looked at again on its way to the parser.
@lru_cache(maxsize=64)
def _tells(text: str) -> bool:
    return bool(_telling()(text))


@cache
def _reads() -> _Look:
    data = load_table("reads")
    table = command_table()
    never = {*data["never"], *SPECIAL, *table.programs}
    names = [n for n, label in table.simple.items() if label == "read_only" and n not in never]
    programs = "|".join(re.escape(name) for name in sorted({*names, *data["always"]}))
    anything = rf"(?:{programs})(?: +(?:{_PIECE}+|{_VARIABLE}))*"
    uses = [anything]
    for use in data["use"]:
        words = use["words"].replace("{operand}", f"{_FIRST}{_PIECE}*")
        words = words.replace("{word}", f"{_PIECE}+")
        uses.append(rf"(?:{'|'.join(use['programs'])}){words}")
    command = rf"(?:{'|'.join(uses)}){_QUIET}"
    body = rf"{anything}{_QUIET}(?:{_JOIN}{anything}{_QUIET})*"
    return pattern_set(
        (
            rf"{command}(?:{_JOIN}{command})*",
            rf"for {_LOOP_NAME} in(?: {_VALUE})+; do {body}; done",
        ),
        whole=True,
    )


@cache
def _telling() -> _Look:
    powershell, cmd = load_table("powershell"), load_table("cmd")
    verbs = {verb for listed in powershell["verbs"].values() for verb in listed}
    verbs |= {name.split("-")[0] for name in powershell["cmdlets"] if "-" in name}
    patterns = (
        *_TELLING,
        rf"(?:^|[|;&{{(=\n])[ \t]*(?:{'|'.join(sorted(verbs))})-[A-Z]",
        rf"(?:^|[|;{{(\n])[ \t]*(?:{'|'.join(powershell['keywords']['telling'])})(?:[\s)]|$)",
        rf"(?:^|[&|(])\s*@?(?:{'|'.join(map(re.escape, cmd['detect']['words']))})(?:[^a-z.]|$)",
    )
    return pattern_set((f"(?m:{pattern})" for pattern in patterns), ignore_case=True)
