r"""Policies: read a TOML file, check all of it, resolve every name.

>>> from switchyard_core.plugins import PluginRegistry
>>> text = "schema_version = 1\n[targets]\n[routes]\n"
>>> sorted(load_policy_text(text, "empty.toml", PluginRegistry()).routes)
[]
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from switchyard_core.errors import PolicyError
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy.check import CheckResult, check_document, check_workers
from switchyard_core.policy.document import parse_document, read_document
from switchyard_core.policy.models import Client, Housekeeping, Origin, Policy, Price, Route, Target

__all__ = [
    "CheckResult",
    "Client",
    "Housekeeping",
    "Origin",
    "Policy",
    "Price",
    "Route",
    "Target",
    "check_policy",
    "check_policy_text",
    "check_workers",
    "load_policy",
    "load_policy_text",
]


def check_policy(
    source: str | os.PathLike[str],
    registry: PluginRegistry,
    *,
    environ: Mapping[str, str] | None = None,
    today: date | None = None,
) -> CheckResult:
    """Check a policy file; every problem is a finding.

    Args:
        source: Path of the file.
        registry: Installed plugins.
        environ: Environment variables for ``api_key_env``; ``None`` does not check them.
        today: The day by which facts are old; ``None`` is the real one.
    """
    path = Path(source)
    try:
        document = read_document(source)
    except PolicyError as error:
        return CheckResult(policy=None, findings=error.findings)
    return check_document(
        document, registry, environ=environ, base=path.parent, path=path, today=today
    )


def check_policy_text(
    text: str | bytes,
    name: str,
    registry: PluginRegistry,
    *,
    base_dir: str | os.PathLike[str] = ".",
    environ: Mapping[str, str] | None = None,
    today: date | None = None,
) -> CheckResult:
    """Check the text of a policy; relative paths are below ``base_dir``."""
    try:
        document = parse_document(text, name)
    except PolicyError as error:
        return CheckResult(policy=None, findings=error.findings)
    return check_document(
        document, registry, environ=environ, base=Path(base_dir), path=None, today=today
    )


def load_policy(
    source: str | os.PathLike[str],
    registry: PluginRegistry,
    *,
    environ: Mapping[str, str] | None = None,
) -> Policy:
    """Load a policy file.

    Args:
        source: Path of the file.
        registry: Installed plugins.
        environ: As for :func:`check_policy`.

    Raises:
        PolicyError: The policy has errors; carries all of them and the warnings.
    """
    return _policy(check_policy(source, registry, environ=environ))


def load_policy_text(
    text: str | bytes,
    name: str,
    registry: PluginRegistry,
    *,
    base_dir: str | os.PathLike[str] = ".",
    environ: Mapping[str, str] | None = None,
) -> Policy:
    """Load a policy from its text; arguments as for :func:`check_policy_text`.

    Raises:
        PolicyError: The policy has errors; carries all of them and the warnings.
    """
    return _policy(check_policy_text(text, name, registry, base_dir=base_dir, environ=environ))


def _policy(result: CheckResult) -> Policy:
    if result.policy is None:
        raise PolicyError(result.findings)
    return result.policy
