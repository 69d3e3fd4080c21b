"""The README's snapshot test, as a newcomer copies it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]


@pytest.fixture
def copied(pytester: pytest.Pytester) -> pytest.Pytester:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"runs it -->\n```python\n(.*?)```", text, re.DOTALL)
    pytester.makepyfile(test_mine=block)
    (pytester.path / "policies").symlink_to(ROOT / "policies")
    pytester.makeini("[pytest]\naddopts = -p no:randomly -p no:cacheprovider")
    return pytester


@pytest.mark.timeout(120)  # three runs of pytest, the last one as a newcomer starts it
def test_snapshot_test_fails_first_then_passes_and_writes_one_file(copied):
    copied.runpytest_inprocess("-q").assert_outcomes(failed=1)
    copied.runpytest_inprocess("-q", "--snapshot-update").assert_outcomes(passed=1)
    copied.runpytest_subprocess("-q").assert_outcomes(passed=1)

    (file,) = (copied.path / "__snapshots__" / "test_mine").iterdir()
    assert '"model": "gpt-5.4-nano"' in file.read_text()
