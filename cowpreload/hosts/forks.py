"""How the child of a trial is forked where Python forks: gunicorn, the command line.

It needs the native core; uWSGI's interpreters have uwsgi_forks.py.
"""

from __future__ import annotations

from cowpreload import _core
from cowpreload.forks import Forks

FORKS = Forks(_core.end_with)
