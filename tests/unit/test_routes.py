"""Routes: which pages are found, in which order, and which are never requested."""

from __future__ import annotations

import functools
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from conftest import run

from cowpreload.candidates import Found
from cowpreload.routes import MOST, find, why_not_again
from cowpreload.routes.left_out import why_left_out
from cowpreload.routes.route import Route

if not find_spec("flask"):
    pytest.skip("no flask beside this interpreter", allow_module_level=True)

ROOT = Path(__file__).parent.parent.parent


def paths(found: Found) -> list[str]:
    return [each.path for each in found.candidates]


def site(*rules: str) -> Any:
    from flask import Flask  # a second of each process that collects

    made = Flask("site", static_folder=None)
    for number, rule in enumerate(rules):
        made.add_url_rule(rule, f"page{number}", lambda **given: "ok")
    return made


def test_the_root_comes_first_and_then_what_is_short() -> None:
    found = find(site("/b/c", "/long-name", "/", "/a", "/b/"))
    assert paths(found) == ["/", "/a", "/b/", "/long-name", "/b/c"]


def test_a_rule_that_needs_more_than_its_path_is_no_candidate() -> None:
    app = site("/<int:n>", "/page/<name>")
    app.add_url_rule("/new", "new", lambda: "", methods=["POST"])
    app.add_url_rule("/moved", "moved", redirect_to="/", build_only=True)

    def numbered(n: int) -> str:
        return str(n)

    app.add_url_rule("/first/", "numbered", numbered, defaults={"n": 1})
    app.add_url_rule("/first/<int:n>", "numbered", numbered)
    app.add_url_rule("/other", "other", lambda: "", subdomain="api")
    found = find(app)
    assert paths(found) == ["/first/"]
    assert found.left_out == (("/other", "is of a subdomain"),)


def test_a_path_is_written_as_in_a_request_line() -> None:
    found = find(site("/a b", "/100%", "/ümlaut", "/x?y"), prefix="/sh op")
    assert sorted(paths(found)) == [
        *("/sh%20op/%C3%BCmlaut", "/sh%20op/100%25", "/sh%20op/a%20b"),
        "/sh%20op/x%3Fy",
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("logout", "log-out", "auth.signOut", "user_delete", "DeleteView", "cron"),
        *("reset", "unsubscribe", "shutdown", "clear-cache", "export.csv", "stream"),
        *("static", "media", "sendMail", "oauth2", "new"),
    ],
)
def test_what_ends_or_changes_something_is_never_requested(name: str) -> None:
    assert why_left_out(Route(f"/{name}"))
    assert why_left_out(Route(f"/a/{name}/b"))
    assert why_left_out(Route("/page", (name,)))


@pytest.mark.parametrize(
    "name",
    [
        *("blog/out", "catalogue", "product", "deletions", "login", "news", "resets"),
        *("whats-new", "new_arrivals"),
    ],
)
def test_a_name_that_only_looks_like_it_is_requested(name: str) -> None:
    assert why_left_out(Route(f"/{name}")) == ""


def test_a_view_whose_name_tells_is_left_out_with_the_reason() -> None:
    app = site()
    app.add_url_rule("/gone", "gone", lambda: "")

    def delete_all() -> str:
        raise AssertionError

    app.add_url_rule("/tidy", "tidy", delete_all)
    assert find(app).left_out == (("/tidy", "`delete` removes something"),)


def test_what_is_skipped_below_script_name_is_not_requested_from_traffic() -> None:
    """It is noted of no path, and at the start the setting's paths begin with it."""
    assert why_not_again("/report/1", ["/shop/report"], "/shop") == "warmup-skip"
    assert why_not_again("/report/1", ["/report"], "/shop") == ""


def test_no_way_of_writing_a_path_gets_past_what_is_skipped() -> None:
    """Flask answers all but the last four of the first by the same view."""
    for way in (
        *("/report/daily/", "/%72eport/daily/", "/%72%65%70%6F%72%74/daily/"),
        *("//report/daily/", "/report", "/report%2fdaily/", "/%2Freport/daily/"),
        *("/./report/daily/", "/x/../report/", "/report/../x", "/%2572eport/daily/"),
    ):
        assert why_not_again(way, ["/report/"]) == "warmup-skip", way
    for way in ("/caf%C3%A9/x", "/caf%c3%a9/x", "/caf\u00c3\u00a9/", "/ca%66\xc3%A9"):
        assert why_not_again(way, ["/café/"]) == "warmup-skip", way
        assert why_not_again(way, ["/caf%C3%A9/"]) == "warmup-skip", way
    assert why_not_again("/%2572eport/../x/..", ["/reports", "/r/report"]) == ""
    assert why_not_again("/%64elete/", []) == "`delete` removes something"
    assert why_not_again("/%2564elete/", []) == "`delete` removes something"
    found = find(site("/café/x", "/b"), skip=["/café/"])
    assert paths(found) == ["/b"]


def test_what_the_operator_skips_is_left_out_with_all_below_it() -> None:
    app = site("/a", "/a/b", "/ab", "/listed")
    found = find(app, skip=["/a"], known=["/listed"])
    assert paths(found) == ["/ab"]
    assert dict(found.left_out) == {"/a": "warmup-skip", "/a/b": "warmup-skip"}


def test_no_more_than_a_bound_are_tried() -> None:
    found = find(site(*(f"/p{number:03}" for number in range(MOST + 7))))
    assert len(found.candidates) == MOST
    assert len(found.left_out) == 7


class Slots:
    """Middleware as people write it."""

    def __init__(self, app: Any) -> None:
        self.application = app

    def __call__(self, environ: Any, start_response: Any) -> Any:
        raise AssertionError

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def closed_over(app: Any) -> Any:
    def call(environ: Any, start_response: Any) -> Any:
        return app(environ, start_response)

    return call


def test_the_application_is_found_inside_its_middleware_and_nothing_is_called() -> None:
    from werkzeug.middleware.proxy_fix import ProxyFix

    app = site("/a")
    app.wsgi_app = ProxyFix(app.wsgi_app)
    for wrapped in (
        *(app.wsgi_app, ProxyFix(app), Slots(app), closed_over(app)),
        *(functools.partial(app), Slots(closed_over(Slots(app)))),
    ):
        assert paths(find(wrapped)) == ["/a"], wrapped


def test_applications_below_a_dispatcher_have_its_prefix() -> None:
    from werkzeug.middleware.dispatcher import DispatcherMiddleware

    app = DispatcherMiddleware(site("/", "/api/hidden"), {"/api": site("/x")})
    assert paths(find(app)) == ["/", "/api/x"]


def test_a_framework_that_nobody_knows_gives_none_and_a_line() -> None:
    def plain(environ: Any, start_response: Any) -> Any:
        raise AssertionError

    found = find(plain)
    assert found.candidates == ()
    assert found.note.startswith("no routes are known of test_routes.")
    assert find(Slots(None)).candidates == ()


def test_routes_of_starlette_and_of_what_it_mounts_and_fastapi_includes() -> None:
    fastapi = pytest.importorskip("fastapi")
    from starlette.middleware.cors import CORSMiddleware
    from starlette.responses import PlainTextResponse
    from starlette.routing import Host, Mount, Route, WebSocketRoute
    from starlette.staticfiles import StaticFiles

    def page(request: Any) -> Any:
        return PlainTextResponse("ok")

    app = fastapi.FastAPI(openapi_url=None)
    inner = fastapi.APIRouter(prefix="/inner")
    inner.add_api_route("/a", lambda: 1)
    inner.add_api_route("/a/{n}", lambda n: n)
    inner.add_api_route("/posted", lambda: 1, methods=["POST"])
    deep = fastapi.APIRouter()
    deep.add_api_route("/deep", lambda: 1)
    inner.include_router(deep, prefix="/more")
    app.include_router(inner, prefix="/v1")
    app.mount("/files", StaticFiles(directory=str(ROOT)))
    below = [Route("/", page), WebSocketRoute("/ws", page), Route("/logout", page)]
    app.router.routes.append(Mount("/mounted", routes=below))
    app.router.routes.append(Mount("/user/{name}", routes=below))
    app.router.routes.append(Host("api.example", Mount("/", routes=below)))
    found = find(CORSMiddleware(app, allow_origins=["*"]))
    assert paths(found) == ["/mounted/", "/v1/inner/a", "/v1/inner/more/deep"]
    assert dict(found.left_out) == {"/mounted/logout": "`logout` ends a session"}


DJANGO = """
import json, sys, types
import django
from django.conf import settings
settings.configure(ROOT_URLCONF="site_urls", ALLOWED_HOSTS=["shop.example"],
    LANGUAGE_CODE="de", USE_I18N=True, STATIC_URL="/files/", INSTALLED_APPS=[])
django.setup()
from django.conf.urls.i18n import i18n_patterns
from django.http import HttpResponse
from django.urls import include, path, re_path
from django.utils.translation import gettext_lazy
from django.views import View
urls = sys.modules["site_urls"] = types.ModuleType("site_urls")
def page(request, **given): return HttpResponse("ok")
def delete_user(request): raise AssertionError
class Post(View):
    def post(self, request): raise AssertionError
class Get(View):
    def get(self, request): return HttpResponse("ok")
class Set:
    actions = {"post": "create"}
    def __call__(self, request): raise AssertionError
below = ([path("", page, name="index"), path("x/", page, name="x"),
          path("<int:n>/", page), path("bye/", page, name="logout")], "shop")
urls.urlpatterns = [
    path("", page),
    path("shop/", include(below, namespace="shop")),
    path("user/<name>/", include(below, namespace="user")),
    re_path(r"^old/$", page),
    re_path(r"^items(?:\\\\.(?P<format>json|xml))?/?$", page),
    re_path(r"^number/(\\\\d+)/$", page),
    path("post/", Post.as_view()), path("get/", Get.as_view()), path("set/", Set()),
    path("tidy/", delete_user),
    path("files/x.css", page),
    path("given/", page, {"n": 1}),
    *i18n_patterns(path(gettext_lazy("news/"), page)),
    *i18n_patterns(path("plain/", page), prefix_default_language=False),
    path("<path:rest>", page), path("shadowed/", page),
]
from django.core.wsgi import get_wsgi_application
from cowpreload.routes import find
app = get_wsgi_application()
found = find(app)
print(json.dumps([[each.path for each in found.candidates], dict(found.left_out),
                  found.note]))
from cowpreload.settings import Settings
from cowpreload.warmup import warm_up
paths = [each.path for each in found.candidates]
print(json.dumps(warm_up(app, Settings(warmup=tuple(paths))).warnings))
"""


def test_routes_of_django() -> None:
    """And each answers 200, with a host that ALLOWED_HOSTS lets in."""
    pytest.importorskip("django")
    done = run("-c", DJANGO.replace("\\\\\\\\", "\\\\"))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    found, left_out, note = json.loads(first)
    assert sorted(found) == [
        *("/", "/de/news/", "/get/", "/given/", "/items", "/old/", "/plain/"),
        *("/shop/", "/shop/x/"),
    ]
    assert left_out == {
        "/shop/bye/": "`logout` ends a session",
        "/tidy/": "`delete` removes something",
        "/files/x.css": "is below STATIC_URL",
    }
    assert note == ""
    assert json.loads(second) == []


def test_the_root_of_a_site_whose_pages_are_one_pattern_is_found() -> None:
    """Wagtail's home, which most visitors ask for."""
    pytest.importorskip("django")
    code = r"""
import sys, types
from django.conf import settings
settings.configure(ROOT_URLCONF="site_urls")
import django
django.setup()
from django.http import HttpResponse
from django.urls import path, re_path
urls = sys.modules["site_urls"] = types.ModuleType("site_urls")
def page(request, path): return HttpResponse("ok")
def other(request): return HttpResponse("ok")
urls.urlpatterns = [path("x/", other), re_path(r"^((?:[\w\-]+/)*)$", page)]
from django.core.wsgi import get_wsgi_application
from cowpreload.routes import find
print([each.path for each in find(get_wsgi_application()).candidates])
"""
    assert run("-c", code).stdout == "['/', '/x/']\n"


def test_a_urlconf_that_raises_is_said() -> None:
    pytest.importorskip("django")
    code = """
from django.conf import settings
settings.configure(ROOT_URLCONF="nowhere_at_all")
import django
django.setup()
from django.core.wsgi import get_wsgi_application
from cowpreload.routes import find
print(find(get_wsgi_application()))
"""
    done = run("-c", code)
    assert "raised ModuleNotFoundError: No module named 'nowhere_at_all'" in done.stdout


def test_no_framework_is_imported() -> None:
    code = """
import sys
from cowpreload.routes import find
find(lambda environ, start_response: [])
print([each for each in ("django", "flask", "werkzeug", "starlette", "fastapi")
       if each in sys.modules])
"""
    assert run("-c", code).stdout.strip() == "[]"
