"""A policy with a test file beside it, to be run."""

from __future__ import annotations

import pytest

import switchyard_demo_routers
import switchyard_plan_execute
from switchyard_core.cases import run_file
from switchyard_core.plugins import PluginRegistry
from switchyard_core.switchyard import Switchyard

POLICY = """\
schema_version = 1

[llm_clients.provider]
format = "openai_chat"
base_url = "https://provider.test/v1"
api_key_env = "PROVIDER_KEY"

[targets.planner]
id = "large"
llm_client = "provider"

[targets.executor]
id = "small"
llm_client = "provider"

[targets.judge]
id = "fast"
llm_client = "provider"

[mutation_rules.own]
extends = ["coding_agents"]

[[mutation_rules.own.rules]]
name = "publish"
label = "file_edit"
match = ["publish"]

[[mutation_rules.own.rules]]
label = "read_only"
match = ["preview"]

[routes.main]
id = "main"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
mutation_rules = ["own"]
latch_capacity = 1

[routes.judged]
id = "judged"
type = "llm_classifier"
judge_target = "judge"
strong_target = "planner"
weak_target = "executor"
"""


@pytest.fixture(scope="session")
def registry():
    found = PluginRegistry.from_entry_points()
    for name in ("plan_execute", "llm_classifier"):
        assert name in found.route_types
    assert switchyard_plan_execute
    assert switchyard_demo_routers
    return found


@pytest.fixture
def run(tmp_path, registry):
    """Write the policy and its test file, and return what came of running them."""

    def run(tests, *, policy=POLICY):
        (tmp_path / "policy.toml").write_text(policy)
        path = tmp_path / "policy.test.toml"
        path.write_text(tests)
        return run_file(path, registry, Switchyard)

    return run
