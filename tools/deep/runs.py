"""Process pairs: starts a job in a regime, ends it in time, reads what it recorded.

Takes an interpreter and a Job; gives a Run. Logs and records stay in build/deep for
whoever looks into a difference. Every process started here is ended here.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deep.plan import DEEP, Job

_running: list[subprocess.Popen[bytes]] = []


@dataclass
class Run:
    """What one regime of a job left behind."""

    outcomes: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    immortal: bool = False
    report: dict[str, Any] = field(default_factory=dict)
    trouble: str = ""  # why it did not come to its end, if it did not

    def lacks(self) -> list[str]:
        """What the frozen regime is to have, and this run had not."""
        found = [] if self.immortal else ["the inherited heap is not immortal"]
        sealed = self.report.get("sealed", {})
        found += [f"not sealed: {each}" for each in sealed.get("unsealed", ())]
        if not sealed.get("holes"):
            found.append("no hole was filled before the fork")
        return found


def run(python: str, version: str, job: Job, regime: str, attempt: int = 0) -> Run:
    """Run a job in one regime; a job that hangs is shown its stacks and ended."""
    place = DEEP / version / job.suite / f"{job.name}.{regime}.{attempt}"
    shutil.rmtree(place, ignore_errors=True)
    scratch = place / "scratch"
    # Not one in the other: Django's tests expect temporary files elsewhere.
    (scratch / "cwd").mkdir(parents=True)
    (scratch / "tmp").mkdir()
    records, log = place / "records.jsonl", place / "log"
    environ = dict(os.environ, TMPDIR=str(scratch / "tmp"), PYTHONHASHSEED="0")
    environ.pop("PYTHONPATH", None)
    command = [python, "-X", "faulthandler", str(job.program), regime, str(records)]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, *job.arguments],
            cwd=scratch / "cwd",
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _running.append(process)
    hung = False
    try:
        process.wait(job.limit)
    except subprocess.TimeoutExpired:
        hung = True
        stop(process, records)
    finally:
        end_group(process)
        _running.remove(process)
    done = read(records)
    if hung:
        done.trouble = f"not done after {job.limit:.0f} s, see {log}"
    elif done.trouble or process.returncode:
        done.trouble = f"{done.trouble or process.returncode}, see {log}"
    shutil.rmtree(scratch, ignore_errors=True)
    return done


def stop(process: subprocess.Popen[bytes], records: Path) -> None:
    """Have faulthandler write the child's stacks into the log."""
    for record in lines(records):
        if record.get("event") == "forked":
            os.kill(record["pid"], signal.SIGABRT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the job's own session, grandchildren too."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def end_running() -> None:
    """End every job, when the whole is interrupted."""
    for process in list(_running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def lines(records: Path) -> list[dict[str, Any]]:
    if not records.exists():
        return []
    return [json.loads(line) for line in records.read_text().splitlines()]


def read(records: Path) -> Run:
    """A Run from the records; a test that never ended gets the blame for a crash."""
    run, current, ended = Run(), None, False
    run.trouble = "ended before the fork"
    for record in lines(records):
        event = record.get("event")
        if event == "start":
            current = record["id"]
        elif event == "frozen":
            run.report = record["report"]
        elif event == "forked":
            run.immortal = record["immortal"]
            run.trouble = "ended without a word"
        elif event == "done":
            ended = True
        elif event == "ended":
            code = record["code"]
            run.trouble = "" if ended and code == 0 else f"the child ended with {code}"
        else:
            run.outcomes[record["id"]] = record["outcome"]
            run.texts[record["id"]] = record["text"]
            current = None
    if run.trouble and current:
        run.outcomes[current] = "crash"
        run.texts[current] = run.trouble
    return run
