"""What of a caller's request reaches which model, and how the answer is told and streamed."""

from __future__ import annotations

import asyncio
import json

import anthropic
import openai
import pytest

from tests.planner_executor.gate_world import (
    LANES,
    PLAN,
    PRICES,
    ROUTE,
    Caller,
    Say,
    Shop,
    calls,
    lanes,
    plan_of,
)

TOOLS = {
    "openai_chat": [{"type": "function", "function": {"name": "edit", "parameters": {}}}],
    "openai_responses": [{"type": "function", "name": "edit", "parameters": {}}],
    "anthropic_messages": [{"name": "edit", "input_schema": {"type": "object"}}],
}
PNG = "data:image/png;base64,iVBORw0KGgo="


def with_system(caller, text):
    """Return what a request has to have to give instructions."""
    if caller == "openai_chat":
        told = [{"role": "system", "content": text}, {"role": "user", "content": "TASKWORD"}]
        return {"messages": told}
    return {"instructions" if caller == "openai_responses" else "system": text}


def with_picture(caller):
    """Return the content of a message with a picture."""
    if caller == "openai_chat":
        picture = {"type": "image_url", "image_url": {"url": PNG}}
        return [{"type": "text", "text": "TASKWORD"}, picture]
    if caller == "openai_responses":
        picture = {"type": "input_image", "image_url": PNG, "detail": "auto"}
        return [{"type": "input_text", "text": "TASKWORD"}, picture]
    source = {"type": "base64", "media_type": "image/png", "data": PNG.partition(",")[2]}
    return [{"type": "text", "text": "TASKWORD"}, {"type": "image", "source": source}]


def sent_to(shop, role):
    """Return the bytes of all calls to one model."""
    return b"".join(each.body for each in shop.models.sent if each.role == role)


@lanes
async def test_tools_of_the_caller_are_refused_or_left_out_with_a_warning(lane):
    tools = TOOLS[lane[0]]
    shop = Shop(lane)
    refused = await shop.ask(tools=tools)
    assert (refused.status, refused.code) == (400, "caller_tools_unsupported")
    assert shop.models.sent == []

    ignoring = Shop(lane, 'caller_tools = "ignore"')
    answer = await ignoring.ask(tools=tools)
    assert answer.warnings == ["caller_tools_ignored"]
    assert all(b"edit" not in each.body for each in ignoring.models.sent)


@lanes
async def test_instructions_of_the_caller_are_dropped_or_for_the_executor(lane):
    said = with_system(lane[0], "HOUSEWORD")
    dropping, keeping = Shop(lane), Shop(lane, 'caller_instructions = "executor"')

    dropped, kept = await dropping.ask(**said), await keeping.ask(**said)

    assert dropped.warnings == ["caller_instructions_dropped"]
    assert all(b"HOUSEWORD" not in each.body for each in dropping.models.sent)
    assert kept.warnings == []
    assert b"HOUSEWORD" not in sent_to(keeping, "planner")
    assert sent_to(keeping, "executor").count(b"HOUSEWORD") == 3


@lanes
async def test_planner_sees_the_conversation_only_if_it_should(lane):
    told = [
        {"role": "user", "content": "EARLIERWORD"},
        {"role": "assistant", "content": "ANSWERWORD"},
        {"role": "user", "content": "TASKWORD"},
    ]
    alone, whole = Shop(lane), Shop(lane, 'planner_sees = "conversation"')

    await alone.ask(messages=told)
    await whole.ask(messages=told)

    assert b"TASKWORD" in sent_to(alone, "planner")
    assert b"EARLIERWORD" not in sent_to(alone, "planner")
    (body,) = whole.models.asked("planner")
    key = "input" if whole.target == "openai_responses" else "messages"
    turns = [item for item in body[key] if item["role"] not in ("system", "developer")]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    words = [json.dumps(turn) for turn in turns]
    for word, text in zip(("EARLIERWORD", "ANSWERWORD", "TASKWORD"), words, strict=True):
        assert word in text
    for shop in (alone, whole):
        assert not any(
            word in sent_to(shop, "executor") for word in (b"EARLIER", b"ANSWERW", b"TASKWORD")
        )


@lanes
async def test_pictures_go_to_the_planner_alone(lane):
    shop = Shop(lane)

    await shop.ask(messages=[{"role": "user", "content": with_picture(lane[0])}])

    assert b"iVBORw0KGgo=" in sent_to(shop, "planner")
    assert b"iVBORw0KGgo=" not in sent_to(shop, "executor")


@lanes
async def test_sampling_and_limits_go_to_the_executor_alone(lane):
    limit = {
        "openai_chat": "max_completion_tokens",
        "openai_responses": "max_output_tokens",
        "anthropic_messages": "max_tokens",
    }
    shop = Shop(lane)

    await shop.ask(**{"temperature": 0.25, limit[lane[0]]: 77})

    (planner,), executor = shop.models.asked("planner"), shop.models.asked("executor")
    assert "temperature" not in planner
    assert planner[limit[shop.target]] == 4096
    for body in executor:
        assert body["temperature"] == 0.25
        assert body[limit[shop.target]] == 77


@lanes
async def test_fault_of_a_plan_is_sent_back_as_often_as_allowed(lane):
    bad = Say(plan_of("one", first=2))
    shop = Shop(lane, "planner_retries = 1", planner=[bad, Say(PLAN)])

    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    second = [each for each in shop.models.sent if each.role == "planner"][1]
    assert b"TASKWORD" in second.body
    assert b"numbered 2; they must be 1" in second.body
    assert answer.extension["usage"]["planner"]["input_tokens"] == 200

    worse = Shop(lane, "planner_retries = 1", planner=[bad] * 3)
    refused = await worse.ask()
    assert (refused.status, refused.code) == (502, "plan_unusable")
    assert len(worse.models.sent) == 2


# --- the answer ------------------------------------------------------------------------------


@lanes
async def test_last_step_is_the_whole_text(lane):
    says = [Say("one"), Say("two"), Say("THREE")]
    shop = Shop(lane, 'answer = "last_step"', executor=says)

    answer = await shop.ask()

    assert answer.text == "THREE\n\n"
    assert [step["result"] for step in answer.extension["steps"]] == ["one", "two", "THREE"]
    assert answer.extension["plan"]["goal"] == "GOALWORD"


@lanes
async def test_last_step_that_failed_says_so(lane):
    shop = Shop(lane, 'answer = "last_step"', executor=[Say("one"), Say(refusal="no")])

    answer = await shop.ask()

    assert "Step 2 failed: the executor refused" in answer.text


async def stream_until(shop, seen):
    """Ask for a stream whose first executor call is held back until the stream holds a text."""
    gate = asyncio.Event()

    async def hold(outgoing):
        if outgoing.role == "executor":
            await gate.wait()

    shop.models.before = hold
    caller = Caller(shop.app, shop.request(stream=True))
    async with asyncio.timeout(5):
        while seen not in (got := b"".join(m.get("body", b"") for m in caller.messages)):  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.001)
    gate.set()
    await caller.task
    return caller, got


@lanes
async def test_silent_stream_has_signs_of_life(lane):
    shop = Shop(lane, "keepalive_s = 0.005")

    caller, before = await stream_until(shop, b"\n: ")

    assert caller.messages[0]["status"] == 200
    assert b"GOALWORD" in before
    # None while the planner works: nothing is sent then, not even headers.
    assert before.index(b"GOALWORD") < before.index(b"\n: ")


@lanes
async def test_stream_of_the_last_step_begins_with_the_plan_too(lane):
    shop = Shop(lane, 'keepalive_s = 0.005\nanswer = "last_step"', executor=[Say("a")] * 3)

    caller, before = await stream_until(shop, b": ")

    headers = dict(caller.messages[0]["headers"])
    assert headers[b"x-switchyard-phase"] == b"running"
    assert headers[b"x-switchyard-plan-id"]
    assert b"find tripods" not in before


@lanes
async def test_progress_is_told_in_comments_alone(lane):
    shop = Shop(lane, "progress_events = true", executor=[calls("look")])
    quiet = Shop(lane, executor=[calls("look")])

    loud = (await shop.ask(stream=True)).body["stream"]
    silent = (await quiet.ask(stream=True)).body["stream"]

    comments = [line[1:] for line in loud.splitlines() if line.startswith(":")]
    events = [json.loads(line)["event"] for line in comments]
    assert events[:2] == ["plan_created", "step_started"]
    assert events[-1] == "run_finished"
    assert {"tool_called", "tool_returned", "step_finished"} <= set(events)
    assert not any(line.startswith(":") for line in silent.splitlines())
    rest = [line for line in loud.splitlines() if line and not line.startswith(":")]
    # All but the milliseconds of the tool, which are measured.
    assert len(rest) == len([line for line in silent.splitlines() if line])


# --- cost ------------------------------------------------------------------------------------


@lanes
async def test_plan_over_the_limit_is_refused_before_any_step(lane):
    shop = Shop(lane, "max_cost_usd = 0.01", prices=PRICES)

    refused = await shop.ask()

    assert (refused.status, refused.code) == (400, "plan_too_costly")
    assert refused.headers["x-should-retry"] == "false"
    assert refused.error["estimate"]["cost_usd"]["high"] > 0.01
    assert shop.models.asked("executor") == []
    given = await shop.ask(switchyard={"plan": PLAN})
    assert given.code == "plan_too_costly"
    assert shop.models.asked("executor") == []


@lanes
async def test_plan_below_the_limit_runs(lane):
    shop = Shop(lane, "max_cost_usd = 1000", prices=PRICES)

    assert (await shop.ask()).extension["status"] == "completed"


@lanes
async def test_limit_that_sank_meanwhile_refuses_an_approval(lane):
    shop = Shop(lane, 'approval = "always"\nmax_cost_usd = 1000', prices=PRICES)
    plan = await shop.ask()

    await shop.reload('approval = "always"\nmax_cost_usd = 0.01')
    refused = await shop.go_on("approve", plan)

    assert refused.code == "plan_too_costly"
    assert shop.models.asked("executor") == []


@lanes
async def test_actual_stands_beside_expected(lane):
    shop = Shop(lane, executor=[calls("look")])

    answer = await shop.ask()

    found = answer.extension["estimate"]
    assert found["actual"] == {"calls": 4, "input_tokens": 400, "output_tokens": 40}
    assert found["calls"]["expected"] == 4
    assert found["cost_usd"] is None
    assert "no price" in answer.text
    expected = found["input_tokens"]["expected"]
    assert f"400 input tokens (expected {expected:,})" in answer.text


# --- official SDKs ---------------------------------------------------------------------------


def sdk_of(shop, retries=2):
    """Return a client of the official SDK whose transport is the shop."""
    sdk = anthropic if shop.caller == "anthropic_messages" else openai
    http = getattr(sdk._base_client, "httpx2", None) or sdk._base_client.httpx
    kind = anthropic.AsyncAnthropic if sdk is anthropic else openai.AsyncOpenAI
    return sdk, kind(
        base_url="http://switchyard.test" + ("" if sdk is anthropic else "/v1"),
        api_key="k",
        max_retries=retries,
        http_client=http.AsyncClient(transport=http.ASGITransport(app=Counted(shop))),
    )


class Counted:
    """The application, and how many requests it got."""

    def __init__(self, shop):
        self._shop = shop
        shop.asked = 0

    async def __call__(self, scope, receive, send):
        self._shop.asked += scope["type"] == "http"
        await self._shop.app(scope, receive, send)


async def sdk_asks(shop, client, **more):
    """Ask through the SDK's own call."""
    said = [{"role": "user", "content": "TASKWORD"}]
    if shop.caller == "openai_chat":
        return await client.chat.completions.create(model=ROUTE, messages=said, **more)
    if shop.caller == "openai_responses":
        return await client.responses.create(model=ROUTE, input=said, **more)
    return await client.messages.create(model=ROUTE, messages=said, max_tokens=99, **more)


PROBLEMS = {
    "plan_unknown": (404, "NotFoundError"),
    "plan_expired": (410, "APIStatusError"),
    "plan_changed": (412, "APIStatusError"),
    "plan_not_pending": (422, "UnprocessableEntityError"),
    "plan_capacity": (400, "BadRequestError"),
    "plan_unusable": (502, "InternalServerError"),
}


@pytest.mark.parametrize("code", PROBLEMS)
@pytest.mark.parametrize("lane", [lane for lane in LANES if lane[2] == "http"], ids="-".join)
async def test_sdks_raise_their_own_error_and_do_not_ask_again(lane, code):
    status, name = PROBLEMS[code]
    says = [Say("no plan")] if code == "plan_unusable" else [Say(PLAN)]
    shop = Shop(lane, 'approval = "always"\nplan_capacity = 1', planner=says)
    sdk, client = sdk_of(shop)
    words = f"approve plan_no {'0' * 64}"
    if code != "plan_unusable":
        found = (await shop.ask()).extension
        digest = "0" * 64 if code == "plan_changed" else found["plan_digest"]
        if code != "plan_unknown":
            words = f"approve {found['plan_id']} {digest}"
        shop.now += 4000 * (code == "plan_expired")
        if code == "plan_not_pending":
            await shop.ask(headers={"x-switchyard-plan": f"reject {found['plan_id']}"})
    headers = {} if code in ("plan_unusable", "plan_capacity") else {"x-switchyard-plan": words}

    async with client:
        with pytest.raises(getattr(sdk, name)) as raised:
            await sdk_asks(shop, client, extra_headers=headers)

    assert raised.value.status_code == status
    assert code in json.dumps(raised.value.body)
    assert shop.asked == 1


@pytest.mark.parametrize("lane", [lane for lane in LANES if lane[2] == "http"], ids="-".join)
async def test_sdks_read_and_approve_a_plan(lane):
    shop = Shop(lane, 'approval = "always"')
    _, client = sdk_of(shop)

    async with client:
        plan = (await sdk_asks(shop, client)).model_extra["switchyard"]
        keys = {key: plan[key] for key in ("plan_id", "plan_digest")}
        done = await sdk_asks(shop, client, extra_body={"switchyard": {"approve": keys}})

    assert plan["status"] == "planned"
    assert done.model_extra["switchyard"]["status"] == "completed"


@pytest.mark.parametrize("lane", [lane for lane in LANES if lane[2] == "http"], ids="-".join)
async def test_sdks_do_not_run_a_failed_plan_again(lane):
    shop = Shop(lane, executor=[Say("one"), Say(refusal="no")])
    _, client = sdk_of(shop)

    async with client:
        answer = await sdk_asks(shop, client)

    assert answer.model_extra["switchyard"]["status"] == "failed"
    assert shop.asked == 1
    assert len(shop.models.asked("executor")) == 2
