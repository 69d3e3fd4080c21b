"""Every public name is documented, and every module says which names are public."""

from __future__ import annotations

import ast

from tests.architecture.sources import Definition, modules, public_definitions


def test_public_names_have_docstrings() -> None:
    missing = [
        f"{module.name}.{name}"
        for module in modules()
        for name, definition in public_definitions(module.tree)
        if module.is_public and needs_docstring(definition)
    ]

    assert missing == []


def test_modules_say_what_they_are_for() -> None:
    assert [m.name for m in modules() if not ast.get_docstring(m.tree)] == []


def test_modules_with_public_names_say_which_they_are() -> None:
    silent = [
        module.name
        for module in modules()
        if module.exported is None and module.is_public and any(public_definitions(module.tree))
    ]

    assert silent == []


def test_exported_names_are_sorted_without_duplicates_and_exist() -> None:
    wrong = []
    for module in modules():
        exported = module.exported or []
        # The order of ruff's RUF022: constants, classes, the rest.
        order = sorted(exported, key=lambda n: (not n.isupper(), not n[:1].isupper(), n))
        if exported not in (order, sorted(exported)) or len(set(exported)) != len(exported):
            wrong.append(f"{module.name}: sort `__all__` and name each once")
        bound = bound_names(module.tree) if exported else set()
        wrong += [f"{module.name}: no {name}" for name in exported if name not in bound]

    assert wrong == []


def needs_docstring(definition: Definition) -> bool:
    """Say whether a definition lacks a docstring and is no overload, override or setter."""
    if ast.get_docstring(definition):
        return False
    marks = {
        part
        for decorator in definition.decorator_list
        for part in ast.unparse(decorator).split("(")[0].split(".")
    }
    return not marks & {"overload", "override", "setter"}


def bound_names(tree: ast.Module) -> set[str]:
    """Return the names that a module binds, by whatever statement, or serves lazily."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) if name == "__getattr__":
                names |= _texts(tree)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.alias(name=name, asname=asname):
                names.add(asname or name.split(".")[0])
    return names


def _texts(tree: ast.Module) -> set[str]:
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {value for value in constants if isinstance(value, str)}
