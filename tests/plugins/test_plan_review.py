"""When the planner of plan_review looks again, and what it is shown."""

from __future__ import annotations

import json

import pytest

import switchyard_demo_routers
from switchyard_core import PolicyError, Request
from switchyard_core.models import Profile
from switchyard_core.testing import (
    Call,
    FakeReply,
    FakeUpstream,
    Harness,
    RequestBodySnapshot,
    RouterConformance,
    conversation,
)
from switchyard_core.wire import WIRE_FORMATS
from switchyard_demo_routers.reviews import failed_results
from tests.support.cases import each_of
from tests.support.policies import PLUGINS, accepts, one_route, one_route_harness

ROUTE = """\
type = "plan_review"
capable_target = "large"
efficient_target = "small"
planning_prompt = "PLAN."
review_prompt = "REVIEW."
"""
TURNS = ROUTE + "review_every = 3\nreview_after_failures = 0\n"
FAILURES = ROUTE + "review_every = 0\nreview_after_failures = 2\n"


class TestPlanReview(RouterConformance):
    plugins = (switchyard_demo_routers,)
    router_toml = """\
type = "plan_review"
capable_target = "strong"
efficient_target = "weak"
review_every = 2
"""


@pytest.fixture
def edited(story):
    return story.edits("edit_file", path="a.py")


async def phases(w, told, number, *, fails=False, session="s"):
    """Go on for some turns; return the phases and the conversation."""
    found = []
    for turn in range(number):
        served = await w.ask(told.request("main", session=session))
        found.append(served.phase)
        told = told.calls("bash", {"command": f"make {turn}"}, fails=fails)
    return found, told


# --- planning and executing --------------------------------------------------------------


async def test_session_plans_until_its_first_edit(world, story, edited):
    w = world(route=TURNS)

    planned = await w.ask(story.reads("read", path="a").request("main", session="s"))
    handed = await w.ask(edited.request("main", session="s"))
    later = await w.ask(edited.reads("read", path="b").request("main", session="s"))

    assert [(s.target, s.reason) for s in (planned, handed, later)] == [
        ("large", "no_mutation"),
        ("small", "mutation_in_history"),
        ("small", "latched"),
    ]
    assert b"PLAN." in planned.outgoing.body
    assert handed.outgoing.body == edited.body("provider/small")
    assert await w.latched() == 1


async def test_side_calls_go_where_the_session_is_and_count_for_nothing(
    world, story, edited, wire_format
):
    w = world(route=TURNS)

    before = await w.ask(side_call(story, wire_format))
    await w.ask(edited.request("main", session="s"))
    record = await w.engine.runtimes["main"].store.get(identity_of(w, edited))
    after = await w.ask(side_call(edited, wire_format))

    assert [(s.target, s.reason) for s in (before, after)] == [
        ("large", "housekeeping"),
        ("small", "housekeeping"),
    ]
    assert b"PLAN." not in before.outgoing.body
    assert await w.engine.runtimes["main"].store.get(identity_of(w, edited)) == record


def identity_of(w, told):
    return w.engine.runtimes["main"].sessions(told.request("main", session="s"))[0]


def side_call(told, wire_format) -> Request:
    body = {key: value for key, value in told.build("main").items() if key != "tools"}
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


# --- reviews by turns --------------------------------------------------------------------


async def test_planner_looks_again_after_so_many_executor_turns(world, edited):
    w = world(route=TURNS)

    found, _ = await phases(w, edited, 9)

    run = ["executing"] * 3
    assert found == [*run, "reviewing", *run, "reviewing", "executing"]


async def test_review_adds_its_prompt_at_the_end_and_nothing_else(world, edited):
    w = world(route=TURNS)
    _, told = await phases(w, edited, 3)

    served = await w.ask(told.request("main", session="s"))

    assert (served.target, served.reason) == ("large", "review_due")
    assert b"REVIEW." in served.outgoing.body
    assert b"PLAN." not in served.outgoing.body
    key = "input" if told.wire_format == "openai_responses" else "messages"
    assert "REVIEW." in json.dumps(served.tree[key][-1])


async def test_executor_does_not_see_the_review_prompt(world, edited):
    w = world(route=TURNS)
    _, told = await phases(w, edited, 4)

    served = await w.ask(told.request("main", session="s"))

    assert served.outgoing.body == told.body("provider/small")


async def test_retry_counts_once_and_gets_the_same_body(world, edited):
    w = world(route=TURNS)
    told, bodies = edited, []
    for turn in range(5):
        first, again = [await w.ask(told.request("main", session="s")) for _ in range(2)]
        assert (first.outgoing.body, first.phase) == (again.outgoing.body, again.phase)
        bodies.append(first.phase)
        told = told.runs(f"make {turn}")

    assert bodies == ["executing"] * 3 + ["reviewing", "executing"]


async def test_reviews_are_capped(world, edited):
    w = world(route=TURNS.replace("= 3", "= 1") + "max_reviews = 2\n")

    found, _ = await phases(w, edited, 8)

    assert found.count("reviewing") == 2
    assert found[4:] == ["executing"] * 4


async def test_without_a_session_nothing_is_reviewed(world, edited):
    w = world(route=TURNS)

    found, _ = await phases(w, edited, 8, session=None)

    assert found == ["executing"] * 8
    assert await w.latched() == 0


async def test_history_that_ends_with_an_open_call_waits_for_its_result(world, edited):
    w = world(route=TURNS)
    _, told = await phases(w, edited, 3)

    opened = await w.ask(told.edits("edit_file", answered=False).request("main", session="s"))
    closed = await w.ask(told.edits("edit_file", path="b").request("main", session="s"))

    assert (opened.phase, closed.phase) == ("executing", "reviewing")


async def test_planner_whose_window_is_too_small_is_not_asked(world, edited):
    w = world(route=TURNS, large="context_window = 10")

    found, _ = await phases(w, edited, 5)

    assert found == ["executing"] * 5


async def test_failed_review_is_the_executors_turn(world, edited):
    w = world(route=TURNS)
    _, told = await phases(w, edited, 3)
    w.upstream.replies = [FakeReply(status=503, body={"error": {"message": "down"}})]

    served = await w.ask(told.request("main", session="s"))
    again = await w.ask(told.request("main", session="s"))

    assert [sent.model for sent in served.sent] == ["provider/large", "provider/small"]
    assert (served.status, served.reason) == (200, "review_failed")
    assert served.warnings == ("review_failed",)
    assert again.outgoing.body == served.outgoing.body == told.body("provider/small")


async def test_failed_executor_turn_is_the_callers(world, edited):
    w = world(route=TURNS, replies=[FakeReply(status=503, body={})])

    served = await w.ask(edited.request("main", session="s"))

    assert (served.status, len(served.sent)) == (503, 1)


# --- reviews by failures -----------------------------------------------------------------


async def test_planner_looks_again_after_failed_results_in_a_row(world, edited):
    w = world(route=FAILURES)

    found, told = await phases(w, edited, 3, fails=True)
    after = await w.ask(told.request("main", session="s"))

    assert found == ["executing", "executing", "reviewing"]
    assert after.phase == "executing"


async def test_success_between_failures_begins_again(world, edited):
    w = world(route=FAILURES)

    _, told = await phases(w, edited, 2, fails=True)
    found, _ = await phases(w, told.reads("read", path="a"), 2)

    assert found == ["executing", "executing"]


async def test_failures_of_one_turn_count_each(world, edited):
    w = world(route=FAILURES)
    await w.ask(edited.request("main", session="s"))
    both = edited.parallel(
        Call(name="edit_file", fails=True), Call(name="bash", arguments={"x": 1}, fails=True)
    )

    assert (await w.ask(both.request("main", session="s"))).phase == "reviewing"


@pytest.mark.parametrize("wire_format", ["openai_chat", "openai_responses"])
@each_of(
    ("text", "failed"),
    [
        ("Error: no such file", True),
        ("error", True),
        ("Exit code: 2\nOutput:\nx", True),
        ("Process exited with code 1", True),
        ('{"output":"x","metadata":{"exit_code":127}}', True),
        ("<returncode>1</returncode>", True),
        ("Traceback (most recent call last):\n  File", True),
        ("<tool_use_error>no</tool_use_error>", True),
        ("half an emoji \ud83d, exit code 1", True),
        ("Exit code: 0\nOutput:\n0 errors", False),
        ("<returncode>0</returncode>", False),
        ("def error(): raise", False),
        ("no error: all 10 tests passed", False),
        ("", False),
    ],
)
def test_result_text_says_that_its_call_failed(wire_format, text, failed):
    told = conversation(wire_format).user("go").reads("bash", result=text)

    assert list(failed_results(read(told))) == [failed]


def test_status_and_outcome_of_built_in_tools_are_read():
    story = conversation("openai_responses").user("go")
    patch = story.calls(
        "apply_patch", {"type": "delete_file", "path": "a"}, shape="apply_patch_call",
        fails=True, result="",
    )  # fmt: skip
    shell = story.calls("shell", {"commands": ["x"]}, shape="shell_call", fails=True, result="")

    assert list(failed_results(read(patch))) == [True]
    assert list(failed_results(read(shell))) == [True]


def test_only_results_since_the_last_turn_are_read(wire_format):
    told = conversation(wire_format).user("go").calls("bash", fails=True).reads("read", path="a")

    assert list(failed_results(read(told))) == [False]
    assert list(failed_results(read(told.says("done").user("next")))) == []


def read(told) -> Request:
    request = told.request("main")
    engine = Harness(
        one_route(request.wire_format, TURNS),
        plugins=PLUGINS,
    ).engine
    engine.runtime_for(request)
    return request


# --- other origins -----------------------------------------------------------------------


async def test_at_another_origin_each_gets_its_own_reasoning_only(world, story):
    w = world(route=TURNS.replace("= 3", "= 1"), other_origin=True)
    told = story.reasoning("hm", encrypted="PLANNERS").edits("edit_file", path="a")
    handed = await w.ask(told.request("main", session="s"))
    told = told.reasoning("hm", encrypted="EXECUTORS").reads("read", path="b")
    review = await w.ask(told.request("main", session="s"))
    told = told.reasoning("hm", encrypted="REVIEWERS").reads("read", path="c")
    back = await w.ask(told.request("main", session="s"))

    assert [s.phase for s in (handed, review, back)] == ["executing", "reviewing", "executing"]
    assert b"PLANNERS" not in handed.outgoing.body
    assert b"EXECUTORS" not in review.outgoing.body
    assert b"REVIEWERS" not in back.outgoing.body


async def test_executors_reasoning_after_a_review_is_kept(world, story):
    w = world(route=TURNS.replace("= 3", "= 1") + "max_reviews = 1\n", other_origin=True)
    told = story.edits("edit_file", path="a")
    _, told = await phases(w, told, 2)
    await w.ask(told.request("main", session="s"))
    told = told.reasoning("hm", encrypted="EXECUTORS").reads("read", path="c")

    served = await w.ask(told.request("main", session="s"))

    assert (served.phase, b"EXECUTORS" in served.outgoing.body) == ("executing", True)


async def test_continuation_id_of_the_other_origin_goes_at_each_change_of_hands():
    w = one_route_harness(
        "openai_responses", "library", route=TURNS.replace("= 3", "= 2"), other_origin=True
    )
    told = conversation("openai_responses").user("go").edits("edit_file", path="a")
    found = []
    for turn in range(4):
        request = told.request("main", session="s", previous_response_id=f"r{turn}")
        served = await w.ask(request)
        found.append((served.phase, "previous_response_id" in served.tree))
        told = told.runs(f"make {turn}")

    assert found == [
        ("executing", False),
        ("executing", True),
        ("reviewing", False),
        ("executing", False),
    ]


async def test_compacted_history_keeps_the_executors_reasoning(world, story, wire_format):
    w = world(route=TURNS, other_origin=True)
    long = story.reads("read", path="a").reads("read", path="b").edits("edit_file", path="a")
    await w.ask(long.request("main", session="s"))
    short = conversation(wire_format).user("summary")
    short = short.reasoning("hm", encrypted="EXECUTORS").reads("read", path="c")

    served = await w.ask(short.request("main", session="s"))

    assert (served.phase, b"EXECUTORS" in served.outgoing.body) == ("executing", True)


# --- latch -------------------------------------------------------------------------------


@pytest.mark.parametrize("wire_format", ["openai_responses"], indirect=True)
async def test_history_that_the_executor_cannot_read_stays_at_the_planner(world, story):
    w = world(route=TURNS, other_origin=True)
    sealed = story.item({"type": "compaction", "encrypted_content": "E"})

    served = await w.ask(sealed.edits("edit_file", path="a.py").request("main", session="s"))

    assert (served.target, served.reason) == ("large", "origin_bound")
    assert "origin_bound" in served.warnings
    assert await w.latched() == 0


@pytest.mark.parametrize("bound", [True, False])
async def test_review_by_a_prefix_bound_planner_has_no_thinking(world, story, bound):
    w = accepts(world(route=TURNS), large=Profile(prefix_bound=bound))
    told = story.reasoning("t", encrypted="SEAL").edits("edit_file", path="a.py")

    found, told = await phases(w, told, 3)
    served = await w.ask(told.request("main", session="s"))

    assert (found[-1], served.phase) == ("executing", "reviewing")
    assert (b"SEAL" in served.outgoing.body) is not bound


async def test_planner_that_refuses_thinking_is_asked_again_without_it():
    text = one_route("anthropic_messages", TURNS)
    script = {"version": 1, "scripts": [{"turns": [{"text": "I see."}]}]}
    upstream = FakeUpstream(script=script, strict="anthropic")
    w = Harness(
        text.replace('"provider/large"', '"claude-opus-5-5"'), plugins=PLUGINS, upstream=upstream
    )
    told = conversation("anthropic_messages").user("fix it").reasoning("Hm.", encrypted="b2xk")

    served = await w.ask(told.says("I look.").user("go on").request("main", session="s"))

    assert (served.status, len(served.sent), served.warnings) == (200, 2, ("reasoning_dropped",))


async def test_side_call_has_the_instruction_where_thinking_is_bound_to_it(world, story):
    w = accepts(world(route=TURNS), large=Profile(prefix_bound=True))
    headers = {"x-codex-turn-metadata": '{"request_kind": "compaction"}'}
    plain, thought = story, story.reasoning("t", encrypted="SEAL").reads("read", path="a")

    served = [await w.ask(told.request("main", headers=headers)) for told in (plain, thought)]

    assert [b"PLAN." in each.outgoing.body for each in served] == [False, True]


async def test_final_request_frees_the_slot(world, story, edited):
    w = world(route=TURNS)
    await w.ask(edited.request("main", session="s"))
    held = await w.latched()

    await w.ask(edited.reads("read", path="a").request("main", session="s", final=True))

    assert (held, await w.latched()) == (1, 0)


async def test_final_handoff_needs_no_slot(world, edited):
    w = world(route=TURNS)

    served = await w.ask(edited.request("main", session="s", final=True))

    assert (served.phase, await w.latched()) == ("executing", 0)


async def test_at_capacity_a_new_handoff_is_refused(world, edited):
    w = world(route=TURNS + "latch_capacity = 1\n")
    await w.ask(edited.request("main", session="first"))

    refused = await w.ask(edited.request("main", session="second"))

    assert (refused.status, refused.code, refused.sent) == (400, "latch_capacity", ())


async def test_history_named_by_id_is_not_reviewed():
    w = one_route_harness("openai_responses", "library", route=TURNS)
    told = conversation("openai_responses").user("go").edits("edit_file", path="a")
    await phases(w, told, 3)
    item = {"type": "function_call_output", "call_id": "c", "output": "ok"}
    body = {"model": "main", "previous_response_id": "r", "input": [item]}
    headers = {"x-switchyard-session-id": "s"}

    served = await w.ask(Request(wire_format="openai_responses", body=body, headers=headers))

    assert (served.phase, served.tree["previous_response_id"]) == ("executing", "r")


# --- bodies and options ------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, 2], ids=["planning", "executing", "reviewing"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_body(snapshot, wire_format, number):
    route = ROUTE.replace('planning_prompt = "PLAN."\n', "").replace(
        'review_prompt = "REVIEW."\n', "review_every = 1\n"
    )
    w = one_route_harness(wire_format, "library", route=route)
    told = conversation(wire_format).system("rules").user("fix it")
    edited = told.edits("edit_file", path="a.py")
    stories = (told, edited, edited.runs("make"))

    served = [await w.ask(each.request("main", session="s")) for each in stories]

    assert served[number].outgoing.body == snapshot.use_extension(RequestBodySnapshot)


@pytest.mark.parametrize(
    ("route", "path"),
    [
        (ROUTE + "review_every = 0\nreview_after_failures = 0\n", "routes.main"),
        (ROUTE + "max_reviews = 0\n", "routes.main.max_reviews"),
        (ROUTE.replace('"REVIEW."', '" "'), "routes.main.review_prompt"),
        (ROUTE + "review_evry = 1\n", "routes.main.review_evry"),
    ],
    ids=["never", "no_reviews", "blank_prompt", "misspelt"],
)
def test_bad_options_are_policy_errors_at_their_place(route, path):
    text = one_route("openai_chat", route)

    with pytest.raises(PolicyError) as caught:
        Harness(text, plugins=PLUGINS)

    assert [f.path for f in caught.value.findings if f.severity == "error"] == [path]
