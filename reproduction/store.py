"""Results in SQLite, one row per task, keyed by what the result depends on."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY,
    tab TEXT NOT NULL, cell TEXT NOT NULL, run INTEGER NOT NULL, method TEXT NOT NULL,
    engine TEXT NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL, seconds REAL, result TEXT, error TEXT
)
"""
FIELDS = ("key", "tab", "cell", "run", "method", "engine", "status", "attempts", "seconds", "result", "error")


@dataclass(frozen=True)
class Row:
    """One result."""

    key: str
    tab: str
    cell: str
    run: int
    method: str
    engine: str
    status: str
    attempts: int
    seconds: float | None
    result: dict[str, Any] | None
    error: str | None


class Store:
    """A file of results. One process writes; every row is on disk before the next."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.db = sqlite3.connect(self.path, timeout=60)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute(SCHEMA)
        self.db.commit()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    def put(self, row: Row) -> None:
        """A row, in place of an earlier one with the same key."""
        values = [getattr(row, name) for name in FIELDS]
        values[9] = None if row.result is None else json.dumps(row.result, separators=(",", ":"))
        marks = ",".join("?" * len(FIELDS))
        with self.db:
            self.db.execute(f"INSERT OR REPLACE INTO results ({','.join(FIELDS)}) VALUES ({marks})", values)

    def status(self) -> dict[str, tuple[str, int]]:
        """Status and attempts by key."""
        return {key: (status, n) for key, status, n in self.db.execute("SELECT key, status, attempts FROM results")}

    def rows(self, keys: Iterable[str] | None = None) -> Iterator[Row]:
        """All rows, or those with the given keys."""
        wanted = None if keys is None else set(keys)
        for values in self.db.execute(f"SELECT {','.join(FIELDS)} FROM results ORDER BY tab, cell, run, method, key"):
            if wanted is None or values[0] in wanted:
                result = None if values[9] is None else json.loads(values[9])
                yield Row(*values[:9], result, values[10])

    def counts(self) -> dict[str, int]:
        """Rows by status."""
        return dict(self.db.execute("SELECT status, COUNT(*) FROM results GROUP BY status ORDER BY status"))

    def merge(self, other: str | Path) -> int:
        """Takes the rows of another store that are missing here, or that are done there and not here; how many."""
        mine, taken = self.status(), 0
        with Store(other) as source:
            for row in source.rows():
                known = mine.get(row.key)
                if known is None or (known[0] != "ok" and row.status == "ok"):
                    self.put(row)
                    taken += 1
        return taken

    def prune(self, keys: Iterable[str]) -> int:
        """Removes rows that no declared task of this engine has; how many."""
        keep = set(keys)
        gone = [key for key in self.status() if key not in keep]
        with self.db:
            self.db.executemany("DELETE FROM results WHERE key = ?", [(key,) for key in gone])
        return len(gone)

    def export(self, path: str | Path) -> int:
        """The scores as CSV, one line per row and protocol; how many lines."""
        lines = 0
        with open(path, "w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, lineterminator="\n")
            head = ("table", "cell", "run", "method", "status", "attempts", "protocol", "mae", "mse", "accuracy", "age")
            writer.writerow((*head, "seconds", "complete", "jumps", "turning", "kkt", "error"))
            for row in self.rows():
                for protocol, told in (row.result or {"": {}}).items():
                    test = told.get("test", {})
                    numbers = [test.get("mae"), test.get("mse"), test.get("accuracy"), told.get("age"), told.get("seconds")]
                    more = [told.get(name) for name in ("complete", "jumps", "turning", "kkt")]
                    where = [row.tab, row.cell, row.run, row.method, row.status, row.attempts, protocol]
                    writer.writerow([*where, *map(short, numbers), *map(short, more), row.error or ""])
                    lines += 1
        return lines


def short(value: Any) -> Any:
    """Six digits are enough to read."""
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else value
