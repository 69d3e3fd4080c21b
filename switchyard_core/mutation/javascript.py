"""Reads the calls and their literal arguments out of JavaScript."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import tree_sitter
import tree_sitter_javascript

from switchyard_core.mutation.budget import Budget
from switchyard_core.mutation.syntax import parse_code

__all__ = ["UNREADABLE", "Call", "calls_of"]

#: Stands for a value that only the running script knows.
UNREADABLE = object()

#: Characters that are kept of an owner, and of a text that is put together.
_MAX_OWNER = 200
_MAX_VALUE = 64 * 1024
#: Hundreds of operations that parsing a script may take, and the steps that such a hundred is.
_MOST_WORK = 120
_WORK = 6
#: Steps that it takes to read a call.
_CALL = 4
#: Latest parts of a template that are measured.
_MAX_PARTS = 20
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call in a script.

    Args:
        owner: Text in front of the last dot, ``""`` without one.
        name: Last part of what is called, ``""`` when it is computed.
        arguments: Values of literal arguments, :data:`UNREADABLE` for others.
    """

    owner: str
    name: str
    arguments: tuple[Any, ...]


@cache
def _language() -> tree_sitter.Language:
    return tree_sitter.Language(tree_sitter_javascript.language())


def calls_of(text: str, budget: Budget) -> Iterator[Call]:
    """Yield every call of a script outside strings and comments, in order.

    Args:
        text: The script; a broken one still yields its parts.
        budget: Pays for it; spent when not all of the script was read.
    """
    data = text.encode("utf-8", "replace")
    parsed = parse_code(_language(), data, min(_MOST_WORK, budget.left // _WORK))
    budget.spend(parsed.work * _WORK)
    yield from _Script(data).calls(parsed.tree.root_node, budget)
    if not parsed.whole:
        budget.left = -1


class _Script:
    """Reads the nodes of one script; a node's own text costs a copy of what it spans."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def calls(self, root: tree_sitter.Node, budget: Budget) -> Iterator[Call]:
        """Yield every call under a node."""
        values: dict[str, Any] = {}
        stack = [root]
        while stack and budget.spend():
            node = stack.pop()
            if node.type == "variable_declarator":
                name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
                if name is not None and value is not None and name.type == "identifier":
                    literal = self._value(value, values, 0)
                    if literal is not UNREADABLE:
                        values[self._text(name)] = literal
            elif node.type in {"call_expression", "new_expression"}:
                budget.spend(_CALL)
                yield self._call(node, values)
            stack.extend(reversed(node.named_children))

    def _call(self, node: tree_sitter.Node, values: dict[str, Any]) -> Call:
        function = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        arguments = node.child_by_field_name("arguments")
        owner, name = "", ""
        if function is not None and function.type == "identifier":
            name = self._text(function)
        elif function is not None and function.type == "member_expression":
            base, last = (
                function.child_by_field_name("object"),
                function.child_by_field_name("property"),
            )
            owner, name = (
                self._text(base, _MAX_OWNER) if base else "",
                self._text(last) if last else "",
            )
        elif function is not None and function.type == "subscript_expression":
            base, index = (
                function.child_by_field_name("object"),
                function.child_by_field_name("index"),
            )
            literal = self._value(index, values, 0) if index else UNREADABLE
            owner, name = (
                self._text(base, _MAX_OWNER) if base else "",
                literal if isinstance(literal, str) else "",
            )
        if arguments is None:
            return Call(owner=owner, name=name, arguments=())
        if arguments.type == "template_string":
            return Call(owner=owner, name=name, arguments=(self._value(arguments, values, 0),))
        given = [child for child in arguments.named_children if child.type != "comment"]
        return Call(
            owner=owner, name=name, arguments=tuple(self._value(c, values, 0) for c in given)
        )

    def _value(self, node: tree_sitter.Node, values: dict[str, Any], depth: int) -> Any:
        """Return what a literal expression stands for."""
        if depth > 40:
            return UNREADABLE
        kind = node.type
        if kind == "string":
            return _unescaped(self._text(node)[1:-1])
        if kind == "template_string":
            return self._template(node, values, depth)
        if kind == "identifier":
            return values.get(self._text(node), UNREADABLE)
        if kind in {"true", "false"}:
            return kind == "true"
        if kind == "null":
            return None
        if kind == "number":
            return self._text(node)
        if kind == "array":
            return [
                self._value(child, values, depth + 1)
                for child in node.named_children
                if child.type != "comment"
            ]
        if kind == "object":
            return self._object(node, values, depth)
        if kind in {"parenthesized_expression", "await_expression"} and node.named_children:
            return self._value(node.named_children[0], values, depth + 1)
        if kind == "binary_expression":
            return self._sum(node, values, depth)
        if kind == "call_expression":
            return self._joined_call(node, values, depth)
        return UNREADABLE

    def _joined_call(self, node: tree_sitter.Node, values: dict[str, Any], depth: int) -> Any:
        """Return the text of ``["a", "b"].join("")`` and of ``path.join("a", "b")``."""
        function, given = (
            node.child_by_field_name("function"),
            node.child_by_field_name("arguments"),
        )
        if function is None or given is None or function.type != "member_expression":
            return UNREADABLE
        base, last = (
            function.child_by_field_name("object"),
            function.child_by_field_name("property"),
        )
        if base is None or last is None or self._text(last) not in {"join", "resolve", "raw"}:
            return UNREADABLE
        parts = [self._value(child, values, depth + 1) for child in given.named_children]
        items = self._value(base, values, depth + 1)
        if isinstance(items, list) and all(isinstance(item, str) for item in items):
            return (parts[0] if parts and isinstance(parts[0], str) else ",").join(items)
        if self._text(base) == "path" and parts:
            return "/".join(part if isinstance(part, str) else "{}" for part in parts)
        return UNREADABLE

    def _object(self, node: tree_sitter.Node, values: dict[str, Any], depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for child in node.named_children:
            if child.type == "pair":
                key, value = child.child_by_field_name("key"), child.child_by_field_name("value")
                if key is not None and value is not None:
                    name = self._text(key)
                    name = name[1:-1] if key.type == "string" else name
                    result[name] = self._value(value, values, depth + 1)
            elif child.type == "shorthand_property_identifier":
                result[self._text(child)] = values.get(self._text(child), UNREADABLE)
        return result

    def _sum(self, node: tree_sitter.Node, values: dict[str, Any], depth: int) -> Any:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None or not any(child.type == "+" for child in node.children):
            return UNREADABLE
        first, second = self._value(left, values, depth + 1), self._value(right, values, depth + 1)
        if isinstance(first, str) and isinstance(second, str):
            return (first + second)[:_MAX_VALUE]
        if isinstance(first, str) or isinstance(second, str):
            return "".join(part if isinstance(part, str) else "{}" for part in (first, second))[
                :_MAX_VALUE
            ]
        return UNREADABLE

    def _template(self, node: tree_sitter.Node, values: dict[str, Any], depth: int) -> str:
        source, start, position = self.data[node.start_byte : node.end_byte], node.start_byte, 1
        parts: list[str] = []
        for child in node.named_children:
            if child.type != "template_substitution":
                continue
            parts.append(
                _unescaped(source[position : child.start_byte - start].decode("utf-8", "replace"))
            )
            inner = (
                self._value(child.named_children[0], values, depth + 1)
                if child.named_children
                else UNREADABLE
            )
            # A long text put in again and again would fill the memory.
            room = sum(map(len, parts[-_MAX_PARTS:])) < _MAX_VALUE
            parts.append(inner if isinstance(inner, str) and room else "{}")
            position = child.end_byte - start
        parts.append(_unescaped(source[position:-1].decode("utf-8", "replace")))
        return "".join(parts)

    def _text(self, node: tree_sitter.Node, limit: int | None = None) -> str:
        end = node.end_byte if limit is None else min(node.end_byte, node.start_byte + limit)
        return self.data[node.start_byte : end].decode("utf-8", "replace")


def _unescaped(text: str) -> str:
    text = re.sub(r"\\u\{?([0-9A-Fa-f]{4,6})\}?", lambda m: chr(min(int(m[1], 16), 0x10FFFF)), text)
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text, flags=re.DOTALL)
