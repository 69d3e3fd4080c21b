"""Policy tests: what passes, what fails, and what could not be carried out."""

from __future__ import annotations

import json

import pytest

import switchyard_demo_routers
import switchyard_plan_execute
from switchyard_core import hookimpl
from switchyard_core.answering import ModelUsage
from switchyard_core.cases import run_file
from switchyard_core.switchyard import Switchyard
from switchyard_core.testing import registry_of
from tests.cases.conftest import POLICY

USER = '{ role = "user", content = "fix it" }'
CALL = (
    '{ role = "assistant", tool_calls = [{ id = "c", type = "function", function = '
    '{ name = "publish", arguments = "{}" } }] }, { role = "tool", tool_call_id = "c", '
    'content = "ok" }'
)
TOOLS = 'tools = [{ type = "function", function = { name = "publish" } }]'
PLAIN = f'{{ model = "main", messages = [{USER}], {TOOLS} }}'
EDITED = f'{{ model = "main", messages = [{USER}, {CALL}], {TOOLS} }}'
SESSION = 'headers = { x-switchyard-session-id = "s" }'


def case(expect, request=PLAIN, more=""):
    return f'[[cases]]\nname = "one"\n{more}\nrequest = {request}\nexpect = {{ {expect} }}\n'


def only(result):
    assert [finding.render() for finding in result.findings] == []
    (found,) = result.cases
    return found


@pytest.mark.parametrize(
    ("expect", "request_", "more"),
    [
        ('target = "planner", phase = "planning", reason = "no_mutation"', PLAIN, ""),
        ('route = "main", target = "executor", reason = "mutation_in_history"', EDITED, ""),
        ('facts = { rule_set = "own", rule = "publish" }', EDITED, ""),
        ("latched = true", EDITED, SESSION),
        ("latched = false", PLAIN, SESSION),
        ("warnings = []", PLAIN, ""),
        ('rewrites = ["set_model"]', EDITED, ""),
        ('body = { "$.messages[*].role" = ["user", "assistant", "tool"] }', EDITED, ""),
        ('absent = ["$.nothing"]', PLAIN, ""),
        ('error = "model_not_found", status = 404', '{ model = "mainn", messages = [] }', ""),
        ('error = "invalid_json"', "'{'", ""),
    ],
    ids=[
        *("planning", "executing", "facts", "latched", "not_latched", "warnings", "rewrites"),
        *("body", "absent", "refused", "no_json"),
    ],
)  # fmt: skip
def test_case_whose_expectations_hold_passes(run, expect, request_, more):
    assert only(run(case(expect, request_, more))).state == "PASS"


@pytest.mark.parametrize(
    ("expect", "what", "expected", "got"),
    [
        ('target = "executor"', "target", '"executor"', '"planner"'),
        ('phase = "executing"', "phase", '"executing"', '"planning"'),
        ('reason = "latched"', "reason", '"latched"', '"no_mutation"'),
        ('route = "judged"', "route", '"judged"', '"main"'),
        ('facts = { rule = "x" }', "facts rule", '"x"', "nothing"),
        ("latched = true", "latched", "true", "false"),
        ('warnings = ["x"]', "warnings", '["x"]', "[]"),
        ("rewrites = []", "rewrites", "[]", '["insert_planning_prompt", "set_model"]'),
        ('body = { "$.model" = "x" }', "body $.model", '"x"', '"large"'),
        ('body = { "$.no" = 1 }', "body $.no", "1", "nothing"),
        ('absent = ["$.model"]', "absent $.model", "nothing", '"large"'),
        ('error = "x"', "error", '"x"', "a decision for `planner`"),
    ],
    ids=lambda value: value.partition(" ")[0] if isinstance(value, str) else None,
)
def test_case_whose_expectation_does_not_hold_fails_at_its_place(run, expect, what, expected, got):
    result = only(run(case(expect)))

    assert result.state == "FAIL"
    (wrong,) = result.mismatches
    assert (wrong.what, wrong.expected, wrong.got) == (what, expected, got)
    assert wrong.where.endswith(".test.toml:5:12") == (expect.partition(" ")[0] not in NESTED)
    assert "route     main (plan_execute)" in result.story


NESTED = ("facts", "body", "absent")


def test_mismatch_inside_a_table_is_reported_at_its_own_key(run):
    (wrong,) = only(run(case('body = { "$.model" = "x" }'))).mismatches

    assert wrong.where.endswith(".test.toml:5:21")


def test_every_mismatch_of_a_case_is_reported(run):
    result = only(run(case('target = "executor", phase = "executing", reason = "latched"')))

    assert [wrong.what for wrong in result.mismatches] == ["target", "phase", "reason"]


def test_body_compares_as_json_does(run):
    request = PLAIN.replace("messages", "n = 1, deep = { list = [1, { b = true }] }, messages")

    assert only(run(case('body = { "$.n" = true }', request))).state == "FAIL"
    assert only(run(case('body = { "$.n" = 1.0 }', request))).state == "PASS"
    same = '"$.deep" = { list = [1, { b = true }] }'
    assert only(run(case(f"body = {{ {same} }}", request))).state == "PASS"
    assert only(run(case(f"body = {{ {same.replace('true', '1')} }}", request))).state == "FAIL"


def test_long_value_is_cut_in_a_mismatch(run):
    (wrong,) = only(run(case(f'body = {{ "$.model" = "{"x" * 300}" }}'))).mismatches

    assert wrong.expected.endswith("… (302 characters)")


def test_unexpected_refusal_fails_with_the_refusal_as_its_story(run):
    result = only(run(case('target = "planner"', '{ model = "mainn", messages = [] }')))

    assert result.state == "FAIL"
    assert result.mismatches[0].got == "refused with 404 model_not_found"
    assert result.story.startswith("refused   404 model_not_found at `model`")


def test_refusal_with_another_code_fails(run):
    result = only(run(case('error = "x", status = 400', '{ model = "mainn", messages = [] }')))

    assert [wrong.got for wrong in result.mismatches] == ['"model_not_found"', "404"]


# --- sessions -----------------------------------------------------------------------------


def test_before_latches_the_session_of_the_case(run):
    more = f"{SESSION}\nbefore = [{{ request = {EDITED} }}]"

    result = only(run(case('target = "executor", reason = "latched"', PLAIN, more)))

    assert result.state == "PASS", result.mismatches


def test_before_may_be_another_session_with_headers_of_its_own(run):
    own = '{ X-Switchyard-Session-Id = "other" }'
    more = f"{SESSION}\nbefore = [{{ request = {EDITED}, headers = {own} }}]"

    assert only(run(case('error = "latch_capacity"', EDITED, more))).state == "PASS"
    assert only(run(case('reason = "no_mutation"', PLAIN, more))).state == "PASS"


def test_final_request_before_frees_its_slot(run):
    final = '{ X-Switchyard-Session-Id = "other", x-switchyard-session-final = "true" }'
    more = f"{SESSION}\nbefore = [{{ request = {EDITED}, headers = {final} }}]"

    assert only(run(case("latched = true", EDITED, more))).state == "PASS"


def test_cases_do_not_see_what_others_latched(run):
    first = case("latched = true", EDITED, SESSION)
    second = case('reason = "no_mutation"', PLAIN, SESSION).replace('"one"', '"two"')

    assert [found.state for found in run(first + second).cases] == ["PASS", "PASS"]


class Counter:
    """A plugin that counts what answers took."""

    def __init__(self):
        self.counted = []

    @hookimpl
    def switchyard_request_finished(self, decision, outcome):
        self.counted.append((decision.identity.session, dict(outcome.usage_by_target)))


def test_usage_of_a_request_before_reaches_the_plugins_that_count_it(tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY)
    tests = tmp_path / "policy.test.toml"
    counts = "usage = { input_tokens = 90, cached_tokens = 40, output_tokens = 3 }"
    more = f"{SESSION}\nbefore = [{{ request = {PLAIN}, {counts} }}, {{ request = {PLAIN} }}]"
    tests.write_text(case('target = "planner"', PLAIN, more))
    counter = Counter()
    registry = registry_of([counter, switchyard_plan_execute, switchyard_demo_routers])

    assert only(run_file(tests, registry, Switchyard)).state == "PASS"
    assert counter.counted == [
        ("s", {"planner": ModelUsage(input_tokens=90, cached_tokens=40, output_tokens=3)}),
        ("s", {}),
    ]


@pytest.mark.parametrize(
    ("counts", "finding"),
    [
        ("input_token = 3", "SY104 unknown key `input_token`"),
        ("input_tokens = -1", "SY107 "),
        ('input_tokens = "3"', "SY106 "),
    ],
    ids=["misspelt", "negative", "text"],
)
def test_wrong_usage_of_a_request_before_is_found(run, counts, finding):
    more = f"before = [{{ request = {PLAIN}, usage = {{ {counts} }} }}]"

    (found,) = run(case('target = "planner"', PLAIN, more)).findings

    assert finding in found.render()


def test_refused_request_before_is_an_error(run):
    more = 'before = [{ request = { model = "mainn", messages = [] } }]'

    result = only(run(case('target = "planner"', PLAIN, more)))

    assert result.state == "ERROR"
    assert result.error.startswith("earlier request 1 was refused: 404 model_not_found: ")


# --- routers that ask -----------------------------------------------------------------------

JUDGED = PLAIN.replace('"main"', '"judged"')
REPLY = 'replies = { judge = [\'{"strong": false, "why": "small"}\'] }'


def test_reply_answers_a_router_that_asks(run):
    assert only(run(case('target = "executor"', JUDGED, REPLY))).state == "PASS"


def test_router_that_asks_without_a_reply_is_an_error(run):
    result = only(run(case('target = "executor"', JUDGED)))

    assert result.state == "ERROR"
    assert result.error == 'would ask `judge`: add its reply, replies = { judge = ["..."] }'
    assert "would ask judge (fast)" in result.story


def test_request_before_that_asks_takes_the_replies_of_the_case(run):
    more = f"before = [{{ request = {JUDGED} }}]"
    expect = 'target = "planner"'

    assert only(run(case(expect, PLAIN, f"{more}\n{REPLY}"))).state == "PASS"
    assert only(run(case(expect, PLAIN, more))).error.startswith("earlier request 1 would ask")


# --- where requests come from -----------------------------------------------------------------


def test_request_may_be_a_string_of_json(run):
    body = json.dumps({"model": "main", "messages": [{"role": "user", "content": "é"}]})

    assert only(run(case('target = "planner"', f"'{body}'"))).state == "PASS"


def test_request_may_be_a_file_with_a_recorded_request(run, tmp_path):
    body = {"model": "main", "messages": []}
    recorded = {"path": "/v1/chat/completions", "headers": {"session-id": "s"}, "body": body}
    (tmp_path / "request.json").write_text(json.dumps({"request": recorded}))
    tests = case("latched = false, warnings = []").replace(
        f"request = {PLAIN}", 'request_file = "request.json"'
    )

    assert "identity  session s" in only(run(tests)).story


def test_environment_is_not_read(run, monkeypatch):
    monkeypatch.delenv("PROVIDER_KEY", raising=False)

    assert only(run(case('target = "planner"'))).state == "PASS"


def test_router_that_breaks_its_contract_is_an_error(run, monkeypatch):
    async def route(self, request, context):
        raise RuntimeError("boom")

    monkeypatch.setattr("switchyard_plan_execute.router.PlanExecuteRouter.route", route)

    result = only(run(case('target = "planner"')))

    assert result.state == "ERROR"
    assert f"RuntimeError: boom at {__file__}:" in result.error


# --- files ---------------------------------------------------------------------------------


def test_policy_with_errors_is_reported_and_no_case_runs(run):
    result = run(case('target = "planner"'), policy="schema_version = 1\n[targets]\n")

    assert [finding.code for finding in result.findings] == ["SY105"]
    assert (result.cases, result.count("ERROR")) == ((), 1)


def test_policy_with_a_missing_script_is_reported(run):
    policy = (
        'schema_version = 1\n[llm_clients.demo]\nformat = "scripted"\nspeaks = "openai_chat"\n'
        'script = "no.json"\n[targets.one]\nid = "one"\nllm_client = "demo"\n'
        '[routes.main]\nid = "main"\ntype = "noop"\ntarget = "one"\n'
    )

    result = run(case('target = "one"'), policy=policy)

    assert result.findings
    assert result.cases == ()


def test_test_file_without_a_policy_is_sy601(tmp_path, registry):
    path = tmp_path / "lost.test.toml"
    path.write_text(case('target = "planner"'))

    (finding,) = run_file(path, registry, Switchyard).findings

    assert finding.code == "SY601"
    assert "`lost.toml`" in finding.message


# --- coverage ------------------------------------------------------------------------------------

HELLO = '{ model = "main", messages = [] }'


def call(tool):
    function = f'{{ name = "{tool}", arguments = "{{}}" }}'
    called = f'{{ id = "c", type = "function", function = {function} }}'
    turn = f'{{ role = "assistant", tool_calls = [{called}] }}'
    result = '{ role = "tool", tool_call_id = "c", content = "" }'
    return f'{{ model = "main", messages = [{turn}, {result}] }}'


def test_coverage_lists_routes_and_own_rules_that_no_case_exercised(run):
    tests = f'[[cases]]\nname = "one"\nrequest = {HELLO}\nexpect = {{ target = "planner" }}\n'

    coverage = run(tests).coverage

    assert (coverage.routes, coverage.rules) == (2, 2)
    assert [(part.kind, part.name) for part in coverage.uncovered] == [
        ("route", "judged"),
        ("rule", "own/publish"),
        ("rule", "own/rules[1]"),
    ]
    assert [part.where.rpartition("toml:")[2] for part in coverage.uncovered] == [
        "40:9",
        "23:22",
        "28:22",
    ]
    assert (coverage.missing("route"), coverage.missing("rule")) == (1, 2)


def test_text_rules_count_as_rules(run):
    block = "a.py\\n<<<<<<< SEARCH\\n=======\\nx\\n>>>>>>> REPLACE\\n"
    said = f'{{ model = "main", messages = [{{ role = "assistant", content = "{block}" }}] }}'
    tests = f'[[cases]]\nname = "one"\nrequest = {said}\nexpect = {{ target = "executor" }}\n'
    text = "".join(
        f'[[mutation_rules.own.text]]\nreader = "{reader}"\n'
        for reader in ("search_replace", "whole_file")
    )

    coverage = run(tests, policy=POLICY + text).coverage

    assert coverage.rules == 4
    assert [part.name for part in coverage.uncovered if part.name.startswith("own/text")] == [
        "own/text[1]"
    ]


def test_rule_counts_when_it_decided_in_a_case_or_before_it(run):
    tests = (
        f'[[cases]]\nname = "one"\nrequest = {call("preview")}\n'
        f'before = [{{ request = {call("publish")} }}]\nexpect = {{ target = "planner" }}\n'
    )

    names = [part.name for part in run(tests).coverage.uncovered]

    assert names == ["judged"]


def test_route_that_refuses_or_asks_counts(run):
    tests = (
        '[[cases]]\nname = "refused"\nrequest = { model = "main", messages = 5 }\n'
        'expect = { error = "invalid_type" }\n'
        '[[cases]]\nname = "asks"\nexpect = { target = "planner" }\n'
        'request = { model = "judged", messages = [{ role = "user", content = "x" }] }\n'
    )
    result = run(tests)

    assert [case.state for case in result.cases] == ["PASS", "ERROR"]
    assert result.coverage.missing("route") == 0
