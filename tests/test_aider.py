"""aider edits by text: a recorded session, served by the shipped policy in every wire format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import switchyard_demo_routers
import switchyard_plan_execute
from switchyard_core import Request, WireFormat
from switchyard_core.testing import Harness, conversation
from switchyard_core.wire import WIRE_FORMATS
from tests.support.policies import plan_execute_harness

DATA = Path(__file__).parent / "data"
POLICY = Path(__file__).parents[1] / "policies" / "aider.toml"
PLUGINS = (switchyard_plan_execute, switchyard_demo_routers)
BLOCK = "calc.py\n```python\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```"
SWITCHED = (
    "I switched to a new code base. Please don't consider the above files or try to edit them any "
    "longer."
)


@pytest.fixture(params=WIRE_FORMATS)
def wire_format(request: pytest.FixtureRequest) -> WireFormat:
    found: WireFormat = request.param
    return found


def _request(wire_format: WireFormat, body: dict[str, Any]) -> Request:
    """Return a recorded body as a client of another wire format would send it."""
    told = dict(body)
    if wire_format == "openai_responses":
        told["input"] = told.pop("messages")
    if wire_format == "anthropic_messages":
        told["max_tokens"] = 4096
        told["system"] = "\n".join(m["content"] for m in body["messages"] if m["role"] == "system")
        told["messages"] = [m for m in body["messages"] if m["role"] != "system"]
    return Request(wire_format=wire_format, body=json.dumps(told).encode())


def _bodies() -> Iterator[dict[str, Any]]:
    yield from json.loads((DATA / "aider-session.json").read_text())["bodies"]


def _harness(wire_format: WireFormat) -> Harness:
    text = POLICY.read_text().replace('format = "openai_chat"', f'format = "{wire_format}"')
    if wire_format != "openai_chat":
        # The conditions on side calls look into a body of Chat Completions.
        text = text.split("[[housekeeping]]", maxsplit=1)[0]
    return Harness(text, plugins=PLUGINS)


async def test_recorded_session_plans_until_its_first_block_and_executes_after_it(
    wire_format: WireFormat,
) -> None:
    harness = _harness(wire_format)
    decided = [await harness.decide(_request(wire_format, body)) for body in _bodies()]

    side = "housekeeping" if wire_format == "openai_chat" else "no_mutation"
    assert [(d.target, d.reason.code) for d in decided] == [
        ("planner", "no_mutation"),
        ("planner", side),
        ("executor", "mutation_in_history"),
        ("planner", side),
        ("executor", "mutation_in_history"),
    ]
    facts = decided[2].reason.facts
    assert (facts["rule_set"], facts["rule"], facts["word"]) == (
        "text_edits",
        "search-replace",
        "calc.py",
    )
    assert "character 18 is a file_edit: writes calc.py" in decided[2].reason.detail


async def test_captured_request_hands_off_for_its_own_block_and_not_for_the_examples() -> None:
    body = json.loads((DATA / "captures" / "aider-1.json").read_text())["request"]["body"]
    body["model"] = "switchyard/plan-execute"
    # The capture has placeholders for the client's texts; this one has the length of the mark.
    place = body["messages"].index(
        {"role": "user", "content": f"[user text of the client, {len(SWITCHED)} characters]"}
    )
    body["messages"][place]["content"] = SWITCHED
    harness = _harness("openai_chat")

    edited = await harness.decide(_request("openai_chat", body))
    asked = {**body, "messages": body["messages"][: place + 5]}
    planned = await harness.decide(_request("openai_chat", asked))

    assert (edited.target, edited.reason.facts["word"]) == ("executor", "calc.py")
    assert edited.reason.facts["call"] == "$.messages[10]"
    assert planned.target == "planner"


# --- the handoff of an edit in a text ------------------------------------------------------------

OPTIONS = 'mutation_rules = ["text_edits"]\nhandoff_prompt = "Carry on."\n'


async def test_edit_in_a_text_latches_and_its_request_carries_the_handoff_prompt(
    wire_format: WireFormat,
) -> None:
    harness = plan_execute_harness(wire_format, options=OPTIONS)
    start = conversation(wire_format).user("fix")
    edited = start.says(BLOCK).user("applied")

    planned = await harness.ask(start.request(session="s"))
    handoff = await harness.ask(edited.request(session="s"))
    again = await harness.ask(edited.request(session="s"))
    later = await harness.ask(edited.says("Fine.").user("more").request(session="s"))
    compacted = await harness.ask(start.request(session="s"))

    served = [planned, handoff, again, later, compacted]
    assert [s.phase for s in served] == ["planning", *["executing"] * 4]
    assert [b"Carry on." in s.outgoing.body for s in served] == [False, True, True, False, False]
    assert compacted.reason == "latched"


async def test_planners_reasoning_goes_up_to_the_turn_of_the_edit(wire_format: WireFormat) -> None:
    harness = plan_execute_harness(wire_format, options=OPTIONS, other_origin=True)
    told = conversation(wire_format).user("fix").reasoning("plan", encrypted="SECRET-1")
    told = told.says(BLOCK).user("applied").reasoning("own", encrypted="SECRET-2").says("Next.")

    for session in (None, "s", "s"):
        served = await harness.ask(told.user("go on").request(session=session))

        assert b"SECRET-1" not in served.outgoing.body
        assert b"SECRET-2" in served.outgoing.body


async def test_handoff_on_chooses_among_the_labels_of_texts(wire_format: WireFormat) -> None:
    options = f'{OPTIONS}handoff_on = ["file_write_other"]'
    harness = plan_execute_harness(wire_format, options=options)
    told = conversation(wire_format).user("fix").says(BLOCK).user("applied")

    source = await harness.ask(told.request())
    plan = await harness.ask(told.says(BLOCK.replace("calc.py", "plan.md")).user("ok").request())

    assert [source.phase, plan.phase] == ["planning", "executing"]


async def test_plan_review_hands_off_on_an_edit_in_a_text(wire_format: WireFormat) -> None:
    text = (POLICY.parent / "plan_review.toml").read_text()
    text = text.replace('format = "openai_chat"', f'format = "{wire_format}"')
    rules = 'type = "plan_review"\nmutation_rules = ["text_edits"]'
    harness = Harness(text.replace('type = "plan_review"', rules), plugins=PLUGINS)
    told = conversation(wire_format).user("fix").says(BLOCK).user("applied")

    decided = await harness.decide(told.request("switchyard/plan-review", session="s"))

    assert (decided.phase, decided.reason.code) == ("executing", "mutation_in_history")
    assert decided.reason.detail.endswith("character 0 edits a file")


async def test_explanation_shows_the_edit_and_its_place() -> None:
    told = conversation("openai_chat").user("fix").reads("read_file", path="a").says(BLOCK)
    harness = plan_execute_harness("openai_chat", options=OPTIONS)

    text = (await harness.explain(told.user("applied").request())).as_text()

    assert "calls     1 in the history; edits in texts: 1\n" in text
    assert (
        "          text at $.messages[3], character 0: file_edit by text_edits/search-replace, "
        "word `calc.py`: writes calc.py\n"
    ) in text
