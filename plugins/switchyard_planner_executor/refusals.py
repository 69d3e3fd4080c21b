"""Why a plan does not run: errors of the request, before any step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from switchyard_core import PlanRecord, RequestError
from switchyard_planner_executor.approval import Approve
from switchyard_planner_executor.budget import over_limit
from switchyard_planner_executor.options import PlannerExecutorOptions
from switchyard_planner_executor.pending import Pending, changed
from switchyard_planner_executor.reading import PlanError
from switchyard_planner_executor.run import PlanRun
from switchyard_planner_executor.saved import is_for

__all__ = [
    "RAW_TEXT_CHARS",
    "check_cost",
    "check_digest",
    "check_version",
    "plan_refusal",
    "unusable",
]

#: How much of a planner's unusable reply a caller is shown, in characters.
RAW_TEXT_CHARS = 4000
_BAD_GATEWAY = 502


def check_version(intent: Approve, run: PlanRun, pending: Pending) -> None:
    """Refuse an approval in words, which names no digest, of a plan that was made again.

    Its id is the same, so a client that repeats a request would approve what nobody has seen.
    """
    if intent.digest is None and (run.records or pending.revisions):
        raise changed(
            f"the plan `{run.plan_id}` was made again since it was first shown: approve it by its "
            "digest, in the header or in the body"
        )


def check_digest(intent: Approve, record: PlanRecord, run: PlanRun, pending: Pending) -> None:
    """Refuse an approval of another plan, or of one that would run otherwise now."""
    if intent.digest is not None and intent.digest != record.digest:
        raise changed(
            f"the plan `{record.plan_id}` is not the one that was approved: its digest is "
            "another one; look at it again"
        )
    searches = any(step.query is not None for step in run.plan.steps) if run.plan else False
    as_shown = run.digest == record.digest and is_for(pending.state, run.executor.target)
    if not as_shown or (searches and run.options.hinted_tool is None):
        raise changed(
            f"what the plan `{record.plan_id}` would be run with has changed since it was shown "
            "(mode, tools or executor of the policy): ask for a new one"
        )


def check_cost(run: PlanRun, options: PlannerExecutorOptions) -> None:
    """Refuse a plan that may cost more than the policy allows."""
    high = over_limit(run.estimate, options)
    if high is None:
        return
    raise RequestError(
        message=f"the plan may cost up to ${high:.4f}, over the ${options.max_cost_usd:g} of "
        "`max_cost_usd`; no step ran",
        code="plan_too_costly",
        headers={"x-should-retry": "false"},
        details={"estimate": run.estimate.as_json(), "plan_digest": run.digest},
    )


@contextlib.contextmanager
def unusable() -> Iterator[None]:
    """Turn a reply that is no plan into what the caller is told."""
    try:
        yield
    except PlanError as error:
        raise plan_refusal(error, status=_BAD_GATEWAY, code="plan_unusable") from error


def plan_refusal(error: PlanError, *, status: int, code: str) -> RequestError:
    """Return the error for what is no plan, with the reason and the text."""
    return RequestError(
        message=f"{error}; no step ran",
        code=code,
        status=status,
        headers={"x-should-retry": "false"},
        details={"reason": error.reason, "raw_text": error.raw_text[:RAW_TEXT_CHARS]},
    )
