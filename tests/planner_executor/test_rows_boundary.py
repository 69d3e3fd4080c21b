"""The hard boundary between planner and executor, looked at in the bodies that go out.

Words that stand in one place only show where a text came from.
"""

from __future__ import annotations

import itertools
import json

import pytest

from switchyard_core import WIRE_FORMATS, Extension, ObjectText, Progress, Request
from tests.planner_executor.rows_world import (
    EXECUTOR,
    GOAL,
    PLANNER,
    REQUEST,
    TURNS,
    Shop,
    body_of,
    history_of,
    instructions_of,
    plan_json,
    planned,
)

FIELDS = ("step", "action", "query", "goal", "steps")
#: Where each wire format says that an answer is structured.
SCHEMA_KEYS = ("response_format", "text", "output_config", "output_format")

every_target = pytest.mark.parametrize("target", WIRE_FORMATS)
every_caller = pytest.mark.parametrize("caller", WIRE_FORMATS)
every_door = pytest.mark.parametrize("door", ["library", "http"])


def schema_of(target, body):
    """Return the schema that a call demands, in the target's own place for it."""
    if target == "openai_chat":
        assert body["response_format"]["json_schema"]["strict"] is True
        return body["response_format"]["json_schema"]["schema"]
    if target == "openai_responses":
        assert body["text"]["format"]["strict"] is True
        return body["text"]["format"]["schema"]
    return body["output_config"]["format"]["schema"]


def tools_of(body):
    """Return the names of the tools that a call offers."""
    return [tool.get("function", tool)["name"] for tool in body.get("tools", ())]


def conversation(caller, *turns):
    """Return the part of a caller's body that says some turns."""
    items = [{"role": role, "content": text} for role, text in turns]
    return {"input" if caller == "openai_responses" else "messages": items}


@every_target
async def test_r02_planner_is_told_what_each_field_means(target):
    shop = Shop(target)

    await shop.ask()

    schema = schema_of(target, shop.planner_bodies[0])
    step = schema["properties"]["steps"]["items"]
    told = {**schema["properties"], **step["properties"]}
    assert set(told) == set(FIELDS)
    assert all(told[name]["description"].strip() for name in FIELDS)
    assert schema["required"] == ["goal", "steps"]
    assert step["required"] == ["step", "action", "query"]


@every_target
async def test_r05_the_schema_belongs_to_the_planners_call_alone(target):
    shop = Shop(target)

    await shop.ask(target)

    planner, executor = shop.planner_bodies, shop.executor_bodies
    assert (len(planner), len(executor)) == (1, len(TURNS))
    assert schema_of(target, planner[0])
    assert not any(key in body for body in executor for key in SCHEMA_KEYS)


@pytest.mark.parametrize("way", ["forced_tool", "prompt"])
@every_target
async def test_r05_another_way_to_structured_output_reaches_no_executor_call_either(target, way):
    plans = [planned()]
    if way == "forced_tool":
        plans = [{"calls": [{"name": "plan", "arguments": json.loads(plan_json())}]}]
    shop = Shop(
        target,
        plans=plans,
        planner_options=f'structured_output = "{way}"',
        executor_options=f'structured_output = "{way}"',
    )

    answer = await shop.ask(target)

    assert answer.extension["status"] == "completed"
    assert not any(key in shop.planner_bodies[0] for key in SCHEMA_KEYS)
    assert tools_of(shop.planner_bodies[0]) == (["plan"] if way == "forced_tool" else [])
    for body in shop.executor_bodies:
        assert not any(key in body for key in (*SCHEMA_KEYS, "tool_choice"))
        assert tools_of(body) == ["search_products"]
        assert "additionalProperties" not in instructions_of(body)


@every_target
@every_caller
@every_door
async def test_r07_planner_sees_only_the_request(target, caller, door):
    shop = Shop(target)
    turns = [("user", "EARLIER-WORD hello"), ("assistant", "SAID-WORD hi"), ("user", REQUEST)]
    instructions = {"instructions": "SYSTEM-WORD be short"}
    if caller == "openai_chat":
        turns.insert(0, ("system", "SYSTEM-WORD be short"))
        instructions = {}
    elif caller == "anthropic_messages":
        instructions = {"system": "SYSTEM-WORD be short"}

    answer = await shop.ask(caller, door=door, **conversation(caller, *turns), **instructions)

    assert answer.status == 200
    [body] = shop.planner_bodies
    assert body["model"] == PLANNER
    assert history_of(body) == [{"role": "user", "content": REQUEST}]
    sent = json.dumps(body)
    assert not any(word in sent for word in ("EARLIER-WORD", "SAID-WORD", "SYSTEM-WORD"))
    assert not any("SYSTEM-WORD" in raw for raw in shop.raw)
    assert "caller_instructions_dropped" in answer.headers["x-switchyard-warning"]


@every_target
@every_caller
async def test_r07_images_of_the_request_reach_the_planner_and_nobody_else(target, caller):
    shop = Shop(target)
    url = "https://pictures.test/IMAGE-WORD.png"
    part = {
        "openai_chat": {"type": "image_url", "image_url": {"url": url}},
        "openai_responses": {"type": "input_image", "image_url": url},
        "anthropic_messages": {"type": "image", "source": {"type": "url", "url": url}},
    }[caller]
    text = {"type": "input_text" if caller == "openai_responses" else "text", "text": REQUEST}

    await shop.ask(caller, **conversation(caller, ("user", [text, part])))

    [body] = shop.planner_bodies
    [message] = history_of(body)
    assert [kind["type"] for kind in message["content"]] == {
        "openai_chat": ["text", "image_url"],
        "openai_responses": ["input_text", "input_image"],
        "anthropic_messages": ["text", "image"],
    }[target]
    assert json.dumps(body).count("IMAGE-WORD") == 1
    assert not any("IMAGE-WORD" in raw for raw in shop.raw)


@every_target
async def test_r07_earlier_turns_reach_the_planner_where_the_policy_says_so(target):
    shop = Shop(target, options='planner_sees = "conversation"')
    turns = (("user", "EARLIER-WORD hello"), ("assistant", "SAID-WORD hi"), ("user", REQUEST))

    await shop.ask(**conversation("openai_chat", *turns))

    said = [(item["role"], item["content"]) for item in history_of(shop.planner_bodies[0])]
    assert said == list(turns)
    assert not any("-WORD" in raw for raw in shop.raw)


@every_target
@every_caller
async def test_r08_planner_never_gets_a_tool(target, caller):
    shop = Shop(target, options='caller_tools = "ignore"')
    parameters = {"type": "object", "properties": {}}
    tool = {
        "openai_chat": {
            "type": "function",
            "function": {"name": "caller_tool", "parameters": parameters},
        },
        "openai_responses": {
            "type": "function",
            "name": "caller_tool",
            "parameters": parameters,
            "strict": False,
        },
        "anthropic_messages": {"name": "caller_tool", "input_schema": parameters},
    }[caller]

    answer = await shop.ask(caller, tools=[tool])

    assert answer.status == 200
    assert "caller_tools_ignored" in answer.headers["x-switchyard-warning"]
    [body] = shop.planner_bodies
    assert not {"tools", "tool_choice", "parallel_tool_calls", "functions"} & set(body)
    assert "search_products" not in json.dumps(body)
    assert "caller_tool" not in "".join(shop.raw)


@every_target
async def test_r08_a_planner_that_calls_a_tool_gets_no_result_and_makes_no_plan(target):
    calls = [{"name": "search_products", "arguments": {"query": "tripod"}}]
    shop = Shop(target, plans=[{"calls": calls}])

    answer = await shop.ask()

    assert (answer.status, answer.error["code"]) == (502, "plan_unusable")
    assert len(shop.provider.sent) == 1


@every_target
async def test_r09_the_planners_prompt_is_the_policys_where_it_has_one(target):
    shop = Shop(target, options='planner_prompt = "PLANNER-PROMPT"\nexecutor_prompt = "EX-PROMPT"')

    await shop.ask()

    assert instructions_of(shop.planner_bodies[0]) == "PLANNER-PROMPT"
    assert {instructions_of(body) for body in shop.executor_bodies} == {"EX-PROMPT"}


@every_target
async def test_r09_the_built_in_prompt_asks_for_the_plan_and_nothing_else(target):
    shop = Shop(target)

    await shop.ask()

    told = instructions_of(shop.planner_bodies[0])
    assert "Do not answer the request, and do not carry out any\npart of it." in told


@every_target
@every_caller
@every_door
async def test_r10_executor_sees_neither_the_request_nor_the_goal_nor_a_later_step(
    target, caller, door
):
    shop = Shop(target)

    await shop.ask(caller, door=door)

    raw = shop.raw
    assert len(raw) == len(TURNS)
    assert not any("REQUEST-WORD" in call or "GOAL-WORD" in call for call in raw)
    first, second, third = "ACTION-ONE", "ACTION-TWO", "ACTION-THREE"
    shown = [[word for word in (first, second, third) if word in call] for call in raw]
    assert shown == [[first], [first], [first, second], [first, second, third]]
    # The last message is the step at hand, and it is there once.
    for index, word in ((0, first), (2, second), (3, third)):
        last = history_of(shop.executor_bodies[index])[-1]
        assert last["role"] == "user"
        assert word in last["content"]
        assert json.dumps(history_of(shop.executor_bodies[index])).count(word) == 1


@every_target
async def test_r10_what_the_caller_names_itself_by_reaches_no_model(target):
    shop = Shop(target)
    headers = {"x-switchyard-session-id": "SESSION-WORD", "authorization": "Bearer CALLER-WORD"}

    await shop.ask(metadata={"note": "META-WORD"}, user="USER-WORD", headers=headers)

    assert shop.provider.sent
    for out in shop.provider.sent:
        text = out.body.decode() + json.dumps(out.headers)
        assert not [
            word for word in ("SESSION", "CALLER", "META", "USER") if f"{word}-WORD" in text
        ]


@every_target
async def test_r11_a_step_with_a_query_names_the_tool_and_one_without_does_not(target):
    shop = Shop(target)

    await shop.ask()

    bodies = shop.executor_bodies
    assert [tools_of(body) for body in bodies] == [["search_products"]] * len(TURNS)
    with_query = history_of(bodies[0])[-1]["content"]
    assert "search_products" in with_query
    assert "tripod" in with_query.partition("ACTION-ONE look for tripods")[2]
    for body in bodies[2:]:
        text = history_of(body)[-1]["content"]
        assert "search_products" not in text
        assert "tripod" not in text


@every_target
async def test_r11_a_blank_query_is_none(target):
    plan = {"goal": GOAL, "steps": [{"step": 1, "action": "Think", "query": " \n"}]}
    shop = Shop(target, plans=[planned(json.dumps(plan))], turns=[{"text": "thought"}])

    answer = await shop.ask()

    assert answer.extension["plan"]["steps"][0]["query"] is None
    assert history_of(shop.executor_bodies[0])[-1]["content"] == "Step 1: Think"


@every_target
async def test_r12_one_model_may_play_both_roles(target):
    shop = Shop(target, one_target=True)

    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    assert [out.target for out in shop.provider.sent] == ["planner"] * 5
    assert [out.role for out in shop.provider.sent] == ["planner", *["executor"] * 4]
    # Still two roles: neither sees what the other was told.
    assert not {"tools", "tool_choice"} & set(shop.planner_bodies[0])
    assert not any("REQUEST-WORD" in raw or "GOAL-WORD" in raw for raw in shop.raw)


@every_target
async def test_r13_the_plan_never_changes_and_the_planner_is_asked_once(target):
    other = plan_json([("OTHER-WORD do this instead", None)], "OTHER-WORD")
    turns = [*TURNS[:1], {"text": other}, {"text": other}, {"text": "RESULT-THREE"}]
    shop = Shop(target, turns=turns)
    body = body_of("openai_chat")

    events = [e async for e in shop.yard.answer(Request(wire_format="openai_chat", body=body))]

    before = next(
        e.data["plan"]
        for e in events
        if isinstance(e, Progress) and e.data["event"] == "plan_created"
    )
    [after] = [e.data for e in events if isinstance(e, Extension)]
    assert before == after["plan"] == json.loads(plan_json())
    assert [step["status"] for step in after["steps"]] == ["completed"] * 3
    assert len(shop.planner_bodies) == 1
    assert len(shop.executor_bodies) == 4


@every_target
async def test_r14_each_call_holds_what_was_found_before_it(target):
    shop = Shop(target)

    await shop.ask()

    raw = shop.raw
    results = ["RESULT-ONE", "RESULT-TWO", "RESULT-THREE"]
    shown = [[word for word in results if word in call] for call in raw]
    assert shown == [[], [], results[:1], results[:2]]
    for call in raw[1:]:
        assert call.count("Pocket Tripod — $45.00 — Folding") == 1
        assert "call_1" in call


@every_target
async def test_r14_what_the_executor_said_goes_back_to_the_byte(target):
    shop = Shop(target)

    await shop.ask()

    # The same call gets the same answer again: what the provider wrote then is in the last call.
    provider = shop.provider.connect(shop.yard.policy.clients["executing"])
    last = shop.raw[-1]
    for out in shop.provider.sent[1:4]:
        reply = await (await provider.send(out)).read()
        for item in said_by(target, reply):
            assert item in last
    if target == "openai_chat":
        assert all(f"REASON-{word}" in last for word in ("ONE", "TWO", "THREE"))
        return
    # Signatures and encrypted reasoning, without which the provider refuses the history.
    for turn in TURNS[:3]:
        assert turn["encrypted"] in last
    key = "encrypted_content" if target == "openai_responses" else "signature"
    assert last.count(f'"{key}"') == 3


def said_by(target, reply):
    """Return the texts of what a reply adds to a conversation, in the bytes that it came in."""
    fields = ObjectText(reply)
    if target == "openai_chat":
        message = fields.array("choices").object(0).object("message")
        return [
            message.raw(key).decode()
            for key in ("content", "reasoning_content", "tool_calls")
            if message.raw(key) is not None
        ]
    items = fields.array("output" if target == "openai_responses" else "content")
    return [items.raw(index).decode() for index in range(len(items))]


@pytest.mark.parametrize("target", ["openai_responses"])
async def test_r14_reasoning_is_asked_for_in_a_form_that_can_go_back(target):
    shop = Shop(target)

    await shop.ask()

    for body in shop.executor_bodies:
        assert body["store"] is False
        assert body["include"] == ["reasoning.encrypted_content"]
    assert shop.planner_bodies[0]["store"] is False
    assert "include" not in shop.planner_bodies[0]


@every_target
async def test_r15_all_steps_share_one_conversation_that_only_grows(target):
    shop = Shop(target)

    await shop.ask()

    histories = [history_of(body) for body in shop.executor_bodies]
    for before, after in itertools.pairwise(histories):
        assert after[: len(before)] == before
        assert len(after) > len(before)
    assert len({instructions_of(body) for body in shop.executor_bodies}) == 1


@every_target
async def test_r16_planner_and_executor_have_conversations_of_their_own(target):
    shop = Shop(target)

    await shop.ask()

    [planner] = shop.planner_bodies
    assert planner["model"] == PLANNER
    assert {body["model"] for body in shop.executor_bodies} == {EXECUTOR}
    for body in shop.executor_bodies:
        assert instructions_of(body) != instructions_of(planner)
        assert not any(item in history_of(body) for item in history_of(planner))


@every_target
async def test_same_request_again_sends_the_same_bytes(target):
    one, two = Shop(target), Shop(target)

    await one.ask(target)
    await two.ask(target)
    await one.ask(target)

    first = [out.body for out in one.provider.sent]
    assert first[:5] == first[5:] == [out.body for out in two.provider.sent]


@pytest.mark.parametrize("planner", WIRE_FORMATS)
@every_target
async def test_targets_may_speak_different_formats(planner, target):
    shop = Shop(target, planner)

    answer = await shop.ask("anthropic_messages")

    assert answer.extension["status"] == "completed"
    assert [out.wire_format for out in shop.provider.sent] == [planner, *[target] * 4]
