"""A Django site that asks real servers, by clients that the master has made and used.

`/NAME?m=TEXT` asks by the client NAME: `[TEXT, whose, pid]`, that is what came back,
which process has used the connection before ("" for a new one), and the pid that
answers. `/all` asks by each,
`/grow` adds 20 MB to the worker, `/wait` asks PostgreSQL to wait.

Environment: POSTGRES and REDIS, what to connect to; TLS, a URL, and AUTHORITY, who
signed its certificate; POOL=1: Django's own pool; RECIPES=0: without those of
docs/fork-safety.md.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
from urllib.parse import urlsplit

import django
import httpx
import psycopg_pool
import redis
import redis.asyncio
import requests
from django.conf import settings

import cowpreload

POSTGRES, REDIS = os.environ["POSTGRES"], os.environ["REDIS"]
TLS, AUTHORITY = os.environ["TLS"], os.environ["AUTHORITY"]
HOST, PORT, USER, NAME = (each.partition("=")[2] for each in POSTGRES.split())
POOL = os.environ.get("POOL") == "1"
RECIPES = os.environ.get("RECIPES") != "0"
GROWN: list[bytearray] = []

settings.configure(
    ROOT_URLCONF=__name__,
    SECRET_KEY="tests only",
    DEBUG_PROPAGATE_EXCEPTIONS=True,  # into the log
    ALLOWED_HOSTS=["*"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": HOST,
            "PORT": PORT,
            "USER": USER,
            "NAME": NAME,
            "CONN_MAX_AGE": 0 if POOL else 600,
            "OPTIONS": {"pool": {"min_size": 1, "max_size": 4}} if POOL else {},
        }
    },
    CACHES={
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": f"unix://{REDIS}",
        }
    },
)
django.setup()

from django.core.asgi import get_asgi_application  # noqa: E402
from django.core.cache import cache  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connection  # noqa: E402
from django.http import HttpResponse, JsonResponse  # noqa: E402
from django.urls import path  # noqa: E402


def ask(cursor, text):  # type: ignore[no-untyped-def]
    cursor.execute("select %s::text, current_setting('application_name')", [text])
    found, whose = cursor.fetchone()
    if not whose:
        cursor.execute(f"set application_name to '{os.getpid()}'")
        cursor.connection.commit()
    return found, whose


def by_django(text):  # type: ignore[no-untyped-def]
    cache.set(f"django {text}", text)
    with connection.cursor() as cursor:
        found, whose = ask(cursor, text)
    return (found if cache.get(f"django {text}") == text else "another"), whose


def new_pool():  # type: ignore[no-untyped-def]
    return psycopg_pool.ConnectionPool(POSTGRES, min_size=1, max_size=2, open=True)


pool = new_pool()
client = redis.Redis(unix_socket_path=REDIS)
async_client = redis.asyncio.Redis(unix_socket_path=REDIS)
session = requests.Session()
session.trust_env, session.verify = False, AUTHORITY
context = ssl.create_default_context(cafile=AUTHORITY)
http = httpx.Client(verify=context)
tickets: list[ssl.SSLSession] = []


def by_pool(text):  # type: ignore[no-untyped-def]
    with pool.connection(timeout=30) as taken, taken.cursor() as cursor:
        return ask(cursor, text)


def by_redis(text):  # type: ignore[no-untyped-def]
    with client.pipeline() as pipe:
        pipe.set(f"redis {text}", text).get(f"redis {text}").client_getname()
        pipe.client_setname(str(os.getpid()))
        _, found, whose, _ = pipe.execute()
    return found.decode(), whose or ""


def by_requests(text):  # type: ignore[no-untyped-def]
    return session.get(f"{TLS}/{text}").json()[0], ""


def by_httpx(text):  # type: ignore[no-untyped-def]
    return http.get(f"{TLS}/{text}").json()[0], ""


def by_ticket(text):  # type: ignore[no-untyped-def]
    """A connection each time, that resumes the session of one of the master's."""
    url = urlsplit(TLS)
    address = str(url.hostname), int(url.port or 0)
    with (
        socket.create_connection(address) as plain,
        context.wrap_socket(
            plain,
            server_hostname=url.hostname,
            session=tickets[0] if tickets else None,
        ) as wrapped,
    ):
        wrapped.sendall(f"GET /{text} HTTP/1.0\r\n\r\n".encode())
        answer = b""
        while part := wrapped.recv(65536):
            answer += part
        if not tickets and wrapped.session is not None:
            tickets.append(wrapped.session)
    return json.loads(answer.rpartition(b"\r\n\r\n")[2])[0], ""


CLIENTS = {
    "django": by_django,
    "pool": by_pool,
    "redis": by_redis,
    "requests": by_requests,
    "httpx": by_httpx,
    "ticket": by_ticket,
}

if RECIPES:  # as docs/fork-safety.md has them
    cowpreload.before_fork(session.close)

    @cowpreload.before_fork
    def close_pool() -> None:
        pool.close()

    @cowpreload.after_fork
    def open_pool() -> None:
        global pool
        pool = new_pool()

    @cowpreload.before_fork
    def renew_http() -> None:
        global http
        http.close()
        http = httpx.Client(verify=context)


def view(request, name):  # type: ignore[no-untyped-def]
    answer = CLIENTS[name](request.GET.get("m", "warm"))
    return JsonResponse([*answer, os.getpid()], safe=False)


async def asynchronous(request):  # type: ignore[no-untyped-def]
    text = request.GET.get("m", "warm")
    await async_client.set(f"async {text}", text)
    async with async_client.pipeline() as pipe:
        pipe.get(f"async {text}").client_getname()
        pipe.client_setname(str(os.getpid()))
        found, whose, _ = await pipe.execute()
    answer = [found.decode(), whose or "", os.getpid()]
    return JsonResponse(answer, safe=False)


def everything(request):  # type: ignore[no-untyped-def]
    return JsonResponse({name: each("warm") for name, each in CLIENTS.items()})


def grow(request):  # type: ignore[no-untyped-def]
    GROWN.append(bytearray(b"x") * (20 << 20))
    return HttpResponse("grown")


def wait(request):  # type: ignore[no-untyped-def]
    with connection.cursor() as cursor:
        cursor.execute("select pg_sleep(%s)", [request.GET.get("s", "0")])
    return HttpResponse("waited")


urlpatterns = [
    path("", lambda request: HttpResponse("ok")),
    path("all", everything),
    path("grow", grow),
    path("wait", wait),
    path("async", asynchronous),
    path("<name>", view),
]
for each in CLIENTS.values():
    each("import")
application = get_wsgi_application()
asgi = get_asgi_application()
