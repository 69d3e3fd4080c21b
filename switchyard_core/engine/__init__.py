"""The engine: a policy and its plugins, applied to requests."""

from switchyard_core.engine.clients import Upstreams, connect, script_findings
from switchyard_core.engine.core import Engine, Rewritten
from switchyard_core.engine.response import Outcome, Response

__all__ = ["Engine", "Outcome", "Response", "Rewritten", "Upstreams", "connect", "script_findings"]
