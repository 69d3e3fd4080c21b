"""``switchyard schema``."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from switchyard_core.cli import cli
from switchyard_core.plugins import PluginRegistry, builtins
from switchyard_core.policy.schema import policy_schema
from tests.support.policies import PLUGINS

REGISTRY = PluginRegistry([("core", builtins), *((p.__name__, p) for p in PLUGINS)])


def test_schema_prints_the_schema_of_what_is_installed() -> None:
    result = CliRunner().invoke(cli, ["schema"], obj=REGISTRY)

    assert result.exit_code == 0
    assert json.loads(result.stdout) == policy_schema(REGISTRY)


def test_schema_output_writes_the_shipped_file_byte_by_byte(tmp_path: Path) -> None:
    path = tmp_path / "s.json"

    result = CliRunner().invoke(cli, ["schema", "--output", str(path)], obj=REGISTRY)

    shipped = Path(__file__).parents[2] / "policies" / "switchyard.schema.json"
    assert (result.exit_code, result.output) == (0, "")
    assert path.read_bytes() == shipped.read_bytes()


def test_schema_output_that_cannot_be_written_exits_2(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "s.json"

    result = CliRunner().invoke(cli, ["schema", "--output", str(path)], obj=REGISTRY)

    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: cannot write {path}: ")
