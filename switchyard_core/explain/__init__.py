"""Explains decisions: for one request, a file of requests, or a conversation."""

from switchyard_core.explain.explanation import (
    AnswerExplanation,
    Explanation,
    Question,
    explain,
    explain_or_ask,
    explanation,
)
from switchyard_core.explain.requests import guess_format, read_requests, turns_of
from switchyard_core.explain.timeline import Entry, Rehearsal, Rehearsed, Timeline, entry_of

__all__ = [
    "AnswerExplanation",
    "Entry",
    "Explanation",
    "Question",
    "Rehearsal",
    "Rehearsed",
    "Timeline",
    "entry_of",
    "explain",
    "explain_or_ask",
    "explanation",
    "guess_format",
    "read_requests",
    "turns_of",
]
