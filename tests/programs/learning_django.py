"""The pages of learning.py as a Django site for two hosts.

Each view asks the database first.
"""

from __future__ import annotations

import learning
from django.conf import settings

settings.configure(
    ROOT_URLCONF=__name__,
    SECRET_KEY="tests only",
    ALLOWED_HOSTS=["one.example", "two.example"],
    DATABASES={
        "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
    },
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
)

import django  # noqa: E402

django.setup()

from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connection  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.urls import re_path  # noqa: E402


def page(request):  # type: ignore[no-untyped-def]
    with connection.cursor() as cursor:
        cursor.execute("select 1")
    warming = "cowpreload.warmup" in request.META
    return HttpResponse(learning.answer(request.path, warming))


urlpatterns = [re_path(r"^kind/.*$", page)]
application = get_wsgi_application()
