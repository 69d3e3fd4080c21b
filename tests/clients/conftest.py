"""Where a client works."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.clients.agents import Agent, Workplace
from tests.clients.calls import BROKEN


@pytest.fixture
def place(tmp_path: Path, agent: Agent) -> Workplace:
    """A git repository with one bug, and an empty home."""
    if not agent.install.is_installed:
        pytest.skip(f"{agent.client} is not installed: python -m tests.clients.installs NAME")
    repo, home = tmp_path / "repo", tmp_path / "home"
    repo.mkdir()
    home.mkdir()
    (repo / "calc.py").write_text(BROKEN)
    identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.com"]
    environment = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "start"]):
        subprocess.run(
            ["git", *command],
            cwd=repo,
            check=True,
            env={**environment, "GIT_CONFIG_NOSYSTEM": "1"},
        )
    return Workplace(repo=repo, home=home)
