"""The search: whole words and word starts, the product that matches most words first."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from switchyard_core import Options
from switchyard_demo_catalog.catalog import Product, products, stop_words, words_of

__all__ = ["ProductQuery", "search_products"]

#: Shortest word of a query that also finds words which only begin with it.
_START = 3


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
    """Return the products that match any word of a query, a line each, or that none does.

    Args:
        wanted: Keywords and price ceiling.
    """
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
