"""Formulas of the paper that do not hold as printed: each is set beside the corrected one and beside differences of exact solutions."""

import numpy as np
import pytest
from agepath import age_path

RAW = {"standardize": False, "target_scale": "none", "fit_intercept": False}


def made_up(kind, n=80, d=4, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    z = X @ np.array([1.5, -1.0, 0.5, 0.8])[:d]
    bad = rng.random(n) < 0.25
    if kind == "numbers":
        return X, z + 0.4 * rng.standard_normal(n) + np.where(bad, 5.0 * rng.standard_normal(n), 0.0)
    return X, np.where((z + 0.5 * rng.standard_normal(n) > 0) ^ bad, 1.0, -1.0)


def quiet_age(path, low, high):
    """The middle of the widest stretch without critical points, and its width."""
    ages = np.sort([a for a in path.events["age"] if low < a < high])
    ages = np.concatenate([[low], ages, [high]])
    k = np.argmax(np.diff(ages))
    return (ages[k] + ages[k + 1]) / 2, ages[k + 1] - ages[k]


def tangent(path, age, width):
    """dw/dλ by central differences of exact solutions."""
    h = min(1e-4 * age, width / 10)
    return (path.at(age + h).solver_coef - path.at(age - h).solver_coef) / (2 * h)


def weight(pacing, gamma, loss, age):
    """v*, its slope in the loss and its slope in the age."""
    if pacing == "linear":
        inside = loss < age
        return np.where(inside, 1 - loss / age, 0), np.where(inside, -1 / age, 0), np.where(inside, loss / age**2, 0)
    low, high = (age * gamma / (age + gamma)) ** 2, age**2
    middle = (loss > low) & (loss < high)
    v = np.where(loss <= low, 1.0, np.where(middle, gamma * (loss**-0.5 - 1 / age), 0.0))
    return v, np.where(middle, -0.5 * gamma * loss**-1.5, 0), np.where(middle, gamma / age**2, 0)


def lasso(pacing, alpha=1e-3, gamma=0.8):
    X, y = made_up("numbers")
    path = age_path(X, y, model="lasso", alpha=alpha, pacing=pacing, pacing_gamma=gamma, ages=(1.0, 12.0), direction="down", **RAW)
    age, width = quiet_age(path, 1.5, 11.0)
    w = path.at(age).solver_coef
    assert np.all(w != 0), "the formulas below are for all coefficients active"
    r = X @ w - y
    v, v_loss, v_age = weight(pacing, gamma, r**2, age)
    s = 1 / (2 * len(y))
    hessian = X.T @ ((s * (2 * v + 4 * v_loss * r**2))[:, None] * X)
    return X, r, age, gamma, s, v_age, hessian, tangent(path, age, width), v_loss


def logistic(pacing, C=2.0, gamma=0.8):
    X, y = made_up("classes")
    path = age_path(X, y, model="logistic", C=C, pacing=pacing, pacing_gamma=gamma, ages=(1.5, 12.0), direction="down", **RAW)
    age, width = quiet_age(path, 2.0, 11.0)
    w = path.at(age).solver_coef
    m = y * (X @ w)
    loss, sigma = C * np.logaddexp(0, -m), 1 / (1 + np.exp(m))
    slope, curve = -C * y * sigma, C * sigma * (1 - sigma)
    v, v_loss, v_age = weight(pacing, gamma, loss, age)
    return {"X": X, "y": y, "C": C, "age": age, "gamma": gamma, "loss": loss, "slope": slope, "curve": curve, "v": v,
            "v_loss": v_loss, "v_age": v_age, "tangent": tangent(path, age, width)}


def hessian_of(t, with_pacing=True):
    h = t["v"] * t["curve"] + (t["v_loss"] * t["slope"] ** 2 if with_pacing else 0)
    return np.eye(t["X"].shape[1]) + t["X"].T @ (h[:, None] * t["X"])


def far(a, b):
    """Clearly different vectors."""
    return np.linalg.norm(a - b) > 0.05 * np.linalg.norm(b)


def test_1_the_jacobian_needs_the_slope_of_the_weights_and_the_tangent_its_minus_sign():
    t = logistic("linear")
    q = t["X"].T @ (t["v_age"] * t["slope"])
    right = -np.linalg.solve(hessian_of(t), q)
    np.testing.assert_allclose(right, t["tangent"], rtol=1e-4, atol=1e-8)
    assert far(-np.linalg.solve(hessian_of(t, with_pacing=False), q), t["tangent"])
    assert far(-right, t["tangent"])


def test_2_lasso_with_linear_pacing_needs_the_sign_of_the_residual():
    X, r, age, _, s, _, hessian, found, _ = lasso("linear")
    inside = r**2 < age
    side = lambda residual: 2 * s * X.T @ np.where(inside, r**2 * residual, 0) / age**2  # noqa: E731
    np.testing.assert_allclose(-np.linalg.solve(hessian, side(r)), found, rtol=1e-4, atol=1e-8)
    assert far(-np.linalg.solve(hessian, side(np.abs(r))), found)


def test_3_lasso_with_mixture_pacing_has_the_residual_where_the_paper_has_the_loss():
    X, r, age, gamma, s, v_age, hessian, found, _ = lasso("mixture")
    middle = v_age > 0
    assert middle.sum() > 3
    side = lambda what: 2 * s * gamma / age**2 * X.T @ np.where(middle, what, 0)  # noqa: E731
    np.testing.assert_allclose(-np.linalg.solve(hessian, side(r)), found, rtol=1e-4, atol=1e-8)
    assert far(-np.linalg.solve(hessian, side(r**2)), found)


def test_3_the_mixture_weight_is_not_half_of_that():
    v = np.linspace(0, 1, 200001)
    for loss in (0.3, 0.7, 1.5):
        gamma, age = 0.8, 4.0
        best = v[np.argmin(v * loss + gamma**2 / (v + gamma / age))]
        assert best == pytest.approx(min(1, gamma * (loss**-0.5 - 1 / age)), abs=1e-4)
        assert abs(best - gamma * (0.5 * loss**-0.5 - 1 / age)) > 0.05


def test_4_rows_of_full_weight_inside_the_margin_have_the_dual_variable_C():
    X, y = made_up("classes")
    path = age_path(X, y, model="svm", C=2.0, kernel="rbf", gamma=0.2, pacing="mixture", pacing_gamma=1.0, ages=(1.0, 10.0))
    at = path.at(5.0)
    full = (at.weights == 1) & (at.losses > 1e-6)
    assert full.sum() > 5
    np.testing.assert_allclose(np.abs(at.solver_coef[full]), 2.0, rtol=1e-9)


def test_5_logistic_with_linear_pacing_has_the_opposite_sign():
    t = logistic("linear")
    inside = t["loss"] < t["age"]
    side = t["C"] * t["X"].T @ np.where(inside, t["y"] * t["loss"] / t["age"] ** 2 * (np.exp(-t["loss"] / t["C"]) - 1), 0)
    right = -np.linalg.solve(hessian_of(t), side)
    np.testing.assert_allclose(right, t["tangent"], rtol=1e-4, atol=1e-8)
    assert far(np.linalg.solve(hessian_of(t), side), t["tangent"])


def test_6_logistic_with_mixture_pacing_is_not_the_linear_one():
    t = logistic("mixture")
    middle = t["v_age"] > 0
    assert middle.sum() > 3
    right = t["X"].T @ np.where(middle, t["gamma"] / t["age"] ** 2 * t["slope"], 0)
    np.testing.assert_allclose(-np.linalg.solve(hessian_of(t), right), t["tangent"], rtol=1e-4, atol=1e-8)
    linear = t["X"].T @ (t["loss"] / t["age"] ** 2 * t["slope"])
    assert far(-np.linalg.solve(hessian_of(t), linear), t["tangent"])


def test_7_at_a_fold_the_jacobian_is_singular():
    for seed in range(20):
        X, y = made_up("numbers", n=60, d=4, seed=seed)
        path = age_path(X, y, model="least-squares", pacing="linear", ages=(0.5, 20.0), direction="down", **RAW)
        events = path.events
        folds = events[(events["cause"] == "fold") & (events["kind"] == "jump")]
        if not len(folds):
            continue
        fold = float(folds["age"].iloc[0])
        least = []
        for gap in (1e-2, 1e-4, 1e-6):
            r = X @ path.at(fold * (1 + gap)).solver_coef - y
            v, v_loss, _ = weight("linear", 0, r**2, fold * (1 + gap))
            h = X.T @ ((2 * v + 4 * v_loss * r**2)[:, None] * X)
            least.append(np.linalg.eigvalsh(h)[0] / np.linalg.eigvalsh(h)[-1])
        assert least[0] > least[1] > least[2] > 0
        assert least[2] < 0.05 * least[0]
        return
    pytest.fail("no fold in twenty data sets")


def test_8_an_age_chosen_by_the_test_rows_looks_better_than_it_is():
    told, true = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, fresh = rng.standard_normal((100, 5)), rng.standard_normal((2000, 5))
        y, y_fresh = rng.choice([-1, 1], 100), rng.choice([-1, 1], 2000)  # nothing can be learned
        path = age_path(X[:60], y[:60], model="logistic", ages=(0.8, 5.0), direction="down")
        ages = np.geomspace(*path.ages, 60)
        hits = (path.predict(X[60:], ages) == y[60:]).mean(axis=1)
        told.append(hits.max())
        true.append((path.predict(fresh, ages[hits.argmax()]) == y_fresh).mean())
    assert abs(np.mean(true) - 0.5) < 0.02
    assert np.mean(told) > np.mean(true) + 0.02
