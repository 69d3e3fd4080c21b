"""The documentation is in plain English: phrases that nobody would say are not on its pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.cases import each_of

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Phrase:
    """One phrase to avoid: a space of its pattern matches any white space."""

    pattern: str
    better: str
    sample: str

    def places(self, text: str) -> list[tuple[int, str]]:
        """Return line and words of every place where the phrase is used."""
        found = re.finditer(self.pattern.replace(" ", r"\s+"), text)
        return [(text.count("\n", 0, m.start()) + 1, " ".join(m[0].split())) for m in found]


PHRASES = [
    Phrase(r"(?<![Tt]here\s)\bis no (?!longer\b|more\b)\w+", "is not a ...", "It is no edit."),
    Phrase(r"(?<![Tt]here\s)\bis none\b", "is not one", "a call in a user message is none"),
    Phrase(r"\bthat is none\b", "that is not one", "of a caller's that is none"),
    Phrase(r"\bturns? (that|it|this) round\b", "reverses that", "`not = true` turns it\nround."),
    Phrase(r"\boverrul\w+", "override", "own rules overrule them"),
    Phrase(r"\bgo(es|ing)? on\b", "continue", "The old policy goes on."),
    Phrase(r"\bby (itself|themselves)\b", "on its own", "a route that answers by itself"),
    Phrase(r"\bof (its|their|your|our|my|one's) own\b", "its own", "a page of its own"),
    Phrase(r"\bstands?\b", "is", "where the command stands"),
    Phrase(
        r"\b[Mm]ost (bytes|characters|items|tokens|sessions|reviews) (of|that|at)\b",
        "maximum number of",
        "Most bytes of a body",
    ),
    Phrase(r"\bnothing in it differs\b", "no changes", "nothing in it differs"),
    Phrase(r"\bis not for this path\b", "is not allowed here", "`GET` is not for this path"),
    Phrase(r"\bis there already\b", "already exists", "the file is there already"),
    Phrase(r"\bneeds its key\b", "an API key is required", "this server needs its key"),
    Phrase(r"\bis another one\b", "does not match", "its digest is another one"),
    Phrase(r"\bRead on\b", "Documentation", "## Read on"),
    Phrase(r"\bWhy it is as it is\b", "Design decisions", "Why it is as it is"),
    Phrase(r"\bwishes\b", "recipes", "a cookbook of thirteen wishes"),
    Phrase(r"\b[Ww]hoever\b", "people who, anyone who", "Whoever sets a limit"),
    Phrase(r"\bmended\b", "fixed", "A fault is mended at once."),
    Phrase(r"\bwhich is to say\b", "that is", "which is to say"),
    Phrase(r"\band be it\b", "even", "and be it the last one"),
]


def pages() -> list[Path]:
    names = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
    folder = sorted((ROOT / "docs").rglob("*.*"))
    return [*(ROOT / name for name in names), *(p for p in folder if p.suffix in {".md", ".toml"})]


def test_pages_use_plain_english() -> None:
    found = [
        f"{page.relative_to(ROOT).as_posix()}:{line}: `{words}`, better: {phrase.better}"
        for page in pages()
        for phrase in PHRASES
        for line, words in phrase.places(page.read_text(encoding="utf-8"))
    ]

    assert not found, "\n".join(found)


@each_of("phrase", PHRASES)
def test_pattern_finds_its_sample(phrase: Phrase) -> None:
    assert [line for line, _ in phrase.places(f"# Title\n\n{phrase.sample}\n")] == [3]


@each_of(
    "text", ["There is no key.", "there\nis no key", "It is no longer read.", "if there is none"]
)
def test_plain_sentence_is_not_found(text: str) -> None:
    assert [phrase.places(text) for phrase in PHRASES if phrase.places(text)] == []
