"""``switchyard probe``: requests, refusals, and the rules to paste."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli
from click.testing import CliRunner, Result

from switchyard_core.cli import cli
from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.engine import probing
from switchyard_core.engine.calling import Upstreams
from switchyard_core.engine.probing import Found, probe_target, probes_for
from switchyard_core.policy import Policy, load_policy_text
from switchyard_core.testing import FakeReply, FakeUpstream
from switchyard_core.testing.harness import registry_of
from switchyard_core.testing.validity import validity_problems
from switchyard_core.world import World

REGISTRY = registry_of()
POLICY = """
schema_version = 1
[llm_clients.c]
format = "{form}"
base_url = "https://example.test"
{auth}
[targets.t]
id = "{model}"
llm_client = "c"
[routes]
"""
REFUSED = FakeReply(status=400, body=json.dumps({"error": {"message": "no such thing"}}).encode())


def policy(form: WireFormat = "openai_chat", model: str = "own-model", auth: str = "") -> Policy:
    text = POLICY.format(form=form, model=model, auth=auth)
    return load_policy_text(text, "p.toml", REGISTRY)


async def probed(loaded: Policy, reply: Callable[[int], FakeReply]) -> list[Found]:
    target = loaded.targets["t"]
    replies = [reply(number) for number in range(len(probes_for(target)))]
    upstreams = Upstreams(
        loaded, REGISTRY.rewrites, World(), connect=lambda _client: FakeUpstream(*replies)
    )
    return [found async for found in probe_target(target, upstreams, REGISTRY.rewrites)]


@pytest.mark.parametrize("form", WIRE_FORMATS)
def test_probes_are_about_twelve_bodies_of_the_format_that_differ_from_the_plain_one(
    form: WireFormat,
) -> None:
    plain, *others = probes_for(policy(form).targets["t"])

    assert 10 <= len(others) <= 14
    assert not validity_problems(form, plain.body)
    assert all(probe.body != plain.body for probe in others)
    assert all(json.loads(probe.body)["model"] == "own-model" for probe in (plain, *others))


@pytest.mark.parametrize("form", WIRE_FORMATS)
async def test_every_refusal_gives_a_rule_that_changes_the_probe(form: WireFormat) -> None:
    found = await probed(policy(form), lambda number: REFUSED if number else FakeReply())

    assert [one.state for one in found] == ["accepted", *["refused"] * (len(found) - 1)]
    for one in found[1:]:
        written = one.probe.key or f"fit = [{one.rule}]"
        keys = tomli.loads(written)
        text = f"{written}\n"
        source = POLICY.format(form=form, model="own-model", auth="")
        fitted = load_policy_text(
            source.replace('llm_client = "c"\n', f'llm_client = "c"\n{text}'), "p", REGISTRY
        )
        assert keys
        again = probing._is_fitted(fitted.targets["t"], one.probe, REGISTRY.rewrites)
        assert again, f"{one.probe.name}: {written} changes nothing"


async def test_nothing_follows_a_plain_request_that_is_refused() -> None:
    found = await probed(policy(), lambda _number: REFUSED)

    assert [one.state for one in found] == ["refused"]


async def test_refusal_that_the_profile_avoids_gives_no_rule() -> None:
    loaded = policy("anthropic_messages", "claude-haiku-4-5")

    found = await probed(loaded, lambda number: REFUSED if number else FakeReply())

    (adaptive,) = [one for one in found if one.probe.name == "adaptive thinking"]
    (top_k,) = [one for one in found if one.probe.name == "top_k"]
    assert (adaptive.known, adaptive.rule) == (True, "")
    assert (top_k.known, top_k.rule) == (False, '{ path = "top_k", do = "drop" }')


async def test_other_failures_are_no_refusals() -> None:
    busy = FakeReply(status=429, body=b"slow down")

    found = await probed(policy(), lambda number: busy if number == 2 else FakeReply())

    assert [one.state for one in found[:4]] == ["accepted", "accepted", "unknown", "accepted"]
    assert found[2].detail == "429 slow down"


# --- the command ----------------------------------------------------------------------------------


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["probe", *arguments], obj=REGISTRY)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "p.toml"
    path.write_text(POLICY.format(form="openai_chat", model="own-model", auth=""))
    return path


def test_dry_run_prints_the_requests_and_sends_nothing(written: Path) -> None:
    result = run(str(written), "t", "--dry-run")

    assert result.exit_code == 0
    assert result.output.startswith('plain request\n{\n  "model": "own-model",\n')
    assert '"max_completion_tokens": 64' in result.output


def test_unknown_target_names_the_nearest(written: Path) -> None:
    result = run(str(written), "tt")

    assert result.exit_code == 2
    assert "unknown target `tt`: did you mean `t`?" in result.output


def test_provider_that_cannot_be_reached_ends_the_run(written: Path) -> None:
    text = written.read_text().replace("https://example.test", "http://127.0.0.1:9")
    written.write_text(text)

    result = run(str(written), "t")

    assert result.exit_code == 2
    assert "unknown   plain request\n" in result.output
    assert "the plain request was not accepted" in result.output


def test_missing_key_is_said(written: Path) -> None:
    written.write_text(
        POLICY.format(form="openai_chat", model="m", auth='api_key_env = "PROBE_TEST_KEY"')
    )

    result = run(str(written), "t")

    assert result.exit_code == 2
    assert "`PROBE_TEST_KEY`" in result.output


@pytest.mark.parametrize(("refusing", "code"), [(False, 0), (True, 1)])
def test_run_prints_what_is_refused_and_what_to_paste(
    written: Path,
    monkeypatch: pytest.MonkeyPatch,
    refusing: bool,
    code: int,
) -> None:
    def connect(_client: Any) -> FakeUpstream:
        replies = [FakeReply() for _ in range(13)]
        if refusing:
            replies[1] = REFUSED
        return FakeUpstream(*replies)

    made = Upstreams.__init__

    def with_fake(self: Upstreams, *arguments: Any, **named: Any) -> None:
        made(self, *arguments, **{**named, "connect": connect})

    monkeypatch.setattr(Upstreams, "__init__", with_fake)

    result = run(str(written), "t")

    assert result.exit_code == code
    assert "accepted  plain request\n" in result.output
    pasted = """
add to [targets.t]:
fit = [
  { path = "max_tokens", do = "rename", to = "max_completion_tokens" },
]
"""
    assert (pasted in result.output) is refusing
