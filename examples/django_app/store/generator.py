"""Makes up the shop's data: always the same, from a seeded generator.

Gives plain records for the database (`products`, `reviews`) and the raw material of
the catalogue (`offers`). Takes counts. Must not touch Django, the database or a clock,
so that the catalogue can be built where no database is.
"""

import random
from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

from .words import (
    AUTHORS,
    CATEGORIES,
    COLOURS,
    MATERIALS,
    OPINIONS,
    SELLERS,
    SIZES,
    SYLLABLES,
    TAGS,
)

PRODUCTS = 2_000
REVIEWS = 6_000

SEED = 20_180_323
FIRST_DAY = date(2024, 1, 1)

# Coprime to the number of possible names, so that no two products share a name.
MODEL_STEP = 3_571


class ProductSeed(NamedTuple):
    """A product before it is a row; its id counts from 1, as does its category's."""

    id: int
    category_id: int
    name: str
    material: str
    thing: str
    model: str
    description: str
    price_cents: int
    added: date


class ReviewSeed(NamedTuple):
    """A review before it is a row."""

    id: int
    product_id: int
    author: str
    stars: int
    text: str
    written: date


class OfferSeed(NamedTuple):
    """One seller's offer of one product in one colour and size."""

    product: ProductSeed
    colour: str
    size: str
    seller: str
    price_cents: int
    stock: int
    weight_grams: int
    tags: list[str]


def products() -> Iterator[ProductSeed]:
    """Yield the products of the shop in the order of their ids, from 1."""
    pick = _Picker("products")
    for number in range(1, PRODUCTS + 1):
        category = pick.below(len(CATEGORIES))
        shelf, thing = CATEGORIES[category]
        material, model = pick.one(MATERIALS), _model(number)
        yield ProductSeed(
            id=number,
            category_id=category + 1,
            name=f"{material.title()} {thing} {model.title()}",
            material=material,
            thing=thing,
            model=model,
            description=f"A {thing} of {material}, made for people who like "
            f"{pick.one(COLOURS)} rooms and {pick.one(SIZES)} {shelf.lower()}.",
            price_cents=500 + pick.below(40_000),
            added=FIRST_DAY + timedelta(days=pick.below(365)),
        )


def reviews() -> Iterator[ReviewSeed]:
    """Yield the reviews in the order of their ids, from 1."""
    pick = _Picker("reviews")
    for number in range(1, REVIEWS + 1):
        stars = 1 + pick.below(len(OPINIONS))
        yield ReviewSeed(
            id=number,
            product_id=1 + pick.below(PRODUCTS),
            author=pick.one(AUTHORS),
            stars=stars,
            text=OPINIONS[stars - 1],
            written=FIRST_DAY + timedelta(days=365 + pick.below(365)),
        )


def offers(count: int) -> Iterator[OfferSeed]:
    """Yield `count` offers; every product has its turn before one has a second."""
    pick = _Picker("offers")
    stocked = list(products())
    for number in range(count):
        product = stocked[number % PRODUCTS]
        first_tag = pick.below(len(TAGS))
        yield OfferSeed(
            product=product,
            colour=pick.one(COLOURS),
            size=pick.one(SIZES),
            seller=pick.one(SELLERS),
            price_cents=product.price_cents + pick.below(2_000),
            stock=pick.below(1_000),
            weight_grams=300 + pick.below(9_000),
            tags=[TAGS[first_tag - 2], TAGS[first_tag - 1], TAGS[first_tag]],
        )


def _model(number: int) -> str:
    """Return the made-up name of model `number`; the first 8,000 differ."""
    base = len(SYLLABLES)
    code = number * MODEL_STEP % base**3
    first, rest = divmod(code, base * base)
    return SYLLABLES[first] + SYLLABLES[rest // base] + SYLLABLES[rest % base]


class _Picker:
    """Random choices that are the same on every version of Python.

    Only `Random.random` promises its sequence; `choice` and `randrange` do not.
    """

    def __init__(self, name: str) -> None:
        self._random = random.Random(f"{SEED} {name}").random

    def below(self, bound: int) -> int:
        """Return a whole number from 0 to `bound` - 1."""
        return int(self._random() * bound)

    def one(self, words: tuple[str, ...]) -> str:
        """Return one of `words`."""
        return words[int(self._random() * len(words))]
