"""``switchyard test``."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from switchyard_core.cli import cli

POLICY = """\
schema_version = 1
[llm_clients.provider]
format = "openai_chat"
base_url = "https://provider.test/v1"
api_key_env = "PROVIDER_KEY"
[targets.one]
id = "small"
llm_client = "provider"
[targets.two]
id = "large"
llm_client = "provider"
[routes.main]
id = "main"
type = "noop"
target = "one"
[routes.other]
id = "other"
type = "noop"
target = "two"
"""
CASE = """\
[[cases]]
name = "goes to one"
request = {{ model = "main", messages = [] }}
expect = {{ target = "{target}", reason = "only_target" }}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.toml").write_text(POLICY)
    (tmp_path / "good.test.toml").write_text(CASE.format(target="one"))
    return tmp_path


def run(*arguments, **options):
    return CliRunner().invoke(cli, ["test", *arguments], **options)


def test_test_of_a_folder_runs_every_test_file(folder):
    (folder / "more.toml").write_text(POLICY)
    (folder / "more.test.toml").write_text(CASE.format(target="one"))

    result = run(".")

    assert result.exit_code == 0
    assert result.output == (
        "good.test.toml\n  PASS  goes to one\nmore.test.toml\n  PASS  goes to one\n"
        "2 passed in 2 files\n"
    )


@pytest.mark.parametrize("name", ["good.toml", "good.test.toml"])
def test_test_takes_a_policy_or_a_test_file(folder, name):
    assert run(name).output.endswith("1 passed in 1 file\n")


def test_test_runs_a_file_once_however_often_it_is_named(folder):
    assert run("good.toml", "good.test.toml", ".").output.endswith("1 passed in 1 file\n")


def test_test_that_fails_prints_the_explanation_and_exits_1(folder):
    (folder / "good.test.toml").write_text(CASE.format(target="two"))

    result = run(".")

    assert result.exit_code == 1
    assert "  FAIL  goes to one\n" in result.output
    assert 'good.test.toml:4:12: target: expected "two", got "one"\n' in result.output
    assert "        | route     main (noop)\n" in result.output
    assert '        | +  "model": "small",\n' in result.output
    assert result.output.endswith("0 passed, 1 failed in 1 file\n")


def test_test_with_a_mistake_in_the_test_file_exits_2(folder):
    (folder / "good.test.toml").write_text(CASE.format(target="on"))

    result = run(".")

    assert result.exit_code == 2
    assert "  ERROR good.test.toml:4:21: SY604 unknown target `on`" in result.output
    assert "        fix: did you mean `one`?" in result.output
    assert result.output.endswith("0 passed, 1 error in 1 file\n")


def test_test_counts_several_errors(folder):
    (folder / "good.test.toml").write_text(CASE.format(target="on"))
    (folder / "lost.test.toml").write_text(CASE.format(target="one"))

    assert run(".").output.endswith("0 passed, 2 errors in 2 files\n")


def test_coverage_lists_what_no_case_exercised_and_policies_without_tests(folder):
    (folder / "bare.toml").write_text(POLICY)

    result = run(".", "--coverage")

    assert result.exit_code == 0
    assert "  exercised: 1 of 2 routes, 0 of 0 own rules\n" in result.output
    assert "  good.toml:16:9: no case exercises the route `other`\n" in result.output
    assert "bare.toml: no test file\n" in result.output
    assert result.output.endswith("; 1 policy has no test file\n")


def test_policies_without_tests_are_counted(folder):
    for name in ("a.toml", "b.toml"):
        (folder / name).write_text(POLICY)

    assert run(".").output.endswith("; 2 policies have no test file\n")


def test_json_output_has_cases_mismatches_and_coverage(folder):
    (folder / "good.test.toml").write_text(
        CASE.format(target="two") + CASE.format(target="one").replace("goes", "really goes")
    )

    result = run(".", "--output", "json")
    data = json.loads(result.output)

    assert result.exit_code == 1
    assert (data["passed"], data["failed"], data["errors"]) == (1, 1, 0)
    failed, passed = data["files"][0]["cases"]
    assert failed["mismatches"][0] == {
        "what": "target",
        "expected": '"two"',
        "got": '"one"',
        "where": "good.test.toml:4:12",
    }
    assert failed["explanation"]
    assert (passed["state"], passed["explanation"]) == ("PASS", "")
    assert data["files"][0]["coverage"]["uncovered"][0]["name"] == "other"


def test_json_output_of_a_file_with_mistakes_has_its_findings(folder):
    (folder / "good.test.toml").write_text("")

    (file,) = json.loads(run(".", "--output", "json").output)["files"]

    assert "SY105 missing key `cases`" in file["findings"][0]
    assert file["coverage"] is None


def test_case_that_cannot_be_carried_out_is_an_error_and_says_why(folder):
    more = 'before = [{ request = { model = "mainn", messages = [] } }]\n'
    (folder / "good.test.toml").write_text(CASE.format(target="one") + more)

    result = run(".")

    assert result.exit_code == 2
    assert "good.test.toml:1:3: earlier request 1 was refused: 404" in result.output


def test_junit_output_is_xml_alone(folder):
    root = ET.fromstring(run(".", "--output", "junit").output)

    assert (root.get("tests"), root.get("failures")) == ("1", "0")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "no such file or folder: `nowhere`"),
        (["empty"], "no test file, NAME.test.toml beside NAME.toml, in `empty`"),
    ],
    ids=["missing", "empty"],
)
def test_test_without_anything_to_run_exits_2(folder, arguments, said):
    (folder / "empty").mkdir()

    result = run(*arguments)

    assert result.exit_code == 2
    assert said in result.output


def test_watch_runs_again_after_a_change_until_interrupted(folder, monkeypatch):
    steps = iter([CASE.format(target="two"), None])

    def sleep(seconds):
        tests = folder / "good.test.toml"
        text = next(steps)
        if text is None:
            raise KeyboardInterrupt
        tests.write_text(text + "\n")

    monkeypatch.setattr("time.sleep", sleep)

    result = run(".", "--watch")

    assert result.exit_code == 1
    assert "1 passed in 1 file\n" in result.output
    assert "0 passed, 1 failed in 1 file\n" in result.output


def test_watch_outlives_a_test_file_that_goes_away(folder, monkeypatch):
    steps = iter([(folder / "good.test.toml").unlink])

    def sleep(seconds):
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr("time.sleep", sleep)

    result = run(".", "--watch")

    assert result.exit_code == 2
    assert "no test file" in result.output


def test_colours_are_for_terminals_and_no_color_wins(folder):
    assert "\x1b[" not in run(".").output
    assert "\x1b[32m" in run(".", color=True).output
    assert "\x1b[" not in run(".", color=True, env={"NO_COLOR": "1"}).output


def check(*arguments):
    return CliRunner().invoke(cli, ["check", "--offline", *arguments])


def test_check_of_test_files_finds_their_mistakes(folder):
    (folder / "good.test.toml").write_text(CASE.format(target="on"))
    (folder / "lost.test.toml").write_text(CASE.format(target="one"))

    result = check("good.toml", "good.test.toml", "lost.test.toml")

    assert result.exit_code == 1
    assert "good.test.toml:4:21: SY604 unknown target `on`" in result.output
    assert "lost.test.toml: SY601 no policy `lost.toml`" in result.output


def test_check_of_a_test_file_without_mistakes_is_clean(folder):
    result = check("good.test.toml")

    assert (result.exit_code, result.output) == (0, "1 file checked: no findings\n")


def test_check_of_a_test_file_does_not_repeat_what_is_wrong_with_the_policy(folder):
    (folder / "good.toml").write_text("schema_version = 1\n[targets]\n")
    (folder / "good.test.toml").write_text(CASE.format(target="on").replace("expect", "expekt"))

    result = check("good.test.toml")

    assert "SY104 unknown key `expekt`" in result.output
    assert "SY604" not in result.output
    assert "routes" not in result.output


def test_check_of_a_test_file_that_is_not_there_exits_2(folder):
    assert check("no.test.toml").exit_code == 2
