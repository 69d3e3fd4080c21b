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

Watched = list[tuple[Exchange, list[RecordedRequest]]]


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
    told = {"": [{"text": FINISHED}]}
    later = _run(resumed, policy, place, tmp_path / "second", told_by(agent, told, policy))
    small = narrow(policy)
    stayed = _run(resumed, small, place, tmp_path / "third", told_by(agent, told, small))

    assert set(_served(later)) == {policy.executor}
    assert set(_served(stayed)) == {policy.planner}
    assert [got for _, got in (*seen, *later) if len(got) > 1] == []
    # As without switchyard, thinking may be bound to what was before the client ended.
    refused = [request.wire_format for _, got in stayed for request in got[:-1]]
    assert refused in ([], ["anthropic_messages"])


def _run(
    agent: Agent, policy: Shipped, place: Workplace, folder: Path, provider: Providers
) -> Watched:
    """Run a client to its end; return its calls, each with what strict providers got of it."""
    folder.mkdir()
    with watched(provider, policy, folder) as tap:
        done = agent.run(tap.url, place)
    story = account(tap.exchanges, provider.requests) + done.stdout
    assert done.returncode == 0, story
    assert FINISHED in done.stdout, story
    sent = [e for e in tap.exchanges if e.request.wire_format]
    received = tries(sent, [r for r in provider.requests if r.wire_format])
    assert {exchange.status for exchange in sent} == {200}, story
    for exchange, got in zip(sent, received, strict=True):
        assert got[0].body.decode() == exchange.explained["body"]
        for request in got:
            wire_format = policy.formats[request.model]
            assert request.wire_format == wire_format, story
            assert_valid_for(wire_format, request.body, sdk=True)
            assert_only_the_right_key_arrived(request, policy)
    return list(zip(sent, received, strict=True))


def _served(seen: Watched) -> list[str]:
    return [got[-1].model for exchange, got in seen if not exchange.is_side_call]
