"""``switchyard classify``: label, rule and deciding word, for one command or a log of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from switchyard_core.cli import cli

POLICY = """\
schema_version = 1
[llm_clients.p]
format = "openai_chat"
base_url = "https://example.com/v1"
[targets.planner]
id = "capable"
llm_client = "p"
[targets.executor]
id = "efficient"
llm_client = "p"
[mutation_rules.ours]
extends = ["coding_agents"]
[[mutation_rules.ours.rules]]
name = "deploy"
label = "file_edit"
match = ["deploy"]
[[mutation_rules.ours.rules]]
name = "no-shell"
label = "unknown"
match = ["bash"]
[routes.strict]
id = "strict"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
mutation_rules = ["ours"]
"""
SECOND = """\
[routes.second]
id = "second"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
"""


def run(*arguments: str, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["classify", *arguments], input=given)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    return path


def test_classify_names_label_rule_and_word() -> None:
    result = run("git status && sed -i s/a/b/ src/f.py")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "file_edit",
        "  rule    coding_agents / shell-bash",
        "  word    sed",
        "  reason  sed writes src/f.py",
    ]


def test_classify_of_a_read_names_the_rule_that_read_it() -> None:
    assert run("ls -la").output.splitlines() == [
        "read_only",
        "  rule    coding_agents / shell-bash",
    ]


@pytest.mark.parametrize(
    ("tool", "text", "label"),
    [
        ("PowerShell", "Set-Content src/a.cs x", "file_edit"),
        ("shell", "del src\\a.c", "file_edit"),
        ("write_file", '{"path": "src/a.py"}', "file_edit"),
        ("write_file", '{"path": "plan.md"}', "file_write_other"),
        ("apply_patch", "*** Begin Patch\n*** Add File: build/x.log\n", "file_write_other"),
        ("exec", "await tools.exec_command({cmd: 'rm a.py'})", "file_edit"),
        ("bash", "{ rm a.py; }", "file_edit"),
        ("read_file", '{"path": "src/a.py"}', "read_only"),
    ],
)
def test_classify_reads_what_the_tool_is_given(tool: str, text: str, label: str) -> None:
    assert run(text, "--tool", tool).output.splitlines()[0] == label


def test_classify_without_a_rule_says_so() -> None:
    result = run("x", "--tool", "no_such_tool")
    assert result.output.splitlines() == ["read_only", "  rule    none applies"]


def test_classify_as_json_is_one_line() -> None:
    assert json.loads(run("rm a.py", "--json").output) == {
        "command": "rm a.py",
        "tool": "bash",
        "label": "file_edit",
        "rule_set": "coding_agents",
        "rule": "shell-bash",
        "word": "rm",
        "detail": "rm writes a.py",
    }


def test_classify_of_a_log_answers_line_by_line_and_keeps_other_keys() -> None:
    log = [
        '"git status"',
        '{"command": "rm a.py", "id": 7}',
        "",
        '{"tool": "Write", "arguments": {"file_path": "a.py"}}',
        '{"tool": "shell", "arguments": {"command": ["bash", "-lc", "git apply p"]}}',
    ]
    result = run(given="\n".join(log))
    answers = [json.loads(line) for line in result.output.splitlines()]
    assert result.exit_code == 0
    assert [answer["label"] for answer in answers] == ["read_only", *["file_edit"] * 3]
    assert (answers[1]["id"], answers[1]["word"]) == (7, "rm")
    assert answers[2]["arguments"] == {"file_path": "a.py"}


_CUT = (
    "begins like a JSON object, but is not JSON: Expecting ',' delimiter: line 1 column 19 "
    "(char 18)"
)
_NOT_A_CALL = "not a string or an object with `command` or `arguments`"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nonsense", "not JSON: Expecting value"),
        ("7", _NOT_A_CALL),
        ("{}", _NOT_A_CALL),
        ("null", _NOT_A_CALL),
        ('{"tool": 1, "command": "ls"}', "`tool` is not a string"),
        ("\xff", "not UTF-8"),
        (
            r'{"arguments": "{\"command\": \"rm x\""}',
            _CUT,
        ),
    ],
    ids=["prose", "number", "empty", "null", "tool_of_another_type", "bytes", "cut"],
)
def test_classify_of_a_line_it_cannot_read_goes_on_and_exits_1(line: str, why: str) -> None:
    result = run("-", given=f"{line}\n".encode("latin-1") + b'"rm a.py"\n')
    first, second = map(json.loads, result.output.splitlines())
    assert result.exit_code == 1
    assert first == {"error": f"line 1: {why}"}
    assert second["label"] == "file_edit"


def test_classify_of_a_cut_json_object_is_no_command() -> None:
    result = run('{"command":"rm x"')
    assert result.exit_code == 2
    assert "COMMAND begins like a JSON object, but is not JSON" in " ".join(result.output.split())
    assert run('{ "rm" x; }').output.startswith("file_edit")


def test_classify_names_the_nearest_pack() -> None:
    assert "did you mean `strict`?" in " ".join(run("ls", "--pack", "strct").output.split())


def test_classify_with_a_policy_uses_its_rules(policy: Path) -> None:
    result = run("rm a.py", "--policy", str(policy))
    assert result.output.splitlines()[:2] == ["unknown", "  rule    ours / no-shell"]
    assert run("x", "--policy", str(policy), "--tool", "deploy").output.startswith("file_edit\n")


def test_classify_with_routes_of_different_rules_needs_one(policy: Path) -> None:
    policy.write_text(POLICY + SECOND)
    result = run("rm a.py", "--policy", str(policy))
    assert result.exit_code == 2
    assert "the routes have different rules; add --route: strict, second" in result.output
    picked = run("rm a.py", "--policy", str(policy), "--route", "second")
    assert picked.output.startswith("file_edit\n")


def test_classify_with_an_unknown_route_lists_those_with_rules(policy: Path) -> None:
    result = run("ls", "--policy", str(policy), "--route", "x")
    assert result.exit_code == 2
    assert "no route `x` with mutation rules; routes with rules: strict" in result.output


def test_classify_with_a_broken_policy_shows_its_findings(policy: Path) -> None:
    policy.write_text(POLICY.replace("plan_execute", "plan_exec"))
    result = run("ls", "--policy", str(policy))
    assert result.exit_code == 1
    assert "SY301" in result.output


def test_classify_without_the_policy_file_exits_2(tmp_path: Path) -> None:
    result = run("ls", "--policy", str(tmp_path / "none.toml"))
    assert result.exit_code == 2
    assert "none.toml" in result.output


def test_classify_with_a_pack_uses_it() -> None:
    assert run("ls", "--pack", "strict", "--tool", "mystery").output.startswith("file_edit\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ls", "--pack", "nope"], "unknown pack `nope`; installed packs: coding_agents"),
        (["ls", "--route", "r"], "--route needs --policy"),
        (["ls", "--pack", "strict", "--policy", "p"], "exclude each other"),
    ],
)
def test_classify_with_options_that_do_not_fit_exits_2(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, message in result.output) == (2, True)


TEXT = (
    "Here is the fix.\n\ncalc.py\n```python\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n"
    "\nplan.md\n```markdown\n# Plan\n```\n"
)


def test_classify_text_shows_each_edit_and_its_place() -> None:
    result = run("--text", TEXT)

    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "file_edit",
        "  rule    text_edits / search-replace",
        "  place   character 18",
        "  word    calc.py",
        "  reason  writes calc.py",
        "file_write_other",
        "  rule    text_edits / whole-files",
        f"  place   character {TEXT.index('plan.md')}",
        "  word    plan.md",
        "  reason  writes plan.md",
    ]


def test_classify_text_reads_the_whole_standard_input() -> None:
    found = [json.loads(line) for line in run("--text", "--json", given=TEXT).output.splitlines()]

    assert [(edit["offset"], edit["label"]) for edit in found] == [
        (18, "file_edit"),
        (TEXT.index("plan.md"), "file_write_other"),
    ]


def test_classify_text_without_an_edit_says_so() -> None:
    said = ["read_only", "  reason  the text contains no edit that a rule reads"]

    assert run("--text", "I would use `<<<<<<< SEARCH`.").output.splitlines() == said
    assert run("--text", "Nothing.", "--json").output == ""


def test_classify_text_by_the_rules_of_a_policy(policy: Path) -> None:
    text = '[[mutation_rules.ours.text]]\nreader = "search_replace"\nlabel = "unknown"\n'
    policy.write_text(POLICY + text)

    result = run("--text", TEXT, "--policy", str(policy))

    assert result.output.splitlines()[:2] == ["unknown", "  rule    ours / text[0]"]


def test_workspace_option_names_the_roots() -> None:
    command = "echo x > /srv/a/b/dist/x.js"

    assert run(command).output.startswith("file_edit\n")
    assert "no workspace root is known" in run("echo x > /code/a.py").output
    found = run("--workspace", "/other", "--workspace", "/srv/a/b", command)
    assert found.output.startswith("file_write_other\n")
    assert "no workspace root is known" not in found.output


def test_line_names_the_roots_of_its_workspace() -> None:
    command = "echo x > /srv/a/b/dist/x.js"
    lines = [{"command": command}, {"command": command, "workspace": "/srv/a/b"}]
    lines += [
        {"command": command, "workspace": ["/x", "/srv/a/b"]},
        {"command": "ls", "workspace": None, "tool": None},
    ]
    lines += [{"command": command, "cwd": "/srv/a/b"}]

    found = run(given="\n".join(map(json.dumps, lines))).output.splitlines()

    wanted = ["file_edit", "file_write_other", "file_write_other", "read_only"]
    wanted += ["file_write_other"]
    assert [json.loads(line)["label"] for line in found] == wanted


NO_ROOTS: list[tuple[dict[str, Any], str]] = [
    ({"workspace": 5}, "`workspace`: 5 is not an absolute directory"),
    ({"workspace": [None]}, "`workspace`: null is not an absolute directory"),
    ({"workspace": ["/a", "b"]}, '`workspace`: "b" is not an absolute directory'),
    ({"workspace": ""}, '`workspace`: "" is not an absolute directory'),
    ({"workspace": {}}, "`workspace`: {} is not an absolute directory"),
    ({"cwd": "."}, '`cwd`: "." is not an absolute directory; write where it is, such as "~/proj"'),
    ({"tool": 1}, "`tool` is not a string"),
    ({"tool": ["bash"]}, "`tool` is not a string"),
]


def test_line_with_a_bad_root_or_tool_is_refused() -> None:
    lines = [json.dumps({"command": "ls", **given}) for given, _ in NO_ROOTS]

    result = run(given="\n".join(lines))

    told = [json.loads(line).get("error", "") for line in result.output.splitlines()]
    wanted = [f"line {number}: {error}" for number, (_, error) in enumerate(NO_ROOTS, 1)]
    assert result.exit_code == 1
    assert [(t, w) for t, w in zip(told, wanted, strict=True) if not t.startswith(w)] == []


@pytest.mark.parametrize("root", ["", ".", "src"])
def test_workspace_option_that_is_no_root_exits_2(root: str) -> None:
    result = run("ls", "--workspace", root)

    assert result.exit_code == 2
    assert f'--workspace: "{root}" is not an absolute directory' in result.output


def test_workspace_of_an_edit_in_a_text_is_named() -> None:
    text = "/srv/a/b/dist/x.js\n```\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n"

    assert run("--text", text).output.startswith("file_edit\n")
    assert run("--text", "--workspace", "/srv/a/b", text).output.startswith("file_write_other\n")
