"""The public object, as the specification's example uses it."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from switchyard_core import PolicyError, Request, Switchyard
from switchyard_core.testing import FakeUpstream, conversation
from switchyard_core.world import World

POLICY = Path(__file__).parents[1] / "policies" / "plan_execute.toml"


@pytest.fixture
def upstream() -> FakeUpstream:
    return FakeUpstream()


@pytest.fixture
def yard(upstream) -> Switchyard:
    return Switchyard.from_policy(
        POLICY, connect=lambda _client: upstream, world=World(environ={"OPENAI_API_KEY": "k"})
    )


async def test_example_of_the_specification_runs(yard):
    story = conversation("openai_responses").user("fix").edits("edit_file", path="a.py")
    headers = {"session-id": "s"}
    request = Request(wire_format="openai_responses", body=story.build(), headers=headers)

    decision = await yard.decide(request)
    outgoing = yard.rewrite(request, decision)
    response = await yard.handle(request)
    answer = await response.read()

    assert (decision.target, decision.phase) == ("executor", "executing")
    assert decision.reason.code == "mutation_in_history"
    assert (outgoing.wire_format, outgoing.path) == ("openai_responses", "/v1/responses")
    assert json.loads(outgoing.body)["model"] == "provider/efficient-model"
    assert all(name != "authorization" for name, _ in outgoing.headers)
    assert response.status == 200
    assert json.loads(answer)["object"] == "response"


async def test_finish_frees_a_slot_for_hosts_that_call_the_model_themselves(yard):
    story = conversation("openai_responses").user("fix").edits("edit_file", path="a.py")
    store = yard.runtimes["plan_execute"].store
    await yard.decide(story.request(session="s"))

    await yard.finish(await yard.decide(story.request(session="s", final=True)), True)

    assert await store.count() == 0


async def test_explain_changes_nothing(yard, upstream):
    story = conversation("openai_responses").user("fix").edits("edit_file", path="a.py")

    explained = await yard.explain(story.request(session="s"))

    assert explained.decision.target == "executor"
    assert await yard.runtimes["plan_execute"].store.count() == 0
    assert upstream.requests == []


async def test_asgi_serves_in_process(yard):
    transport = httpx.ASGITransport(app=yard.asgi())
    body = conversation("openai_responses").user("hi").body()

    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        response = await client.post(
            "/v1/responses", content=body, headers={"content-type": "application/json"}
        )

    assert response.headers["x-switchyard-phase"] == "planning"


async def test_aclose_closes_the_connections(yard, upstream):
    await (await yard.handle(conversation("openai_responses").user("hi").request())).read()

    await yard.aclose()

    assert upstream.closed


def test_broken_policy_raises_with_all_findings(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text("schema_version = 2\nx = 1\n[targets]\n")

    with pytest.raises(PolicyError) as caught:
        Switchyard.from_policy(path)

    assert len(caught.value.findings) >= 3


def test_broken_script_is_refused_when_the_policy_is_loaded(tmp_path):
    (tmp_path / "s.json").write_text("{}")
    text = (
        'schema_version = 1\n[llm_clients.c]\nformat = "scripted"\nspeaks = "openai_chat"\n'
        'script = "s.json"\n[targets.t]\nid = "m"\nllm_client = "c"\n[routes.r]\nid = "r"\n'
        'type = "noop"\ntarget = "t"\n'
    )

    with pytest.raises(PolicyError, match=r"s\.json"):
        Switchyard.from_policy_text(text, base_dir=tmp_path)


def test_loading_a_policy_never_reads_the_environment(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    assert Switchyard.from_policy(POLICY).policy.clients["provider"].api_key_env == "OPENAI_API_KEY"


async def test_test_runs_the_tests_of_the_policy_and_changes_nothing(yard, upstream):
    results = await yard.test(POLICY.with_suffix(".test.toml"))

    assert {case.state for case in results} == {"PASS"}
    assert await yard.runtimes["plan_execute"].store.count() == 0
    assert upstream.requests == []


async def test_test_of_a_file_with_mistakes_raises_them(yard, tmp_path):
    path = tmp_path / "any.test.toml"
    path.write_text('[[cases]]\nname = "one"\nrequest = "{}"\nexpect = {}\n')

    with pytest.raises(PolicyError) as caught:
        await yard.test(path)

    assert [finding.code for finding in caught.value.findings] == ["SY606", "SY607"]
