"""A policy while it is being checked: the document, and the findings so far."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from switchyard_core.errors import Finding, Severity
from switchyard_core.jsonio.path import Path as JSONPath
from switchyard_core.jsonio.path import PathError, compile_path
from switchyard_core.plugins import Kind, PluginRegistry
from switchyard_core.policy.document import Document
from switchyard_core.policy.positions import Location
from switchyard_core.policy.schema import NOT_YET
from switchyard_core.policy.secrets import shown
from switchyard_core.policy.validation import MOST_FINDINGS, validate
from switchyard_core.policy.wording import suggestion

__all__ = ["Draft", "Space", "TooManyFindings"]

ModelT = TypeVar("ModelT", bound=BaseModel)


class TooManyFindings(Exception):  # noqa: N818 - ends a check, says nothing
    """A policy has more findings than are reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What the names of one kind may be, and how a wrong one is reported.

    Args:
        code: Code of the finding.
        word: What a name is the name of.
        names: Names that exist.
        listed_as: Heading of the list of these names, such as ``declared targets``.
        otherwise: Fix when no known name is near.
        kind: What plugins call it; adds conflicts and broken plugins to the notes.
    """

    code: str
    word: str
    names: Collection[str]
    listed_as: str
    otherwise: str
    kind: Kind | None = None


@dataclass(slots=True, kw_only=True)
class Draft:
    """Collects findings while the parts of a policy are resolved.

    Args:
        document: What is checked.
        registry: Installed plugins.
        environ: Environment variables, ``None`` when the environment must not be read.
        base: Folder that relative paths start from.
        findings: What was found so far, in any order.
    """

    document: Document
    registry: PluginRegistry
    environ: Mapping[str, str] | None
    base: Path
    findings: list[Finding] = field(default_factory=list)

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings.

        Raises:
            TooManyFindings: There are so many that the rest of the policy is not worth a look.
        """
        self.findings.extend(findings)
        if len(self.findings) > MOST_FINDINGS:
            raise TooManyFindings

    def report(
        self,
        code: str,
        message: str,
        location: Location,
        *,
        at_key: bool = False,
        offset: int | None = None,
        fix: str = "",
        notes: tuple[str, ...] = (),
        severity: Severity = "error",
    ) -> None:
        """Add a finding at a place of the document; arguments as for ``Document.finding``."""
        finding = self.document.finding(
            code,
            message,
            location,
            at_key=at_key,
            offset=offset,
            fix=fix,
            notes=notes,
            severity=severity,
        )
        self.add([finding])

    def tables(self, name: str) -> Mapping[str, Any]:
        """Return the tables under a top-level key, empty when it is absent or no table."""
        value = self.document.values.get(name)
        return value if isinstance(value, dict) else {}

    def refuse_future(self, table: str, location: Location, raw: Mapping[str, Any]) -> set[str]:
        """Report the keys of a table that this version cannot honour yet, and return them."""
        later = {key for key in raw if (table, key) in NOT_YET}
        for key in later:
            self.report(
                "SY200",
                f"`{key}` is not yet available in this version",
                (*location, key),
                at_key=True,
                fix="remove the key",
            )
        return later

    def validated(
        self,
        location: Location,
        model: type[ModelT],
        raw: object,
        *,
        table: str = "",
        also: tuple[str, ...] = (),
    ) -> ModelT | None:
        """Validate a table, add what is wrong with it, and return it if nothing is.

        Args:
            location: Where it stands.
            model: What it must be.
            raw: The value.
            table: Name of the kind of table, for keys that are not available yet.
            also: Further keys that the table may have.
        """
        if isinstance(raw, dict) and table:
            later = self.refuse_future(table, location, raw)
            raw = {key: value for key, value in raw.items() if key not in later}
        instance, findings = validate(self.document, location, model, raw, also)
        self.add(findings)
        return instance

    def unknown(self, space: Space, name: str, location: Location, *, at_key: bool = False) -> None:
        """Report a name that nothing of a name space has.

        Args:
            space: Where the name should be known.
            name: The name as written.
            location: Where it is written.
            at_key: Whether the name is a key.
        """
        kind = space.kind
        conflict = self.registry.conflict(kind, name) if kind is not None else None
        if conflict is not None:
            self.report(
                "SY503",
                f"{conflict.message}, and neither is used",
                location,
                at_key=at_key,
                fix="uninstall one of them",
            )
            return
        if not name.strip():
            fix = f"write the name of a {space.word}"
            self.report(space.code, f"the name of the {space.word} is blank", location, fix=fix)
            return
        names = sorted(space.names)
        notes = [f"{space.listed_as}: {', '.join(map(shown, names)) if names else 'none'}"]
        otherwise = space.otherwise
        if kind is not None and self.registry.broken:
            notes += [plugin.error for plugin in self.registry.broken]
            otherwise = "repair or remove the broken plugin; see `switchyard plugins`"
        self.report(
            space.code,
            f"unknown {space.word} `{shown(name)}`",
            location,
            at_key=at_key,
            notes=tuple(notes),
            fix=suggestion(name, names, otherwise),
        )

    def compiled(self, expression: str, location: Location, *, shift: int = 0) -> JSONPath | None:
        """Compile a JSONPath that stands in a string of the document, or report it.

        Args:
            expression: The path.
            location: The string that holds it.
            shift: Characters of the string before the path.
        """
        try:
            return compile_path(expression)
        except PathError as error:
            self.report(
                "SY401",
                f"bad JSONPath: {error.message}",
                location,
                offset=shift + error.column,
                fix="correct the expression",
            )
            return None
