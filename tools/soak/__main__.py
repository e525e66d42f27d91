"""The command line of `make soak`; see the package.

Ctrl-C (or SIGTERM) ends the mix, the servers and everything that was started, with the
table so far; a second one is ignored while that goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from soak import hosts, mix
from soak.hosts import Started
from soak.onlookers import Looked, Onlookers
from soak.result import HostResult
from soak.run import Soak
from soak.table import table

OUTPUT = hosts.ROOT / "build" / "soak.json"
SHOWN = 20  # faults: all are in the JSON


@dataclass(frozen=True)
class Outcome:
    """Of a whole run.

    Attributes:
        looked: what came of `status` and of scrapes, which see all servers at once.
    """

    hosts: list[HostResult]
    looked: dict[str, Looked]

    @property
    def faults(self) -> list[str]:
        """What must not be, a line each."""
        found = [fault for each in self.hosts for fault in each.faults()]
        for each in self.looked.values():
            found += each.failures
        return found


def say(text: str) -> None:
    """Progress, on stderr."""
    print(f"soak: {text}", file=sys.stderr, flush=True)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The arguments; a seed that is not given is chosen, and said."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    minutes = float(os.environ.get("SOAK_MINUTES") or 20)
    parser.add_argument("--minutes", type=float, default=minutes, help="of load")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--hosts", nargs="+", choices=hosts.HOSTS, default=hosts.HOSTS)
    parser.add_argument(
        "--pace", type=float, default=1.0, help="times as many faults a minute"
    )
    parser.add_argument(
        "--control", action="store_true", help="the same mix, without us"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the JSON file")
    return parser.parse_args(arguments)


def soak(arguments: argparse.Namespace, directory: Path) -> Outcome:
    """Run all servers side by side."""
    seconds, cow = arguments.minutes * 60, not arguments.control
    over = threading.Event()
    ends = (signal.SIGINT, signal.SIGTERM)
    for number in ends:
        signal.signal(number, lambda *_: over.set())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)  # envs.py has blocked them
    plugins = None
    if hosts.UWSGI in arguments.hosts and cow:
        plugins = hosts.build_plugin(directory / "plugins")
    servers: list[Started] = []
    try:
        for name in arguments.hosts:
            to = directory / name
            servers.append(hosts.start(name, to, cow=cow, plugins=plugins))
        for each in servers:
            each.server.wait_serving(workers=2, seconds=120)
        runs = [_prepare(each, arguments, seconds) for each in servers]
        return _together(runs, arguments.seed, cow, over)
    finally:
        for each in servers:
            each.server.kill()


def _prepare(started: Started, arguments: argparse.Namespace, seconds: float) -> Soak:
    seed, name = arguments.seed, started.name
    acts = mix.plan(seed, name, seconds, pace=arguments.pace, control=arguments.control)
    return Soak(started, acts, mix.paths(seed, name), seconds)


def _together(runs: list[Soak], seed: int, cow: bool, over: threading.Event) -> Outcome:
    seen = [
        (each.started.name, each.started.server.pid, each.samples.workers)
        for each in runs
    ]
    onlookers = Onlookers(seed, seen)
    if cow:
        onlookers.start()
    threads = [threading.Thread(target=each.run, args=[over]) for each in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(1.0)  # so that signals are handled
    if cow:
        onlookers.end()
    say("the load is over: servers are ended")
    found = [each.finish(onlookers.why[each.started.name]) for each in runs]
    return Outcome(found, {"status": onlookers.status, "scrapes": onlookers.scrapes})


def _keep_logs(directory: Path, to: Path) -> None:
    """What the servers have written, beside the JSON: of this run alone."""
    shutil.rmtree(to, ignore_errors=True)
    for each in hosts.HOSTS:
        for name in hosts.WRITTEN:
            if (written := directory / each / name).exists():
                (to / each).mkdir(parents=True, exist_ok=True)
                shutil.copy(written, to / each)


def main() -> int:
    """Soak, print the table, write the JSON; 1 if there is a fault."""
    arguments = parse()
    say(f"seed {arguments.seed}, {arguments.minutes:g} minutes, {arguments.hosts}")
    began = time.time()
    with tempfile.TemporaryDirectory(prefix="cow-soak-") as directory:
        try:
            outcome = soak(arguments, Path(directory))
        finally:
            _keep_logs(Path(directory), arguments.output.with_suffix(""))
    faults = outcome.faults
    print(table(outcome.hosts))
    for name, looked in outcome.looked.items():
        print(f"{name}: {looked.runs} times, {len(looked.failures)} failures")
    for fault in faults[:SHOWN]:
        print(f"fault: {fault}")
    if faults[SHOWN:]:
        print(f"and {len(faults[SHOWN:])} more faults")
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}"
    run = {
        "measurement": "soak",
        "python": platform.python_version(),
        "machine": machine,
        "at": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(began)),
        "seed": arguments.seed,
        "minutes": arguments.minutes,
        "load_average": os.getloadavg()[2],
        "faults": faults,
        "looked": {name: asdict(each) for name, each in outcome.looked.items()},
        "hosts": [asdict(each) for each in outcome.hosts],
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(run, indent=2) + "\n")
    say(f"wrote {arguments.output}; seed {arguments.seed}; {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
