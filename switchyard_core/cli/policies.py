"""The policy of a command: its first argument, or the file that ``switchyard init`` writes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = ["DEFAULT_POLICY", "default_policy", "policy_argument"]

#: The policy of a command that is given none.
DEFAULT_POLICY = "switchyard.toml"


def policy_argument(
    *, then: str = "", path: click.Path | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command the argument POLICY, as keyword ``policy``.

    Commands of plugins may use it too. Left out, it is ``switchyard.toml`` of this folder; the
    command says so, or ends with exit code 2 when there is no such file.

    Args:
        then: Name of the argument after it. A word alone is that one, unless it ends with
            ``.toml``.
        path: The type of its value, as of :class:`click.Path`.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.argument("policy", required=False, type=path or click.Path())
        @functools.wraps(command)
        def with_policy(*arguments: Any, **named: Any) -> Any:
            ctx = click.get_current_context()
            if then and not named[then] and not str(named["policy"] or ".toml").endswith(".toml"):
                named[then], named["policy"] = _typed(ctx, then, str(named["policy"])), None
            if named["policy"] is None:
                named["policy"] = _typed(ctx, "policy", default_policy())
            return command(*arguments, **named)

        return with_policy

    return decorate


def default_policy() -> str:
    """Return the policy of this folder, and say so; a usage error when there is none."""
    if not Path(DEFAULT_POLICY).is_file():
        raise click.UsageError(
            f"name a policy: this folder has no `{DEFAULT_POLICY}`, which is the default; "
            "`switchyard init` writes one"
        )
    click.echo(f"policy: {DEFAULT_POLICY}", err=True)
    return DEFAULT_POLICY


def _typed(ctx: click.Context, name: str, value: str) -> Any:
    """Return a word as the value of an argument."""
    param = next(param for param in ctx.command.params if param.name == name)
    return param.type_cast_value(ctx, value)
