"""The server: a policy behind the three wire formats, as an ASGI application."""

from switchyard_core.server.app import SwitchyardApp
from switchyard_core.server.limits import Limits

__all__ = ["Limits", "SwitchyardApp"]
