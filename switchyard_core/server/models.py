"""The list of models: one body that OpenAI's and Anthropic's clients both understand."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from switchyard_core.policy.models import Policy, Route

__all__ = ["model_list", "models_of"]

# A route has no day of birth; a fixed one keeps the list equal between starts.
_CREATED = 1_735_689_600
_CREATED_AT = "2025-01-01T00:00:00Z"


def models_of(policy: Policy) -> dict[str, dict[str, Any]]:
    """Return the wire object of each model id that callers may use, in the policy's order."""
    return {
        model: _model(model, route)
        for route in policy.routes.values()
        for model in (route.id, *route.aliases)
    }


def _model(model: str, route: Route) -> dict[str, Any]:
    about = {
        "id": model,
        "object": "model",
        "created": _CREATED,
        "owned_by": "switchyard",
        "type": "model",
        "display_name": model,
        "created_at": _CREATED_AT,
        "lifecycle": "active",
    }
    declared = {
        "context_window": route.context_window,
        "tool_calling": route.tool_calling,
        "reasoning": route.reasoning,
    }
    return about | {name: value for name, value in declared.items() if value is not None}


def model_list(models: dict[str, dict[str, Any]], query: str) -> dict[str, Any]:
    """Return a page of the list.

    Args:
        models: From :func:`models_of`.
        query: ``limit``, ``after_id`` and ``before_id`` as Anthropic's clients send them; without
            a usable ``limit`` the page holds all.
    """
    options = {name: values[-1] for name, values in parse_qs(query).items()}
    page = list(models)
    if options.get("after_id") in models:
        page = page[page.index(options["after_id"]) + 1 :]
    if options.get("before_id") in page:
        page = page[: page.index(options["before_id"])]
    limit = options.get("limit", "")
    size = int(limit) if limit.isdecimal() and len(limit) < 10 and int(limit) > 0 else len(page)
    more = len(page) > size
    backwards = "before_id" in options and "after_id" not in options
    page = page[-size:] if backwards and size else page[:size]
    return {
        "object": "list",
        "data": [models[name] for name in page],
        "has_more": more,
        "first_id": page[0] if page else None,
        "last_id": page[-1] if page else None,
    }
