"""The shop's tables in Django's admin."""

from django.contrib import admin

from .models import Category, Product, Review


@admin.register(Category)
class CategoryAdmin(admin.ModelAdmin):
    """Categories by name."""

    search_fields = ("name",)


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):
    """Products with their category and price in cents."""

    list_display = ("name", "category", "price_cents", "added")
    list_filter = ("category",)
    list_select_related = ("category",)
    search_fields = ("name",)


@admin.register(Review)
class ReviewAdmin(admin.ModelAdmin):
    """Reviews; the product is typed as a number because 2,000 options are a lot."""

    list_display = ("product", "author", "stars", "written")
    list_filter = ("stars",)
    list_select_related = ("product",)
    raw_id_fields = ("product",)
