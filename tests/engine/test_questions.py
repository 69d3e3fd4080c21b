"""Explaining a router that asks a model: with canned replies, and without."""

from __future__ import annotations

import json

import pytest

from switchyard_core.answering import ModelCall
from switchyard_core.explain.explanation import Explanation, Question, explain_or_ask
from switchyard_core.server.app import SwitchyardApp
from switchyard_core.testing import Harness, conversation
from tests.support.policies import PLUGINS, one_route, one_route_harness

ROUTE = """\
type = "llm_classifier"
judge_target = "judge"
strong_target = "large"
weak_target = "small"
judge_prompt = "Judge this."
"""
WEAK = '{"strong": false, "why": "small"}'
CALL = ModelCall(text="?")


@pytest.fixture
def harness():
    text = one_route("openai_chat", ROUTE)
    return Harness(text, plugins=PLUGINS)


def request(text="rename x", **settings):
    return conversation("openai_chat").user(text).request("main", **settings)


async def test_without_a_reply_the_explanation_ends_with_the_question(harness):
    found = await explain_or_ask(harness.engine, request())

    assert isinstance(found, Question)
    assert found.as_text() == (
        "route     main (llm_classifier)\n"
        "would ask judge (provider/judge)\n"
        "          | Judge this.\n"
        "          | rename x\n"
        "          give its reply: --reply judge=FILE\n"
    )
    would = found.as_json()["would_ask"]
    assert (would["target"], would["text"]) == ("judge", "rename x")
    assert would["schema"]["required"] == ["strong", "why"]
    assert json.loads(json.dumps(found.as_json())) == found.as_json()
    assert harness.upstream.requests == []


@pytest.mark.parametrize(
    ("mode", "line"),
    [
        ("json_schema", ""),
        ("forced_tool", "          must answer with the tool {name}\n"),
        ("prompt", "          gets the schema of the answer in its instructions\n"),
    ],
)
async def test_question_tells_how_the_target_is_made_to_answer(mode, line):
    text = one_route("openai_chat", ROUTE)
    judge = 'id = "provider/judge"\n'
    text = text.replace(judge, f'{judge}structured_output = "{mode}"\n')

    found = await explain_or_ask(Harness(text, plugins=PLUGINS).engine, request())

    assert isinstance(found, Question)
    assert found.as_json()["would_ask"]["structured_output"] == mode
    told = line.format(name=found.call.schema_name)
    assert f"          | rename x\n{told}          give its reply" in found.as_text()


async def test_question_without_a_schema_tells_no_way_of_answering(harness):
    class Asking:
        async def route(self, request, context):
            await context.ask("judge", CALL)

    harness.engine.runtimes["main"].router = Asking()

    found = await explain_or_ask(harness.engine, request())

    assert found.as_json()["would_ask"]["structured_output"] is None
    assert "made to answer" not in found.as_text()


async def test_with_a_reply_the_explanation_goes_on_and_tells_it(harness):
    found = await explain_or_ask(harness.engine, request(session="s"), {"judge": [WEAK]})

    assert isinstance(found, Explanation)
    assert (found.decision.target, found.decision.reason.code) == ("small", "judged")
    assert f"asked     judge: {WEAK}\n" in found.as_text()
    assert found.as_json()["trace"]["asked"] == [
        {"target": "judge", "text": "rename x", "reply": WEAK}
    ]
    assert await harness.engine.runtimes["main"].store.count() == 0


async def test_replies_of_another_target_do_not_count(harness):
    found = await explain_or_ask(harness.engine, request(), {"large": [WEAK]})

    assert isinstance(found, Question)


async def test_replies_are_played_in_order_and_the_last_one_stays(harness):
    class Asking:
        async def route(self, request, context):
            for _ in range(3):
                await context.ask("judge", CALL)
            await context.ask("large", CALL)

    harness.engine.runtimes["main"].router = Asking()

    found = await explain_or_ask(harness.engine, request(), {"judge": ["one", "two"]})

    assert isinstance(found, Question)
    assert [each["reply"] for each in found.asked] == ["one", "two", "two"]
    assert "asked     judge: one\nasked     judge: two\n" in found.as_text()
    assert found.target == "large"


async def test_router_that_asks_nobody_is_explained_as_ever(harness):
    text = one_route("openai_chat", 'type = "noop"\ntarget = "small"\n')

    found = await explain_or_ask(Harness(text, plugins=PLUGINS).engine, request())

    assert isinstance(found, Explanation)
    assert "asked" not in found.decision.trace


async def test_decision_endpoint_answers_with_the_question():
    w = one_route_harness("openai_chat", route=ROUTE)
    asked = {"input_format": "openai_chat", "request": json.loads(request().body)}

    async with w.client() as client:
        answer = await client.post("/v1/decision", json=asked)

    assert (answer.status_code, answer.json()["would_ask"]["target"]) == (200, "judge")
    assert w.upstream.requests == []


async def test_dry_run_of_the_server_answers_with_the_question():
    w = one_route_harness("openai_chat", route=ROUTE)
    w.app = SwitchyardApp(w.engine, dry_run=True)

    async with w.client() as client:
        answer = await client.post("/v1/chat/completions", json=json.loads(request().body))

    assert (answer.status_code, answer.json()["would_ask"]["target"]) == (200, "judge")
    assert "x-switchyard-target" not in answer.headers
    assert w.upstream.requests == []
