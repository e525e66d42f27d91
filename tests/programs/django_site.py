"""A Django site in one file, for every version from 3.2 on.

`/` uses the database and the cache of its process and says whether its first request
found the connection open. CACHE=raise: closing the cache before the fork fails.
EXIT_LOG gets a line for each cache that is closed: `pid request` at the end of each
request, by Django, and `pid fork` before the fork.
"""

from __future__ import annotations

import json
import os

from django.conf import settings

import cowpreload

DATABASE = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": os.environ["SITE_DB"],
    "CONN_MAX_AGE": None,
}
settings.configure(
    ROOT_URLCONF=__name__,
    SECRET_KEY="tests only",
    ALLOWED_HOSTS=["*"],
    DATABASES={"default": DATABASE},
    CACHES={"default": {"BACKEND": f"{__name__}.Cache"}},
)

import django  # noqa: E402

django.setup()

from django.core.cache import cache  # noqa: E402
from django.core.cache.backends.dummy import DummyCache  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connection  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.urls import path  # noqa: E402

PHASE = ["request"]
INHERITED: dict[int, bool] = {}
cowpreload.before_fork(lambda: PHASE.append("fork"))


class Cache(DummyCache):
    """Notes when it is closed, as a client of memcached would close its socket."""

    def close(self, **kwargs: object) -> None:
        with open(os.environ["EXIT_LOG"], "a") as log:
            log.write(f"{os.getpid()} {PHASE[-1]}\n")
        if os.environ.get("CACHE") == "raise" and PHASE[-1] == "fork":
            PHASE.append("request")
            raise OSError("the cache does not close")


def index(request):  # type: ignore[no-untyped-def]
    INHERITED.setdefault(os.getpid(), connection.connection is not None)
    with connection.cursor() as cursor:
        cursor.execute("select 1")
    cache.get("key")
    inherited = INHERITED[os.getpid()]
    me = {"inherited": inherited, "version": django.VERSION[:2]}
    return HttpResponse(json.dumps(me))


urlpatterns = [path("", index)]
application = get_wsgi_application()
