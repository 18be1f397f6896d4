"""Tables and figures as their files declare them, and the tasks they ask for."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TABLES = Path(__file__).with_name("tables")

#: The first seed, as the paper says; run r has seed 40 + r.
SEED = 40

#: What `make paper` makes of a table: few rows, a tiny NSGA-III, coarse ACS.
SMALL = {"rows": 240, "mospl": {"population": 10, "generations": 5}, "acs_step": 0.02}


@dataclass(frozen=True)
class Cell:
    """One row of a table or one panel of a figure: what is computed, and what the paper prints for it."""

    name: str
    spec: dict[str, Any]
    printed: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """One table or figure."""

    label: str
    title: str
    kind: str
    methods: list[str]
    cells: list[Cell]


@dataclass(frozen=True)
class Task:
    """One method on one split of one cell."""

    table: str
    cell: str
    spec: dict[str, Any]
    run: int
    method: str

    def key(self, data_hash: str, engine: str) -> str:
        """The hash of everything that the result depends on."""
        told = [self.spec, self.run, self.method, data_hash, engine]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:32]


def read(path: Path) -> Table:
    """A table from its file."""
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    shared = dict(told.get("defaults", {}))
    if "acs_step" in told:
        shared["acs_step"] = told["acs_step"]
    cells = []
    for cell in told["cells"]:
        spec = {**shared, **cell}
        name, printed = spec.pop("name"), spec.pop("printed", {})
        cells.append(Cell(name, spec, printed))
    names = [cell.name for cell in cells]
    if len(set(names)) != len(names):
        raise ValueError(f"{path.name}: two cells have the same name")
    return Table(told["label"], told["title"], told["kind"], told["methods"], cells)


def tables(folder: Path = TABLES) -> dict[str, Table]:
    """Every declared table and figure by its label."""
    found = [read(path) for path in sorted(folder.glob("*.toml"))]
    return {table.label: table for table in found}


def chosen(names: list[str], folder: Path = TABLES) -> list[Table]:
    """The tables of some labels, or all of them."""
    known = tables(folder)
    if names == ["all"]:
        return list(known.values())
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"unknown table {unknown[0]!r}; choose among: all, {', '.join(known)}")
    return [known[name] for name in names]


def tasks(table: Table, runs: int, methods: list[str] | None = None, small: bool = False) -> list[Task]:
    """The tasks of a table, run by run, so that an interrupted table has whole runs."""
    wanted = [m for m in table.methods if methods is None or m in methods]
    cells = table.cells[:2] if small else table.cells
    found = []
    for run in range(runs):
        for cell in cells:
            spec = {**cell.spec, **SMALL} if small else cell.spec
            found.extend(Task(table.label, cell.name, spec, run, method) for method in wanted)
    return found
