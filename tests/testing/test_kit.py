"""The kit's public names, and the page that describes them."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import switchyard_core.testing as kit
import switchyard_pytest
from tests.support.cases import each_of

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "testing.md").read_text()


@each_of("name", [*kit.__all__, *switchyard_pytest.__all__])
def test_public_name_is_on_the_page(name):
    assert f"`{name}" in PAGE


def test_every_test_of_the_router_contract_is_on_the_page_once():
    tests = [name for name, _ in inspect.getmembers(kit.RouterConformance) if "test_" in name]
    tests.remove("pytest_generate_tests")

    assert [PAGE.count(f"| `{name}` |") for name in tests] == [1] * len(tests)


def test_every_public_name_exists():
    assert [name for name in kit.__all__ if not hasattr(kit, name)] == []


def test_kit_has_no_other_lazy_names():
    with pytest.raises(AttributeError, match="no attribute"):
        _ = kit.nothing


def test_stability_page_names_both_lists_of_public_names():
    page = (DOCS / "stability.md").read_text()

    assert "`switchyard_core.__all__`" in page
    assert "`switchyard_core.testing.__all__`" in page
