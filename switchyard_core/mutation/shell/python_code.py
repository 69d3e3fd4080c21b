"""Finds the calls in Python code that write files, by its syntax tree."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from functools import cache

from switchyard_core.mutation.shell.session import NO_INPUT, Session
from switchyard_core.mutation.shell.special import run_text
from switchyard_core.mutation.tables import load_table

__all__ = ["scan_python"]

#: Stands in a path for what only the running program knows.
_UNKNOWN = "{}"
#: Characters of a value that are kept, and parts of a joined one.
_MAX_VALUE = 4096
_MAX_PARTS = 200
#: Words and signs, and the steps that it takes to parse and look at one.
_TOKEN = re.compile(r"\w+|[^\w\s]")
_STEPS = 3


def scan_python(text: str, session: Session, word: str) -> bool:
    """Record what Python code writes.

    Returns:
        ``False`` when the text is no Python of this version, or too long to be parsed; nothing
        is recorded then.
    """
    if not any(word in text for word in _triggers()):
        return True
    tokens = len(_TOKEN.findall(text))
    if tokens * _STEPS > session.budget.left:
        return False
    session.spend(tokens * _STEPS)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("%", "!"))]
    try:
        with warnings.catch_warnings():
            # Odd escapes in the code of others are none of our business.
            warnings.simplefilter("ignore")
            tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    scanner = _Scanner(session, word)
    for node in _in_order(tree):
        scanner.look(node)
    return True


@cache
def _triggers() -> frozenset[str]:
    """Return the last names of all calls that count: without one there is nothing to parse."""
    table = load_table("languages")["python"]
    keys = ("open", "functions", "methods", "commands", "in_place", "unknown")
    return frozenset(name.rsplit(".", maxsplit=1)[-1] for key in keys for name in table[key])


def _in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield nodes in the order of the text: assignments before their uses."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(ast.iter_child_nodes(node))))


class _Scanner:
    def __init__(self, session: Session, word: str) -> None:
        self.session = session
        self.word = word
        self.table = load_table("languages")["python"]
        self.values: dict[str, str] = {}
        self.names: dict[str, str] = {}

    def look(self, node: ast.AST) -> None:
        """Take in one node."""
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    self._bind(target.id, node.value)
        elif isinstance(node, ast.NamedExpr):
            self._bind(node.target.id, node.value)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            self._bind_loop(node.target.id, node.iter)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    self.names[alias.asname] = alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self.names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.withitem):
            if isinstance(node.optional_vars, ast.Name):
                self._bind(node.optional_vars.id, node.context_expr)
        elif isinstance(node, ast.Call):
            self._call(node)

    def _bind(self, name: str, value: ast.expr) -> None:
        path = self.path(value)
        if path is not None:
            self.values[name] = path
        else:
            self.values.pop(name, None)

    def _bind_loop(self, name: str, items: ast.expr) -> None:
        if isinstance(items, ast.List | ast.Tuple) and items.elts:
            self._bind(name, items.elts[0])
        elif isinstance(items, ast.Call) and isinstance(items.func, ast.Attribute):
            base = self.path(items.func.value)
            if base is not None:
                pattern = self.path(items.args[0]) if items.args else None
                self.values[name] = f"{base}/{pattern or _UNKNOWN}"[:_MAX_VALUE]

    def _call(self, node: ast.Call) -> None:
        name = self._dotted(node.func)
        functions, methods = self.table["functions"], self.table["methods"]
        short = name.rsplit(".", 1)[-1]
        if short in self.table["open"] and not name.startswith(
            ("os.popen", "webbrowser", "Image.")
        ):
            self._open(node, name)
        elif name in functions:
            for place in functions[name]["paths"]:
                self._write(
                    node.args[place] if place < len(node.args) else None, functions[name].get("cap")
                )
        elif name in self.table["commands"]:
            self._command(node)
        elif name in self.table["in_place"]:
            if any(k.arg == "inplace" and self._truthy(k.value) for k in node.keywords):
                self._write(node.args[0] if node.args else None, None)
        elif isinstance(node.func, ast.Attribute) and short in methods:
            self._method(node, node.func, methods[short])
        elif name in self.table["unknown"]:
            self.session.add("unknown", self.word, f"calls {name}")

    def _method(self, node: ast.Call, func: ast.Attribute, entry: dict[str, object]) -> None:
        receiver = self.path(func.value)
        if entry.get("path_only") and (
            receiver is None or len(node.args) != entry.get("arguments", len(node.args))
        ):
            return
        if entry.get("argument"):
            self._write(
                node.args[0] if node.args else self._keyword(node),
                _text(entry.get("cap")),
                required=False,
            )
            return
        self.session.write(receiver or "", self.word, cap=_text(entry.get("cap")))
        if entry.get("both") and node.args:
            self._write(node.args[0], None)

    def _keyword(self, node: ast.Call) -> ast.expr | None:
        names = self.table["path_keywords"]
        return next((k.value for k in node.keywords if k.arg in names), None)

    def _open(self, node: ast.Call, name: str) -> None:
        method = (
            isinstance(node.func, ast.Attribute)
            and name.split(".", maxsplit=1)[0] not in self.table["open_modules"]
        )
        place = 0 if method else 1
        mode = node.args[place] if len(node.args) > place else None
        for keyword in node.keywords:
            if keyword.arg in {"mode", "flags"}:
                mode = keyword.value
        if mode is None:
            return
        text = self.path(mode) or ""
        if name == "os.open":
            if "O_WR" not in ast.dump(mode) and "O_RDWR" not in ast.dump(mode):
                return
        elif not set("wax+") & set(text):
            return
        if method and isinstance(node.func, ast.Attribute):
            self.session.write(self.path(node.func.value) or "", self.word)
        else:
            self._write(node.args[0] if node.args else self._keyword(node), None)

    def _write(self, node: ast.expr | None, cap: str | None, *, required: bool = True) -> None:
        path = self.path(node) if node is not None else None
        if path is None and not required and node is None:
            return
        self.session.write(path or "", self.word, cap=cap)

    def _command(self, node: ast.Call) -> None:
        # The walker of programs calls this module: one of the two imports has to wait.
        from switchyard_core.mutation.shell.programs import run_program  # noqa: PLC0415

        first = node.args[0] if node.args else None
        if isinstance(first, ast.List | ast.Tuple):
            words = [
                self.path(item) or _UNKNOWN
                for item in first.elts
                if not isinstance(item, ast.Starred)
            ]
            if words and words[0] != _UNKNOWN:
                run_program(words, self.session.inner(), NO_INPUT)
                return
        elif first is not None and (text := self.path(first)) and not text.startswith(_UNKNOWN):
            run_text(text, self.session.inner())
            return
        if isinstance(first, ast.Attribute) and self._dotted(first) == "sys.executable":
            return
        self.session.add("unknown", self.word, "runs a command that cannot be seen")

    def _dotted(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return self.names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self._dotted(node.value)}.{node.attr}"
        if isinstance(node, ast.Call):
            inner = self._dotted(node.func)
            if inner == "__import__" and node.args:
                return self.path(node.args[0]) or ""
            return f"{inner}()"
        return ""

    def path(self, node: ast.expr, depth: int = 0) -> str | None:
        """Return the text or path that an expression gives, ``None`` when it cannot be told."""
        if depth > 20:
            return None
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            return self.values.get(node.id)
        if isinstance(node, ast.JoinedStr):
            return "".join(
                (self.path(part, depth + 1) or _UNKNOWN)
                if isinstance(part, ast.Constant)
                else (self.path(part.value, depth + 1) or _UNKNOWN)
                if isinstance(part, ast.FormattedValue)
                else _UNKNOWN
                for part in node.values[:_MAX_PARTS]
            )[:_MAX_VALUE]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add):
            left, right = self.path(node.left, depth + 1), self.path(node.right, depth + 1)
            glue = "/" if isinstance(node.op, ast.Div) else ""
            if left is None and right is None:
                return None
            return f"{left or _UNKNOWN}{glue}{right or _UNKNOWN}"[:_MAX_VALUE]
        if isinstance(node, ast.Subscript):
            return self.path(node.value, depth + 1)
        if isinstance(node, ast.Attribute):
            return (
                self.path(node.value, depth + 1)
                if node.attr in self.table["path_attributes"]
                else None
            )
        if isinstance(node, ast.Call):
            return self._path_call(node, depth)
        return None

    def _path_call(self, node: ast.Call, depth: int) -> str | None:
        name = self._dotted(node.func)
        if name in self.table["path_makers"]:
            parts = [self.path(arg, depth + 1) for arg in node.args]
            known = [part if part is not None else _UNKNOWN for part in parts]
            return "/".join(known)[:_MAX_VALUE] if known else "."
        if name in self.table["scratch_makers"]:
            return "/tmp/python"  # noqa: S108 - a path to classify, nothing is opened
        short = name.rsplit(".", 1)[-1]
        if short in self.table["open"] and node.args and not isinstance(node.func, ast.Attribute):
            return self.path(node.args[0], depth + 1)
        if isinstance(node.func, ast.Attribute) and short in self.table["path_methods"]:
            base = self.path(node.func.value, depth + 1)
            extra = [self.path(arg, depth + 1) or _UNKNOWN for arg in node.args]
            if short == "joinpath" and base is not None:
                return "/".join([base, *extra])[:_MAX_VALUE]
            return base
        return None

    @staticmethod
    def _truthy(node: ast.expr) -> bool:
        return not (isinstance(node, ast.Constant) and not node.value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
