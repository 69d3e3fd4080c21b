"""The names of the strict providers, one for each file of rules."""

from __future__ import annotations

from importlib.resources import files

from switchyard_core.errors import nearest

__all__ = ["PROVIDERS", "check_strict", "strict_names"]

#: The folder with the rules.
PROVIDERS = files("switchyard_core.scripted.strict") / "providers"


def strict_names() -> tuple[str, ...]:
    """Return the names of all strict providers."""
    names = (each.name for each in PROVIDERS.iterdir() if each.name.endswith(".toml"))
    return tuple(sorted(name.removesuffix(".toml") for name in names))


def check_strict(name: str) -> str:
    """Return what to write in place of an unknown name, ``""`` for a known one."""
    names = strict_names()
    if name in names:
        return ""
    near = nearest(name, names)
    return f"did you mean `{near}`?" if near else f"write one of {', '.join(names)}"
