"""The table of what wire formats cannot say, and the page that shows it."""

from __future__ import annotations

from scripts.write_handoff_page import PAGE, tables
from switchyard_core.declarations import WIRE_FORMATS
from switchyard_core.wire.losses import all_losses, losses


def test_every_row_is_about_formats_that_differ() -> None:
    for row in all_losses():
        assert set(row.callers) <= set(WIRE_FORMATS), row.id
        assert any(caller != target for caller in row.callers for target in row.at), row.id
        # Who does not say a thing itself has to say what becomes of it.
        assert set(row.callers) | set(row.at) == set(WIRE_FORMATS), row.id


def test_same_format_loses_nothing() -> None:
    assert [losses(name, name) for name in WIRE_FORMATS] == [{}, {}, {}]


def test_pair_tells_what_becomes_of_a_thing() -> None:
    told = losses("anthropic_messages", "openai_chat")

    assert told["cache marks"] == "left out"
    assert "namespaces of tools" not in told


def test_page_on_the_handoff_is_written_from_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page.endswith(tables()), "run: python scripts/write_handoff_page.py"
