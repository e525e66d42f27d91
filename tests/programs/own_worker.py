"""A worker class of a user's own, and a configuration that names it as a class."""

from gunicorn.workers.sync import SyncWorker


class OwnWorker(SyncWorker):
    def handle_request(self, listener, req, client, addr):  # type: ignore[no-untyped-def]
        self.log.info("own worker serves")
        return super().handle_request(listener, req, client, addr)


worker_class = "cow"
cow_worker = OwnWorker
