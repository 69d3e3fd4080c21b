from __future__ import annotations

import json

import pytest

import switchyard_demo_routers
from switchyard_core import Request, Switchyard
from switchyard_core.explain import explain
from switchyard_core.jsonio.printing import pretty
from switchyard_core.testing import Harness, conversation
from switchyard_core.wire import FORMATS, WIRE_FORMATS
from switchyard_core.world import World
from tests.server.servers import body, policy


async def explained(wire_format, content, *, headers=None, **more):
    yard = Switchyard.from_policy_text(
        policy(wire_format, "http://x", **more), world=World(environ={})
    )
    request = Request(wire_format=wire_format, body=content, headers=headers or {})
    return await explain(yard, request)


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_text_tells_the_chain_and_the_diff_of_the_very_bytes(wire_format):
    found = await explained(
        wire_format,
        body(wire_format, edited=True),
        headers={"x-switchyard-session-id": "s-1"},
        route='handoff_prompt = "Carry it out."',
    )
    text = found.as_text()
    assert "route     coding (plan_execute)\n" in text
    assert "identity  session s-1 from header:x-switchyard-session-id\n" in text
    assert "calls     1 in the history\n" in text
    assert ": file_edit by coding_agents/" in text
    assert "latch     not latched -> latched\n" in text
    assert "target    executor (small-model), executing\n" in text
    assert "reason    mutation_in_history: " in text
    assert "rewrite   append_user_text\n" in text
    assert '-  "model": "coder",' in text
    assert '+  "model": "small-model",' in text
    assert "Carry it out." in text
    assert "\x1b[" not in text


async def test_text_without_identity_and_calls_says_so():
    text = (await explained("openai_chat", body("openai_chat"))).as_text()
    assert "identity  none: nothing is stored for this request\n" in text
    assert "calls     0 in the history\n" in text
    assert "latch     not latched -> not latched\n" in text


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_text_says_where_the_workspace_is_and_from_where_that_is_known(wire_format):
    content = body(wire_format, edited=True)
    unknown = (await explained(wire_format, content)).as_text()
    content = content.replace(b'"content":"fix', b'"content":"<cwd>/repo</cwd> fix', 1)
    known = (await explained(wire_format, content, route='workspace = ["~/proj"]')).as_text()

    assert "workspace not known\n" in unknown
    assert "workspace ~/proj (policy), /repo (prompt)\n" in known


async def test_color_marks_the_lines_of_the_diff():
    text = (await explained("openai_chat", body("openai_chat"))).as_text(color=True)
    assert '\x1b[31m-  "model": "coder",\x1b[0m' in text
    assert '\x1b[32m+  "model": "big-model",\x1b[0m' in text


async def test_diff_of_a_long_history_counts_lines_from_the_start():
    messages = [{"role": "user", "content": str(number)} for number in range(500)]
    content = json.dumps({"messages": messages, "model": "coder"}).encode()
    found = await explained("openai_chat", content, route='planning_prompt_position = "append"')
    lines = found.diff()
    heads = [line for line in lines if line.startswith("@@")]
    before, after = found.before.decode(), found.after.decode()
    assert heads[-1].split(" ")[1].startswith("-2")  # 500 messages of four lines each
    assert len(before) < len(after)
    number = int(heads[-1].split(" ")[1][1:].split(",")[0])
    first = lines[lines.index(heads[-1]) + 1][1:]
    assert pretty(found.before).split("\n")[number - 1] == first


async def test_json_is_plain_data_with_the_outgoing_body_as_text():
    content = body("openai_chat")
    found = (await explained("openai_chat", content)).as_json()
    assert json.loads(json.dumps(found)) == found
    assert set(found) == {
        "route", "target", "model", "phase", "reason", "identity", "warnings", "rewrites",
        "trace", "path", "url", "body",
    }  # fmt: skip
    assert found["path"] == "/v1/chat/completions"
    assert '"x":1.10' in found["body"]
    prompt = found["rewrites"][0]
    assert prompt["name"] == "insert_planning_prompt"
    assert prompt["parameters"]["text"] == "Plan first."
    assert len(prompt["changes"]) == 1
    assert prompt["skipped"] == ""


async def test_rewrite_that_a_target_switches_off_is_told():
    text = policy("openai_chat", "http://x").replace(
        'id = "big-model"', 'id = "big-model"\nrewrites = { insert_planning_prompt = false }'
    )
    yard = Switchyard.from_policy_text(text)
    request = Request(wire_format="openai_chat", body=body("openai_chat"))
    found = await explain(yard, request)
    assert "rewrite   insert_planning_prompt: switched off by the target\n" in found.as_text()


async def test_sub_agent_warnings_and_side_calls_are_told():
    found = await explained(
        "openai_responses",
        b'{"model":"coder","input":"go","previous_response_id":"r"}',
        headers={
            "x-switchyard-session-id": "s",
            "x-switchyard-agent-id": "a",
            "x-switchyard-is-subagent": "true",
        },
    )
    text = found.as_text()
    assert "agent a from header:x-switchyard-agent-id\n" in text
    assert "warning   history_missing: " in text


async def test_latched_session_says_that_its_calls_were_not_looked_at():
    yard = Switchyard.from_policy_text(policy("openai_chat", "http://x"))
    request = Request(
        wire_format="openai_chat",
        body=body("openai_chat", edited=True),
        headers={"x-switchyard-session-id": "s"},
    )
    await yard.decide(request)
    found = await explain(yard, request)
    text = found.as_text()
    assert "calls     not read\n" in text
    assert "latch     latched -> latched\n" in text
    assert found.as_json()["reason"]["code"] == "latched"


async def test_side_call_of_a_client_is_told():
    headers = {"user-agent": "opencode/1.18.33", "x-session-id": "s"}
    found = await explained("openai_chat", body("openai_chat"), headers=headers)
    assert "side call " in found.as_text()


async def test_body_that_needs_no_change_is_told():
    content = body("openai_chat").replace(b'"coder"', b'"small-model"')
    text = policy(
        "openai_chat", "http://x", top='default_route = "coding"', route="latch_capacity = 9"
    )
    yard = Switchyard.from_policy_text(text)
    edited = body("openai_chat", edited=True).replace(b'"coder"', b'"small-model"')
    same = await explain(yard, Request(wire_format="openai_chat", body=edited))
    changed = await explain(yard, Request(wire_format="openai_chat", body=content))
    assert "the outgoing body equals the caller's" in same.as_text()
    assert "the outgoing body equals the caller's" not in changed.as_text()


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_explanation_ends_with_the_url_that_the_request_goes_to(wire_format):
    call = FORMATS[wire_format].paths["create"]
    version = "/v1" if wire_format == "anthropic_messages" else ""
    for client, url in (
        ("", f"https://host.test/v1{call}"),
        ('paths = { create = "/v2/x" }', "https://host.test/v2/x"),
    ):
        yard = Switchyard.from_policy_text(policy(wire_format, "https://host.test", client=client))
        request = Request(wire_format=wire_format, body=body(wire_format))
        found = await yard.explain(request)

        assert f"sent to   POST {url}\n" in found.as_text()
        assert found.as_json()["url"] == url
    yard = Switchyard.from_policy_text(policy(wire_format, "https://host.test/a/b", client=""))
    found = await yard.explain(Request(wire_format=wire_format, body=body(wire_format)))
    assert found.url == f"https://host.test/a/b{version}{call}"


TRANSLATED = """
schema_version = 1
[llm_clients.c]
format = "openai_chat"
base_url = "https://chat.test/v1"
[targets.t]
id = "real"
llm_client = "c"
[routes.r]
id = "r"
type = "passthrough"
targets = ["t"]
"""


async def test_explanation_shows_the_translated_body_and_what_was_left_out() -> None:
    harness = Harness(TRANSLATED, plugins=[switchyard_demo_routers])
    asked = conversation("anthropic_messages").system("Be brief.").user("hi").request("r", top_k=5)
    found = await harness.explain(asked)
    told = found.as_text()
    (report,) = (each for each in found.as_json()["rewrites"] if each["name"] == "translate")

    assert "rewrite   translate" in told
    assert "translated from anthropic_messages to openai_chat" in report["changes"]
    assert any("top_k" in line for line in report["changes"])
    assert any(line.startswith("-") and '"system"' in line for line in told.splitlines())
    assert any(line.startswith("+") and '"system"' in line for line in told.splitlines())
    assert "sent to   POST https://chat.test/v1/chat/completions" in told


async def test_explanation_of_an_estimated_count_says_that_nothing_is_sent() -> None:
    harness = Harness(TRANSLATED, plugins=[switchyard_demo_routers])
    asked = conversation("anthropic_messages").user("hi").request("r")
    asked.endpoint = "count_tokens"
    found = await harness.explain(asked)

    assert (found.url, found.path) == ("", "")
    assert "sent to   nobody: the number of tokens is estimated" in found.as_text()
