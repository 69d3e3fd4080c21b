"""What expressions of JavaScript mean: literal values, and the names of members and modules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any, TypeAlias

import tree_sitter

__all__ = ["UNREADABLE", "Either", "Expressions", "alternatives"]

_Node = tree_sitter.Node

#: An unknown value.
UNREADABLE = object()


class Either(tuple[Any, ...]):
    """The values that an expression may have, one of them :data:`UNREADABLE` if not all are known.

    None of them is an ``Either``.
    """

    __slots__ = ()


#: Characters that are kept of a name with its owners, and of a joined text.
_MAX_NAME = 200
_MAX_VALUE = 64 * 1024
#: Maximum depth of expressions.
_MAX_NESTING = 40
#: Latest parts of a template that are measured, and members of an object.
_MAX_PARTS = 20
_MAX_MEMBERS = 100
#: Values that a conditional expression may have.
_MAX_SIDES = 8
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0"}
_LOADERS = {"require", "import"}
#: Functions that give a function like the one they are given.
_ADAPTERS = {"promisify", "bind"}
#: What calls give: a place for temporary files.
_RESULTS = {"os.tmpdir": "/tmp"}  # noqa: S108 - a path to classify, nothing is opened
#: Functions that give a path that begins with their argument.
_UNIQUE = {"mkdtemp", "mkdtempSync"}
_STREAMS = {
    "process.stdout": "/dev/stdout",
    "Bun.stdout": "/dev/stdout",
    "Bun.stderr": "/dev/stderr",
}


class Expressions:
    """Evaluates the nodes of one script; the text of a node is a copy of its bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        #: Literal values of variables.
        self.values: dict[str, Any] = {}
        #: What variables stand for: a module, an object, a member of one.
        self.names: dict[str, str] = {}

    def text(self, node: _Node, limit: int | None = None) -> str:
        """Return the text of a node, or its first bytes."""
        end = node.end_byte if limit is None else min(node.end_byte, node.start_byte + limit)
        return self.data[node.start_byte : end].decode("utf-8", "replace")

    # Names.

    def name(self, node: _Node | None, depth: int = 0) -> str:
        """Return the dotted name of an object, function or module, ``""`` when it has none."""
        if node is None or depth > _MAX_NESTING:
            return ""
        kind = node.type
        if kind == "identifier":
            text = self.text(node, _MAX_NAME)
            return self.names.get(text, text)
        if kind in {"member_expression", "subscript_expression"}:
            owner, name = self.name(_field(node, "object"), depth + 1), self.member(node)
            return f"{owner}.{name}"[:_MAX_NAME] if owner and name else ""
        if kind in {"parenthesized_expression", "await_expression", "sequence_expression"}:
            return self.name(node.named_children[-1], depth + 1) if node.named_children else ""
        return self.name_of_result(node, depth + 1) if kind == "call_expression" else ""

    def name_of_result(self, node: _Node, depth: int) -> str:
        """Return the name of what a call gives: a module, or a function like another one."""
        function, given = _field(node, "function"), _field(node, "arguments")
        if function is None or given is None:
            return ""
        called = self.text(function, _MAX_NAME).rpartition(".")[2]
        if called in _LOADERS:
            module = self.value(given.named_children[0]) if given.named_children else None
            return module.removeprefix("node:")[:_MAX_NAME] if isinstance(module, str) else ""
        if called in _ADAPTERS:
            base = _field(function, "object") if called == "bind" else None
            return self.name(base or next(iter(given.named_children), None), depth)
        return ""

    def member(self, node: _Node) -> str:
        """Return the member that an expression names, ``""`` when it is computed."""
        index = _field(node, "index")
        if index is None:
            last = _field(node, "property")
            return self.text(last, _MAX_NAME) if last is not None else ""
        literal = self.value(index)
        return literal if isinstance(literal, str) else ""

    # Variables.

    def bind(self, pattern: _Node, name: str, value: Any, depth: int = 0) -> None:
        """Give the variables of a pattern their values and names."""
        kind = pattern.type
        if depth > _MAX_NESTING:
            return
        if kind in {"identifier", "shorthand_property_identifier_pattern"}:
            self.set(self.text(pattern), name, value)
        elif kind in {"assignment_pattern", "object_assignment_pattern"}:
            if (left := _field(pattern, "left")) is not None:
                self.bind(left, name, value, depth + 1)
        elif kind == "rest_pattern" and pattern.named_children:
            self.bind(pattern.named_children[0], name, value, depth + 1)
        elif kind == "array_pattern":
            items = value if isinstance(value, list) else []
            for place, child in enumerate(pattern.named_children):
                self.bind(child, "", items[place] if place < len(items) else UNREADABLE, depth + 1)
        elif kind == "object_pattern":
            for child, key in self.members_of_pattern(pattern):
                member = name if key in {"", "default"} else f"{name}.{key}"[:_MAX_NAME]
                item = value.get(key, UNREADABLE) if isinstance(value, dict) else UNREADABLE
                self.bind(child, member if name else "", item, depth + 1)

    def members_of_pattern(self, pattern: _Node) -> Iterator[tuple[_Node, str]]:
        """Yield the patterns inside an object's pattern and the members that they take."""
        for child in pattern.named_children:
            if child.type == "pair_pattern":
                key, value = _field(child, "key"), _field(child, "value")
                if key is not None and value is not None:
                    yield value, self.text(key).strip("'\"")
            elif child.type == "object_assignment_pattern":
                left = _field(child, "left")
                if left is not None:
                    yield left, self.text(left)
            else:
                yield child, "" if child.type == "rest_pattern" else self.text(child)

    def set(self, variable: str, name: str, value: Any) -> None:
        """Give one variable its name and value."""
        if value is UNREADABLE:
            self.values.pop(variable, None)
        else:
            self.values[variable] = value
        if name and name != variable:
            self.names[variable] = name
        else:
            self.names.pop(variable, None)

    # Values.

    def value(self, node: _Node, depth: int = 0) -> Any:
        """Return the value of a literal expression."""
        read = _VALUES.get(node.type)
        return UNREADABLE if read is None or depth > _MAX_NESTING else read(self, node, depth + 1)

    def variable(self, node: _Node, _depth: int = 0) -> Any:
        """Return the value of a variable."""
        return self.values.get(self.text(node), UNREADABLE)

    def inner(self, node: _Node, depth: int) -> Any:
        """Return the value inside brackets."""
        return self.value(node.named_children[0], depth) if node.named_children else UNREADABLE

    def element(self, node: _Node, depth: int) -> Any:
        """Return a member of a literal object or list."""
        base, index = _field(node, "object"), _field(node, "index")
        whole = self.value(base, depth) if base is not None else UNREADABLE
        if isinstance(whole, Either):
            return _either([self.part(node, side, index, depth) for side in whole])
        return self.part(node, whole, index, depth)

    def part(self, node: _Node, whole: Any, index: _Node | None, depth: int) -> Any:
        """Return a member of one object or list."""
        if isinstance(whole, dict):
            return whole.get(self.member(node), UNREADABLE)
        place = self.value(index, depth) if index is not None else None
        if isinstance(whole, list) and isinstance(place, str) and place.isdecimal():
            return whole[int(place)] if int(place) < len(whole) else UNREADABLE
        return _STREAMS.get(self.name(node, depth), UNREADABLE)

    def result(self, node: _Node, depth: int) -> Any:
        """Return the text that a call gives: of a list, of parts of a path, of another text."""
        function, given = _field(node, "function"), _field(node, "arguments")
        if function is None or given is None:
            return UNREADABLE
        if given.type == "template_string":
            return (
                self.template(given, depth) if self.name(function) == "String.raw" else UNREADABLE
            )
        parts = [self.value(child, depth) for child in _children(given)]
        owner, _, called = self.name(function, depth).rpartition(".")
        if (known := _RESULTS.get(f"{owner}.{called}")) is not None:
            return known
        if called in _UNIQUE and parts:
            return parts[0]
        if owner in {"path", ""} and called in {"join", "resolve"} and parts:
            return _either([_path(side) for side in alternatives(parts)])
        base = _field(function, "object")
        whole = self.value(base, depth) if base is not None else UNREADABLE
        method = _METHODS.get(self.member(function), _no_text)
        return _either([method(side, parts) for side in alternatives(whole)])

    def members(self, node: _Node, depth: int) -> dict[str, Any]:
        """Return the members of a literal object."""
        result: dict[str, Any] = {}
        for child in node.named_children[:_MAX_MEMBERS]:
            if child.type == "pair":
                key, value = _field(child, "key"), _field(child, "value")
                if key is not None and value is not None:
                    name = self.text(key)
                    name = name[1:-1] if key.type == "string" else name
                    result[name] = self.value(value, depth)
            elif child.type == "shorthand_property_identifier":
                result[self.text(child)] = self.variable(child)
            elif child.type == "spread_element":
                spread = self.inner(child, depth)
                result.update(spread if isinstance(spread, dict) else {})
        return result

    def binary(self, node: _Node, depth: int) -> Any:
        """Return a joined text, or the sides that are readable."""
        left, right = _field(node, "left"), _field(node, "right")
        signs = {child.type for child in node.children if not child.is_named}
        if left is None or right is None or signs.isdisjoint({"+", "||", "??", "&&"}):
            return UNREADABLE
        values = [self.value(left, depth), self.value(right, depth)]
        if "+" in signs:
            return self.sum(*values)
        if "&&" in signs:
            # The left side is a condition; what it stops runs nothing.
            return values[1]
        return _either([value for value in values if value is not UNREADABLE])

    def sum(self, left: Any, right: Any) -> Any:
        """Return two texts joined; ``{}`` stands for an unknown one."""
        if isinstance(left, Either) or isinstance(right, Either):
            sides = (alternatives(left), alternatives(right))
            return _either([self.sum(a, b) for a in sides[0] for b in sides[1]])
        if not isinstance(left, str) and not isinstance(right, str):
            return UNREADABLE
        return "".join(v if isinstance(v, str) else "{}" for v in (left, right))[:_MAX_VALUE]

    def choice(self, node: _Node, depth: int) -> Any:
        """Return both sides of a conditional expression."""
        sides = [side for key in ("consequence", "alternative") if (side := _field(node, key))]
        return _either([self.value(side, depth) for side in sides])

    def template(self, node: _Node, depth: int) -> Any:
        """Return a template; ``{}`` stands for unknown parts."""
        source, start, position = self.data[node.start_byte : node.end_byte], node.start_byte, 1
        wholes: list[list[str]] = [[]]
        for child in node.named_children:
            if child.type != "template_substitution":
                continue
            text = source[position : child.start_byte - start]
            inner = self.inner(child, depth)
            wholes = [
                _extended(parts, _unescaped(text.decode("utf-8", "replace")), side)
                for parts in wholes
                for side in alternatives(inner)
            ][:_MAX_SIDES]
            position = child.end_byte - start
        last = _unescaped(source[position:-1].decode("utf-8", "replace"))
        return _either(["".join([*parts, last]) for parts in wholes])


_Value: TypeAlias = Callable[[Expressions, _Node, int], Any]
#: Values of literal expressions, by type.
_VALUES: dict[str, _Value] = {
    "string": lambda script, node, _: _unescaped(script.text(node)[1:-1]),
    "template_string": Expressions.template,
    "identifier": Expressions.variable,
    "true": lambda *_: True,
    "false": lambda *_: False,
    "null": lambda *_: None,
    "number": lambda script, node, _: script.text(node),
    "array": lambda script, node, depth: [script.value(n, depth) for n in _children(node)],
    "object": Expressions.members,
    **dict.fromkeys(("parenthesized_expression", "await_expression"), Expressions.inner),
    **dict.fromkeys(("member_expression", "subscript_expression"), Expressions.element),
    "binary_expression": Expressions.binary,
    "ternary_expression": Expressions.choice,
    "call_expression": Expressions.result,
}


def alternatives(value: Any) -> tuple[Any, ...]:
    """Return the values that an expression may have, ``(value,)`` when it is only one."""
    if isinstance(value, Either):
        return value
    if isinstance(value, dict):
        items = list(value.values())
        if any(isinstance(item, _DIVIDED) for item in items):
            return tuple(dict(zip(value, side, strict=True)) for side in _products(items))
    if isinstance(value, list) and any(isinstance(item, _DIVIDED) for item in value):
        return tuple(_products(value))
    return (value,)


def _products(items: list[Any]) -> list[list[Any]]:
    """Return the first lists that take one value of each item."""
    sides = [alternatives(item) for item in items]
    if all(len(side) == 1 for side in sides):
        return [items]
    return [list(chosen) for chosen in islice(product(*sides), _MAX_SIDES)]


def _either(values: list[Any]) -> Any:
    """Return what has one of some values."""
    sides: list[Any] = []
    for side in (side for value in values for side in alternatives(value)):
        if not any(side is known or (isinstance(side, str) and side == known) for known in sides):
            sides.append(side)
    if len(sides) > _MAX_SIDES:
        sides[_MAX_SIDES - 1 :] = [UNREADABLE]
    return Either(sides) if len(sides) > 1 else (sides or [UNREADABLE])[0]


def _extended(parts: list[str], text: str, inner: Any) -> list[str]:
    """Return the parts of a template with two more."""
    # Inserting a long text repeatedly would fill the memory.
    room = sum(map(len, parts[-_MAX_PARTS:])) + len(text) < _MAX_VALUE
    return [*parts, text, inner if isinstance(inner, str) and room else "{}"]


def _path(parts: list[Any]) -> str:
    return "/".join(p if isinstance(p, str) else "{}" for p in parts)[:_MAX_VALUE]


def _no_text(_whole: Any, _parts: list[Any]) -> Any:
    return UNREADABLE


def _joined(whole: Any, parts: list[Any]) -> Any:
    if not isinstance(whole, list) or not all(isinstance(item, str) for item in whole):
        return UNREADABLE
    if sum(map(len, whole)) > _MAX_VALUE:
        return UNREADABLE
    return (parts[0] if parts and isinstance(parts[0], str) else ",").join(whole)[:_MAX_VALUE]


def _concatenated(whole: Any, parts: list[Any]) -> Any:
    if not isinstance(whole, str):
        return UNREADABLE
    return "".join(p if isinstance(p, str) else "{}" for p in (whole, *parts))[:_MAX_VALUE]


def _same(whole: Any, _parts: list[Any]) -> Any:
    return whole if isinstance(whole, str) else UNREADABLE


#: What may hold several values.
_DIVIDED = (Either, dict, list)
#: Methods of lists and texts that give a text.
_METHODS: dict[str, Callable[[Any, list[Any]], Any]] = {
    "join": _joined,
    "concat": _concatenated,
    **dict.fromkeys(("trim", "trimEnd", "trimStart", "toString", "valueOf"), _same),
}


def _field(node: _Node, name: str) -> _Node | None:
    return node.child_by_field_name(name)


def _children(node: _Node) -> list[_Node]:
    return [child for child in node.named_children if child.type != "comment"]


def _unescaped(text: str) -> str:
    text = re.sub(r"\\u\{?([0-9A-Fa-f]{4,6})\}?", lambda m: chr(min(int(m[1], 16), 0x10FFFF)), text)
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text, flags=re.DOTALL)
