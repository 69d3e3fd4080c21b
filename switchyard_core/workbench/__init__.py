"""Tools for people who write policies: why a request goes where it goes."""

from switchyard_core.workbench.explain import Explanation, explain, explanation
from switchyard_core.workbench.inputs import read_requests

__all__ = ["Explanation", "explain", "explanation", "read_requests"]
