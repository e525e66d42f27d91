"""A session of one user of Django's, for a warm up: made before, and removed after it.

Takes the name of the user; gives what a Cookie header says. The session is written as
Django's login() writes one, but nobody logs in: no signal is sent, and `last_login`
stays. It expires soon by itself, in case the process ends before it is removed. What
fails here is said, and the warm up goes on without a user. Master only; what this opens
(a connection) the caller closes before any fork.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from cowpreload.deadline import Bounds, unsaid
from cowpreload.errors import NotFoundError, fault

# What a warm up may take, in seconds, with a trial of many pages before it.
EXPIRES = 600
WITHOUT = "pages are requested without a user"
# A session's key: files have it in their path, an error in its text.
_KEY = re.compile(r"[0-9a-z]{32,}")


@contextlib.contextmanager
def signed_in(
    name: str | None, say: Callable[[str], None], seconds: float
) -> Iterator[str]:
    """Around a warm up: `sessionid=...` of the user; "" without one.

    Args:
        name: of the user; None: nobody's.
        say: logs a line.
        seconds: that the database may take to make it, and to remove it.
    """
    if not name:
        yield ""
        return
    what = f"warmup-user={name}"
    bounds = Bounds(seconds, say, fatal=False, ends=False)
    try:
        with bounds.over(what):
            store = _made(name, lambda text: say(f"cow: {what}: {text}"))
    except Exception as error:  # noqa: BLE001 - a SystemExit may be the host's
        say(f"cow: {what}: {why(error)}; {WITHOUT}")
        yield ""
        return
    try:
        yield _cookie(store)
    finally:
        try:
            with bounds.over(what):
                store.delete()
        except Exception as error:  # noqa: BLE001
            say(
                f"cow: {what}: its session is not removed: {why(error)}; it expires "
                f"within {EXPIRES // 60} minutes"
            )


def make_and_remove(name: str) -> None:
    """What `signed_in` does, without a limit: for a process that can be ended.

    Raises:
        NotFoundError: as `_made` does; or whatever the application's code raises.
    """
    _made(name, unsaid).delete()


def why(error: BaseException) -> str:
    """The fault for a log line, without the key of any session."""
    text = str(error) if isinstance(error, NotFoundError) else fault(error)
    return _KEY.sub("...", text)


def _cookie(store: Any) -> str:
    from django.conf import settings

    return f"{settings.SESSION_COOKIE_NAME}={store.session_key}"


def _made(name: str, say: Callable[[str], None]) -> Any:
    """The saved session of this user.

    Raises:
        NotFoundError: there is no such user, or none that may log in; or whatever the
            application's code raises.
    """
    conf = sys.modules.get("django.conf")
    if conf is None or not conf.settings.configured:
        raise NotFoundError("the application is none of Django's: use warmup-header")
    from django.contrib import auth

    users = auth.get_user_model()
    try:
        user = users._default_manager.get_by_natural_key(name)
    except users.DoesNotExist:
        raise NotFoundError("there is no such user") from None
    backend = _backend_of(user)
    if getattr(user, "is_superuser", False):
        say("is a superuser; let it be a user who may look and change nothing")
    store = _store()
    try:
        store.cycle_key()  # in the order in which login() does it
        store[auth.SESSION_KEY] = user._meta.pk.value_to_string(user)
        store[auth.BACKEND_SESSION_KEY] = backend
        if hasattr(user, "get_session_auth_hash"):
            store[auth.HASH_SESSION_KEY] = user.get_session_auth_hash()
        _let_expire(store)
        store.save()
        _check(store)
    except BaseException:
        with contextlib.suppress(Exception):
            store.delete()
        raise
    return store


def _store(key: str | None = None) -> Any:
    from django.conf import settings

    return importlib.import_module(settings.SESSION_ENGINE).SessionStore(key)


def _backend_of(user: Any) -> str:
    """The authentication backend that will give this user for the session."""
    from django.conf import settings
    from django.contrib.auth import load_backend

    for path in settings.AUTHENTICATION_BACKENDS:
        get_user = getattr(load_backend(path), "get_user", None)
        if get_user is not None and get_user(user.pk) is not None:
            return str(path)
    if not getattr(user, "is_active", True):
        raise NotFoundError("is not active")
    raise NotFoundError("no backend of AUTHENTICATION_BACKENDS knows this user")


def _let_expire(store: Any) -> None:
    """Soon; before Django 4.1 a session cannot hold a time, and a number of seconds
    does not let a file's expire."""
    import django

    soon = datetime.timedelta(seconds=EXPIRES)
    store.set_expiry(soon if django.VERSION >= (4, 1) else EXPIRES)


def _check(store: Any) -> None:
    """Whether a request with this session will be the user's."""
    from django.contrib.auth import get_user
    from django.http import HttpRequest

    request = HttpRequest()
    request.session = _store(store.session_key)
    if not get_user(request).is_authenticated:
        raise NotFoundError("SESSION_ENGINE does not give its session back")
