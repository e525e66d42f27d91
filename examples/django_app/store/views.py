"""The pages of the shop.

Lists, search and browsing read the catalogue in memory; a product's page reads the
database. Nothing here changes either.
"""

from django.core.paginator import Paginator
from django.db.models import Avg
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render

from . import catalogue
from .models import Product

PAGE_SIZE = 50  # offers on a page of the list
SEARCHED = 300  # offers that a search reads before it orders them
SHOWN = 60  # offers that a search shows
OFFERS_A_PRODUCT = 12
RELATED = 8


def index(request: HttpRequest) -> HttpResponse:
    """`/?page=N`: the list; a page that is not there gives the nearest one."""
    pages = Paginator(catalogue.current().offers, PAGE_SIZE)
    page = pages.get_page(request.GET.get("page"))
    return render(request, "store/index.html", {"page": page, "pages": pages})


def product(request: HttpRequest, product_id: int) -> HttpResponse:
    """`/product/<id>/`: a product of the database, its reviews, and its offers."""
    row = get_object_or_404(
        Product.objects.select_related("category").annotate(
            average_stars=Avg("reviews__stars")
        ),
        pk=product_id,
    )
    held = catalogue.current()
    context = {
        "product": row,
        "reviews": row.reviews.all(),
        "offers": held.of_product(product_id, OFFERS_A_PRODUCT),
        "related": held.related(product_id, RELATED),
    }
    return render(request, "store/product.html", context)


def search(request: HttpRequest) -> HttpResponse:
    """`/search/?q=words`: the cheapest of the first offers that all words find."""
    query = request.GET.get("q", "").strip()
    found = catalogue.current().search(query, SEARCHED)
    found.sort(key=lambda offer: (offer.stock == 0, offer.price_cents))
    context = {"query": query, "found": len(found), "offers": found[:SHOWN]}
    return render(request, "store/search.html", context)


def parts(request: HttpRequest) -> JsonResponse:
    """`/browse/`: how many parts there are to browse, for whoever wants to read all."""
    held = catalogue.current()
    return JsonResponse(
        {
            "parts": held.parts,
            "part_size": catalogue.PART_SIZE,
            "offers": len(held.offers),
        }
    )


def browse(request: HttpRequest, part: int) -> HttpResponse:
    """`/browse/<part>/`: 200 offers, every field of each; all parts are everything."""
    held = catalogue.current()
    offers = held.part(part)
    if not offers:
        raise Http404(f"part={part}: must be from 1 to {held.parts}")
    context = {
        "part": part,
        "parts": held.parts,
        "offers": offers,
        "value_cents": sum(offer.price_cents * offer.stock for offer in offers),
    }
    return render(request, "store/browse.html", context)
