"""No text takes long to read, whatever it repeats; steps are counted, seconds only bounded."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType

import pytest

from switchyard_core.mutation.labels import LABELS
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import read_command
from switchyard_core.mutation.shell.session import STEPS, Budget

#: Characters: enough of most shapes to spend the whole budget.
SIZE = 12_000
#: Seconds of processor time for all shapes of a reader. Each takes some milliseconds, but
#: instrumented runs take several times that; the slowest once took minutes.
BOUND = 60


@pytest.fixture(scope="module")
def worst(load_benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return load_benchmark("shell_worst_case")


@pytest.mark.parametrize("dialect", ["bash", "powershell", "cmd", "auto"])
def test_no_shape_takes_more_steps_than_there_are(worst: ModuleType, dialect: str) -> None:
    began = time.process_time()
    steps: dict[str, int] = {}
    for name, text in worst.shell_shapes(SIZE):
        budget = Budget()
        assert read_command(text, PathClasses(), dialect=dialect, budget=budget).label in LABELS
        steps[name] = STEPS - budget.left

    assert len(steps) > 250
    # The last thing that is done may cost more than is left: parsing, or a program's many words.
    assert {name: taken for name, taken in steps.items() if taken > 1.6 * STEPS} == {}
    assert time.process_time() - began < BOUND


@pytest.mark.parametrize("family", ["code", "patch", "list"])
def test_no_call_of_a_tool_takes_long(worst: ModuleType, family: str) -> None:
    began = time.process_time()
    rules = worst.new_rules()
    found = {name: worst.read(family, text, rules) for name, text in worst.shapes(family, SIZE)}

    assert {reading.label for reading in found.values()} <= {*LABELS}
    assert time.process_time() - began < BOUND


def test_text_of_which_a_part_is_read_is_unknown_and_says_so() -> None:
    units = {"ls; ": 5000, "a=1; ": 5000, "a|": 5000, "x ": 10_000, "(": 20_000, "'a'|b;": 4000}
    readings = {
        unit: read_command(unit * times, PathClasses(), dialect="bash")
        for unit, times in units.items()
    }

    assert {(reading.label, reading.detail) for reading in readings.values()} == {
        ("unknown", "too much to be read whole")
    }, readings


def test_edit_that_is_found_before_the_budget_is_spent_counts() -> None:
    for text in ("rm src/a.py; " + "ls; " * 5000, "mkdir x; rm src/a.py; " + "a|" * 9000):
        assert read_command(text, PathClasses(), dialect="bash").label == "file_edit"


def test_commands_of_one_call_share_a_budget_and_keep_their_own_readings(
    worst: ModuleType,
) -> None:
    many = [f"echo {n}; " * 200 for n in range(50)]
    text = worst.json.dumps({"commands": many})
    rules = worst.new_rules()
    first = worst.read("list", text, rules)

    assert (first.label, first.detail) == ("unknown", "too much to be read whole")
    # What is remembered of the first call does not make the second one cheaper.
    again = worst.json.dumps({"commands": [*many[:49], "rm src/a.py"]})
    assert worst.read("list", again, rules) == first
    assert worst.read("list", worst.json.dumps({"commands": many[-1:]}), rules).label == "read_only"


def test_benchmark_prints_the_dearest_shapes_of_each_reader(
    worst: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(worst, "shapes", lambda family, size: iter([(family, "a" * size)]))
    status = worst.main(["--kilobytes", "1", "--rounds", "1"])
    lines = capsys.readouterr().out.splitlines()

    assert [line.split(":")[0] for line in lines if "1 shapes" in line] == [*worst.FAMILIES]
    assert lines[-1].endswith("limit 50 ms")
    assert status in {0, 1}


def test_benchmark_fails_above_the_limit(
    worst: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worst, "LIMIT", 0)
    monkeypatch.setattr(worst, "shapes", lambda family, size: iter([(family, "a" * size)]))

    assert worst.main(["--kilobytes", "1", "--rounds", "1"]) == 1
