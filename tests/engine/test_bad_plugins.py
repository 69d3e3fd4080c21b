"""Bad plugins of others: each gives an error that names it, and nothing else breaks.

Every one is a real distribution on ``sys.path``, found by its metadata as pip leaves it. The
server is driven through all of them: it stays up, and the good route answers.
"""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import DistributionFinder, MetadataPathFinder, entry_points

import pytest

from switchyard_core import PluginError, PluginRegistry, PolicyError
from switchyard_core.policy import check_policy_text
from switchyard_core.testing import FakeReply, Harness, conversation

HEAD = """
from switchyard_core import Decision, Options, Reason, RouteType, TargetName, hookimpl

class BadOptions(Options):
    target: TargetName

"""
GIVES = """
@hookimpl
def switchyard_route_types():
    return [RouteType(name="{name}", options=BadOptions, router={router}, summary="bad")]
"""
ROUTER = """
class BadRouter:
    def __init__(self, options):
        self.options = options

    async def route(self, request, context):
        {body}
"""
POLICY = """
schema_version = 1
[llm_clients.p]
format = "openai_chat"
base_url = "https://provider.test/v1"
[targets.a]
id = "model-a"
llm_client = "p"
[targets.b]
id = "model-b"
llm_client = "p"
[routes.good]
id = "good"
type = "noop"
target = "a"
"""
BAD_ROUTE = """
[routes.bad]
id = "bad"
type = "{type}"
target = "a"
"""
PLAN_ROUTE = """
[routes.plan]
id = "plan"
type = "plan_execute"
capable_target = "a"
efficient_target = "b"
"""


def routing(body):
    return HEAD + ROUTER.format(body=body) + GIVES.format(name="bad", router="BadRouter")


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install one distribution beside what is installed; return all entry points."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(source, *, name="bad_plugin", module="swy_bad", needs=""):
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / "switchyard_bad-6.6.6.dist-info"
        info.mkdir(exist_ok=True)
        metadata = "Metadata-Version: 2.1\nName: switchyard-bad\nVersion: 6.6.6\n" + needs
        (info / "METADATA").write_text(metadata)
        (info / "entry_points.txt").write_text(f"[switchyard]\n{name} = {module}\n")
        importlib.invalidate_caches()
        context = DistributionFinder.Context(path=[str(tmp_path)])
        (distribution,) = MetadataPathFinder.find_distributions(context)
        own = (
            "switchyard_core.plugins.builtins",
            "switchyard_demo_routers",
            "switchyard_plan_execute",
        )
        known = [point for point in entry_points(group="switchyard") if point.value in own]
        return PluginRegistry.from_entry_points(entry_points=[*known, *distribution.entry_points])

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def served(registry, text):
    return Harness(text, plugins=registry, door="http")


def asked(model):
    return conversation("openai_chat").user("hi").request(model)


def findings(registry, text):
    found = check_policy_text(text, "policy.toml", registry).findings
    return [finding.render() for finding in found if finding.severity == "error"]


def assert_names_it(text):
    assert "bad_plugin" in text
    assert "switchyard-bad 6.6.6" in text


# --- those that a policy check tells ---------------------------------------------------------


NOT_USABLE = {
    "fails_on_import": ("import no_such_module_xyz", "ModuleNotFoundError"),
    "misspelt_hook": (
        HEAD + "@hookimpl\ndef switchyard_route_typs():\n    return []\n",
        "did you mean `switchyard_route_types`?",
    ),
    "wrong_options": (
        HEAD.replace("(Options)", "") + GIVES.format(name="bad", router="BadOptions"),
        "options that are not a pydantic model",
    ),
    "lax_options": (
        "import pydantic\n"
        + HEAD.replace("(Options)", "(pydantic.BaseModel)")
        + GIVES.format(name="bad", router="BadOptions"),
        "options that accept unknown keys",
    ),
}


@pytest.mark.parametrize("case", NOT_USABLE)
async def test_unusable_plugin_is_named_by_the_registry_and_everything_else_works(install, case):
    source, reason = NOT_USABLE[case]

    registry = install(source)

    (broken,) = registry.broken
    assert_names_it(broken.error)
    assert reason in broken.error
    with pytest.raises(PluginError, match=r"6\.6\.6") as caught:
        registry.raise_broken()
    error = caught.value
    assert (error.plugin, error.distribution, error.version) == (
        "bad_plugin",
        "switchyard-bad",
        "6.6.6",
    )
    answer = await served(registry, POLICY).ask(asked("good"))
    assert (answer.status, answer.target) == (200, "a")


@pytest.mark.parametrize("case", NOT_USABLE)
def test_policy_that_needs_an_unusable_plugin_is_told_which_and_why(install, case):
    source, reason = NOT_USABLE[case]
    registry = install(source)

    (found,) = findings(registry, POLICY + BAD_ROUTE.format(type="bad"))

    assert found.startswith("policy.toml:19:8: SY301 unknown route type `bad`")
    assert_names_it(found)
    assert reason in found


def test_policy_that_needs_a_plugin_for_a_later_core_is_told_which_and_why(install):
    registry = install(routing(TO_A), needs="Requires-Dist: switchyard-core>=9\n")

    (found,) = findings(registry, POLICY + BAD_ROUTE.format(type="bad"))

    assert found.startswith("policy.toml:19:8: SY301 unknown route type `bad`")
    assert_names_it(found)
    assert "it needs `switchyard-core>=9`, and " in found
    assert "is installed: run `pip install 'switchyard-core>=9'`" in found


def test_policy_that_requires_a_broken_plugin_is_told_though_it_uses_nothing_of_it(
    install, monkeypatch
):
    monkeypatch.setattr("switchyard_core.policy.values.version", lambda _name: "6.6.6")
    registry = install(routing(TO_A), needs="Requires-Python: >=3.99\n")

    (found,) = findings(registry, 'requires = ["httpx", "Switchyard_Bad"]' + POLICY)

    assert found.startswith("policy.toml:1:22: SY510 plugin `bad_plugin` (switchyard-bad 6.6.6) ")
    assert "it needs Python >=3.99" in found


async def test_second_distribution_that_claims_a_route_type_is_no_silent_winner(install):
    registry = install(
        HEAD + ROUTER.format(body="pass") + GIVES.format(name="plan_execute", router="BadRouter")
    )

    (found,) = findings(registry, POLICY + PLAN_ROUTE)

    assert "SY503" in found
    assert_names_it(found)
    assert "`plan_execute` (switchyard-core " in found
    assert (await served(registry, POLICY).ask(asked("good"))).status == 200


async def test_second_distribution_that_claims_a_plugins_name_is_no_silent_winner(install):
    registry = install(routing("pass"), name="plan_execute")

    found = "\n".join(findings(registry, POLICY + PLAN_ROUTE))

    assert "switchyard-bad 6.6.6" in found
    assert "switchyard-core " in found
    assert "its name is also claimed by" in found
    assert (await served(registry, POLICY).ask(asked("good"))).status == 200


# --- those that only a request shows ----------------------------------------------------------


TO_A = "return Decision(target='a', reason=Reason(code='x'))"
FAULTY = {
    "raises": ("raise KeyError('nothing there')", "failed: KeyError: 'nothing there'"),
    "undeclared_target": (
        "return Decision(target='b', reason=Reason(code='x'))",
        "chose the target `b`, which the route `bad` does not declare (declared: a)",
    ),
    "mutates_fields": (
        f"request.fields.set('stolen', b'1')\n        {TO_A}",
        "changed the request; it must return rewrites instead",
    ),
    "mutates_body": (
        f"request.body = b'{{}}'\n        {TO_A}",
        "changed the request; it must return rewrites instead",
    ),
    "no_decision": ("return 'a'", "returned str, not a Decision"),
    "reads_a_missing_message": (
        "return Decision(target=request.conversation.messages[7].role, reason=None)",
        "failed: IndexError",
    ),
}


@pytest.mark.parametrize("case", FAULTY)
async def test_faulty_router_is_named_and_the_server_stays_up(install, case, caplog):
    body, reason = FAULTY[case]
    server = served(install(routing(body)), POLICY + BAD_ROUTE.format(type="bad"))

    answers = [await server.ask(asked(model)) for model in ("good", "bad", "bad", "good")]

    assert [answer.status for answer in answers] == [200, 500, 500, 200]
    assert answers[1].code == "plugin_error"
    # What a router raised may hold anything: the caller learns whose fault it is, the log why.
    assert_names_it(answers[1].message)
    assert reason in caplog.text
    assert_names_it(caplog.text)
    # Nothing of the bad route was sent, and the good one's body is whole.
    assert len(server.upstream.requests) == 2
    assert b"stolen" not in server.upstream.requests[-1].body


INNER = """
import json

def deeper(headers):
    return json.loads(headers["x-json"])  # here

"""
NEXT = """
    async def next(self, request, failed, failure, context):
        return failed.phase.no_such  # here
"""
ANSWER = """
    async def answer(self, request, context):
        yield 1 / 0  # here
"""
KIND = 'router=BadRouter, kind="answers"'
REWRITE = """
from switchyard_core import Rewrite, RewriteType

def rewrite(body, parameters, scope):
    return body.no_such_method()  # here

@hookimpl
def switchyard_rewrites():
    return [RewriteType(name="bad_rewrite", order=1, function=rewrite, summary="bad")]
"""
LISTED = "rewrites=(Rewrite(name='bad_rewrite'),)"
#: A plugin that fails somewhere, and what is said of it.
PLACES = {
    "what_it_calls": (
        INNER + routing("return deeper({'x-json': 'no'})"),
        "JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    ),
    "what_calls_it_back": (
        HEAD
        + "def ranked(_):\n    raise OverflowError  # here\n"
        + routing("return sorted([1, 2], key=ranked)").removeprefix(HEAD),
        "OverflowError",
    ),
    "next": (
        routing(TO_A).replace("\n@hookimpl", NEXT + "\n@hookimpl"),
        "AttributeError: 'str' object has no attribute 'no_such'",
    ),
    "answer": (
        routing(TO_A)
        .replace("\n@hookimpl", ANSWER + "\n@hookimpl")
        .replace("router=BadRouter", KIND),
        "ZeroDivisionError: division by zero",
    ),
    "rewrite": (
        routing(TO_A.replace("))", f"), {LISTED})")) + REWRITE,
        "AttributeError: 'ObjectText' object has no attribute 'no_such_method'",
    ),
}


async def test_failing_plugin_is_told_with_file_and_line_of_its_own(install, caplog):
    wrong = {}
    for name, (source, reason) in PLACES.items():
        module = f"swy_{name}"
        registry = install(source, module=module)
        server = Harness(
            POLICY + BAD_ROUTE.format(type="bad"),
            plugins=registry,
            door="http",
            replies=[FakeReply(status=503, body={})],
        )
        file = sys.modules[module].__file__
        line = source[: source.index("# here")].count("\n") + 1
        said = f"failed: {reason} at {file}:{line}"
        caplog.clear()
        answer = await server.ask(asked("bad"))
        if answer.status != 500 or said not in caplog.text or file in answer.message:
            wrong[name] = (answer.status, answer.message, caplog.text[-2000:])
        if name in ("next", "answer"):
            continue
        with pytest.raises(PluginError) as caught:
            await server.explain(asked("bad"))
        if not str(caught.value).endswith(said):
            wrong[name, "explain"] = str(caught.value)
    assert wrong == {}


async def test_router_that_cannot_be_built_is_named_before_anything_is_served(install):
    registry = install(
        HEAD
        + "def BadRouter(options):\n    raise ValueError('no licence')\n"
        + GIVES.format(name="bad", router="BadRouter")
    )

    with pytest.raises((PluginError, PolicyError), match="ValueError: no licence") as caught:
        served(registry, POLICY + BAD_ROUTE.format(type="bad"))

    assert_names_it(str(caught.value))


async def test_faulty_observer_is_logged_and_changes_nothing(install, caplog):
    registry = install(
        HEAD + "@hookimpl\ndef switchyard_decision_made(decision, request):\n    1 / 0\n"
    )

    answer = await served(registry, POLICY).ask(asked("good"))

    assert answer.status == 200
    assert "bad_plugin failed in switchyard_decision_made" in caplog.text
