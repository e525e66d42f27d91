"""What a session of `warmup-user` is with every engine of Django's: JSON, by engine.

The argument is an empty directory. Users are people.Person, which have an address only.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.conf import settings

HERE = Path(sys.argv[1])
INSTALLED = ["django.contrib.auth", "django.contrib.contenttypes", "people"]
CACHES = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
DUMMY = {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}
settings.configure(
    ROOT_URLCONF=__name__,
    SECRET_KEY="tests only",
    ALLOWED_HOSTS=["*"],
    INSTALLED_APPS=[*INSTALLED, "django.contrib.sessions"],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    AUTH_USER_MODEL="people.Person",
    AUTHENTICATION_BACKENDS=[
        f"{__name__}.Backend",
        "django.contrib.auth.backends.ModelBackend",
    ],
    DATABASES={
        "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": HERE / "db"}
    },
    CACHES={"default": CACHES},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    SESSION_COOKIE_NAME="member",
    SESSION_COOKIE_SECURE=True,
    SESSION_FILE_PATH=str(HERE),
    USE_TZ=True,
)

import django  # noqa: E402

django.setup()

from django.contrib.auth.backends import BaseBackend  # noqa: E402
from django.contrib.auth.signals import user_logged_in  # noqa: E402
from django.contrib.sessions.models import Session  # noqa: E402
from django.core.cache import cache  # noqa: E402
from django.core.handlers.wsgi import WSGIHandler  # noqa: E402
from django.db import connection  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.test.utils import override_settings  # noqa: E402
from django.urls import path  # noqa: E402
from people.models import Person  # noqa: E402

from cowpreload import warmup_user  # noqa: E402
from cowpreload.warmup_wsgi import wsgi_environ  # noqa: E402

LOGINS: list[object] = []
SAID: list[str] = []


def count_login(sender: object, **_: object) -> None:
    LOGINS.append(sender)


class Backend(BaseBackend):
    """Knows nobody."""


def me(request: Any) -> HttpResponse:
    return HttpResponse(str(request.user))


urlpatterns = [path("me", me)]


def asked(cookie: str) -> str:
    """Whom a page sees who sends this cookie."""
    headers = (("Cookie", cookie),)
    environ = wsgi_environ("/me", "localhost", headers=headers)
    return b"".join(WSGIHandler()(environ, lambda *_: None)).decode()


def left() -> int:
    """Sessions that are anywhere."""
    kept = len(getattr(cache, "_cache", ()))
    return Session.objects.count() + len(list(HERE.glob("member*"))) + kept


def visit(name: str = "warm@example.org") -> dict[str, Any]:
    SAID.clear()
    with warmup_user.signed_in(name, SAID.append, 5.0) as cookie:
        seen = asked(cookie) if cookie else ""
        there = left()
    after = asked(cookie) if cookie else ""
    return {
        "name": cookie.partition("=")[0], "seen": seen, "there": there,
        "after": after, "left": left(), "said": list(SAID),
    }  # fmt: skip


def engine(name: str) -> dict[str, Any]:
    with override_settings(SESSION_ENGINE=f"django.contrib.sessions.backends.{name}"):
        found = visit()
        warmup_user.EXPIRES = -1
        try:
            found["expired"] = visit()["said"]
        finally:
            warmup_user.EXPIRES = 600
        cache.clear()
        for each in HERE.glob("member*"):
            each.unlink()
        return found


user_logged_in.connect(count_login)
for model in (Person, Session):
    with connection.schema_editor() as editor:
        editor.create_model(model)
Person.objects.create(email="warm@example.org")
Person.objects.create(email="gone@example.org", is_active=False)
made = {
    name: engine(name)
    for name in ("db", "cached_db", "cache", "file", "signed_cookies")
}
made["nobody"] = visit("nobody@example.org")
made["inactive"] = visit("gone@example.org")
with override_settings(AUTHENTICATION_BACKENDS=[f"{__name__}.Backend"]):
    made["unknown"] = visit()
with override_settings(
    SESSION_ENGINE="django.contrib.sessions.backends.cache", CACHES={"default": DUMMY}
):
    made["not kept"] = visit()
with connection.schema_editor() as editor:
    editor.delete_model(Session)
SAID.clear()
with warmup_user.signed_in("warm@example.org", SAID.append, 5.0) as cookie:
    made["no table"] = {"name": cookie, "said": list(SAID)}
last = [str(each.last_login) for each in Person.objects.all()]
made["logins"] = {"signals": len(LOGINS), "last": last}
json.dump(made, sys.stdout)
