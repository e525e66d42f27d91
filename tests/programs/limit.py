"""A gunicorn configuration whose limit a test changes between two loads."""

import os
from pathlib import Path

_file = Path(os.environ["HOME"]) / "limit"
cow_max_private = _file.read_text() if _file.exists() else os.environ["LIMIT"]
cow_check_interval = 0.1
cow_min_lifetime = 0
cow_strikes = 1
cow_jitter = 0
