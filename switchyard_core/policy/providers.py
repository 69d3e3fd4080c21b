"""Resolves ``[llm_clients]`` and ``[targets]``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.policy.draft import Draft, Space
from switchyard_core.policy.headers import HEADER_VALUE, check_headers
from switchyard_core.policy.model import Client, Origin, Target
from switchyard_core.policy.positions import Location
from switchyard_core.policy.schema import RESERVED_REWRITES, ClientModel, TargetModel
from switchyard_core.policy.secrets import shown

__all__ = ["resolve_clients", "resolve_targets", "wire_formats"]


def resolve_clients(draft: Draft) -> dict[str, Client]:
    """Return the clients that are in order; everything else is reported."""
    clients: dict[str, Client] = {}
    for name, raw in draft.tables("llm_clients").items():
        location: Location = ("llm_clients", name)
        before = len(draft.findings)
        model = draft.validated(location, ClientModel, raw, table="llm_clients")
        if isinstance(raw, dict):
            _check_client(draft, location, raw)
        spoken = _spoken(model)
        if model is not None and spoken is not None and len(draft.findings) == before:
            clients[name] = _client(draft, name, model, spoken)
    return clients


def wire_formats(draft: Draft) -> dict[str, WireFormat]:
    """Return the wire format of every target for which it can be told, by target name.

    Reads the raw tables, so that one wrong key does not hide a clash of formats.
    """
    clients = draft.tables("llm_clients")
    formats: dict[str, WireFormat] = {}
    for name, raw in draft.tables("targets").items():
        client = clients.get(_text(raw, "llm_client") or "")
        spoken = _text(client, "format")
        if spoken == "scripted":
            spoken = _text(client, "speaks")
        for wire_format in WIRE_FORMATS:
            if spoken == wire_format:
                formats[name] = wire_format
    return formats


def resolve_targets(draft: Draft, clients: Mapping[str, Client]) -> dict[str, Target]:
    """Return the targets that are in order; everything else is reported."""
    targets: dict[str, Target] = {}
    for name, raw in draft.tables("targets").items():
        location: Location = ("targets", name)
        before = len(draft.findings)
        shape = raw
        if isinstance(raw, dict) and isinstance(raw.get("extra_body"), dict):
            # Its content has a check of its own, SY211.
            shape = {**raw, "extra_body": {}}
        model = draft.validated(location, TargetModel, shape, table="targets")
        if isinstance(raw, dict):
            _check_target(draft, location, raw)
        client = clients.get(model.llm_client) if model is not None else None
        if model is not None and client is not None and len(draft.findings) == before:
            targets[name] = Target(
                name=name,
                id=model.id,
                client=client,
                extra_body=raw.get("extra_body", {}),
                system_prompt=model.system_prompt,
                reasoning_effort=model.reasoning_effort,
                context_window=model.context_window,
                on_overflow=model.on_overflow,
                accepts_prefill=model.accepts_prefill,
                tool_id_style=model.tool_id_style,
                structured_output=model.structured_output,
                rewrites=model.rewrites,
            )
    return targets


def _spoken(model: ClientModel | None) -> WireFormat | None:
    if model is None:
        return None
    return model.speaks if model.format == "scripted" else model.format


def _client(draft: Draft, name: str, model: ClientModel, spoken: WireFormat) -> Client:
    script = draft.base / model.script if model.script is not None else None
    base_url = (model.base_url or "").rstrip("/")
    return Client(
        name=name,
        format=spoken,
        scripted=model.format == "scripted",
        base_url=base_url,
        api_key_env=model.api_key_env,
        forward_auth=model.forward_auth,
        extra_headers=tuple(model.extra_headers.items()),
        forward_headers=tuple(header.lower() for header in model.forward_headers),
        max_retries=model.max_retries,
        timeout_s=model.timeout_ms / 1000,
        script=script,
        origin=_origin(base_url, model, str(script)),
    )


def _origin(base_url: str, model: ClientModel, script: str) -> Origin:
    if model.format == "scripted":
        return ("scripted", script)
    parts = urlsplit(base_url)
    place = f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.removesuffix('/v1')}"
    key = f"env:{model.api_key_env}" if model.api_key_env else ""
    return (place, "caller" if model.forward_auth else key)


def _check_client(draft: Draft, location: Location, raw: Mapping[str, Any]) -> None:
    scripted = raw.get("format") == "scripted"
    for key in ("script", "speaks") if scripted else ("base_url",):
        if key not in raw and "format" in raw:
            draft.report(
                "SY206",
                f"missing key `{key}` of a client with this `format`",
                location,
                at_key=True,
                fix=f"add `{key} = ...` to this table",
            )
    refused = ("base_url", "api_key_env", "forward_auth") if scripted else ("script", "speaks")
    for key in refused:
        if key in raw and isinstance(raw.get("format"), str):
            draft.report(
                "SY206",
                f"`{key}` has no meaning for a client with this `format`",
                (*location, key),
                at_key=True,
                fix="remove the key",
            )
    url = _text(raw, "base_url")
    if url is not None and not scripted:
        _check_url(draft, (*location, "base_url"), url)
    if raw.get("forward_auth") is True and "api_key_env" in raw:
        draft.report(
            "SY205",
            "`forward_auth` and `api_key_env` exclude each other",
            (*location, "forward_auth"),
            at_key=True,
            notes=(
                "either the caller's credential goes to the provider, or the key of the server",
            ),
            fix="remove one of them",
        )
    _check_key(draft, (*location, "api_key_env"), _text(raw, "api_key_env"))
    check_headers(draft, location, raw)
    script = _text(raw, "script")
    if scripted and script and script.strip() and not _is_file(draft, script):
        draft.report(
            "SY209",
            f"there is no script `{shown(script)}`",
            (*location, "script"),
            fix="give the path relative to the policy's folder",
        )


def _is_file(draft: Draft, path: str) -> bool:
    try:
        return (draft.base / path).is_file()
    except (OSError, ValueError):
        return False


def _check_url(draft: Draft, location: Location, url: str) -> None:
    problem = _url_problem(url)
    if problem:
        draft.report(
            "SY203",
            f"the URL {problem}",
            location,
            fix='write an absolute URL such as "https://api.example.com/v1"',
        )


def _url_problem(url: str) -> str:
    """Say what is wrong with a base URL without repeating it: it may hold a password."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "cannot be read"
    if parts.scheme.lower() not in {"http", "https"} or not host:
        return "must be absolute and begin with http:// or https://"
    if parts.username is not None or parts.password is not None:
        return "must not hold a user or password"
    if "?" in url or "#" in url:
        return "must have no query and no fragment"
    if not url.isascii() or not url.isprintable() or " " in url:
        return "must be printable ASCII without spaces"
    return ""


def _check_key(draft: Draft, location: Location, variable: str | None) -> None:
    if draft.environ is None or variable is None or not variable.isidentifier():
        return
    value = draft.environ.get(variable)
    problem = ""
    if value is None:
        problem = "is not set"
    elif not value.strip():
        problem = "is empty"
    elif not HEADER_VALUE.fullmatch(value):
        problem = "holds characters that a header cannot carry"
    if problem:
        draft.report(
            "SY204",
            f"environment variable `{shown(variable)}` {problem}",
            location,
            fix=f"export {shown(variable)}=..., or check with `--offline`",
        )


def _check_target(draft: Draft, location: Location, raw: Mapping[str, Any]) -> None:
    client = _text(raw, "llm_client")
    if client is not None and client not in draft.tables("llm_clients"):
        space = Space(
            code="SY202",
            word="client",
            names=draft.tables("llm_clients"),
            listed_as="declared clients",
            otherwise="declare it under `[llm_clients]`",
        )
        draft.unknown(space, client, (*location, "llm_client"))
    rewrites = raw.get("rewrites")
    for name in rewrites if isinstance(rewrites, dict) else ():
        _check_rewrite(draft, (*location, "rewrites", name), name)
    extra = raw.get("extra_body")
    for inner, problem in _not_json(extra if isinstance(extra, dict) else {}, ()):
        draft.report(
            "SY211",
            problem,
            (*location, "extra_body", *inner),
            fix="use strings, finite numbers, booleans, arrays and tables",
        )


def _check_rewrite(draft: Draft, location: Location, name: str) -> None:
    declared = draft.registry.rewrites.get(name)
    if declared is None and name not in RESERVED_REWRITES:
        space = Space(
            code="SY207",
            word="rewrite",
            names=[n for n, rewrite in draft.registry.rewrites.items() if rewrite.switchable],
            listed_as="rewrites that can be switched off",
            otherwise="use one of these",
            kind="rewrite",
        )
        draft.unknown(space, name, location, at_key=True)
    elif declared is None or not declared.switchable:
        draft.report(
            "SY208",
            f"rewrite `{name}` cannot be switched off",
            location,
            at_key=True,
            fix="remove the key",
        )


def _not_json(value: Any, location: Location) -> Iterator[tuple[Location, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _not_json(item, (*location, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _not_json(item, (*location, index))
    elif isinstance(value, float) and not math.isfinite(value):
        yield location, "JSON has no such number"
    elif not isinstance(value, str | int | float):
        yield location, "JSON has no dates; write a string"


def _text(raw: object, key: str) -> str | None:
    value = raw.get(key) if isinstance(raw, dict) else None
    return value if isinstance(value, str) else None
