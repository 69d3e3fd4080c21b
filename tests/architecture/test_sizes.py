"""Modules stay small enough to be read at one sitting, and are named for what they hold."""

from __future__ import annotations

import ast

from tests.architecture.sources import ROOT, modules

#: Modules of one idea have 100 to 500 lines; a longer one says in its first line why.
LARGEST_MODULE = 700
#: Names that say nothing about what is inside.
MEANINGLESS = frozenset({"common", "helper", "helpers", "misc", "util", "utils"})


def test_modules_are_within_their_budget_or_give_a_reason() -> None:
    large = [
        f"{module.path.relative_to(ROOT)} has {lines} lines"
        for module in modules()
        if (lines := module.text.count("\n")) > LARGEST_MODULE
        and " lines: " not in (ast.get_docstring(module.tree) or "").partition("\n")[0]
    ]

    assert large == []


def test_modules_are_named_for_what_they_hold() -> None:
    assert [m.name for m in modules() if MEANINGLESS & set(m.name.split("."))] == []
