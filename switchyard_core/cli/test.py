"""``switchyard test``: the tests beside the policies."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from switchyard_core.cli import default_policy, installed_registry
from switchyard_core.cli.words import Choice

if TYPE_CHECKING:
    from switchyard_core.cases import State
    from switchyard_core.plugins import PluginRegistry

__all__ = ["command", "stamps", "watch"]

#: Seconds between checks of the files.
_INTERVAL_S = 0.5
_COLOURS = {"PASS": "green", "FAIL": "red", "ERROR": "magenta"}


@click.command(name="test")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--coverage", is_flag=True, help="List routes and own rules that no case exercised.")
@click.option(
    "--output",
    type=Choice(["text", "junit", "json"]),
    default="text",
    show_default=True,
    help="For people, for CI systems, or for programs.",
)
@click.option("--watch", "watching", is_flag=True, help="Run again on every change, until Ctrl-C.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    paths: tuple[Path, ...],
    coverage: bool,
    output: Literal["text", "junit", "json"],
    watching: bool,
) -> None:
    """Run the tests of policies: NAME.test.toml beside NAME.toml.

    PATHS are folders, policies or test files; without any, switchyard.toml. Uses no network and
    no environment. Exits 0 when every case passes, 1 when one fails, and 2 when one cannot run.

    Example: switchyard test policies/ --coverage
    """
    registry = installed_registry(ctx)
    paths = paths or (Path(default_policy()),)
    if not watching:
        ctx.exit(_run(paths, registry, output, coverage=coverage))

    folders = [path if path.is_dir() else path.parent for path in paths]

    def run() -> int:
        try:
            return _run(paths, registry, output, coverage=coverage)
        except click.ClickException as error:
            # The next change may bring the file back.
            error.show()
            return error.exit_code

    ctx.exit(watch(run, lambda: stamps(folders), time.sleep))


def watch(
    run: Callable[[], int],
    look: Callable[[], Mapping[str, tuple[int, int]]],
    sleep: Callable[[float], object],
) -> int:
    """Run, and run again after each change; return the last exit code when interrupted."""
    before = look()
    code = run()
    try:
        while True:
            sleep(_INTERVAL_S)
            now = look()
            if now != before:
                # A change during the run is seen at the next check.
                before = now
                code = run()
    except KeyboardInterrupt:
        return code


def stamps(folders: Iterable[Path]) -> Mapping[str, tuple[int, int]]:
    """Return modification time and size of each TOML, JSON and JSONL file in folders."""
    found: dict[str, tuple[int, int]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.*")):
            if path.suffix in {".toml", ".json", ".jsonl"}:
                # A file may disappear meanwhile.
                with contextlib.suppress(OSError):
                    state = path.stat()
                    found[str(path)] = (state.st_mtime_ns, state.st_size)
    return found


def _run(
    paths: tuple[Path, ...],
    registry: PluginRegistry,
    output: Literal["text", "junit", "json"],
    *,
    coverage: bool,
) -> int:
    """Run all tests once, print the results, and return the exit code."""
    from switchyard_core.cases import as_json, as_junit, as_text, exit_code, run_file  # noqa: PLC0415  # fast --help
    from switchyard_core.switchyard import Switchyard  # noqa: PLC0415  # fast --help

    tests, untested = _found(paths)
    results = [run_file(path, registry, Switchyard) for path in tests]
    if output == "json":
        click.echo(json.dumps(as_json(results, untested), ensure_ascii=False, indent=2))
    elif output == "junit":
        click.echo(as_junit(results), nl=False)
    else:
        color = False if os.environ.get("NO_COLOR") else None
        text = as_text(results, untested, coverage=coverage, paint=_painted)
        click.echo(text, nl=False, color=color)
    return exit_code(results)


def _painted(state: State) -> str:
    return click.style(state, fg=_COLOURS[state], bold=True)


def _found(paths: tuple[Path, ...]) -> tuple[list[Path], list[str]]:
    """Return the test files in paths, and the policies without tests."""
    from switchyard_core.cases import SUFFIX, case_file_of  # noqa: PLC0415  # fast --help
    from switchyard_core.policy.document import near_file  # noqa: PLC0415  # fast --help

    tests: list[Path] = []
    untested: list[str] = []
    for path in paths:
        if not path.exists():
            hint = near_file(str(path))
            raise click.UsageError(
                f"no such file or folder: `{path}`" + (f"; {hint}" if hint else "")
            )
        for file in sorted(path.glob("*.toml")) if path.is_dir() else [path]:
            if file.name.endswith(SUFFIX):
                tests.append(file)
            elif path.is_dir() and not _is_policy(file):
                continue
            elif not case_file_of(file).exists():
                untested.append(str(file))
            elif not path.is_dir():
                tests.append(case_file_of(file))
    if not tests:
        names = ", ".join(f"`{path}`" for path in paths)
        msg = f"no test file, NAME{SUFFIX} beside NAME.toml, in {names}"
        raise click.UsageError(msg)
    return list(dict.fromkeys(tests)), untested


def _is_policy(file: Path) -> bool:
    """Return whether a TOML file of a folder is a policy; one that cannot be read may be."""
    from switchyard_core.errors import PolicyError  # noqa: PLC0415  # fast --help
    from switchyard_core.policy.document import read_document  # noqa: PLC0415  # fast --help

    try:
        keys = read_document(file).values.keys()
    except PolicyError:
        return True
    return not keys.isdisjoint({"schema_version", "routes", "targets", "llm_clients"})
