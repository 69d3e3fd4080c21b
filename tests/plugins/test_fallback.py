"""The next target when one fails: on what, in which order, with which body."""

from __future__ import annotations

from importlib.resources import files

import pytest
import tomli

import switchyard_core.models as models_room
import switchyard_demo_routers
from switchyard_core import PolicyError, UpstreamError
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

ROUTE = 'type = "fallback"\ntargets = ["large", "small", "judge"]\n'
OVERFLOWS = [
    text
    for row in tomli.loads((files(models_room) / "phrases.toml").read_text("utf-8"))["phrase"]
    if row["kind"] == "overflow"
    for text in row["any"]
]
EVENT_STREAM = (("content-type", "text/event-stream"),)
STREAMS = {
    "openai_chat": (b'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n',),
    "openai_responses": (
        b'event: response.created\ndata: {"type":"response.created","response":{}}\n\n',
        b'event: response.output_item.added\ndata: {"type":"response.output_item.added"}\n\n',
    ),
    "anthropic_messages": (
        b'event: message_start\ndata: {"type":"message_start","message":{}}\n\n',
        b'event: content_block_start\ndata: {"type":"content_block_start","index":0}\n\n',
    ),
}
TOO_LONG = {
    "openai_chat": {"code": "context_length_exceeded", "message": "…"},
    "openai_responses": {"code": None, "message": "Your input exceeds the context window of it."},
    "anthropic_messages": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"},
}


class TestFallback(RouterConformance):
    plugins = (switchyard_demo_routers,)
    router_toml = 'type = "fallback"\ntargets = ["strong", "weak"]\n'


def error(status: int, **fields: object) -> FakeReply:
    return FakeReply(status=status, body={"error": {"message": "no", **fields}})


def models(served) -> list[str]:
    return [outgoing.model.removeprefix("provider/") for outgoing in served.sent]


# --- which failures ----------------------------------------------------------------------


async def test_first_target_serves_while_it_works_and_only_the_model_changes(world, story):
    w = world(route=ROUTE)

    served = await w.ask(story.request("main"))

    assert (served.target, served.reason, served.warnings) == ("large", "first_target", ())
    assert served.outgoing.body == story.body("provider/large")


@each_of(
    "failure",
    [
        UpstreamError("refused", kind="connect"),
        UpstreamError("slow", kind="timeout", status=504),
        error(408),
        error(429, code="rate_limit_exceeded"),
        error(500),
        error(503),
        error(529, type="overloaded_error"),
    ],
)
async def test_next_target_serves_after_a_failure(world, story, failure):
    w = world(route=ROUTE, replies=[failure])

    served = await w.ask(story.request("main"))

    assert models(served) == ["large", "small"]
    assert (served.status, served.target, served.reason) == (200, "small", "next_target")
    assert served.warnings == ("failed:large",)
    assert served.outgoing.body == story.body("provider/small")


@pytest.mark.parametrize("status", [400, 413])
async def test_next_target_serves_a_request_that_is_too_long_for_the_first(
    world, story, wire_format, status
):
    w = world(route=ROUTE, replies=[error(status, **TOO_LONG[wire_format])])

    assert (await w.ask(story.request("main"))).target == "small"


@each_of(
    "failure",
    [error(400, message="unknown parameter"), error(401), error(404), error(422)],
)
async def test_callers_own_mistakes_stay_the_callers(world, story, failure):
    w = world(route=ROUTE, replies=[failure])

    served = await w.ask(story.request("main"))

    assert (served.status, models(served)) == (failure.status, ["large"])


@pytest.mark.parametrize(
    ("on", "failure"),
    [
        ("transport", UpstreamError("refused")),
        ("rate_limit", error(429)),
        ("server_error", error(500)),
        ("context_length", error(400, code="context_length_exceeded")),
    ],
    ids=["transport", "rate_limit", "server_error", "context_length"],
)
@pytest.mark.parametrize("listed", [True, False])
async def test_on_lists_the_kinds_that_count(on, failure, listed):
    kinds = {"transport", "rate_limit", "server_error", "context_length"}
    chosen = {on} if listed else kinds - {on}
    route = f"{ROUTE}on = {sorted(chosen)}\n"
    w = one_route_harness("openai_chat", "http", route=route, replies=[failure])

    served = await w.ask(conversation("openai_chat").user("go").request("main"))

    assert models(served) == (["large", "small"] if listed else ["large"])
    assert (served.status == 200) is listed


async def test_every_try_is_told_and_the_last_failure_is_the_callers(world, story):
    w = world(route=ROUTE, replies=[error(500), error(429), error(503, code="down")])

    served = await w.ask(story.request("main"))

    assert models(served) == ["large", "small", "judge"]
    assert (served.status, served.target) == (503, "judge")
    assert served.warnings == ("failed:large", "failed:small")


async def test_decision_says_which_try_it_is_and_why():
    w = one_route_harness(
        "openai_chat", "library", route=ROUTE, replies=[error(429, code="slow_down")]
    )

    routed = await w.run(conversation("openai_chat").user("go").request("main"))

    reason = routed.decision.reason
    assert reason.detail == "try 2: `small`, since `large` failed: 429 slow_down"
    assert reason.facts == {"try": "2"}


async def test_nothing_is_tried_again_after_the_first_content(wire_format, story):
    cut = FakeReply(chunks=(*STREAMS[wire_format],), headers=EVENT_STREAM, cut=True)
    w = one_route_harness(wire_format, "library", route=ROUTE, replies=[cut])

    with pytest.raises(UpstreamError):
        await w.run(story.request("main", stream=True))

    assert len(w.upstream.requests) == 1


async def test_next_target_serves_when_the_first_breaks_off_before_its_content(world, story):
    w = world(
        route=ROUTE, replies=[FakeReply(chunks=(b"data: {",), headers=EVENT_STREAM, cut=True)]
    )

    served = await w.ask(story.request("main", stream=True))

    assert (served.status, models(served)) == (200, ["large", "small"])


@pytest.mark.parametrize("text", OVERFLOWS)
async def test_every_known_overflow_text_goes_to_the_next_target(text):
    told = error(400, message=f"Error: {text.replace('|', ' 9 ')} 12345")
    w = one_route_harness("openai_chat", "library", route=ROUTE, replies=[told])

    served = await w.ask(conversation("openai_chat").user("go").request("main"))

    assert models(served) == ["large", "small"]


# --- windows -----------------------------------------------------------------------------


async def test_target_whose_window_is_too_small_is_skipped_up_front(world, story):
    w = world(route=ROUTE, large="context_window = 10")

    served = await w.ask(story.request("main"))

    assert (models(served), served.reason) == (["small"], "window")


async def test_target_whose_window_is_too_small_is_skipped_after_a_failure(world, story):
    w = world(route=ROUTE, small="context_window = 10", replies=[error(500)])

    assert models(await w.ask(story.request("main"))) == ["large", "judge"]


async def test_request_that_fits_nowhere_goes_to_the_first_with_a_warning(world, story):
    route = 'type = "fallback"\ntargets = ["large", "small"]\n'
    w = world(route=route, large="context_window = 10", small="context_window = 5")

    served = await w.ask(story.request("main"))

    assert (served.target, served.warnings) == ("large", ("context_window",))


# --- other origins -----------------------------------------------------------------------


async def test_second_target_at_another_origin_gets_no_opaque_reasoning(world, story):
    told = story.reasoning("hm", encrypted="OPAQUE").says("Which one?").user("a.py")
    w = world(route=ROUTE, other_origin=True, replies=[error(500)])

    served = await w.ask(told.request("main"))

    first, second = served.sent
    assert b"OPAQUE" in first.body
    assert b"OPAQUE" not in second.body
    assert first.body == told.body("provider/large")


async def test_each_try_begins_with_the_callers_own_body(world, story):
    told = story.reasoning("hm", encrypted="OPAQUE").reads("read", path="a")
    w = world(route=ROUTE, other_origin=True, replies=[error(500), error(500)])

    served = await w.ask(told.request("main"))

    # The third target shares the origin of the first but not of the second.
    assert models(served) == ["large", "small", "judge"]
    assert b"OPAQUE" not in served.sent[2].body
    assert b"reasoning_dropped" not in served.outgoing.body


async def test_first_target_that_cannot_read_a_history_gets_it_without_reasoning(world, story):
    told = story.reasoning("hm", encrypted="OPAQUE").says("ok").user("go on")
    refusal = error(400, message="Invalid `signature` in `thinking` block")
    w = world(route=ROUTE, other_origin=True, replies=[refusal])

    served = await w.ask(told.request("main"))

    assert models(served) == ["large", "large"]
    assert (served.status, served.reason) == (200, "reasoning_dropped")
    assert b"OPAQUE" not in served.outgoing.body


async def test_reasoning_is_dropped_once_and_the_second_refusal_is_the_callers(world, story):
    told = story.reasoning("hm", encrypted="OPAQUE").says("ok").user("go on")
    refusal = error(400, message="The encrypted content for item rs_1 could not be verified.")
    w = world(route=ROUTE, replies=[refusal, refusal])

    served = await w.ask(told.request("main"))

    assert (served.status, models(served)) == (400, ["large", "large"])


@pytest.mark.parametrize(
    "message",
    ["Unsupported value: `reasoning.effort`", "`thinking` must be off here"],
    ids=["parameter", "fresh_history"],
)
async def test_refusal_of_a_parameter_is_the_callers(world, story, message):
    if message.startswith("Unsupported"):
        story = story.reasoning("hm", encrypted="OPAQUE").says("ok").user("go on")
    w = world(route=ROUTE, replies=[error(400, message=message)])

    served = await w.ask(story.request("main"))

    assert (served.status, models(served)) == (400, ["large"])


async def test_history_named_by_id_stays_at_its_origin():
    w = one_route_harness(
        "openai_responses", "http", route=ROUTE, other_origin=True, replies=[error(500)]
    )
    told = conversation("openai_responses").user("go on")

    served = await w.ask(told.request("main", previous_response_id="resp_1"))

    assert models(served) == ["large", "judge"]
    assert b"resp_1" in served.outgoing.body


@pytest.mark.parametrize("number", [0, 1], ids=["first", "second"])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_body(snapshot, wire_format, number):
    told = (
        conversation(wire_format)
        .system("rules")
        .user("fix it")
        .reasoning("hm", encrypted="OPAQUE")
        .edits("edit_file", path="a.py")
    )
    w = one_route_harness(
        wire_format, "library", route=ROUTE, other_origin=True, replies=[error(500)]
    )

    served = await w.ask(told.request("main"))

    assert served.sent[number].body == snapshot.use_extension(RequestBodySnapshot)


# --- options -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("route", "path"),
    [
        ('targets = ["large"]', "routes.main.targets"),
        ('targets = ["large", "large"]', "routes.main.targets"),
        ('targets = ["large", "mini"]', "routes.main.targets[1]"),
        ('targets = ["large", "small"]\non = []', "routes.main.on"),
        ('targets = ["large", "small"]\non = ["rate"]', "routes.main.on[0]"),
    ],
    ids=["one", "twice", "unknown", "on_nothing", "unknown_kind"],
)
def test_bad_options_are_policy_errors_at_their_place(route, path):
    text = one_route("openai_chat", f'type = "fallback"\n{route}\n')

    with pytest.raises(PolicyError) as caught:
        Harness(text, plugins=PLUGINS)

    assert [f.path for f in caught.value.findings if f.severity == "error"] == [path]
