"""Reads Python by its syntax tree: its calls that write files, and that run commands."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from switchyard_core.mutation.shell.code import CODE, scan_patterns
from switchyard_core.mutation.shell.programs import run_program
from switchyard_core.mutation.shell.session import Input, Session
from switchyard_core.mutation.tables import load_table

__all__ = ["read_python", "scan_python"]

_T = TypeVar("_T")

#: Placeholders in a path for an unknown part, and for a temporary file.
_UNKNOWN = "{}"
_SCRATCH = "/tmp/python"  # noqa: S108 - a path to classify, nothing is opened
#: Characters of a value that are kept, parts of a joined one, and expressions in expressions.
_MAX_VALUE = 4096
_MAX_PARTS = 200
_MAX_NESTING = 20
#: Words and signs, and the steps to parse and read one.
_TOKEN = re.compile(r"\w+|[^\w\s]")
_LINE_END = re.compile(r"\r\n?|\n")
_STEPS = 3
#: Keys of the calls that run commands.
_COMMANDS = ("commands", "command_list", "command_words")
#: A name with a suffix.
_FILE_NAME = re.compile(r"(?:[A-Za-z]:[\\/])?[^\s<>:@?&=]*\.[A-Za-z]\w{0,9}")
#: Modes that write; those of archives have a kind of compression behind them.
_WRITING_MODE = re.compile(r"(?=[rbtU]*[wax+])[rwaxbtU+]{1,4}(?:[:|]\w*)?$")
_PATH_MODE = re.compile(r"[rwaxbtU+]{1,3}")
#: A line that notebooks give to the shell.
_SHELL_LINE = re.compile(r"^!([^\n]+)", re.MULTILINE)


def read_python(text: str, session: Session, _stdin: Input) -> None:
    """Record what Python code writes; what is not Python of this version is searched."""
    session.spend(CODE)
    for line in _SHELL_LINE.findall(text):
        session.inner().read(line, "bash")
    if not scan_python(text, session):
        scan_patterns("python", text, session)


def scan_python(text: str, session: Session) -> bool:
    """Record what Python code writes; return ``False`` if it cannot be parsed."""
    if not any(word in text for word in _triggers()):
        return True
    tokens = len(_TOKEN.findall(text))
    if tokens * _STEPS > session.budget.left:
        return False
    session.spend(tokens * _STEPS)
    # A line of Python ends in one of these only; `splitlines` would cut strings.
    lines = [line for line in _LINE_END.split(text) if not line.lstrip().startswith(("%", "!"))]
    try:
        with warnings.catch_warnings():
            # Invalid escapes in the code do not matter here.
            warnings.simplefilter("ignore")
            tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    scanner = _Scanner(session)
    for node in _in_order(tree):
        scanner.look(node)
    return True


@cache
def _triggers() -> frozenset[str]:
    """Return the last names of all calls that count; a text without any is not parsed."""
    table = load_table("languages")["python"]
    keys = ("open", "functions", *_COMMANDS, "in_place", "unknown", "evaluate")
    names = {name.rsplit(".", maxsplit=1)[-1] for key in keys for name in table[key]}
    # Many scripts hold the words `dumps` and `stdout.write`.
    short = {f".{name}(" for name, entry in table["methods"].items() if entry.get("named")}
    methods = {f".{name}" for name, entry in table["methods"].items() if not entry.get("named")}
    modules = {f"{word} {name}" for name in table["command_modules"] for word in ("import", "from")}
    return frozenset(names | short | methods | modules)


@cache
def _callables() -> frozenset[str]:
    """Return the last names of what can be called by another name: ``w = path.write_text``."""
    table = load_table("languages")["python"]
    keys = ("open", "functions", "methods", *_COMMANDS, "evaluate")
    return frozenset(name.rsplit(".", maxsplit=1)[-1] for key in keys for name in table[key])


@cache
def _members(module: str) -> Mapping[str, str]:
    """Return the full names of the calls of a module, by the names that ``*`` imports."""
    table = load_table("languages")["python"]
    names = [name for key in ("functions", *_COMMANDS) for name in table[key]]
    return {
        name.removeprefix(f"{module}."): name
        for name in names
        if name.startswith(f"{module}.") and "." not in name.removeprefix(f"{module}.")
    }


def _in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield nodes in the order of the text: assignments before their uses."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(ast.iter_child_nodes(node))))


class _Scanner:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.table = load_table("languages")["python"]
        self.values: dict[str, str] = {}
        self.names: dict[str, str] = {}
        #: What variables can be called for, and the calls that gave the others their objects.
        self.aliases: dict[str, ast.expr] = {}
        self.makers: dict[str, str] = {}

    def look(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, value)
            case ast.NamedExpr(target=target, value=value):
                self._bind(target, value)
            case ast.withitem(optional_vars=ast.expr() as target, context_expr=value):
                self._bind(target, value)
            case ast.For(target=ast.Name() as target, iter=items):
                self._bind_loop(target, items)
            case ast.Import(names=names):
                self.names.update({alias.asname or alias.name: alias.name for alias in names})
            case ast.ImportFrom(module=module, names=names):
                for alias in names:
                    if alias.name == "*":
                        self.names.update(_members(module or ""))
                    else:
                        self.names[alias.asname or alias.name] = f"{module}.{alias.name}"
            case ast.Call():
                self._call(node)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if not isinstance(target, ast.Name):
            return
        path, alias, maker = self.path(value), None, None
        if isinstance(value, ast.Name | ast.Attribute) and path is None:
            alias = value if self._dotted(value).rpartition(".")[2] in _callables() else None
        elif isinstance(value, ast.Call):
            maker = self._dotted(value.func).rpartition(".")[2]
        _set(self.values, target.id, path)
        _set(self.aliases, target.id, alias)
        _set(self.makers, target.id, maker)

    def _bind_loop(self, target: ast.Name, items: ast.expr) -> None:
        if isinstance(items, ast.List | ast.Tuple) and items.elts:
            self._bind(target, items.elts[0])
        elif isinstance(items, ast.Call) and isinstance(items.func, ast.Attribute):
            base = self.path(items.func.value)
            if base is not None:
                pattern = self.path(items.args[0]) if items.args else None
                self.values[target.id] = f"{base}/{pattern or _UNKNOWN}"[:_MAX_VALUE]

    def _call(self, node: ast.Call) -> None:
        node = self._plain(node)
        table, name = self.table, self._dotted(node.func)
        module, _, short = name.rpartition(".")
        if short in table["open"] and not name.startswith("webbrowser"):
            self._open(node, name)
        elif entry := table["functions"].get(name):
            if _is_given(node, entry):
                for place in entry["paths"]:
                    self._write(_argument(node, place), entry.get("cap"))
        elif module in table["command_modules"] and _root(node.func) in self.names:
            self._command(ast.List([ast.Constant(short), *node.args]))
        elif name in table["commands"]:
            self._command(_argument(node, 0))
        elif (place := table["command_list"].get(name)) is not None:
            self._command(_argument(node, place))
        elif (place := table["command_words"].get(name)) is not None:
            self._command(ast.List(node.args[place:]))
        elif name in table["in_place"]:
            given = [k.value for k in node.keywords if k.arg == "inplace"]
            if any(not isinstance(value, ast.Constant) or value.value for value in given):
                self._write(_argument(node, 0))
        elif isinstance(node.func, ast.Attribute) and short in table["methods"]:
            self._method(node, node.func, table["methods"][short])
        elif name in table["evaluate"] and (text := self.path(_argument(node, 0) or node)):
            self.session.inner(self.session.word).read(text, "python")
        elif name in table["unknown"]:
            self.session.add("unknown", self.session.word, f"calls {name}")

    def _plain(self, node: ast.Call) -> ast.Call:
        """Return a call by the name of what is called, with the items of ``*(a, b)``."""
        func, arguments = node.func, node.args
        if isinstance(func, ast.Name) and (alias := self.aliases.get(func.id)) is not None:
            func = alias
        if _starred(node):
            arguments = [
                item
                for argument in node.args
                for item in (
                    argument.value.elts
                    if isinstance(argument, ast.Starred)
                    and isinstance(argument.value, ast.Tuple | ast.List)
                    else [argument]
                )
            ]
        if func is node.func and arguments is node.args:
            return node
        return ast.Call(func, arguments, node.keywords)

    def _maker(self, node: ast.expr) -> str:
        """Return the name of the call that gave an object, ``""`` when it cannot be told."""
        if isinstance(node, ast.Call):
            return self._dotted(node.func).rpartition(".")[2]
        return self.makers.get(node.id, "") if isinstance(node, ast.Name) else ""

    def _method(self, node: ast.Call, func: ast.Attribute, entry: Mapping[str, Any]) -> None:
        receiver, cap = self.path(func.value), entry.get("cap")
        arguments = entry.get("arguments", len(node.args))
        if entry.get("path_only") and (receiver is None or len(node.args) != arguments):
            return
        if not entry.get("argument"):
            self.session.write(receiver or "", self.session.word, cap=cap)
            if entry.get("both") and node.args:
                self._write(node.args[0])
        elif (path := self._path_argument(node, entry.get("place", 0))) is not None:
            makers = entry.get("makers")
            if makers and self._maker(func.value) not in makers:
                return
            # Streams are saved and written to as well: only a name with a suffix is a file.
            name = self.path(path) or ""
            if not entry.get("named") or _FILE_NAME.fullmatch(name):
                self._write(path, cap if "/" in name else entry.get("bare", cap))

    def _path_argument(self, node: ast.Call, place: int = 0) -> ast.expr | None:
        if place < len(node.args):
            return node.args[place]
        names = self.table["path_keywords"]
        return next((k.value for k in node.keywords if k.arg in names), None)

    def _open(self, node: ast.Call, name: str) -> None:
        path, mode = self._opened(node, name)
        if mode is None:
            if any(keyword.arg is None for keyword in node.keywords) or _starred(node):
                self.session.add("unknown", self.session.word, f"calls {name} with unseen words")
            return
        if name == "os.open":
            flags = ast.dump(mode)
            writes = "O_WR" in flags or "O_RDWR" in flags
        else:
            writes = _WRITING_MODE.match(self.path(mode) or "") is not None
        if writes:
            self._write(path)

    def _opened(self, node: ast.Call, name: str) -> tuple[ast.expr | None, ast.expr | None]:
        """Return the path and the mode of a call that opens a file."""
        path, mode = self._path_argument(node), _argument(node, 1)
        module = name.rpartition(".")[0]
        if isinstance(node.func, ast.Attribute) and module not in self.table["open_modules"]:
            # Only a path's own `open` has the mode in front: `Path("a").open("w")`.
            first, second = (self.path(n) if n is not None else None for n in (path, mode))
            if path is None or (_PATH_MODE.fullmatch(first or "") and second is None):
                path, mode = node.func.value, path
        given = [k.value for k in node.keywords if k.arg in {"mode", "flags"}]
        return path, given[0] if given else mode

    def _write(self, node: ast.expr | None, cap: str | None = None) -> None:
        path = self.path(node) if node is not None else None
        self.session.write(path or "", self.session.word, cap=cap)

    def _command(self, first: ast.expr | None) -> None:
        session = self.session
        if isinstance(first, ast.Call) and (text := self._split(first)):
            session.inner().read(text, "bash")
            return
        if isinstance(first, ast.List | ast.Tuple):
            given = [item for item in first.elts if not isinstance(item, ast.Starred)]
            words = [self.path(item) or _UNKNOWN for item in given]
            if words and words[0] != _UNKNOWN:
                run_program(words, session.inner())
                return
        elif first is not None and (text := self.path(first)) and not text.startswith(_UNKNOWN):
            session.inner().read(text, "bash")
            return
        if not (isinstance(first, ast.Attribute) and self._dotted(first) == "sys.executable"):
            session.add("unknown", session.word, "runs a command that cannot be seen")

    def _split(self, node: ast.Call) -> str | None:
        """Return the text that ``shlex.split(text)`` or ``text.split()`` splits."""
        if self._dotted(node.func) == "shlex.split" and node.args:
            return self.path(node.args[0])
        splits = isinstance(node.func, ast.Attribute) and node.func.attr == "split"
        return (
            self.path(node.func.value) if splits and isinstance(node.func, ast.Attribute) else None
        )

    def _dotted(self, node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                return self.names.get(name, name)
            case ast.Attribute(value=value, attr=attribute):
                return f"{self._dotted(value)}.{attribute}"
            case ast.Call(func=func, args=arguments):
                inner = self._dotted(func)
                if inner == "__import__" and arguments:
                    return self.path(arguments[0]) or ""
                return f"{inner}()"
        return ""

    def path(self, node: ast.expr, depth: int = 0) -> str | None:
        """Return the text or path that an expression gives, ``None`` when it cannot be told."""
        if depth > _MAX_NESTING:
            return None
        match node:
            case ast.Constant(value=str() as text):
                return text
            case ast.Name(id=name):
                return self.values.get(name)
            case ast.JoinedStr(values=values):
                parts = [self.path(part, depth + 1) or _UNKNOWN for part in values[:_MAX_PARTS]]
                return "".join(parts)[:_MAX_VALUE]
            case ast.FormattedValue(value=value) | ast.Subscript(value=value):
                return self.path(value, depth + 1)
            case ast.BinOp(left=first, op=ast.Div() | ast.Add() as operator, right=second):
                left, right = self.path(first, depth + 1), self.path(second, depth + 1)
                glue = "/" if isinstance(operator, ast.Div) else ""
                if left is None and right is None:
                    return None
                return f"{left or _UNKNOWN}{glue}{right or _UNKNOWN}"[:_MAX_VALUE]
            case ast.Attribute(value=value, attr=attribute):
                known = attribute in self.table["path_attributes"]
                return self.path(value, depth + 1) if known else None
            case ast.Call():
                return self._path_call(node, depth + 1)
        return None

    def _path_call(self, node: ast.Call, depth: int) -> str | None:
        table, name = self.table, self._dotted(node.func)
        if name in table["path_makers"]:
            parts = [self.path(argument, depth) for argument in node.args]
            known = [part if part is not None else _UNKNOWN for part in parts]
            return "/".join(known)[:_MAX_VALUE] if known else "."
        if name in table["scratch_makers"]:
            return _SCRATCH
        short = name.rsplit(".", 1)[-1]
        if not isinstance(node.func, ast.Attribute):
            return self.path(node.args[0], depth) if short in table["open"] and node.args else None
        if short not in table["path_methods"]:
            return None
        base = self.path(node.func.value, depth)
        if short == "joinpath" and base is not None:
            extra = [self.path(argument, depth) or _UNKNOWN for argument in node.args]
            return "/".join([base, *extra])[:_MAX_VALUE]
        return base


def _argument(node: ast.Call, place: int) -> ast.expr | None:
    return node.args[place] if place < len(node.args) else None


def _starred(node: ast.Call) -> bool:
    return any(isinstance(argument, ast.Starred) for argument in node.args)


def _root(node: ast.expr) -> str:
    """Return the first part of a dotted name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_given(node: ast.Call, entry: Mapping[str, Any]) -> bool:
    """Return whether a call has the value without which it writes nothing."""
    if "given" not in entry:
        return True
    values = (keyword.value for keyword in node.keywords if keyword.arg == entry["given"])
    return any(isinstance(v, ast.Attribute) and v.attr == entry["value"] for v in values)


def _set(names: dict[str, _T], name: str, value: _T | None) -> None:
    """Give a name its value, or none."""
    if value is None:
        names.pop(name, None)
    else:
        names[name] = value
