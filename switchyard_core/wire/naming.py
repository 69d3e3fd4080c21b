"""Names and ids across wire formats: deterministic, and back again, without any memory.

A client sends every name and id back with its next request, so what one request made of them the
next one must make again: after a restart, and in another process, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING

from switchyard_core.wire.neutral import AskedTool, ToolName

if TYPE_CHECKING:
    from switchyard_core.wire.format import Format

__all__ = ["ToolNames", "flat_name", "hashed_id", "id_at_target", "id_for_caller", "told_apart"]

#: Between a namespace and a name where the format has no namespaces.
_BETWEEN = "__"
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
#: Beginning of the ids that stand for one with illegal characters, and what one of its bytes
#: becomes.
_CODED = "sy1"
_ESCAPE = re.compile(r"-([0-9a-f]{2})")
_TO_ESCAPE = re.compile(rb"[^a-zA-Z0-9_]")
_PREFIXES = ("call_", "toolu_")
_DIGITS = 8


def hashed_id(old: str) -> str:
    """Return the id that takes the place of one that a target refuses."""
    return "call_" + _digest(old, 12)


def id_for_caller(made: str, caller: Format) -> str:
    """Return a call's id of a provider in the style of the caller's format.

    Whatever has no illegal character keeps all but its prefix; any other id is coded, so that
    :func:`id_at_target` finds it again, or hashed where that would be too long.
    """
    prefix = caller.writer.call_prefix
    style = next(each for each in _PREFIXES if prefix.startswith(each))
    bare = made.removeprefix(next((each for each in _PREFIXES if made.startswith(each)), ""))
    if bare and not _ILLEGAL.search(bare):
        told = made if made.startswith(style) else style + bare
    else:
        told = f"{style}{_CODED}{_coded(made)}"
    return told if caller.legal_id.fullmatch(told) else style + _digest(made, 12)


def told_apart(made: str, number: int, caller: Format) -> str:
    """Return the id for the caller of a further call with the same id; ``number`` counts them."""
    style = next(each for each in _PREFIXES if caller.writer.call_prefix.startswith(each))
    return style + _digest(f"{made}\0{number}", 12)


def id_at_target(told: str, target: Format) -> str:
    """Return the id of a call, or of its result, as the target takes it; a legal one stays."""
    found = _decoded(told)
    if found and target.legal_id.fullmatch(found):
        return found
    return told if target.legal_id.fullmatch(told) else hashed_id(told)


def _decoded(told: str) -> str:
    style = next((each for each in _PREFIXES if told.startswith(each + _CODED)), None)
    if style is None:
        return ""
    coded = told.removeprefix(style + _CODED)
    if not coded.isascii():
        return ""
    plain = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), coded)
    try:
        found = plain.encode("latin-1").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return ""
    # A provider's own id may begin like this: only what comes back as itself was coded here.
    return found if _coded(found) == coded and _ILLEGAL.search(found) else ""


def _coded(made: str) -> str:
    """Return an id with no character but those that are legal everywhere."""
    raw = made.encode("utf-8", "surrogatepass")
    return _TO_ESCAPE.sub(lambda match: b"-%02x" % match[0][0], raw).decode()


def flat_name(tool: ToolName) -> str:
    """Return a tool's name with its namespace in it."""
    return tool.namespace + _BETWEEN + tool.name if tool.namespace else tool.name


class ToolNames:
    """Names of tools at a target, and back; both follow from the caller's request alone.

    Args:
        tools: The tools that the request offers.
        target: The format that they are written in.
    """

    def __init__(self, tools: Iterable[AskedTool], target: Format) -> None:
        self._target = target
        self._flat: dict[ToolName, str] = {}
        self._asked: dict[str, AskedTool] = {}
        for each in tools:
            if each.tool in self._flat:
                continue
            name = self._free(each.tool)
            self._flat[each.tool] = name.name
            self._asked[_key(name)] = each

    def at_target(self, tool: ToolName) -> ToolName:
        """Return the name of a tool, offered or not, as the target takes it."""
        known = self._flat.get(tool)
        if known is None:
            return self._named(tool)
        return ToolName(name=known, namespace=self._space(tool))

    def asked(self, name: str, namespace: str = "") -> AskedTool | None:
        """Return the caller's tool that the target's model calls by a name, ``None`` for none."""
        found = self._asked.get(_key(ToolName(name=name, namespace=namespace)))
        if found is None and not namespace:
            # Some models forget the namespace.
            named = [each for each in self._asked.values() if self._flat[each.tool] == name]
            found = named[0] if len(named) == 1 else None
        return found

    @property
    def changed(self) -> Mapping[ToolName, str]:
        """The tools whose name is another one at the target."""
        return {
            tool: name for tool, name in self._flat.items() if (tool.name, self._space(tool)) !=
            (name, tool.namespace)
        }  # fmt: skip

    def _space(self, tool: ToolName) -> str:
        return tool.namespace if self._target.has_namespaces else ""

    def _named(self, tool: ToolName) -> ToolName:
        space = self._space(tool)
        flat = tool.name if space else flat_name(tool)
        plain = _ILLEGAL.sub("_", flat) or "tool"
        longest = self._target.longest_name
        if plain != flat or len(plain) > longest:
            plain = f"{plain[: longest - _DIGITS - 1]}_{_digest(flat, _DIGITS // 2)}"
        return ToolName(name=plain, namespace=space)

    def _free(self, tool: ToolName) -> ToolName:
        """Return a name that no other tool of the request has."""
        name, number = self._named(tool), 0
        while _key(name) in self._asked:
            number += 1
            digest = _digest(f"{tool.namespace}\0{tool.name}\0{number}", _DIGITS // 2)
            longest = self._target.longest_name - _DIGITS - 1
            name = ToolName(name=f"{name.name[:longest]}_{digest}", namespace=name.namespace)
        return name


def _key(tool: ToolName) -> str:
    return f"{tool.namespace}\0{tool.name}"


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()
