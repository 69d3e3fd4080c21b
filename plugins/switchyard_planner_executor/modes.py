"""The ways in which a plan is worked through, by name."""

from __future__ import annotations

from difflib import get_close_matches

from switchyard_core import SwitchyardError

__all__ = ["DEFAULT_MODE", "MODES", "RESERVED", "UnknownModeError", "get_mode", "reserved_sentence"]

#: The modes, the default first.
MODES = ("plan_then_execute", "replan")
DEFAULT_MODE = MODES[0]
#: Names that mean something else than any mode here, and are kept for it.
RESERVED = ("magentic",)


class UnknownModeError(SwitchyardError, ValueError):
    """There is no such mode.

    Args:
        name: What was asked for.
        message: One sentence that lists the modes.
    """

    def __init__(self, name: str, message: str) -> None:
        self.name = name
        self.message = message
        super().__init__(message)


def reserved_sentence(name: str) -> str:
    """Return what a reserved name is reserved for."""
    return (
        f"the mode `{name}` is reserved for orchestration with a task ledger, stall counting and "
        "several workers, and is not implemented"
    )


def get_mode(name: str | None) -> str:
    """Return a mode by its name.

    Args:
        name: One of :data:`MODES`; ``None`` and ``""`` give the default.

    Raises:
        UnknownModeError: There is none of that name; the message lists those that there are.
    """
    if name is None or name == "":
        return DEFAULT_MODE
    if name in MODES:
        return name
    known = f"modes: {', '.join(MODES)}"
    if name in RESERVED:
        raise UnknownModeError(name, f"{reserved_sentence(name)}; {known}")
    near = get_close_matches(str(name)[:200], MODES, n=1)
    guess = f"; did you mean `{near[0]}`?" if near else ""
    raise UnknownModeError(name, f"there is no mode `{str(name)[:200]}`; {known}{guess}")
