"""Real coding agents whose planner and executor speak different wire formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from switchyard_core.scripted import RecordedRequest
from switchyard_core.testing import assert_valid_for
from tests.clients.agents import Agent, Workplace
from tests.clients.calls import FIXED
from tests.clients.crossings import Crossing, narrow, wanted
from tests.clients.scenario import FINISHED, Providers, split, told_by, turns
from tests.clients.shipped import Shipped
from tests.clients.tap import Exchange
from tests.clients.watched import account, assert_only_the_right_key_arrived, tries, watched

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

Watched = list[tuple[Exchange, RecordedRequest]]


@pytest.fixture
def agent(crossing: Crossing) -> Agent:
    """The client that works at the place."""
    return crossing.agent


@pytest.mark.parametrize("crossing", [pytest.param(c, id=c.id) for c in wanted()])
def test_client_works_with_two_formats_and_both_take_its_session(
    crossing: Crossing, place: Workplace, tmp_path: Path
) -> None:
    agent, policy = crossing.agent, crossing.served

    seen = _run(agent, policy, place, tmp_path / "first", split(agent, place.repo, policy))

    assert place.calc == FIXED
    after = len(turns(agent.style, place.repo)) - 2
    assert _served(seen) == [policy.planner] * 2 + [policy.executor] * after
    resumed = crossing.resumed
    if resumed is None:
        return
    told = [{"text": FINISHED}]
    later = _run(resumed, policy, place, tmp_path / "second", told_by(agent, {"": told}, policy))
    stayed = _run(
        resumed, narrow(policy), place, tmp_path / "third", told_by(agent, {"": told}, policy)
    )

    assert set(_served(later)) == {policy.executor}
    assert set(_served(stayed)) == {policy.planner}


def _run(
    agent: Agent, policy: Shipped, place: Workplace, folder: Path, provider: Providers
) -> Watched:
    """Run a client to its end; return its calls, each with what a strict provider accepted."""
    folder.mkdir()
    with watched(provider, policy, folder) as tap:
        done = agent.run(tap.url, place)
    story = account(tap.exchanges, provider.requests) + done.stdout
    assert done.returncode == 0, story
    assert FINISHED in done.stdout, story
    sent = [e for e in tap.exchanges if e.request.wire_format]
    received = tries(sent, [r for r in provider.requests if r.wire_format])
    assert {r.status for got in received for r in got} == {200}, story
    seen = [(exchange, got[-1]) for exchange, got in zip(sent, received, strict=True)]
    for exchange, request in seen:
        wire_format = policy.formats[request.model]
        assert request.wire_format == wire_format, story
        assert request.body.decode() == exchange.explained["body"]
        assert_valid_for(wire_format, request.body, sdk=True)
        assert_only_the_right_key_arrived(request, policy)
    return seen


def _served(seen: Watched) -> list[str]:
    return [request.model for exchange, request in seen if not exchange.is_side_call]
