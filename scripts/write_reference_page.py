"""Writes docs/reference.md from the docstrings of the public modules; tests fail on a difference.

python scripts/write_reference_page.py
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import switchyard_core

PAGE = Path(__file__).parents[1] / "docs" / "reference.md"
#: The public modules beside `switchyard_core` itself, with the names of those that have others,
#: too; the test kit has its own page.
MODULES: dict[str, tuple[str, ...] | None] = {
    "answering": None,
    "clients": ("SideCall",),
    "conversation": None,
    "errors": None,
    "jsonio": None,
    "models": ("Entry", "ModelProfiles", "Profile", "Reasoning", "Rule", "ValueTest"),
    "patterns": ("PatternError", "compile_pattern"),
    "plugins": None,
    "policy": ("check_policy", "load_policy", "load_policy_text"),
    "replay": ("ReplayTransport",),
    "scripted": (
        "RecordedRequest",
        "ScriptedProviderApp",
        "ScriptedUpstream",
        "check_script",
        "load_script",
    ),
    "server": None,
    "stores": None,
    "upstream": None,
    "wire": (
        "RewriteFunction",
        "RewriteReport",
        "RewriteScope",
        "WIRE_FORMATS",
        "left_out_sampling",
    ),
}
HEAD = """# Reference

Every public name, module by module, written from the docstrings by
`python scripts/write_reference_page.py`. The test kit `switchyard_core.testing` has its
[own page](testing.md), and so does every [hook](plugin_hooks.md).
"""
_ROLE = re.compile(r":\w+:`[~.]*(?:[\w.]+\.)?(\w+)`")
_LITERAL = re.compile(r"``([^`]+)``")
_SECTIONS = ("Args", "Returns", "Yields", "Raises", "Guarantees", "Example", "Source")
_SECTION = re.compile(rf"^({'|'.join(_SECTIONS)}):$")
_ENTRY = re.compile(r"^(\*{0,2}\w[\w., ]*?)(?: \([^)]*\))?: (.*)$")


def main() -> None:
    """Write the page."""
    PAGE.write_text(reference(), encoding="utf-8")


def reference() -> str:
    """Return the text of the page."""
    constants = _constants()
    top = set(switchyard_core.__all__)
    parts = [HEAD, *_chapter(switchyard_core, top, constants)]
    for name, chosen in MODULES.items():
        module = import_module(f"switchyard_core.{name}")
        parts += _chapter(module, set(chosen or module.__all__) - top, constants)
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _chapter(module: ModuleType, names: set[str], constants: dict[str, Constant]) -> Iterator[str]:
    yield f"## {module.__name__}\n"
    for name in sorted(names, key=str.lower):
        if not name.startswith("__"):
            yield _entry(name, getattr(module, name), constants)


@dataclass(frozen=True, slots=True)
class Constant:
    """A name that is bound by an assignment: its source, and the comment above it."""

    source: str
    comment: str


def _constants() -> dict[str, Constant]:
    """Return every public assignment of the package, by name; `#:` comments are its docs."""
    found: dict[str, Constant] = {}
    for path in sorted(Path(switchyard_core.__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name = node.target.id
            else:
                continue
            comment: list[str] = []
            line = node.lineno - 2
            while line >= 0 and lines[line].startswith("#: "):
                comment.insert(0, lines[line][3:])
                line -= 1
            found.setdefault(name, Constant(ast.unparse(node), " ".join(comment)))
    return found


def _entry(name: str, value: Any, constants: dict[str, Constant]) -> str:
    if inspect.isclass(value):
        return "\n".join([f"### `{name}`\n", *_class(name, value)])
    if inspect.isfunction(value):
        return f"### `{name}`\n\n{_signature(name, value)}\n{_prose(value.__doc__)}"
    constant = constants[name]
    return f"### `{name}`\n\n{_code(constant.source)}\n{_text(constant.comment)}\n"


def _class(name: str, kind: type) -> Iterator[str]:
    yield _code("\n".join(_outline(name, kind)))
    yield _prose(kind.__doc__)
    for member, value in _members(kind):
        if isinstance(value, property):
            yield f"#### `{name}.{member}`\n\n{_prose(value.fget.__doc__ if value.fget else '')}"
        else:
            yield f"#### `{name}.{member}()`\n"
            yield f"{_signature(member, inspect.unwrap(value))}\n{_prose(value.__doc__)}"


def _outline(name: str, kind: type) -> Iterator[str]:
    """Yield a class as it is written: its bases, its fields and how it is made."""
    (node,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind))).body
    if not isinstance(node, ast.ClassDef):
        return
    shown = [base for base in map(ast.unparse, node.bases) if not base.startswith("_")]
    yield f"class {name}({', '.join(shown)})" if shown else f"class {name}"
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=field)) if not field.startswith("_"):
                yield f"    {ast.unparse(statement)}"
            case ast.FunctionDef(name="__init__", args=arguments):
                yield f"    def __init__({ast.unparse(arguments)})"


def _members(kind: type) -> list[tuple[str, Any]]:
    """Return public methods and properties that the class itself has documented."""
    found: list[tuple[str, Any]] = []
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("switchyard_core"):
            continue
        for name, value in vars(base).items():
            plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if hasattr(plain, "func") and hasattr(plain, "attrname"):  # a cached property
                plain = property(plain.func)
            documented = isinstance(plain, property) or inspect.isfunction(plain)
            if documented and not name.startswith("_") and plain.__doc__:
                found = [(n, v) for n, v in found if n != name] + [(name, plain)]
    return found


def _signature(name: str, function: Any) -> str:
    """Return the head of a function as it is written, for defaults have no readable repr."""
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(function)))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    node = next(node for node in ast.walk(tree) if isinstance(node, kinds))
    head = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    line = f"{head} {name}({ast.unparse(node.args)})"
    return _code(f"{line} -> {ast.unparse(node.returns)}" if node.returns is not None else line)


def _code(line: str) -> str:
    return f"```text\n{line}\n```\n"


def _prose(docstring: str | None) -> str:
    """Return a docstring as Markdown: paragraphs, and its sections as lists."""
    blocks: list[str] = []
    section = ""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(docstring or "")):
        first, _, rest = paragraph.partition("\n")
        match = _SECTION.match(first)
        if match:
            section = match[1]
            blocks.append(_section(section, inspect.cleandoc(f"\n{rest}")))
        elif section == "Args" and first.startswith("    "):
            blocks.append(_section("", inspect.cleandoc(f"\n{paragraph}")))
        else:
            blocks.append(_text(paragraph))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _section(title: str, body: str) -> str:
    head = f"**{title}**\n\n" if title else ""
    if title == "Example":
        return f"{head}```pycon\n{body}\n```"
    items: list[str] = []
    for line in body.splitlines():
        match = _ENTRY.match(line) if not line.startswith(" ") else None
        if title in ("Args", "Raises", "") and match:
            items.append(f"- `{match[1]}`: {match[2]}")
        elif items:
            items[-1] += f"\n  {line.strip()}"
        else:
            items.append(line)
    return head + _text("\n".join(items))


def _text(text: str) -> str:
    return _LITERAL.sub(r"`\1`", _ROLE.sub(r"`\1`", text))


if __name__ == "__main__":
    main()
