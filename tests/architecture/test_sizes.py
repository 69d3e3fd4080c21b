"""Modules and functions stay small enough to be read at one sitting."""

from __future__ import annotations

import pytest

from tests.architecture.sources import ROOT, Module, modules

#: Modules aim at 70 to 260 lines; above this a second concept has moved in.
LARGEST_MODULE = 450
#: Names that say nothing about what is inside.
MEANINGLESS = frozenset({"common", "helper", "helpers", "misc", "util", "utils"})


@pytest.mark.parametrize("module", [pytest.param(m, id=m.name) for m in modules()])
def test_module_is_within_its_budget(module: Module) -> None:
    lines = module.text.count("\n")

    assert lines <= LARGEST_MODULE, f"{module.path.relative_to(ROOT)} has {lines} lines"


@pytest.mark.parametrize("module", [pytest.param(m, id=m.name) for m in modules()])
def test_module_is_named_for_what_it_holds(module: Module) -> None:
    assert not MEANINGLESS & set(module.name.split("."))
