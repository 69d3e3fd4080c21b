"""The reference of policy tests names every key, and its example passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from switchyard_core.policy.shapes import allowed_keys
from switchyard_core.workbench.case_models import CaseFileModel, CaseModel, ExpectModel

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "policy_tests.md").read_text("utf-8")
POLICY = (ROOT / "policies" / "plan_execute.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        pytest.param("A test file", CaseFileModel, id="file"),
        pytest.param("`[[cases]]`", CaseModel, id="case"),
        pytest.param("`expect`", ExpectModel, id="expect"),
    ],
)
def test_every_key_of_a_table_is_documented_and_no_other(heading, model):
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    keys = [key.strip("[]") for key in re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)]

    assert sorted(keys) == sorted(allowed_keys(model))


def examples():
    return re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_first_example_of_the_page_passes(run):
    policy = POLICY.replace("openai_responses", "openai_chat")

    (case,) = run(examples()[0], policy=policy).cases

    assert (case.state, case.mismatches) == ("PASS", ())


def test_second_example_of_the_page_passes(run, tmp_path):
    folder = tmp_path / "requests"
    folder.mkdir()
    call = '{"type": "function_call", "call_id": "c", "name": "write_file", "arguments": "{}"}'
    result = '{"type": "function_call_output", "call_id": "c", "output": "ok"}'
    body = '{"model": "switchyard/plan-execute", "input": [%s]}'
    (folder / "edited.json").write_text(body % f"{call}, {result}")
    (folder / "compacted.json").write_text(body % "")

    (case,) = run(examples()[1], policy=POLICY).cases

    assert (case.state, case.mismatches) == ("PASS", ())


def test_mistake_that_the_page_shows_is_reported_like_that(run):
    shown = PAGE.split("and the nearest name:\n\n```\n")[1].split("```")[0]
    broken = examples()[0].replace('target = "executor"', 'target = "executorr"')

    (finding,) = run(broken, policy=POLICY).findings

    place = f"{finding.file}:{finding.line}:{finding.column}: "
    assert finding.render().replace(finding.file, "policies/coding.test.toml") + "\n" == shown, (
        place
    )
