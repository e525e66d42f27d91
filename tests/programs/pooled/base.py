"""SQLite in memory, whose pool says whether it was closed."""

from __future__ import annotations

from typing import Any

from django.db.backends.sqlite3 import base


class DatabaseWrapper(base.DatabaseWrapper):  # type: ignore[misc]
    pool = "none"

    def get_new_connection(self, conn_params: Any) -> Any:
        self.pool = "open"
        return super().get_new_connection({"database": ":memory:"})

    def close_pool(self) -> None:
        self.pool = "closed"
