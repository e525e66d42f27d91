"""Registers the shop with Django; the catalogue is loaded by `shop.startup`."""

from django.apps import AppConfig


class StoreConfig(AppConfig):
    """The shop's application."""

    name = "store"
