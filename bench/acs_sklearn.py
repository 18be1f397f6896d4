"""Alternate convex search (ACS) over a grid of ages, the way a competent scikit-learn user would write it.

At each age: weights v*(loss, age), weighted fit, again, until the joint problem is stationary to `TOLERANCE`. The grid
is walked downwards, each age warm started from the one before, the first from the ordinary fit.

What makes it fast: one thread (these problems are too small for more), parameter validation off, and for squared loss
the weighted fit works on the d x d Gram matrix, whose product with the coefficients also gives the stationarity
residual for nothing. Rows of weight 0 are left out of it.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import sklearn
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, enet_path

from selfpaced import Spec, read_run

TOLERANCE = 1e-8
"""Relative stationarity residual of the joint problem at which an age is done."""

FIT_CAP = 5000
"""Weighted fits per age after which ACS is given up; near a fold it slows down without bound."""

CD_TOLERANCE = 1e-12
"""Coordinate descent's own tolerance (duality gap). Above 1e-10 ACS stalls short of `TOLERANCE`; below 1e-13 the gap is
rounding noise and fits become several times slower."""

CD_STALLED = 1e-15
"""The tolerance of a fit that would otherwise return its own start."""

CD_SWEEPS = 1000
"""Sweeps per fit at most; the next fit carries on where this one stopped."""

NEWTON_TOLERANCE = 1e-10
"""Newton's own tolerance (mean gradient): `TOLERANCE` times the smallest mean |psi| met."""


class OneClassLeft(Exception):
    """Every weight of one class is 0: the free intercept runs away and there is nothing to fit."""


@dataclass
class Sweep:
    """What ACS found at the ages it reached."""

    ages: np.ndarray
    W: np.ndarray
    b: np.ndarray
    fits: np.ndarray
    kkt: np.ndarray
    seconds: float
    capped: list[float] = field(default_factory=list)
    end: str = "complete"

    @property
    def done(self) -> int:
        return len(self.b)


class WeightedLasso:
    """(1/2n) sum v r^2 + l1 |w|_1 + l2/2 |w|^2 with a free intercept, by coordinate descent on the Gram matrix."""

    def __init__(self, X, y, spec: Spec):
        n, d = X.shape
        self.spec, self.n, self.d = spec, n, d
        self.X, self.y = np.ascontiguousarray(X), y
        self.rows = np.column_stack([X, np.ones(n), y])
        # enet_path reads only the shape of X and the norm of y once it has the Gram matrix.
        self.shape_only = np.zeros((d, d), order="F")
        self.norm_only = np.zeros(d)

    def state(self, w, b, age):
        """The weights at (w, b), the weighted moments, and the stationarity residual."""
        n, d = self.n, self.d
        r = self.y - self.X @ w - b
        v = self.spec.pacing.weight(r * r, age)
        rows = self.rows
        kept = np.flatnonzero(v)
        root = np.sqrt(v)
        if len(kept) < 0.7 * n:
            rows, root = rows[kept], root[kept]
        rows = rows * root[:, None]
        moments = rows.T @ rows / n
        psi_total = np.abs(v * r).sum() / n
        against = moments[: d + 1, : d] @ w + moments[: d + 1, d] * b - moments[: d + 1, d + 1]
        worst = max(self.spec.violation(against[:d], w).max(), abs(against[d]))
        return moments, (worst / psi_total if worst > 0.0 else 0.0)

    def fit(self, moments, w):
        d, spec = self.d, self.spec
        total = moments[d, d]
        if total == 0.0:
            return np.zeros(d), 0.0
        x_mean, y_mean = moments[:d, d] / total, moments[d, d + 1] / total
        gram = moments[:d, :d] - total * np.outer(x_mean, x_mean)
        xy = moments[:d, d + 1] - total * x_mean * y_mean
        if spec.l1 == 0.0:
            w = np.linalg.solve(gram + spec.l2 * np.eye(d), xy)
            return w, y_mean - x_mean @ w
        self.norm_only[0] = np.sqrt(max(moments[d + 1, d + 1] - total * y_mean**2, 0.0))
        found = self.descend(gram, xy, w, CD_TOLERANCE)
        if np.array_equal(found, w):  # good enough for the gap, not for us, or we would not be here
            found = self.descend(gram, xy, w, CD_STALLED)
        return found, y_mean - x_mean @ found

    def descend(self, gram, xy, w, tolerance):
        alpha = self.spec.l1 + self.spec.l2
        _, coefs, _ = enet_path(
            self.shape_only,
            self.norm_only,
            l1_ratio=self.spec.l1 / alpha,
            alphas=[alpha / self.d],  # enet_path multiplies by the number of rows it sees
            precompute=gram,
            Xy=xy,
            coef_init=w.copy(),  # it is overwritten
            tol=tolerance,
            max_iter=CD_SWEEPS,
            check_input=False,
        )
        return coefs[:, 0]

    def ordinary(self):
        rows = self.rows
        return self.fit(rows.T @ rows / self.n, np.zeros(self.d))


class WeightedLogistic:
    """sum v C ln(1 + e^{-yz}) + |w|^2/2 with a free intercept, by Newton's method."""

    def __init__(self, X, y, spec: Spec):
        if spec.l1 != 0.0 or spec.l2 != 1.0:
            raise ValueError("the logistic baseline knows the penalty |w|^2/2 only")
        self.X, self.y, self.spec = np.ascontiguousarray(X), y, spec
        self.model = LogisticRegression(
            solver="newton-cholesky", warm_start=True, tol=NEWTON_TOLERANCE, max_iter=200
        )

    def state(self, w, b, age):
        spec, margin = self.spec, self.y * (self.X @ w + b)
        v = spec.pacing.weight(spec.c * np.logaddexp(0.0, -margin), age)
        psi = -spec.c * v * self.y * expit(-margin)
        worst = max(spec.violation(psi @ self.X, w).max(), abs(psi.sum()))
        total = np.abs(psi).sum()
        return v, (worst / total if worst > 0.0 else 0.0)

    def fit(self, v, w):
        if len(np.unique(self.y[v > 0.0])) < 2:
            raise OneClassLeft
        self.model.fit(self.X, self.y, sample_weight=self.spec.c * v)
        return self.model.coef_[0], self.model.intercept_[0]

    def ordinary(self):
        return self.fit(np.ones(len(self.y)), None)


def sweep(X, y, spec: Spec, ages, time_cap: float = np.inf) -> Sweep:
    """ACS at every age, in the order given; stops early at `time_cap` seconds with the ages done so far."""
    fitter = (WeightedLasso if spec.loss == "squared" else WeightedLogistic)(X, y, spec)
    found = Sweep(np.asarray(ages, dtype=float), [], [], [], [], 0.0)
    quiet = sklearn.config_context(assume_finite=True, skip_parameter_validation=True)
    with quiet, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the joint residual is the test that counts
        start = time.perf_counter()
        w, b = fitter.ordinary()
        for age in ages:
            try:
                w, b, count, kkt = alternate(fitter, w, b, age, start + time_cap)
            except OneClassLeft:
                found.end = "one class left"
                break
            if kkt > TOLERANCE:
                if count < FIT_CAP:
                    found.end = "time cap"
                    break
                found.capped.append(float(age))
            for column, value in zip((found.W, found.b, found.fits, found.kkt), (w.copy(), b, count, kkt)):
                column.append(value)
        found.seconds = time.perf_counter() - start
    found.ages = found.ages[: len(found.b)]
    found.W, found.b = np.array(found.W).reshape(len(found.b), X.shape[1]), np.array(found.b)
    found.fits, found.kkt = np.array(found.fits, dtype=int), np.array(found.kkt)
    return found


def alternate(fitter, w, b, age, deadline):
    """Weights, fit, weights, fit … at one age, until stationary, out of fits, or out of time."""
    count = 0
    state, kkt = fitter.state(w, b, age)
    while kkt > TOLERANCE and count < FIT_CAP and time.perf_counter() < deadline:
        w, b = fitter.fit(state, w)
        state, kkt = fitter.state(w, b, age)
        count += 1
    return w, b, count, kkt


def acs_path(X, y, spec: Spec, ages):
    """Coefficients, intercepts, fits per age, seconds and the largest joint residual along `ages`."""
    found = sweep(X, y, spec, ages)
    return found.W, found.b, found.fits, found.seconds, found.kkt.max()


def log_ages(low: float, high: float, count: int) -> np.ndarray:
    """`count` ages from `high` down to `low`, evenly spaced in the logarithm."""
    return np.geomspace(high, low, count)


def main():
    parser = argparse.ArgumentParser(description="ACS over a grid of ages, on the rows of a computed path")
    parser.add_argument("directory", type=Path, help="written by `agepath path`")
    parser.add_argument("--ages", type=int, default=40, metavar="N", help="log-spaced ages (default 40)")
    parser.add_argument("--time-cap", type=float, default=np.inf, metavar="SECONDS")
    args = parser.parse_args()
    run = read_run(args.directory)
    found = sweep(run.X, run.y, run.spec, log_ages(*run.path["ages"], args.ages), args.time_cap)
    for age, w, b, fits, kkt in zip(found.ages, found.W, found.b, found.fits, found.kkt):
        print(f"{age:.6g}\tfits {fits}\tkkt {kkt:.1e}\tintercept {b:.9g}\tcoef {' '.join(f'{c:.9g}' for c in w)}")
    print(f"{found.done} of {args.ages} ages, {found.fits.sum()} fits, {found.seconds:.3f} s, "
          f"max kkt {found.kkt.max(initial=0):.1e}, fit cap hit at {len(found.capped)} ages")


if __name__ == "__main__":
    main()
