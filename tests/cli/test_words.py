"""What a command line says of a misspelt word or a file of another kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from switchyard_core.cli import cli

POLICY = (Path(__file__).parents[2] / "policies" / "plan_execute.toml").read_text("utf-8")
BODY = '{"model": "coding", "messages": []}'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder with a policy, its tests and a request."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "switchyard.toml").write_text(POLICY)
    (tmp_path / "switchyard.test.toml").write_text('[[cases]]\nname = "one"\n')
    (tmp_path / "req.json").write_text(BODY)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.toml").write_text(POLICY)
    (tmp_path / "sub" / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (tmp_path / "lines.jsonl").write_text(f"{BODY}\nxx\n{BODY}\n{BODY}\n[}}\n")
    (tmp_path / "null.json").write_text("null")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("check switchyrad.toml", "did you mean `switchyard.toml`?"),
        ("test switchyrad.toml", "did you mean `switchyard.toml`?"),
        ("explain switchyard.toml rq.json", "did you mean `req.json`?"),
        ("explain switchyard.toml req.json --format openai", "did you mean `openai_chat`?"),
        ("init --client claude-cod", "did you mean `claude-code`?"),
        ("packs show coding_agnts", "did you mean `coding_agents`?"),
        ("check sub", "name a file in this folder, such as `sub/a.toml`"),
        ("check --offline switchyard.toml sub/nothing.toml", "fix: check the path"),
        ("serve switchyard.test.toml", "name its policy, `switchyard.toml`"),
        ("explain switchyard.toml switchyard.toml", "switchyard.toml: the body is not JSON"),
        ("explain switchyard.toml switchyard.toml", "REQUEST is a file with JSON"),
        ("explain switchyard.toml null.json", "expected a JSON object, found `null`"),
        ("explain switchyard.toml lines.jsonl", "line 2: not JSON: expecting value at column 1;"),
        ("explain switchyard.toml lines.jsonl", "; line 5: expected a JSON object, found an array"),
        ("serve --port abc", "'abc' is not a valid whole number"),
        ("help", "write `switchyard --help`"),
        ("version", "write `switchyard --version`"),
        ("completion", "_SWITCHYARD_COMPLETE=bash_source"),
        ("lint", "`switchyard --help` lists the commands"),
    ],
)
def test_command_line_says_what_was_meant(line, said):
    result = CliRunner().invoke(cli, line.split())
    assert result.exit_code != 0
    assert said in " ".join(result.output.split())


def test_version_has_a_short_option():
    result = CliRunner().invoke(cli, ["-V"])
    assert result.output == CliRunner().invoke(cli, ["--version"]).output


def test_coverage_of_a_folder_counts_policies_alone():
    result = CliRunner().invoke(cli, ["test", ".", "sub", "--coverage"])
    assert "sub/a.toml: no test file" in result.output
    assert "pyproject" not in result.output
