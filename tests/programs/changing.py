"""A gunicorn configuration that a test replaces between two loads: HOME/conf."""

import os
from pathlib import Path

_file = Path(os.environ["HOME"]) / "conf"
exec(_file.read_text() if _file.exists() else os.environ["CONF"])
