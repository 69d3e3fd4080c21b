"""How agents spell one tool: prefixes, separators and capitals fold to the same name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = [
    "NameFolding",
    "fold_name",
    "last_words",
    "name_words",
    "pattern_spellings",
    "snake_name",
]

_SEPARATORS = re.compile(r"[\s_\-.:/]+")
_HARD = re.compile(r"__|--|[.:/]")
_SINGLE = re.compile(r"[_-]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def fold_name(name: str) -> str:
    """Return the spelling under which ``writeFile``, ``write_file`` and ``write-file`` are one."""
    return _SEPARATORS.sub("", name).casefold()


def snake_name(name: str) -> str:
    """Return a name in lower case with underscores: ``cmsPublish`` is ``cms_publish``."""
    return _SEPARATORS.sub("_", _CAMEL.sub("_", name)).casefold()


def pattern_spellings(name: str) -> set[str]:
    """Return the spellings of a name that globs and expressions are tested on.

    `cms_*` is meant for `cmsPublish` and `cms-publish` too, as a whole name is.
    """
    return {name, snake_name(name)}


def name_words(name: str) -> frozenset[str]:
    """Return the words of a name with its prefixes."""
    return frozenset(snake_name(name).split("_"))


def last_words(name: str) -> list[str]:
    """Return the words of a name in order, without what is before a double separator."""
    return snake_name(_HARD.split(name)[-1]).split("_")


@dataclass(frozen=True, slots=True, kw_only=True)
class NameFolding:
    """Reads the bare tool name out of a prefixed one."""

    #: Prefixes that are known to be servers; after one of them any name is a tool.
    servers: frozenset[str]
    #: First words that make a name another tool rather than a prefixed one, such as ``preview`` in
    #: ``preview_edit_file``.
    verbs: frozenset[str]

    def candidates(self, name: str) -> Iterator[str]:
        """Yield the name, then the bare names that it may hold, the likeliest first.

        ``mcp__s__t``, ``mcp--s--t``, ``ext__t`` and ``functions.t`` are unambiguous; after a single
        separator only a known prefix or a name of two words or more counts.
        """
        yield name
        if hard := _HARD.split(name):
            if len(hard) > 1 and hard[-1]:
                yield hard[-1]
                yield from self._suffixes(hard[-1])
            # `mcp__s__a__t`: servers may themselves hold a double separator.
            for index in range(1, len(hard) - 1):
                yield "_".join(hard[index:])
        yield from self._suffixes(name)
        # Toolkits name a tool after its class: `NotebookEditTool`.
        if (bare := name[:-4].rstrip("_-")) and name[-4:].casefold() == "tool":
            yield from self.candidates(bare)

    def _suffixes(self, name: str) -> Iterator[str]:
        splits = list(_SINGLE.finditer(name))
        first = name[: splits[0].start()].casefold() if splits else ""
        mcp = first == "mcp"
        if first in self.verbs:
            return
        # `mcp_my-server_edit`: the server ends at the second separator of the first one's kind.
        like = [split.start() for split in splits if split[0] == splits[0][0]] if mcp else []
        for number, split in enumerate(splits):
            prefix, rest = name[: split.start()], name[split.end() :]
            if not rest or (mcp and number == 0):
                continue
            known = prefix.casefold() in self.servers or (
                split.start() in like[1:2] and _bare(prefix) not in self.verbs
            )
            words = len(_SINGLE.findall(rest)) + len(_CAMEL.findall(rest)) + 1
            last = re.split(r"[_-]", prefix)[-1].casefold()
            if known or (words > 1 and last not in self.verbs):
                yield rest


def _bare(prefix: str) -> str:
    return prefix[4:].casefold()
