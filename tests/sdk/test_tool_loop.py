"""A coding agent's loop driven by the SDKs: read, edit, finish."""

from __future__ import annotations

import json

import pytest

from tests.sdk.apis import TURNS, USER, edited, settled, through_helper
from tests.sdk.stand import EXECUTOR, PLANNER, PLANNING_PROMPT

SESSION = {"x-switchyard-session-id": "sdk-1"}


@pytest.mark.parametrize("way", ["create", "helper"])
@pytest.mark.parametrize("headers", [{}, SESSION], ids=["no_session", "session"])
async def test_loop_plans_before_the_edit_and_executes_after(api, connect, stand, way, headers):
    to = stand()
    client = connect(to)
    history, said, made = USER, [], []

    for _ in TURNS:
        arguments = api.ask(history, extra_headers=headers)
        if way == "create":
            answer = await settled(api.endpoint(client).create(**arguments))
        else:
            _, answer = await through_helper(api.helper(client, arguments), api.final)
        history = api.grown(history, answer)
        said.append(api.text(answer))
        made.append([call.name for call in api.calls(answer)])

    assert said == [turn["text"] for turn in TURNS]
    assert made == [["read_file"], ["edit_file"], []]
    assert to.models == [PLANNER, PLANNER, EXECUTOR]
    assert [record.turn for record in to.sent] == [0, 1, 2]
    prompts = [record.body.count(PLANNING_PROMPT.encode()) for record in to.sent]
    assert prompts == [1, 1, 0]
    assert await to.latched(api.wire_format) == (1 if headers else 0)


async def test_executor_gets_the_callers_body_with_nothing_changed_but_the_model(
    api, connect, stand
):
    to = stand()
    client = connect(to)
    history = await edited(api, client)
    arguments = api.ask(history)

    raw = await settled(api.endpoint(client).with_raw_response.create(**arguments))

    assert to.sent[-1].json() == arguments | {"model": EXECUTOR}
    assert list(to.sent[-1].json()) == list(json.loads(raw.http_request.content))
    assert raw.headers["x-switchyard-phase"] == "executing"
    assert raw.headers["x-switchyard-reason"] == "mutation_in_history"


async def test_session_stays_on_the_executor_after_compaction(api, connect, stand):
    to = stand()
    client = connect(to)
    history = USER
    for _ in TURNS:
        answer = await settled(
            api.endpoint(client).create(**api.ask(history, extra_headers=SESSION))
        )
        history = api.grown(history, answer)

    await settled(api.endpoint(client).create(**api.ask(USER, extra_headers=SESSION)))
    await settled(api.endpoint(client).create(**api.ask(USER)))

    assert to.models[3:] == [EXECUTOR, PLANNER]


async def test_final_request_frees_the_slot(api, connect, stand):
    to = stand(route="latch_capacity = 1")
    client = connect(to)
    history = await edited(api, client)
    await settled(api.endpoint(client).create(**api.ask(history, extra_headers=SESSION)))

    final = SESSION | {"x-switchyard-session-final": "true"}
    raw = await settled(
        api.endpoint(client).with_raw_response.create(**api.ask(USER, extra_headers=final))
    )
    # Another session finds the slot free.
    other = {"x-switchyard-session-id": "sdk-2"}
    await settled(api.endpoint(client).create(**api.ask(history, extra_headers=other)))
    await settled(api.endpoint(client).create(**api.ask(USER, extra_headers=SESSION)))

    assert raw.headers["x-switchyard-phase"] == "executing"
    assert to.models[2:] == [EXECUTOR, EXECUTOR, EXECUTOR, PLANNER]
    sent = [name for record in to.sent for name, _ in record.headers]
    assert not any(name.startswith("x-switchyard") for name in sent)


async def test_subagent_is_told_from_its_parent(api, connect, stand):
    to = stand()
    client = connect(to)
    history = await edited(api, client)
    agent = SESSION | {
        "x-switchyard-is-subagent": "true",
        "x-switchyard-agent-id": "worker-1",
    }

    await settled(api.endpoint(client).create(**api.ask(history, extra_headers=agent)))
    await settled(api.endpoint(client).create(**api.ask(USER, extra_headers=agent)))
    await settled(api.endpoint(client).create(**api.ask(USER, extra_headers=SESSION)))

    assert to.models[2:] == [EXECUTOR, EXECUTOR, PLANNER]
