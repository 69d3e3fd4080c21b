"""Checks that a route type's options refuse what they do not know."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from switchyard_core.policy import check_policy_text
from switchyard_core.testing.conformance.bench import require
from switchyard_core.testing.harness import Harness, registry_of

__all__ = ["check_unknown_keys"]

_ADVICE = "inherit `switchyard_core.Options` and let nothing swallow unknown keys"
_STRANGE = "no_option_has_this_name"


def check_unknown_keys(text: str, plugins: Sequence[object], route: str) -> None:
    """Require that a misspelt option is an error which offers the nearest name.

    Args:
        text: A policy.
        plugins: The plugins that it needs.
        route: Name of the route whose options are checked; the first one when empty.

    Raises:
        AssertionError: Names the key that was accepted.
        PluginError: A plugin is broken; one whose options accept unknown keys is.
    """
    policy = Harness(text, plugins=plugins).policy
    name = route or next(iter(policy.routes))
    model = type(policy.routes[name].options)
    for inner in _models(model):
        require(
            inner.model_config.get("extra") == "forbid",
            f"`{inner.__name__}` of the options accepts unknown keys: {_ADVICE}",
        )
    wrong = [(_STRANGE, "")]
    # Shorter names are near to anything.
    wrong += [(_misspelt(option), option) for option in model.model_fields if len(option) > 3]
    for key, nearest in wrong:
        if key not in model.model_fields:
            _check_key(text, plugins, name, key, nearest)


def _check_key(text: str, plugins: Sequence[object], route: str, key: str, nearest: str) -> None:
    header = re.compile(rf"^\[routes\.{re.escape(route)}\][^\n]*\n", re.MULTILINE)
    require(header.search(text), f"write the route as a table `[routes.{route}]`")
    changed = header.sub(lambda match: f"{match[0]}{key} = true\n", text, count=1)
    found = check_policy_text(changed, "policy", registry_of(plugins)).findings
    told = [finding for finding in found if finding.path == f"routes.{route}.{key}"]
    require(told, f"the options accept the unknown key `{key}`: {_ADVICE}")
    if nearest:
        offers = "\n".join(finding.render() for finding in told)
        require(
            f"`{nearest}`" in offers,
            f"`{key}` does not get the nearest name `{nearest}`: {offers}",
        )


def _misspelt(name: str) -> str:
    """Return a name with its last two letters swapped, or one letter more."""
    swapped = name[:-2] + name[-1] + name[-2]
    return swapped if swapped != name else f"{name}x"


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a model and all models inside it."""
    seen: set[type[BaseModel]] = set()
    waiting: list[Any] = [model]
    while waiting:
        found = waiting.pop()
        if isinstance(found, type) and issubclass(found, BaseModel):
            if found not in seen:
                seen.add(found)
                yield found
                waiting += [field.annotation for field in found.model_fields.values()]
        else:
            waiting += get_args(found)
