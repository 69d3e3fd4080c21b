"""What the distribution of a plugin needs, and what of it is missing here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, version
from typing import TYPE_CHECKING

from switchyard_core.hookspecs import VERSION

if TYPE_CHECKING:
    from packaging.requirements import Requirement

__all__ = ["CORE", "is_leftover", "unmet_needs"]

#: The distribution of the core and its plugins. Its version is the one of the code that runs.
CORE = "switchyard-core"


def is_leftover(dist: Distribution) -> bool:
    """Return whether pip left the metadata behind: it renames what it removes to ``~name``."""
    # Only the name of the folder tells; the metadata in it are those of the distribution.
    return getattr(getattr(dist, "_path", None), "name", "").startswith("~")


def unmet_needs(dist: Distribution) -> str:
    """Return what a distribution needs and does not get, and what to do; ``""`` without any.

    Extras are not asked for, and what cannot be read as a requirement is left to pip.
    """
    return "; ".join([*_of_python(dist), *_of_distributions(dist)])


def _of_python(dist: Distribution) -> Iterator[str]:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # noqa: PLC0415  # if asked

    needed = next(iter(dist.metadata.get_all("Requires-Python") or ()), None)
    running = ".".join(map(str, sys.version_info[:3]))
    try:
        met = needed is None or SpecifierSet(needed).contains(running, prereleases=True)
    except InvalidSpecifier:
        return
    if not met:
        name = dist.metadata["Name"]
        yield (
            f"it needs Python {needed}, and this is Python {running}: run switchyard with such a "
            f"Python, or install a version of {name} for this one"
        )


def _of_distributions(dist: Distribution) -> Iterator[str]:
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415  # if asked
    from packaging.version import InvalidVersion  # noqa: PLC0415  # if asked

    for text in dist.requires or ():
        try:
            needed = Requirement(text)
            if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
                continue
            found = _installed(needed)
            met = found != "" and needed.specifier.contains(found, prereleases=True)
        except (InvalidRequirement, InvalidVersion):
            continue
        if not met:
            wanted = f"{needed.name}{needed.specifier}"
            here = f"{found} is installed" if found else "it is not installed"
            yield f"it needs `{wanted}`, and {here}: run `pip install '{wanted}'`" + (
                f", or install another version of {dist.metadata['Name']}" if found else ""
            )


def _installed(needed: Requirement) -> str:
    """Return the version of a distribution that is installed, ``""`` without one."""
    from packaging.utils import canonicalize_name  # noqa: PLC0415  # if asked

    if canonicalize_name(needed.name) == CORE:
        return VERSION
    try:
        return version(needed.name)
    except PackageNotFoundError:
        return ""
