"""Reads JavaScript by its syntax tree: its calls, their literal arguments, and what they write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import tree_sitter

from switchyard_core.mutation.shell.expressions import UNREADABLE, Either, Expressions, alternatives
from switchyard_core.mutation.shell.parsing import parse
from switchyard_core.mutation.shell.programs import run_program
from switchyard_core.mutation.shell.session import Budget, Input, Session
from switchyard_core.mutation.tables import load_table

__all__ = ["UNREADABLE", "JavaScriptCall", "calls_of", "read_javascript", "scan_javascript"]

_Node = tree_sitter.Node

#: Characters that are kept of an owner.
_MAX_OWNER = 200
#: Steps for a script, and for a call.
_CODE = 15
_CALL = 4
#: Items of a list for which a loop is read, and calls of the script's own functions.
_MOST_ROUNDS = 4
_MOST_CALLS = 24
_MOST_ITEMS = 100
_WORD = re.compile(r"\w+")
_WRITING_MODE = re.compile(r"[wa+]")
_FUNCTIONS = {"arrow_function", "function_expression", "function_declaration", "method_definition"}
_NAMED = {"function_declaration", "method_definition"}
#: Where other nodes hold a function that they name.
_VALUE_OF = {"variable_declarator": "value", "assignment_expression": "right", "pair": "value"}
#: Methods of a list that call a function with each item.
_LOOPS = {"map", "forEach", "flatMap", "filter", "reduce"}


class JavaScriptCall(NamedTuple):
    """One call in a script."""

    owner: str  # name of the object in front of the last dot, or its text; ``""`` without one
    name: str  # last part of what is called, ``""`` when it is computed
    arguments: tuple[Any, ...]  # values of literal arguments, :data:`UNREADABLE` for others
    partly: bool = False  # whether an argument is unknown in this branch and known in another


class _Bound(NamedTuple):
    """A pattern whose variables get a name and a value when its turn comes."""

    pattern: _Node
    name: str
    value: Any


_Item: TypeAlias = "_Node | _Bound"


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
    for call in calls_of(text, session.budget):
        owners = set(_WORD.findall(call.owner))
        if (entry := table["functions"].get(call.name)) is not None:
            if not entry.get("files_only") or not owners.isdisjoint(table["owners"]):
                _write(entry, call, session)
        elif call.name in table["commands"] and (
            not owners or not owners.isdisjoint(table["runners"])
        ):
            _run_command(call.arguments, session)
        elif call.name == "eval" and call.arguments and isinstance(call.arguments[0], str):
            session.inner(session.word).read(call.arguments[0], "javascript")
    session.spend(0)


def _write(entry: Mapping[str, Any], call: JavaScriptCall, session: Session) -> None:
    arguments = call.arguments
    if "mode" in entry:
        mode = arguments[entry["mode"]] if entry["mode"] < len(arguments) else None
        if not _writes(mode):
            return
    if of := entry.get("of"):
        # The file is in front of the call: `Bun.file("a.ts").delete()`.
        if call.owner.startswith(of):
            session.write(call.owner[len(of) :].strip("()'\"`"), session.word)
        return
    for place in entry["paths"]:
        value = arguments[place] if place < len(arguments) else None
        path = value if isinstance(value, str) else ""
        session.write(path, session.word, cap="unknown" if call.partly else entry.get("cap"))


def _writes(mode: Any) -> bool:
    """Return whether a file is opened for writing: ``"w"``, ``{write: true}``."""
    if isinstance(mode, dict):
        return any(mode.get(key) is True for key in ("write", "append", "create", "truncate"))
    return isinstance(mode, str) and _WRITING_MODE.search(mode) is not None


def _run_command(arguments: tuple[Any, ...], session: Session) -> None:
    first, second = (*arguments, None, None)[:2]
    if isinstance(second, dict) and isinstance(second.get("args"), list):
        second = second["args"]
    words = [first, *second] if isinstance(second, list) else first
    if isinstance(words, list) and words and isinstance(words[0], str):
        run_program([item if isinstance(item, str) else "{}" for item in words], session.inner())
    elif isinstance(first, str) and first:
        session.inner().read(first, "bash")
    else:
        session.add("unknown", session.word, "runs a command that cannot be seen")


def calls_of(text: str, budget: Budget) -> Iterator[JavaScriptCall]:
    """Yield every call of a script outside strings and comments, in order.

    The budget is spent when not all of the script was read.
    """
    data = text.encode("utf-8", "replace")
    parsed = parse("javascript", data, budget)
    yield from _Script(data).calls(parsed.tree.root_node, budget)
    if not parsed.whole:
        budget.left = -1


def _alternatives(call: JavaScriptCall) -> Iterator[JavaScriptCall]:
    """Yield a call for each value that its arguments may have: ``run(ok ? "ls" : "rm a")``."""
    for arguments in alternatives(list(call.arguments)):
        both = zip(call.arguments, arguments, strict=True)
        partly = any(isinstance(a, Either) and b is UNREADABLE for a, b in both)
        yield call._replace(arguments=tuple(arguments), partly=partly)


class _Script(Expressions):
    """Walks the nodes of one script in order."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        #: Functions of the script, by name.
        self.functions: dict[str, _Node] = {}
        #: How often functions of the script are called.
        self.called = 0
        #: Named functions that no call has entered yet, by place.
        self.unread: dict[int, _Node] = {}
        #: Places of those that a call has entered, and of those with too many calls.
        self.entries: set[int] = set()
        self.skipped: set[int] = set()

    def calls(self, root: _Node, budget: Budget) -> Iterator[JavaScriptCall]:
        self.hoist(root)
        stack: list[_Item] = [root]
        while (stack or self.unread) and budget.spend():
            if not stack:
                stack.extend(reversed(self.uncalled()))
            node = stack.pop()
            if isinstance(node, _Bound):
                self.bind(*node)
                continue
            kind = node.type
            if kind in {"call_expression", "new_expression"}:
                budget.spend(_CALL)
                call = self.call(node)
                yield from _alternatives(call)
                yield from self.passed(node, call)
                stack.extend(reversed(self.following(node, call)))
                continue
            if kind == "for_in_statement":
                stack.extend(reversed(self.rounds(node)))
                continue
            self.declare(node, kind)
            if not self.waits(node, kind):
                stack.extend(reversed(node.named_children))

    def waits(self, node: _Node, kind: str) -> bool:
        """Keep a function with a name for its calls, which tell its parameters."""
        function = node
        if (key := _VALUE_OF.get(kind)) is not None:
            function = node.child_by_field_name(key) or node
        if function.type not in _FUNCTIONS or (function is node and kind not in _NAMED):
            return False
        if function.start_byte not in self.entries:
            self.unread[function.start_byte] = function
        return True

    def uncalled(self) -> list[_Item]:
        """Return a function that is left, with unknown parameters."""
        function = self.unread.pop(next(iter(self.unread)))
        unknown = [("", UNREADABLE)] * _MOST_ITEMS
        *bound, _body = self.entered(function, unknown) or [function]
        return [*bound, *function.named_children]

    def hoist(self, root: _Node) -> None:
        for child in root.named_children:
            if child.type == "function_declaration":
                self.declare(child, child.type)

    def declare(self, node: _Node, kind: str) -> None:
        """Take over the variables and functions of a statement."""
        if kind == "import_statement":
            self.load(node)
            return
        if kind in {"function_declaration", "class_declaration"}:
            name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            if name is not None and kind == "function_declaration":
                self.functions[self.text(name)] = node
            elif name is not None and body is not None:
                self.declare_methods(self.text(name), body)
            return
        if kind == "variable_declarator":
            left, right = node.child_by_field_name("name"), node.child_by_field_name("value")
        elif kind in {"assignment_expression", "augmented_assignment_expression"}:
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        else:
            return
        if left is None or right is None:
            return
        if left.type in {"member_expression", "subscript_expression"}:
            self.change(left, right)
            return
        if right.type == "object":
            self.declare_methods(self.text(left), right)
        if right.type in _FUNCTIONS:
            self.functions[self.text(left)] = right
        elif kind == "augmented_assignment_expression":
            self.set(self.text(left), "", self.sum(self.value(left), self.value(right)))
        else:
            self.bind(left, self.name(right), self.value(right))

    def declare_methods(self, owner: str, body: _Node) -> None:
        """Take over the functions of an object or class."""
        for child in body.named_children:
            key, value = child.child_by_field_name("key"), child.child_by_field_name("value")
            if child.type == "method_definition":
                key, value = child.child_by_field_name("name"), child
            if key is not None and value is not None and value.type in _FUNCTIONS:
                self.functions[f"{owner}.{self.text(key)}"] = value

    def change(self, member: _Node, value: _Node) -> None:
        """Take over a new value of a member of a literal object."""
        base = member.child_by_field_name("object")
        if base is None or base.type != "identifier":
            return
        whole, changed = self.value(base), self.value(value)
        if isinstance(whole, dict) and not isinstance(changed, dict | list):
            self.set(self.text(base), "", {**whole, self.member(member): changed})
        else:
            self.set(self.text(base), self.name(base), UNREADABLE)

    def passed(self, node: _Node, call: JavaScriptCall) -> Iterator[JavaScriptCall]:
        """Yield the calls of a function that is passed by name: ``patches.map(tools.apply_patch)``.

        A list that grows by ``push`` gets its new items.
        """
        function, given = (
            node.child_by_field_name("function"),
            node.child_by_field_name("arguments"),
        )
        base = function.child_by_field_name("object") if function is not None else None
        if base is None or given is None or call.name not in {*_LOOPS, "push"}:
            return
        items = self.value(base)
        if not isinstance(items, list):
            return
        if call.name == "push" and base.type == "identifier":
            self.set(self.text(base), "", [*items, *call.arguments][:_MOST_ITEMS])
        elif call.name != "push" and (owner := self.name(next(iter(given.named_children), None))):
            owner, _, name = owner.rpartition(".")
            for item in items[:_MOST_ROUNDS]:
                yield JavaScriptCall(owner, name, (item,))

    def load(self, node: _Node) -> None:
        """Take over the names of an import."""
        source = node.child_by_field_name("source")
        module = self.value(source) if source is not None else None
        if not isinstance(module, str):
            return
        module = module.removeprefix("node:")
        for clause in (child for child in node.named_children if child.type == "import_clause"):
            for child in clause.named_children:
                if child.type == "named_imports":
                    self.load_members(child, module)
                else:
                    name = child.named_children[0] if child.named_children else child
                    self.set(self.text(name), module, UNREADABLE)

    def load_members(self, node: _Node, module: str) -> None:
        for child in node.named_children:
            name, alias = child.child_by_field_name("name"), child.child_by_field_name("alias")
            if name is not None:
                member = self.text(name)
                full = module if member == "default" else f"{module}.{member}"
                self.set(self.text(alias or name), full, UNREADABLE)

    def rounds(self, node: _Node) -> list[_Item]:
        """Return what a loop runs: its body for the first items, if they can be told."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        body = node.child_by_field_name("body")
        if left is None or right is None or body is None:
            return list(node.named_children)
        items = self.value(right)
        if not isinstance(items, list) or not items:
            return [right, body]
        first = items[:_MOST_ROUNDS]
        return [right, *(part for item in first for part in (_Bound(left, "", item), body))]

    def following(self, node: _Node, call: JavaScriptCall) -> list[_Item]:
        """Return what is read after a call: its parts, and the function that it runs."""
        function, given = (
            node.child_by_field_name("function"),
            node.child_by_field_name("arguments"),
        )
        parts: list[_Item] = list(node.named_children)
        if function is None or given is None:
            return parts
        arguments = given.named_children
        own = self.functions.get(f"{call.owner}.{call.name}" if call.owner else call.name)
        if self.called >= _MOST_CALLS:
            # Further calls are read as one with unknown arguments.
            if own is not None and own.start_byte not in self.skipped:
                self.skipped.add(own.start_byte)
                self.unread[own.start_byte] = own
            return parts
        if own is not None:
            self.called += 1
            self.entries.add(own.start_byte)
            self.unread.pop(own.start_byte, None)
            return [*parts, *self.entered(own, [(self.name(a), self.value(a)) for a in arguments])]
        base = function.child_by_field_name("object")
        inner = next((child for child in arguments if child.type in _FUNCTIONS), None)
        if inner is None or base is None:
            return parts
        if call.name == "then":
            return [base, *self.entered(inner, [(self.name(base), UNREADABLE)])]
        items = self.value(base) if call.name in _LOOPS else None
        if not isinstance(items, list) or not items:
            return parts
        self.called += 1
        return [
            base,
            *(p for item in items[:_MOST_ROUNDS] for p in self.entered(inner, [("", item)])),
        ]

    def entered(self, function: _Node, given: Sequence[tuple[str, Any]]) -> list[_Item]:
        """Return the body of a function, behind what gives its parameters their values."""
        single = function.child_by_field_name("parameter")
        listed = function.child_by_field_name("parameters")
        parameters = [single] if single is not None else listed.named_children if listed else []
        body = function.child_by_field_name("body")
        bound = [
            _Bound(pattern, name, value)
            for pattern, (name, value) in zip(parameters, given, strict=False)
        ]
        if parameters and parameters[-1].type == "rest_pattern":
            rest = [value for _, value in given[len(parameters) - 1 :]]
            bound = [*bound[: len(parameters) - 1], _Bound(parameters[-1], "", rest)]
        return [*bound, body] if body is not None else []

    def call(self, node: _Node) -> JavaScriptCall:
        function = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        given = node.child_by_field_name("arguments")
        owner, name = self.callee(function) if function is not None else ("", "")
        nodes: list[_Node] = []
        if given is not None:
            nodes = [given] if given.type == "template_string" else given.named_children
        arguments = tuple(self.value(child) for child in nodes if child.type != "comment")
        if name in {"call", "apply"} and "." in owner:
            owner, _, inner = owner.rpartition(".")
            listed = arguments[1] if len(arguments) > 1 and name == "apply" else None
            arguments = tuple(listed) if isinstance(listed, list) else arguments[1:]
            name = inner
        return JavaScriptCall(owner, name, arguments)

    def callee(self, node: _Node) -> tuple[str, str]:
        """Return the owner and the name of what is called."""
        if node.type in {"member_expression", "subscript_expression"}:
            base = node.child_by_field_name("object")
            owner = self.name(base) or (self.text(base, _MAX_OWNER) if base is not None else "")
            return owner, self.member(node)
        owner, _, name = self.name(node).rpartition(".")
        return owner, name
