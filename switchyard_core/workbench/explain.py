"""The explanation of a request; the server gives the same one under ``/v1/decision``."""

from switchyard_core.engine.explanation import Explanation, explain, explanation
from switchyard_core.engine.questions import Question, explain_or_ask

__all__ = ["Explanation", "Question", "explain", "explain_or_ask", "explanation"]
