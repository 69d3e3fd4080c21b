"""Reads JavaScript by its syntax tree: its calls, their literal arguments, and what they write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import tree_sitter

from switchyard_core.mutation.shell.parsing import parse
from switchyard_core.mutation.shell.programs import run_program
from switchyard_core.mutation.shell.session import Budget, Input, Session
from switchyard_core.mutation.tables import load_table

__all__ = ["UNREADABLE", "JavaScriptCall", "calls_of", "read_javascript", "scan_javascript"]

_Node = tree_sitter.Node

#: An unknown value.
UNREADABLE = object()
#: Characters that are kept of an owner, and of a joined text.
_MAX_OWNER = 200
_MAX_VALUE = 64 * 1024
#: Maximum depth of expressions.
_MAX_NESTING = 40
#: Steps for a script, and for a call.
_CODE = 15
_CALL = 4
#: Latest parts of a template that are measured.
_MAX_PARTS = 20
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0"}


class JavaScriptCall(NamedTuple):
    """One call in a script."""

    owner: str  # text in front of the last dot, ``""`` without one
    name: str  # last part of what is called, ``""`` when it is computed
    arguments: tuple[Any, ...]  # values of literal arguments, :data:`UNREADABLE` for others


def read_javascript(text: str, session: Session, _stdin: Input) -> None:
    """Record what JavaScript (or TypeScript without much typing) writes."""
    session.spend(_CODE)
    scan_javascript(text, session)


def scan_javascript(text: str, session: Session) -> None:
    """Record what the calls of a script write."""
    table = load_table("languages")["javascript"]
    # Most scripts only read: without the name of a call that writes there is nothing to parse.
    if not any(name in text for key in ("functions", "commands") for name in table[key]):
        return
    for owner, name, arguments in calls_of(text, session.budget):
        if (entry := table["functions"].get(name)) is not None:
            if entry.get("files_only") and not any(part in owner for part in table["owners"]):
                continue
            for place in entry["paths"]:
                value = arguments[place] if place < len(arguments) else None
                path = value if isinstance(value, str) else ""
                session.write(path, session.word, cap=entry.get("cap"))
        elif name in table["commands"] and (
            not owner or any(part in owner for part in table["runners"])
        ):
            _run_command(arguments, session)
    session.spend(0)


def _run_command(arguments: tuple[Any, ...], session: Session) -> None:
    first, second = (*arguments, None, None)[:2]
    if not isinstance(first, str) or not first:
        session.add("unknown", session.word, "runs a command that cannot be seen")
    elif isinstance(second, list):
        words = [first, *(item if isinstance(item, str) else "{}" for item in second)]
        run_program(words, session.inner())
    else:
        session.inner().read(first, "bash")


def calls_of(text: str, budget: Budget) -> Iterator[JavaScriptCall]:
    """Yield every call of a script outside strings and comments, in order.

    The budget is spent when not all of the script was read.
    """
    data = text.encode("utf-8", "replace")
    parsed = parse("javascript", data, budget)
    yield from _Script(data).calls(parsed.tree.root_node, budget)
    if not parsed.whole:
        budget.left = -1


class _Script:
    """Reads the nodes of one script; the text of a node is a copy of its bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        #: Literal values of variables.
        self.values: dict[str, Any] = {}

    def calls(self, root: _Node, budget: Budget) -> Iterator[JavaScriptCall]:
        stack = [root]
        while stack and budget.spend():
            node = stack.pop()
            if node.type == "variable_declarator":
                name, value = _fields(node, "name", "value")
                if name is not None and value is not None and name.type == "identifier":
                    literal = self.value(value)
                    if literal is not UNREADABLE:
                        self.values[self.text(name)] = literal
            elif node.type in {"call_expression", "new_expression"}:
                budget.spend(_CALL)
                yield self._call(node)
            stack.extend(reversed(node.named_children))

    def _call(self, node: _Node) -> JavaScriptCall:
        function, constructor, arguments = _fields(node, "function", "constructor", "arguments")
        owner, name = self._callee(function or constructor)
        given: list[_Node] = []
        if arguments is not None:
            given = [arguments] if arguments.type == "template_string" else _children(arguments)
        return JavaScriptCall(owner, name, tuple(self.value(child) for child in given))

    def _callee(self, node: _Node | None) -> tuple[str, str]:
        if node is not None and node.type == "identifier":
            return "", self.text(node)
        if node is None or node.type not in {"member_expression", "subscript_expression"}:
            return "", ""
        base, last, index = _fields(node, "object", "property", "index")
        name = self.text(last) if last is not None else ""
        if index is not None:
            literal = self.value(index)
            name = literal if isinstance(literal, str) else ""
        return self.text(base, _MAX_OWNER) if base is not None else "", name

    def value(self, node: _Node, depth: int = 0) -> Any:
        """Return the value of a literal expression."""
        read = _VALUES.get(node.type)
        return UNREADABLE if read is None or depth > _MAX_NESTING else read(self, node, depth + 1)

    def variable(self, node: _Node, _depth: int = 0) -> Any:
        return self.values.get(self.text(node), UNREADABLE)

    def inner(self, node: _Node, depth: int) -> Any:
        return self.value(node.named_children[0], depth) if node.named_children else UNREADABLE

    def joined_call(self, node: _Node, depth: int) -> Any:
        """Return the text of ``["a", "b"].join("")`` and of ``path.join("a", "b")``."""
        function, given = _fields(node, "function", "arguments")
        if function is None or given is None or function.type != "member_expression":
            return UNREADABLE
        base, last = _fields(function, "object", "property")
        if base is None or last is None or self.text(last) not in {"join", "resolve", "raw"}:
            return UNREADABLE
        parts = [self.value(child, depth) for child in given.named_children]
        items = self.value(base, depth)
        if isinstance(items, list) and all(isinstance(item, str) for item in items):
            return (parts[0] if parts and isinstance(parts[0], str) else ",").join(items)
        if self.text(base) == "path" and parts:
            return "/".join(part if isinstance(part, str) else "{}" for part in parts)
        return UNREADABLE

    def members(self, node: _Node, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for child in node.named_children:
            if child.type == "pair":
                key, value = _fields(child, "key", "value")
                if key is not None and value is not None:
                    name = self.text(key)
                    name = name[1:-1] if key.type == "string" else name
                    result[name] = self.value(value, depth)
            elif child.type == "shorthand_property_identifier":
                result[self.text(child)] = self.variable(child)
        return result

    def sum(self, node: _Node, depth: int) -> Any:
        sides = _fields(node, "left", "right")
        if None in sides or not any(child.type == "+" for child in node.children):
            return UNREADABLE
        values = [self.value(side, depth) for side in sides if side is not None]
        if not any(isinstance(value, str) for value in values):
            return UNREADABLE
        return "".join(v if isinstance(v, str) else "{}" for v in values)[:_MAX_VALUE]

    def template(self, node: _Node, depth: int) -> str:
        source, start, position = self.data[node.start_byte : node.end_byte], node.start_byte, 1
        parts: list[str] = []
        for child in node.named_children:
            if child.type != "template_substitution":
                continue
            text = source[position : child.start_byte - start]
            parts.append(_unescaped(text.decode("utf-8", "replace")))
            inner = self.inner(child, depth)
            # Inserting a long text repeatedly would fill the memory.
            room = sum(map(len, parts[-_MAX_PARTS:])) < _MAX_VALUE
            parts.append(inner if isinstance(inner, str) and room else "{}")
            position = child.end_byte - start
        parts.append(_unescaped(source[position:-1].decode("utf-8", "replace")))
        return "".join(parts)

    def text(self, node: _Node, limit: int | None = None) -> str:
        """Return the text of a node, or its first bytes."""
        end = node.end_byte if limit is None else min(node.end_byte, node.start_byte + limit)
        return self.data[node.start_byte : end].decode("utf-8", "replace")


_Value: TypeAlias = Callable[[_Script, _Node, int], Any]
#: Values of literal expressions, by type.
_VALUES: dict[str, _Value] = {
    "string": lambda script, node, _: _unescaped(script.text(node)[1:-1]),
    "template_string": _Script.template,
    "identifier": _Script.variable,
    "true": lambda *_: True,
    "false": lambda *_: False,
    "null": lambda *_: None,
    "number": lambda script, node, _: script.text(node),
    "array": lambda script, node, depth: [script.value(n, depth) for n in _children(node)],
    "object": _Script.members,
    "parenthesized_expression": _Script.inner,
    "await_expression": _Script.inner,
    "binary_expression": _Script.sum,
    "call_expression": _Script.joined_call,
}


def _fields(node: _Node, *names: str) -> list[_Node | None]:
    return [node.child_by_field_name(name) for name in names]


def _children(node: _Node) -> list[_Node]:
    return [child for child in node.named_children if child.type != "comment"]


def _unescaped(text: str) -> str:
    text = re.sub(r"\\u\{?([0-9A-Fa-f]{4,6})\}?", lambda m: chr(min(int(m[1], 16), 0x10FFFF)), text)
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text, flags=re.DOTALL)
