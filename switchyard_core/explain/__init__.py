"""Explains decisions: for one request, a file of requests, or a conversation."""

from switchyard_core.explain.explanation import Explanation, explain
from switchyard_core.explain.requests import guess_format, read_requests, turns_of
from switchyard_core.explain.timeline import Rehearsal, Rehearsed, Timeline, entry_of

__all__ = [
    "Explanation",
    "Rehearsal",
    "Rehearsed",
    "Timeline",
    "entry_of",
    "explain",
    "guess_format",
    "read_requests",
    "turns_of",
]
