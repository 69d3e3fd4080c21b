"""The keys of a policy's test file, ``<name>.test.toml``: one strict model per table."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from switchyard_core.declarations import JSONPathText, OptionError, Options, Prompt, WireFormat

__all__ = ["CaseFileModel", "CaseModel", "ExpectModel", "RequestModel"]


def _is_request(value: Any) -> Any:
    # A union would be reported once per member.
    if value is not None and not isinstance(value, str | dict):
        msg = "must be a table, or a string that holds JSON"
        raise OptionError(msg, fix="write the body of the request", code="SY106")
    return value


class RequestModel(Options):
    """A request and how it comes.

    Args:
        request: The body, as a table or as text; or a recorded request, whose ``request.body``
            it is.
        request_file: File that holds it, relative to the test file's folder.
        format: Wire format; ``None`` takes it from a recorded path, else from the body.
        headers: Request headers.
        replies: Texts that targets reply to a router that asks a model, by target: played in
            order, the last one again and again.
    """

    request: Annotated[Any, AfterValidator(_is_request)] = None
    request_file: str | None = None
    format: WireFormat | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    replies: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)


class ExpectModel(Options):
    """What must come of a case's request; a key that is absent is not looked at.

    Args:
        route: Name of the route.
        target: Name of the target.
        phase: The router's word for the phase; ``""`` for none.
        reason: Code of the reason.
        facts: What decided, such as ``rule`` and ``tool``; other facts are not looked at.
        latched: Whether the session is latched afterwards.
        warnings: Codes of the warnings, in any order.
        rewrites: Names of the rewrites that changed the body, in their order.
        body: Values in the outgoing body by JSONPath; several values of a path are an array.
        absent: JSONPaths that find nothing in the outgoing body.
        error: Code with which the request is refused.
        status: HTTP status of the refusal.
    """

    route: str | None = None
    target: str | None = None
    phase: str | None = None
    reason: str | None = None
    facts: dict[str, str] = Field(default_factory=dict)
    latched: bool | None = None
    warnings: list[str] | None = None
    rewrites: list[str] | None = None
    body: dict[str, Any] = Field(default_factory=dict)
    absent: list[JSONPathText] = Field(default_factory=list)
    error: str | None = None
    status: int | None = None


class CaseModel(RequestModel):
    """One case.

    Args:
        name: Says what it shows; no two cases of a file have the same.
        before: Earlier requests, in their order: they are decided first, and what they latch
            stays latched. Headers and format of the case are theirs too, unless they say
            otherwise.
        expect: What must come of the request.
    """

    name: Prompt
    before: list[RequestModel] = Field(default_factory=list)
    expect: ExpectModel


class CaseFileModel(Options):
    """A test file.

    Args:
        schema_version: Version of the format.
        cases: One or more.
    """

    schema_version: Literal[1] = 1
    cases: list[CaseModel] = Field(min_length=1)
