"""Tools for people who write policies: why a request goes where it goes."""

from switchyard_core.workbench.explain import (
    Explanation,
    Question,
    explain,
    explain_or_ask,
    explanation,
)
from switchyard_core.workbench.inputs import read_requests

__all__ = [
    "Explanation",
    "Question",
    "explain",
    "explain_or_ask",
    "explanation",
    "read_requests",
]
