"""The names of a new plugin: one word of its author gives all others."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

__all__ = ["PluginNames", "nearest_name", "plugin_names"]

#: Longest name, in characters; with the prefix it still is a comfortable folder name.
MAX_LENGTH = 40

_LEGAL = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_PREFIX = re.compile(r"(?:switchyard|[-0-9])+")
_OTHER = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginNames:
    """Everything that is called after a plugin.

    Args:
        type: The route type and the entry point: snake_case.
        distribution: What pip installs.
        module: The import package.
        class_prefix: What the names of its classes begin with.
    """

    type: str
    distribution: str
    module: str
    class_prefix: str

    @property
    def replacements(self) -> dict[str, str]:
        """What stands for each placeholder of the templates."""
        return {
            "<<type>>": self.type,
            "<<distribution>>": self.distribution,
            "<<module>>": self.module,
            "<<class>>": self.class_prefix,
        }


def plugin_names(name: str) -> PluginNames:
    """Return the names of the plugin ``name``.

    Args:
        name: Lower-case words of ASCII letters and digits, joined by hyphens or underscores,
            at most 40 characters: ``sticky``, ``by-hour``.

    Raises:
        ValueError: The name is not like that; the text says what would be.

    Example:
        >>> plugin_names("by-hour").module
        'switchyard_by_hour'
    """
    if not _LEGAL.fullmatch(name) or len(name) > MAX_LENGTH or _PREFIX.match(name):
        rule = "lower-case words of letters and digits, joined by hyphens, "
        rule += f"at most {MAX_LENGTH} characters, without the prefix `switchyard`"
        msg = f"`{name}` cannot be the name of a plugin: it takes {rule}"
        raise ValueError(f"{msg}; did you mean `{nearest_name(name)}`?")
    words = re.split("[-_]", name)
    # A plugin called `by-hour-router` should not have the class `ByHourRouterRouter`.
    spoken = words[:-1] if len(words) > 1 and words[-1] == "router" else words
    return PluginNames(
        type="_".join(words),
        distribution="-".join(["switchyard", *words]),
        module="_".join(["switchyard", *words]),
        class_prefix="".join(word.capitalize() for word in spoken),
    )


def nearest_name(name: str) -> str:
    """Return the legal name that is nearest to any text."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    words = _OTHER.sub("-", plain).strip("-")
    prefix = _PREFIX.match(words)
    words = words[prefix.end() :] if prefix else words
    return words[:MAX_LENGTH].rstrip("-") or "my-router"
