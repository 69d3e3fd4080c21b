"""What translations leave out of the requests of clients: their page has a reason for all of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.wire import FORMATS, endpoint_of
from switchyard_core.wire.neutral import Facts
from tests.clients.pages import PAGES

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
_PLACE = re.compile(r"\[\d+\]")


def _left_out(path: Path) -> set[str]:
    """Return what is left out of a recorded request in any other format."""
    request = json.loads(path.read_text())["request"]
    found = endpoint_of(urlsplit(request["path"]).path)
    assert found is not None
    lines: set[str] = set()
    for target in FORMATS.keys() - {found[0]}:
        neutral = FORMATS[found[0]].neutral(ObjectText(encode(request["body"])))
        FORMATS[target].write(neutral, Facts(thinks=True))
        lines |= {*neutral.told.left_out, *neutral.told.lost}
    return {_PLACE.sub("[...]", line) for line in lines}


def _reasons() -> list[str]:
    """Return what the page has a reason for, as it is written there."""
    _, _, table = (PAGES / "index.md").read_text().partition("| left out | of | why |\n")
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]


def test_page_has_a_reason_for_all_that_is_left_out_of_requests_of_clients() -> None:
    reasons = _reasons()
    used: set[str] = set()
    missing: dict[str, set[str]] = {}
    for path in sorted(CAPTURES.glob("*.json")):
        for line in _left_out(path):
            found = {reason for reason in reasons if reason in line}
            used |= found
            if not found:
                missing.setdefault(path.stem, set()).add(line)

    assert missing == {}
    assert [reason for reason in reasons if reason not in used] == []
