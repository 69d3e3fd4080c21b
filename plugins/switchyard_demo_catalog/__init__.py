"""A tool to try planner and executor with: a search in a small catalogue of gifts.

``search_products`` needs no network and no key. The catalogue and the stop list are data files
beside this module.
"""

from __future__ import annotations

from collections.abc import Iterable

from switchyard_core import Tool, hookimpl
from switchyard_demo_catalog.search import ProductQuery, search_products

__all__ = ["ProductQuery", "search_products", "switchyard_tools"]


@hookimpl
def switchyard_tools() -> Iterable[Tool]:
    """Return the one tool."""
    return (
        Tool(
            name="search_products",
            description=(
                "Search the product catalogue by keywords, with a price ceiling if wanted. "
                "Returns one line per product: name, price, description; the best match first."
            ),
            parameters=ProductQuery,
            function=search_products,
        ),
    )
