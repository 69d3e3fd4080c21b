"""Real coding agents do a small job on a scripted provider, without and with switchyard."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from switchyard_core.scripted import RecordedRequest
from tests.clients.agents import AGENTS, BROKEN, FIXED, KEY, ROUTE, Agent, Workplace
from tests.clients.changes import inserted, with_model
from tests.clients.scenario import EXECUTOR, FINISHED, INSTRUCTION, PLANNER, alone, split
from tests.clients.serve import PROVIDER_KEY, policy, serving
from tests.clients.tap import Exchange, Tap
from tests.support.listening import listening

pytestmark = [pytest.mark.clients, pytest.mark.timeout(150)]

each_agent = pytest.mark.parametrize("agent", [pytest.param(a, id=a.id) for a in AGENTS])


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    """A git repository with one bug, and an empty home."""
    repo, home = tmp_path / "repo", tmp_path / "home"
    repo.mkdir()
    home.mkdir()
    (repo / "calc.py").write_text(BROKEN)
    identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.com"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "start"]):
        subprocess.run(["git", *command], cwd=repo, check=True, env=_git_environment(home))
    return Workplace(repo=repo, home=home)


@each_agent
def test_client_on_the_provider_itself_edits_the_file(agent: Agent, place: Workplace) -> None:
    """The control run: a failure here is the client's or the script's, not switchyard's."""
    provider = alone(agent.client, place.repo, agent.history_offset)
    with listening(provider) as port:
        done = agent.run(port.url, place)

    assert (done.returncode, place.calc) == (0, FIXED), done.stdout
    assert FINISHED in done.stdout
    assert len(_routed(provider.requests)) == 4


@each_agent
def test_client_through_switchyard_plans_on_one_model_and_executes_on_the_other(
    agent: Agent, place: Workplace, tmp_path: Path
) -> None:
    provider = split(agent.client, place.repo, agent.history_offset)
    with (
        listening(provider) as port,
        serving(policy(agent.wire_format, port.url), tmp_path) as server,
        Tap(server) as tap,
    ):
        done = agent.run(tap.url, place)

    story = _story(tap.exchanges, provider.requests) + done.stdout
    assert (done.returncode, place.calc) == (0, FIXED), story
    assert FINISHED in done.stdout
    assert [request.wire_format for request in provider.requests] == [agent.wire_format] * len(
        provider.requests
    ), story
    sent = [e for e in tap.exchanges if e.request.wire_format]
    assert len(sent) == len(provider.requests), story
    _assert_only_what_the_policy_says_changed(sent, provider.requests)
    routed = _routed(provider.requests)
    assert [request.model for request in routed] == [PLANNER, PLANNER, EXECUTOR, EXECUTOR], story
    phases = [e.headers["x-switchyard-phase"] for e in sent if not e.request.is_housekeeping]
    assert phases == ["planning", "planning", "executing", "executing"]
    _assert_no_key_of_the_caller_reached_the_provider(provider.requests)


def _assert_only_what_the_policy_says_changed(
    sent: list[Exchange], received: list[RecordedRequest]
) -> None:
    for exchange, request in zip(sent, received, strict=True):
        caller = exchange.request
        expected = with_model(caller.raw, request.model)
        if request.model == PLANNER and not caller.is_housekeeping:
            run = inserted(expected, request.body)
            assert run is not None, f"{caller.path}: more changed than one insertion"
            assert run.count(INSTRUCTION.encode()) == 1
            # Besides the text itself only the JSON around it and a blank line are new.
            assert len(run) < len(INSTRUCTION) + 60, run
        else:
            assert request.body == expected


def _assert_no_key_of_the_caller_reached_the_provider(received: list[RecordedRequest]) -> None:
    for request in received:
        values = " ".join(value for _, value in request.headers)
        assert KEY not in values
        assert PROVIDER_KEY in values


def _routed(requests: list[RecordedRequest]) -> list[RecordedRequest]:
    return [r for r in requests if r.wire_format and r.json().get("tools")]


def _story(exchanges: list[Exchange], received: list[RecordedRequest]) -> str:
    lines = [f"client   {e.request.method} {e.request.path} -> {e.status}" for e in exchanges]
    lines += [f"provider {r.method} {r.path} {r.wire_format and r.model}" for r in received]
    return f"route {ROUTE}\n" + "\n".join(lines) + "\n"


def _git_environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1"}
