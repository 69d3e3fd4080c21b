"""Built-in plugins have no privilege: each works as a wheel of its own.

The core is built without them, a plugin's wheel is installed beside it, and the plugin's tests
run against what is installed, copied out of the checkout.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import tomli

from switchyard_core.hookspecs import VERSION
from tests.packaging.environments import ROOT, Environment, build, new_environment

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(400)]

PLUGINS = sorted(path.name for path in (ROOT / "plugins").glob("switchyard_*"))
#: What the plugin's tests need of the checkout; nothing that could be imported in its place.
TESTS = ("conftest.py", "support", "plan_execute")
SETTINGS = """\
[pytest]
addopts = --import-mode=importlib
pythonpath = .
anyio_mode = auto
filterwarnings = error
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel of the core without any of the plugins."""
    names = " ".join(name.removeprefix("switchyard_") for name in PLUGINS)
    folder = tmp_path_factory.mktemp("core")
    return build("wheel", ROOT, folder, {"SWITCHYARD_WITHOUT": names})


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the wheel of each plugin, by the name of its package."""
    folder = tmp_path_factory.mktemp("parts")
    return {name: build("wheel", ROOT / "packaging" / name, folder / name) for name in PLUGINS}


@pytest.fixture(scope="module")
def environment(
    core: Path, parts: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    made = new_environment(tmp_path_factory.mktemp("split") / "environment")
    made.install(f"{core}[testing]", *map(str, parts.values()), "anyio>=4.12", "hypothesis")
    return made


def test_every_plugin_of_the_repository_has_a_wheel_of_its_own() -> None:
    assert sorted(path.parent.name for path in (ROOT / "packaging").glob("*/pyproject.toml")) == (
        PLUGINS
    )


def test_core_without_plugins_has_neither_their_files_nor_their_entry_points(core: Path) -> None:
    archive = zipfile.ZipFile(core)
    (points,) = [name for name in archive.namelist() if name.endswith("/entry_points.txt")]

    assert [name for name in archive.namelist() if name.split("/")[0] in PLUGINS] == []
    assert [name for name in PLUGINS if name in archive.read(points).decode()] == []
    assert "switchyard_core.plugins.builtins" in archive.read(points).decode()


@pytest.mark.parametrize("name", PLUGINS)
def test_plugin_wheel_holds_the_files_of_its_package(parts: dict[str, Path], name: str) -> None:
    source = ROOT / "plugins" / name
    files = {
        path.relative_to(source.parent).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    packed = {n for n in zipfile.ZipFile(parts[name]).namelist() if ".dist-info/" not in n}

    assert packed == {*files, f"{name}/LICENSE"}


@pytest.mark.parametrize("name", PLUGINS)
def test_plugin_wheel_declares_the_entry_point_of_the_core(name: str) -> None:
    own = tomli.loads((ROOT / "packaging" / name / "pyproject.toml").read_text())["project"]
    points = tomli.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]

    assert own["name"] == name.replace("_", "-")
    assert own["entry-points"]["switchyard"] == {
        key: module for key, module in points["switchyard"].items() if module == name
    }


def test_plugins_are_listed_with_distributions_of_their_own(environment: Environment) -> None:
    done = environment.run("switchyard", "plugins", "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    found = {
        p["name"]: (p["distribution"], p["version"]) for p in json.loads(done.stdout)["plugins"]
    }
    assert found == {
        "core": ("switchyard-core", VERSION),
        **{n.removeprefix("switchyard_"): (n.replace("_", "-"), VERSION) for n in PLUGINS},
    }


def test_tests_of_plan_execute_pass_against_its_own_wheel(
    environment: Environment, tmp_path: Path
) -> None:
    for name in TESTS:
        source, copy = ROOT / "tests" / name, tmp_path / "tests" / name
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            copy.parent.mkdir(exist_ok=True)
            shutil.copy(source, copy)
    (tmp_path / "pytest.ini").write_text(SETTINGS)

    done = environment.run("python", "-m", "pytest", "-q", "tests/plan_execute", cwd=tmp_path)

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert "skipped" not in done.stdout
    where = environment.run(
        "python", "-c", "import switchyard_plan_execute as p; print(p.__file__)", cwd=tmp_path
    )
    assert Path(where.stdout.strip()).is_relative_to(environment.folder)


def test_demo_plays_with_plan_execute_as_a_stranger(environment: Environment) -> None:
    done = environment.run("switchyard", "demo")

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_plugin_beside_a_core_that_contains_it_is_refused_by_name(
    wheel: Path, parts: dict[str, Path], tmp_path: Path
) -> None:
    made = new_environment(tmp_path / "environment")
    made.install(str(wheel), str(parts["switchyard_plan_execute"]))

    done = made.run("switchyard", "plugins")

    assert done.returncode == 2
    assert "its name is also claimed by `plan_execute` (switchyard-core" in done.stdout
    assert "its name is also claimed by `plan_execute` (switchyard-plan-execute" in done.stdout


def test_build_without_something_unknown_says_what_is_known(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
        env={**Environment(folder=tmp_path).variables(), "SWITCHYARD_WITHOUT": "plan_exekute"},
    )

    assert done.returncode != 0
    assert "`plan_exekute` is no plugin of this repository; known: demo_catalog, " in (
        done.stdout + done.stderr
    )
    assert list(tmp_path.iterdir()) == []
