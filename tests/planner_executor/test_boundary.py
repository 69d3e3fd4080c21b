"""What reaches which model, looked at in the bodies that go out.

Words that are in one place only show where a text came from.
"""

from __future__ import annotations

import itertools
import json

import pytest

from switchyard_core.jsonio import ObjectText
from switchyard_core.testing import conversation
from tests.planner_executor.shop import (
    EXECUTOR,
    GOAL,
    PLAN,
    PLANNED,
    PLANNER,
    RESULTS,
    ROUTE,
    TASK,
    TURNS,
    Shop,
    every_caller,
    every_target,
    history_of,
    instructions_of,
    plan_of,
    scripted,
)

#: Where each wire format says that an answer is structured.
SCHEMA_KEYS = ("response_format", "text", "output_config", "output_format")
PNG = "data:image/png;base64,SU1BR0UtV09SRA=="
LIMIT = {
    "openai_chat": "max_completion_tokens",
    "openai_responses": "max_output_tokens",
    "anthropic_messages": "max_tokens",
}


def tools_of(body):
    """Return the names of the tools that a call offers."""
    return [tool.get("function", tool)["name"] for tool in body.get("tools", ())]


def talk(caller, **fields):
    """Return a request with instructions and earlier turns."""
    told = conversation(caller).system("SYSTEM-WORD be short").user("EARLIER-WORD hello")
    return told.says("SAID-WORD hi").user(TASK).request(ROUTE, **fields)


# --- the planner -----------------------------------------------------------------------------


@every_target
async def test_schema_belongs_to_the_planners_call_alone(target):
    shop = Shop(target=target, executor=RESULTS)

    await shop.ask()

    assert len(shop.bodies("planner")) == 1
    assert not any(key in body for body in shop.bodies("executor") for key in SCHEMA_KEYS)


@pytest.mark.parametrize("way", ["forced_tool", "prompt"])
@every_target
async def test_other_ways_to_structured_output_reach_no_executor_call_either(target, way):
    plans = [PLANNED]
    if way == "forced_tool":
        plans = [{"calls": [{"name": "plan", "arguments": PLAN}]}]
    options = f'structured_output = "{way}"'
    shop = Shop(target=target, target_options=options, upstream=scripted(plans, TURNS))

    answer = await shop.ask()

    assert answer.extension["status"] == "completed"
    (planner,) = shop.bodies("planner")
    assert not any(key in planner for key in SCHEMA_KEYS)
    assert tools_of(planner) == (["plan"] if way == "forced_tool" else [])
    for body in shop.bodies("executor"):
        assert not any(key in body for key in (*SCHEMA_KEYS, "tool_choice"))
        assert tools_of(body) == ["look"]
        assert "additionalProperties" not in instructions_of(body)


@every_target
@every_caller
async def test_planner_sees_only_the_request(target, caller):
    for door in ("library", "http"):
        shop = Shop(caller=caller, target=target, door=door)

        answer = await shop.ask(request=talk(caller))

        assert answer.warnings == ("caller_instructions_dropped",)
        (body,) = shop.bodies("planner")
        assert body["model"] == PLANNER
        assert history_of(body) == [{"role": "user", "content": TASK}]
        words = ("EARLIER-WORD", "SAID-WORD", "SYSTEM-WORD")
        assert not any(word in shop.raw() for word in words)


@every_target
async def test_planner_sees_earlier_turns_where_the_policy_says_so(target):
    shop = Shop('planner_sees = "conversation"', target=target)

    await shop.ask(request=talk("openai_chat"))

    (body,) = shop.bodies("planner")
    said = [(item["role"], item["content"]) for item in history_of(body)]
    turns = [("user", "EARLIER-WORD hello"), ("assistant", "SAID-WORD hi"), ("user", TASK)]
    assert said == turns
    assert not any(f"{word}-WORD" in shop.raw("executor") for word in ("EARLIER", "SAID", "TASK"))


@every_target
@every_caller
async def test_images_of_the_request_reach_the_planner_and_nobody_else(target, caller):
    shop = Shop(caller=caller, target=target)
    source = {"type": "base64", "media_type": "image/png", "data": PNG.partition(",")[2]}
    part = {
        "openai_chat": {"type": "image_url", "image_url": {"url": PNG}},
        "openai_responses": {"type": "input_image", "image_url": PNG},
        "anthropic_messages": {"type": "image", "source": source},
    }[caller]
    text = {"type": "input_text" if caller == "openai_responses" else "text", "text": TASK}
    key = "input" if caller == "openai_responses" else "messages"

    await shop.ask(**{key: [{"role": "user", "content": [text, part]}]})

    (body,) = shop.bodies("planner")
    (message,) = history_of(body)
    assert [kind["type"] for kind in message["content"]] == {
        "openai_chat": ["text", "image_url"],
        "openai_responses": ["input_text", "input_image"],
        "anthropic_messages": ["text", "image"],
    }[target]
    assert shop.raw("planner").count("SU1BR0UtV09SRA==") == 1
    assert "SU1BR0UtV09SRA==" not in shop.raw("executor")


@every_target
@every_caller
async def test_callers_tools_are_refused_or_reach_nobody(target, caller):
    request = conversation(caller).user(TASK).offers("caller_tool").request(ROUTE)
    refusing = Shop(caller=caller, target=target)
    (await refusing.ask(request=request)).refused(400, "caller_tools_unsupported")
    assert refusing.sent() == []
    shop = Shop('caller_tools = "ignore"', caller=caller, target=target)

    answer = await shop.ask(request=request)

    assert answer.warnings == ("caller_tools_ignored",)
    (body,) = shop.bodies("planner")
    assert not {"tools", "tool_choice", "parallel_tool_calls", "functions"} & set(body)
    assert "caller_tool" not in shop.raw()


async def test_prompts_are_the_policys_where_it_has_some():
    shop = Shop('planner_prompt = "PLANNER-PROMPT"\nexecutor_prompt = "EXECUTOR-PROMPT"')

    await shop.ask()

    assert instructions_of(shop.bodies("planner")[0]) == "PLANNER-PROMPT"
    assert {instructions_of(body) for body in shop.bodies("executor")} == {"EXECUTOR-PROMPT"}


# --- the executor ----------------------------------------------------------------------------


@every_target
@every_caller
async def test_executor_sees_neither_the_request_nor_the_goal_nor_a_later_step(target, caller):
    for door in ("library", "http"):
        shop = Shop(caller=caller, target=target, door=door, executor=RESULTS)

        await shop.ask()

        raw = [out.body.decode() for out in shop.sent("executor")]
        assert len(raw) == len(RESULTS)
        assert not any("TASK-WORD" in body or GOAL in body for body in raw)
        one, two, three = "ACTION-ONE", "ACTION-TWO", "ACTION-THREE"
        shown = [[word for word in (one, two, three) if word in body] for body in raw]
        assert shown == [[one], [one], [one, two], [one, two, three]]
        # The last message is the step at hand, and it is there once.
        for index, word in ((0, one), (2, two), (3, three)):
            history = history_of(shop.bodies("executor")[index])
            assert history[-1]["role"] == "user"
            assert word in history[-1]["content"]
            assert json.dumps(history).count(word) == 1


@every_caller
async def test_callers_instructions_reach_the_executor_only_where_the_policy_says_so(caller):
    shop = Shop('caller_instructions = "executor"', caller=caller)

    answer = await shop.ask(request=talk(caller))

    assert answer.warnings == ()
    assert "SYSTEM-WORD" not in shop.raw("planner")
    assert shop.raw("executor").count("SYSTEM-WORD be short") == 3


@every_target
@every_caller
async def test_sampling_and_limits_go_to_the_executor_alone(target, caller):
    shop = Shop(caller=caller, target=target)

    await shop.ask(**{"temperature": 0.25, LIMIT[caller]: 77})

    (planner,) = shop.bodies("planner")
    assert "temperature" not in planner
    assert planner[LIMIT[target]] == 4096
    for body in shop.bodies("executor"):
        assert (body["temperature"], body[LIMIT[target]]) == (0.25, 77)


async def test_settings_without_a_place_in_the_executors_format_are_a_warning():
    shop = Shop(target="openai_responses")

    answer = await shop.ask(seed=7)

    assert answer.warnings == ("sampling_left_out",)


@every_target
async def test_names_and_keys_of_the_caller_reach_no_model(target):
    shop = Shop(target=target)
    headers = {"x-switchyard-session-id": "SESSION-WORD", "authorization": "Bearer CALLER-WORD"}

    await shop.ask(metadata={"note": "META-WORD"}, user="USER-WORD", headers=headers)

    assert len(shop.sent()) == 4
    text = shop.raw() + "".join(json.dumps(out.headers) for out in shop.sent())
    assert not [w for w in ("SESSION", "CALLER", "META", "USER") if f"{w}-WORD" in text]


@every_target
async def test_step_with_a_query_names_the_tool_and_one_without_does_not(target):
    shop = Shop(target=target, executor=RESULTS)

    await shop.ask()

    bodies = shop.bodies("executor")
    assert [tools_of(body) for body in bodies] == [["look"]] * len(RESULTS)
    with_query = history_of(bodies[0])[-1]["content"]
    assert "`look`" in with_query
    assert with_query.endswith("tripod")
    for body in bodies[2:]:
        text = history_of(body)[-1]["content"]
        assert "look" not in text
        assert "tripod" not in text


async def test_blank_query_is_none():
    shop = Shop(plan=plan_of(("Think", " \n")))

    answer = await shop.ask()

    assert answer.extension["plan"]["steps"][0]["query"] is None
    assert history_of(shop.bodies("executor")[0])[-1]["content"] == "Step 1: Think"


# --- one conversation ------------------------------------------------------------------------


@every_target
async def test_one_model_may_play_both_roles_that_still_see_nothing_of_each_other(target):
    for name, model in (("executor", EXECUTOR), ("planner", PLANNER)):
        shop = Shop(target=target, executor=RESULTS)
        shop.reload(executor=name)

        answer = await shop.ask()

        assert answer.extension["status"] == "completed"
        assert shop.roles == ["planner", *["executor"] * 4]
        (planner,) = shop.bodies("planner")
        assert {body["model"] for body in shop.bodies("executor")} == {model}
        for body in shop.bodies("executor"):
            assert instructions_of(body) != instructions_of(planner)
            assert not any(item in history_of(body) for item in history_of(planner))


@every_target
async def test_plan_never_changes_and_the_planner_is_asked_once(target):
    other = json.dumps(plan_of("OTHER-WORD do this instead", goal="OTHER-WORD"))
    shop = Shop(target=target, executor=[RESULTS[0], other, other, "RESULT-THREE"])

    answer = await shop.ask()

    assert answer.extension["plan"] == PLAN
    assert answer.statuses == ["completed"] * 3
    assert len(shop.bodies("planner")) == 1
    assert len(shop.bodies("executor")) == 4


@every_target
async def test_all_steps_share_one_conversation_that_only_grows(target):
    shop = Shop(target=target, executor=RESULTS)

    await shop.ask()

    bodies = shop.bodies("executor")
    for before, after in itertools.pairwise(history_of(body) for body in bodies):
        assert after[: len(before)] == before
        assert len(after) > len(before)
    assert len({instructions_of(body) for body in bodies}) == 1
    raw = [out.body.decode() for out in shop.sent("executor")]
    results = ["RESULT-ONE", "RESULT-TWO", "RESULT-THREE"]
    shown = [[word for word in results if word in body] for body in raw]
    assert shown == [[], [], results[:1], results[:2]]
    for body in raw[1:]:
        assert body.count("FOUND tripod: Tripod $45.00") == 1
        assert "call_1" in body


@every_target
async def test_what_the_executor_said_goes_back_to_the_byte(target):
    shop = Shop(target=target, upstream=scripted([PLANNED], TURNS))

    await shop.ask()

    # The same call gets the same answer again: what the provider wrote then is in the last call.
    last = shop.sent("executor")[-1].body.decode()
    for out in shop.sent("executor")[:3]:
        reply = await (await shop.harness.upstream.send(out)).read()
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
        found = [message.raw(key) for key in ("content", "reasoning_content", "tool_calls")]
        return [raw.decode() for raw in found if raw is not None]
    items = fields.array("output" if target == "openai_responses" else "content")
    return [items.raw(index).decode() for index in range(len(items))]
