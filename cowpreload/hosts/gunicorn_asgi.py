"""The worker class `cow_asgi`: gunicorn's own ASGI worker with our lifecycle."""

from __future__ import annotations

from gunicorn.workers.gasgi import ASGIWorker

from cowpreload.hosts.gunicorn import CowMixin


class CowASGIWorker(CowMixin, ASGIWorker):  # type: ignore[misc]
    """`--worker-class cow_asgi`, for gunicorn versions that have an ASGI worker."""
