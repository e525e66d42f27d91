"""A Django site in one process, and what its checks claim, tried; JSON on stdout.

Argument: a directory with templates. Each claim is tried in forked children, as workers
are: `seen` is what a second worker finds of what the first has kept.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable

from django.conf import settings

import cowpreload
from cowpreload.closing import close_all
from cowpreload.trial_child import private_memory

FOLDER = sys.argv[1]
CACHED = ["django.template.loaders.filesystem.Loader"]


def engine(name: str, loaders: object) -> dict[str, object]:
    return {
        "NAME": name,
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [FOLDER],
        "OPTIONS": {"loaders": loaders},
    }


settings.configure(
    SECRET_KEY="tests only",
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["cowpreload.django", "django.contrib.sessions"],
    CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}},
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    DATABASES={
        "default": {"ENGINE": "pooled", "NAME": "any", "OPTIONS": {"pool": True}},
        "unused": {"ENGINE": "no.such.driver"},
    },
    TEMPLATES=[
        engine("cached", [("django.template.loaders.cached.Loader", CACHED)]),
        engine("plain", CACHED),
    ],
)
urlpatterns: list[object] = []

import django  # noqa: E402

threading.Thread(target=threading.Event().wait, name="rates", daemon=True).start()
django.setup()

from django.contrib.sessions.backends.cache import SessionStore  # noqa: E402
from django.core import checks  # noqa: E402
from django.core.cache import cache  # noqa: E402
from django.db import connections  # noqa: E402
from django.template import engines  # noqa: E402

from cowpreload.django import warming  # noqa: E402

Value = int | bool | str


def in_worker(task: Callable[[], Value]) -> Value:
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(writing, json.dumps(task()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text)  # type: ignore[no-any-return]


def put() -> Value:
    before = private_memory()
    cache.set("large", os.urandom(4 << 20))
    return private_memory() - before


def sign_in() -> Value:
    """The key of a session that this worker finds again."""
    store = SessionStore()
    store.create()
    store["user"] = 1
    store.save()
    key = str(store.session_key)
    return key if SessionStore(key).get("user") == 1 else ""


def compiled_once(name: str) -> bool:
    loader = engines[name].engine.template_loaders[0]
    return loader.get_template("0.html") is loader.get_template("0.html")


def render() -> Value:
    before = private_memory()
    for each in sorted(os.listdir(FOLDER)):
        if each != "broken.html":
            engines["cached"].get_template(each).render({"items": range(3)})
    return private_memory() - before


def render_frozen() -> Value:
    """As a worker of a server of ours does."""
    cowpreload.freeze()
    return in_worker(render)


found = {
    "ids": sorted(each.id for each in checks.run_checks(tags=["cowpreload"])),
    "threads in a worker": in_worker(lambda: threading.active_count()),
    "cached by the first": in_worker(put),
    "seen by the second": in_worker(lambda: cache.get("large") is not None),
    "signed in with the first": bool(key := in_worker(sign_in)),
    "signed in with the second": in_worker(lambda: SessionStore(key).get("user") == 1),
    "compiled once by a cached loader": compiled_once("cached"),
    "compiled once by another": compiled_once("plain"),
    "rendered cold": in_worker(render_frozen),
}
connections["default"].ensure_connection()
close_all()
found["pool"] = connections["default"].pool
warming.warm()
warming.warm()
found["rendered warm"] = in_worker(render_frozen)
print(json.dumps(found))
