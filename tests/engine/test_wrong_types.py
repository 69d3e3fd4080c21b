"""Bodies with a value of a wrong type: they are served or refused, and never break the engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from switchyard_core import Request
from switchyard_core.errors import RequestError
from switchyard_core.router import estimate_tokens
from switchyard_core.testing import FakeReply, Harness
from switchyard_core.wire import WIRE_FORMATS
from tests.support.mutated import BODIES, nodes, put
from tests.support.policies import PLUGINS, ROUTE, plan_execute

VALUES: tuple[Any, ...] = (5, {"x": [1]}, True, "x", [[5]], None, "", [{}], 1.5, [None, "x", {}])
#: Every place in turn would be a thousand requests; each of its kind is among so many.
STRIDE = 3
OPTIONS = """
handoff_prompt = "Now carry it out."
on_origin_bound = "drop"
planner_reasoning_as_text = true
"""
PROFILES = {
    "openai_chat": "deepseek-v4-pro",
    "openai_responses": "gpt-6-sol",
    "anthropic_messages": "claude-haiku-4-5",
}
EXECUTOR = """
system_prompt = "Be exact."
reasoning_effort = "low"
accepts_prefill = false
"""


def policy_text(wire_format: Any) -> str:
    executor = f'profile = "{PROFILES[wire_format]}"{EXECUTOR}'
    return plan_execute(wire_format, options=OPTIONS, executor=executor, other_origin=True)


def broken(wire_format: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield bodies with one node of another type, each with the place."""
    number = 0
    for body in BODIES[wire_format]:
        for place in nodes(body):
            number += 1
            if number % STRIDE == 0 and place != ("model",):
                changed = deepcopy(body) | {"model": ROUTE}
                put(changed, place, VALUES[(number // STRIDE) % len(VALUES)])
                yield f"{place} = {VALUES[(number // STRIDE) % len(VALUES)]!r}", changed


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_body_with_a_wrong_type_is_served_or_refused_with_its_place(wire_format):
    policy = policy_text(wire_format)
    harness = Harness(policy, plugins=PLUGINS, replies=[FakeReply(text="ok")], door="http")
    history = "input" if wire_format == "openai_responses" else "messages"
    tried, handed_off, wrong = 0, 0, []
    for what, body in broken(wire_format):
        # Half of them are told apart by what the body says of its session.
        headers = {"x-session-id": f"s{tried}"} if tried % 2 else {}
        request = Request(wire_format=wire_format, body=body, headers=headers)
        served = await harness.ask(request)
        tried += 1
        handed_off += served.target == "executor"
        said = served.message if served.status != 200 else ""
        if served.status != 200 and not (served.status == 400 and f"`{history}`" in said):
            wrong.append((what, served.status, served.answer))
    assert wrong == []
    assert handed_off > tried / 2 > 20


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_body_with_a_wrong_type_is_read_and_explained(wire_format):
    policy = policy_text(wire_format)
    harness = Harness(policy, plugins=PLUGINS)
    wrong = []
    for what, body in broken(wire_format):
        request = Request(wire_format=wire_format, body=body, headers={"x-session-id": "s"})
        try:
            found = await harness.explain(request)
            assert found.as_text()
            assert json.dumps(found.as_json())
            assert request.user_message is not None
            assert request.instructions is not None
            assert request.missing_history is not None
            assert estimate_tokens(request) > 0
        except RequestError as error:
            if error.status != 400:
                wrong.append((what, error))
        except Exception as error:  # noqa: BLE001 - all misses are told at once
            wrong.append((what, repr(error)))
    assert wrong == []
