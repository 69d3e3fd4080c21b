"""SARIF output, held against a model that was generated from the schema of SARIF 2.1.0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog

from switchyard_core.cli import cli
from switchyard_core.cli.sarif import sarif_log
from switchyard_core.errors import Finding
from switchyard_core.plugins import PluginRegistry

BAD = """\
schema_version = 1
[llm_clients."é"]
format = "openai_chat"
base_url = "https://example.com/v1"
[targets]
[routes.r]
id = "r"
type = "opne"
"""


def run(*files: str) -> tuple[int, dict[str, Any]]:
    registry = PluginRegistry([])
    result = CliRunner().invoke(cli, ["check", "--output", "sarif", *files], obj=registry)
    log = json.loads(result.stdout)
    # The model refuses unknown properties, wrong types and malformed URIs.
    SarifLog.model_validate_json(result.stdout)
    return result.exit_code, log


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b#%é.toml").write_text(BAD, encoding="utf-8")
    (tmp_path / "good.toml").write_text("schema_version = 1\n[targets]\n[routes]\n")
    return tmp_path


def test_findings_become_results_with_place_level_and_rule(folder: Path) -> None:
    code, log = run("a b#%é.toml", "good.toml")
    (sarif_run,) = log["runs"]
    assert (code, log["version"]) == (1, "2.1.0")
    assert sarif_run["invocations"] == [{"executionSuccessful": True}]
    rules = [rule["id"] for rule in sarif_run["tool"]["driver"]["rules"]]
    assert rules == ["SY221", "SY301"]
    unused, unknown = sarif_run["results"]
    assert (unused["level"], unknown["level"]) == ("warning", "error")
    assert [rules[result["ruleIndex"]] for result in (unused, unknown)] == ["SY221", "SY301"]
    assert unknown["message"]["text"].startswith("unknown route type `opne`\n")
    assert unknown["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "a%20b%23%25%C3%A9.toml"},
                "region": {"startLine": 8, "startColumn": 8},
            },
            "logicalLocations": [{"fullyQualifiedName": "routes.r.type"}],
        }
    ]


def test_rules_carry_their_page(folder: Path) -> None:
    _, log = run("a b#%é.toml")
    unused, unknown = log["runs"][0]["tool"]["driver"]["rules"]
    assert unknown["shortDescription"] == {"text": "unknown route type"}
    assert "- Fix: Correct the name" in unknown["help"]["markdown"]
    assert "## Use instead" in unused["help"]["markdown"]


def test_clean_policy_is_a_run_without_results(folder: Path) -> None:
    code, log = run("good.toml")
    assert (code, log["runs"][0]["results"]) == (0, [])


def test_file_that_cannot_be_read_has_no_region_and_fails_the_invocation(folder: Path) -> None:
    code, log = run(str(folder / "none.toml"))
    (result,) = log["runs"][0]["results"]
    assert (code, log["runs"][0]["invocations"]) == (2, [{"executionSuccessful": False}])
    location = result["locations"][0]["physicalLocation"]
    assert "region" not in location
    assert location["artifactLocation"]["uri"].startswith("file:///")


def test_code_without_a_page_still_has_a_description() -> None:
    log = sarif_log([Finding(code="ABC001", message="m", file="f")], {}, complete=True)
    SarifLog.model_validate(log)
    (rule,) = log["runs"][0]["tool"]["driver"]["rules"]
    assert rule == {
        "id": "ABC001",
        "shortDescription": {"text": "ABC001"},
        "help": {"text": "ABC001", "markdown": "ABC001"},
    }
