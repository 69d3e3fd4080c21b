"""Routes: types, options, wire formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from switchyard_core.declarations import Options, PlanStoreType, RouteType, Tool
from switchyard_core.hookspecs import hookimpl
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import CheckResult, check_policy_text
from tests.policy.conftest import Plugin

Check = Callable[..., CheckResult]
Places = Callable[[CheckResult], list[str]]

TARGETS = """\
schema_version = 1
[llm_clients.chat]
format = "openai_chat"
base_url = "https://a.com"
[llm_clients.messages]
format = "anthropic_messages"
base_url = "https://b.com"
[targets.one]
id = "m1"
llm_client = "chat"
[targets.two]
id = "m2"
llm_client = "chat"
[targets.other]
id = "m3"
llm_client = "messages"
[routes.r]
id = "r"
"""


def test_route_keeps_its_keys_and_validated_options(check: Check) -> None:
    text = TARGETS + (
        'type = "plan_execute"\naliases = ["a1", "a2"]\ncapable_target = "one"\n'
        'efficient_target = "two"\nworkspace = ["/tmp/repo"]\nunmatched = "file_edit"\n'
        "context_window = 10\ntool_calling = true\nreasoning = false\nlatch_capacity = 2\n"
    )
    policy = check(text).policy
    assert policy is not None
    route = policy.routes["r"]
    assert (route.id, route.aliases, route.type.name) == ("r", ("a1", "a2"), "plan_execute")
    assert route.options.model_dump()["latch_capacity"] == 2
    assert (route.targets, route.rule_sets) == (("one", "two"), ("coding_agents",))
    assert (route.wire_formats, route.workspace, route.unmatched) == (
        ("openai_chat",),
        ("/tmp/repo",),
        "file_edit",
    )
    assert (route.context_window, route.tool_calling, route.reasoning) == (10, True, False)


def test_route_without_targets_has_no_wire_formats(check: Check) -> None:
    policy = check(TARGETS + 'type = "open"\n').policy
    assert policy is not None
    assert (policy.routes["r"].wire_formats, policy.routes["r"].targets) == ((), ())


def test_wire_format_of_a_scripted_target_is_what_it_speaks(check: Check, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("{}")
    text = (
        'schema_version = 1\n[llm_clients.c]\nformat = "scripted"\nscript = "s.json"\n'
        'speaks = "anthropic_messages"\n[targets.t]\nid = "m"\nllm_client = "c"\n'
        '[routes.r]\nid = "r"\ntype = "spread"\nfallback = "t"\n'
    )
    policy = check(text, base_dir=tmp_path).policy
    assert policy is not None
    assert policy.routes["r"].wire_formats == ("anthropic_messages",)


def test_targets_of_one_route_may_speak_different_wire_formats(check: Check) -> None:
    text = TARGETS + 'type = "plan_execute"\ncapable_target = "one"\nefficient_target = "other"\n'
    result = check(text)

    assert result.errors == ()
    assert result.policy is not None
    assert result.policy.routes["r"].wire_formats == ("openai_chat", "anthropic_messages")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param(
            'choices = [{ target = "one" }, { weight = 2, target = "oen" }]',
            ["20:55 SY201 routes.r.choices[1].target"],
            id="list_of_tables",
        ),
        pytest.param(
            "weights = { one = 1, tow = 2 }", ["20:22 SY201 routes.r.weights.tow"], id="table_keys"
        ),
        pytest.param('fallback = "three"', ["20:12 SY201 routes.r.fallback"], id="optional"),
        pytest.param(
            'either = { target = "three" }',
            ["20:21 SY201 routes.r.either.target"],
            id="union_model",
        ),
        pytest.param(
            'either = { a = "three" }', ["20:16 SY201 routes.r.either.a"], id="union_table"
        ),
        pytest.param(
            'choices = [{ target = "one", wieght = 2 }]',
            ["20:30 SY104 routes.r.choices[0].wieght"],
            id="unknown_nested_key",
        ),
        pytest.param(
            'choices = [{ target = 3 }, "x"]',
            ["20:23 SY106 routes.r.choices[0].target", "20:28 SY106 routes.r.choices[1]"],
            id="wrong_nested_types",
        ),
        pytest.param(
            'fallback = "thee"\nchoices = 3',
            ["20:12 SY201 routes.r.fallback", "21:11 SY106 routes.r.choices"],
            id="reference_beside_a_wrong_type",
        ),
    ],
)
def test_references_in_any_shape_of_options_are_checked(
    keys: str, expected: list[str], check: Check, places: Places
) -> None:
    result = check(f'{TARGETS}type = "spread"\n{keys}\n')
    errors = CheckResult(policy=None, findings=result.errors)
    assert places(errors) == expected


def test_targets_in_any_shape_of_options_are_listed_in_order(check: Check) -> None:
    text = TARGETS + (
        'type = "spread"\nchoices = [{ target = "two" }]\nweights = { one = 1, two = 2 }\n'
    )
    policy = check(text).policy
    assert policy is not None
    assert policy.routes["r"].targets == ("two", "one")


def test_unknown_nested_key_offers_the_keys_of_its_own_table(check: Check) -> None:
    text = f'{TARGETS}type = "spread"\nchoices = [{{ target = "one", wieght = 2 }}]\n'
    (finding,) = check(text).errors
    assert finding.notes == ("allowed keys: target, weight",)
    assert finding.fix == "did you mean `weight`?"


def test_unknown_key_of_a_route_offers_common_keys_and_options(check: Check) -> None:
    (finding,) = check(f'{TARGETS}type = "open"\nworkspaces = []\n').errors
    assert finding.notes == (
        (
            "allowed keys: aliases, answer_model, context_window, id, reasoning, subagents, text, "
            "tool_calling, type, unmatched, workspace"
        ),
    )
    assert finding.fix == "did you mean `workspace`?"


MIXED = """\
schema_version = 1

[llm_clients.chat]
format = "openai_chat"
base_url = "https://chat.test/v1"

[llm_clients.messages]
format = "anthropic_messages"
base_url = "https://messages.test/v1"

[targets.one]
id = "provider/one"
llm_client = "chat"

[targets.two]
id = "provider/two"
llm_client = "messages"

[routes.shop]
id = "shop"
type = "talker"
target = "one"
other = "two"
"""


def test_route_that_answers_may_have_targets_of_different_formats(check: Check) -> None:
    text = MIXED + 'tools = ["send_mail", "search_products", "send_mail"]\n'
    result = check(text)

    assert result.findings == ()
    assert result.policy is not None
    route = result.policy.routes["shop"]
    assert route.type.kind == "answers"
    assert len(route.wire_formats) == 2
    assert route.targets == ("one", "two")
    assert route.tools == ("send_mail", "search_products")
    assert list(result.policy.tools) == ["send_mail", "search_products"]


@pytest.mark.parametrize(
    ("line", "code", "message", "notes", "fix"),
    [
        (
            'tools = ["search_product"]',
            "SY308",
            "unknown tool `search_product`",
            ("tools of installed plugins: search_products, send_mail",),
            "did you mean `search_products`?",
        ),
        (
            'tools = ["send_mail", "zzz"]',
            "SY308",
            "unknown tool `zzz`",
            ("tools of installed plugins: search_products, send_mail",),
            "install the plugin that provides it",
        ),
        (
            'plan_store = "memry"',
            "SY309",
            "unknown plan store `memry`",
            ("installed plan stores: memory",),
            "did you mean `memory`?",
        ),
        (
            'mutation_rules = ["coding_agnts"]',
            "SY404",
            "unknown rule set `coding_agnts`",
            ("known rule sets: coding_agents",),
            "did you mean `coding_agents`?",
        ),
    ],
)
def test_unknown_name_of_a_route_that_answers(
    check: Check, line: str, code: str, message: str, notes: tuple[str, ...], fix: str
) -> None:
    (finding,) = check(MIXED + line + "\n").findings

    assert (finding.code, finding.message, finding.notes, finding.fix) == (
        code,
        message,
        notes,
        fix,
    )
    assert finding.line == 24


DELEGATES = """
[routes.%s]
id = "x"
type = "plan_execute"
capable_target = "%s"
efficient_target = "%s"
"""


@pytest.mark.parametrize("target", ["one", "two"])
def test_route_that_answers_takes_sub_agents_of_any_format_and_passes_its_own_on(
    check: Check, target: str
) -> None:
    sides = check(MIXED + DELEGATES % ("coder", target, target) + 'subagents = "shop"\n')
    talks = check(MIXED + 'subagents = "coder"\n' + DELEGATES % ("coder", target, target))
    chain = check(
        MIXED
        + 'subagents = "coder"\n'
        + DELEGATES % ("coder", target, target)
        + 'subagents = "shop"\n'
    )

    assert [f.code for f in sides.errors] == [f.code for f in talks.errors] == []
    assert [f.code for f in chain.errors] == ["SY307", "SY307"]


class BrokenTools:
    @hookimpl
    def switchyard_tools(self) -> list[Tool]:
        raise RuntimeError("no catalogue")


class Alone:
    """Gives the route type only."""

    @hookimpl
    def switchyard_route_types(self) -> list[RouteType]:
        return Plugin().switchyard_route_types()

    @hookimpl
    def switchyard_plan_stores(self) -> list[PlanStoreType]:
        return Plugin().switchyard_plan_stores()


class OnlyTools:
    @hookimpl
    def switchyard_tools(self) -> list[Tool]:
        return Plugin().switchyard_tools()


def test_tool_of_a_broken_plugin_names_the_plugin() -> None:
    registry = PluginRegistry([("types", Alone()), ("shop", BrokenTools())])

    without = check_policy_text(MIXED, "p.toml", registry)
    (finding,) = check_policy_text(MIXED + 'tools = ["send_mail"]\n', "p.toml", registry).findings

    assert without.findings == ()
    assert finding.code == "SY308"
    assert finding.notes[1].startswith(
        f"plugin `shop` failed in `switchyard_tools`: RuntimeError: no catalogue at {__file__}:"
    )
    assert finding.fix == "repair or remove the broken plugin; see `switchyard plugins`"


def test_tool_that_two_plugins_give_belongs_to_neither() -> None:
    registry = PluginRegistry([("types", Alone()), ("a", OnlyTools()), ("b", OnlyTools())])

    (finding,) = check_policy_text(MIXED + 'tools = ["send_mail"]\n', "p.toml", registry).findings

    assert finding.code == "SY503"
    assert finding.message == "tool `send_mail` is given by `a` and by `b`, and neither is used"


def test_key_of_another_route_type_says_whose_it_is(check: Check, spec: str) -> None:
    own = check(spec + "weights = {}\nzzz = 1\n").findings
    (foreign,) = check(MIXED + 'capable_target = "one"\n').findings
    (nested,) = check(MIXED.replace('other = "two"', "choices = [{ targe = 1 }]")).findings

    assert [(f.code, f.notes[1:]) for f in own] == [
        ("SY104", ("`weights` is a key of route type `spread` of plugin `test_plugin`",)),
        ("SY104", ()),
    ]
    assert foreign.notes[1:] == (
        "`capable_target` is a key of route type `plan_execute` of plugin `test_plugin`",
    )
    assert nested.notes[1:] == (
        "`choices` is a key of route type `spread` of plugin `test_plugin`",
    )


def test_key_of_several_route_types_names_them_all(check: Check) -> None:
    (finding,) = check(f'{TARGETS}type = "open"\nmutation_rules = []\n').findings

    assert finding.notes[1:] == (
        (
            "`mutation_rules` is a key of route types `plan_execute` of plugin `test_plugin`, "
            "`talker` of plugin `test_plugin`"
        ),
    )


class Mute:
    async def route(self, request: object, context: object) -> object:
        raise AssertionError


class Awaiting(Mute):
    async def answer(self, request: object, context: object) -> object:
        raise AssertionError


class Plain(Mute):
    def answer(self, request: object, context: object) -> object:
        raise AssertionError


@pytest.mark.parametrize(
    ("router", "what"),
    [
        (Mute, "writes its own answers but has no method `answer`"),
        (Awaiting, "has a method `answer` that is not an asynchronous generator"),
        (Plain, "has a method `answer` that is not an asynchronous generator"),
    ],
)
@pytest.mark.parametrize("as_factory", [False, True])
def test_router_that_cannot_answer_is_refused(router: type, what: str, *, as_factory: bool) -> None:
    def factory(options: object) -> object:
        return router()

    class Gives:
        @hookimpl
        def switchyard_route_types(self) -> list[RouteType]:
            return [
                RouteType(
                    name="mute",
                    options=Options,
                    router=factory if as_factory else router,
                    summary="",
                    kind="answers",
                )
            ]

    registry = PluginRegistry([("bad", Gives())])
    (finding,) = check_policy_text(f'{TARGETS}type = "mute"\n', "p.toml", registry).findings

    text = finding.render()
    assert finding.code == ("SY505" if as_factory else "SY301")
    assert "`bad`" in text
    assert what in text


class Missing:
    """A plugin that cannot be used, under the name of its route type."""

    @hookimpl
    def switchyard_route_types(self) -> list[RouteType]:
        raise RuntimeError("no database")


def test_unknown_route_type_names_the_broken_plugin(registry: PluginRegistry) -> None:
    assert "open" in registry.route_types
    broken = PluginRegistry([("smart", Missing())])
    result = check_policy_text(TARGETS + 'type = "smart"\n', "p.toml", broken)
    (finding,) = result.findings
    assert finding.code == "SY301"
    listed, failed = finding.notes
    assert listed == "installed route types: none"
    assert failed.startswith(
        "plugin `smart` failed in `switchyard_route_types`: RuntimeError: no database at "
    )
    assert finding.fix == "repair or remove the broken plugin; see `switchyard plugins`"


def test_route_type_that_two_plugins_give_is_refused_naming_both(registry: PluginRegistry) -> None:
    declared = registry.route_types["open"]

    class Gives:
        @hookimpl
        def switchyard_route_types(self) -> list[RouteType]:
            return [declared]

    twice = PluginRegistry([("first", Gives()), ("second", Gives())])
    (finding,) = check_policy_text(TARGETS + 'type = "open"\n', "p.toml", twice).findings
    assert finding.code == "SY503"
    assert "`first` and by `second`" in finding.message


DELEGATING = """\
schema_version = 1
[llm_clients.c]
format = "openai_chat"
base_url = "https://example.com"
[llm_clients.m]
format = "anthropic_messages"
base_url = "https://example.com"
[targets.t]
id = "a"
llm_client = "c"
[targets.u]
id = "b"
llm_client = "m"
[routes.r]
id = "r"
type = "noop"
target = "t"
subagents = "%s"
[routes.s]
id = "s"
type = "noop"
target = "t"
[routes.chain]
id = "chain"
type = "noop"
target = "t"
subagents = "s"
[routes.other]
id = "other"
type = "noop"
target = "u"
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("s", []),
        ("x", ["18:13 SY306 routes.r.subagents"]),
        ("r", ["18:13 SY307 routes.r.subagents"]),
        ("chain", ["18:13 SY307 routes.r.subagents"]),
        ("other", []),
    ],
)
def test_route_for_subagents_must_be_able_to_take_over(name: str, expected: list[str]) -> None:
    registry = PluginRegistry.from_entry_points()

    result = check_policy_text(DELEGATING % name, "p.toml", registry)

    assert [f"{f.line}:{f.column} {f.code} {f.path}" for f in result.errors] == expected


def test_root_of_the_workspace_is_an_absolute_directory(check: Check, spec: str) -> None:
    roots = ["/repo", "~/proj", "$HOME/proj", "C:\\\\code", "src", "./src", "$REPO", " "]
    text = f"{spec}\nworkspace = [" + ", ".join(f'"{root}"' for root in roots) + "]\n"

    assert [(finding.code, finding.message) for finding in check(text).errors] == [
        ("SY107", "`src` is not an absolute directory"),
        ("SY107", "`./src` is not an absolute directory"),
        ("SY107", "`$REPO` is not an absolute directory"),
        ("SY108", "must not be blank"),
    ]


def test_blank_names_are_called_blank(check: Check, spec: str) -> None:
    text = spec.replace('id = "switchyard/plan-execute"', 'id = ""').replace('"planner"\n', '""\n')
    text += '[routes.other]\nid = ""\ntype = ""\n'
    assert [(finding.code, finding.message) for finding in check(text).findings] == [
        ("SY108", "must not be blank"),
        ("SY201", "the name of the target is blank"),
        ("SY108", "must not be blank"),
        ("SY301", "the name of the route type is blank"),
    ]


def routes_with(*aliases: tuple[str, ...]) -> str:
    """Return a policy with a route for each tuple of aliases, called r0, r1 and so on."""
    text = """schema_version = 1
default_route = "r0"
[llm_clients.c]
format = "openai_chat"
base_url = "https://a.com/v1"
[targets.t]
id = "m"
llm_client = "c"
"""
    for number, own in enumerate(aliases):
        text += (
            f'[routes.r{number}]\nid = "id{number}"\naliases = {json.dumps(own)}\n'
            'type = "plan_execute"\ncapable_target = "t"\nefficient_target = "t"\n'
        )
    return text


@pytest.mark.parametrize(
    ("model", "route"),
    [
        ("claude-haiku-4-5", "r3"),
        ("claude-haiku-3", "r2"),
        ("claude-opus", "r1"),
        ("claude-", "r1"),
        ("Claude-opus", "r0"),
        ("x-claude-opus", "r0"),
        ("id1", "r1"),
        ("claude-haiku-*", "r2"),
        ("", "r0"),
    ],
)
def test_most_exact_alias_serves_a_model(model: str, route: str, check: Check) -> None:
    aliases = (("plan",), ("claude-*",), ("claude-haiku-*",), ("claude-haiku-4-5",))
    policy = check(routes_with(*aliases)).policy

    assert policy is not None
    found = policy.route_for(model)
    assert found is not None
    assert found.name == route
    assert policy.names_route(model) is (route != "r0")


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        ("ab*", "*bc", True),
        ("a*d", "ab*", True),
        ("gpt-*-mini", "gpt-5*mini", True),
        ("a*", "b*", False),
        ("ab*", "cb*", False),
        ("a*x", "ab*", True),
        ("claude-*", "claude-haiku-*", False),
        ("*", "**", True),
    ],
)
def test_equally_exact_aliases_of_two_routes_for_the_same_ids_are_reported(
    first: str, second: str, clash: bool, check: Check
) -> None:
    findings = check(routes_with((first,), (second,))).errors

    assert [finding.code for finding in findings] == ["SY302"] * clash
    assert check(routes_with((first, second))).errors == ()
