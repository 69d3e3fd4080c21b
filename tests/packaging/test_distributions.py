"""What pip installs works: wheel, sdist, editable, outside the checkout."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from switchyard_core.hookspecs import VERSION
from tests.packaging.environments import ROOT, Environment, build, new_environment

# Making an environment and installing every dependency takes its time on a cold cache.
pytestmark = [pytest.mark.packaging, pytest.mark.timeout(400)]

POLICY = """\
schema_version = 1

[llm_clients.provider]
format = "openai_responses"
base_url = "https://example.com/v1"
api_key_env = "PROVIDER_KEY"

[targets.planner]
id = "provider/capable-model"
llm_client = "provider"

[targets.executor]
id = "provider/efficient-model"
llm_client = "provider"

[routes.plan_execute]
id = "switchyard/plan-execute"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
"""


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = new_environment(tmp_path_factory.mktemp("installed") / "environment")
    made.install(str(wheel))
    return made


def test_wheel_holds_core_plugins_and_data_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    missing = {source for source in package_files() if source not in names}
    assert missing == set()
    assert {name.split("/")[0] for name in names} == {
        "switchyard_core",
        "switchyard_demo_catalog",
        "switchyard_demo_routers",
        "switchyard_plan_execute",
        "switchyard_planner_executor",
        "switchyard_pytest",
        "switchyard_core-" + VERSION + ".dist-info",
    }
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_wheel_says_that_it_is_typed(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    assert "switchyard_core/py.typed" in names


def test_wheel_metadata_holds_no_path_of_the_build_machine(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    metadata = [n for n in archive.namelist() if n.endswith(("METADATA", "entry_points.txt"))]

    assert len(metadata) == 2
    assert [n for n in metadata if str(ROOT) in archive.read(n).decode()] == []


def test_sdist_builds_the_same_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()

    again = build("wheel", source, tmp_path / "again")

    def members(file: Path) -> dict[str, int]:
        return {i.filename: i.CRC for i in zipfile.ZipFile(file).infolist()}

    assert members(again) == members(wheel)


def test_sdist_holds_the_two_commands_of_the_readme(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        modes = {m.name.partition("/")[2]: m.mode for m in archive.getmembers()}

    assert [n for n in ("demo", "test") if not modes[n] & 0o100] == []
    assert "scripts/environment.sh" in modes


def test_installed_command_lists_the_built_in_plugins(environment: Environment) -> None:
    done = environment.run("switchyard", "plugins", "--json")

    assert done.returncode == 0, done.stderr
    plugins = json.loads(done.stdout)["plugins"]
    assert {(plugin["name"], plugin["state"]) for plugin in plugins} == {
        ("core", "ok"),
        ("demo_catalog", "ok"),
        ("demo_routers", "ok"),
        ("plan_execute", "ok"),
        ("planner_executor", "ok"),
    }
    assert {(plugin["distribution"], plugin["version"]) for plugin in plugins} == {
        ("switchyard-core", VERSION)
    }


def test_installed_command_accepts_a_policy(environment: Environment, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)

    done = environment.run("switchyard", "check", "--offline", str(policy))

    assert done.returncode == 0, done.stdout + done.stderr


def test_installed_command_names_place_and_fix_of_a_mistake(
    environment: Environment, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY.replace('capable_target = "planner"', 'capable_target = "planer"'))

    done = environment.run("switchyard", "check", "--offline", str(policy))

    assert done.returncode == 1
    assert ":18:" in done.stdout + done.stderr
    assert "planner" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_installed_demo_plays_to_its_end(environment: Environment) -> None:
    done = environment.run("switchyard", "demo")

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_installed_dependencies_agree_with_each_other(environment: Environment) -> None:
    done = environment.run("python", "-m", "pip", "check")

    assert done.returncode == 0, done.stdout


def test_editable_install_finds_core_and_plugins(tmp_path: Path) -> None:
    made = new_environment(tmp_path / "environment")
    done = made.run("python", "-m", "pip", "install", "--quiet", "--editable", str(ROOT))
    assert done.returncode == 0, done.stderr
    code = (
        "import switchyard_core, switchyard_plan_execute, switchyard_demo_routers as last;"
        "print(last.__file__)"
    )

    found = made.run("python", "-c", code)

    assert found.returncode == 0, found.stderr
    assert Path(found.stdout.strip()).is_relative_to(ROOT / "plugins")


def package_files() -> set[str]:
    """Return what the wheel must hold: every file of the import packages."""
    roots = [ROOT / "switchyard_core", *(ROOT / "plugins").glob("switchyard_*")]
    return {
        path.relative_to(root.parent).as_posix()
        for root in roots
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
