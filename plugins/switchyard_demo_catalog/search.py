"""The catalogue, and the search in it: the product that matches most words comes first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

import tomli
from pydantic import Field

from switchyard_core import Options

__all__ = ["Product", "ProductQuery", "products", "search_products", "stop_words", "words_of"]

_WORD = re.compile(r"[^\W_]+")
#: Shortest word of a query that also finds words which only begin with it.
_START = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One product; its price is in US dollars."""

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


class ProductQuery(Options):
    """Arguments of ``search_products``."""

    query: Annotated[
        str, Field(description="Keywords: what the product is, or what it is for.", min_length=1)
    ]
    max_price: Annotated[
        float | None,
        Field(description="Highest price in US dollars, inclusive; null for any price.", ge=0),
    ] = None


def search_products(wanted: ProductQuery) -> str:
    """Return the products that match any word of a query, a line each, or that none does."""
    terms = dict.fromkeys(word for word in words_of(wanted.query) if word not in stop_words())
    ceiling = wanted.max_price
    found = [
        (-matched, product.line)
        for product in products()
        if ceiling is None or product.price <= ceiling
        if (matched := sum(_matches(term, product) for term in terms))
    ]
    # A stable sort: of equal matches the catalogue's order stays.
    found.sort(key=lambda row: row[0])
    if found:
        return "\n".join(line for _, line in found)
    limit = "" if ceiling is None else f" at or below ${ceiling:.2f}"
    return f'No product matches "{wanted.query}"{limit}.'


def _matches(term: str, product: Product) -> bool:
    """Return whether a word of a query is a word of a product, or the start of one."""
    singular = term[:-1] if term.endswith("s") and len(term) > _START + 1 else term
    return any(
        word == term or (len(singular) >= _START and word.startswith(singular))
        for word in product.words
    )
