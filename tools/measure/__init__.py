"""One small program a question: where the figures of docs/measurements.md come from.

Run each as `PYTHONPATH=tools build/venv-3.13/bin/python -m measure.NAME`: the figures
go to stdout as one JSON object with the interpreter's version, progress to stderr; no
process outlives it. They are not in the wheel: only developers need them.

    startup_cost    what the start-up file adds to an interpreter's start
    watch_cost      what the watching threads take of a core
    respawn_time    how long a slot is without a worker that serves
    exit_cost       time and copied pages at a worker's end, fast against normal
    warmup_repeat   how many warm-up requests a path are worth it
    loading_gc      collecting while the application loads, or not
    why_pause       what a report of `cowpreload why` costs its worker

`common` has what they share, `harness` the process that three of them measure.
"""
