"""What a shell knows while its command is read."""

from __future__ import annotations

from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell.session import Scope, Session


def test_inner_shell_sees_names_of_the_outer_one_and_keeps_its_own() -> None:
    outer: Scope[str] = Scope()
    inner = Scope(outer)
    outer["a"] = "1"
    inner["b"] = "2"
    inner["a"] = "3"

    assert (inner.get("a"), inner.get("b"), inner.get("c")) == ("3", "2", None)
    assert (outer.get("a"), outer.get("b")) == ("1", None)


def test_scope_is_true_when_any_name_can_be_seen() -> None:
    outer: Scope[str] = Scope()
    inner = Scope(Scope(outer))

    assert not inner
    outer["a"] = ""
    assert inner


def test_effects_of_an_inner_shell_are_shared_and_its_directory_is_not() -> None:
    session = Session(classes=PathClasses())
    inner = session.inner()
    inner.enter("/tmp")
    inner.variables["x"] = "1"
    inner.write("a", "touch")

    assert [reading.label for reading in session.readings] == ["scratch_write"]
    assert (session.directory, session.variables.get("x")) == ("", None)
