"""A history with everything that another provider refuses, handed over across wire formats."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from switchyard_core import Headers, Request, WireFormat
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.testing import FakeUpstream, Served, validity_problems
from switchyard_core.wire import FORMATS, WIRE_FORMATS
from switchyard_core.wire.neutral import Call, Media, NeutralRequest, Result, Words
from tests.plan_execute.test_translated import STRICT
from tests.support.awkward import AWKWARD, PICTURES
from tests.support.policies import PLANNING_PROMPT, ROUTE, plan_execute_harness

#: What a provider answers, and the providers of each format that an executor may be at.
TAKERS = [
    *((spoken, *STRICT[spoken]) for spoken in WIRE_FORMATS),
    ("openai_chat", "openai", "gpt-5.4"),
    ("openai_chat", "deepseek", "deepseek-v4-pro"),
    ("openai_chat", "mistral", "devstral-medium-latest"),
    ("openai_chat", "gemini", "gemini-3.1-pro"),
    ("anthropic_messages", "anthropic", "claude-haiku-4-5"),
    ("anthropic_messages", "anthropic", "claude-fable-5-1"),
]
#: Without it, Anthropic takes no edits of the context.
BETA = "context-management-2025-06-27"


def request(name: str) -> Request:
    caller, body = AWKWARD[name]
    asked = json.dumps({"model": ROUTE, **body}).encode()
    headers = Headers((("x-switchyard-session-id", "s"), ("anthropic-beta", BETA)))
    return Request(wire_format=caller, body=asked, headers=headers)


async def handed_over(name: str, spoken: WireFormat, strict: str, model: str) -> Served:
    """Return what an executor got of the history."""
    world = plan_execute_harness(
        AWKWARD[name][0],
        options='on_origin_bound = "drop"',
        other_origin=True,
        formats={"executor": spoken},
        ids={"executor": model},
        upstream=FakeUpstream(strict={"executor": strict}),
    )
    return await world.ask(request(name))


def said(asked: NeutralRequest) -> Iterator[tuple[str, Any]]:
    """Yield what a request has of the history's own, in no order, with ids told apart."""
    for words in asked.instructions:
        yield from (("text", marker) for marker in re.findall(r"T-\w+", words.text))
    for part in (part for turn in asked.turns for part in turn.parts):
        if isinstance(part, Words):
            yield from (("text", marker) for marker in re.findall(r"[TR]-\w+", part.text))
        elif isinstance(part, Media):
            yield "image", PICTURES.index(part.url)
        elif isinstance(part, Call):
            yield "call", (part.tool.name, json.loads(part.arguments or "{}").get("path"))
        elif isinstance(part, Result):
            for inner in part.parts:
                if isinstance(inner, Media):
                    yield "image", PICTURES.index(inner.url)
                else:
                    markers = re.findall(r"R-\w+", inner.text)
                    yield from (("result", marker) for marker in markers)


#: Texts that a history has not got.
MISSING = {"responses_continued": "T-trailing"}
#: What arrives, whatever the formats.
KEPT = sorted(
    [
        *(("text", f"T-{word}") for word in ("system", "developer", "ask", "look", "again")),
        ("text", "T-trailing"),
        *(("image", number) for number in range(len(PICTURES))),
        *(("call", ("read_file", path)) for path in ("A-one", "A-two")),
        *(("call", ("run_tests", None)),) * 2,
        ("call", ("edit_file", "A-edit")),
        *(("result", f"R-{word}") for word in ("one", "two", "edit")),
    ],
    key=str,
)


@pytest.mark.parametrize("name", AWKWARD)
async def test_nothing_that_a_provider_refuses_remains_and_nothing_else_is_lost(name):
    problems = []
    for spoken, strict, model in TAKERS:
        served = await handed_over(name, spoken, strict, model)
        pair = f"{name} to {model} at {strict} ({spoken})"
        if served.status != 200 or served.target != "executor":
            problems.append(f"{pair}: {served.target} {served.status} {served.answer.decode()}")
        if not served.sent:
            continue
        sent = served.outgoing.body
        problems += [f"{pair}: {each}" for each in validity_problems(spoken, sent)]
        problems += [f"{pair}: {seal} remains" for seal in re.findall(rb"SEAL-\w+", sent)]
        arrived = sorted(said(FORMATS[spoken].neutral(ObjectText(sent))), key=str)
        wanted = [each for each in KEPT if each[1] != MISSING.get(name)]
        if strict == "deepseek":
            # Its profile says in words what it cannot see.
            wanted = [each for each in wanted if each[0] != "image"]
        if arrived != wanted:
            lost = [each for each in wanted if each not in arrived]
            problems.append(f"{pair}: lost {lost}, sent {arrived}")

    assert problems == []


@pytest.mark.parametrize("name", AWKWARD)
async def test_results_are_those_of_their_calls(name):
    problems = []
    for spoken, strict, model in TAKERS:
        served = await handed_over(name, spoken, strict, model)
        if not served.sent:
            problems.append(f"{spoken} at {strict}: {served.message}")
            continue
        asked = FORMATS[spoken].neutral(ObjectText(served.outgoing.body))
        parts = [part for turn in asked.turns for part in turn.parts]
        paths = {
            part.id: json.loads(part.arguments or "{}").get("path")
            for part in parts
            if isinstance(part, Call)
        }
        answers = {part.call_id: part for part in parts if isinstance(part, Result)}
        if set(paths) != set(answers) or len(paths) != 5:
            problems.append(f"{spoken} at {strict}: {sorted(paths)} have {sorted(answers)}")
            continue
        for call_id, path in paths.items():
            told = "".join(p.text for p in answers[call_id].parts if isinstance(p, Words))
            wanted = f"R-{path.removeprefix('A-')}" if path else ""
            if wanted not in told or (not wanted and "R-" in told):
                problems.append(f"{spoken} at {strict}: {path} has {told!r}")

    assert problems == []


@pytest.mark.parametrize(("name", "spoken"), [*product(AWKWARD, WIRE_FORMATS)])
async def test_planner_gets_the_history_as_it_came(name, spoken):
    caller = AWKWARD[name][0]
    world = plan_execute_harness(
        caller,
        formats={"executor": spoken},
        executor='context_window = 10\non_overflow = "stay"',
    )
    asked = request(name)

    served = await world.ask(asked)

    assert served.target == "planner"
    before, after = ObjectText(asked.body), ObjectText(served.outgoing.body)
    changed = {key for key in {*before.keys(), *after.keys()} if before.raw(key) != after.raw(key)}
    place = FORMATS[caller].instructions_key or FORMATS[caller].history_key
    assert changed == {"model", place}
    # The instruction alone was put in.
    given, planned = before.raw(place).decode(), after.raw(place).decode()
    begin = next(n for n, (old, new) in enumerate(zip(given, planned, strict=False)) if old != new)
    added = len(planned) - len(given)
    assert planned[:begin] + planned[begin + added :] == given
    assert PLANNING_PROMPT in planned[max(begin - 5, 0) : begin + added + 5]
