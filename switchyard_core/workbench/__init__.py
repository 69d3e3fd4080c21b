"""Tools for people who write policies: why a request goes where it goes."""

from switchyard_core.explain.explanation import (
    Explanation,
    Question,
    explain,
    explain_or_ask,
    explanation,
)
from switchyard_core.workbench.cases import CaseResult, FileResult, Mismatch, run_file
from switchyard_core.workbench.coverage import Coverage, Uncovered
from switchyard_core.workbench.inputs import read_requests
from switchyard_core.workbench.rehearsal import Rehearsal, Rehearsed
from switchyard_core.workbench.timeline import Timeline, entry_of
from switchyard_core.workbench.turns import turns_of

__all__ = [
    "CaseResult",
    "Coverage",
    "Explanation",
    "FileResult",
    "Mismatch",
    "Question",
    "Rehearsal",
    "Rehearsed",
    "Timeline",
    "Uncovered",
    "entry_of",
    "explain",
    "explain_or_ask",
    "explanation",
    "read_requests",
    "run_file",
    "turns_of",
]
