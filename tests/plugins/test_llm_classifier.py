"""The judge of llm_classifier: when it is asked, what it sees, what its verdict does."""

from __future__ import annotations

import json

import pytest

import switchyard_demo_routers
from switchyard_core import PolicyError, Request, UpstreamError
from switchyard_core.answering import ModelReply, WouldAsk
from switchyard_core.testing import (
    FakeReply,
    Harness,
    RequestBodySnapshot,
    RouterConformance,
    conversation,
)
from switchyard_core.wire import WIRE_FORMATS
from tests.support.cases import each_of
from tests.support.policies import PLUGINS, one_route, one_route_harness

ROUTE = """\
type = "llm_classifier"
judge_target = "judge"
strong_target = "large"
weak_target = "small"
"""


class TestLlmClassifier(RouterConformance):
    plugins = (switchyard_demo_routers,)
    router_toml = """\
type = "llm_classifier"
judge_target = "weak"
strong_target = "strong"
weak_target = "weak"
"""

    def reply(self, target, call):
        return ModelReply(text=json.dumps({"strong": len(call.text) % 2 == 0, "why": target}))


def verdict(strong: object, why: str = "because") -> FakeReply:
    """Return a judge's answer."""
    return FakeReply(text=json.dumps({"strong": strong, "why": why}))


def models(served) -> list[str]:
    return [outgoing.model.removeprefix("provider/") for outgoing in served.sent]


def trigger(name: str) -> str:
    return f'{ROUTE}classify_trigger = "{name}"\n'


# --- the verdict -------------------------------------------------------------------------


@pytest.mark.parametrize(("strong", "target"), [(True, "large"), (False, "small")])
async def test_verdict_chooses_the_target_and_only_the_model_changes(
    world, story, wire_format, strong, target
):
    w = world(route=ROUTE, replies=[verdict(strong)])

    served = await w.ask(story.request("main", session="s"))

    assert models(served) == ["judge", target]
    word = "strong" if strong else "weak"
    assert (served.target, served.phase, served.reason) == (target, word, "judged")
    assert served.outgoing.body == story.body(f"provider/{target}")


async def test_judge_sees_its_prompt_and_the_users_last_words_only(world, wire_format):
    w = world(route=ROUTE, replies=[verdict(strong=True)])
    story = conversation(wire_format).system("secret rules").user("first")
    told = story.reads("read", path="a", result="contents of a file").user("now fix it")

    served = await w.ask(told.request("main"))

    asked = served.sent[0].body.decode()
    assert "now fix it" in asked
    assert "You decide which of two models" in asked
    assert all(word not in asked for word in ("first", "secret rules", "contents of a file"))
    assert '"strong"' in asked.replace("\\", "")


async def test_judge_sees_both_ends_of_long_words(world, wire_format):
    route = ROUTE + "judge_max_chars = 20\njudge_prompt = 'Decide.'\n"
    w = world(route=route, replies=[verdict(strong=True)])
    story = conversation(wire_format).user("a" * 50 + "mid" + "z" * 50)

    served = await w.ask(story.request("main"))

    asked = served.sent[0].body.decode()
    assert '"' + "a" * 10 + "\\n[...]\\n" + "z" * 10 + '"' in asked
    assert "Decide." in asked


async def test_reason_says_the_judges_why_in_one_line():
    w = one_route_harness(
        "openai_chat",
        "library",
        route=ROUTE,
        replies=[verdict(strong=True, why="many\n files " + "x" * 500)],
    )

    decision = await w.decide(conversation("openai_chat").user("go").request("main"))

    assert decision.reason.detail.startswith("strong: many files xxx")
    assert len(decision.reason.detail) == len("strong: ") + 120


@pytest.mark.parametrize("number", [0, 1], ids=["judge", "served"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_body(snapshot, wire_format, number):
    told = conversation(wire_format).system("rules").user("rename x to y in a.py")
    w = one_route_harness(wire_format, "library", route=ROUTE, replies=[verdict(strong=False)])

    served = await w.ask(told.request("main", session="s"))

    assert served.sent[number].body == snapshot.use_extension(RequestBodySnapshot)


# --- when it is asked --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "asked"),
    [("every_request", [1, 1, 1]), ("user_turn", [1, 0, 1]), ("new_session", [1, 0, 0])],
)
async def test_trigger_says_which_requests_of_a_session_are_judged(
    world, story, wire_format, name, asked
):
    w = world(route=trigger(name), replies=[])
    looped = story.reads("read", path="a")
    found = []
    for told in (story, looped, looped.says("done").user("now the next one")):
        w.upstream.replies = [verdict(strong=False), FakeReply()]
        served = await w.ask(told.request("main", session="s"))
        found.append(models(served).count("judge"))
        assert served.target == "small"

    assert found == asked
    assert await w.latched() == 1


@pytest.mark.parametrize("name", ["every_request", "user_turn", "new_session"])
async def test_retry_is_not_judged_again(world, story, wire_format, name):
    w = world(route=trigger(name), replies=[verdict(strong=False)])

    first = await w.ask(story.request("main", session="s"))
    again = await w.ask(story.request("main", session="s"))

    assert (models(first), models(again)) == (["judge", "small"], ["small"])
    assert (again.reason, again.outgoing.body) == ("remembered", first.outgoing.body)


async def test_new_verdict_of_a_new_turn_moves_the_session(world, story, wire_format):
    w = world(route=ROUTE, replies=[verdict(strong=True), FakeReply()])
    await w.ask(story.request("main", session="s"))
    turn = story.says("done").user("rename x")
    w.upstream.replies = [verdict(strong=False)]

    moved = await w.ask(turn.request("main", session="s"))
    looped = await w.ask(turn.reads("read", path="a").request("main", session="s"))

    assert (moved.target, moved.reason) == ("small", "judged")
    assert (looped.target, looped.reason) == ("small", "remembered")


async def test_without_a_session_each_request_is_judged_by_the_users_last_words(
    world, story, wire_format
):
    looped = story.reads("read", path="a")
    w = world(route=ROUTE, replies=[verdict(strong=False)])

    served = await w.ask(looped.request("main"))

    assert models(served) == ["judge", "small"]
    assert b"fix the bug" in served.sent[0].body
    assert await w.latched() == 0


async def test_sub_agent_is_judged_by_itself(world, story, wire_format):
    replies = [verdict(strong=True), FakeReply(), verdict(strong=False)]
    w = world(route=ROUTE, replies=replies)
    headers = {"x-switchyard-is-subagent": "true", "x-switchyard-agent-id": "a"}

    root = await w.ask(story.request("main", session="s"))
    agent = await w.ask(story.request("main", session="s", headers=headers))

    assert (root.target, agent.target) == ("large", "small")


async def test_side_calls_are_never_judged_and_go_where_the_session_is(world, story, wire_format):
    w = world(route=ROUTE, replies=[FakeReply(), verdict(strong=False)])

    unknown = await w.ask(_side_call(story, wire_format))
    await w.ask(story.request("main", session="s"))
    known = await w.ask(_side_call(story, wire_format))

    assert (models(unknown), unknown.reason) == (["large"], "housekeeping")
    assert (models(known), known.reason) == (["small"], "housekeeping")


def _side_call(story, wire_format) -> Request:
    """Return a side call as a client of that format marks it."""
    body = {key: value for key, value in story.build("main").items() if key != "tools"}
    headers = {"x-switchyard-session-id": "s"}
    if wire_format == "openai_responses":
        metadata = {"session_id": "s", "thread_id": "s", "request_kind": "compaction"}
        headers["x-codex-turn-metadata"] = json.dumps(metadata)
    elif wire_format == "anthropic_messages":
        body["output_config"] = {"format": {"type": "json_schema"}}
        headers["x-claude-code-session-id"] = "s"
    else:
        headers |= {"user-agent": "opencode/1.18.33", "x-session-id": "s"}
    return Request(wire_format=wire_format, body=body, headers=headers)


# --- when there is no verdict ------------------------------------------------------------


def unusable(wire_format: str) -> dict[str, FakeReply | UpstreamError]:
    return {
        "status": FakeReply(status=500, body={"error": {"message": "down"}}),
        "transport": UpstreamError("connection refused"),
        "no_json": FakeReply(text="strong, I think"),
        "no_boolean": verdict("yes"),
        "more_keys": FakeReply(text='{"strong": true, "why": "x", "also": 1}'),
        "nothing": FakeReply(body=b"{}"),
    }


@each_of("kind", list(unusable("openai_chat")))
@pytest.mark.parametrize(("on_error", "target"), [("strong", "large"), ("weak", "small")])
async def test_failing_judge_never_fails_the_request(
    world, story, wire_format, kind, on_error, target
):
    route = f'{ROUTE}on_error = "{on_error}"\n'
    w = world(route=route, replies=[unusable(wire_format)[kind]])

    served = await w.ask(story.request("main", session="s"))

    assert (served.status, served.target, served.reason) == (200, target, "judge_failed")
    assert served.warnings == ("judge_failed",)
    assert served.outgoing.body == story.body(f"provider/{target}")


async def test_judge_without_a_key_never_fails_the_request(world, story):
    w = world(route=ROUTE + 'on_error = "weak"\n', other_origin=True)
    del w.engine.world.environ["NEAR_KEY"]

    served = await w.ask(story.request("main"))

    assert (served.status, served.target, served.reason) == (200, "small", "judge_failed")
    assert models(served) == ["small"]


@pytest.mark.parametrize(
    ("name", "judged"), [("user_turn", False), ("new_session", True), ("every_request", True)]
)
async def test_after_a_failure_the_judge_is_asked_again_at_the_next_chance(
    world, story, wire_format, name, judged
):
    failure = FakeReply(status=500, body={})
    w = world(route=trigger(name), replies=[failure])
    await w.ask(story.request("main", session="s"))
    w.upstream.replies = [verdict(strong=False)] if judged else []

    served = await w.ask(story.reads("read", path="a").request("main", session="s"))

    expected = ("small", "judged") if judged else ("large", "remembered")
    assert (served.target, served.reason) == expected


async def test_history_without_words_of_the_user_is_not_judged(world, wire_format):
    w = world(route=ROUTE)

    served = await w.ask(conversation(wire_format).system("rules").request("main"))

    assert (models(served), served.reason) == (["large"], "nothing_to_judge")


async def test_explanation_says_whom_it_would_ask(wire_format, story):
    w = one_route_harness(wire_format, "library", route=ROUTE)

    with pytest.raises(WouldAsk) as caught:
        await w.decide(story.request("main"), dry_run=True)

    assert caught.value.target == "judge"
    assert w.upstream.requests == []


# --- memory ------------------------------------------------------------------------------


async def test_full_memory_costs_a_question_and_never_refuses(world, story, wire_format):
    replies = [verdict(strong=False), FakeReply()] * 3
    w = world(route=ROUTE + "latch_capacity = 1\n", replies=replies)
    await w.ask(story.request("main", session="first"))

    second = await w.ask(story.request("main", session="second"))
    again = await w.ask(story.request("main", session="second"))

    assert (second.status, second.target, second.warnings) == (200, "small", ("memory_full",))
    assert models(again) == ["judge", "small"]
    assert await w.latched() == 1


async def test_final_request_frees_the_slot(world, story, wire_format):
    w = world(route=ROUTE, replies=[verdict(strong=False)])
    await w.ask(story.request("main", session="s"))
    held = await w.latched()

    final = await w.ask(story.reads("read", path="a").request("main", session="s", final=True))

    assert (held, final.target, await w.latched()) == (1, "small", 0)


async def test_final_request_that_is_judged_takes_no_slot(world, story, wire_format):
    w = world(route=ROUTE, replies=[verdict(strong=False)])

    final = await w.ask(story.request("main", session="s", final=True))

    assert (final.target, final.reason, await w.latched()) == ("small", "judged", 0)


async def test_record_holds_the_longest_reason_of_any_script(story, wire_format):
    w = one_route_harness(
        wire_format,
        "library",
        route=ROUTE,
        replies=[verdict(strong=True, why="\u0001\U0001f600" * 300)],
    )

    routed = await w.run(story.request("main", session="s"))

    assert routed.decision.reason.code == "judged"
    assert await w.latched() == 1


# --- other origins -----------------------------------------------------------------------


async def test_at_another_origin_only_what_the_other_target_thought_is_dropped(
    world, story, wire_format
):
    w = world(route=ROUTE, other_origin=True, replies=[verdict(strong=True), FakeReply()])
    first = await w.ask(story.request("main", session="s"))
    turn = story.reasoning("hm", encrypted="STRONGS-OWN").reads("read", path="a")
    same = await w.ask(turn.request("main", session="s"))
    asked = turn.says("done").user("rename it")
    w.upstream.replies = [verdict(strong=False)]
    moved = await w.ask(asked.request("main", session="s"))
    own = asked.reasoning("hm", encrypted="WEAKS-OWN").reads("read", path="b")
    stays = await w.ask(own.request("main", session="s"))

    assert [s.target for s in (first, same, moved, stays)] == ["large", "large", "small", "small"]
    assert b"STRONGS-OWN" in same.outgoing.body
    assert b"STRONGS-OWN" not in moved.outgoing.body
    assert b"STRONGS-OWN" not in stays.outgoing.body
    assert b"WEAKS-OWN" in stays.outgoing.body


async def test_the_same_verdict_again_keeps_what_the_target_thought(world, story, wire_format):
    replies = [verdict(strong=True), FakeReply(), verdict(strong=True)]
    w = world(route=trigger("every_request"), other_origin=True, replies=replies)
    await w.ask(story.request("main", session="s"))
    told = story.reasoning("hm", encrypted="STRONGS-OWN").reads("read", path="a")

    served = await w.ask(told.request("main", session="s"))

    assert (models(served), served.reason) == (["judge", "large"], "judged")
    assert b"STRONGS-OWN" in served.outgoing.body


async def test_continuation_id_of_the_other_origin_goes_with_the_move_and_its_retry():
    w = one_route_harness(
        "openai_responses",
        "library",
        route=ROUTE,
        other_origin=True,
        replies=[verdict(strong=False)],
    )
    told = conversation("openai_responses").user("go").says("done").user("rename it")
    looped = told.reads("read", path="a")
    first, again = [
        await w.ask(told.request("main", session="s", previous_response_id="of-the-other"))
        for _ in range(2)
    ]
    later = await w.ask(looped.request("main", session="s", previous_response_id="its-own"))

    assert "previous_response_id" not in first.tree
    assert again.outgoing.body == first.outgoing.body
    assert later.tree["previous_response_id"] == "its-own"


async def test_at_the_same_origin_nothing_is_dropped(world, story, wire_format):
    told = story.reasoning("hm", encrypted="OPAQUE").reads("read", path="a").says("ok").user("go")
    w = world(route=ROUTE, replies=[verdict(strong=False)])

    served = await w.ask(told.request("main", session="s"))

    assert served.outgoing.body == told.body("provider/small")


# --- options -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("route", "path"),
    [
        (ROUTE + 'judge_prompt = " "\n', "routes.main.judge_prompt"),
        (ROUTE + "judge_max_chars = 0\n", "routes.main.judge_max_chars"),
        (ROUTE.replace('"judge"', '"jugde"'), "routes.main.judge_target"),
        (ROUTE + "clasify_trigger = 'user_turn'\n", "routes.main.clasify_trigger"),
    ],
    ids=["blank_prompt", "no_chars", "unknown_judge", "misspelt"],
)
def test_bad_options_are_policy_errors_at_their_place(route, path):
    text = one_route("openai_chat", route)

    with pytest.raises(PolicyError) as caught:
        Harness(text, plugins=PLUGINS)

    assert [f.path for f in caught.value.findings if f.severity == "error"] == [path]
