"""The route type ``rules``: an ordered list of conditions on the request."""

from __future__ import annotations

from pydantic import Field

from switchyard_core import Decision, Options, Reason, Request, RouteContext, TargetName
from switchyard_demo_routers.conditions import Condition, compile_condition

__all__ = ["Rule", "RulesOptions", "RulesRouter"]


class Rule(Options):
    """One rule.

    Args:
        target: Serves the requests for which every condition holds.
        where: Conditions, one or more.
        name: For reasons and logs; the number of the rule when absent.
    """

    target: TargetName
    where: list[Condition] = Field(min_length=1)
    name: str | None = None


class RulesOptions(Options):
    """Options of ``type = "rules"``.

    Args:
        rules: Tried in order; the first that holds decides.
        default_target: Serves the requests for which none holds.
    """

    rules: list[Rule] = Field(default_factory=list)
    default_target: TargetName


class RulesRouter:
    """Sends a request to the target of the first rule whose conditions all hold.

    Args:
        options: The route's options.
    """

    def __init__(self, options: RulesOptions) -> None:
        self._default = options.default_target
        self._rules = tuple(
            (
                rule.name or f"rules[{number}]",
                rule.target,
                tuple(compile_condition(condition) for condition in rule.where),
            )
            for number, rule in enumerate(options.rules)
        )

    async def route(self, request: Request, context: RouteContext) -> Decision:  # noqa: ARG002  # protocol
        """Return the target of the first rule that holds, or the default."""
        for name, target, tests in self._rules:
            if all(test(request) for test in tests):
                reason = Reason(
                    code="rule", detail=f"the rule `{name}` holds", facts={"rule": name}
                )
                return Decision(target=target, reason=reason)
        reason = Reason(code="no_rule", detail="no rule holds for this request")
        return Decision(target=self._default, reason=reason)
