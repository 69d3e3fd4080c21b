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
    first, second, last = (json.loads(line) for line in data.output.splitlines())
    assert [first["target"], second["target"]] == ["executor"] * 2
    assert [entry["latch"] for entry in last["timeline"]["requests"]] == ["set", ""]


SESSION = (
    [b'{"request": {"path": "/v1/responses", "headers": {"session-id": "own"}, "body": %s}}' % each]
    for each in (body("openai_responses"), CONTENT, body("openai_responses"))
)
ARRAY = b"[" + b",\n".join(each[0] for each in SESSION) + b"]"


def test_explain_of_an_array_latches_as_it_goes_and_ends_with_a_timeline(explain):
    result = explain(ARRAY)
    assert result.exit_code == 0
    assert "latch     not latched -> latched\n" in result.output
    assert "latch     latched -> latched\n" in result.output
    assert result.output.endswith(
        "\ntimeline  3 requests\n"
        "planning on planner, request 1\n"
        "   1  no_mutation; no file was edited yet\n"
        "executing on executor, requests 2-3\n"
        "   2  mutation_in_history; Edit at $.input[1]: file_edit by "
        "coding_agents/edit-tools, word `a.py`; latch set\n"
        "   3  latched; the session was handed to the efficient target; latch held\n"
    )


def test_explain_with_timeline_prints_nothing_else(explain):
    text = explain(ARRAY, "--timeline")
    data = json.loads(explain(ARRAY, "--timeline", "--output", "json").output)
    assert text.output.startswith("timeline  3 requests\n")
    assert data["timeline"]["phases"] == [
        {"phase": "planning", "target": "planner", "first": 1, "last": 1},
        {"phase": "executing", "target": "executor", "first": 2, "last": 3},
    ]
    assert explain(CONTENT, "--timeline").output.startswith("timeline  1 request\nexecuting")


def test_explain_with_turns_plays_the_history_of_one_request(explain):
    result = explain(CONTENT, "--turns", "--timeline")
    assert result.output.splitlines()[1:3] == [
        "planning on planner, request 1",
        "   1  no_mutation; no file was edited yet",
    ]
    assert "executing on executor, request 2" in result.output


def test_explain_never_changes_a_latch_of_the_engine(explain):
    alone = explain(CONTENT, "--header", "x-switchyard-session-id: s").output
    assert "not latched -> latched" in alone
    assert explain(CONTENT, "--header", "x-switchyard-session-id: s").output == alone


def test_explain_of_a_shell_call_prints_the_deciding_word(explain):
    call = {"type": "function_call", "call_id": "c", "name": "shell"}
    call["arguments"] = json.dumps({"command": "sed -i s/a/b/ app.py"})
    items = [{"role": "user", "content": "go"}, call]
    result = explain(json.dumps({"model": "coder", "input": items}).encode())
    assert "word `sed`" in result.output
    assert "          word = sed\n" in result.output


def test_explain_refuses_an_array_with_something_else_in_it(explain):
    result = explain(b'[{"model": "coder", "input": []}, 5]')
    assert result.exit_code == 1
    assert "item 2 of the array is not an object" in result.output


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b'{"model":"nope","input":[]}', 404, "model_not_found"),
        (b'{"model":"coder","input":5}', 400, "invalid_type"),
        (b'{"model":"coder"}', 400, "invalid_type"),
        (b'{"model":"nope"}', 400, "unknown_wire_format"),
        (b"[", 400, "invalid_json"),
    ],
)
def test_explain_of_a_refused_request_shows_the_refusal_and_exits_1(explain, content, status, code):
    text = explain(content)
    data = explain(content, "--output", "json")
    assert text.exit_code == data.exit_code == 1
    assert text.output.startswith(f"refused   {status} {code}")
    assert json.loads(data.output)["error"]["code"] == code


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
    assert f"failed: RuntimeError: boom at {__file__}:" in result.output
    assert "Traceback" not in result.output


def test_explain_with_plugins_that_do_not_fit_exits_2(explain, monkeypatch):
    def refuse(*_, **__):
        raise PluginError("the plugin does not fit")

    monkeypatch.setattr("switchyard_core.switchyard.Switchyard.__init__", refuse)
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
