"""The project's own files, as the architecture checks read them."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = "switchyard_core"

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, kw_only=True)
class Module:
    """One Python module of the core or of a plugin.

    Args:
        name: Dotted import name.
        path: Its file.
    """

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))

    @property
    def is_public(self) -> bool:
        return not any(part.startswith("_") and part != "__main__" for part in self.name.split("."))

    @property
    def exported(self) -> list[str] | None:
        """The names of ``__all__`` as written, or ``None`` if the module has none."""
        for statement in self.tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                    pass
                case ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value):
                    pass
                case _:
                    continue
            names: list[str] = list(ast.literal_eval(value))
            return names
        return None


def package_roots() -> list[Path]:
    """Return the folders that become import packages: the core, then every plugin."""
    plugins = sorted(path.parent for path in (ROOT / "plugins").glob("*/__init__.py"))
    return [ROOT / CORE, *plugins]


@cache
def modules(*packages: Path) -> tuple[Module, ...]:
    """Return all modules of the packages, of every package when none is named."""
    found = []
    for package in packages or package_roots():
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found.append(Module(name=name, path=path))
    return tuple(found)


def plugin_modules() -> tuple[Module, ...]:
    """Return all modules of the plugins in the repository."""
    plugins = package_roots()[1:]
    return modules(*plugins) if plugins else ()


def public_definitions(tree: ast.Module) -> Iterator[tuple[str, Definition]]:
    """Yield public functions, classes and their public methods, with dotted names."""
    yield from _definitions(tree.body, "")


def _definitions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Definition]]:
    for statement in body:
        if isinstance(statement, ast.If | ast.Try):
            yield from _definitions(statement.body, prefix)
        if not isinstance(statement, Definition) or statement.name.startswith("_"):
            continue
        yield prefix + statement.name, statement
        if isinstance(statement, ast.ClassDef):
            yield from _definitions(statement.body, f"{prefix}{statement.name}.")


def project_files() -> list[Path]:
    """Return the files that belong to the project: tracked ones and new, not ignored ones."""
    if not (ROOT / ".git").exists():  # an unpacked sdist: only what it brought, no hidden files
        visible = (p for p in ROOT.rglob("*") if not _is_hidden(p.relative_to(ROOT)))
        return sorted(path for path in visible if path.is_file())
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    paths = (ROOT / name for name in listed.split("\0") if name)
    return sorted(path for path in paths if path.is_file())


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "__pycache__")) for part in path.parts)
