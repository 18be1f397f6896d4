"""The exact SVM path against warm-started ACS with scikit-learn's SVC, on the same kernel matrix.

    python bench/svm.py [--only breast_cancer] [--time-cap 120]

ACS gets the kernel for nothing; the exact path computes its own. A sweep that reaches the time cap is reported with the
ages it managed, and its time is extrapolated from them. Both sides use one thread.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from selfpaced import Run, read_run
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

ROOT = Path(__file__).resolve().parents[1]
STOP = 1e-6
"""ACS stops when no weight moves by more than this."""

CASES = [("breast_cancer", 200), ("pendigits_tes", 40), ("mfeat_pixel", 40)]
PACINGS = ["linear", "mixture"]
AGES = (0.1, 20.0)
"""As in run.py. The exact path comes down from age infinity; ACS starts at the highest age, from the full fit."""
CHECKS = 200
"""Random ages at which the exact path is certified, in a run that is not timed."""


def kernel(run: Run) -> np.ndarray:
    return rbf_kernel(run.X, gamma=run.path["problem"]["kernel"]["gamma"])


def fit(run: Run, K: np.ndarray, weight: np.ndarray, tol: float) -> np.ndarray:
    """Decision values of the SVC with these weights."""
    rows = np.flatnonzero(weight > 0.0)
    svc = SVC(kernel="precomputed", C=run.spec.c, tol=tol, cache_size=500)
    svc.fit(K[np.ix_(rows, rows)], run.y[rows], sample_weight=weight[rows])
    return svc.decision_function(K[:, rows])


def weights(run: Run, z: np.ndarray, age: float) -> np.ndarray:
    return run.spec.pacing.weight(run.spec.c * np.maximum(0.0, 1.0 - run.y * z), age)


def acs(run: Run, K: np.ndarray, z: np.ndarray, age: float, tol: float = 1e-10, stop: float = STOP, deadline=np.inf):
    """Alternates weights and SVC until the weights stand still: decision values and the number of fits."""
    weight, fits = weights(run, z, age), 0
    while time.perf_counter() < deadline:
        z, fits = fit(run, K, weight, tol), fits + 1
        last, weight = weight, weights(run, z, age)
        if np.abs(weight - last).max() < stop:
            break
    return z, fits


def target_of(name: str, table: np.ndarray) -> np.ndarray:
    """Digits 5 and above, or the first 500 rows, against the rest."""
    if name == "mfeat_pixel":
        return np.where(np.arange(len(table)) < 500, "a", "b")
    return np.where(table[:, -1].astype(float) >= 5, "a", "b")


def data_file(name: str, data: Path, directory: Path) -> str:
    if name == "breast_cancer":
        return "builtin:breast_cancer"
    with gzip.open(data / f"{name}.csv.gz", "rt") as lines:
        table = np.array([line.rstrip("\n").split(",") for line in lines][1:])
    out = directory / f"{name}.csv"
    columns = table.shape[1] - 1
    header = ",".join([f"x{j}" for j in range(columns)] + ["target"])
    rows = np.column_stack([table[:, :columns], target_of(name, table)])
    out.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n")
    return str(out)


def measure(binary: Path, name: str, count: int, pacing: str, data: Path, cap: float) -> str:
    low, high = AGES
    with tempfile.TemporaryDirectory() as directory:
        source = data_file(name, data, Path(directory))

        def path(checks: int) -> Run:
            out = Path(directory) / f"out{checks}"
            subprocess.run(
                [binary, "path", source, "--model", "svm", "--pacing", pacing, "--noise", "flip:0.3", "--validation", "0",
                 "--ages", f"{low}:{high}", "--certify", str(checks), "--threads", "1", "--quiet", "-o", out], check=True,
            )
            return read_run(out)

        run, checked = path(0), path(CHECKS)
    work, events = run.path["work"], run.path["events"]
    K, z = kernel(run), run.y.copy()
    done = fits = 0
    begun = time.perf_counter()
    for age in np.geomspace(high, low, count):
        z, more = acs(run, K, z, age, deadline=begun + cap)
        fits += more
        if time.perf_counter() - begun > cap:
            break
        done += 1
    seconds = (time.perf_counter() - begun) * count / max(done, 1)
    note = "" if done == count else f" (from {done} ages)"
    return (
        f"| {name} | {pacing} | {len(run.y)} | {work['active']} | {len(events)} | {len(run.jumps)} | {work['updates']} "
        f"| {work['factorizations']} | {work['acs_fits']} | {work['seconds']:.2f} | {checked.path['certificate']['max_kkt']:.0e} "
        f"| {count} | {fits} | {seconds:.1f}{note} | {seconds / work['seconds']:.1f} | {run.path['end']} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[name for name, _ in CASES])
    parser.add_argument("--time-cap", type=float, default=120.0, metavar="SECONDS", help="per ACS sweep (default 120)")
    args = parser.parse_args()
    binary = Path(os.environ.get("AGEPATH_BIN", ROOT / "target/release/agepath"))
    data = Path(os.environ.get("AGEPATH_DATA", ROOT.parent / "shared/datasets"))
    print("| data | pacing | n | s | events | jumps | updates | factors | fits | exact s | kkt | ages | ACS fits | ACS s | ratio | end |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    for name, count in CASES:
        if args.only in (None, name):
            for pacing in PACINGS:
                print(measure(binary, name, count, pacing, data, args.time_cap), flush=True)


if __name__ == "__main__":
    main()
