"""Means, deviations and paired tests of what the store has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import mean, median, stdev
from typing import Any

from scipy.stats import ttest_rel, wilcoxon

from . import cluster, data, declared
from .declared import Cell, Table
from .store import Row, Store

#: The paper's name for what it computes; here the path that comes up, as theirs does.
GAGA = "agepath-up"
DEFAULT = "agepath-default"
OURS = ("agepath-up", "agepath-down", DEFAULT)
PROTOCOLS = ("theirs", "honest")

#: Fewer pairs than this are tested by Student's t, which needs no large sample to say anything.
ENOUGH_FOR_RANKS = 8

#: A difference that could be chance once in twenty is none.
LEVEL = 0.05


@dataclass(frozen=True)
class Figure:
    """A mean with its spread."""

    mean: float
    sd: float | None
    runs: int

    def __str__(self) -> str:
        spread = "" if self.sd is None else f" ± {self.sd:.3f}"
        return f"{self.mean:.3f}{spread} ({self.runs})"


@dataclass(frozen=True)
class Comparison:
    """The best path against the best other method, run by run."""

    ours: str
    other: str
    gain: float
    p: float | None
    runs: int
    test: str

    @property
    def verdict(self) -> str:
        """In words."""
        if self.p is None or self.p > LEVEL:
            return "level"
        return "better" if self.gain > 0 else "worse"


class Results:
    """The rows of a store that belong to the declared tasks of the installed engine, by table, cell and method."""

    def __init__(self, store: Store, tables: list[Table], small: bool = False, runs: int = 20):
        self.tables, self.rows, keys, unknown = tables, {}, {}, set()
        for table in tables:
            for task in declared.tasks(table, runs, small=small):
                if data.file_of(task.spec["data"]).is_file():
                    keys.setdefault(cluster.key_of(task), []).append((task.table, task.cell, task.method, task.run))
                else:
                    unknown.add((task.table, task.cell))
        for row in store.rows():
            # Without its data a task has no key; then what was written for it is shown.
            own = [(row.tab, row.cell, row.method, row.run)] if (row.tab, row.cell) in unknown else []
            for tab, cell, method, run in keys.get(row.key, own):
                self.rows.setdefault((tab, cell, method), {})[run] = row

    def of(self, table: Table, cell: Cell, method: str) -> dict[int, Row]:
        """Rows by run."""
        return self.rows.get((table.label, cell.name, method), {})

    def parts(self, table: Table, cell: Cell, method: str, protocol: str) -> dict[int, dict[str, Any]]:
        """What was recorded under a protocol, by run; runs whose path does not cover all ages are left out. (The default
        chooses among what it has, so it is kept.)"""
        found = {}
        for run, row in self.of(table, cell, method).items():
            part = (row.result or {}).get(protocol)
            if row.status == "ok" and part and (part.get("complete", True) or method == DEFAULT):
                found[run] = part
        return found

    def scores(self, table: Table, cell: Cell, method: str, protocol: str, metric: str) -> dict[int, float]:
        parts = self.parts(table, cell, method, protocol).items()
        return {run: part["test"][metric] for run, part in parts if part.get("test", {}).get(metric) is not None}

    def figure(self, table: Table, cell: Cell, method: str, protocol: str, metric: str) -> Figure | None:
        return figure(self.scores(table, cell, method, protocol, metric).values())

    def number(self, table: Table, cell: Cell, method: str, protocol: str, name: str) -> float | None:
        """The median over the runs of something that was recorded."""
        values = [p[name] for p in self.parts(table, cell, method, protocol).values() if p.get(name) is not None]
        return median(values) if values else None

    def not_ok(self, table: Table, cell: Cell, method: str) -> dict[str, int]:
        """Runs by what kept them out of the means."""
        found: dict[str, int] = {}
        for row in self.of(table, cell, method).values():
            cut = method != DEFAULT and any(p.get("complete") is False for p in (row.result or {}).values())
            why = row.status if row.status != "ok" else "cut" if cut else None
            if why:
                found[why] = found.get(why, 0) + 1
        return found

    def compare(self, table: Table, cell: Cell, protocol: str, metric: str) -> Comparison | None:
        """The best of our methods against the best of the others."""
        def best(methods):
            found = {m: self.scores(table, cell, m, protocol, metric) for m in methods}
            found = {m: s for m, s in found.items() if len(s) >= 2}
            most = max((len(s) for s in found.values()), default=0)
            found = {m: s for m, s in found.items() if len(s) == most}
            sign = 1 if metric == "accuracy" else -1
            return max(found.items(), key=lambda item: sign * mean(item[1].values()), default=None)

        ours, other = best(m for m in OURS if m in table.methods), best(m for m in table.methods if m not in OURS)
        if ours is None or other is None:
            return None
        shared = sorted(set(ours[1]) & set(other[1]))
        a, b = [ours[1][r] for r in shared], [other[1][r] for r in shared]
        if len(shared) < 2:
            return None
        p, test = paired(a, b)
        gain = (mean(a) - mean(b)) * (1 if metric == "accuracy" else -1)
        return Comparison(ours[0], other[0], gain, p, len(shared), test)


def figure(values) -> Figure | None:
    values = list(values)
    if not values:
        return None
    return Figure(mean(values), stdev(values) if len(values) > 1 else None, len(values))


def paired(a: list[float], b: list[float]) -> tuple[float | None, str]:
    """Wilcoxon's signed ranks, or Student's t for few pairs; None where all pairs are equal."""
    if all(x == y for x, y in zip(a, b)):
        return None, "equal"
    if len(a) >= ENOUGH_FOR_RANKS:
        return float(wilcoxon(a, b).pvalue), "Wilcoxon"
    p = float(ttest_rel(a, b).pvalue)
    return (None if math.isnan(p) else p), "paired t"


def metric_of(cell: Cell) -> str:
    """What a cell is judged by."""
    return "mae" if cell.spec["model"] in data.REGRESSIONS else "accuracy"


def show(store: Store, tables: list[Table], small: bool) -> str:
    """The tables as text."""
    results, lines = Results(store, tables, small), [f"rows by status: {store.counts()}"]
    for table in tables:
        lines.append(f"\n{table.label}: {table.title}")
        for cell in table.cells:
            for method in table.methods:
                if not results.of(table, cell, method):
                    continue
                metric = metric_of(cell)
                printed = cell.printed.get("gaga" if method == GAGA else method)
                found = [results.figure(table, cell, method, p, metric) for p in PROTOCOLS]
                words = [f"printed {printed[0]}" if printed else "", *(f"{p} {f}" for p, f in zip(PROTOCOLS, found) if f)]
                bad = results.not_ok(table, cell, method)
                lines.append(f"  {cell.name:32} {method:16} {'  '.join(filter(None, words))}{f'  {bad}' if bad else ''}")
    return "\n".join(lines)
