"""The yardstick is measured first: the numpy formulas and the scikit-learn ACS the engine is compared with."""

import acs_sklearn as acs
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize, minimize_scalar
from selfpaced import Pacing, Spec

PACINGS = [Pacing("hard"), Pacing("linear"), Pacing("mixture", gamma=0.5), Pacing("log", a=1.5)]
SMOOTH = PACINGS[1:]


def regularizer(pacing, v, age):
    if pacing.kind == "hard":
        return -age * v
    if pacing.kind == "linear":
        return age * (v * v / 2 - v)
    if pacing.kind == "mixture":
        return pacing.gamma**2 / (v + pacing.gamma / age)
    p = 1 + pacing.a * age
    return (p * np.log(p / v) - p + v) / pacing.a


def problem(kind, n=60, d=4, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    z = X @ np.array([1.0, -0.5, 0.0, 0.25])[:d]
    bad = rng.random(n) < 0.3
    if kind == "lasso":
        return X, z + 0.3 * rng.standard_normal(n) + 6.0 * bad
    return X, np.where((z + 0.3 * rng.standard_normal(n) > 0) ^ bad, 1.0, -1.0)


def spec_for(kind, pacing):
    return Spec.lasso(pacing, 0.02) if kind == "lasso" else Spec.logistic(pacing)


@pytest.mark.parametrize("pacing", PACINGS, ids=lambda p: p.kind)
def test_the_weight_minimises_the_pacing_problem(pacing):
    grid = np.linspace(1e-9, 1, 20001)
    for age in (0.3, 1.0, 7.0):
        for loss in (0.01, 0.2, 0.9, 3.0, 60.0):
            best = grid[np.argmin(grid * loss + regularizer(pacing, grid, age))]
            assert pacing.weight(np.array([loss]), age)[0] == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("pacing", PACINGS, ids=lambda p: p.kind)
def test_primitive_and_slope_belong_to_the_weight(pacing):
    for age in (0.3, 1.0, 7.0):
        for loss in (0.01, 0.2, 0.9, 3.0, 60.0):
            area, _ = quad(lambda t: pacing.weight(np.array([t]), age)[0], 0, loss,
                           points=[t for t in pacing.thresholds(age) if t < loss] or None, limit=200)
            assert pacing.primitive(np.array([loss]), age)[0] == pytest.approx(area, rel=1e-8)
            h = 1e-6 * loss
            difference = np.diff(pacing.weight(np.array([loss - h, loss + h]), age))[0] / (2 * h)
            assert pacing.weight_slope(np.array([loss]), age)[0] == pytest.approx(difference, abs=1e-7, rel=1e-6)


@pytest.mark.parametrize("kind", ["lasso", "logistic"])
@pytest.mark.parametrize("pacing", PACINGS, ids=lambda p: p.kind)
def test_acs_reaches_its_tolerance(kind, pacing):
    X, y = problem(kind)
    spec = spec_for(kind, pacing)
    ages = acs.log_ages(2.0, 20.0, 15)
    W, b, fits, seconds, worst = acs.acs_path(X, y, spec, ages)
    assert len(W) == len(ages) and worst <= acs.TOLERANCE and seconds > 0
    for w, intercept, age in zip(W, b, ages):
        assert spec.kkt(X, y, w, intercept, age) <= 1.01 * acs.TOLERANCE


@pytest.mark.parametrize("kind", ["lasso", "logistic"])
@pytest.mark.parametrize("pacing", PACINGS, ids=lambda p: p.kind)
def test_no_fit_increases_the_objective(kind, pacing):
    X, y = problem(kind)
    spec = spec_for(kind, pacing)
    fitter = (acs.WeightedLasso if kind == "lasso" else acs.WeightedLogistic)(X, y, spec)
    w, b = fitter.ordinary()
    values = []
    for _ in range(30):
        values.append(spec.objective(X, y, w, b, age=1.5))
        state, _ = fitter.state(w, b, 1.5)
        w, b = fitter.fit(state, w)
    assert np.all(np.diff(values) <= 1e-12 * abs(values[0]))


@pytest.mark.parametrize("kind", ["lasso", "logistic"])
@pytest.mark.parametrize("pacing", SMOOTH, ids=lambda p: p.kind)
def test_acs_ends_in_a_local_minimum(kind, pacing):
    """A general optimiser started at the ACS point finds nothing better, and comes back from a small push."""
    X, y = problem(kind)
    spec = spec_for(kind, pacing)
    age = 3.0
    W, b, *_ = acs.acs_path(X, y, spec, [20.0, 8.0, age])
    found = np.append(W[-1], b[-1])
    value = lambda t: spec.objective(X, y, t[:-1], t[-1], age)
    push = found + 0.01 * np.random.default_rng(0).standard_normal(len(found))
    best = minimize(value, push, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 20000})
    assert best.fun >= value(found) - 1e-11
    assert np.allclose(best.x, found, atol=2e-5)


def test_one_parameter_against_a_scan():
    """One column, no freedom to hide: the ACS point is a minimum of a curve we can scan."""
    X, y = problem("lasso", d=1)
    spec = Spec("squared", Pacing("linear"), l1=0.02)
    W, b, *_ = acs.acs_path(X, y, spec, acs.log_ages(2.0, 20.0, 30))
    at = minimize_scalar(lambda w: spec.objective(X, y, np.array([w]), b[-1], 2.0),
                         bracket=(W[-1, 0] - 0.05, W[-1, 0], W[-1, 0] + 0.05), options={"xtol": 1e-12})
    assert at.x == pytest.approx(W[-1, 0], abs=1e-6)


def test_the_time_cap_keeps_only_finished_ages():
    X, y = problem("lasso")
    found = acs.sweep(X, y, Spec.lasso(Pacing("linear")), acs.log_ages(0.5, 20.0, 40), time_cap=0.0)
    assert found.end == "time cap" and found.done < 40
    assert len(found.ages) == len(found.W) == found.done
