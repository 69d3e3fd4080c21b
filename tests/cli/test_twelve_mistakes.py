"""One policy with twelve mistakes: every place, every fix, every form of output."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from switchyard_core.cli import cli
from switchyard_core.errors import Finding
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import check_policy_text

# Dotted keys, an inline table, tabs, an array and arrays of tables.
POLICY = """\
schema_version = 1
default_rout = "coding"

[llm_clients]
provider.format = "openai_chat"
provider.base_url = "example.com/v1"
provider.max_retries = "3"

[targets]
planner = { id = "m-1", llm_client = "providr" }
executor = { id = "m-2", llm_client = "provider" }

[routes.coding]
\tid = "coding"
\ttype = "plan_execute"
\tplanning_prompt\t=\t" "
\tcapable_target\t=\t"planer"
\tefficient_target = "executor"
\tmutation_rules = ["coding_agents", "owm"]

[routes.other]
id = "coding"
type = "pasthrough"
targets = ["executor"]

[[mutation_rules.own.rules]]
label = "file_edt"
match = ["cms_save"]

[[mutation_rules.own.rules]]
label = "file_edit"
path = "$.messages["
match = ["cms_drop"]

[[housekeeping]]
header = "x-kind"
matches = "(ping"
"""


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """Where it is, what is said about it, and the text before and after its fix."""

    place: tuple[int, int]
    code: str
    fix: str
    old: str
    new: str


MISTAKES = (
    Mistake(
        place=(2, 1),
        code="SY104",
        fix="did you mean `default_route`?",
        old="default_rout ",
        new="default_route ",
    ),
    Mistake(
        place=(6, 21),
        code="SY203",
        fix='write an absolute URL such as "https://api.example.com/v1"',
        old='"example.com/v1"',
        new='"https://api.example.com/v1"',
    ),
    Mistake(place=(7, 24), code="SY106", fix="write `3`", old='"3"', new="3"),
    Mistake(
        place=(10, 38),
        code="SY202",
        fix="did you mean `provider`?",
        old='"providr"',
        new='"provider"',
    ),
    Mistake(
        place=(16, 20),
        code="SY108",
        fix="write the text, or remove the key",
        old='" "',
        new='"Plan first."',
    ),
    Mistake(
        place=(17, 19),
        code="SY201",
        fix="did you mean `planner`?",
        old='"planer"',
        new='"planner"',
    ),
    Mistake(place=(19, 37), code="SY404", fix="did you mean `own`?", old='"owm"', new='"own"'),
    Mistake(
        place=(22, 6),
        code="SY302",
        fix="give each route its own ids and aliases",
        old='\nid = "coding"',
        new='\nid = "other"',
    ),
    Mistake(
        place=(23, 8),
        code="SY301",
        fix="did you mean `passthrough`?",
        old="pasthrough",
        new="passthrough",
    ),
    Mistake(
        place=(27, 9),
        code="SY410",
        fix="did you mean `file_edit`?",
        old="file_edt",
        new="file_edit",
    ),
    Mistake(
        place=(32, 20),
        code="SY401",
        fix="correct the path",
        old="$.messages[",
        new="$.messages[*].content[*].name",
    ),
    Mistake(
        place=(37, 12),
        code="SY402",
        fix="correct the expression (RE2 syntax)",
        old='"(ping"',
        new='"(ping)"',
    ),
)
each_mistake = pytest.mark.parametrize(
    "mistake", [pytest.param(m, id=m.code.lower()) for m in MISTAKES]
)
FORMS = {
    "lf": POLICY.encode(),
    "crlf_and_byte_order_mark": b"\xef\xbb\xbf" + POLICY.replace("\n", "\r\n").encode(),
}
each_form = pytest.mark.parametrize("form", list(FORMS))


@pytest.fixture(scope="module")
def installed() -> PluginRegistry:
    return PluginRegistry.from_entry_points()


def found(text: str | bytes, registry: PluginRegistry) -> tuple[Finding, ...]:
    return check_policy_text(text, "p.toml", registry).findings


@each_form
def test_twelve_mistakes_are_twelve_findings_in_order(form: str, installed: PluginRegistry) -> None:
    findings = found(FORMS[form], installed)
    assert len(MISTAKES) == 12
    assert [(f.line, f.column, f.code, f.fix) for f in findings] == [
        (*m.place, m.code, m.fix) for m in MISTAKES
    ]


@each_mistake
def test_fix_that_is_applied_removes_its_finding_and_no_other(
    mistake: Mistake, installed: PluginRegistry
) -> None:
    assert POLICY.count(mistake.old) == 1
    findings = found(POLICY.replace(mistake.old, mistake.new), installed)
    assert [f.code for f in findings] == [m.code for m in MISTAKES if m is not mistake]


def test_policy_with_every_fix_is_clean(installed: PluginRegistry) -> None:
    text = POLICY
    for mistake in MISTAKES:
        text = text.replace(mistake.old, mistake.new)
    assert [finding.render() for finding in found(text, installed)] == []


Seen = list[tuple[int, int, str]]


def _text(output: str) -> Seen:
    places = re.findall(r"^p\.toml:(\d+):(\d+): (SY\d+) ", output, re.MULTILINE)
    assert output.count("\n  fix: ") == len(places)
    return [(int(line), int(column), code) for line, column, code in places]


def _json(output: str) -> Seen:
    (file,) = json.loads(output)["files"]
    assert all(finding["fix"] for finding in file["findings"])
    return [(f["line"], f["column"], f["code"]) for f in file["findings"]]


def _github(output: str) -> Seen:
    pattern = r"::error file=p\.toml,line=(\d+),col=(\d+),title=(SY\d+)::.*%0Afix: .+"
    matches = [re.fullmatch(pattern, line) for line in output.splitlines()]
    return [(int(m[1]), int(m[2]), m[3]) for m in matches if m is not None]


def _sarif(output: str) -> Seen:
    results: list[dict[str, Any]] = json.loads(output)["runs"][0]["results"]
    assert all("\nfix: " in result["message"]["text"] for result in results)
    regions = [r["locations"][0]["physicalLocation"]["region"] for r in results]
    return [
        (region["startLine"], region["startColumn"], result["ruleId"])
        for region, result in zip(regions, results, strict=True)
    ]


@each_form
@pytest.mark.parametrize(
    ("output", "read"),
    [("text", _text), ("json", _json), ("github", _github), ("sarif", _sarif)],
    ids=["text", "json", "github", "sarif"],
)
def test_every_form_of_output_has_the_same_twelve(
    output: str, read: Any, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_bytes(FORMS[form])
    result = CliRunner().invoke(cli, ["check", "--offline", "--output", output, "p.toml"])
    assert result.exit_code == 1
    assert read(result.stdout) == [(*m.place, m.code) for m in MISTAKES]
