"""The pages about clients say what is tried: versions, settings, policies."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.clients.agents import Agent
from tests.clients.installs import STAGES, clients, expand
from tests.clients.pages import PAGES, settings
from tests.clients.roster import AGENTS
from tests.clients.shipped import shipped

INDEX = (PAGES / "index.md").read_text()
_VERSIONS = re.compile(r"`([^`]+)` ([\d.]+(?:, [\d.]+)*)")


def test_versions_on_the_index_are_those_that_are_installed() -> None:
    rows = [line.split(" | ") for line in INDEX.splitlines() if line.startswith("| [")]
    told = {
        (package, version)
        for row in rows
        for package, versions in _VERSIONS.findall(row[1])
        for version in versions.split(", ")
    }

    assert told == {(c.package.split("[")[0], c.version) for c in clients().values()}


def test_every_page_is_in_the_table_and_used_by_an_agent() -> None:
    linked = set(re.findall(r"\]\((\w[\w-]*)\.md\)", INDEX))

    assert linked == {agent.page for agent in AGENTS}
    assert linked == {page.stem for page in PAGES.glob("*.md")} - {"index"}


def test_every_client_is_driven() -> None:
    beside_another = {"langchain-openai", "langchain-anthropic"}

    assert {agent.client for agent in AGENTS} == set(clients()) - beside_another


@pytest.mark.parametrize("agent", [pytest.param(a, id=a.id) for a in AGENTS])
def test_page_tells_address_and_key_of_each_agent(agent: Agent) -> None:
    told = settings(agent.page, agent.section, "http://127.0.0.1:1234")

    copied = told.shell + "".join([*told.files.values(), *agent.environment.values()])
    assert "http://127.0.0.1:1234" in copied
    assert ("my-server-key" in copied) == agent.server_key
    assert ("sk-my-own-key" in copied) == shipped(agent.policy).forwards_key
    assert f"policies/{agent.policy}.toml" in (PAGES / f"{agent.page}.md").read_text()


def test_section_that_is_not_there_is_an_error_that_names_the_others() -> None:
    with pytest.raises(ValueError, match="no section `Prompt`; it has Settings"):
        settings("codex", "Prompt", "http://127.0.0.1:1")


@pytest.mark.parametrize("name", ["claude-code", "codex", "openai-compatible"])
def test_shipped_policy_is_changed_in_its_address_only(name: str) -> None:
    before, after = (tomllib.loads(t) for t in (shipped(name).text, shipped(name).at("http://x")))

    for client in before["llm_clients"].values():
        client["base_url"] = re.sub(r"https://[^/]+", "http://x", client["base_url"])
    assert after == before


def test_larger_stage_has_all_clients_of_the_smaller_one() -> None:
    small, large = (set(expand([stage])) for stage in STAGES)

    assert small < large == set(clients())
    assert expand(["pi", "nobody"]) == ["pi", "nobody"]
