"""The policies that ship with the project: clean, and doing what their comments say."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from scripts.make_recordings import REQUESTS, record
from switchyard_core import Switchyard
from switchyard_core.cases import SUFFIX, case_file_of, run_file
from switchyard_core.cli import cli
from switchyard_core.plugins import PluginRegistry
from switchyard_core.testing import FakeReply, Harness, conversation
from tests.support.policies import PLUGINS

ROOT = Path(__file__).parents[1]
RECORDINGS = ROOT / "policies" / "recordings"
POLICIES = sorted(
    path for path in (ROOT / "policies").glob("*.toml") if not path.name.endswith(SUFFIX)
)

#: First line of every policy, for editors.
SCHEMA_LINE = "#:schema switchyard.schema.json\n"
SPECIFIED = """\
schema_version = 1

[llm_clients.provider]
format = "openai_responses"
base_url = "https://example.com/v1"
api_key_env = "OPENAI_API_KEY"

[targets.planner]
id = "provider/capable-model"
llm_client = "provider"

[targets.executor]
id = "provider/efficient-model"
llm_client = "provider"

[routes.plan_execute]
id = "switchyard/plan-execute"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
"""

#: Policy, wire format, and every model id that its client may ask for.
CLIENTS = [
    ("claude-code", "anthropic_messages", ["switchyard/plan-execute", "plan-execute", "any-opus"]),
    (
        "claude-code-haiku",
        "anthropic_messages",
        ["switchyard/plan-execute", "plan-execute", "any-opus"],
    ),
    (
        "claude-code-chat",
        "anthropic_messages",
        ["switchyard/plan-execute", "plan-execute", "any-opus"],
    ),
    ("codex", "openai_responses", ["switchyard/plan-execute", "gpt-5.5", "any-mini"]),
    ("codex-claude", "openai_responses", ["switchyard/plan-execute", "gpt-5.5", "any-mini"]),
    ("openai-compatible", "openai_chat", ["switchyard/plan-execute", "plan-execute"]),
    ("aider", "openai_chat", ["switchyard/plan-execute", "plan-execute"]),
    ("plan_execute", "openai_responses", ["switchyard/plan-execute"]),
    ("demo", "openai_chat", ["demo/openai_chat"]),
    ("demo", "openai_responses", ["demo/openai_responses"]),
    ("demo", "anthropic_messages", ["demo/anthropic_messages"]),
    ("plan_review", "openai_chat", ["switchyard/plan-review"]),
]
#: Policies of other route types, each with a test of its own below.
OTHERS = {"llm_classifier", "fallback", "planner_executor"}


def test_every_policy_is_tested():
    assert {path.stem for path in POLICIES} == {name for name, _, _ in CLIENTS} | OTHERS


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in POLICIES])
def test_policy_has_no_findings(path):
    result = CliRunner().invoke(cli, ["check", "--offline", "--strict", str(path)])

    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in POLICIES])
def test_policy_passes_the_tests_beside_it_and_all_of_it_is_exercised(path):
    result = run_file(case_file_of(path), PluginRegistry.from_entry_points(), Switchyard)

    assert result.findings == ()
    assert result.cases
    assert [case for case in result.cases if case.state != "PASS"] == []
    assert result.coverage.uncovered == ()


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in POLICIES])
def test_policy_loads_without_any_environment_variable(path, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY", "OPENAI_API_KEY", "PROVIDER_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    assert Switchyard.from_policy(path).policy.routes


def test_specified_policy_is_the_text_of_the_specification():
    assert (ROOT / "policies" / "plan_execute.toml").read_text() == SCHEMA_LINE + SPECIFIED


@pytest.mark.parametrize("name", ["demo.toml", "demo.json"])
def test_demo_is_the_one_of_the_package(name):
    packaged = ROOT / "switchyard_core" / "cli" / "demo" / name

    # The copy in the package has no schema beside it.
    text = (ROOT / "policies" / name).read_text().removeprefix(SCHEMA_LINE)
    assert text == packaged.read_text()


@pytest.mark.parametrize(
    ("name", "wire_format", "models"), CLIENTS, ids=[f"{c[0]}-{c[1]}" for c in CLIENTS]
)
async def test_policy_plans_and_hands_off_for_every_model_id_of_its_client(
    name, wire_format, models
):
    harness = Harness(ROOT / "policies" / f"{name}.toml", plugins=PLUGINS)
    headers = {"authorization": "Bearer of-the-caller"}
    start = conversation(wire_format).system("Own instructions.").user("fix it")
    edited = start.edits("edit_file", path="a.py")
    for model in models:
        planned = await harness.run(start.request(model, headers=headers))
        executed = await harness.run(edited.request(model, headers=headers))

        assert planned.decision.target.endswith("planner")
        assert executed.decision.target.endswith("executor")


async def test_fallback_goes_to_the_spare_target_when_the_main_one_is_down():
    down = FakeReply(status=503, body={"error": {"message": "down"}})
    harness = Harness(ROOT / "policies" / "fallback.toml", plugins=PLUGINS, replies=[down])

    routed = await harness.run(
        conversation("openai_chat").user("hi").request("switchyard/fallback")
    )

    assert [sent.model for sent in routed.sent] == ["first/model", "second/model"]


async def test_llm_classifier_sends_a_small_task_to_the_weak_target():
    said = {"role": "assistant", "content": '{"strong": false, "why": "one rename"}'}
    verdict = FakeReply(body={"choices": [{"message": said, "finish_reason": "stop"}]})
    harness = Harness(ROOT / "policies" / "llm_classifier.toml", plugins=PLUGINS, replies=[verdict])
    story = conversation("openai_chat").user("rename x")

    routed = await harness.run(story.request("switchyard/llm-classifier"))

    assert (routed.decision.target, routed.decision.reason.detail) == ("weak", "weak: one rename")


async def test_claude_code_keeps_the_clients_first_system_block_and_its_credential():
    harness = Harness(ROOT / "policies" / "claude-code.toml", plugins=PLUGINS)
    story = conversation("anthropic_messages").system("Own.", cached=True).user("fix it")

    routed = await harness.run(story.request(headers={"authorization": "Bearer own"}))

    assert ("authorization", "Bearer own") in routed.outgoing.headers
    assert routed.outgoing.body.index(b"Own.") < routed.outgoing.body.index(b"planning")


def test_planner_executor_shows_plan_and_results_on_its_recordings_alone(monkeypatch):
    monkeypatch.delenv("PROVIDER_API_KEY", raising=False)
    _, request = REQUESTS["planner_executor"]
    policy, recordings = ROOT / "policies/planner_executor.toml", RECORDINGS / "planner_executor"

    result = CliRunner().invoke(cli, ["plan", str(policy), request, "--replay", str(recordings)])

    assert result.exit_code == 0, result.output
    assert "not used" not in result.output
    lines = result.output.splitlines()
    goal = next(index for index, line in enumerate(lines) if line.startswith("Plan: "))
    actions = [index for index, line in enumerate(lines) if re.match(r"  [1-4]\. ", line)]
    results = [index for index, line in enumerate(lines) if re.match(r"Step [1-4]: ", line)]
    assert [goal, *actions, *results] == sorted([goal, *actions, *results])
    assert (len(actions), len(results)) == (4, 4)
    assert "Pocket Tripod ($45.00)" in result.output


async def test_recordings_are_those_that_their_script_makes(tmp_path):
    await record("planner_executor", tmp_path)

    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    shipped = {path.name: path.read_bytes() for path in (RECORDINGS / "planner_executor").iterdir()}
    assert made == shipped, "run `make recordings`"
