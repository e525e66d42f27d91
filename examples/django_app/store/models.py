"""The tables: categories, products and what customers wrote about them."""

from django.db import models
from django.urls import reverse


class Category(models.Model):
    """A shelf of the shop, such as "Lamps"."""

    name = models.CharField(max_length=40, unique=True)

    class Meta:
        ordering = ("name",)
        verbose_name_plural = "categories"

    def __str__(self) -> str:
        return self.name


class Product(models.Model):
    """A thing sold here; the catalogue in memory holds the offers for it."""

    category = models.ForeignKey(
        Category, on_delete=models.CASCADE, related_name="products"
    )
    name = models.CharField(max_length=80, unique=True)
    description = models.TextField()
    price_cents = models.PositiveIntegerField()  # the list price, in euro cents
    added = models.DateField()

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        """Return the address of the product's page."""
        return reverse("product", args=[self.pk])


class Review(models.Model):
    """What one customer thinks of one product."""

    product = models.ForeignKey(
        Product, on_delete=models.CASCADE, related_name="reviews"
    )
    author = models.CharField(max_length=40)
    stars = models.PositiveSmallIntegerField()  # 1 to 5
    text = models.TextField()
    written = models.DateField()

    class Meta:
        ordering = ("-written", "id")

    def __str__(self) -> str:
        return f"{self.author}: {self.stars} stars for {self.product_id}"
