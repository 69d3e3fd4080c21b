"""The fixture ``model_replay``: folders, modes, skips, and the summary."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

OPTIONS = ("-p", "no:randomly", "-p", "no:cacheprovider")
TEST = """
import asyncio
import pytest
from switchyard_core.testing import Harness, conversation

POLICY = '''
schema_version = 1
[llm_clients.p]
format = "openai_chat"
base_url = "https://provider.test/v1"
[targets.t]
id = "m"
llm_client = "p"
[routes.r]
id = "r"
type = "noop"
target = "t"
'''

def ask(replay, *texts):
    import switchyard_demo_routers

    async def run():
        async with Harness(POLICY, plugins=[switchyard_demo_routers], replay=replay) as harness:
            for text in texts:
                await harness.run(conversation("openai_chat").user(text).request("r"))
            return len(harness.upstream.requests)

    return asyncio.run(run())

"""
ONE = TEST + "def test_one(model_replay):\n    assert ask(model_replay, 'a', 'b') == {calls}\n"


@pytest.fixture(autouse=True)
def no_mode(monkeypatch):
    monkeypatch.delenv("SWITCHYARD_REPLAY", raising=False)


def run(pytester, *options, code=ONE, calls=0, name="test_it"):
    pytester.makepyfile(**{name: code.replace("{calls}", str(calls))})
    return pytester.runpytest_inprocess(*OPTIONS, *options)


def test_a_test_is_skipped_until_something_is_recorded_and_then_replayed(pytester):
    skipped = run(pytester)
    skipped.assert_outcomes(skipped=1)
    run(pytester, "-rs").stdout.fnmatch_lines(["*--model-replay=record*"])

    run(pytester, "--model-replay=record", calls=2).assert_outcomes(passed=1)
    run(pytester).assert_outcomes(passed=1)

    folder = pytester.path / "recordings" / "test_it"
    assert len(list(folder.glob("*.json"))) == 2


def test_what_is_required_fails_in_place_of_being_skipped(pytester):
    result = run(pytester, "--model-replay-required")

    # What fails in a fixture pytest calls an error.
    result.assert_outcomes(errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*no model call is recorded in*"])


@pytest.mark.parametrize(("mode", "calls"), [("record", 0), ("refresh", 2), ("off", 2)])
def test_modes_by_option_and_by_environment(pytester, monkeypatch, mode, calls):
    run(pytester, "--model-replay=record", calls=2).assert_outcomes(passed=1)

    run(pytester, f"--model-replay={mode}", calls=calls).assert_outcomes(passed=1)
    monkeypatch.setenv("SWITCHYARD_REPLAY", mode)
    run(pytester, calls=calls).assert_outcomes(passed=1)


def test_the_option_comes_before_the_environment(pytester, monkeypatch):
    monkeypatch.setenv("SWITCHYARD_REPLAY", "record")

    run(pytester, "--model-replay=replay").assert_outcomes(skipped=1)


def test_an_unknown_mode_in_the_environment_is_a_usage_error(pytester, monkeypatch):
    monkeypatch.setenv("SWITCHYARD_REPLAY", "recrod")

    result = run(pytester)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*SWITCHYARD_REPLAY is `recrod`*"])


def test_a_marker_names_the_folder(pytester):
    code = ONE.replace("def test_one", "@pytest.mark.model_replay('shared/calls')\ndef test_one")

    run(pytester, "--strict-markers", "--model-replay=record", code=code, calls=2).assert_outcomes(
        passed=1
    )

    assert len(list((pytester.path / "shared" / "calls").glob("*.json"))) == 2


@pytest.mark.parametrize("arguments", ["", "3", "'a', 'b'", "folder='a'"])
def test_a_marker_without_one_folder_is_explained(pytester, arguments):
    code = ONE.replace("def test_one", f"@pytest.mark.model_replay({arguments})\ndef test_one")

    result = run(pytester, code=code)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*takes one folder*"])


def test_a_miss_fails_the_test_and_says_how_to_record(pytester):
    run(pytester, "--model-replay=record", calls=2)

    result = run(pytester, code=ONE.replace("'b'", "'other'"))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*--model-replay=record*"])
    result.stdout.no_fnmatch_line("*recordings that no test used*")


LESS = ONE.replace("'a', 'b'", "'a'") + "\ndef test_two():\n    pass\n"


def test_recordings_that_no_test_used_are_listed(pytester):
    run(pytester, "--model-replay=record", calls=2)
    run(pytester).stdout.no_fnmatch_line("*that no test used*")

    result = run(pytester, code=LESS)

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*model recordings that no test used*", "*-r-t.json"])


@pytest.mark.parametrize("options", [("-k", "one"), ("test_it.py::test_one",)], ids=["k", "node"])
def test_nothing_is_listed_when_tests_were_left_out(pytester, options):
    run(pytester, "--model-replay=record", calls=2)

    result = run(pytester, *options, code=LESS)

    result.assert_outcomes(passed=1, deselected=1 if options[0] == "-k" else 0)
    result.stdout.no_fnmatch_line("*that no test used*")


def test_two_tests_of_a_module_share_a_folder_and_each_begins_anew(pytester):
    code = ONE + "\ndef test_again(model_replay):\n    assert ask(model_replay, 'a') == 0\n"

    run(pytester, "--model-replay=record", code=code, calls=2).assert_outcomes(passed=2)
    run(pytester, code=code).assert_outcomes(passed=2)


def test_workers_of_xdist_report_what_they_used(pytester):
    run(pytester, "--model-replay=record", calls=2)
    pytester.makepyfile(test_it=LESS.replace("{calls}", "0"))

    result = pytester.runpytest_subprocess(*OPTIONS, "-n", "1")

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*model recordings that no test used*", "*-r-t.json"])
