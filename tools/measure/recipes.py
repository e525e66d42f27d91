"""Applications of others: how each is installed, filled with data, and asked.

Takes a name; gives an application in build/applications/, in a virtual environment of
its own with this checkout beside it. The first time takes minutes and the network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from measure.common import TOOLS, say

ROOT = TOOLS.parent
SCRIPTS = TOOLS / "applications"
GUNICORN = "gunicorn==27.0.1"


@dataclass(frozen=True)
class Recipe:
    """One application. Places in texts: {bin}, {site} (packages), {data}, {scripts}.

    Attributes:
        packages: pinned; what they need is as new as it was on the day.
        app: what gunicorn serves.
        ready: answers 200 to everybody.
        paths: answer 200 to the signed-in user; also warmed up.
        setup: commands, run once in {data}.
        sign_in: prints the value of a Cookie header; none: nobody signs in.
    """

    packages: tuple[str, ...]
    app: str
    ready: str
    paths: tuple[str, ...]
    setup: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)
    sign_in: str = ""


RECIPES = {
    "wagtail": Recipe(
        packages=("wagtail==8.0.1",),
        app="mysite.wsgi:application",
        ready="/",
        paths=(
            "/",
            "/page-3/",
            "/search/?query=page",
            "/admin/",
            "/admin/pages/3/",
            "/admin/images/",
            "/admin/users/",
        ),
        setup=(
            "{bin}/wagtail start mysite .",
            "{bin}/python manage.py migrate --verbosity 0",
            "{bin}/python {scripts}/wagtail_pages.py",
        ),
        environ={
            "DJANGO_SETTINGS_MODULE": "mysite.settings.dev",
            "PYTHONPATH": "{data}",
        },
        sign_in="{bin}/python {scripts}/sign_in.py",
    ),
    "label-studio": Recipe(
        packages=("label-studio==1.23.2",),
        app="core.wsgi:application",
        ready="/health",
        paths=(
            "/projects/",
            "/api/projects?page=1",
            "/api/projects/1/",
            "/api/tasks?project=1&page_size=30",
            "/api/version",
            "/api/current-user/whoami",
        ),
        setup=(
            "{bin}/python {site}/label_studio/manage.py migrate --verbosity 0",
            "{bin}/python {scripts}/label_studio_tasks.py",
        ),
        environ={
            "DJANGO_SETTINGS_MODULE": "core.settings.label_studio",
            "PYTHONPATH": "{site}/label_studio",
            "LABEL_STUDIO_BASE_DATA_DIR": "{data}",
            "DJANGO_DB": "sqlite",
            "COLLECT_ANALYTICS": "0",
            "SENTRY_DSN": "",
        },
        sign_in="{bin}/python {scripts}/sign_in.py",
    ),
    "superset": Recipe(
        packages=(
            "apache-superset==6.1.0",
            # What it forgets to name, and what its pins are too old for.
            "rich",
            "cachetools",
            "Flask-Caching<2.4",
            "cachelib<0.14",
        ),
        app="superset.app:create_app()",
        ready="/health",
        paths=(
            "/users/list/",
            "/api/v1/database/",
            "/api/v1/dataset/",
            "/api/v1/chart/",
            "/api/v1/menu/",
            "/dashboard/list/",
        ),
        setup=("{bin}/superset db upgrade", "{bin}/superset init"),
        environ={
            "FLASK_APP": "superset.app:create_app()",
            "SUPERSET_CONFIG_PATH": "{scripts}/superset_config.py",
            "SUPERSET_HOME": "{data}",
        },
    ),
}


class Installed:
    """An application of this interpreter's, ready to be served."""

    def __init__(self, name: str) -> None:
        self.recipe = RECIPES[name]
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        self.home = ROOT / "build" / "applications" / f"{name}-{version}"
        self.data = self.home / "data"
        bin_ = self.home / "venv" / "bin"
        self.python = bin_ / "python"
        self._places = {
            "bin": str(bin_),
            "site": str(bin_.parent / "lib" / f"python{version}" / "site-packages"),
            "data": str(self.data),
            "scripts": str(SCRIPTS),
        }

    @cached_property
    def environ(self) -> dict[str, str]:
        given = self.recipe.environ.items()
        return {name: text.format(**self._places) for name, text in given}

    def _run(self, command: str) -> str:
        """Run one command of the recipe in the data's folder; its output."""
        words = command.format(**self._places).split()
        done = subprocess.run(
            words,
            cwd=self.data,
            env={**os.environ, **self.environ},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{' '.join(words)}: {done.returncode}\n{done.stderr[-2000:]}")
        return done.stdout

    def install(self) -> None:
        """Install and fill it if that was not done to the end; renew the checkout."""
        done = self.home / "done"
        self.data.mkdir(parents=True, exist_ok=True)
        if not done.exists():
            say(f"installing {self.recipe.packages[0]}")
            shutil.rmtree(self.data)
            self.data.mkdir()
            subprocess.run(
                [sys.executable, "-m", "venv", "--clear", self.python.parent.parent],
                check=True,
            )
            self._pip(*self.recipe.packages, GUNICORN, "cffi>=2")
            for command in self.recipe.setup:
                self._run(command)
            done.touch()
        self._pip("--no-deps", "--force-reinstall", str(ROOT))

    def _pip(self, *what: str) -> None:
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--no-compile"]
        subprocess.run([*pip, "--disable-pip-version-check", *what], check=True)

    def cookie(self) -> str:
        """The Cookie header's value of a user who has signed in, or nothing."""
        lines = (
            self._run(self.recipe.sign_in).split("\n") if self.recipe.sign_in else []
        )
        return next((line for line in lines if "=" in line), "")
