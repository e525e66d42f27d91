"""A Celery application: a catalogue that its tasks read, over a broker of files.

`files://` is kombu's own, without an event loop; `hub://` the same with one, as Redis
and RabbitMQ have, which Celery's other pool is for.
"""

import gc
import os
import threading
import time
import uuid
from pathlib import Path

from celery import Celery, signals
from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.encoding import str_to_bytes
from kombu.utils.json import dumps

import cowpreload

DIRECTORY = Path(os.environ["SHOP_DIRECTORY"])
TRANSPORT_ALIASES["files"] = "celery_shop:Transport"
TRANSPORT_ALIASES["hub"] = "celery_shop:HubTransport"


class Channel(filesystem.Channel):
    """kombu's own makes a message's file before it writes into it: a worker that looks
    in between takes an empty one, and the task is lost."""

    def _put(self, queue, payload, **_):
        name = f"{time.monotonic_ns():020}_{uuid.uuid4()}.{queue}.msg"
        unfinished = Path(self.data_folder_out).with_name(name)
        unfinished.write_bytes(str_to_bytes(dumps(payload)))
        unfinished.rename(Path(self.data_folder_out, name))


class Transport(filesystem.Transport):
    """Looks often enough for a test."""

    Channel = Channel
    polling_interval = 0.05


class HubTransport(Transport):
    """Has an event loop look."""

    implements = Transport.implements.extend(asynchronous=True)

    def register_with_event_loop(self, connection, loop):
        loop.call_repeatedly(self.polling_interval, self._look, connection)

    def _look(self, connection):
        try:
            while True:
                self.drain_events(connection, timeout=0)
        except TimeoutError:
            pass


def configured(app: Celery) -> Celery:
    """What worker and client must agree upon."""
    for name in ("queue", "results", "control"):
        (DIRECTORY / name).mkdir(exist_ok=True)
    queue = str(DIRECTORY / "queue")
    app.conf.update(
        broker_url=os.environ.get("SHOP_BROKER", "hub://"),
        broker_transport_options={
            "data_folder_in": queue,
            "data_folder_out": queue,
            "control_folder": str(DIRECTORY / "control"),
        },
        result_backend=f"file://{DIRECTORY / 'results'}",
        worker_prefetch_multiplier=1,
        broker_connection_retry_on_startup=True,
    )
    return app


app = configured(Celery("celery_shop"))
for given in os.environ.get("SHOP_CONF", "").split():
    name, _, value = given.partition("=")
    app.conf[name] = int(value) if value.isdigit() else value

ARTICLES = int(os.environ.get("SHOP_ARTICLES", "60000"))
CATALOGUE = [
    {"name": f"article {i}", "price": i / 100, "tags": [f"a{i}", f"b{i}"]}
    for i in range(ARTICLES)
]
HOARD = []


@app.task
def total():
    """Read all of the catalogue."""
    return round(sum(len(each["name"] + each["tags"][0]) for each in CATALOGUE))


@app.task
def part(start):
    """Read a tenth of the catalogue."""
    some = CATALOGUE[start : start + ARTICLES // 10]
    return round(sum(len(each["name"] + each["tags"][0]) for each in some))


@app.task
def hoard(size, number=0):
    """Keep `size` MiB for ever."""
    HOARD.append(b"x" * (size << 20))
    time.sleep(0.05)
    return number, os.getpid()


@app.task
def hoard_later(size):
    """As above, when the child has nothing to do any more."""
    threading.Timer(0.5, lambda: HOARD.append(b"x" * (size << 20))).start()
    return os.getpid()


@app.task
def waste(size):
    """As above, and never end."""
    HOARD.append(b"x" * (size << 20))
    time.sleep(60)


@app.task
def slow(seconds):
    (DIRECTORY / "slow").touch()
    time.sleep(seconds)
    return os.getpid()


@app.task
def fail():
    raise ValueError(os.getpid())


@app.task
def known():
    """What the child knows of itself, here and where it was initialized."""
    mine = cowpreload.worker()
    return mine and (mine.slot, mine.pid), INITIALIZED


INITIALIZED = []


@signals.worker_process_init.connect
def initialize(**_):
    if os.environ.get("SHOP_INITIALIZED"):
        mine = cowpreload.worker()
        INITIALIZED.append(mine and mine.slot)


if os.environ.get("SHOP_FREEZES"):  # as some projects do it by hand

    @signals.worker_init.connect
    def freeze_by_hand(**_):
        gc.collect()
        gc.freeze()


def raising():
    raise RuntimeError("planted")


if os.environ.get("SHOP_FAILS") == "before":
    cowpreload.before_fork(raising)
if os.environ.get("SHOP_FAILS") == "after":
    cowpreload.after_fork(raising)
if os.environ.get("SHOP_FAILS") == "strict":
    HELD = open(DIRECTORY / "held", "w")
