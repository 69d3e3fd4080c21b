"""``switchyard check``: output, exit codes, and no traceback for a user's mistake."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import switchyard_plan_execute
from switchyard_core.cli import cli
from switchyard_core.declarations import Options, RouteType
from switchyard_core.hookspecs import hookimpl
from switchyard_core.plugins import PluginRegistry
from switchyard_core.testing.harness import registry_of

GOOD = """\
schema_version = 1
[llm_clients.c]
format = "openai_chat"
base_url = "https://example.com/v1"
api_key_env = "CHECK_TEST_KEY"
[targets]
[routes.r]
id = "r"
type = "open"
"""


class Open(Options):
    text: str | None = None


class Router:
    def __init__(self, options: Open) -> None:
        self.options = options

    async def route(self, request: object, context: object) -> object:
        raise AssertionError


class Plugin:
    @hookimpl
    def switchyard_route_types(self) -> list[RouteType]:
        return [RouteType(name="open", options=Open, router=Router, summary="s")]


def run(*arguments: str, env: dict[str, str | None] | None = None) -> Result:
    registry = PluginRegistry([("test", Plugin())])
    return CliRunner().invoke(cli, ["check", *arguments], obj=registry, env=env)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHECK_TEST_KEY", "k")
    (tmp_path / "good.toml").write_text(
        "schema_version = 1\n[targets]\n[routes.r]\nid = 'r'\ntype = 'open'\n"
    )
    (tmp_path / "warned.toml").write_text(GOOD)
    (tmp_path / "bad.toml").write_text(GOOD.replace('"open"', '"opne"').replace("[targets]", ""))
    return tmp_path


def test_check_of_a_clean_policy_exits_0(folder: Path) -> None:
    result = run("good.toml")
    assert (result.exit_code, result.output) == (0, "1 file checked: no findings\n")


def test_check_reports_every_problem_of_every_file_and_exits_1(folder: Path) -> None:
    result = run("bad.toml", "good.toml", "warned.toml")
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        "bad.toml:1:1: SY105 missing key `targets`",
        "  fix: add a table `[targets]`            (more: switchyard rule SY105)",
        "bad.toml:9:8: SY301 unknown route type `opne` at routes.r.type",
        "  installed route types: open",
        "  fix: did you mean `open`?            (more: switchyard rule SY301)",
        "warned.toml:2:14: SY221 warning: no target uses client `c` at llm_clients.c",
        "  fix: remove it, or name it in a target            (more: switchyard rule SY221)",
        "3 files checked: 2 errors, 1 warning",
    ]


def test_check_with_warnings_only_fails_when_strict(folder: Path) -> None:
    assert run("warned.toml").exit_code == 0
    assert run("warned.toml", "--strict").exit_code == 1


def test_check_looks_at_the_environment_unless_offline(folder: Path) -> None:
    online = run("warned.toml", env={"CHECK_TEST_KEY": None})
    assert online.exit_code == 1
    assert "SY204 environment variable `CHECK_TEST_KEY` is not set" in online.output
    assert run("warned.toml", "--offline", env={"CHECK_TEST_KEY": None}).exit_code == 0


@pytest.mark.parametrize("name", ["none.toml", "."])
def test_check_of_an_unreadable_file_exits_2_and_still_checks_the_others(
    folder: Path, name: str
) -> None:
    result = run(name, "bad.toml")
    assert result.exit_code == 2
    assert f"{name}: SY100 cannot read the file" in result.output
    assert "SY301" in result.output


def test_check_as_json_holds_the_same_findings(folder: Path) -> None:
    result = run("bad.toml", "good.toml", "--output", "json")
    assert result.exit_code == 1
    report = json.loads(result.output)
    assert report["version"] == 1
    assert [(file["file"], file["ok"]) for file in report["files"]] == [
        ("bad.toml", False),
        ("good.toml", True),
    ]
    assert report["files"][0]["findings"][1] == {
        "code": "SY301",
        "severity": "error",
        "message": "unknown route type `opne`",
        "line": 9,
        "column": 8,
        "path": "routes.r.type",
        "notes": ["installed route types: open"],
        "fix": "did you mean `open`?",
    }


def test_check_for_github_writes_annotations(folder: Path) -> None:
    (folder / "a,b%.toml").write_text("x")
    result = run("bad.toml", "warned.toml", "a,b%.toml", "none.toml", "--output", "github")
    assert result.exit_code == 2
    lines = result.output.splitlines()
    assert lines[1] == (
        "::error file=bad.toml,line=9,col=8,title=SY301::unknown route type `opne` at "
        "routes.r.type%0Ainstalled route types: open%0Afix: did you mean `open`?"
    )
    assert lines[2].startswith("::warning file=warned.toml,line=2,col=14,title=SY221::")
    assert lines[3].startswith("::error file=a%2Cb%25.toml,line=1,col=1,title=SY103::")
    assert lines[4].startswith("::error file=none.toml,title=SY100::")


def test_check_colours_codes_only_where_asked(folder: Path) -> None:
    registry = PluginRegistry([("test", Plugin())])

    def coloured(**env: str) -> str:
        runner = CliRunner(env=env)
        return runner.invoke(cli, ["check", "bad.toml"], obj=registry, color=True).output

    assert "\x1b[31m\x1b[1mSY301\x1b[0m" in coloured()
    assert "\x1b[" not in coloured(NO_COLOR="1")
    assert "\x1b[" not in run("bad.toml").output


def test_check_reports_the_problems_of_a_script_with_its_own_place(tmp_path):
    script = tmp_path / "s.json"
    script.write_text('{"version": 1, "scripts": [{"turn": []}]}')
    policy = tmp_path / "p.toml"
    policy.write_text(
        'schema_version = 1\n[llm_clients.c]\nformat = "scripted"\nspeaks = "openai_chat"\n'
        'script = "s.json"\n[targets.t]\nid = "m"\nllm_client = "c"\n[routes.r]\nid = "r"\n'
        'type = "noop"\ntarget = "t"\n'
    )

    run = CliRunner().invoke(cli, ["check", str(policy)])

    assert run.exit_code == 1
    assert "s.json:1:" in run.output
    assert "SY241" in run.output


def test_check_reports_an_unknown_strict_provider_with_the_nearest(tmp_path):
    (tmp_path / "s.json").write_text('{"version": 1, "scripts": [{"turns": [{"text": "hi"}]}]}')
    policy = tmp_path / "p.toml"
    policy.write_text(
        'schema_version = 1\n[llm_clients.c]\nformat = "scripted"\nspeaks = "openai_chat"\n'
        'script = "s.json"\nstrict = "opena"\n[targets.t]\nid = "m"\nllm_client = "c"\n'
        '[routes.r]\nid = "r"\ntype = "open"\n'
    )

    result = run(str(policy))

    assert result.exit_code == 1
    assert f"{policy}:6:10: SY243 unknown strict provider `opena`" in result.output
    assert "fix: did you mean `openai`?" in result.output


TWO = """\
schema_version = 1
[llm_clients.c]
format = "anthropic_messages"
base_url = "https://api.anthropic.com"
[targets.known]
id = "claude-haiku-4-5"
llm_client = "c"
[[targets.known.fit]]
path = "metadata"
do = "drop"
[targets.unknown]
id = "own"
llm_client = "c"
[targets.off]
id = "claude-haiku-4-5"
llm_client = "c"
profile = false
[routes]
"""


def explained(folder: Path, *options: str) -> str:
    (folder / "two.toml").write_text(TWO)
    registry = registry_of()
    arguments = ["check", "two.toml", "--offline", "--explain-targets", *options]
    return CliRunner().invoke(cli, arguments, obj=registry).output


def test_explained_targets_name_facts_rules_source_and_day(folder: Path) -> None:
    lines = explained(folder).splitlines()

    start = lines.index("two.toml: target known: claude-haiku-4-5 (anthropic_messages)")
    end = lines.index("two.toml: target unknown: own (anthropic_messages)")
    known = lines[start:end]
    assert "  requests go to https://api.anthropic.com/v1/messages" in known
    assert "  context_window = 200000" in known
    (profile,) = [line for line in known if line.startswith("  profile claude-haiku-4-5: ")]
    assert re.search(r"docs/en/api/errors.*, read \d{4}-\d\d-\d\d \(doc\)$", profile)
    assert "    drop output_config.effort (claude-haiku-4-5)" in known
    assert known[-1] == "    drop metadata (fit)"
    assert "  no profile" in lines[end:]
    assert "  no profile: switched off" in lines[end:]


MIXED = TWO.replace(
    "[routes]\n",
    """[llm_clients.d]
format = "openai_chat"
base_url = "https://chat.test/v1"
[targets.chat]
id = "m"
llm_client = "d"
[routes.both]
id = "both"
type = "plan_execute"
capable_target = "known"
efficient_target = "chat"
""",
)


def test_explained_routes_name_the_pairs_that_they_translate(folder: Path) -> None:
    (folder / "mixed.toml").write_text(MIXED)
    arguments = ["check", "mixed.toml", "--offline", "--explain-targets"]
    registry = registry_of([switchyard_plan_execute])
    lines = CliRunner().invoke(cli, arguments, obj=registry).output.splitlines()
    told = CliRunner().invoke(cli, [*arguments, "--output", "json"], obj=registry).output
    (file,) = json.loads(told)["files"]

    start = lines.index("mixed.toml: route both: targets speak anthropic_messages, openai_chat")
    words = [line.split(" leaves out ")[0].strip() for line in lines[start + 1 : start + 5]]
    assert words == [
        "openai_chat -> anthropic_messages",
        "openai_responses -> anthropic_messages",
        "openai_responses -> openai_chat",
        "anthropic_messages -> openai_chat",
    ]
    assert "cache marks" not in lines[start + 1]
    assert "cache marks" in lines[start + 4]
    assert file["routes"]["both"]["formats"] == ["anthropic_messages", "openai_chat"]
    pairs = file["routes"]["both"]["translates"]
    assert [f"{pair['caller']} -> {pair['target']}" for pair in pairs] == words
    assert pairs[-1]["changes"]["cache marks"] == "left out"


def test_plain_check_says_what_is_lost_between_the_formats_of_a_routes_own_targets(
    folder: Path,
) -> None:
    (folder / "mixed.toml").write_text(MIXED)
    registry = registry_of([switchyard_plan_execute])

    def lost(name: str) -> list[str]:
        arguments = ["check", name, "--offline"]
        lines = CliRunner().invoke(cli, arguments, obj=registry).output.splitlines()
        return [line for line in lines if " loses " in line]

    (folder / "two.toml").write_text(TWO)
    there, back = lost("mixed.toml")
    assert there.startswith("mixed.toml: route both: openai_chat -> anthropic_messages loses ")
    assert back.startswith("mixed.toml: route both: anthropic_messages -> openai_chat loses ")
    assert "cache marks" in back
    assert "cache marks" not in there
    assert lost("two.toml") == []


def test_explained_targets_are_in_the_json(folder: Path) -> None:
    (file,) = json.loads(explained(folder, "--output", "json"))["files"]

    known = file["targets"]["known"]
    assert (known["id"], known["facts"]["max_output"]) == ("claude-haiku-4-5", 64000)
    assert known["url"] == "https://api.anthropic.com/v1/messages"
    assert {"id", "source", "as_of", "sure"} == set(known["profiles"][0])
    assert known["rules"][-1] == {"by": "fit", "rule": "drop metadata"}
    assert file["targets"]["unknown"]["profiles"] == []
