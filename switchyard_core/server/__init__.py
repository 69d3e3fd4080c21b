"""The server: a policy behind the three wire formats, as an ASGI application."""

from switchyard_core.server.access import Limits
from switchyard_core.server.app import SwitchyardApp

__all__ = ["Limits", "SwitchyardApp"]
