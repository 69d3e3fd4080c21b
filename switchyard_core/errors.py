"""Every error of switchyard, and the finding that a policy check reports.

::

    SwitchyardError
    ├── PolicyError            a policy cannot be used; carries every finding
    ├── PluginError            a plugin is broken, claims a taken name, or broke its contract
    ├── RequestError           this request is refused; carries a status and a code
    │   ├── BodyError          400  the body is not what its wire format says
    │   ├── BodyTooLargeError  413  the body is over the limit
    │   ├── UnknownModelError  404  no route has that model id
    │   ├── LatchCapacityError 400  a new identity finds the latch store full
    │   ├── PlanCapacityError  400  a new plan finds the plan store full
    │   └── RefusedError       400  the policy refuses the request
    └── UpstreamError          502/504  the provider could not be reached or broke off
        └── ReplayError        502  a folder of recordings cannot be used
            ├── ReplayMiss          nothing is recorded for this call
            └── RecordingError      a call must not or cannot be recorded
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import TracebackType
from typing import Any, Literal

__all__ = [
    "BodyError",
    "BodyTooLargeError",
    "Finding",
    "LatchCapacityError",
    "PlanCapacityError",
    "PluginError",
    "PolicyError",
    "RecordingError",
    "RefusedError",
    "ReplayError",
    "ReplayMiss",
    "RequestError",
    "Severity",
    "SwitchyardError",
    "UnknownModelError",
    "UpstreamError",
    "in_one_line",
    "nearest",
    "with_place",
]

Severity = Literal["error", "warning"]

#: What separates the words of a name.
_BETWEEN = re.compile(r"[-_.\s]+")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelt one most likely meant, if any is near."""
    by_folded = {candidate.casefold(): candidate for candidate in sorted(known, reverse=True)}
    folded = name.casefold()[:200]
    found = get_close_matches(folded, list(by_folded), n=3, cutoff=0.6)
    return next((by_folded[each] for each in found if _are_near(folded, each)), None)


def _are_near(name: str, other: str) -> bool:
    """Return whether few slips of the finger lead from one name to another, or it lacks words."""
    words, others = set(_BETWEEN.split(name)), set(_BETWEEN.split(other))
    return words <= others or others <= words or _slips(name, other) <= max(1, len(name) // 3)


def _slips(name: str, other: str) -> int:
    """Return how many letters are missing, added, wrong, or swapped with the next."""
    before, row = list[int](), list(range(len(other) + 1))
    for i, char in enumerate(name, 1):
        older, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            least = min(before[j] + 1, row[-1] + 1, before[j - 1] + (char != wanted))
            if older and j > 1 and (char, name[i - 2]) == (other[j - 2], wanted):
                least = min(least, older[j - 2] + 1)
            row.append(least)
    return row[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem of a policy: what is wrong, where, and what to do.

    Args:
        code: ``SY`` and three digits; the first digit names the subject
            (1 document, 2 clients and targets, 3 routes, 4 mutation rules, 5 plugins, 6 policy
            tests).
        message: One sentence, lower case, no final stop, user input in back-ticks.
        file: The path as the user gave it.
        line: 1-based line, 0 when the problem has no place in the file.
        column: 1-based column counted in characters, 0 if unknown.
        path: Path in the document, such as ``routes.plan_execute.capable_target``.
        severity: ``error`` stops the policy from being used, ``warning`` does not.
        notes: Further lines, such as the names that would have been valid.
    """

    code: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    path: str = ""
    severity: Severity = "error"
    notes: tuple[str, ...] = ()
    fix: str = ""

    def render(self) -> str:
        """Return the finding as text: one headline, then indented notes and the fix."""
        place = self.file or "policy"
        if self.line:
            place += f":{self.line}:{self.column}"
        headline = f"{place}: {self.code} {self.message}"
        if self.severity == "warning":
            headline = f"{place}: {self.code} warning: {self.message}"
        if self.path:
            headline += f" at {self.path}"
        lines = [headline, *(f"  {note}" for note in self.notes)]
        if self.fix:
            lines.append(f"  fix: {self.fix}            (more: switchyard rule {self.code})")
        return "\n".join(lines)


class SwitchyardError(Exception):
    """Base of all errors that switchyard raises on purpose."""

    #: Whether the same request again would do nothing, or harm: clients are told not to retry.
    final: bool = False


class PolicyError(SwitchyardError):
    """A policy has errors and cannot be used.

    Args:
        findings: Every finding of the policy, sorted by position; at least one.
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = tuple(findings)
        super().__init__("\n".join(finding.render() for finding in self.findings))


class PluginError(SwitchyardError):
    """A plugin is broken, claims a name that is taken, or broke its contract.

    ``plugin`` is the name of its entry point; ``distribution`` and ``version`` are empty if
    unknown.
    """

    def __init__(
        self, message: str, *, plugin: str = "", distribution: str = "", version: str = ""
    ) -> None:
        self.plugin = plugin
        self.distribution = distribution
        self.version = version
        super().__init__(message)


@dataclass(eq=False)
class RequestError(SwitchyardError):
    """A request is refused before anything was sent to a provider.

    Args:
        message: For the person who reads the client's screen.
        code: Machine-readable word, such as ``latch_capacity``.
        status: HTTP status for the caller.
        param: Wire path into the request, such as ``messages[3].role``.
        headers: Extra response headers.
        details: Further members of the error object, plain data.
    """

    message: str
    code: str = "invalid_request"
    status: int = 400
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(self.message)


class BodyError(RequestError):
    """The body is not JSON, or not what its wire format says."""


class BodyTooLargeError(RequestError):
    """The body is larger than the server accepts (413)."""


class UnknownModelError(RequestError):
    """No route of the policy has the model id that was asked for (404)."""


class LatchCapacityError(RequestError):
    """A new identity wants to latch and the store is full (400, not retryable)."""


class PlanCapacityError(RequestError):
    """A plan is to be kept and the store is full (400, not retryable)."""


class RefusedError(RequestError):
    """The policy refuses the request, for example for a missing history."""


class UpstreamError(SwitchyardError):
    """The provider could not be reached, timed out, or broke off before any byte.

    Args:
        message: What happened; never holds a credential.
        kind: ``connect``, ``timeout``, ``protocol``, ``closed``, ``redirect``, ``cut`` after a
            first byte, or ``failed`` where an answer that is translated reports an error.
        status: HTTP status for the caller: 502, or 504 for a timeout.
        final: Whether the same request again would fail, too.
    """

    def __init__(
        self, message: str, *, kind: str = "connect", status: int = 502, final: bool = False
    ) -> None:
        self.message = message
        self.kind = kind
        self.status = status
        self.final = final or self.final
        super().__init__(message)


class ReplayError(UpstreamError):
    """Recorded model calls cannot be used; the message names the path.

    It reaches the caller whatever a router does with it, and nobody tries again.

    Args:
        message: What is wrong, and where.
        path: The file or folder, ``""`` without one.
        kind: ``replay``, or the word of a subclass.
        findings: All problems of the files of a folder; the message has them too.
    """

    # Recordings do not come about by themselves, however often a client asks.
    final = True

    def __init__(
        self,
        message: str,
        *,
        path: str = "",
        kind: str = "replay",
        findings: Iterable[Finding] = (),
    ) -> None:
        self.path = path
        self.findings: tuple[Finding, ...] = tuple(findings)
        super().__init__(message, kind=kind)


class ReplayMiss(ReplayError):  # noqa: N818  # the field's own word
    """Nothing is recorded for a call, and nothing may be sent.

    Args:
        message: Key, wanted file, difference to the nearest recording, how to record it.
        key: Key of the call, 16 hexadecimal digits.
        path: The file that would hold it.
    """

    def __init__(self, message: str, *, key: str = "", path: str = "") -> None:
        self.key = key
        super().__init__(message, path=path, kind="replay_miss")


class RecordingError(ReplayError):
    """A call cannot be recorded, or must not, since it holds a credential; nothing was written.

    Args:
        message: Which field is in the way, without its value; or why writing failed.
        path: The file that would hold it, ``""`` when it is not settled yet.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message, path=path, kind="recording")


def in_one_line(error: BaseException) -> str:
    """Return the type of an exception and what it says, its lines folded into one."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def with_place(error: BaseException) -> str:
    """Return what a plugin raised, with file and line of the plugin's own innermost frame.

    What the plugin called, ours or a library's, is not where its author looks.
    """
    text = in_one_line(error)
    own: TracebackType | None = None
    step = error.__traceback__
    while step is not None:
        called = _package(step)
        if called == _package(own) if own is not None else called != __name__.partition(".")[0]:
            own = step
        step = step.tb_next
    return text if own is None else f"{text} at {own.tb_frame.f_code.co_filename}:{own.tb_lineno}"


def _package(step: TracebackType) -> str:
    return str(step.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
