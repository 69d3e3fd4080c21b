"""The fixture ``model_replay`` and what belongs to it: options, a marker, a summary.

Like the rest of this package it imports nothing of switchyard until a test asks for the fixture.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from switchyard_core.replay import Replay

__all__ = ["Unused", "model_replay", "pytest_addoption", "pytest_configure"]

_MODES = ("replay", "record", "refresh", "off")
_VARIABLE = "SWITCHYARD_REPLAY"
_MARK = (
    "model_replay(folder): the fixture `model_replay` keeps its recordings in this folder, "
    "relative to the test's own"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the fixture."""
    group = parser.getgroup("switchyard", "recorded model calls (fixture `model_replay`)")
    group.addoption(
        "--model-replay",
        choices=_MODES,
        default=None,
        help=f"what is done with model calls; `replay` by default, or as {_VARIABLE} says",
    )
    group.addoption(
        "--model-replay-required",
        action="store_true",
        help="fail tests that have no recording, instead of skipping them",
    )


class Unused:
    """Lists the recordings that no test of a session used, unless some tests were left out."""

    def __init__(self, config: pytest.Config) -> None:
        self.mode = _mode(config)
        self._config = config
        self._files: set[str] = set()
        self._used: set[str] = set()
        # Of `file.py::test` pytest does not collect the other tests at all.
        self._partial = any("::" in argument for argument in config.args)

    def add(self, files: list[Path], used: tuple[Path, ...]) -> None:
        """Note what a test could use, and what it used."""
        self._files.update(map(str, files))
        self._used.update(map(str, used))

    @pytest.hookimpl
    def pytest_deselected(self) -> None:
        """Note that tests were left out."""
        self._partial = True

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note that a test ended before it had made all of its calls."""
        if report.failed:
            self._partial = True

    @pytest.hookimpl
    def pytest_sessionfinish(self) -> None:
        """Hand on what a worker of pytest-xdist saw."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["switchyard_recordings"] = {
                "files": sorted(self._files),
                "used": sorted(self._used),
                "partial": self._partial,
            }

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker of pytest-xdist saw."""
        found: Mapping[str, Any] = getattr(node, "workeroutput", {}).get(
            "switchyard_recordings", {"files": (), "used": (), "partial": True}
        )
        self._files.update(found["files"])
        self._used.update(found["used"])
        self._partial = self._partial or found["partial"]

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """List the recordings that no test used."""
        unused = sorted(self._files - self._used)
        if unused and not self._partial:
            terminalreporter.section("model recordings that no test used")
            for path in unused:
                terminalreporter.line(path)


def _mode(config: pytest.Config) -> Any:
    option = config.getoption("--model-replay")
    if option is not None:
        return option
    named = os.environ.get(_VARIABLE, "").strip() or "replay"
    if named not in _MODES:
        raise pytest.UsageError(f"{_VARIABLE} is `{named}`, and must be one of {', '.join(_MODES)}")
    return named


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and what watches the session."""
    config.addinivalue_line("markers", _MARK)
    config.pluginmanager.register(Unused(config), "switchyard_recordings")


@pytest.fixture
def model_replay(request: pytest.FixtureRequest) -> Iterator[Replay]:
    """Return the recorded model calls of a test; hand them on as ``replay=``.

    The folder is ``recordings/<name of the test's module>`` beside the module, or what the
    marker ``model_replay`` says. A test without any recording is skipped, unless calls are
    recorded.
    """
    from switchyard_core.replay import Replay, recording_files  # noqa: PLC0415  # see above

    watch = request.config.pluginmanager.get_plugin("switchyard_recordings")
    if watch is None:
        raise pytest.UsageError("the plugin of switchyard was not configured")
    folder = _folder(request)
    if watch.mode == "replay" and not recording_files(folder):
        reason = f"no model call is recorded in {folder}: run pytest with --model-replay=record"
        if request.config.getoption("--model-replay-required"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    advice = "record it by running pytest with `--model-replay=record`"
    replay = Replay(folder, watch.mode, advice=advice)
    yield replay
    if watch.mode != "off":
        watch.add(recording_files(folder), replay.used())


def _folder(request: pytest.FixtureRequest) -> Path:
    marker = request.node.get_closest_marker("model_replay")
    if marker is None:
        return request.path.parent / "recordings" / request.path.stem
    if len(marker.args) != 1 or marker.kwargs or not isinstance(marker.args[0], (str, os.PathLike)):
        msg = "the marker `model_replay` takes one folder: @pytest.mark.model_replay('recordings')"
        raise pytest.UsageError(msg)
    return request.path.parent / marker.args[0]
