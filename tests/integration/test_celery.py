"""A real Celery worker: what its children share, and what becomes of its tasks."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import PROGRAMS, PYPY, ROOT, ended, run
from harness.processes import children, script, wait_until
from harness.server import Server

from cowpreload.board import open_board

celery = pytest.importorskip("celery")
NAMESPACES = importlib.import_module("celery.app.defaults").NAMESPACES

pytestmark = pytest.mark.skipif(PYPY, reason="freezes nothing")

POOL = "worker_pool=cowpreload.celery:TaskPool"
# As conftest.QUICK, for a configuration of Celery's.
QUICK = "cow_check_interval=0.1 cow_min_lifetime=0 cow_jitter=0 cow_strikes=1"
CHILDREN = 2
LOG = "events.log"
CAN = sys.version_info >= (3, 12)  # make a heap immortal


class Shop:
    """A worker of tests/programs/celery_shop.py, and who sends it tasks."""

    def __init__(
        self, directory: Path, conf: str, *arguments: str, **environ: str
    ) -> None:
        self.directory = directory
        self._environ = {"SHOP_DIRECTORY": str(directory), **environ}
        command = [script("celery"), "-A", "celery_shop", "worker", "-l", "INFO"]
        command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        command += ["-c", str(CHILDREN), *arguments]
        given = {**self._environ, "SHOP_CONF": conf}
        self.server = Server(command, 0, PROGRAMS, directory / "worker.log", given)
        self.running = [self.server]  # as conftest.ended() wants it
        self._app: Any = None

    def send(self, name: str, *arguments: object) -> Any:
        """Ask for a task; what will be its result."""
        if self._app is None:
            self._app = client(self._environ)
        return self._app.send_task(f"celery_shop.{name}", arguments)

    def ask(self, name: str, *arguments: object) -> Any:
        """The result of a task."""
        return got(self.send(name, *arguments))

    def children(self) -> list[int]:
        return children(self.server.pid)

    def until_ready(self) -> Shop:
        self.server.wait_log(" ready.", 60)
        return self


def got(result: Any) -> Any:
    return result.get(timeout=60, interval=0.02)


def client(environ: dict[str, str]) -> Any:
    """The application without its catalogue."""
    before = dict(os.environ)
    os.environ.update(environ, SHOP_ARTICLES="0")
    sys.path.insert(0, str(PROGRAMS))
    sys.modules.pop("celery_shop", None)
    try:
        return importlib.import_module("celery_shop").app
    finally:
        sys.path.remove(str(PROGRAMS))
        os.environ.clear()
        os.environ.update(before)


def memory(pid: int) -> tuple[float, float]:
    """Private and shared MiB of a process."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()

    def of(names: str) -> float:
        found = re.findall(rf"^(?:{names}): +(\d+)", text, re.M)
        return sum(map(int, found)) / 1024

    return of("Private_Dirty|SwapPss"), of("Shared_Clean|Shared_Dirty")


def read_by_all(shop: Shop) -> list[tuple[float, float]]:
    """The memory of the children when each has read the whole catalogue."""
    results = [shop.send("total") for _ in range(6 * CHILDREN)]
    assert len({got(each) for each in results}) == 1
    return [memory(pid) for pid in shop.children()]


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Shop]]:
    """Gives the worker of this file, over a broker with an event loop, as most are."""
    made: list[Shop] = []

    def running() -> Shop:
        if not made or made[-1].server.process.poll() is not None:
            directory = tmp_path_factory.mktemp("shop")
            conf = f"{POOL} {QUICK} cow_max_private=40M cow_event_log={LOG}"
            conf = conf.replace(LOG, str(directory / LOG))
            made.append(Shop(directory, conf, SHOP_INITIALIZED="1"))
        return made[-1].until_ready()

    yield running
    for each in made:
        each.server.kill()


@pytest.fixture
def shop(shops: Callable[[], Shop]) -> Shop:
    return shops()


def test_children_do_not_copy_what_their_tasks_read(shop: Shop) -> None:
    found = read_by_all(shop)
    assert len(found) == CHILDREN
    for private, shared in found:
        assert private < (14 if CAN else 40)
        assert shared > (45 if CAN else 20)
    assert "cow: preload objects=" in shop.server.log
    assert "cow: fork-safety" not in shop.server.log  # Celery's own is not reported


def test_a_child_knows_its_slot_as_soon_as_celery_initializes_it(shop: Shop) -> None:
    (slot, pid), initialized = shop.ask("known")
    assert pid in shop.children()
    assert initialized == [slot]
    assert {each.pid for each in open_board(shop.server.pid)} == set(shop.children())


def test_a_task_that_raises_ends_no_child(shop: Shop) -> None:
    with pytest.raises(ValueError) as caught:
        shop.ask("fail")
    assert caught.value.args[0] in shop.children()


def test_no_task_is_lost_while_children_are_recycled(shop: Shop) -> None:
    results = [shop.send("hoard", 12, number) for number in range(24)]
    done = [got(each) for each in results]
    assert [number for number, _ in done] == list(range(24))
    assert len({pid for _, pid in done}) > CHILDREN
    line = shop.server.wait_log(" recycled private=")
    assert re.search(r"cow: worker=\d gen=\d+ pid=\d+ recycled private=\d+MiB", line)
    wait_until(lambda: len(shop.children()) == CHILDREN, 30, "new children")
    assert "WorkerLost" not in shop.server.log


def test_a_child_without_work_is_recycled_too(shop: Shop) -> None:
    """Celery looks after a task alone, and waits for the next one without an end."""
    pid = shop.ask("hoard_later", 60)
    wait_until(lambda: pid not in shop.children(), 30, "its end")


def test_a_warm_shutdown_ends_the_task_in_flight(shop: Shop) -> None:
    """The last one: others would have to start the worker anew.

    One that was received and not begun goes back to the broker, with and without us.
    """
    result = shop.send("slow", 1)
    wait_until((shop.directory / "slow").exists, 30, "the task")
    shop.server.signal(signal.SIGTERM)
    assert shop.server.wait_exit() == 0
    assert got(result)
    lines = (shop.directory / LOG).read_text().splitlines()
    events = [json.loads(each)["event"] for each in lines]
    assert (events[0], events[-1]) == ("start", "end")
    assert {"freeze", "new_worker", "recycling"} <= set(events)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("fails", "conf", "said"),
    [
        ("before", "", "planted"),
        ("after", "", "after_fork callback failed: the start ends"),
        ("strict", "cow_fork_safety=strict", "fork-safety=strict: 1 findings"),
        ("", "cow_max_private=1M", "max-private=1MiB: a fresh worker has private="),
        ("", "cow_max_private=200", "max-private=200: is that many bytes; write 200M"),
    ],
)
def test_what_gunicorn_refuses_ends_the_start(
    tmp_path: Path, fails: str, conf: str, said: str
) -> None:
    made = Shop(tmp_path, f"{POOL} {conf}", SHOP_ARTICLES="1", SHOP_FAILS=fails)
    with ended(made):  # type: ignore[type-var]
        assert made.server.wait_exit(60) == 1
        assert said in made.server.log


@pytest.mark.deep
def test_without_us_children_copy_what_their_tasks_read(tmp_path: Path) -> None:
    """The control of the first test."""
    made = Shop(tmp_path, "worker_concurrency=2")
    with ended(made):  # type: ignore[type-var]
        for private, _ in read_by_all(made.until_ready()):
            assert private > 25


@pytest.mark.deep
def test_no_task_is_lost_without_an_event_loop(tmp_path: Path) -> None:
    """Celery's other pool, whose threads fork."""
    made = Shop(tmp_path, f"{POOL} {QUICK} cow_max_private=40M", SHOP_BROKER="files://")
    with ended(made):  # type: ignore[type-var]
        made.until_ready()
        for private, _ in read_by_all(made):
            assert private < (14 if CAN else 40)
        assert "cow: fork-safety" not in made.server.log
        results = [made.send("hoard", 12, number) for number in range(24)]
        done = [got(each) for each in results]
        assert [number for number, _ in done] == list(range(24))
        assert len({pid for _, pid in done}) > CHILDREN
        made.server.wait_log(" recycled private=")
        pid = made.ask("hoard_later", 60)
        wait_until(lambda: pid not in made.children(), 30, "its end")
        made.server.signal(signal.SIGTERM)
        assert made.server.wait_exit(60) == 0


@pytest.mark.deep
def test_a_child_over_the_hard_limit_is_killed_in_its_task(tmp_path: Path) -> None:
    made = Shop(tmp_path, f"{POOL} {QUICK} cow_max_private_hard=80M")
    with ended(made):  # type: ignore[type-var]
        made.until_ready()
        result = made.send("waste", 120)
        with pytest.raises(Exception, match=r"SIGKILL|signal 9"):
            got(result)
        made.server.wait_log(" killed private=")
        assert made.ask("total")


@pytest.mark.deep
def test_a_pool_that_grows_and_shrinks_has_slots_for_all(tmp_path: Path) -> None:
    conf = f"{POOL} {QUICK} worker_max_tasks_per_child=3"
    beat = ("-B", "--schedule", str(tmp_path / "schedule"))
    made = Shop(tmp_path, conf, "--autoscale", "4,1", *beat, SHOP_ARTICLES="100")
    with ended(made):  # type: ignore[type-var]
        made.until_ready()
        results = [made.send("hoard", 1, number) for number in range(40)]
        assert [got(each)[0] for each in results] == list(range(40))
        board = open_board(made.server.pid)
        wait_until(
            lambda: {each.pid for each in board} <= set(made.children()), 60, "slots"
        )
        assert max(each.slot for each in board) <= 4
        made.server.signal(signal.SIGTERM)
        assert made.server.wait_exit(60) == 0


@pytest.mark.deep
@pytest.mark.skipif(
    "pool_start_method" not in NAMESPACES["worker"], reason="Celery 5.4 only forks"
)
def test_children_that_are_spawned_are_celerys_own(tmp_path: Path) -> None:
    conf = f"{POOL} worker_pool_start_method=spawn"
    made = Shop(tmp_path, conf, SHOP_ARTICLES="100")
    with ended(made):  # type: ignore[type-var]
        made.until_ready()
        made.server.wait_log("worker_pool_start_method is not fork")
        assert made.ask("total")


def documented(language: str, text: str) -> str:
    """The one block of docs/celery.md with `text` in it, without its indentation."""
    page = (ROOT / "docs" / "celery.md").read_text()
    fenced = rf"^```{language}\n(.*?)^```" if language else r"^    ([^\n]*)$"
    (found,) = [each for each in re.findall(fenced, page, re.M | re.S) if text in each]
    return str(found)


@pytest.mark.deep
@pytest.mark.parametrize("command", ["celery -A shop worker --conc", "--pool custom"])
def test_the_documented_commands_work(tmp_path: Path, command: str) -> None:
    """The broker alone is another one, which needs no server."""
    program = documented("python", "# shop.py") + documented("python", "warm_up")
    if "custom" in command:
        program = program.replace("app.conf.", "# ")
    (tmp_path / "shop.py").write_text(program)
    (tmp_path / "data_in").mkdir()
    (tmp_path / "data_out").mkdir()
    words = documented("", command).split()
    at = words.index("celery")
    environ = dict(each.split("=", 1) for each in words[:at])
    environ |= {"CELERY_BROKER_URL": "filesystem://"}
    asked = [script("celery"), *words[at + 1 :], "--loglevel", "INFO"]
    server = Server(asked, 0, tmp_path, tmp_path / "worker.log", environ)
    try:
        server.wait_log(" ready.", 60)
        assert "cow: settings max-private=200MiB" in server.log
        assert "cow: preload objects=" in server.log
        status = run("-m", "cowpreload", "status", str(server.pid))
        assert status.stdout.count("ready") >= 2
        server.signal(signal.SIGTERM)
        assert server.wait_exit(60) == 0
    finally:
        server.kill()
