"""The demo routers through the facade, in all three wire formats."""

import pytest

import switchyard_demo_routers
from switchyard_core import PolicyError, Switchyard
from switchyard_core.testing import Harness, conversation
from switchyard_core.wire import WIRE_FORMATS
from switchyard_demo_routers.random import RandomOptions, RandomRouter
from tests.support.cases import each_of

PLUGINS = (switchyard_demo_routers,)
PROVIDERS = """\
schema_version = 1

[llm_clients.provider]
format = "{format}"
base_url = "https://example.com/v1"

[targets.planner]
id = "provider/capable"
llm_client = "provider"

[targets.executor]
id = "provider/efficient"
llm_client = "provider"

[routes.main]
id = "demo"
"""

each_format = pytest.mark.parametrize("wire_format", WIRE_FORMATS)


def policy(wire_format, route):
    return PROVIDERS.replace("{format}", wire_format) + route


def yard(wire_format, route):
    return Switchyard.from_policy_text(policy(wire_format, route))


def findings(route):
    with pytest.raises(PolicyError) as caught:
        yard("openai_chat", route)
    return [(finding.code, finding.path, finding.message) for finding in caught.value.findings]


def ask(wire_format, model="demo", text="hello", **more):
    return conversation(wire_format).user(text).request(model, **more)


# --- noop ----------------------------------------------------------------------------------


@each_format
async def test_noop_sends_everything_to_its_target_and_changes_only_the_model(wire_format):
    harness = Harness(policy(wire_format, 'type = "noop"\ntarget = "executor"\n'), plugins=PLUGINS)
    story = conversation(wire_format).system("Be brief.").user("hi").edits("edit_file", path="a")

    routed = await harness.run(story.request("demo", session="s"))

    assert (routed.decision.target, routed.decision.reason.code) == ("executor", "only_target")
    assert routed.outgoing.body == story.body("provider/efficient")


def test_noop_with_an_unknown_target_is_a_policy_error():
    assert [f[:2] for f in findings('type = "noop"\ntarget = "executer"\n')] == [
        ("SY201", "routes.main.target")
    ]


# --- passthrough ---------------------------------------------------------------------------

PASSTHROUGH = """\
type = "passthrough"
aliases = ["planner", "provider/efficient", "other"]
targets = ["executor", "planner"]
"""


@each_format
@each_of(
    ("model", "target", "reason"),
    [
        ("planner", "planner", "target_name"),
        ("provider/efficient", "executor", "target_id"),
        ("other", "executor", "default"),
        ("demo", "executor", "default"),
    ],
)
async def test_passthrough_follows_the_model_id(wire_format, model, target, reason):
    decision = await yard(wire_format, PASSTHROUGH).decide(ask(wire_format, model))

    assert (decision.target, decision.reason.code) == (target, reason)


async def test_passthrough_default_serves_what_names_no_target():
    route = PASSTHROUGH + 'default = "planner"\n'

    assert (await yard("openai_chat", route).decide(ask("openai_chat"))).target == "planner"


async def test_passthrough_as_default_route_sees_any_model_id():
    text = 'default_route = "main"\n' + policy("openai_chat", PASSTHROUGH)
    decision = await Switchyard.from_policy_text(text).decide(ask("openai_chat", "gpt-unheard-of"))

    assert (decision.target, decision.reason.code) == ("executor", "default")


def test_passthrough_without_targets_is_a_policy_error():
    assert findings('type = "passthrough"\ntargets = []\n')[0][:2] == (
        "SY107",
        "routes.main.targets",
    )


# --- random --------------------------------------------------------------------------------

RANDOM = 'type = "random"\ntargets = { planner = 3, executor = 1 }\n'


async def draw(ready, requests):
    return [(await ready.decide(request)).target for request in requests]


@each_format
async def test_random_keeps_the_target_of_a_session(wire_format):
    ready = yard(wire_format, RANDOM)
    for number in range(20):
        session = f"session-{number}"
        drawn = await draw(
            ready, [ask(wire_format, text=f"turn {turn}", session=session) for turn in range(4)]
        )
        assert len(set(drawn)) == 1


@each_format
async def test_random_draws_sessions_by_their_weights(wire_format):
    requests = [ask(wire_format, session=f"session-{number}") for number in range(400)]
    drawn = await draw(yard(wire_format, RANDOM), requests)

    assert 0.68 < drawn.count("planner") / len(drawn) < 0.82


@each_format
async def test_random_with_a_seed_repeats_itself_and_gives_a_retry_the_same_target(wire_format):
    route = RANDOM + 'seed = 7\nsticky = "none"\n'
    requests = [ask(wire_format, text=f"text {number}") for number in range(60)]
    first = await draw(yard(wire_format, route), requests)

    assert await draw(yard(wire_format, route), requests) == first
    assert set(first) == {"planner", "executor"}


async def test_random_with_another_seed_draws_otherwise():
    requests = [ask("openai_chat", session=f"session-{number}") for number in range(60)]

    drawn = [await draw(yard("openai_chat", f"{RANDOM}seed = {s}\n"), requests) for s in (1, 2)]

    assert drawn[0] != drawn[1]


async def test_random_not_sticky_draws_within_a_session():
    ready = yard("openai_chat", RANDOM + 'seed = 1\nsticky = "none"\n')
    requests = [ask("openai_chat", text=f"turn {turn}", session="s") for turn in range(40)]

    assert set(await draw(ready, requests)) == {"planner", "executor"}


async def test_random_draws_sub_agents_apart_from_their_session():
    ready = yard("openai_chat", RANDOM)
    agents = [
        ask(
            "openai_chat",
            session="s",
            headers={
                "x-switchyard-is-subagent": "true",
                "x-switchyard-agent-id": f"agent-{number}",
            },
        )
        for number in range(40)
    ]

    assert set(await draw(ready, agents)) == {"planner", "executor"}


async def test_random_without_seed_and_session_uses_the_randomness_of_its_context():
    requests = [ask("openai_chat", text=f"text {number}") for number in range(40)]
    drawn = [
        [(await harness.decide(request)).target for request in requests]
        for harness in (
            Harness(policy("openai_chat", RANDOM), plugins=PLUGINS, seed=s) for s in (5, 5, 6)
        )
    ]

    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]


async def test_random_reason_says_what_was_drawn_and_from_what():
    decision = await yard("openai_chat", RANDOM).decide(ask("openai_chat", session="s"))

    assert decision.reason.code == "drawn_by_session"
    assert 0 <= float(decision.reason.facts["lot"]) < 1


def test_random_draw_at_the_very_end_has_a_target():
    router = RandomRouter(RandomOptions(targets={"planner": 0.1, "executor": 0.2}))

    assert router._at(1.0) == "executor"


@pytest.mark.parametrize(
    ("targets", "code", "path"),
    [
        ("{ planner = 0 }", "SY107", "routes.main.targets.planner"),
        ("{ planner = -1 }", "SY107", "routes.main.targets.planner"),
        ("{ planner = inf }", "SY106", "routes.main.targets.planner"),
        ("{ plannr = 1 }", "SY201", "routes.main.targets.plannr"),
        ("{}", "SY107", "routes.main.targets"),
    ],
    ids=["zero", "negative", "infinite", "unknown", "none"],
)
def test_random_with_bad_weights_is_a_policy_error(targets, code, path):
    found = findings(f'type = "random"\ntargets = {targets}\n')

    assert [f[1] for f in found] == [path]
    assert found[0][0] in {code, "SY107"}


# --- rules ---------------------------------------------------------------------------------


def rules(*conditions):
    where = ", ".join("{ " + condition + " }" for condition in conditions)
    return f"""\
type = "rules"
default_target = "executor"

[[routes.main.rules]]
name = "first"
target = "planner"
where = [{where}]
"""


async def decided(route, wire_format="openai_chat", headers=(), **fields):
    request = conversation(wire_format).user("hi").request("demo", headers=headers, **fields)
    return await yard(wire_format, route).decide(request)


@each_format
async def test_rules_first_that_holds_decides_and_is_named(wire_format):
    route = rules("path = '$.stream', equals = true") + (
        "\n[[routes.main.rules]]\ntarget = 'executor'\n"
        "where = [{ path = '$.model', exists = true }]\n"
    )

    first = await decided(route, wire_format, stream=True)
    second = await decided(route, wire_format)

    assert (first.target, first.reason.code) == ("planner", "rule")
    assert first.reason.facts["rule"] == "first"
    assert (second.target, second.reason.facts["rule"]) == ("executor", "rules[1]")


@each_format
async def test_rules_default_target_serves_the_rest(wire_format):
    decision = await decided(rules("path = '$.nothing', exists = true"), wire_format)

    assert (decision.target, decision.reason.code) == ("executor", "no_rule")


@each_of(
    ("condition", "holds"),
    [
        ("path = '$.n', equals = 1", True),
        ("path = '$.n', equals = 1.0", True),
        ("path = '$.n', equals = true", False),
        ("path = '$.flag', equals = true", True),
        ("path = '$.flag', equals = 1", False),
        ("path = '$.word', equals = 'up'", True),
        ("path = '$.word', equals = 'up', not = true", False),
        ("path = '$.word', in = ['down', 'up']", True),
        ("path = '$.word', in = ['down']", False),
        ("path = '$.word', not_in = ['down']", True),
        ("path = '$.word', not_in = ['up']", False),
        ("path = '$.nothing', not_in = ['up']", False),
        ("path = '$.nothing', in = ['up'], not = true", True),
        ("path = '$.word', matches = '^u'", True),
        ("path = '$.n', matches = '1'", False),
        ("path = '$.list[*]', equals = 3", True),
        ("path = '$.list[*]', equals = 4", False),
        ("path = '$.word', exists = true", True),
        ("path = '$.word', exists = false", False),
        ("path = '$.nothing', exists = false", True),
        ("path = '$.lone', matches = 'b$'", True),
        ("header = 'User-Agent', matches = '^codex'", True),
        ("header = 'user-agent', equals = 'codex/1'", True),
        ("header = 'x-none', exists = false", True),
        ("header = 'x-none', matches = ''", False),
    ],
)
async def test_rules_condition(condition, holds):
    decision = await decided(
        rules(condition),
        headers={"user-agent": "codex/1"},
        n=1,
        flag=True,
        word="up",
        list=[1, 2, 3],
        lone="a\ud83db",
    )

    assert (decision.target == "planner") is holds


async def test_rules_need_every_condition():
    route = rules("path = '$.a', equals = 1", "path = '$.b', equals = 2")

    assert (await decided(route, a=1, b=2)).target == "planner"
    assert (await decided(route, a=1)).target == "executor"


async def test_rules_pattern_runs_in_linear_time():
    # A backtracking engine needs longer than the age of the universe for this one.
    decision = await decided(rules("path = '$.word', matches = '(a+)+$'"), word="a" * 5000 + "!")

    assert decision.target == "executor"


@each_of(
    ("condition", "wanted", "message"),
    [
        ("path = '$.[', exists = true", "SY401", "path"),
        ("path = '$.a', matches = '('", "SY402", "bad regular expression"),
        ("path = '$.a'", "SY107", "needs one of"),
        ("path = '$.a', equals = 1, in = [1]", "SY107", "one test, not `equals` and `in`"),
        ("equals = 1", "SY107", "needs either"),
        ("path = '$.a', header = 'b', exists = true", "SY107", "needs either"),
        ("path = '$.a', in = []", "SY107", "no value is in it"),
        ("path = '$.a', not_in = []", "SY107", "asks only whether there is a value"),
        ("header = 'a b', exists = true", "SY107", "not the name of a header"),
        ("header = '', exists = true", "SY107", "not the name of a header"),
        ("header = 'b', equals = 3", "SY107", "header is text"),
        ("header = 'b', in = [1, true]", "SY107", "header is text"),
    ],
)
def test_rules_with_a_bad_condition_is_a_policy_error_at_its_place(condition, wanted, message):
    ((code, path, text),) = findings(rules(condition))

    assert code == wanted
    assert path.startswith("routes.main.rules[0].where[0]")
    assert message in text


def test_rules_unknown_key_offers_the_nearest():
    ((code, path, _),) = findings(rules("path = '$.a', equal = 1, exists = true"))

    assert (code, path) == ("SY104", "routes.main.rules[0].where[0].equal")


def test_rules_unknown_targets_are_found_in_rules_and_default():
    route = rules("path = '$.a', exists = true").replace('"planner"', '"plan"')
    found = findings(route.replace('"executor"', '"exec"'))

    assert [(f[0], f[1]) for f in found] == [
        ("SY201", "routes.main.default_target"),
        ("SY201", "routes.main.rules[0].target"),
    ]
