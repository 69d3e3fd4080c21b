"""Why a request goes where it goes."""

from switchyard_core.explain.explanation import (
    AnswerExplanation,
    Explanation,
    Question,
    explain,
    explain_or_ask,
    explanation,
)

__all__ = [
    "AnswerExplanation",
    "Explanation",
    "Question",
    "explain",
    "explain_or_ask",
    "explanation",
]
