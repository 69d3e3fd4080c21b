"""Asking a target's model, by cheap requests, what it refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import tomli

from switchyard_core.decision import Outgoing
from switchyard_core.declarations import RewriteType
from switchyard_core.engine.calling import Upstreams, forwarded_headers, model_fit
from switchyard_core.engine.response import succeeded
from switchyard_core.errors import RefusedError, UpstreamError
from switchyard_core.identity import Headers
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.models import suggest_rule
from switchyard_core.policy.models import Target
from switchyard_core.wire import FORMATS
from switchyard_core.wire.rewrites import apply_rewrites

__all__ = ["Found", "Probe", "probe_target", "probes_for"]

#: Statuses by which a provider says that it does not take a request.
_REFUSALS = frozenset({400, 404, 422})
#: Most bytes of an answer that are read.
_ANSWER_BYTES = 64 * 1024
_NO_HEADERS = Headers({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One request to a model, and what to write where it is refused."""

    name: str
    body: bytes
    rule: str = ""  # for `fit`
    key: str = ""  # for the target's table


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a model did with a probe."""

    probe: Probe
    state: Literal["accepted", "refused", "unknown"]
    detail: str = ""  # what the provider said
    rule: str = ""  # for `fit`, "" where the profile avoids the refusal or there is none
    known: bool = False  # whether the profile changes such a request


def probes_for(target: Target) -> list[Probe]:
    """Return the requests for a target; the first one is plain, and the others differ in one."""
    table = _table()
    form = target.wire_format
    plain = {"model": target.id, **table["plain"][form]}
    asked = [probe for probe in table["probe"] if probe["format"] == form]
    return [
        Probe(name="plain request", body=encode(plain)),
        *(
            Probe(
                name=one["name"],
                body=encode({**plain, **one["body"]}),
                rule=one.get("rule", ""),
                key=one.get("key", ""),
            )
            for one in asked
        ),
    ]


@cache
def _table() -> dict[str, Any]:
    return tomli.loads((files("switchyard_core.models") / "probes.toml").read_text("utf-8"))


async def probe_target(
    target: Target, upstreams: Upstreams, rewrites: Mapping[str, RewriteType]
) -> AsyncIterator[Found]:
    """Send the requests one by one, as they are; yield what came of each.

    Nothing follows a plain request that is not accepted: then no refusal would tell anything.
    """
    for number, probe in enumerate(probes_for(target)):
        found = await _ask(target, probe, upstreams, known=_is_fitted(target, probe, rewrites))
        yield found
        if number == 0 and found.state != "accepted":
            return


async def _ask(target: Target, probe: Probe, upstreams: Upstreams, *, known: bool) -> Found:
    wire_format = FORMATS[target.wire_format]
    outgoing = Outgoing(
        wire_format=target.wire_format,
        path="/v1" + wire_format.paths["create"],
        headers=forwarded_headers(_NO_HEADERS, target.client),
        body=probe.body,
        stream=False,
        target=target.name,
        model=target.id,
        role="probe",
    )
    try:
        async with await upstreams.call(target.client, outgoing, _NO_HEADERS) as answer:
            body = await answer.peek(_ANSWER_BYTES)
            status = answer.status
    except UpstreamError as error:
        return Found(probe=probe, state="unknown", detail=error.message, known=known)
    if succeeded(status):
        return Found(probe=probe, state="accepted", known=known)
    said = f"{status} {body[:200].decode('utf-8', 'replace')}"
    if status not in _REFUSALS:
        return Found(probe=probe, state="unknown", detail=said, known=known)
    # The probe knows what it changed; the provider's words count where it does not.
    rule = "" if known or probe.key else probe.rule or suggest_rule(body, target.wire_format) or ""
    return Found(probe=probe, state="refused", detail=said, rule=rule, known=known)


def _is_fitted(target: Target, probe: Probe, rewrites: Mapping[str, RewriteType]) -> bool:
    """Return whether the target's profile, or its keys, change such a request already."""
    if probe.key.startswith("accepts_prefill") and not target.accepts_prefill:
        return True
    try:
        body, _ = apply_rewrites(
            ObjectText(probe.body), model_fit(target), rewrites, target.wire_format
        )
    except RefusedError:
        return True
    return body != probe.body
