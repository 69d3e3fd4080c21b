"""What `.ci/run` does with a stage that the machine cannot run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: Stands for the Python of the environment; each stage ends as `CODE` says.
PYTHON = '#!/bin/sh\n[ "$1" = -c ] && exit 0\nexit "$CODE"\n'


@pytest.fixture
def run(tmp_path):
    """Return what runs stages in an environment that looks made, but holds no tools."""
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    made_from = f"{ROOT}\n# extras: dev\n{(ROOT / 'pyproject.toml').read_text()}"
    (tmp_path / "switchyard-stamp").write_text(made_from)

    def run(*stages, code, allow=""):
        environ = {"SWITCHYARD_ENVIRONMENT": str(tmp_path), "CODE": str(code)}
        return subprocess.run(
            ["bash", str(ROOT / ".ci" / "run"), *stages],
            env=os.environ | environ | {"SWITCHYARD_ALLOW_SKIP": allow},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize(
    ("stage", "code", "allow", "ends", "summary"),
    [
        pytest.param("docs", 0, "", 0, "1 passed, 0 failed, 0 skipped", id="passed"),
        pytest.param("docs", 1, "docs", 1, "0 passed, 1 failed, 0 skipped", id="failed"),
        pytest.param("docs", 77, "", 1, "0 passed, 1 failed, 0 skipped", id="skipped"),
        pytest.param("docs", 77, "doc s", 1, "0 passed, 1 failed, 0 skipped", id="other_allowed"),
        pytest.param("docs", 77, "types docs", 0, "0 passed, 0 failed, 1 skipped", id="allowed"),
        pytest.param("audit", 77, "", 0, "0 passed, 0 failed, 1 skipped", id="audit_without_data"),
        pytest.param("audit", 1, "", 1, "0 passed, 1 failed, 0 skipped", id="audit_with_a_hole"),
    ],
)
def test_a_stage_that_did_not_run_fails_unless_that_is_allowed(
    run, stage, code, allow, ends, summary
):
    done = run(stage, code=code, allow=allow)

    assert done.returncode == ends, done.stderr
    assert f"stages: {summary}" in done.stdout
    assert ("NOT RUN" in done.stdout) == (code == 77)
    assert ("SWITCHYARD_ALLOW_SKIP does not name it" in done.stderr) == (code == 77 and ends == 1)


def test_an_unknown_stage_names_all_stages(run):
    done = run("dosc", code=0)

    assert done.returncode == 2
    assert "unknown stage `dosc`; stages: format lint" in done.stderr
    assert "deep" in done.stderr
