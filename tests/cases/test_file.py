"""Mistakes in a test file: all of them at once, each at its place."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from random import Random

import pytest

from switchyard_core.cases import as_junit, as_text, run_file
from switchyard_core.cases.file import CaseFileModel, CaseModel, ExpectModel
from switchyard_core.policy.shapes import allowed_keys
from switchyard_core.switchyard import Switchyard
from tests.cases.conftest import POLICY as MAIN

ROOT = Path(__file__).parents[2]
POLICIES = ROOT / "policies"

REQUEST = 'request = { model = "main", messages = [] }'
EXPECT = 'expect = { target = "planner" }'


def found(run, tests):
    return [(f.code, f.line, f.column) for f in run(tests).findings]


@pytest.mark.parametrize(
    ("lines", "expected", "said"),
    [
        ([REQUEST, 'expect = { targett = "planner" }'], ("SY104", 4, 12), "did you mean `target`?"),
        ([REQUEST, "expekt = {}", EXPECT], ("SY104", 4, 1), "did you mean `expect`?"),
        (["request = 1", EXPECT], ("SY106", 3, 11), "must be a table, or a string"),
        ([REQUEST, "expect = { target = 1 }"], ("SY106", 4, 21), "must be a string"),
        ([REQUEST], ("SY105", 1, 3), "missing key `expect`"),
        (['request_file = "no.json"', EXPECT], ("SY602", 3, 1), "no such file"),
        (['request_file = "\\u0000"', EXPECT], ("SY602", 3, 1), "not a usable path"),
        ([EXPECT], ("SY603", 1, 3), "add `request` or `request_file`"),
        ([REQUEST, 'request_file = "a"', EXPECT], ("SY603", 1, 3), "remove one"),
        ([REQUEST, 'expect = { target = "plannr" }'], ("SY604", 4, 21), "mean `planner`?"),
        ([REQUEST, 'expect = { route = "nothing" }'], ("SY604", 4, 20), "routes: judged, main"),
        ([REQUEST, 'expect = { rewrites = ["set_modle"] }'], ("SY604", 4, 24), "`set_model`?"),
        ([REQUEST, EXPECT, 'replies = { jugde = ["x"] }'], ("SY604", 5, 13), "mean `judge`?"),
        ([REQUEST, EXPECT, "replies = { judge = [] }"], ("SY107", 5, 21), "at least 1 entry"),
        (["request = { model = 'none' }", EXPECT], ("SY606", 3, 1), "name its wire format"),
        (["request = '''\n{}\n{}\n'''", EXPECT], ("SY606", 3, 1), ""),
        ([REQUEST, "expect = {}"], ("SY607", 4, 1), "cannot fail"),
        ([REQUEST, 'expect = { error = "x", phase = "y" }'], ("SY607", 4, 25), "has no `phase`"),
        ([REQUEST, 'expect = { body = { "$[" = 1 } }'], ("SY401", 4, 21), "bad JSONPath"),
        ([REQUEST, 'expect = { absent = ["$["] }'], ("SY401", 4, 25), "bad JSONPath"),
        ([REQUEST, 'format = "openai"', EXPECT], ("SY107", 4, 10), "openai_chat"),
        (["before = [{ }]", REQUEST, EXPECT], ("SY603", 3, 11), "the case has no request"),
    ],
)
def test_mistake_is_reported_at_its_place(run, lines, expected, said):
    result = run('[[cases]]\nname = "one"\n' + "\n".join(lines) + "\n")

    (finding,) = result.findings
    assert (finding.code, finding.line, finding.column) == expected
    assert said in finding.render()


def test_several_requests_in_a_file_are_sy606(run, tmp_path):
    (tmp_path / "two.jsonl").write_text('{"messages": []}\n{"messages": []}\n')

    result = run(f'[[cases]]\nname = "one"\nrequest_file = "two.jsonl"\n{EXPECT}\n')

    (finding,) = result.findings
    assert finding.message == "there are 2 requests, one per line"


def test_two_cases_of_one_name_are_sy605_naming_both_places(run):
    one = f'[[cases]]\nname = "one"\n{REQUEST}\n{EXPECT}\n'

    (finding,) = run(one * 2).findings

    assert (finding.code, finding.line) == ("SY605", 6)
    assert finding.notes[0].endswith("policy.test.toml:2:8")


def test_blank_name_is_refused(run):
    assert found(run, f'[[cases]]\nname = " "\n{REQUEST}\n{EXPECT}\n') == [("SY108", 2, 8)]


def test_file_without_cases_is_refused(run):
    assert found(run, "cases = []\n") == [("SY107", 1, 9)]


def test_other_schema_version_is_refused(run):
    tests = f'schema_version = 2\n[[cases]]\nname = "one"\n{REQUEST}\n{EXPECT}\n'

    assert found(run, tests) == [("SY107", 1, 18)]


def test_file_that_is_no_toml_is_refused(run):
    assert found(run, "[[cases]\n")[0][0] == "SY103"


def test_all_mistakes_are_reported_in_the_order_of_the_file(run):
    tests = (
        f'[[cases]]\nname = "one"\n{REQUEST}\nexpect = {{ target = "plannr" }}\n'
        f'[[cases]]\nname = "one"\n{EXPECT}\n'
        f'[[cases]]\nname = "two"\n{REQUEST}\nexpect = {{}}\n'
    )

    assert [code for code, *_ in found(run, tests)] == ["SY604", "SY603", "SY605", "SY607"]


@pytest.mark.parametrize(
    ("wrong", "codes"),
    [
        pytest.param("latched = 1", ["SY106"], id="wrong_type"),
        pytest.param("lached = true", ["SY104"], id="unknown_key"),
        pytest.param("status = 600", ["SY107"], id="no_status"),
        pytest.param('absent = ["$["]', ["SY401"], id="bad_path"),
    ],
)
def test_a_wrong_value_hides_no_other_mistake_and_causes_none(run, wrong, codes):
    call = "{ id = 'c', function = { name = 'x', arguments = { a = 1 } } }"
    messages = f"[{{ role = 'assistant', tool_calls = [{call}] }}]"
    tests = (
        f'[[cases]]\nname = "one"\n{REQUEST}\nexpect = {{ {wrong} }}\n'
        f'[[cases]]\nname = "one"\nrequest = 1\n{EXPECT}\n'
        f'[[cases]]\nname = "two"\n{REQUEST}\n'
        f'[[cases]]\nname = " "\nrequest_file = "no.json"\nexpect = {{ target = "plannr" }}\n'
        f"[[cases]]\nname = 1\n{REQUEST}\nexpect = {{}}\n"
        f'[[cases]]\nname = "three"\nrequest = {{ model = "main", messages = {messages} }}\n'
        'expect = { body = { "$[" = 1 } }\n'
    )
    expected = [
        *("SY605", "SY106", "SY105", "SY108", "SY602", "SY604", "SY106", "SY607", "SY609"),
        "SY401",
    ]
    result = run(tests)
    assert [finding.code for finding in result.findings] == codes + expected
    assert f"{len(codes + expected)} errors in 1 file" in as_text([result])


@pytest.mark.parametrize("seed", range(12))
def test_damaged_test_file_gives_findings_or_results_and_never_an_exception(
    seed, tmp_path, registry
):
    random = Random(seed)
    shutil.copy(POLICIES / "claude-code.toml", tmp_path)
    path = tmp_path / "claude-code.test.toml"
    whole = (POLICIES / path.name).read_text()
    for _ in range(5):
        at = random.randrange(len(whole))
        put = random.choice(["", "{", "]", '"', "1", "\n", "[[cases]]", "\u00e9", "1979-05-27"])
        path.write_text(whole[:at] + put + whole[at + random.randrange(8) :])

        result = run_file(path, registry, Switchyard)

        assert result.findings or result.cases
        assert as_text([result], coverage=True)
        assert as_junit([result])


# --- the page of the documentation ---------------------------------------------------------------

PAGE = (ROOT / "docs" / "policy_tests.md").read_text("utf-8")
POLICY = (POLICIES / "plan_execute.toml").read_text("utf-8")


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


# --- requests that run, but not as they are meant ------------------------------------------------

DEFAULT = ("schema_version = 1\n", 'schema_version = 1\ndefault_route = "main"\n')
CALL = "messages = [{ role = 'assistant', tool_calls = [{ id = 'c', type = 'function', "


def defaulted(run, lines):
    tests = "\n".join(["[[cases]]", 'name = "case"', *lines])
    return run(tests, policy=MAIN.replace(*DEFAULT)).findings


@pytest.mark.parametrize(
    ("lines", "fix"),
    [
        pytest.param(
            ["request = { model = 'mian', messages = [] }", EXPECT],
            "did you mean `main`? If not, to test the default route, expect `route = ",
            id="near",
        ),
        pytest.param(
            ["request = { model = 'gpt-9', messages = [] }", EXPECT],
            'to test the default route, expect `route = "main"`',
            id="far",
        ),
        pytest.param(
            ["before = [{ request = { model = 'mian', messages = [] } }]", REQUEST, EXPECT],
            "did you mean `main`?",
            id="of_an_earlier_request",
        ),
    ],
)
def test_model_that_only_the_default_route_takes_is_reported(run, lines, fix):
    (finding,) = defaulted(run, lines)
    assert (finding.code, finding.line) == ("SY608", 3)
    assert "so the default route takes it" in finding.message
    assert finding.notes == ("model ids: judged, main",)
    assert finding.fix.startswith(fix)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([REQUEST, EXPECT], id="of_a_route"),
        pytest.param(
            [
                "request = { model = 'gpt-9', messages = [] }",
                "expect = { route = 'main', target = 'planner' }",
            ],
            id="expected",
        ),
        pytest.param(
            ["request = { messages = [] }", "format = 'openai_chat'", EXPECT], id="no_model"
        ),
    ],
)
def test_model_that_means_the_default_route_or_another_is_not_reported(run, lines):
    assert defaulted(run, lines) == ()


@pytest.mark.parametrize(
    ("lines", "column"),
    [
        pytest.param(
            [
                (
                    f"request = {{ model = 'main', {CALL}function = {{ name = 'publish', "
                    "arguments = { path = 'a' } } }] }] }"
                )
            ],
            139,
            id="chat",
        ),
        pytest.param(
            [
                (
                    "request = { model = 'main', input = [{ type = 'function_call', call_id = 'c', "
                    "name = 'publish', arguments = { path = 'a' } }] }"
                )
            ],
            97,
            id="responses",
        ),
        pytest.param(
            [
                (
                    'request = \'{"model": "main", "messages": [{"role": "assistant", '
                    '"tool_calls": [{"id": "c", "type": "function", '
                    '"function": {"name": "publish", "arguments": {"path": "a"}}}]}]}\''
                )
            ],
            1,
            id="text",
        ),
    ],
)
def test_arguments_that_are_a_table_are_reported(run, lines, column):
    (finding,) = run("\n".join(["[[cases]]", 'name = "case"', *lines, EXPECT])).findings
    assert (finding.code, finding.line) == ("SY609", 3)
    assert finding.message.startswith("the arguments of this call are a table")
    assert finding.fix == """write `arguments = '{"path": "a"}'`"""
    assert finding.column == column


def test_arguments_of_messages_are_a_table(run):
    call = "{ type = 'tool_use', id = 'c', name = 'publish', input = { path = 'a' } }"
    request = f"{{ model = 'main', messages = [{{ role = 'assistant', content = [{call}] }}] }}"
    lines = [f"request = {request}", "format = 'anthropic_messages'", EXPECT]
    found = run("\n".join(["[[cases]]", 'name = "case"', *lines])).findings
    assert not any(one.code == "SY609" for one in found)


def test_input_of_a_call_of_messages_that_is_text_is_reported(run):
    call = "{ type = 'tool_use', id = 'c', name = 'publish', input = '{\"path\": 1}' }"
    request = f"{{ model = 'main', messages = [{{ role = 'assistant', content = [{call}] }}] }}"
    lines = [f"request = {request}", "format = 'anthropic_messages'", EXPECT]
    (finding,) = run("\n".join(["[[cases]]", 'name = "case"', *lines])).findings
    assert (finding.code, finding.line, finding.column) == ("SY609", 3, lines[0].index("input") + 1)
    assert finding.message.startswith("the input of this call is text")
