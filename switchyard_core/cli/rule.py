"""``switchyard rule``: what a code means, why it matters and how to fix it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib.resources import files
from itertools import takewhile

import click

from switchyard_core.cli import installed_registry
from switchyard_core.declarations import LintRule
from switchyard_core.policy.lint import RULES

__all__ = ["code_pages", "command"]

_ENTRY = re.compile(r"^### (SY\d{3}) (.*)$", re.MULTILINE)
_CODE = re.compile(r"[a-z]{2,8}[0-9]{2,4}")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@click.command(name="rule")
@click.argument("code", required=False)
@click.pass_context
def command(ctx: click.Context, code: str | None) -> None:
    """Explain a finding by its code or, for a lint rule, its name.

    Lists all codes without CODE. Exits 2 when CODE is unknown.

    Example: switchyard rule SY201, or switchyard rule unused-target
    """
    plugin_rules = installed_registry(ctx).lint_rules
    pages = code_pages(plugin_rules)
    if code is None:
        for page in pages.values():
            click.echo(page.partition("\n")[0].removeprefix("# "))
        return
    pages |= {rule.name: pages[rule.code] for rule in RULES}
    pages |= {rule.name: pages[rule.code] for rule in plugin_rules}
    wanted = {key.casefold(): page for key, page in pages.items()}
    found = wanted.get(code.casefold())
    if found is None:
        near = _nearest(code.casefold(), wanted)
        fix = f"did you mean `{near}`?" if near else "run `switchyard rule` for a list"
        click.echo(f"unknown code or lint rule `{_printable(code)}`\n  fix: {fix}", err=True)
        ctx.exit(2)
    click.echo(found.rstrip())


def _nearest(word: str, known: Iterable[str]) -> str | None:
    """Return what a word most likely means; of equally near codes, one of the same subject."""
    near = get_close_matches(word[:200], list(known), n=50, cutoff=0.6)
    best = max(near, key=lambda other: _shared(word, other), default=None)
    return best.upper() if best is not None and _CODE.fullmatch(best) else best


def _shared(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text[:80])


def code_pages(plugin_rules: Iterable[LintRule]) -> dict[str, str]:
    """Return the page of every code, as Markdown with its heading, in order of codes."""
    pages = dict(_error_entries())
    # A lint rule also has an entry in the list of codes, but its page is longer.
    pages |= {rule.code: _unlinked(rule.page) for rule in RULES}
    return pages | {rule.code: _plugin_page(rule) for rule in plugin_rules}


def _error_entries() -> Mapping[str, str]:
    text = files("switchyard_core.cli").joinpath("errors.md").read_text(encoding="utf-8")
    _, *parts = _ENTRY.split(text)
    entries: dict[str, str] = {}
    for code, title, rest in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        body = _unlinked(rest.partition("\n## ")[0].strip())
        entries[code] = f"# {code} {title}\n\n{body}\n"
    return entries


def _unlinked(text: str) -> str:
    """Return Markdown without links, which a terminal cannot follow."""
    return _LINK.sub(r"\1", text)


def _plugin_page(rule: LintRule) -> str:
    head = f"# {rule.code} {rule.name} ({rule.severity})\n\n{rule.summary}\n"
    more = inspect.getdoc(rule.check)
    return f"{head}\n{more}\n" if more else head
