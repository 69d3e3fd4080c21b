"""Reads the calls and their literal arguments out of JavaScript."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import tree_sitter
import tree_sitter_javascript

__all__ = ["UNREADABLE", "Call", "calls_of", "parse_javascript"]

#: Stands for a value that only the running script knows.
UNREADABLE = object()

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


def parse_javascript(text: str) -> tree_sitter.Node:
    """Return the syntax tree of a script; a broken one still yields its parts."""
    return tree_sitter.Parser(_language()).parse(text.encode("utf-8", "replace")).root_node


def calls_of(root: tree_sitter.Node) -> Iterator[Call]:
    """Yield every call outside strings and comments, in order."""
    values: dict[str, Any] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "variable_declarator":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None and value is not None and name.type == "identifier":
                literal = _value(value, values, 0)
                if literal is not UNREADABLE:
                    values[_text(name)] = literal
        elif node.type in {"call_expression", "new_expression"}:
            yield _call(node, values)
        stack.extend(reversed(node.named_children))


def _call(node: tree_sitter.Node, values: dict[str, Any]) -> Call:
    function = node.child_by_field_name("function") or node.child_by_field_name("constructor")
    arguments = node.child_by_field_name("arguments")
    owner, name = "", ""
    if function is not None and function.type == "identifier":
        name = _text(function)
    elif function is not None and function.type == "member_expression":
        base, last = (
            function.child_by_field_name("object"),
            function.child_by_field_name("property"),
        )
        owner, name = _text(base) if base else "", _text(last) if last else ""
    elif function is not None and function.type == "subscript_expression":
        base, index = function.child_by_field_name("object"), function.child_by_field_name("index")
        literal = _value(index, values, 0) if index else UNREADABLE
        owner, name = _text(base) if base else "", literal if isinstance(literal, str) else ""
    if arguments is None:
        return Call(owner=owner, name=name, arguments=())
    if arguments.type == "template_string":
        return Call(owner=owner, name=name, arguments=(_value(arguments, values, 0),))
    given = [child for child in arguments.named_children if child.type != "comment"]
    return Call(owner=owner, name=name, arguments=tuple(_value(c, values, 0) for c in given))


def _value(node: tree_sitter.Node, values: dict[str, Any], depth: int) -> Any:
    """Return what a literal expression stands for."""
    if depth > 40:
        return UNREADABLE
    kind = node.type
    if kind == "string":
        return _unescaped(_text(node)[1:-1])
    if kind == "template_string":
        return _template(node, values, depth)
    if kind == "identifier":
        return values.get(_text(node), UNREADABLE)
    if kind in {"true", "false"}:
        return kind == "true"
    if kind == "null":
        return None
    if kind == "number":
        return _text(node)
    if kind == "array":
        return [
            _value(child, values, depth + 1)
            for child in node.named_children
            if child.type != "comment"
        ]
    if kind == "object":
        return _object(node, values, depth)
    if kind in {"parenthesized_expression", "await_expression"} and node.named_children:
        return _value(node.named_children[0], values, depth + 1)
    if kind == "binary_expression":
        return _sum(node, values, depth)
    if kind == "call_expression":
        return _joined_call(node, values, depth)
    return UNREADABLE


def _joined_call(node: tree_sitter.Node, values: dict[str, Any], depth: int) -> Any:
    """Return the text of ``["a", "b"].join("")`` and of ``path.join("a", "b")``."""
    function, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or given is None or function.type != "member_expression":
        return UNREADABLE
    base, last = function.child_by_field_name("object"), function.child_by_field_name("property")
    if base is None or last is None or _text(last) not in {"join", "resolve", "raw"}:
        return UNREADABLE
    parts = [_value(child, values, depth + 1) for child in given.named_children]
    items = _value(base, values, depth + 1)
    if isinstance(items, list) and all(isinstance(item, str) for item in items):
        return (parts[0] if parts and isinstance(parts[0], str) else ",").join(items)
    if _text(base) == "path" and parts:
        return "/".join(part if isinstance(part, str) else "{}" for part in parts)
    return UNREADABLE


def _object(node: tree_sitter.Node, values: dict[str, Any], depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for child in node.named_children:
        if child.type == "pair":
            key, value = child.child_by_field_name("key"), child.child_by_field_name("value")
            if key is not None and value is not None:
                name = _text(key)
                name = name[1:-1] if key.type == "string" else name
                result[name] = _value(value, values, depth + 1)
        elif child.type == "shorthand_property_identifier":
            result[_text(child)] = values.get(_text(child), UNREADABLE)
    return result


def _sum(node: tree_sitter.Node, values: dict[str, Any], depth: int) -> Any:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None or not any(child.type == "+" for child in node.children):
        return UNREADABLE
    first, second = _value(left, values, depth + 1), _value(right, values, depth + 1)
    if isinstance(first, str) and isinstance(second, str):
        return first + second
    if isinstance(first, str) or isinstance(second, str):
        return "".join(part if isinstance(part, str) else "{}" for part in (first, second))
    return UNREADABLE


def _template(node: tree_sitter.Node, values: dict[str, Any], depth: int) -> str:
    source, start, position = node.text or b"", node.start_byte, 1
    parts: list[str] = []
    for child in node.named_children:
        if child.type != "template_substitution":
            continue
        parts.append(
            _unescaped(source[position : child.start_byte - start].decode("utf-8", "replace"))
        )
        inner = (
            _value(child.named_children[0], values, depth + 1)
            if child.named_children
            else UNREADABLE
        )
        parts.append(inner if isinstance(inner, str) else "{}")
        position = child.end_byte - start
    parts.append(_unescaped(source[position:-1].decode("utf-8", "replace")))
    return "".join(parts)


def _unescaped(text: str) -> str:
    text = re.sub(r"\\u\{?([0-9A-Fa-f]{4,6})\}?", lambda m: chr(min(int(m[1], 16), 0x10FFFF)), text)
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text, flags=re.DOTALL)


def _text(node: tree_sitter.Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
