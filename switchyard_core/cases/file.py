"""Reads a policy's test file, ``<name>.test.toml``, and reports its mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

from pydantic import AfterValidator, Field

from switchyard_core.answering import ModelUsage
from switchyard_core.conversation import ToolCall
from switchyard_core.declarations import JSONPathText, OptionError, Options, Prompt, WireFormat
from switchyard_core.errors import BodyError, Finding, PolicyError, nearest
from switchyard_core.explain import read_requests
from switchyard_core.jsonio.path import PathError, compile_path
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import Policy, check_policy
from switchyard_core.policy.document import Document, Parts, read_document
from switchyard_core.policy.places import Location
from switchyard_core.policy.secrets import shown
from switchyard_core.policy.validation import Salvaged, salvage, validate
from switchyard_core.policy.wording import suggestion
from switchyard_core.request import Request

__all__ = [
    "SUFFIX",
    "Case",
    "CaseFile",
    "CaseFileModel",
    "CaseModel",
    "EarlierModel",
    "ExpectModel",
    "RequestModel",
    "Step",
    "case_file_of",
    "check_cases",
    "lost",
    "policy_of",
    "read_cases",
]

#: End of the name of a test file, in place of the policy's ``.toml``.
SUFFIX = ".test.toml"

#: A step of a wire path such as `$.input[6]`.
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")

#: Keys about a decision, which a refused request does not have.
_OF_A_DECISION = (
    *("target", "phase", "reason", "facts", "latched", "warnings", "rewrites", "body", "absent"),
)


def _is_request(value: Any) -> Any:
    # A union would be reported once per member.
    if value is not None and not isinstance(value, str | dict):
        msg = "must be a table, or a string that holds JSON"
        raise OptionError(msg, fix="write the body of the request", code="SY106")
    return value


class RequestModel(Options):
    """A request and how it comes."""

    #: The body, as a table or as text; or a recorded request, whose ``request.body`` it is.
    request: Annotated[Any, AfterValidator(_is_request)] = None
    request_file: str | None = None  # file that holds it, relative to the test file's folder
    #: Wire format; ``None`` takes it from a recorded path, else from the body.
    format: WireFormat | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    #: Canned replies of targets to a router, played in order; the last one repeats.
    replies: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)


class UsageModel(Options):
    """Tokens that the answer to an earlier request took; they count as in :class:`ModelUsage`."""

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0)
    cache_write_tokens: int = Field(default=0, ge=0)
    reasoning_tokens: int = Field(default=0, ge=0)


class EarlierModel(RequestModel):
    """An earlier request."""

    usage: UsageModel | None = None  # what its answer took, for plugins that count it


class ExpectModel(Options):
    """The expected result of a case's request; an absent key is not checked."""

    route: str | None = None
    target: str | None = None
    phase: str | None = None  # the router's word for the phase; ``""`` for none
    reason: str | None = None  # its code
    #: What decided, such as ``rule`` and ``tool``; other facts are not checked.
    facts: dict[str, str] = Field(default_factory=dict)
    latched: bool | None = None  # whether the session is latched afterwards
    warnings: list[str] | None = None  # codes of the warnings, in any order
    rewrites: list[str] | None = None  # names of the rewrites that changed the body, in their order
    #: Values in the outgoing body by JSONPath; several values of a path are an array.
    body: dict[str, Any] = Field(default_factory=dict)
    #: JSONPaths that find nothing in the outgoing body.
    absent: list[JSONPathText] = Field(default_factory=list)
    error: str | None = None  # code with which the request is refused
    status: Annotated[int, Field(ge=400, le=599)] | None = None  # HTTP status of the refusal


class CaseModel(RequestModel):
    """One case."""

    name: Prompt  # unique in the file
    #: Earlier requests, decided first and in order; their latches stay. They inherit headers and
    #: format of the case.
    before: list[EarlierModel] = Field(default_factory=list)
    expect: ExpectModel  # its expected result


class CaseFileModel(Options):
    """A test file."""

    schema_version: Literal[1] = 1
    cases: list[CaseModel] = Field(min_length=1)  # one or more


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request of a case, ready to be decided."""

    request: Request
    replies: dict[str, list[str]]  # texts of replies by target
    usage: ModelUsage | None = None  # what its answer took


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case, ready to run."""

    name: str
    location: Location  # its place in the document
    before: tuple[Step, ...]  # earlier requests
    step: Step  # the request that is checked
    expect: ExpectModel  # its expected result


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFile:
    """A test file without mistakes."""

    document: Document  # its text, for places
    cases: tuple[Case, ...]  # in the order of the file

    def where(self, location: Location) -> str:
        """Return ``file:line:column`` of a key."""
        return self.document.where(location, at_key=True)


def case_file_of(policy: Path) -> Path:
    """Return where the test file of a policy is, if it has one."""
    return policy.with_name(policy.name.removesuffix(".toml") + SUFFIX)


def policy_of(tests: Path) -> Path:
    """Return the policy that a test file is about."""
    return tests.with_name(tests.name.removesuffix(SUFFIX) + ".toml")


def check_cases(path: Path, registry: PluginRegistry) -> tuple[Finding, ...]:
    """Return the mistakes of a test file, without those of its policy."""
    if not policy_of(path).exists():
        return (lost(path),)
    policy = check_policy(policy_of(path), registry).policy
    try:
        if policy is None:
            # Names cannot be looked up then, but keys and values can be checked.
            document = read_document(path)
            return tuple(validate(document, (), CaseFileModel, document.values)[1])
        read_cases(path, policy, registry)
    except PolicyError as error:
        return error.findings
    return ()


def lost(path: Path) -> Finding:
    """Return the finding for a test file that has no policy beside it."""
    return Finding(
        code="SY601",
        message=f"no policy `{policy_of(path).name}` beside the test file",
        file=str(path),
        fix="name the test file after its policy",
    )


def read_cases(path: Path, policy: Policy, registry: PluginRegistry) -> CaseFile:
    """Read the test file of a policy; PolicyError carries all of its mistakes."""
    document = read_document(path)
    model, findings = validate(document, (), CaseFileModel, document.values)
    # The rest of a file with wrong values is checked all the same.
    rest = salvage(CaseFileModel, _filled(document.values)) if model is None else None
    model = rest.model if rest is not None else model
    reader = _Reader(document, path.parent, policy, registry, rest, findings)
    cases = reader.cases(model) if model is not None else ()
    if reader.findings:
        raise PolicyError(sorted(reader.findings, key=_place))
    return CaseFile(document=document, cases=cases)


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file in which every case has a name and an expectation, so that it is kept."""
    cases = values.get("cases")
    filled = [
        {
            **case,
            "name": name if isinstance(name, str) and name.strip() else f"\0{number}",
            "expect": expect if isinstance(expect, dict) else {},
        }
        if isinstance(case, dict)
        and (name := case.get("name"), expect := case.get("expect")) is not None
        else case
        for number, case in enumerate(cases if isinstance(cases, list) else ())
    ]
    return {**values, "cases": filled}


def _place(finding: Finding) -> tuple[int, int]:
    return finding.line, finding.column


@dataclass(slots=True)
class _Reader:
    """Makes cases of a validated file and collects semantic errors."""

    _document: Document
    _folder: Path
    _policy: Policy
    _registry: PluginRegistry
    _rest: Salvaged[CaseFileModel] | None  # what remains of a file with wrong values
    findings: list[Finding]

    def _is_whole(self, location: Location) -> bool:
        """Return whether nothing wrong was left out of a table; else it has a finding."""
        if self._rest is None:
            return True
        place = self._rest.original(location)
        written: Any = self._document.values
        try:
            for part in place:
                written = written[part]
        except LookupError:
            return False
        out = self._rest.left_out
        return isinstance(written, dict) and not any(each[:-1] == place for each in out)

    def cases(self, model: CaseFileModel) -> tuple[Case, ...]:
        first: dict[str, Location] = {}
        cases: list[Case] = []
        for number, case in enumerate(model.cases):
            location: Location = ("cases", number)
            where: Location = (*location, "name")
            if case.name in first:
                note = f"the first is at {self._document.where(first[case.name])}"
                message = f"two cases have the name `{shown(case.name)}`"
                self._report("SY605", message, where, fix="rename one", notes=(note,))
            first.setdefault(case.name, where)
            cases += self._case(case, location)
        return tuple(cases)

    def _case(self, case: CaseModel, location: Location) -> Iterator[Case]:
        before = []
        for number, earlier in enumerate(case.before):
            merged = earlier.model_copy(
                update={
                    "headers": {**case.headers, **_lower(earlier.headers, case.headers)},
                    "format": earlier.format or case.format,
                    "replies": earlier.replies or case.replies,
                }
            )
            before.append(self._step(merged, earlier, (*location, "before", number)))
        step = self._step(case, case, location)
        route = self._policy.default_route
        for place, made in (((*location, "before"), before), (location, [step])):
            for number, each in enumerate(made):
                where = (*place, number) if place != location else place
                # Who expects the default route means it.
                if each is not None and case.expect.route != route:
                    self._check_model(each.request, where)
        self._check_expect(case.expect, (*location, "expect"))
        if step is not None and all(before):
            yield Case(
                name=case.name,
                location=location,
                before=tuple(found for found in before if found is not None),
                step=step,
                expect=case.expect,
            )

    def _step(self, model: RequestModel, written: RequestModel, location: Location) -> Step | None:
        for target in written.replies:
            where: Location = (*location, "replies", target)
            self._check_name("target", target, self._policy.targets, where, at_key=True)
        given = [key for key in ("request", "request_file") if getattr(model, key) is not None]
        if not given and not self._is_whole(location):
            return None
        if len(given) != 1:
            message = "a case has both `request` and `request_file`"
            fix = "remove one of them"
            if not given:
                message, fix = "the case has no request", "add `request` or `request_file`"
            self._report("SY603", message, location, fix=fix)
            return None
        where = (*location, given[0])
        data = self._data(model, where)
        if data is None:
            return None
        pairs = list(model.headers.items())
        try:
            found = read_requests(
                data, wire_format=model.format, headers=pairs, policy=self._policy
            )
        except BodyError as error:
            self._report("SY606", error.message, where, fix="correct the request or its `format`")
            return None
        if len(found) != 1:
            message = f"there are {len(found)} requests, one per line"
            fix = "keep one; earlier requests of a session belong in `before`"
            self._report("SY606", message, where, fix=fix)
            return None
        self._check_arguments(found[0], model.request, where)
        usage = model.usage if isinstance(model, EarlierModel) else None
        return Step(
            request=found[0],
            replies=model.replies,
            usage=ModelUsage(**usage.model_dump()) if usage is not None else None,
        )

    def _check_model(self, request: Request, location: Location) -> None:
        """Report a model id that only the default route takes: a misspelt one, most likely."""
        policy, model = self._policy, request.model
        if not model or policy.default_route is None or policy.names_route(model):
            return
        ids = sorted(each for r in policy.routes.values() for each in (r.id, *r.aliases))
        meant = f'to test the default route, expect `route = "{policy.default_route}"`'
        near = nearest(model, ids)
        self._report(
            "SY608",
            f"no route has the model id `{shown(model)}`, so the default route takes it",
            (*location, "request", "model"),
            notes=(f"model ids: {', '.join(map(shown, ids))}",),
            fix=f"did you mean `{near}`? If not, {meant}" if near else meant,
        )

    def _check_arguments(self, request: Request, written: Any, where: Location) -> None:
        """Report arguments of a call that are a table where the wire format has text, or text."""
        try:
            parts = [part for _, part in request.conversation.parts()]
        except BodyError:
            # The case ends with it.
            return
        of_text = request.wire_format != "anthropic_messages"
        for call in parts:
            if isinstance(call, ToolCall) and of_text is isinstance(call.source, Mapping):
                self._report_arguments(call, written, where)

    def _report_arguments(self, call: ToolCall, written: Any, where: Location) -> None:
        place: Location = tuple(
            int(index) if index else key for key, index in _STEP.findall(call.path)
        )
        if isinstance(call.source, Mapping):
            message = "the arguments of this call are a table; this wire format has JSON text"
            text = json.dumps(call.source, ensure_ascii=False)
            place = (*place, *_to_arguments(written, place))
            fix = f"write `arguments = '{shown(text)}'`"
        elif isinstance(call.arguments, str):
            message = "the input of this call is text; this wire format has a table"
            place, fix = (*place, "input"), "write a table, `input = { ... }`"
        else:
            return
        self._report("SY609", message, (*where, *place), fix=fix)

    def _data(self, model: RequestModel, where: Location) -> bytes | None:
        if model.request_file is None:
            text = model.request
            if not isinstance(text, str):
                text = json.dumps(text, ensure_ascii=False)
            return text.encode("utf-8", "surrogatepass")
        try:
            return (self._folder / model.request_file).read_bytes()
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or "not a usable path").lower()
            message = f"cannot read `{shown(model.request_file)}`: {reason}"
            fix = "write a path relative to this file's folder"
            self._report("SY602", message, where, fix=fix)
            return None

    def _check_expect(self, expect: ExpectModel, location: Location) -> None:
        said = [key for key in _OF_A_DECISION if key in expect.model_fields_set]
        if not expect.model_fields_set and self._is_whole(location):
            message = "nothing is expected, so the case cannot fail"
            self._report("SY607", message, location, fix="expect a target and a reason")
        elif said and (expect.error is not None or expect.status is not None):
            message = f"a refused request has no `{said[0]}`"
            fix = "expect a refusal or a decision, not both"
            self._report("SY607", message, (*location, said[0]), fix=fix)
        if expect.target is not None:
            where: Location = (*location, "target")
            self._check_name("target", expect.target, self._policy.targets, where)
        if expect.route is not None:
            where = (*location, "route")
            self._check_name("route", expect.route, self._policy.routes, where)
        for number, rewrite in enumerate(expect.rewrites or ()):
            where = (*location, "rewrites", number)
            self._check_name("rewrite", rewrite, self._registry.rewrites, where)
        for path in expect.body:
            self._check_path(path, (*location, "body", path))

    def _check_path(self, path: str, location: Location) -> None:
        try:
            compile_path(path)
        except PathError as error:
            message = f"bad JSONPath: {error.message}"
            fix = "correct the path, and put it in quotes"
            self._report("SY401", message, location, fix=fix)

    def _check_name(
        self,
        word: str,
        name: str,
        known: Collection[str],
        location: Location,
        *,
        at_key: bool = False,
    ) -> None:
        if name in known:
            return
        names = sorted(known)
        fix = suggestion(name, names, f"name one of these {word}s")
        notes = (f"{word}s: {', '.join(names) or 'none'}",)
        message = f"unknown {word} `{shown(name)}`"
        self._report("SY604", message, location, at_key=at_key, fix=fix, notes=notes)

    def _report(self, code: str, message: str, location: Location, **parts: Unpack[Parts]) -> None:
        where: Parts = {"at_key": True, **parts}
        location = self._rest.original(location) if self._rest is not None else location
        self.findings.append(self._document.finding(code, message, location, **where))


def _to_arguments(request: Any, place: Location) -> Location:
    """Return the rest of the way to the arguments of a call in a request that is a table."""
    call = request
    for part in place:
        try:
            call = call[part]
        except (LookupError, TypeError):
            return ()
    inner = call.get("function") if isinstance(call, dict) else None
    return ("function", "arguments") if isinstance(inner, dict) else ("arguments",)


def _lower(own: dict[str, str], others: dict[str, str]) -> dict[str, Any]:
    """Return headers spelt as in ``others``, so that they replace those."""
    spelling = {name.lower(): name for name in others}
    return {spelling.get(name.lower(), name): value for name, value in own.items()}
