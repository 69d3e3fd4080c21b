"""The outgoing body of every handoff scenario where the target speaks another wire format.

One snapshot per scenario has the bodies of all pairs of formats; those of one format are the ones
of test_snapshots.py. Each body is valid for the official SDK's types, and a provider that refuses
what the real one does takes it.
"""

from __future__ import annotations

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
#: Scenarios that cannot be sent, with the codes of their errors: what the history is about is
#: at a provider of the caller's format, which no target speaks that would have to read it.
REFUSED = {"origin_bound_stay": ("history_required",)}


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


async def serving(scenario: Scenario) -> Target:
    """Return who serves the last request of a scenario: that one shall speak another format."""
    served = await play(scenario, scenario.only[0], "library")
    return "executor" if served.target == "executor" else "planner"


def pairs(scenario: Scenario) -> list[tuple[WireFormat, WireFormat]]:
    """Return wire formats of the caller and of the target."""
    return [pair for pair in permutations(WIRE_FORMATS, 2) if pair[0] in scenario.only]


@pytest.mark.parametrize("name", SCENARIOS)
async def test_translated_body(snapshot, name):
    scenario, bodies, problems = SCENARIOS[name], {}, []
    target = await serving(scenario)
    for caller, spoken in pairs(scenario):
        pair = f"{caller} to {spoken}"
        served = await play(scenario, caller, "library", formats={target: spoken})
        if not served.sent:
            bodies[pair] = served.answer
            continue
        if (served.target, served.outgoing.wire_format) != (target, spoken):
            problems.append(f"{pair}: {served.target} got {served.outgoing.wire_format}")
        bodies[pair] = served.outgoing.body
        problems += [f"{pair}: {each}" for each in validity_problems(spoken, bodies[pair])]
    # Which pair it is has no influence on the door.
    again = await play(scenario, caller, "http", formats={target: spoken})

    assert problems == []
    assert not again.sent or again.outgoing.body == bodies[pair]
    assert object_of(bodies) == snapshot.use_extension(RequestBodySnapshot)


@pytest.mark.parametrize("name", SCENARIOS)
async def test_translated_body_is_taken_by_a_strict_provider(name):
    scenario, problems = SCENARIOS[name], []
    target = await serving(scenario)
    for caller, spoken in pairs(scenario):
        strict, model = STRICT[spoken]
        served = await play(
            scenario,
            caller,
            "library",
            formats={target: spoken},
            ids={target: model},
            upstream=FakeUpstream(strict={target: strict}),
        )
        if served.status != 200 and served.code not in REFUSED.get(name, ()):
            problems.append(f"{caller} to {spoken}: {served.status} {served.answer!r}")

    assert problems == []
