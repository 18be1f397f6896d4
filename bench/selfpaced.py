"""The self-paced problem in numpy, written from its definition.

    minimise over w, b     R(w) + sum_i s F(l_i),     F(l) = integral of v*(t, age) dt from 0 to l

Shared by the benchmark's baseline and by the independent tests; shares nothing with the Rust engine.

    loss       l(z, y)                l'                       s
    squared    (z - y)^2              2 (z - y)                1 / (2n)
    logistic   C ln(1 + e^{-yz})      -C y / (1 + e^{yz})      1
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit


TINY = np.finfo(float).tiny
"""Keeps a constant column from dividing by zero; its gradient is zero as well."""


@dataclass(frozen=True)
class Pacing:
    """v*(l, age) = argmin over v in [0, 1] of v l + f(v, age), and its primitive in l."""

    kind: str
    gamma: float = 0.5
    a: float = 1.0

    def weight(self, loss: np.ndarray, age: float) -> np.ndarray:
        if self.kind == "hard":
            return (loss <= age).astype(float)
        if self.kind == "linear":
            return np.maximum(0.0, 1.0 - loss / age)
        if self.kind == "mixture":
            with np.errstate(divide="ignore"):
                return np.clip(self.gamma * (loss**-0.5 - 1.0 / age), 0.0, 1.0)
        if self.kind == "log":
            return np.minimum(1.0, (1.0 + self.a * age) / (1.0 + self.a * loss))
        raise ValueError(f"no pacing is called {self.kind!r}")

    def weight_slope(self, loss: np.ndarray, age: float) -> np.ndarray:
        """dv/dl, away from the thresholds."""
        if self.kind == "hard":
            return np.zeros_like(loss)
        if self.kind == "linear":
            return np.where(loss < age, -1.0 / age, 0.0)
        if self.kind == "mixture":
            low, high = self.thresholds(age)
            middle = (loss > low) & (loss < high)
            return np.where(middle, -0.5 * self.gamma * np.where(middle, loss, 1.0) ** -1.5, 0.0)
        if self.kind == "log":
            return np.where(loss > age, -self.a * (1.0 + self.a * age) / (1.0 + self.a * loss) ** 2, 0.0)
        raise ValueError(f"no pacing is called {self.kind!r}")

    def primitive(self, loss: np.ndarray, age: float) -> np.ndarray:
        if self.kind == "hard":
            return np.minimum(loss, age)
        if self.kind == "linear":
            inside = np.minimum(loss, age)
            return inside - inside**2 / (2.0 * age)
        if self.kind == "mixture":
            g, low = self.gamma, age * self.gamma / (age + self.gamma)
            root = np.clip(np.sqrt(loss), low, age)
            middle = 2.0 * g * (root - low) - g / age * (root**2 - low**2)
            return np.minimum(loss, low**2) + middle
        if self.kind == "log":
            top = 1.0 + self.a * age
            beyond = np.maximum(loss, age)
            return np.minimum(loss, age) + top / self.a * np.log((1.0 + self.a * beyond) / top)
        raise ValueError(f"no pacing is called {self.kind!r}")

    def thresholds(self, age: float) -> list[float]:
        """Losses at which one zone ends and the next begins."""
        if self.kind == "mixture":
            return [(age * self.gamma / (age + self.gamma)) ** 2, age**2]
        return [age]


@dataclass(frozen=True)
class Spec:
    """What to fit, without the data: loss, penalty l1 |w|_1 + l2/2 |w|^2, pacing."""

    loss: str
    pacing: Pacing
    l1: float = 0.0
    l2: float = 0.0
    c: float = 1.0
    intercept: bool = True

    @staticmethod
    def lasso(pacing: Pacing, alpha: float = 0.005) -> Spec:
        return Spec("squared", pacing, l1=alpha)

    @staticmethod
    def logistic(pacing: Pacing, c: float = 1.0) -> Spec:
        return Spec("logistic", pacing, l2=1.0, c=c)

    def scale(self, n: int) -> float:
        return 1.0 / (2.0 * n) if self.loss == "squared" else 1.0

    def losses(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (z - y) ** 2 if self.loss == "squared" else self.c * np.logaddexp(0.0, -y * z)

    def slopes(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 2.0 * (z - y) if self.loss == "squared" else -self.c * y * expit(-y * z)

    def curvatures(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.full_like(z, 2.0) if self.loss == "squared" else self.c * expit(z) * expit(-z)

    def objective(self, X, y, w, b, age) -> float:
        losses = self.losses(X @ w + b, y)
        penalty = self.l1 * np.abs(w).sum() + 0.5 * self.l2 * w @ w
        return penalty + self.scale(len(y)) * self.pacing.primitive(losses, age).sum()

    def violation(self, gradient: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Distance of 0 from gradient + dR(w), per coefficient."""
        smooth = gradient + self.l2 * w
        at_zero = np.maximum(np.abs(smooth) - self.l1, 0.0)
        return np.where(w == 0.0, at_zero, np.abs(smooth + self.l1 * np.sign(w)))

    def kkt(self, X, y, w, b, age, weights=None) -> float:
        """Stationarity residual of the joint problem, relative to sum |psi_i|.

        The weights are recomputed from the losses, so this is zero exactly at partial optima; `weights` replaces them.
        Columns are taken at unit root mean square.
        """
        z = X @ w + b
        if weights is None:
            weights = self.pacing.weight(self.losses(z, y), age)
        psi = self.scale(len(y)) * weights * self.slopes(z, y)
        worst = self.violation(X.T @ psi, w) / np.maximum(np.sqrt((X**2).mean(axis=0)), TINY)
        worst = max(worst.max(), abs(psi.sum()) if self.intercept else 0.0)
        total = np.abs(psi).sum()
        return worst / total if worst > 0.0 else 0.0


@dataclass(frozen=True)
class Run:
    """A directory written by `agepath path`: the data in the solver's units, the problem, the path."""

    X: np.ndarray
    y: np.ndarray
    spec: Spec
    path: dict
    directory: Path

    @property
    def events(self) -> list[dict]:
        return self.path["events"]

    @property
    def jumps(self) -> list[dict]:
        return [e for e in self.events if e["kind"] == "jump"]


def spec_of(problem: dict) -> Spec:
    """The problem a path.json says it solved."""
    penalty = problem["penalty"]
    alpha, kind = penalty.get("alpha", 0.0), penalty["kind"]
    ratio = {"none": 0.0, "l2": 0.0, "l1": 1.0, "elastic-net": penalty.get("l1_ratio")}[kind]
    return Spec(
        loss=problem["loss"],
        pacing=Pacing(**problem["pacing"]),
        l1=alpha * ratio,
        l2=alpha * (1.0 - ratio),
        c=problem.get("c") or 1.0,
        intercept=problem["intercept"],
    )


def read_run(directory: Path) -> Run:
    """Reads path.json and train.npz and converts the rows to the solver's units."""
    path = json.loads((directory / "path.json").read_text())
    problem = path["problem"]
    rows = np.load(directory / "train.npz")
    X, y = rows["X"], rows["y"]
    if problem.get("x_mean") is not None:
        X = X - np.array(problem["x_mean"])
    if problem.get("x_scale") is not None:
        X = X / np.array(problem["x_scale"])
    if not problem.get("classes"):
        y = (y - (problem.get("y_shift") or 0.0)) / (problem.get("y_scale") or 1.0)
    return Run(np.asfortranarray(X), y, spec_of(problem), path, directory)
