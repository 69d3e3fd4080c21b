"""The wheel of the core, built once, and an environment in which a plugin's author works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.environments import ROOT, Environment, build, new_environment


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def authors(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an environment with the wheel of the core and the test kit."""
    made = new_environment(tmp_path_factory.mktemp("authors") / "environment")
    made.install(f"{wheel}[testing]", "anyio>=4.12", "build", "hatchling>=1.26")
    return made
