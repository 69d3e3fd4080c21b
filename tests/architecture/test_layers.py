"""Imports go downward only, and plugins use what a stranger could use."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

import switchyard_core
from scripts.write_reference_page import MODULES
from tests.architecture.sources import CORE, ROOT, Module, modules, package_roots, plugin_modules

#: What a command of a plugin may take from the command line.
COMMANDS = {"policy_argument", "replay_options", "thinking", "unused_note"}
_LINT_IMPORTS = "from importlinter.cli import lint_imports_command as c; c(['--no-cache'])"


def test_import_contracts_of_pyproject_hold() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LINT_IMPORTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_core_modules_never_import_the_package_root_that_gathers_them() -> None:
    # The root stands above every layer; import-linter cannot see that.
    above = (f"{CORE}.cli", f"{CORE}.testing", f"{CORE}.__main__")
    found = [
        f"{module.name}:{line}"
        for module in modules(ROOT / CORE)
        if module.name != CORE and not module.name.startswith(above)
        for line, name, imported in imports(module)
        if name == CORE and not is_submodule(imported)
    ]

    assert found == []


def test_plugins_import_only_public_names_of_the_core() -> None:
    private = [
        f"{module.name}:{line} {source}.{name}"
        for module in plugin_modules()
        for line, source, name in imports(module)
        if source.split(".")[0] == CORE and not is_public(source, name)
    ]

    assert private == []


def test_every_plugin_of_the_repository_is_an_entry_point_and_in_the_wheel() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text()

    missing = [
        root.name
        for root in package_roots()[1:]
        if f'"plugins/{root.name}"' not in pyproject or f'= "{root.name}"' not in pyproject
    ]

    assert missing == []


def imports(module: Module) -> Iterator[tuple[int, str, str | None]]:
    """Yield line, imported module and imported name, absolute imports only."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from ((node.lineno, node.module, alias.name) for alias in node.names)


def is_submodule(name: str | None) -> bool:
    """Say whether ``from switchyard_core import <name>`` means a module."""
    return any((ROOT / CORE / f"{name}{end}").is_file() for end in (".py", "/__init__.py"))


def is_public(source: str, name: str | None) -> bool:
    """Say whether a name of the core is promised to strangers, as the reference lists it."""
    if source == CORE:
        return name in switchyard_core.__all__
    if source == f"{CORE}.cli":
        return name in COMMANDS
    room = source.removeprefix(f"{CORE}.")
    if room not in MODULES:
        return False
    return name in (MODULES[room] or import_module(source).__all__)
