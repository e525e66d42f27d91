"""The command: python -m deep [--python PATH ... | --next 3.14] [--suite NAME] [FILE]

Without --python, every CPython from 3.12 on that `make test` would use; `--next 3.14`
is the one of Debian unstable that `make test-next` uses, and 3.15 another. FILE names
files of CPython's tests, in the list or not; --warm runs them in the parent, too,
before the freeze. Exit code 0: no new failure.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import envs
import next as debian

from deep.compare import differences, judge
from deep.explained import EXPLAINED
from deep.plan import DEEP, Job, cpython_jobs, django_jobs, listed
from deep.runs import Run, end_running, run
from deep.tables import Result, document, table

OLDEST = 12  # the first CPython with immortal objects
REPEATS = 2
SUITES = ("cpython", "django")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="deep", description=__doc__)
    parser.add_argument("--python", action="append", help="cowpreload is installed in")
    parser.add_argument("--next", help="as test-next has it")
    parser.add_argument("--suite", action="append", choices=SUITES)
    parser.add_argument("--warm", action="store_true", help="in the parent first")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("file", nargs="*", help="e.g. test_dict; default: a list")
    options = parser.parse_args(arguments)
    if options.next:
        return within(options.next, options)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    good = True
    for python in map(os.path.abspath, options.python or environments()):
        good &= interpreter(python, options)
    return 0 if good else 1


def within(name: str, options: argparse.Namespace) -> int:
    """The same in the system that `make test-next` sets up."""
    there = str(debian.HOME / f"venv-{name}" / "bin" / "python")
    again = ["env", "PYTHONPATH=tools", there, "-m", "deep", f"--python={there}"]
    again += [f"--suite={suite}" for suite in options.suite or ()]
    again += ["--warm"] * options.warm
    again += [f"--jobs={options.jobs}", *options.file]
    return debian.run(name, again)


def environments() -> list[str]:
    found = [(minor, path) for minor, path in envs.require() if minor >= OLDEST]
    if not found:
        envs.fail(f"no CPython from 3.{OLDEST} on: immortality needs it")
    return [str(envs.environment(*one) / "python") for one in found]


def interpreter(python: str, options: argparse.Namespace) -> bool:
    """Both suites on one interpreter; whether nothing new failed."""
    ask = [python, "-c", "import sys; print(sys.version)"]
    full = subprocess.check_output(ask, text=True).strip()
    version = ".".join(full.split(".")[:2])
    results = []
    for suite in options.suite or SUITES:
        if suite == "django":
            jobs = [] if options.file else django_jobs(python)
        else:
            jobs = cpython_jobs(options.file or listed("cpython.txt"), options.warm)
        if not jobs:
            continue
        results.append(pairs(python, version, suite, jobs, options.jobs))
        if not options.file and not options.warm:
            write(version, full, results)
    print(table(full.split()[0], results), flush=True)
    return all(result.good for result in results)


def write(version: str, full: str, results: list[Result]) -> None:
    """Renew what these results say in the document; other suites stay as they are."""
    path = DEEP / f"result-{version}.json"
    written = json.loads(path.read_text()) if path.exists() else {}
    renewed = document(version, full, results)
    if written.get("python") == full:
        renewed["suites"] = {**written["suites"], **renewed["suites"]}
    path.write_text(json.dumps(renewed, indent=2) + "\n")
    envs.say(f"written to {path.relative_to(envs.ROOT)}")


def pairs(
    python: str, version: str, suite: str, jobs: list[Job], at_once: int
) -> Result:
    """Every job in both regimes, repeated where they differ."""
    result = Result(suite, len(jobs))
    with ThreadPoolExecutor(at_once) as pool:

        def start(job: Job, attempt: int = 0) -> list[Run]:
            both = [
                pool.submit(run, python, version, job, regime, attempt)
                for regime in ("plain", "frozen")
            ]
            return [future.result() for future in both]

        def compare(job: Job) -> None:
            plain, frozen = start(job)
            found = differences(plain.outcomes, frozen.outcomes)
            again = []
            if found:
                runs = [start(job, attempt + 1) for attempt in range(REPEATS)]
                again = [(one.outcomes, other.outcomes) for one, other in runs]
            collect(result, job, plain, frozen)
            judged = judge(found, suite, version, again, EXPLAINED)
            result.differences += judged
            new = sum(one.kind == "new" for one in judged)
            envs.say(f"{version} {job.name}: {len(plain.outcomes)} tests, {new} new")

        try:
            for job in jobs:
                compare(job)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            end_running()
            raise
    return result


def collect(result: Result, job: Job, plain: Run, frozen: Run) -> None:
    result.plain.update(plain.outcomes)
    result.frozen.update(frozen.outcomes)
    result.texts.update(frozen.texts)
    result.objects = max(result.objects, frozen.report.get("objects", 0))
    if plain.trouble:
        result.plain_troubles.append(f"{job.name}: {plain.trouble}")
    if frozen.trouble and frozen.trouble.split(",")[0] != plain.trouble.split(",")[0]:
        result.troubles.append(f"{job.name}: {frozen.trouble}")
    elif not frozen.trouble:
        result.troubles += [f"{job.name}: {lack}" for lack in frozen.lacks()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
