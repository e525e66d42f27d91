"""A Django site with pages behind a login, in one file; SITE_DB is its database.

Each page answers `pid maker user`; below /members/NAME/ the first request of a process
makes 4 MB of heap for each NAME, and `maker` is the process that did. /fails/ fails for
whoever is logged in. A login that sends its signal is said on stderr.
Who holds a lock on the database SITE_DB.gate keeps all waiting who ask for a user by
name. `python members.py` makes the database: `warm`, who may do nothing, `boss`, who
may all, and `visitor`, whose session has the key VISITOR.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from typing import Any

from django.conf import settings

VISITOR = "visitor" * 5
NAME = "members"
settings.configure(
    ROOT_URLCONF=NAME,
    SECRET_KEY="tests only",
    ALLOWED_HOSTS=["*"],
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.environ["SITE_DB"],
            "CONN_MAX_AGE": None,
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    LOGIN_URL="/login/",
)

import django  # noqa: E402

django.setup()

from django.contrib.auth.decorators import login_required  # noqa: E402
from django.contrib.auth.models import UserManager  # noqa: E402
from django.contrib.auth.signals import user_logged_in  # noqa: E402
from django.core.asgi import get_asgi_application  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import HttpResponse, HttpResponseRedirect  # noqa: E402
from django.urls import path  # noqa: E402

MADE: dict[str, tuple[int, list[object]]] = {}


def gated(manager: Any, name: str) -> Any:
    """As a database that answers nothing: a wait in C, which no alarm ends."""
    file = f"{os.environ['SITE_DB']}.gate"
    with contextlib.closing(sqlite3.connect(file, timeout=600)) as gate:
        gate.execute("begin immediate")
    return by_name(manager, name)


by_name = UserManager.get_by_natural_key
UserManager.get_by_natural_key = gated


def answer(request: Any, name: str) -> HttpResponse:
    if name not in MADE:
        heap: list[object] = [{"number": i, "text": f"{name} {i}"} for i in range(9000)]
        MADE[name] = os.getpid(), heap
    return HttpResponse(f"{os.getpid()} {MADE[name][0]} {request.user.get_username()}")


def index(request: Any) -> HttpResponse:
    return HttpResponse("ok")


def login(request: Any) -> Any:
    if request.user.is_authenticated:
        return HttpResponseRedirect("/account/")
    return answer(request, "login")


@login_required
def account(request: Any) -> HttpResponse:
    return answer(request, "account")


@login_required
def member(request: Any, name: str, number: int) -> HttpResponse:
    return answer(request, name)


@login_required
def fails(request: Any) -> HttpResponse:
    raise ZeroDivisionError("for members")


def said(sender: object, **_: object) -> None:
    os.write(2, b"user_logged_in\n")


user_logged_in.connect(said)
urlpatterns = [
    path("", index),
    path("login/", login),
    path("account/", account),
    path("members/<str:name>/<int:number>/", member),
    path("fails/", fails),
]
application = get_wsgi_application()
asgi = get_asgi_application()


def fill() -> None:
    from django.contrib.auth.models import User
    from django.contrib.sessions.backends.db import SessionStore
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    User.objects.create(username="warm")
    User.objects.create(username="boss", is_superuser=True)
    visitor = User.objects.create(username="visitor")
    store = SessionStore()
    store["_auth_user_id"] = str(visitor.pk)
    store["_auth_user_backend"] = "django.contrib.auth.backends.ModelBackend"
    store["_auth_user_hash"] = visitor.get_session_auth_hash()
    store._session_key = VISITOR
    store.save(must_create=True)


if __name__ == "__main__":
    sys.modules[NAME] = sys.modules[__name__]
    fill()
