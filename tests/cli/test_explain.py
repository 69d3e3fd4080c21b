from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from switchyard_core import PluginError
from switchyard_core.cli import cli
from switchyard_plan_execute.router import PlanExecuteRouter
from tests.server.servers import body, policy


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(policy("openai_responses", "http://127.0.0.1:1"))
    return path


@pytest.fixture
def explain(config, tmp_path):
    def run(content, *options):
        path = tmp_path / "request.json"
        path.write_bytes(content)
        return CliRunner().invoke(cli, ["explain", str(config), str(path), *options])

    return run


CONTENT = body("openai_responses", edited=True)
RECORDED = (
    b'{"request": {"path": "/v1/responses", "headers": {"session-id": "own"}, "body": '
    + CONTENT
    + b"}}"
)


def test_explain_prints_the_chain_and_the_diff(explain):
    result = explain(CONTENT, "--header", "X-Switchyard-Session-Id: s-1")
    assert result.exit_code == 0
    assert "identity  session s-1 from header:x-switchyard-session-id" in result.output
    assert "target    executor (small-model), executing" in result.output
    assert '+  "model": "small-model",' in result.output


def test_explain_of_a_recorded_request_uses_its_headers(explain):
    result = explain(RECORDED, "--output", "json")
    assert json.loads(result.output)["identity"]["session"] == "own"


def test_explain_reads_standard_input(config):
    result = CliRunner().invoke(cli, ["explain", str(config), "-"], input=CONTENT)
    assert "executor" in result.output


def test_explain_of_lines_explains_each(explain):
    lines = RECORDED + b"\n" + CONTENT + b"\n"
    text = explain(lines)
    data = explain(lines, "--output", "json")
    assert "== request 1\n" in text.output
    assert "\n== request 2\n" in text.output
    assert [json.loads(line)["target"] for line in data.output.splitlines()] == ["executor"] * 2


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b'{"model":"nope","input":[]}', 404, "model_not_found"),
        (b'{"model":"coder","input":5}', 400, "invalid_type"),
        (b'{"model":"coder"}', 400, "unknown_wire_format"),
        (b'{"model":"coder","messages":[]}', 400, "wire_format_not_served"),
        (b"[", 400, "invalid_json"),
    ],
)
def test_explain_of_a_refused_request_shows_the_refusal_and_exits_1(explain, content, status, code):
    text = explain(content)
    data = explain(content, "--output", "json")
    assert text.exit_code == data.exit_code == 1
    assert text.output.startswith(f"refused   {status} {code}")
    assert json.loads(data.output)["error"]["code"] == code


def test_explain_takes_a_format_for_bodies_that_tell_none(explain):
    result = explain(b'{"model":"coder","input":[]}', "--format", "openai_chat")
    assert "wire_format_not_served" in result.output


def test_explain_with_a_broken_policy_prints_its_findings(config, explain):
    config.write_text(config.read_text().replace('"planner"', '"planer"'))
    result = explain(CONTENT)
    assert result.exit_code == 1
    assert "SY201" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no.toml", "no.json"], "cannot read no.json"),
        (["no.toml", __file__], "SY100"),
        ([__file__, __file__, "--header", "x"], "NAME:VALUE"),
        ([__file__, __file__, "--header", ": x"], "NAME:VALUE"),
    ],
)
def test_explain_that_cannot_run_exits_2(arguments, words):
    result = CliRunner().invoke(cli, ["explain", *arguments])
    assert result.exit_code == 2
    assert words in result.output


def test_explain_of_a_broken_plugin_names_it_and_exits_2(explain, monkeypatch):
    async def boom(self, request, context):
        raise RuntimeError("boom")

    monkeypatch.setattr(PlanExecuteRouter, "route", boom)
    result = explain(CONTENT)
    assert result.exit_code == 2
    assert "the router `plan_execute`" in result.output
    assert "failed: RuntimeError: boom" in result.output


def test_explain_with_plugins_that_do_not_fit_exits_2(explain, monkeypatch):
    def refuse(*_, **__):
        raise PluginError("the plugin does not fit")

    monkeypatch.setattr("switchyard_core.facade.Engine", refuse)
    result = explain(CONTENT)
    assert (result.exit_code, result.output) == (2, "error: the plugin does not fit\n")


# --- routers that ask --------------------------------------------------------------------

JUDGED = """\
schema_version = 1

[llm_clients.provider]
format = "openai_chat"
base_url = "http://127.0.0.1:1"

[targets.judge]
id = "judge-model"
llm_client = "provider"

[targets.strong]
id = "big-model"
llm_client = "provider"

[routes.coding]
id = "coder"
type = "llm_classifier"
judge_target = "judge"
strong_target = "strong"
weak_target = "judge"
"""


@pytest.fixture
def judged(config, explain, tmp_path):
    config.write_text(JUDGED)
    (tmp_path / "reply.json").write_text('{"strong": true, "why": "many files"}\n')

    def run(*options):
        named = [option.replace("FILE", str(tmp_path / "reply.json")) for option in options]
        return explain(b'{"model":"coder","messages":[{"role":"user","content":"go"}]}', *named)

    return run


def test_explain_of_a_router_that_asks_ends_with_the_question(judged):
    text, data = judged(), judged("--output", "json")
    assert (text.exit_code, data.exit_code) == (0, 0)
    assert "would ask judge (judge-model)\n" in text.output
    assert "target    " not in text.output
    assert json.loads(data.output)["would_ask"]["text"] == "go"


def test_explain_with_a_reply_goes_on(judged):
    result = judged("--reply", "judge=FILE")
    assert result.exit_code == 0
    assert 'asked     judge: {"strong": true, "why": "many files"}\n' in result.output
    assert "target    strong (big-model), strong\n" in result.output
    assert "reason    judged: strong: many files\n" in result.output


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("judge", "write it as TARGET=FILE"),
        ("judge=", "write it as TARGET=FILE"),
        ("jugde=FILE", "the policy has no target `jugde`; it has judge, strong"),
        ("judge=no-such-file", "cannot read no-such-file: No such file"),
    ],
)
def test_explain_with_a_reply_that_cannot_be_used_exits_2(judged, option, words):
    result = judged("--reply", option)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
