"""Warm up: requests without a socket."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import run

from cowpreload.errors import WarmupError
from cowpreload.interface import is_asgi
from cowpreload.paths import in_full
from cowpreload.settings import Settings
from cowpreload.warmup import warm_up
from cowpreload.warmup_wsgi import wsgi_environ

ROOT = Path(__file__).parent.parent.parent


class Recorder:
    """A WSGI application that remembers its requests."""

    def __init__(self, status: str = "200 OK") -> None:
        self.status = status
        self.environs: list[dict[str, Any]] = []
        self.closed = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> "Recorder":
        self.environs.append(environ)
        start_response(self.status, [])
        return self

    def __iter__(self) -> Iterator[bytes]:
        yield b"body"

    def close(self) -> None:
        self.closed += 1


def test_each_path_is_requested_and_each_answer_closed() -> None:
    app = Recorder()
    report = warm_up(app, Settings(warmup=("/a", "/b?q=1"), warmup_repeat=3))
    assert report.requests == 6
    assert app.closed == 6
    assert {each["PATH_INFO"] for each in app.environs} == {"/a", "/b"}
    assert app.environs[-1]["QUERY_STRING"] == "q=1"


def test_a_configured_host_is_sent() -> None:
    app = Recorder()
    warm_up(app, Settings(warmup=("/",), warmup_host="shop.example:8000"))
    assert app.environs[0]["HTTP_HOST"] == "shop.example:8000"
    assert app.environs[0]["SERVER_PORT"] == "8000"


def test_a_path_that_answers_500_stops_the_start() -> None:
    with pytest.raises(WarmupError, match=r"warmup=/a: answered 500; "):
        warm_up(Recorder("500 Oh"), Settings(warmup=("/a",)))


@pytest.mark.parametrize("statuses", [[500, 200], [0, 200], [0, 0]])
def test_one_bad_answer_of_a_path_is_enough(statuses: list[int]) -> None:
    answers = iter(statuses)

    def app(environ: Any, start_response: Any) -> Any:
        status = next(answers)
        if status:
            start_response(f"{status} X", [])
        return []

    with pytest.raises(WarmupError, match="warmup=/a: answered"):
        warm_up(app, Settings(warmup=("/a",), warmup_repeat=2))


def test_a_path_that_exits_stops_the_start_as_one_that_raises() -> None:
    def app(environ: Any, start_response: Any) -> Any:
        raise SystemExit(0)

    with pytest.raises(WarmupError, match=r"warmup=/a: raised SystemExit"):
        warm_up(app, Settings(warmup=("/a",)))


def test_a_lifespan_that_waits_for_ever_does_not_stop_the_start() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        while scope["type"] == "lifespan":
            message = await receive()
            await send({"type": message["type"] + ".complete"})
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    assert warm_up(app, Settings(warmup=("/a",), warmup_repeat=1)).requests == 1


def test_a_path_that_raises_stops_the_start() -> None:
    def app(environ: Any, start_response: Any) -> Any:
        raise ZeroDivisionError("oh")

    with pytest.raises(WarmupError, match=r"warmup=/a: raised ZeroDivisionError: oh"):
        warm_up(app, Settings(warmup=("/a",)))


def test_a_path_that_answers_404_is_a_warning() -> None:
    report = warm_up(Recorder("404 Not Found"), Settings(warmup=("/a",)))
    assert len(report.warnings) == 1
    assert "path=/a status=404" in report.warnings[0]


def test_a_redirect_is_a_warning_too() -> None:
    report = warm_up(Recorder("301 Moved"), Settings(warmup=("/a",)))
    assert "status=301: warms a redirect" in report.warnings[0]


DJANGO = """
from django.conf import settings
settings.configure(ALLOWED_HOSTS=["*", ".shop.example"], SECURE_SSL_REDIRECT=True,
    SECURE_PROXY_SSL_HEADER=("HTTP_X_PROTO", "https"), ROOT_URLCONF=__name__,
    MIDDLEWARE=["django.middleware.security.SecurityMiddleware"])
import django; django.setup()
from django.http import HttpResponse
from django.urls import path
urlpatterns = [path("", lambda request: HttpResponse(request.get_host()))]
from cowpreload.settings import Settings
from cowpreload.warmup import warm_up
if KIND == "wsgi":
    from django.core.wsgi import get_wsgi_application as get
else:
    from django.core.asgi import get_asgi_application as get
report = warm_up(get(), Settings(warmup=("/",), warmup_repeat=1))
print(report.requests, report.warnings)
import threading; print(threading.active_count())
"""


@pytest.mark.parametrize("kind", ["wsgi", "asgi"])
def test_django_accepts_the_host_and_does_not_redirect(kind: str) -> None:
    done = run("-c", f"KIND = {kind!r}\n{DJANGO}")
    assert done.stdout.splitlines() == [
        "1 ()",
        "1",
    ], done.stderr


def test_a_mounted_application_gets_its_prefix() -> None:
    environ = wsgi_environ("/shop/list?p=2", "localhost", "/shop")
    assert (environ["SCRIPT_NAME"], environ["PATH_INFO"]) == ("/shop", "/list")


@pytest.mark.parametrize(
    ("served", "path"),
    [("/x", "/x"), ("/application/x", "/application/x"), ("/app/x", "/app/x")],
)
@pytest.mark.parametrize("prefix", ["", "/app", "/a%20p"])
def test_the_page_that_was_served_below_a_prefix_is_the_one_that_is_requested(
    prefix: str, served: str, path: str
) -> None:
    """As gunicorn takes SCRIPT_NAME from the environment, and notes what is below."""
    environ = wsgi_environ(in_full(prefix, served), "localhost", prefix)
    assert (environ["SCRIPT_NAME"], environ["PATH_INFO"]) == (prefix, path)
    assert environ["REQUEST_URI"] == environ["RAW_URI"] == prefix + served


def test_a_path_that_only_begins_like_the_prefix_is_not_below_it() -> None:
    assert wsgi_environ("/application/x", "h", "/app")["PATH_INFO"] == "/application/x"
    assert wsgi_environ("/app", "h", "/app")["PATH_INFO"] == "/"


def test_asgi_with_lifespan_leaves_no_loop_and_no_thread() -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                seen.append(message["type"])
                await send({"type": message["type"] + ".complete"})
                if message["type"].endswith("shutdown"):
                    return
        await asyncio.get_running_loop().run_in_executor(
            None, seen.append, scope["path"]
        )
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    assert is_asgi(app)
    assert warm_up(app, Settings(warmup=("/a",), warmup_repeat=2)).requests == 2
    assert seen == ["lifespan.startup", "/a", "/a", "lifespan.shutdown"]
    assert threading.active_count() == 1


def test_asgi_without_lifespan_is_warmed_all_the_same() -> None:
    class App:
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            assert scope["type"] == "http", "no lifespan here"
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"x"})

    app = App()
    assert is_asgi(app)
    assert warm_up(app, Settings(warmup=("/a",), warmup_repeat=2)).requests == 2


HEADERS = (("Cookie", "a=1"), ("X-Token", "s3cret"), ("cookie", "b=2"))


def test_configured_headers_are_sent_and_repeated_ones_joined() -> None:
    environ = wsgi_environ(
        "/", "localhost", headers=(*HEADERS, ("Content-Type", "text/x"))
    )
    assert environ["HTTP_COOKIE"] == "a=1; b=2"
    assert environ["HTTP_X_TOKEN"] == "s3cret"
    assert environ["CONTENT_TYPE"] == "text/x"
    assert environ["cowpreload.warmup"] is True


def test_configured_headers_are_sent_to_asgi_too() -> None:
    scopes = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http", "no lifespan here"
        scopes.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    warm_up(app, Settings(warmup=("//a?b=1,2",), warmup_header=HEADERS))
    headers = dict(scopes[0]["headers"])
    assert headers[b"cookie"] == b"a=1; b=2"
    assert headers[b"x-token"] == b"s3cret"
    assert scopes[0]["cowpreload.warmup"] is True
    assert (scopes[0]["path"], scopes[0]["query_string"]) == ("//a", b"b=1,2")


@pytest.mark.parametrize("kind", ["wsgi", "asgi"])
def test_a_warm_up_leaves_no_alarm_and_no_handler(kind: str) -> None:
    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http", "no lifespan here"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    before = signal.getsignal(signal.SIGALRM)
    warm_up(asgi if kind == "asgi" else Recorder(), Settings(warmup=("/a",)))
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_an_alarm_of_the_application_is_left_alone() -> None:
    rung = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 600)
        warm_up(Recorder(), Settings(warmup=("/a",)))
        assert 500 < signal.getitimer(signal.ITIMER_REAL)[0] <= 600
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


LOGIN = """
import sys, types
from django.conf import settings
settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="tests only",
    SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware"] + MORE)
import django; django.setup()
if MORE:
    sys.modules["recipe"] = recipe = types.ModuleType("recipe")
    exec(RECIPE, recipe.__dict__)
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.urls import path
urlpatterns = [path("", login_required(lambda request: HttpResponse("ok")))]
from cowpreload.settings import Settings
from cowpreload.warmup import warm_up
from django.core.wsgi import get_wsgi_application
print(warm_up(get_wsgi_application(), Settings(warmup=("/",))).warnings)
"""


@pytest.mark.parametrize("recipe", [False, True], ids=["without", "documented"])
def test_the_documented_middleware_warms_a_page_behind_a_login(recipe: bool) -> None:
    text = (ROOT / "docs" / "warmup-login.md").read_text()
    code = next(
        each for each in text.split("```python\n") if "class WarmupUser" in each
    )
    code = code.partition("```")[0]
    more = ["recipe.WarmupUser"] if recipe else []
    done = run("-c", f"MORE = {more!r}\nRECIPE = {code!r}\n{LOGIN}")
    assert done.returncode == 0, done.stderr
    assert ("status=302" not in done.stdout) is recipe


def test_a_warm_up_leaves_no_native_thread() -> None:
    """One that is about to end would be found by the audit, and refused by strict."""
    before = set(os.listdir("/proc/self/task"))
    for _ in range(300):
        warm_up(Recorder(), Settings(warmup=("/a",), warmup_repeat=1))
        assert set(os.listdir("/proc/self/task")) <= before


def test_a_script_name_that_asgi_workers_do_not_look_at_is_in_no_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gunicorn.workers.sync import SyncWorker

    from cowpreload.hosts.gunicorn_interface import script_name

    asgi = pytest.importorskip("gunicorn.workers.gasgi").ASGIWorker
    monkeypatch.setenv("SCRIPT_NAME", "/app/")
    assert (script_name(SyncWorker), script_name(asgi)) == ("/app", "")
