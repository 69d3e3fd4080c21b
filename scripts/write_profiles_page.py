"""Writes the tables of docs/profiles.md from the shipped profiles; tests fail on a difference.

python scripts/write_profiles_page.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from switchyard_core.models import DEFAULTS, Entry, core_profiles, read_profiles

PAGE = Path(__file__).parents[1] / "docs" / "profiles.md"
#: The heading from which on the page is written by this script.
MARK = "## Profiles that ship with switchyard\n"
_FORMATS = {
    "anthropic_messages": "Messages",
    "openai_chat": "Chat",
    "openai_responses": "Responses",
}


def main() -> None:
    """Write the tables under the hand-written part of the page."""
    head = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    PAGE.write_text(head + tables(), encoding="utf-8")


def tables() -> str:
    """Return the generated part of the page."""
    lines = [
        MARK,
        "Written from the data by `python scripts/write_profiles_page.py`. `doc` is the",
        "vendor's own page, `report` an issue or probe of others, `code` the code or data of",
        "another project. An entry with a host is about an endpoint and not about a model.",
    ]
    for declared in core_profiles():
        name = declared.source.rpartition("/")[2].removesuffix(".toml")
        lines += ["", f"### {name}", "", *_table(read_profiles(declared))]
    return "\n".join(lines) + "\n"


def _table(entries: tuple[Entry, ...]) -> Iterator[str]:
    yield "| profile | models | format | what it says | source, day | sure |"
    yield "|---|---|---|---|---|---|"
    for entry in entries:
        models = ", ".join(f"`{glob}`" for glob in entry.match)
        if entry.host is not None:
            models += " at " + ", ".join(f"`{glob}`" for glob in entry.host)
        formats = ", ".join(_FORMATS[name] for name in entry.wire_formats) or "all"
        said = "; ".join([*_facts(entry), *(rule.summary for rule in entry.rules)])
        cells = [
            f"`{entry.id}`",
            models,
            formats,
            said,
            f"{entry.source}, {entry.as_of}",
            entry.sure,
        ]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _facts(entry: Entry) -> Iterator[str]:
    for key in (*DEFAULTS, "prefix_bound", "system_rows"):
        value = getattr(entry, key)
        if value is not None:
            yield f"{key} = {str(value).lower() if isinstance(value, bool) else value}"
    if entry.reads:
        yield "reads thinking of " + ", ".join(f"`{glob}`" for glob in entry.reads)
    told = entry.reasoning.model_dump(exclude_none=True)
    if told:
        words = [f"{key} {str(value).lower()}" for key, value in told.items()]
        yield f"reasoning: {', '.join(words)}"


if __name__ == "__main__":
    main()
