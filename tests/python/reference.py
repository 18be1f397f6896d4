"""A fine ACS sweep with its own polish: what the exact path is checked against.

ACS chooses the local minimiser. Once it is close, Newton's method on the joint problem (active coefficients and signs
held) finishes in a few steps; a result that is not a stable minimiser with the same signs is thrown away and ACS goes on.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass

import acs_sklearn as acs
import numpy as np
import sklearn
from scipy.special import expit
from selfpaced import Spec

POLISHED = 1e-13
"""Relative residual a polished point has; coefficients are then right to about 1e-10 unless a fold is near."""

FIRST_TRY = 1e-3
"""Residual at which Newton is tried first; each failure divides it by ten."""


class NewtonLogistic(acs.WeightedLogistic):
    """One Newton step per weighting: thousands of ages need something lighter than an estimator."""

    def fit(self, v, w):
        if w is None:
            return super().fit(v, w)
        n, d = self.X.shape
        margin = self.y * (self.X @ w + self.b)
        miss = expit(-margin)
        rows = np.column_stack([self.X, np.ones(n)])
        ridge = np.append(np.ones(d), 0.0)
        theta = np.append(w, self.b)
        gradient = rows.T @ (-self.spec.c * v * self.y * miss) + ridge * theta
        scaled = rows * np.sqrt(self.spec.c * v * miss * (1.0 - miss))[:, None]
        theta = theta - np.linalg.solve(scaled.T @ scaled + np.diag(ridge), gradient)
        return theta[:-1], theta[-1]

    def state(self, w, b, age):
        self.b = b
        return super().state(w, b, age)


class Reference:
    """Follows ACS from age to age on one problem."""

    def __init__(self, X, y, spec: Spec):
        self.X, self.y, self.spec = X, y, spec
        self.design = np.column_stack([X, np.ones(len(y))])
        self.fitter = (acs.WeightedLasso if spec.loss == "squared" else NewtonLogistic)(X, y, spec)

    def start(self, age: float) -> np.ndarray:
        """Down from an age so large that the problem is convex for all practical purposes."""
        with quiet():
            w, b = self.fitter.ordinary()
        theta = np.append(w, b)
        for step in np.geomspace(max(1e4, 100 * age), age, 300):
            theta = self.solve(theta, step)
        return theta

    def solve(self, theta: np.ndarray, age: float) -> np.ndarray:
        """The minimiser ACS reaches at `age` from `theta`."""
        with quiet():
            w, b = theta[:-1], theta[-1]
            next_try = FIRST_TRY
            for _ in range(20 * acs.FIT_CAP):
                state, kkt = self.fitter.state(w, b, age)
                if kkt <= next_try:
                    polished = self.polish(np.append(w, b), age)
                    if polished is not None:
                        return polished
                    next_try = kkt / 10
                    if kkt < POLISHED:
                        return np.append(w, b)
                w, b = self.fitter.fit(state, w)
        raise RuntimeError(f"ACS did not settle at age {age}")

    def polish(self, theta: np.ndarray, age: float) -> np.ndarray | None:
        spec, Z, y = self.spec, self.design, self.y
        first = self.value(theta, age)
        active = np.append(theta[:-1] != 0.0, True) if spec.l1 > 0.0 else np.full(len(theta), True)
        signs = np.sign(theta)
        signs[-1] = 0.0
        ridge = np.append(np.full(len(theta) - 1, spec.l2), 0.0)
        s = spec.scale(len(y))
        theta = theta.copy()
        for _ in range(12):
            z = Z @ theta
            loss, slope = spec.losses(z, y), spec.slopes(z, y)
            v = spec.pacing.weight(loss, age)
            g = Z.T @ (s * v * slope) + ridge * theta + spec.l1 * signs
            h = s * (v * spec.curvatures(z, y) + spec.pacing.weight_slope(loss, age) * slope**2)
            A = Z[:, active]
            hessian = (A * h[:, None]).T @ A + np.diag(ridge[active])
            try:
                np.linalg.cholesky(hessian)
            except np.linalg.LinAlgError:
                return None
            theta[active] -= np.linalg.solve(hessian, g[active])
            if spec.l1 > 0.0 and np.any(np.sign(theta[:-1]) != signs[:-1]):
                return None
            if spec.kkt(self.X, y, theta[:-1], theta[-1], age) <= POLISHED:
                return theta if self.value(theta, age) <= first + 1e-12 * abs(first) else None
        return None

    def value(self, theta, age):
        return self.spec.objective(self.X, self.y, theta[:-1], theta[-1], age)


@dataclass
class Discontinuity:
    """A change that does not shrink with the step: between `below` and `above` the solution moves by `size`."""

    above: float
    below: float
    size: float


def discontinuity(reference: Reference, above, theta_above, below, theta_below, halvings=4) -> Discontinuity:
    """Halves the step, always keeping the half in which the solution moves more."""
    for _ in range(halvings):
        middle = np.sqrt(above * below)
        theta = reference.solve(theta_above, middle)
        if np.linalg.norm(theta - theta_above) > np.linalg.norm(theta - theta_below):
            below, theta_below = middle, theta
        else:
            above, theta_above = middle, theta
    return Discontinuity(above, below, np.linalg.norm(theta_below - theta_above))


@contextmanager
def quiet():
    fast = sklearn.config_context(assume_finite=True, skip_parameter_validation=True)
    with fast, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
