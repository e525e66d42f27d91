"""Settings of the example shop; this is the only file that reads the environment.

Variable           Default     Meaning
SHOP_DB            db.sqlite3  path of the SQLite database (beside manage.py)
SHOP_DEBUG         0           1 turns Django's debug pages on
SHOP_CATALOGUE_MB  145         size of the catalogue held in memory, in MB
SHOP_NELSON        1           0 leaves out /nelson/ and its five large objects
SHOP_PROBES        1           0 leaves out /probe/
"""

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent


def _megabytes(name: str, default: int) -> int:
    """Return the environment's `name` in MB, a whole number of at least one."""
    text = os.environ.get(name, str(default))
    if not text.isdecimal() or int(text) < 1:
        raise ImproperlyConfigured(f"{name}={text!r}: must be a whole number above 0")
    return int(text)


# -- The shop's own ------------------------------------------------------------------

# With Django beside it this gives the master at least 150 MB to share on every version
# of CPython: much more than a worker needs, so that a copied page shows in the figures.
SHOP_CATALOGUE_MB = _megabytes("SHOP_CATALOGUE_MB", 145)
SHOP_NELSON = os.environ.get("SHOP_NELSON", "1") != "0"

# The probes eat memory and time on request: never let the outside reach them.
SHOP_PROBES = os.environ.get("SHOP_PROBES", "1") != "0"

# -- Django's ------------------------------------------------------------------------

# A key for an example on one's own machine. A real site keeps its key to itself.
SECRET_KEY = "development-only-this-key-is-public"
DEBUG = os.environ.get("SHOP_DEBUG", "0") == "1"
ALLOWED_HOSTS = ["shop.localhost", "localhost", "127.0.0.1"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "store.apps.StoreConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "shop.urls"
WSGI_APPLICATION = "shop.wsgi.application"
ASGI_APPLICATION = "shop.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {
            # Spelled out because it matters here: a template that the warm up has
            # compiled stays in the master and is inherited by every worker.
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    ["django.template.loaders.app_directories.Loader"],
                )
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("SHOP_DB") or BASE_DIR / "db.sqlite3",
        # Closed after every request, so that no connection of the warm up is alive at
        # the fork: SQLite forbids to carry one into a child.
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            "timeout": 20,  # seconds to wait for another worker's write
            # Takes the write lock at the start of a transaction: one that reads first
            # and then writes would fail at once, without waiting.
            "transaction_mode": "IMMEDIATE",
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The cheapest hasher, so that a log-in of a test costs nothing. Never on a real site.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

STATIC_URL = "static/"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

# Django prints nothing about a failed request unless DEBUG is on: let the servers'
# error output have the traceback.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler", "level": "ERROR"}},
    "loggers": {"django": {"handlers": ["console"]}},
}
