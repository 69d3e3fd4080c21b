"""Checks the headers that a client adds or sends on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from switchyard_core.identity import HEADER_NAME
from switchyard_core.policy.draft import Draft
from switchyard_core.policy.positions import Location
from switchyard_core.policy.secrets import shown

__all__ = ["HEADER_VALUE", "check_headers"]

#: What the value of a header may hold.
HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
#: Headers that carry credentials or belong to the connection.
_OWN_HEADERS = frozenset(
    {
        "api-key",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "proxy-authorization",
        "transfer-encoding",
        "x-api-key",
        "x-goog-api-key",
    }
)
#: Headers that say whose request it is; they are read from the caller and end here.
_SESSION_HEADERS = frozenset(
    {
        "session-id",
        "session_id",
        "thread-id",
        "x-claude-code-agent-id",
        "x-claude-code-session-id",
        "x-codex-turn-metadata",
        "x-nemo-relay-session-id",
        "x-nemo-relay-subagent-id",
        "x-parent-session-id",
        "x-session-id",
    }
)
_SESSION_PREFIX = "x-switchyard-"


def check_headers(draft: Draft, location: Location, raw: Mapping[str, Any]) -> None:
    """Report every header of a client that a policy cannot set or send on.

    Args:
        draft: The policy.
        location: Where the client stands.
        raw: Its table.
    """
    extra = raw.get("extra_headers")
    given: dict[str, Location] = {}
    for name, value in extra.items() if isinstance(extra, dict) else ():
        where = (*location, "extra_headers", name)
        first = given.setdefault(name.lower(), where)
        if first != where:
            draft.report(
                "SY210",
                f"header `{shown(name)}` is given twice; names of headers have no case",
                where,
                at_key=True,
                notes=(f"first given at {draft.document.where(first, at_key=True)}",),
                fix="remove one of them",
            )
        _check_header_name(draft, where, name, at_key=True)
        if isinstance(value, str) and not HEADER_VALUE.fullmatch(value):
            draft.report(
                "SY210", "a header value must be printable ASCII", where, fix="change the value"
            )
    forwarded = raw.get("forward_headers")
    for index, name in enumerate(forwarded if isinstance(forwarded, list) else ()):
        if isinstance(name, str):
            _check_header_name(draft, (*location, "forward_headers", index), name, at_key=False)


def _check_header_name(draft: Draft, location: Location, name: str, *, at_key: bool) -> None:
    if not name.strip():
        message, fix = "the name of a header is blank", "write the name, or remove it"
    elif not HEADER_NAME.fullmatch(name):
        message, fix = f"`{shown(name)}` is not a header name", "use letters, digits and hyphens"
    elif name.lower() in _OWN_HEADERS:
        message = f"header `{name}` cannot be set by a policy"
        fix = "remove it; credentials come from `api_key_env` or `forward_auth`"
    elif name.lower() in _SESSION_HEADERS or name.lower().startswith(_SESSION_PREFIX):
        message = f"header `{name}` says whose request it is and is not sent to a provider"
        fix = "remove it; `[identity]` names further sources of session ids"
    else:
        return
    draft.report("SY210", message, location, at_key=at_key, fix=fix)
