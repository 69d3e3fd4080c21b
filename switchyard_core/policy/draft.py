"""A policy while it is checked: the document, the names it may use, and the findings so far."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, Unpack

from pydantic import BaseModel

from switchyard_core.declarations import ReferenceKind
from switchyard_core.errors import Finding, nearest
from switchyard_core.mutation import LABELS
from switchyard_core.plugins import Kind, PluginRegistry
from switchyard_core.policy.document import Document, Parts
from switchyard_core.policy.models import Table, Top
from switchyard_core.policy.places import Location
from switchyard_core.policy.secrets import shown
from switchyard_core.policy.shapes import Named, allowed_keys, references
from switchyard_core.policy.validation import MOST_FINDINGS, validate
from switchyard_core.policy.values import RESERVED_REWRITES
from switchyard_core.policy.wording import suggestion, unknown_key, unquoted

__all__ = ["Draft", "TooManyFindings", "misread"]

ModelT = TypeVar("ModelT", bound=BaseModel)


class TooManyFindings(Exception):  # noqa: N818 - ends a check, says nothing
    """A policy has more findings than are reported."""


@dataclass(frozen=True, slots=True)
class _Names:
    """Where names of one kind are declared, and how an unknown one is reported."""

    code: str
    word: str  # what the name refers to
    listed_as: str  # heading of the list of the names that exist
    plugins: str = ""  # attribute of the registry that has them
    kind: Kind | None = None  # what plugins call it; adds conflicts and broken plugins to the notes
    table: str = ""  # the policy's table that declares them
    words: tuple[str, ...] = ()  # built-in names

    def otherwise(self, name: str) -> str:
        """Return what to do when no known name is near."""
        if self.table:
            return f"declare it under `[{self.table}]`"
        if self.words or self.kind == "rewrite":
            return "use one of these"
        if self.kind == "route_type":
            return f"no installed plugin provides `{shown(name)}`; install one that does"
        return "install the plugin that provides it"


_NAMES: Mapping[ReferenceKind, _Names] = MappingProxyType(
    {
        "target": _Names("SY201", "target", "declared targets", table="targets"),
        "client": _Names("SY202", "client", "declared clients", table="llm_clients"),
        "route": _Names("SY306", "route", "declared routes", table="routes"),
        "route_type": _Names(
            "SY301", "route type", "installed route types", "route_types", "route_type"
        ),
        "rule_set": _Names(
            "SY404", "rule set", "known rule sets", "rule_sets", "mutation_pack", "mutation_rules"
        ),
        "latch_store": _Names(
            "SY304", "latch store", "installed latch stores", "latch_stores", "latch_store"
        ),
        "plan_store": _Names(
            "SY309", "plan store", "installed plan stores", "plan_stores", "plan_store"
        ),
        "tool": _Names("SY308", "tool", "tools of installed plugins", "tools", "tool"),
        "rewrite": _Names(
            "SY207", "rewrite", "rewrites that can be switched off", "rewrites", "rewrite"
        ),
        "label": _Names("SY305", "label", "labels", words=LABELS),
    }
)


def misread(document: Document, *tables: str) -> bool:
    """Return whether one of the tables is there in another form, or by a misspelt name."""
    known = allowed_keys(Top)
    meant = {nearest(key, known) for key in document.values if key not in known}
    # Only side calls are an array of tables.
    forms = {table: list if table == "housekeeping" else dict for table in tables}
    return any(
        table in meant or not isinstance(document.values.get(table, form()), form)
        for table, form in forms.items()
    )


@dataclass(slots=True, kw_only=True)
class Draft:
    """Collects findings while the parts of a policy are resolved."""

    document: Document
    registry: PluginRegistry
    environ: Mapping[str, str] | None  # ``None`` when the environment must not be read
    base: Path  # where relative paths start from
    findings: list[Finding] = field(default_factory=list)
    #: Clients and route types, which replace their names in tables.
    bearers: dict[ReferenceKind, Mapping[str, Any]] = field(default_factory=dict)
    _known: dict[ReferenceKind, frozenset[str]] = field(default_factory=dict)

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings; raise TooManyFindings when there are too many to continue."""
        self.findings.extend(findings)
        if len(self.findings) > MOST_FINDINGS:
            raise TooManyFindings

    def report(self, code: str, message: str, location: Location, **parts: Unpack[Parts]) -> None:
        """Add a finding at a place of the document."""
        self.add([self.document.finding(code, message, location, **parts)])

    def tables(self, name: str) -> Mapping[str, Any]:
        """Return the tables under a top-level key of the document."""
        return self.document.tables(name)

    def validated(
        self,
        location: Location,
        model: type[ModelT],
        raw: object,
        *,
        also: tuple[str, ...] = (),
        note: Callable[[str], str] = lambda _key: "",
    ) -> ModelT | None:
        """Validate a table and the names in it; return it when there is no finding.

        ``also`` are further allowed keys; ``note`` explains an unknown key.
        """
        before = len(self.findings)
        if isinstance(raw, dict) and issubclass(model, Table):
            foreign = sorted(model.given() & raw.keys())
            allowed = (*allowed_keys(model), *also)
            self.add(
                unknown_key(self.document, (*location, key), allowed, note(key)) for key in foreign
            )
            raw = {key: value for key, value in raw.items() if key not in foreign}
        instance, findings = validate(
            self.document,
            location,
            model,
            raw,
            also=also,
            note=note,
            names=self._listed,
            context=self,
        )
        self.add(findings)
        for named in references(model, raw, location) if isinstance(raw, dict) else ():
            self._look_up(named)
        return instance if len(self.findings) == before else None

    def is_pointed(self, location: Location, raw: object, model: type[BaseModel]) -> bool:
        """Return whether a table is nothing but names with a point, and report them."""
        inner = [(*location, key) for key in raw] if isinstance(raw, dict) else []
        if not inner or not all(unquoted(self.document, place) for place in inner):
            return False
        keys = allowed_keys(model)
        self.add(unknown_key(self.document, place, keys) for place in inner)
        return True

    def _look_up(self, named: Named) -> None:
        names, known = _NAMES[named.kind], self._names(named.kind)
        if named.kind == "rewrite":
            if named.name in RESERVED_REWRITES | known:
                # One that cannot be switched off has another finding.
                return
            known = frozenset(n for n in known if self.registry.rewrites[n].switchable)
        if named.name not in known and not misread(self.document, names.table):
            self._unknown(names, known, named)

    def _names(self, kind: ReferenceKind) -> frozenset[str]:
        """Return the known names of a kind."""
        names = _NAMES[kind]
        if kind not in self._known:
            plugins = getattr(self.registry, names.plugins) if names.plugins else ()
            declared = self.tables(names.table)
            # A name with a point, without quotes, has a finding where it is declared.
            pointed = {
                f"{name}.{key}"
                for name, table in declared.items()
                if isinstance(table, dict)
                for key in table
                if unquoted(self.document, (names.table, name, key))
            }
            self._known[kind] = frozenset({*names.words, *declared, *pointed, *plugins})
        return self._known[kind]

    def _listed(self, kind: ReferenceKind) -> str:
        """Return the known names of a kind, for a note."""
        return f"{_NAMES[kind].listed_as}: {_joined(self._names(kind))}"

    def _unknown(self, names: _Names, known: Collection[str], named: Named) -> None:
        notes: tuple[str, ...] = ()
        conflict = self.registry.conflict(names.kind, named.name) if names.kind else None
        if conflict is not None:
            code, message = "SY503", f"{conflict.message}, and neither is used"
            fix, at_key = "uninstall one of them", named.is_key
        elif not named.name.strip():
            code, message = names.code, f"the name of the {names.word} is blank"
            fix, at_key = f"write the name of a {names.word}", False
        else:
            code, message = names.code, f"unknown {names.word} `{shown(named.name)}`"
            broken = self.registry.broken if names.kind else ()
            notes = (f"{names.listed_as}: {_joined(known)}", *(plugin.error for plugin in broken))
            otherwise = names.otherwise(named.name)
            if broken:
                otherwise = "repair or remove the broken plugin; see `switchyard plugins`"
            fix, at_key = suggestion(named.name, sorted(known), otherwise), named.is_key
        self.report(code, message, named.location, at_key=at_key, notes=notes, fix=fix)


def _joined(names: Iterable[str]) -> str:
    return ", ".join(map(shown, sorted(names))) or "none"
