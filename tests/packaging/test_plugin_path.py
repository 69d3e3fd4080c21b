"""The path of a plugin's author and of those who use the plugin, outside the checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.packaging.environments import Environment

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(400)]

POLICY = """\
schema_version = 1

[llm_clients.provider]
format = "scripted"
speaks = "openai_chat"
script = "script.json"

[targets.large]
id = "provider/large"
llm_client = "provider"

[targets.small]
id = "provider/small"
llm_client = "provider"

[routes.sticky]
id = "coder"
type = "sticky"
targets = ["large", "small"]
default = "small"
"""
SCRIPT = {"version": 1, "scripts": [{"turns": [{"text": "hello"}]}]}
BODY = {"model": "coder", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def folder(authors: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a new plugin, installed as its author would, and a policy."""
    made = tmp_path_factory.mktemp("work")
    done = authors.run("switchyard", "new-plugin", "sticky", cwd=made)
    assert done.returncode == 0, done.stdout + done.stderr
    authors.install("--editable", str(made / "sticky"))
    (made / "policy.toml").write_text(POLICY)
    (made / "script.json").write_text(json.dumps(SCRIPT))
    (made / "request.json").write_text(json.dumps(BODY))
    return made


def test_tests_of_a_new_plugin_pass_as_they_are(authors: Environment, folder: Path) -> None:
    done = authors.run("python", "-m", "pytest", "-W", "error", cwd=folder / "sticky")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 snapshot passed" in done.stdout


def test_installed_plugin_is_listed_with_its_distribution(
    authors: Environment, folder: Path
) -> None:
    done = authors.run("switchyard", "plugins", "--json", cwd=folder)

    assert done.returncode == 0, done.stdout
    found = {plugin["name"]: plugin for plugin in json.loads(done.stdout)["plugins"]}
    assert {key: found["sticky"][key] for key in ("distribution", "version", "state", "gives")} == {
        "distribution": "switchyard-sticky",
        "version": "0.1.0",
        "state": "ok",
        "gives": {"route_type": ["sticky"]},
    }


def test_policies_with_the_plugin_are_checked(authors: Environment, folder: Path) -> None:
    for policy in ("policy.toml", "sticky/policy.toml"):
        done = authors.run("switchyard", "check", "--offline", "--strict", policy, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr


def test_misspelt_option_is_found_on_its_line(authors: Environment, folder: Path) -> None:
    (folder / "broken.toml").write_text(POLICY.replace("default =", "defualt ="))

    done = authors.run("switchyard", "check", "--offline", "broken.toml", cwd=folder)

    line = POLICY[: POLICY.index("default =")].count("\n") + 1
    assert done.returncode == 1
    assert done.stdout.startswith(f"broken.toml:{line}:1: SY104 unknown key `defualt`")
    assert "did you mean `default`?" in done.stdout


def test_request_is_served_by_the_plugin(authors: Environment, folder: Path) -> None:
    with authors.serving(folder / "policy.toml") as url:
        sessions = [*(f"session-{number}" for number in range(12)), "session-0", ""]
        answers = [ask(url, session) for session in sessions]

    targets = [answer.headers["x-switchyard-target"] for answer in answers]
    reasons = [answer.headers["x-switchyard-reason"] for answer in answers]
    assert {answer.status_code for answer in answers} == {200}
    assert answers[0].json()["choices"][0]["message"]["content"] == "hello"
    assert targets[0] == targets[-2]
    assert set(targets[:-1]) == {"large", "small"}
    assert (targets[-1], reasons[-1]) == ("small", "no_session")
    assert set(reasons[:-1]) == {"session"}


def ask(url: str, session: str) -> httpx.Response:
    headers = {"x-switchyard-session-id": session} if session else {}
    return httpx.post(f"{url}/v1/chat/completions", json=BODY, headers=headers, trust_env=False)


def test_request_is_explained(authors: Environment, folder: Path) -> None:
    command = ("switchyard", "explain", "policy.toml", "request.json", "--output", "json")

    done = authors.run(*command, "--header", "x-switchyard-session-id: a", cwd=folder)

    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout
    assert "this session belongs to" in told
    assert '"sticky"' in told
    assert json.loads(told)


def test_uninstalled_plugin_is_missed_by_name(authors: Environment, folder: Path) -> None:
    required = 'requires = ["switchyard-sticky"]\n'
    (folder / "required.toml").write_text(POLICY.replace("\n", f"\n{required}", 1))
    done = authors.run("switchyard", "check", "--offline", "required.toml", cwd=folder)
    assert done.returncode == 0, done.stdout

    gone = authors.run("python", "-m", "pip", "uninstall", "--yes", "switchyard-sticky")
    assert gone.returncode == 0, gone.stderr
    try:
        (missing,) = check(authors, folder, "policy.toml")
        named = check(authors, folder, "required.toml")
    finally:
        authors.install("--editable", str(folder / "sticky"))

    assert missing["code"] == "SY301"
    assert "no installed plugin provides `sticky`" in missing["fix"]
    assert missing["notes"][0].startswith("installed route types: ")
    assert "plan_execute" in missing["notes"][0]
    assert {finding["code"] for finding in named} == {"SY301", "SY507"}
    first = named[0]
    assert first["message"] == "distribution `switchyard-sticky` is not installed"
    assert first["fix"] == "run `pip install switchyard-sticky`"
    assert first["line"] == 2


def check(environment: Environment, folder: Path, policy: str) -> list[dict[str, Any]]:
    done = environment.run("switchyard", "check", "--offline", "--output=json", policy, cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    (file,) = json.loads(done.stdout)["files"]
    findings: list[dict[str, Any]] = file["findings"]
    return findings
