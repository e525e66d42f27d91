"""What the shop keeps in memory, loaded once when a server imports the application.

Takes nothing, gives nothing back: the modules of `store` hold what they loaded.
Must not open the database or start a thread, because a preloading master forks later.
"""

from store import catalogue, nelson


def load() -> None:
    """Build the catalogue and the large objects, so that forked workers inherit them.

    Called by `shop.wsgi` and `shop.asgi` and not by `AppConfig.ready`: a management
    command needs neither and should not wait seconds for them.
    """
    catalogue.current()
    nelson.start()
