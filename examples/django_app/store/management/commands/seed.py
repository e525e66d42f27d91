"""`manage.py seed`: make the database and fill it, always with the same rows.

Takes nothing; a database that is already filled is left as it is. One that holds
another number of rows is emptied first, so that an interrupted or edited one comes out
like a new one.
"""

from datetime import datetime
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import transaction

from ... import generator
from ...models import Category, Product, Review
from ...words import CATEGORIES

BATCH = 500  # rows an insert; SQLite limits the parameters of a statement


class Command(BaseCommand):
    """Fills the database."""

    help = "Migrate the database and fill it with the example shop (safe to repeat)."

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, then fill in one transaction, so that there is no half a shop."""
        call_command("migrate", interactive=False, verbosity=0)
        with transaction.atomic():
            filled = _is_filled()
            if not filled:
                _empty()
                _fill()
            _ensure_admin()
        self.stdout.write(
            f"{Category.objects.count()} categories, {Product.objects.count()} "
            f"products, {Review.objects.count()} reviews"
            + (" (already there)" if filled else "")
        )


def _is_filled() -> bool:
    counts = (Category.objects.count(), Product.objects.count(), Review.objects.count())
    return counts == (len(CATEGORIES), generator.PRODUCTS, generator.REVIEWS)


def _empty() -> None:
    for model in (Review, Product, Category):
        model.objects.all().delete()


def _fill() -> None:
    """Insert every row under its own id: the catalogue refers to products by id."""
    Category.objects.bulk_create(
        Category(id=number, name=name)
        for number, (name, _) in enumerate(CATEGORIES, start=1)
    )
    Product.objects.bulk_create(
        (
            Product(
                id=seed.id,
                category_id=seed.category_id,
                name=seed.name,
                description=seed.description,
                price_cents=seed.price_cents,
                added=seed.added,
            )
            for seed in generator.products()
        ),
        batch_size=BATCH,
    )
    Review.objects.bulk_create(
        (Review(**seed._asdict()) for seed in generator.reviews()), batch_size=BATCH
    )


def _ensure_admin() -> None:
    """Make the superuser admin/admin unless there is one of that name.

    The salt and the date are fixed so that two databases are equal byte for byte in a
    dump; with a known password there is nothing that a random salt would protect.
    """
    User.objects.get_or_create(
        username="admin",
        defaults={
            "password": make_password("admin", salt="example"),
            "email": "admin@shop.localhost",
            "is_staff": True,
            "is_superuser": True,
            "date_joined": datetime.fromisoformat("2024-01-01T00:00:00+00:00"),
        },
    )
