"""Policies whose paths and patterns could stop a server: refused when they are checked."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from switchyard_core.cli import cli

POLICY = """\
schema_version = 1
[identity]
session = ["body:{path}"]
[[housekeeping]]
path = '''{path}'''
[[housekeeping]]
header = "x-a"
matches = '''{pattern}'''
[llm_clients.c]
format = "openai_chat"
base_url = "https://provider.example/v1"
api_key_env = "KEY"
[targets.t]
id = "t"
llm_client = "c"
[mutation_rules.own]
label = "file_edit"
[[mutation_rules.own.rules]]
match = ["x", '''re:{pattern}''']
path = '''{path}'''
target = '''{path}'''
where = [{{ path = '''{path}''', matches = '''{pattern}''' }}]
[routes.rules]
id = "rules"
type = "rules"
default_target = "t"
[[routes.rules.rules]]
target = "t"
where = [{{ path = '''{path}''', matches = '''{pattern}''' }}]
"""
FINE = {"path": "$.a", "pattern": "a"}


@pytest.mark.parametrize(
    ("change", "code", "places"),
    [
        pytest.param({"path": path}, "SY401", [3, 5, 20, 21, 22, 29], id=name)
        for name, path in {
            "sub": "$.a.`sub(/(a+)+$/, b)`",
            "descendants": "$..*..*..*",
            "steps": "$" + ".a" * 500,
            "filters": "$" + "[?(@.a" * 200 + ")]" * 200,
            "wildcards": "$" + "[*]" * 50,
        }.items()
    ]
    + [
        pytest.param({"pattern": pattern}, "SY402", [8, 19, 22, 29], id=name)
        for name, pattern in {
            "look_around": "(?=a)",
            "large": "a{0,900}[ab]{0,900}.{0,900}c",
        }.items()
    ],
)
def test_what_could_stop_a_server_is_a_finding_at_each_place(tmp_path, change, code, places):
    file = tmp_path / "p.toml"
    file.write_text(POLICY.format(**{**FINE, **change}))

    result = CliRunner().invoke(cli, ["check", "--offline", str(file)])

    found = [line for line in result.output.splitlines() if f" {code} " in line]
    assert [int(line.split(":")[1]) for line in found] == places
    assert "SY505" not in result.output
    assert result.exit_code == 1


def test_the_same_policy_without_it_has_no_such_finding(tmp_path):
    file = tmp_path / "p.toml"
    file.write_text(POLICY.format(**FINE))

    result = CliRunner().invoke(cli, ["check", "--offline", str(file)])

    assert " SY4" not in result.output
