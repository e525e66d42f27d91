"""Addresses of the shop; the diagnostic ones only where the settings allow them."""

from django.conf import settings
from django.urls import path

from . import nelson, probes, views

urlpatterns = [
    path("", views.index, name="index"),
    path("product/<int:product_id>/", views.product, name="product"),
    path("search/", views.search, name="search"),
    path("browse/", views.parts, name="parts"),
    path("browse/<int:part>/", views.browse, name="browse"),
]

if settings.SHOP_NELSON:
    urlpatterns += [path("nelson/", nelson.page)]

if settings.SHOP_PROBES:
    urlpatterns += [
        path("probe/grow/", probes.grow),
        path("probe/release/", probes.release),
        path("probe/hang/", probes.hang),
        path("probe/me/", probes.me),
        path("probe/sum/", probes.sum_squares),
    ]
