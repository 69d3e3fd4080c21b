"""What the SDKs make of an answer through switchyard is what the provider sent."""

from __future__ import annotations

import json

from pydantic import BaseModel

from tests.sdk.apis import TURNS, USER, items, settled, through_helper
from tests.sdk.stand import PLANNER, PLANNING_PROMPT, UPSTREAM_KEY, events_of, route_id


def valid(value: BaseModel) -> None:
    """Hold an SDK object against its own type, each warning being an error."""
    type(value).model_validate(value.model_dump(mode="json", by_alias=True, warnings="error"))


def named(api, to) -> bytes:
    """Return what the provider says; an answer of Messages names the model that was asked for."""
    said = to.said(to.sent[0])
    if api.wire_format != "anthropic_messages":
        return said
    return said.replace(PLANNER.encode(), route_id(api.wire_format).encode(), 1)


async def test_create_gives_the_providers_answer(api, connect, stand):
    to = stand()

    answer = await settled(api.endpoint(connect(to)).create(**api.ask(USER)))

    valid(answer)
    assert answer.to_dict(mode="json") == json.loads(named(api, to))
    assert api.text(answer) == TURNS[0]["text"]
    assert [(call.name, call.arguments) for call in api.calls(answer)] == [
        ("read_file", {"path": "calc.py"})
    ]
    assert to.models == [PLANNER]


async def test_create_sends_the_callers_body_with_model_and_prompt(api, connect, stand):
    to = stand()

    await settled(
        api.endpoint(connect(to)).create(**api.ask(USER, extra_body={"future_field": {"a": [1.5]}}))
    )

    record = to.sent[0]
    sent = record.json()
    assert sent["future_field"] == {"a": [1.5]}
    assert sent["tools"] == api.ask(USER)["tools"]
    assert record.body.count(PLANNING_PROMPT.encode()) == 1
    assert UPSTREAM_KEY in f"{record.header('authorization')} {record.header('x-api-key')}"
    assert not any("callers-key" in value for _, value in record.headers)


async def test_create_stream_gives_the_providers_events(api, connect, stand):
    to = stand()
    more = {"stream_options": {"include_usage": True}} if api.wire_format == "openai_chat" else {}

    events = await items(api.endpoint(connect(to)).create(**api.ask(USER, stream=True, **more)))

    for event in events:
        valid(event)
    assert [e.to_dict(mode="json") for e in events] == events_of(named(api, to))
    assert len(events) > 5
    assert to.sent[0].outcome == "answered"


async def test_stream_helper_builds_the_whole_answer(api, connect, stand):
    to = stand()
    client = connect(to)
    whole = await settled(api.endpoint(client).create(**api.ask(USER)))

    events, final = await through_helper(api.helper(client, api.ask(USER)), api.final)

    assert len(events) > 5
    assert api.text(final) == api.text(whole) == TURNS[0]["text"]
    assert [(c.name, c.arguments) for c in api.calls(final)] == [
        (c.name, c.arguments) for c in api.calls(whole)
    ]
    assert final.usage == whole.usage
    assert to.models == [PLANNER, PLANNER]
    assert [record.stream for record in to.sent] == [False, True]


async def test_raw_response_shows_what_was_decided(api, connect, stand):
    to = stand()

    raw = await settled(api.endpoint(connect(to)).with_raw_response.create(**api.ask(USER)))
    answer = await settled(raw.parse())

    about = {k: v for k, v in raw.headers.items() if k.startswith(("x-switchyard", "x-model"))}
    assert about.pop("x-switchyard-request-id")
    assert about == {
        "x-switchyard-route": api.wire_format,
        "x-switchyard-target": f"{api.wire_format}_planner",
        "x-switchyard-phase": "planning",
        "x-switchyard-reason": "no_mutation",
        "x-model-router-selected-model": PLANNER,
    }
    assert raw.http_response.content == named(api, to)
    assert api.text(answer) == TURNS[0]["text"]


async def test_request_id_of_the_provider_reaches_the_sdk(api, connect, stand):
    to = stand()

    answer = await settled(api.endpoint(connect(to)).create(**api.ask(USER)))

    assert answer._request_id.startswith("req_")
