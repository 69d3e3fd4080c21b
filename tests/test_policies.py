"""The policies that ship with the project: clean, and doing what their comments say."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from switchyard_core import Switchyard
from switchyard_core.cli import cli
from switchyard_core.testing import Harness, conversation

ROOT = Path(__file__).parents[1]
POLICIES = sorted((ROOT / "policies").glob("*.toml"))

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
    ("claude-code", "anthropic_messages", ["switchyard/plan-execute", "plan-execute", "any-haiku"]),
    ("codex", "openai_responses", ["switchyard/plan-execute", "gpt-5.5", "any-mini"]),
    ("openai-compatible", "openai_chat", ["switchyard/plan-execute", "plan-execute"]),
    ("plan_execute", "openai_responses", ["switchyard/plan-execute"]),
    ("demo", "openai_chat", ["demo/openai_chat"]),
    ("demo", "openai_responses", ["demo/openai_responses"]),
    ("demo", "anthropic_messages", ["demo/anthropic_messages"]),
]


def test_every_policy_is_tested():
    assert {path.stem for path in POLICIES} == {name for name, _, _ in CLIENTS}


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in POLICIES])
def test_policy_has_no_findings(path):
    result = CliRunner().invoke(cli, ["check", "--offline", "--strict", str(path)])

    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in POLICIES])
def test_policy_loads_without_any_environment_variable(path, monkeypatch):
    for name in ("OPENAI_API_KEY", "PROVIDER_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    assert Switchyard.from_policy(path).policy.routes


def test_specified_policy_is_the_text_of_the_specification():
    assert (ROOT / "policies" / "plan_execute.toml").read_text() == SPECIFIED


@pytest.mark.parametrize("name", ["demo.toml", "demo.json"])
def test_demo_is_the_one_of_the_package(name):
    packaged = ROOT / "switchyard_core" / "demo" / name

    assert (ROOT / "policies" / name).read_text() == packaged.read_text()


@pytest.mark.parametrize(
    ("name", "wire_format", "models"), CLIENTS, ids=[f"{c[0]}-{c[1]}" for c in CLIENTS]
)
async def test_policy_plans_and_hands_off_for_every_model_id_of_its_client(
    name, wire_format, models
):
    harness = Harness(ROOT / "policies" / f"{name}.toml")
    headers = {"authorization": "Bearer of-the-caller"}
    start = conversation(wire_format).system("Own instructions.").user("fix it")
    edited = start.edits("edit_file", path="a.py")
    for model in models:
        planned = await harness.run(start.request(model, headers=headers))
        executed = await harness.run(edited.request(model, headers=headers))

        assert planned.decision.target.endswith("planner")
        assert executed.decision.target.endswith("executor")


async def test_claude_code_keeps_the_clients_first_system_block_and_its_credential():
    harness = Harness(ROOT / "policies" / "claude-code.toml")
    story = conversation("anthropic_messages").system("Own.", cached=True).user("fix it")

    routed = await harness.run(story.request(headers={"authorization": "Bearer own"}))

    assert ("authorization", "Bearer own") in routed.outgoing.headers
    assert routed.outgoing.body.index(b"Own.") < routed.outgoing.body.index(b"planning")
