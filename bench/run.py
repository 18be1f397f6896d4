"""The exact path against ACS on a grid, at equal accuracy, and how the exact path grows.

    python bench/run.py                 everything (about ten minutes, nearly all of it ACS)
    python bench/run.py --quick         diabetes and breast_cancer, 40 ages
    python bench/run.py --write         also writes bench/results.md

Needs the command built (`cargo build --release`, or AGEPATH_BIN) and the data sets (AGEPATH_DATA, default
../shared/datasets beside the repository). Both sides see the same rows, use one thread, and reach a relative KKT
residual of 1e-8 or better on the joint problem; the residuals printed here are recomputed in numpy for both.
"""

from __future__ import annotations

import acs_sklearn as acs  # first: it fixes the number of threads before numpy is imported

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy
import sklearn

from selfpaced import Run, read_run

ROOT = Path(__file__).resolve().parent.parent
AGES = (0.1, 20.0)
GRIDS = (40, 200)
ALPHA = 0.005

SAME_BRANCH = 1e-3
"""Coefficients further apart than this belong to different local minimisers, not to rounding: a coarse grid can step
over a jump, or past a branch the continuous path stays on."""


@dataclass(frozen=True)
class Case:
    data: str
    model: tuple[str, ...]
    noise: str
    pacing: tuple[str, ...]

    @property
    def options(self) -> list[str]:
        return [*self.model, "--pacing", *self.pacing, "--noise", self.noise, "--seed", "0", "--validation", "0"]


LASSO = ("--model", "lasso", "--alpha", str(ALPHA))
LOGISTIC = ("--model", "logistic", "--c", "1")
LINEAR, MIXTURE = ("linear",), ("mixture", "--pacing-gamma", "0.5")

SMALL = [Case("diabetes", LASSO, "outliers:0.3", p) for p in (LINEAR, MIXTURE)]
SMALL += [Case("breast_cancer", LOGISTIC, "flip:0.3", p) for p in (LINEAR, MIXTURE)]
LARGE = [Case(name, LASSO, "outliers:0.3", p) for name in ("houses", "ailerons") for p in (LINEAR, MIXTURE)]


class Command:
    """The `agepath` command."""

    def __init__(self, binary: Path):
        if not binary.is_file():
            sys.exit(f"{binary} is missing: run `cargo build --release` first, or set AGEPATH_BIN")
        self.binary = str(binary)

    def call(self, *args) -> str:
        done = subprocess.run([self.binary, *map(str, args)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"agepath {' '.join(map(str, args))}\nended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def path(self, data: Path, directory: Path, options: list[str], repeats: int) -> tuple[Run, float, float]:
        """The run, the best time of the path itself, and the best time of the whole command."""
        low, high = AGES
        inner, outer = [], []
        for _ in range(repeats):
            start = time.perf_counter()
            self.call("path", data, "-o", directory, "--ages", f"{low}:{high}", "--threads", 1, "--quiet", *options)
            outer.append(time.perf_counter() - start)
            run = read_run(directory)
            inner.append(run.path["work"]["seconds"])
        return run, min(inner), min(outer)

    def at(self, run: Run, ages) -> list[dict]:
        flags = [part for age in ages for part in ("--age", repr(float(age)))]
        return [json.loads(line) for line in self.call("at", run.directory, "--solver-units", *flags).splitlines()]


@dataclass
class Agreement:
    """The exact path and ACS at the ages of the grid that are not next to a jump."""

    same: int
    compared: int
    worst: float
    exact_kkt: float


def agreement(command: Command, run: Run, found: acs.Sweep) -> Agreement:
    points = command.at(run, found.ages)
    W = np.array([p["coef"] for p in points])
    kkt = max(run.spec.kkt(run.X, run.y, w, p["intercept"], p["age"]) for w, p in zip(W, points))
    step = np.log(found.ages[0] / found.ages[1])
    jumps = np.log([e["age"] for e in run.jumps])
    clear = np.array([np.all(np.abs(jumps - np.log(age)) > step) for age in found.ages])
    apart = np.abs(W - found.W).max(axis=1)[clear]
    same = apart <= SAME_BRANCH
    return Agreement(int(same.sum()), len(apart), apart[same].max(initial=0.0), kkt)


def acs_seconds(found: acs.Sweep, count: int) -> tuple[float, str]:
    """Seconds for the whole grid; extrapolated from the ages done, and marked so, when the time cap stopped it."""
    if found.end == "complete":
        return found.seconds, f"{found.seconds:.2f}"
    if found.end != "time cap":
        return found.seconds, f"{found.seconds:.2f} ({found.end} after {found.done}/{count})"
    if found.done == 0:
        return found.seconds, f"> {found.seconds:.0f}"
    whole = found.seconds * count / found.done
    return whole, f"~{whole:.3g} ({found.done}/{count} done)"


def compare(command: Command, cases: list[Case], grids, data: Path, time_cap: float) -> list[str]:
    speed, checks, work = [], [], []
    for case in cases:
        with tempfile.TemporaryDirectory() as directory:
            repeats = 20 if case in SMALL else 3
            run, exact, whole = command.path(data / f"{case.data}.csv.gz", Path(directory), case.options, repeats)
            sweeps = []
            for count in grids:
                print(f"{case.data}, {case.pacing[0]}: ACS at {count} ages …", file=sys.stderr)
                found = acs.sweep(run.X, run.y, run.spec, acs.log_ages(*run.path["ages"], count), time_cap)
                sweeps.append((count, found, agreement(command, run, found) if found.done > 1 else None))
        speed.append(speed_row(case, run, exact, whole, sweeps))
        checks.append(check_row(case, run, sweeps))
        work.append({"data": case.data, "pacing": case.pacing[0], **run.path["work"]})
        print(f"{case.data}, {case.pacing[0]}: " + ", ".join(f"{k} {v}" for k, v in speed[-1].items()), file=sys.stderr)
    return [
        "## Exact path against ACS", table(speed),
        "`exact ms` is the path alone, `command ms` the whole process with reading, checking and writing. "
        "A time marked ~ was stopped at the cap and extrapolated from the ages done.",
        "## Do they agree?", table(checks),
        f"`same` counts the grid's ages, those within one step of a jump left out, at which both have the same "
        f"coefficients (to {SAME_BRANCH:g}); `max diff` is the largest difference among them. At the others ACS "
        "stepped into another local minimiser.",
        "## Work counters", table(work),
    ]


def speed_row(case: Case, run: Run, exact: float, whole: float, sweeps) -> dict:
    row = {
        "data": case.data,
        "n x d": f"{run.X.shape[0]} x {run.X.shape[1]}",
        "pacing": case.pacing[0],
        "events": len(run.events),
        "jumps": len(run.jumps),
        "knots": len(run.path["knots"]),
        "exact ms": f"{1e3 * exact:.2f}",
        "command ms": f"{1e3 * whole:.0f}",
    }
    for count, found, _ in sweeps:
        seconds, text = acs_seconds(found, count)
        row |= {f"ACS-{count} s": text, f"ratio-{count}": f"{seconds / exact:.0f}", f"fits-{count}": found.fits.sum()}
    return row


def check_row(case: Case, run: Run, sweeps) -> dict:
    low, high = run.path["ages"]
    row = {"data": case.data, "pacing": case.pacing[0], "ages": f"{low:.3g}:{high:.3g}", "end": run.path["end"]}
    for count, found, agreed in sweeps:
        if agreed is None:
            continue
        row |= {
            f"same-{count}": f"{agreed.same}/{agreed.compared}",
            f"max diff-{count}": f"{agreed.worst:.0e}",
            f"kkt exact-{count}": f"{agreed.exact_kkt:.0e}",
            f"kkt ACS-{count}": f"{found.kkt.max():.0e}",
            f"fit cap-{count}": len(found.capped),
        }
    return row


def synthetic(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A linear target with noise; 30 % of the rows get an error of 3 to 10 sigmas of the target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X @ (rng.standard_normal(d) / np.sqrt(d)) + 0.3 * rng.standard_normal(n)
    bad = rng.choice(n, size=int(0.3 * n), replace=False)
    y[bad] += rng.choice([-1.0, 1.0], len(bad)) * rng.uniform(3.0, 10.0, len(bad))
    return X, y


def one_pass(X: np.ndarray, y: np.ndarray) -> float:
    """Seconds of one pass over the rows: X w, then X' r. The unit in which work per event is given."""
    w, best = np.ones(X.shape[1]), np.inf
    for _ in range(30):
        start = time.perf_counter()
        X.T @ (X @ w - y)
        best = min(best, time.perf_counter() - start)
    return best


def growth(command: Command, shapes: list[tuple[int, int]], pacing: tuple[str, ...]) -> str:
    rows = []
    for n, d in shapes:
        X, y = synthetic(n, d)
        with tempfile.TemporaryDirectory() as directory:
            data = Path(directory) / "data.csv"
            header = ",".join([f"x{j}" for j in range(d)] + ["target"])
            np.savetxt(data, np.column_stack([X, y]), delimiter=",", header=header, comments="", fmt="%.17g")
            options = [*LASSO, "--pacing", *pacing, "--validation", "0"]
            run, seconds, _ = command.path(data, Path(directory) / "out", options, 3)
        each = seconds / max(len(run.events), 1)
        rows.append({
            "n": n, "d": d, "pacing": pacing[0], "ms": f"{1e3 * seconds:.1f}", "events": len(run.events),
            "jumps": len(run.jumps), "us/event": f"{1e6 * each:.2f}", "us/pass": f"{1e6 * one_pass(X, y):.1f}",
            "event/pass": f"{each / one_pass(X, y):.3f}",
        })
    return table(rows)


def table(rows: list[dict]) -> str:
    """Aligned, and Markdown too."""
    heads = list(dict.fromkeys(key for row in rows for key in row))
    lines = [heads] + [[cell(row.get(head, "")) for head in heads] for row in rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(heads))]
    text = ["| " + " | ".join(c.rjust(w) for c, w in zip(line, widths)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (w + 1) + ":" for w in widths) + "|")
    return "\n".join(text)


def cell(value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small data sets, 40 ages, no growth tables")
    parser.add_argument("--only", metavar="NAME", help="one data set, no growth tables")
    parser.add_argument("--time-cap", type=float, default=120.0, metavar="SECONDS", help="per ACS run (default 120)")
    parser.add_argument("--write", action="store_true", help="write bench/results.md")
    args = parser.parse_args()
    command = Command(Path(os.environ.get("AGEPATH_BIN", ROOT / "target/release/agepath")))
    data = Path(os.environ.get("AGEPATH_DATA", ROOT.parent / "shared/datasets"))
    cases = [c for c in (SMALL if args.quick else SMALL + LARGE) if args.only in (None, c.data)]
    if not cases:
        parser.error(f"--only {args.only}: choose from {', '.join(dict.fromkeys(c.data for c in SMALL + LARGE))}")
    parts = [
        "# Benchmark",
        f"30 % of the rows corrupted, ages {AGES[0]:g} to {AGES[1]:g}, alpha {ALPHA:g} (Lasso), C 1 (logistic), one "
        f"thread, relative KKT residual {acs.TOLERANCE:g} or better on both sides. ACS: scikit-learn "
        f"{sklearn.__version__}, numpy {np.__version__}, scipy {scipy.__version__}. Made by `python bench/run.py --write`.",
        *compare(command, cases, GRIDS[:1] if args.quick else GRIDS, data, args.time_cap),
    ]
    if not args.quick and args.only is None:
        by_rows = [(n, 10) for n in (2000, 4000, 8000, 16000, 32000)]
        by_columns = [(4000, d) for d in (5, 10, 20, 40, 80)]
        for title, shapes in (("rows", by_rows), ("columns", by_columns)):
            parts.append(f"## Growth with {title} (synthetic, exact path only)")
            parts += [growth(command, shapes, pacing) for pacing in (LINEAR, MIXTURE)]
    text = "\n\n".join(parts) + "\n"
    print(text)
    if args.write:
        (ROOT / "bench/results.md").write_text(text)


if __name__ == "__main__":
    main()
