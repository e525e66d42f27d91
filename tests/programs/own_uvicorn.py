"""A uvicorn worker of a user's own: another protocol, another loop, no lifespan."""

from uvicorn_worker import UvicornWorker


class OwnUvicorn(UvicornWorker):
    CONFIG_KWARGS = {"http": "h11", "loop": "asyncio", "lifespan": "off"}  # noqa: RUF012
