"""The catalogue: what there is to be found, and the words of each product."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import tomli

__all__ = ["Product", "products", "stop_words", "words_of"]

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One product.

    Args:
        name: What it is called.
        price: US dollars.
        category: One word.
        description: One sentence.
    """

    name: str
    price: float
    category: str
    description: str

    @property
    def words(self) -> frozenset[str]:
        """The words by which it is found, in lower case."""
        return frozenset(words_of(f"{self.name} {self.category} {self.description}"))

    @property
    def line(self) -> str:
        """The product as a search shows it."""
        return f"{self.name} — ${self.price:.2f} — {self.description}"


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, in order."""
    return _WORD.findall(text.casefold())


@cache
def products() -> tuple[Product, ...]:
    """Return all products, in the order of the catalogue."""
    return tuple(Product(**row) for row in _data("catalog.toml")["products"])


@cache
def stop_words() -> frozenset[str]:
    """Return the words that say nothing about a product."""
    return frozenset(_data("stop_words.toml")["words"])


def _data(name: str) -> dict[str, Any]:
    return tomli.loads((files("switchyard_demo_catalog") / name).read_text("utf-8"))
