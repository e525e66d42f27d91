"""The catalogue: every offer of the shop, held in memory by the application.

Takes a number of offers, gives pages, parts and search results from `current()`. It is
what a server with many workers should have in memory once: a large, read-only
structure of small objects, each of which CPython counts references to when it is read.
Must not read the database (a missing one does not stop the load) nor change after it
was built.

Pages number from 1, and so do the parts of `part`: together they hold every offer.
"""

import functools
import itertools
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass

from django.conf import settings

from . import generator
from .words import CATEGORIES

# What an offer and its entries in the index take, measured on CPython 3.11 and 3.13.
OFFERS_PER_MB = 1_000

PART_SIZE = 200  # offers in one part of the whole catalogue


@dataclass(slots=True)
class Offer:
    """One seller's offer of a product, the catalogue's record."""

    id: int  # from 1; its place in the catalogue
    product_id: int  # row of the database, 1 to `generator.PRODUCTS`
    sku: str
    title: str
    seller: str
    price_cents: int  # euro cents
    stock: int  # pieces
    attributes: dict[str, str]
    tags: list[str]
    words: tuple[str, ...]  # what it is found by


class Catalogue:
    """All offers, with an index of the words that find them."""

    def __init__(self, offers: list[Offer]) -> None:
        self.offers = offers
        self._by_word: dict[str, list[int]] = defaultdict(list)
        self._by_product: dict[int, list[int]] = defaultdict(list)
        for offer in offers:
            self._by_product[offer.product_id].append(offer.id)
            for word in offer.words:
                self._by_word[word].append(offer.id)
        # From here on a missing key is not an entry to make: reading must not write.
        self._by_word = dict(self._by_word)
        self._by_product = dict(self._by_product)

    @property
    def parts(self) -> int:
        """How many parts of `PART_SIZE` offers there are; the last may be shorter."""
        return -(-len(self.offers) // PART_SIZE)

    def part(self, number: int) -> list[Offer]:
        """Return part `number`, from 1 to `parts`, or nothing for another number."""
        if not 1 <= number <= self.parts:
            return []
        return self.offers[(number - 1) * PART_SIZE : number * PART_SIZE]

    def search(self, query: str, limit: int) -> list[Offer]:
        """Return the first `limit` offers that all words of `query` find."""
        lists = [self._by_word.get(word, []) for word in query.lower().split()]
        if not lists:
            return []
        # The ids are in order, so looking one up needs no set made of a whole list.
        rarest, *others = sorted(lists, key=len)
        found = (i for i in rarest if all(_holds(ids, i) for ids in others))
        return [self.offers[i - 1] for i in itertools.islice(found, limit)]

    def of_product(self, product_id: int, limit: int) -> list[Offer]:
        """Return the first `limit` offers of one product."""
        ids = self._by_product.get(product_id, [])[:limit]
        return [self.offers[i - 1] for i in ids]

    def related(self, product_id: int, limit: int) -> list[Offer]:
        """Return offers of at most `limit` other products of the same kind."""
        found: dict[int, Offer] = {}
        for offer in self.of_product(product_id, 1):
            material, thing = offer.words[:2]
            for other in self.search(f"{material} {thing}", 10 * limit):
                if other.product_id != product_id:
                    found.setdefault(other.product_id, other)
        return list(found.values())[:limit]


@functools.cache
def current() -> Catalogue:
    """Return the catalogue of this process, built at the first call."""
    return build(settings.SHOP_CATALOGUE_MB * OFFERS_PER_MB)


def build(count: int) -> Catalogue:
    """Return a catalogue of `count` offers, the same for the same count."""
    return Catalogue(
        [
            _offer(number, seed)
            for number, seed in enumerate(generator.offers(count), start=1)
        ]
    )


def _holds(ids: list[int], wanted: int) -> bool:
    """Say whether `ids`, which are in order, hold `wanted`."""
    place = bisect_left(ids, wanted)
    return place < len(ids) and ids[place] == wanted


def _offer(number: int, seed: generator.OfferSeed) -> Offer:
    product = seed.product
    category = CATEGORIES[product.category_id - 1][0]
    return Offer(
        id=number,
        product_id=product.id,
        sku=f"{product.model.upper()}-{product.id:04}-{number:07}",
        title=f"{product.name}, {seed.colour}, {seed.size}",
        seller=seed.seller,
        price_cents=seed.price_cents,
        stock=seed.stock,
        attributes={
            "category": category,
            "colour": seed.colour,
            "size": seed.size,
            "weight": f"{seed.weight_grams / 1000:.2f} kg",
        },
        tags=seed.tags,
        words=(
            product.material,
            product.thing,
            product.model,
            seed.colour,
            category.lower(),
        ),
    )
