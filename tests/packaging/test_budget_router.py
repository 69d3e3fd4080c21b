"""The budget router: a second distribution, installed from its wheel outside the checkout."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.packaging.environments import ROOT, Environment, build

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(400)]

EXAMPLE = ROOT / "examples" / "switchyard_budget_router"
#: Each answer costs $1.25 at the prices of the large model.
SCRIPT = {
    "version": 1,
    "scripts": [{"turns": [{"text": "ok", "usage": {"input": 200_000, "output": 10_000}}]}],
}


@pytest.fixture(scope="module")
def folder(authors: Environment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a copy of the tests and policies, with the plugin installed from its wheel."""
    made = tmp_path_factory.mktemp("budget")
    authors.install("--no-deps", str(build("wheel", EXAMPLE, made / "wheel")))
    for name in ("pyproject.toml", "policy.toml", "policy.test.toml"):
        shutil.copy(EXAMPLE / name, made / name)
    shutil.copytree(EXAMPLE / "tests", made / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    yield made
    gone = authors.run("python", "-m", "pip", "uninstall", "--yes", "switchyard-budget")
    assert gone.returncode == 0, gone.stderr


def test_its_own_tests_pass(authors: Environment, folder: Path) -> None:
    done = authors.run("python", "-m", "pytest", "-W", "error", cwd=folder)

    assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_listed_and_its_policy_is_checked_and_tested(
    authors: Environment, folder: Path
) -> None:
    listed = authors.run("switchyard", "plugins", "--json")
    checked = authors.run("switchyard", "check", "--offline", "--strict", "policy.toml", cwd=folder)
    tested = authors.run("switchyard", "test", "policy.toml", cwd=folder)

    found = {plugin["name"]: plugin for plugin in json.loads(listed.stdout)["plugins"]}
    assert (found["budget"]["distribution"], found["budget"]["state"]) == (
        "switchyard-budget",
        "ok",
    )
    assert found["budget"]["gives"] == {"route_type": ["budget"], "lint_rule": ["BUDGET01"]}
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_served_session_goes_to_the_cheap_target_when_its_budget_is_spent(
    authors: Environment, folder: Path, stream: bool
) -> None:
    policy = folder / "served.toml"
    text = (EXAMPLE / "policy.toml").read_text()
    begin, end = text.index("format ="), text.index("[targets.large]")
    client = 'format = "scripted"\nspeaks = "openai_chat"\nscript = "script.json"\n\n'
    policy.write_text(text[:begin] + client + text[end:])
    (folder / "script.json").write_text(json.dumps(SCRIPT))
    body = {
        "model": "switchyard/budget",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": stream,
        "stream_options": {"include_usage": True},
    }

    with authors.serving(policy) as url:
        answers = [
            httpx.post(
                f"{url}/v1/chat/completions",
                json=body,
                headers={"x-switchyard-session-id": session},
                trust_env=False,
            )
            for session in ("s", "s", "s", "another")
        ]

    assert [answer.headers["x-switchyard-target"] for answer in answers] == [
        *("large", "large", "small", "large")
    ]
