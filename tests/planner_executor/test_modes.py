from __future__ import annotations

import pytest

from switchyard_core import SwitchyardError
from switchyard_planner_executor import MODES, UnknownModeError, get_mode


@pytest.mark.parametrize("name", [None, ""])
def test_r22_no_mode_is_the_default(name: str | None) -> None:
    assert get_mode(name) == "plan_then_execute"


@pytest.mark.parametrize("name", MODES)
def test_mode_is_found_by_its_name(name: str) -> None:
    assert get_mode(name) == name


def test_r22_magentic_is_the_named_error_that_lists_the_modes() -> None:
    with pytest.raises(UnknownModeError) as caught:
        get_mode("magentic")

    error = caught.value
    assert isinstance(error, ValueError)
    assert isinstance(error, SwitchyardError)
    assert error.name == "magentic"
    assert "reserved for orchestration with a task ledger" in error.message
    assert "not implemented" in str(error)
    assert "modes: plan_then_execute, replan" in str(error)


@pytest.mark.parametrize(("name", "near"), [("replann", "replan"), ("Replan", "replan")])
def test_misspelt_mode_is_told_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UnknownModeError, match=f"did you mean `{near}`"):
        get_mode(name)


@pytest.mark.parametrize("name", [" ", "x", "MAGENTIC2", "a" * 1000])
def test_unknown_mode_lists_the_modes(name: str) -> None:
    with pytest.raises(UnknownModeError, match="modes: plan_then_execute, replan") as caught:
        get_mode(name)

    assert len(str(caught.value)) < 400
