"""Ask pip-audit whether a version of a dependency that we allow has a known hole.

    python scripts/audit.py

It looks at two sets of what `pip install "switchyard-core[fast,testing]"` may bring: the lowest
versions that pyproject.toml allows, and those that are installed here. Exit 1 when one of them has
a hole, with its name and the version that mends it; 77 when there is no data about holes: pip-audit
gets it from the package index, and without it finds nothing wrong with anything.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import tomli
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["AuditError", "audit", "installed", "lowest", "main"]

ROOT = Path(__file__).resolve().parents[1]
NOT_RUN = 77
EXTRAS = ("fast", "testing")
#: A version that everybody knows to have a hole: whoever does not find it has no data.
_KNOWN_HOLE = {"h11": "0.14.0"}
_LONGEST_S = 120

#: Versions by name.
Versions = Mapping[str, str]


class AuditError(Exception):
    """pip-audit could not be asked; the text says why."""


def requirements() -> list[Requirement]:
    """Return what the project and the extras that people install require on this machine."""
    project = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    texts = [*project["dependencies"], *(text for name in EXTRAS for text in extras[name])]
    found = [Requirement(text) for text in texts]
    return [item for item in found if item.marker is None or item.marker.evaluate()]


def lowest(wanted: Iterable[Requirement]) -> dict[str, str]:
    """Return the lowest version that each requirement allows.

    Raises:
        ValueError: A requirement has no lower bound.
    """
    versions = {}
    for item in wanted:
        bounds = [bound.version for bound in item.specifier if bound.operator == ">="]
        if len(bounds) != 1:
            raise ValueError(f"`{item}` needs one lower bound: `{item.name}>=...`")
        versions[item.name] = bounds[0]
    return versions


def installed(wanted: Iterable[Requirement]) -> dict[str, str]:
    """Return the installed versions of requirements, and of all that those require in turn."""
    versions: dict[str, str] = {}
    todo = list(wanted)
    while todo:
        name = canonicalize_name(todo.pop().name)
        if name in versions:
            continue
        distribution = metadata.distribution(name)
        versions[name] = distribution.version
        needs = map(Requirement, distribution.requires or ())
        todo += [n for n in needs if n.marker is None or n.marker.evaluate({"extra": ""})]
    return versions


def ask(versions: Versions) -> list[dict[str, Any]]:
    """Return what pip-audit says about each of these versions.

    Raises:
        AuditError: It said nothing that can be read, or took too long.
    """
    with tempfile.TemporaryDirectory() as folder:
        listing = Path(folder, "requirements.txt")
        listing.write_text("".join(f"{name}=={v}\n" for name, v in sorted(versions.items())))
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(listing), "--no-deps"]
        command += ["--disable-pip", "--format=json", "--progress-spinner=off", "--timeout=15"]
        try:
            done = subprocess.run(  # noqa: S603  # our own interpreter and arguments
                command, capture_output=True, text=True, check=False, timeout=_LONGEST_S
            )
        except subprocess.TimeoutExpired:
            raise AuditError(f"pip-audit did not end within {_LONGEST_S} s") from None
    try:
        answers: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        lines = [line for line in done.stderr.splitlines() if re.search(r"\S", line)]
        raise AuditError(lines[-1] if lines else "pip-audit said nothing") from None
    return answers


def audit(
    sets: Mapping[str, Versions], ask: Callable[[Versions], list[dict[str, Any]]] = ask
) -> tuple[int, list[str]]:
    """Return the exit code and the lines to print.

    Args:
        sets: Versions by name, by the name of their set.
        ask: Asks pip-audit.
    """
    missing = "the one in h11 0.14.0, known to all, is not there"
    try:
        has_data = any(answer.get("vulns") for answer in ask(_KNOWN_HOLE))
        answers = {name: ask(versions) for name, versions in sets.items()} if has_data else {}
    except AuditError as error:
        has_data, missing = False, str(error)
    if not has_data:
        return NOT_RUN, [f"NOT RUN: no data about known holes: {missing}"]
    found, silent = [], []
    for name, about in answers.items():
        for answer in about:
            what = f"{name}: {answer['name']} {answer.get('version', '')}".rstrip()
            if "skip_reason" in answer:
                silent.append(f"{what}: not looked at: {answer['skip_reason']}")
            found += [
                f"{what}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'no version'}"
                for hole in answer.get("vulns", ())
            ]
    looked = ", ".join(f"{len(versions)} {name}" for name, versions in sets.items())
    end = f"{len(found)} known holes and {len(silent)} unknown versions among {looked}"
    return (1 if found or silent else 0), [*found, *silent, end]


def main() -> int:
    """Audit both sets, print what was found, and return the exit code."""
    wanted = requirements()
    code, lines = audit({"lowest": lowest(wanted), "installed": installed(wanted)})
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
