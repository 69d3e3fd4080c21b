"""Every public name is documented, and every module says which names are public."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.sources import Definition, Module, modules, public_definitions

each_module = pytest.mark.parametrize("module", [pytest.param(m, id=m.name) for m in modules()])


@each_module
def test_public_names_have_docstrings(module: Module) -> None:
    missing = [
        name
        for name, definition in public_definitions(module.tree)
        if module.is_public and needs_docstring(definition)
    ]

    assert missing == []


@each_module
def test_module_has_a_docstring(module: Module) -> None:
    assert ast.get_docstring(module.tree), f"{module.path} does not say what it is for"


@each_module
def test_exported_names_are_sorted_without_duplicates_and_exist(module: Module) -> None:
    exported = module.exported
    if exported is None:
        exported = []
        assert not module.is_public or not any(public_definitions(module.tree)), (
            f"{module.name} has public names but no __all__"
        )
    # The order of ruff's RUF022: constants, classes, the rest.
    order = sorted(exported, key=lambda n: (not n.isupper(), not n[:1].isupper(), n))

    assert exported in (order, sorted(exported))
    assert len(set(exported)) == len(exported)
    assert [name for name in exported if name not in bound_names(module.tree)] == []


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
