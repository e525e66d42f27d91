"""The wheel in an empty environment, outside the checkout: all of it is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PYPY

pytestmark = pytest.mark.skipif(PYPY, reason="the bench runs on CPython")
CHECKOUT = Path(__file__).parent.parent.parent


def run(*command: str | Path, directory: Path) -> str:
    """One step; what it printed is in the failure."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        command,
        cwd=directory,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_bench_runs_from_the_wheel_alone(tmp_path: Path) -> None:
    pip = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    wheels = tmp_path / "wheels"
    run(sys.executable, *pip, "-w", wheels, CHECKOUT, directory=tmp_path)
    (wheel,) = wheels.glob("cowpreload-*.whl")
    run(sys.executable, "-m", "venv", "fresh", directory=tmp_path)
    scripts = tmp_path / "fresh" / "bin"
    # Without `plot`: the bench then says so and goes on.
    extras = f"{wheel}[gunicorn,uwsgi,django]"
    run(scripts / "pip", "install", "--quiet", extras, directory=tmp_path)
    said = run(scripts / "cowpreload", "bench", "scale", "--tiny", directory=tmp_path)
    assert "building the uWSGI plugin" in said
    assert said.count("no plots: matplotlib is not installed") == 1
    (result,) = (tmp_path / "cowpreload-bench").glob("scale-*.json")
    assert json.loads(result.read_text())["complete"]
    inside = scripts.parent / "lib"
    assert list(inside.glob("python*/site-packages/cowpreload/examples/django_app"))
