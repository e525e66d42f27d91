"""The page of Nelson's paper alone, on the smallest Django: no shop beside it.

For interpreters that are too old for the shop, such as Debian 12's PyPy: the page and
its five large objects are the shop's own, `store/nelson.py`; the settings are these.
"""

from __future__ import annotations

import gc
from importlib import import_module

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path

settings.configure(
    SECRET_KEY="for-a-benchmark-only",
    ALLOWED_HOSTS=["127.0.0.1", "localhost"],
    ROOT_URLCONF=__name__,
    SHOP_NELSON=True,
)
_nelson = import_module("store.nelson")


def state(request: HttpRequest) -> HttpResponse:
    """Answer without making a large object: whether the server serves."""
    return HttpResponse(f"enabled: {gc.isenabled()}\n", content_type="text/plain")


urlpatterns = [path("", state), path("nelson/", _nelson.page)]
application = get_wsgi_application()
_nelson.start()
# Move what was loaded out of the nursery: else each worker copies it out, for itself.
gc.collect()
