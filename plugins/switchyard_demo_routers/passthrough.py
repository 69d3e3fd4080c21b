"""The route type ``passthrough``: the client's model id chooses."""

from __future__ import annotations

from pydantic import Field

from switchyard_core import Decision, Options, Reason, Request, RouteContext, TargetName

__all__ = ["PassthroughOptions", "PassthroughRouter"]


class PassthroughOptions(Options):
    """Options of ``type = "passthrough"``.

    A request reaches the route by the route's ``id``, one of its ``aliases``, or any id at all
    when the policy names the route in ``default_route``.

    Args:
        targets: Targets to choose from, one or more.
        default: Serves model ids that name none of them; the first one when absent.
    """

    targets: list[TargetName] = Field(min_length=1)
    default: TargetName | None = None


class PassthroughRouter:
    """Sends a request to the target that its model id names; a target's name wins over an id."""

    def __init__(self, options: PassthroughOptions) -> None:
        self._names = tuple(dict.fromkeys(options.targets))
        self._default = options.default or options.targets[0]

    async def route(self, request: Request, context: RouteContext) -> Decision:
        """Return the target that the request names, or the default."""
        model = request.model
        if model in self._names:
            return _decision(model, "target_name", f"the request asks for the target `{model}`")
        for name in self._names:
            if context.targets[name].id == model:
                detail = f"the request asks for the model of the target `{name}`"
                return _decision(name, "target_id", detail)
        detail = "the model id names no target of the route"
        return _decision(self._default, "default", detail)


def _decision(target: str, code: str, detail: str) -> Decision:
    return Decision(target=target, reason=Reason(code=code, detail=detail))
