"""The explanation of a request; the server gives the same one under ``/v1/decision``."""

from switchyard_core.engine.explanation import Explanation, explain, explanation

__all__ = ["Explanation", "explain", "explanation"]
