"""The demo tool: what is found, in which order, and what is said when nothing is."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import switchyard_demo_catalog
from switchyard_core import Options, PluginRegistry, Tool, Toolbox
from switchyard_core.answering import RequestedCall
from switchyard_core.cli import cli
from switchyard_core.testing import registry_of
from switchyard_demo_catalog import ProductQuery, search_products
from switchyard_demo_catalog.search import products, stop_words, words_of

REGISTRY = registry_of([switchyard_demo_catalog])


def found(query, max_price=None):
    """Return the names of the products that a search shows, in order."""
    text = search_products(ProductQuery(query=query, max_price=max_price))
    return (
        []
        if text.startswith("No product")
        else [line.split(" — ")[0] for line in text.splitlines()]
    )


def in_category(category):
    return [product.name for product in products() if product.category == category]


async def run(tools, *calls):
    box = Toolbox(tools)
    return await box.run(
        [RequestedCall(id="c", name=name, arguments=json.dumps(given)) for name, given in calls]
    )


# --- what is found ----------------------------------------------------------------------------


def test_catalogue_has_gifts_of_every_kind():
    photo = [product.price for product in products() if product.category == "photography"]

    assert len(products()) >= 10
    assert len({product.category for product in products()}) >= 4
    assert len({product.name for product in products()}) == len(products())
    assert sum(price < 50 for price in photo) >= 2
    assert sum(50 <= price <= 200 for price in photo) >= 2
    assert sum(price > 200 for price in photo) >= 1


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("tripod", "Pocket Tripod"),
        ("TRIPODS", "Pocket Tripod"),
        ("stationery", "Dot Grid Notebook"),
        ("microfibre", "Lens Care Kit"),
        ("illus", "Seeing Light: A Field Guide"),
    ],
    ids=["name", "plural_in_capitals", "category", "description", "word_start"],
)
def test_word_is_found_in_name_category_and_description(query, name):
    assert name in found(query)


def test_category_is_found_as_a_whole_and_no_other_is():
    assert found("photography") == in_category("photography")
    assert found("photography", 200) == [
        name for name in in_category("photography") if name != "Mirrorless Travel Camera"
    ]


@pytest.mark.parametrize(("ceiling", "is_found"), [(45.0, True), (45, True), (44.99, False)])
def test_ceiling_is_inclusive(ceiling, is_found):
    assert ("Pocket Tripod" in found("tripod", ceiling)) is is_found


def test_stop_words_do_not_match():
    assert found("a gift for a friend with the") == []
    assert found("a tripod for the friend") == found("tripod")


@pytest.mark.parametrize("query", ["ripod", "ens", "in", "po"])
def test_middle_of_a_word_and_one_or_two_letters_are_no_match(query):
    assert found(query) == []


def test_products_are_ranked_by_distinct_terms_and_then_by_the_catalogue():
    names = found("camera camera camera lenses film")

    # Two of its terms each, in the order of the catalogue; then those with one.
    assert names[:3] == ["Lens Care Kit", "Instant Film Camera", "Canvas Camera Backpack"]
    assert names.index("Woven Camera Strap") > 2
    order = [product.name for product in products()]
    assert found("camera") == sorted(found("camera"), key=order.index)


def test_lines_show_name_price_and_description():
    assert search_products(ProductQuery(query="tripod")) == (
        "Pocket Tripod — $45.00 — Folding table-top tripod that carries up to two kilograms."
    )


@given(st.text(min_size=1), st.none() | st.floats(0, 1000))
def test_every_product_shown_matches_and_is_within_the_ceiling(query, ceiling):
    terms = set(words_of(query)) - stop_words()
    by_name = {product.name: product for product in products()}
    for name in found(query, ceiling):
        product = by_name[name]
        assert ceiling is None or product.price <= ceiling
        assert any(word.startswith(term.rstrip("s")) for word in product.words for term in terms)


# --- nothing found ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "ceiling", "text"),
    [
        ("photography", 5, 'No product matches "photography" at or below $5.00.'),
        ("submarine", None, 'No product matches "submarine".'),
        ("for a friend", 12.5, 'No product matches "for a friend" at or below $12.50.'),
    ],
)
def test_no_match_repeats_the_query_and_the_ceiling(query, ceiling, text):
    assert search_products(ProductQuery(query=query, max_price=ceiling)) == text


async def test_no_match_is_no_error():
    (output,) = await run(REGISTRY.tools, ("search_products", {"query": "submarine"}))

    assert (output.ok, output.text) == (True, 'No product matches "submarine".')


# --- as a tool --------------------------------------------------------------------------------


def test_model_is_told_name_description_and_described_parameters():
    (spec,) = Toolbox(REGISTRY.tools).specs

    assert spec.name == "search_products"
    assert "catalogue" in spec.description
    assert spec.parameters == {
        "type": "object",
        "description": "Arguments of ``search_products``.",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "description": "Keywords: what the product is, or what it is for.",
            },
            "max_price": {
                "anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}],
                "default": None,
                "description": "Highest price in US dollars, inclusive; null for any price.",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    }


async def test_async_tool_works_beside_it():
    class Order(Options):
        name: str

    async def order(wanted):
        return f"ordered {wanted.name}"

    tools = {
        **REGISTRY.tools,
        "order": Tool(name="order", description="orders", parameters=Order, function=order),
    }
    ordered, searched = await run(
        tools,
        ("order", {"name": "Pocket Tripod"}),
        ("search_products", {"query": "tripod", "max_price": None}),
    )

    assert ordered.text == "ordered Pocket Tripod"
    assert searched.text.startswith("Pocket Tripod — $45.00")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({}, "query: is required"),
        ({"query": ""}, "query: String should have at least 1 character"),
        ({"query": "a", "max_price": "50"}, "max_price: Input should be a valid number"),
        ({"query": "a", "max_price": -1}, "max_price: Input should be greater than or equal to 0"),
        (
            {"query": "a", "colour": "red"},
            "colour: there is no such argument (arguments: query, max_price)",
        ),
    ],
)
async def test_arguments_are_checked(arguments, line):
    (output,) = await run(REGISTRY.tools, ("search_products", arguments))

    assert output.error == "arguments"
    assert output.text.splitlines()[1:] == [line]


# --- in the list of plugins -------------------------------------------------------------------


def test_plugins_lists_the_tool_with_its_plugin():
    registry = PluginRegistry.from_entry_points()
    result = CliRunner().invoke(cli, ["plugins"], obj=registry)
    lines = result.output.splitlines()
    (at,) = (n for n, line in enumerate(lines) if line.startswith("demo_catalog "))

    assert lines[at + 1] == (
        "  tool search_products: Search the product catalogue by keywords, with a price ceiling "
        "if wanted"
    )


def test_plugins_as_json_says_whether_it_has_side_effects():
    registry = PluginRegistry.from_entry_points()
    report = json.loads(CliRunner().invoke(cli, ["plugins", "--json"], obj=registry).output)
    (plugin,) = (entry for entry in report["plugins"] if entry["name"] == "demo_catalog")

    assert plugin["gives"] == {"tool": ["search_products"]}
    (tool,) = plugin["tools"]
    assert tool["description"] == REGISTRY.tools["search_products"].description
    assert (tool["name"], tool["side_effects"], tool["timeout_s"]) == (
        "search_products",
        False,
        30.0,
    )
