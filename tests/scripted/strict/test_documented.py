"""Every documented rule is refused in the provider's words, and the repaired body is taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tomli

from tests.scripted.strict.broken import CASES, LEFT_OUT, Case, ask, bare, player

ROOT = Path(__file__).parents[3]
RULES = tomli.loads((ROOT / "tests" / "data" / "provider-rules.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{case.id}" for n, case in enumerate(CASES)])
def test_broken_rule_is_refused_with_the_documented_words(case: Case) -> None:
    body = bare(case.format, case.model, **case.broken)

    status, told = ask(player(case.provider), case.format, body, case.headers, case.path)

    assert (status, told) == (case.status, told)
    words = _plain(json.dumps(told, ensure_ascii=False))
    for fragment in filter(None, (case.says, *_documented(case))):
        for piece in fragment.split(" .. "):
            assert _plain(piece) in words


@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{case.id}" for n, case in enumerate(CASES)])
def test_repaired_body_is_answered(case: Case) -> None:
    body = bare(case.format, case.model, **case.kept)
    headers = case.headers if case.kept_headers is None else case.kept_headers
    path = case.kept_path or case.path

    status, told = ask(player(case.provider), case.format, body, headers, path)

    assert status == 200, told


def test_every_documented_rule_has_a_case_or_a_reason(
    record_property: pytest.RecordProperty,
) -> None:
    covered = {_row(case) for case in CASES}
    left_out = {_found(*key) for key in LEFT_OUT}
    every = {(m["id"], text) for m in RULES["model"] for text in _texts(m)}

    assert every - covered - left_out == set()
    assert not covered & left_out
    record_property("rules", len(every))
    record_property("left_out", len(left_out))
    print(f"{len(every)} documented rules, {len(left_out)} left out with a reason")


def _row(case: Case) -> tuple[str, str]:
    return _found(*case.rule)


def _found(entry: str, begin: str) -> tuple[str, str]:
    """Return the documented rule that a case is about; its text may be given by its beginning."""
    texts = [t for m in RULES["model"] if m["id"] == entry for t in _texts(m)]
    whole = [text for text in texts if text == begin or text.startswith(f"{begin} (")]
    found = whole or [text for text in texts if text.startswith(begin)]
    assert found, f"no documented rule `{begin}` in `{entry}`"
    return entry, found[0]


def _texts(model: Any) -> list[str]:
    return [*model.get("requires", ()), *(_text(rule) for rule in model.get("refuses", ()))]


def _text(rule: Mapping[str, str]) -> str:
    return f"{rule['path']} ({rule['when']})" if "when" in rule else rule["path"]


def _documented(case: Case) -> list[str]:
    """Return the words that the sources give for a case without words of its own."""
    if case.says:
        return []
    entry, text = _row(case)
    rules = [r for m in RULES["model"] if m["id"] == entry for r in m.get("refuses", ())]
    errors = [rule["error"] for rule in rules if _text(rule) == text and rule.get("error")]
    assert errors, f"the sources have no words for {case.rule}: give some"
    return [words for words in errors[0].split(" | ") if not words.startswith("silent")]


def _plain(text: str) -> str:
    return text.lower().replace("\\", "")
