"""The outgoing body of every handoff scenario where the target speaks another wire format.

One snapshot per scenario has the bodies of all pairs of formats; those of one format are the ones
of test_snapshots.py. Each body is valid for the official SDK's types, and a provider that refuses
what the real one does takes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any, Literal

import pytest

from switchyard_core import WireFormat
from switchyard_core.jsonio.tree import object_of
from switchyard_core.testing import (
    FakeUpstream,
    RequestBodySnapshot,
    Served,
    conversation,
    validity_problems,
)
from switchyard_core.wire import WIRE_FORMATS
from tests.plan_execute.test_snapshots import SCENARIOS, Scenario
from tests.support.policies import accepts, plan_execute_harness

Target = Literal["planner", "executor"]
#: A strict provider of each wire format, and a model that it has.
STRICT: dict[WireFormat, tuple[str, str]] = {
    "openai_chat": ("vllm", "qwen3-coder"),
    "openai_responses": ("openai", "gpt-5.4"),
    "anthropic_messages": ("anthropic", "claude-sonnet-4-6"),
}
#: Rules of the made-up models of a scenario that a real one would not have.
MADE_UP = {"prefix_bound_family", "prefix_bound_handoff_prompt", "prefix_bound_side_call"}


async def play(
    scenario: Scenario, caller: WireFormat, door: Literal["library", "http"], **settings: Any
) -> Served:
    """Return what became of the last request of a scenario."""
    world = plan_execute_harness(caller, door, **scenario.settings, **settings)
    accepts(world, **scenario.profiles)
    for tell in scenario.tells:
        last = tell is scenario.tells[-1]
        told = tell(conversation(caller)).request(
            session=scenario.session, headers=scenario.headers, final=scenario.final and last
        )
        served = await world.ask(told)
    return served


async def serving(scenario: Scenario, caller: WireFormat) -> Target:
    """Return who serves the last request of a scenario: that one shall speak another format."""
    return (
        "executor" if (await play(scenario, caller, "library")).target == "executor" else "planner"
    )


def pairs(scenario: Scenario) -> Iterator[tuple[WireFormat, WireFormat]]:
    """Yield wire formats of the caller and of the target."""
    for caller, spoken in permutations(WIRE_FORMATS, 2):
        if caller in scenario.only:
            yield caller, spoken


@pytest.mark.parametrize("name", SCENARIOS)
async def test_translated_body(snapshot, name):
    scenario, bodies, problems = SCENARIOS[name], {}, []
    for caller, spoken in pairs(scenario):
        pair = f"{caller} to {spoken}"
        target = await serving(scenario, caller)
        formats = {target: spoken}
        served = await play(scenario, caller, "library", formats=formats)
        again = await play(scenario, caller, "http", formats=formats)
        if served.outgoing.body != again.outgoing.body:
            problems.append(f"{pair}: HTTP sends another body than the library")
        if (served.target, served.outgoing.wire_format) != (target, spoken):
            problems.append(f"{pair}: {served.target} got {served.outgoing.wire_format}")
        bodies[pair] = served.outgoing.body
        problems += [
            f"{pair}: {each}" for each in validity_problems(spoken, bodies[pair], sdk=True)
        ]

    assert problems == []
    assert object_of(bodies) == snapshot.use_extension(RequestBodySnapshot)


@pytest.mark.parametrize("name", SCENARIOS)
async def test_translated_body_is_taken_by_a_strict_provider(name):
    scenario, problems = SCENARIOS[name], []
    for caller, spoken in pairs(scenario):
        target = await serving(scenario, caller)
        strict, model = STRICT[spoken]
        served = await play(
            scenario,
            caller,
            "library",
            formats={target: spoken},
            ids={target: model},
            upstream=FakeUpstream(strict={target: strict}),
        )
        if served.status != 200:
            problems.append(f"{caller} to {spoken}: {served.status} {served.answer!r}")

    assert problems == []
