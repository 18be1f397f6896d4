"""The estimators and the path in the company they are used in."""

from __future__ import annotations

import csv
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path as File

import joblib
import numpy as np
import pytest
from conftest import agepath as command
from conftest import needs_command
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from agepath import (
    AgePathClassifier,
    AgePathRegressor,
    Path,
    SelfPacedLasso,
    SelfPacedLogisticRegression,
    SelfPacedSVC,
    _agepath,
    age_path,
)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:300], y[:300]


def corrupted(X, y, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    bad = rng.choice(len(y), int(share * len(y)), replace=False)
    y = y.copy()
    y[bad] += 6.0 * y.std()
    return X, y, bad


# --- the same numbers as the command ------------------------------------------------------------------------------


def write_csv(file, X, y):
    rows = ([*map(repr, map(float, x)), str(t)] for x, t in zip(X, y))
    header = [*(f"x{j}" for j in range(X.shape[1])), "target"]
    file.write_text("\n".join(map(",".join, [header, *rows])) + "\n")


@needs_command
@pytest.mark.parametrize("kind", ["lasso", "elastic-net", "ridge", "logistic", "svm"])
def test_the_same_bits_as_the_command(kind, diabetes, cancer, tmp_path):
    classes = kind in ("logistic", "svm")
    X, y = cancer if classes else diabetes
    write_csv(tmp_path / "data.csv", X, y if classes else map(repr, map(float, y)))
    command("path", tmp_path / "data.csv", "-o", tmp_path / "run", "--model", kind, "--validation", 0, "--quiet",
            "--ages", "0.5:20", "--l1-ratio", 0.5, "--alpha", 0.01, "--c", 1)  # fmt: skip
    path = age_path(X, y, model=kind, ages=(0.5, 20), alpha=0.01, l1_ratio=0.5, C=1.0)
    ages = [0.6, 1.7, 3.0, 19.0]
    lines = command("at", tmp_path / "run", "--solver-units", *(f"--age={age}" for age in ages)).splitlines()
    ours = path.at(ages)
    for k, line in enumerate(map(json.loads, lines)):
        if kind == "svm":
            support = np.flatnonzero(ours.solver_coef[k])
            assert line["dual"] == [[i, ours.solver_coef[k][i]] for i in support.tolist()]
        else:
            assert line["coef"] == ours.solver_coef[k].tolist()
        assert line["intercept"] == ours.solver_intercept[k]
        assert line["weights"] == ours.weights[k].tolist()
        assert line["zones"] == ours.zones[k].tolist()
    theirs = Path.load(tmp_path / "run")
    assert (theirs.coef(1.7) == path.coef(1.7)).all()
    path.save(tmp_path / "ours")
    again = command("at", tmp_path / "ours", "--solver-units", "--age", ages[1])
    assert json.loads(again) == json.loads(lines[1])


@needs_command
def test_the_estimator_is_the_command_with_folds(diabetes, tmp_path):
    X, y, _ = corrupted(*diabetes)
    write_csv(tmp_path / "data.csv", X, map(repr, map(float, y)))
    command("path", tmp_path / "data.csv", "-o", tmp_path / "run", "--cv", 5, "--seed", 3, "--quiet")
    model = json.loads((tmp_path / "run/model.json").read_text())
    ours = AgePathRegressor(cv=5, random_state=3).fit(X, y)
    assert ours.age_ == model["age"]
    loaded = Path.load(tmp_path / "run")
    assert loaded.age == ours.age_ and loaded.selection is None and len(loaded.suspects["row"]) == len(y)
    ours.path_.save(tmp_path / "ours")
    assert Path.load(tmp_path / "ours").age == ours.age_
    assert ours.coef_.tolist() == model["coef"] and ours.intercept_ == model["intercept"]


@needs_command
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_several_classes_are_those_of_the_command(loss, tmp_path):
    X, y = load_digits(return_X_y=True)
    X, y = X[y < 4][:240], y[y < 4][:240]
    names = np.array(["zero", "one", "two", "three"])
    write_csv(tmp_path / "data.csv", X, names[y])
    kind = {"logistic": "logistic", "hinge": "svm"}[loss]
    command("path", tmp_path / "data.csv", "-o", tmp_path / "run", "--model", kind, "--cv", 3, "--seed", 2, "--quiet")
    theirs = json.loads((tmp_path / "run/model.json").read_text())
    ours = AgePathClassifier(loss, cv=3, random_state=2).fit(X, names[y])
    assert ours.classes_.tolist() == theirs["classes"]
    ages = [np.inf if part["ordinary"] else part["age"] for part in theirs["one_vs_rest"]]
    assert ours.age_.tolist() == ages
    if loss == "logistic":
        assert ours.coef_.tolist() == [part["coef"] for part in theirs["one_vs_rest"]]
        assert ours.intercept_.tolist() == [part["intercept"] for part in theirs["one_vs_rest"]]
    command("predict", tmp_path / "run", tmp_path / "data.csv", "-o", tmp_path / "p.csv")
    rows = list(csv.DictReader((tmp_path / "p.csv").open()))
    assert [row["prediction"] for row in rows] == ours.predict(X).tolist()
    z = np.array([[float(row[f"decision_{name}"]) for name in ours.classes_] for row in rows])
    np.testing.assert_allclose(ours.decision_function(X), z, rtol=1e-9, atol=1e-9)
    if loss == "logistic":
        p = np.array([[float(row[f"probability_{name}"]) for name in ours.classes_] for row in rows])
        np.testing.assert_allclose(ours.predict_proba(X), p, rtol=1e-9)
    suspects = list(csv.DictReader((tmp_path / "run/suspects.csv").open()))
    assert [int(s["row"]) for s in suspects] == list(ours.suspects_["row"])
    assert [s["target"] for s in suspects] == list(ours.suspects_["target"])
    again = Path.load(tmp_path / "run/class-1")
    assert (again.coef(ours.age_[1]) == ours.path_[1].coef(ours.age_[1])).all()
    with pytest.raises(ValueError, match="class-0"):
        Path.load(tmp_path / "run")


# --- inside scikit-learn ------------------------------------------------------------------------------------------


def test_pipeline_grid_search_and_cross_validation(diabetes):
    X, y, _ = corrupted(*diabetes)
    pipeline = make_pipeline(StandardScaler(), SelfPacedLasso(cv=3))
    search = GridSearchCV(pipeline, {"selfpacedlasso__alpha": [0.005, 0.05]}, cv=2).fit(X, y)
    assert search.best_params_["selfpacedlasso__alpha"] in (0.005, 0.05)
    assert len(cross_val_score(SelfPacedLasso(cv=3), X, y, cv=3)) == 3


def test_calibrated_classifier(cancer):
    X, y = cancer
    model = CalibratedClassifierCV(SelfPacedLogisticRegression(cv=3), cv=2).fit(X, y)
    assert model.score(X, y) > 0.9


def test_clone_and_pickle(diabetes, cancer):
    for estimator, (X, y) in [(AgePathRegressor(cv=3), diabetes), (AgePathClassifier(cv=3), cancer)]:
        fitted = clone(estimator).fit(X, y)
        again = pickle.loads(pickle.dumps(fitted))
        assert (again.predict(X) == fitted.predict(X)).all()
        assert (again.path_.coef(fitted.age_) == fitted.path_.coef(fitted.age_)).all()
        assert again.path_.age == fitted.age_
        assert again.path_.selection == fitted.path_.selection


def fit_score(seed, X, y):
    X, y, _ = corrupted(X, y, seed=seed)
    return AgePathRegressor(cv=3, n_jobs=2).fit(X, y).score(X, y)


def test_joblib_processes_and_threads(diabetes):
    X, y = diabetes
    expected = [fit_score(seed, X, y) for seed in range(3)]
    for backend in ("loky", "threading"):
        with joblib.parallel_backend(backend, n_jobs=2):
            assert joblib.Parallel()(joblib.delayed(fit_score)(seed, X, y) for seed in range(3)) == expected


def test_dask_cluster_of_two_processes(diabetes):
    distributed = pytest.importorskip("distributed")
    X, y = diabetes
    expected = [fit_score(seed, X, y) for seed in range(4)]
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_backend("dask"),
    ):
        assert joblib.Parallel()(joblib.delayed(fit_score)(seed, X, y) for seed in range(4)) == expected
        search = GridSearchCV(SelfPacedLasso(cv=3), {"alpha": [0.005, 0.05]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.3


FORK = """
import os
from sklearn.datasets import load_diabetes
from agepath import age_path
X, y = load_diabetes(return_X_y=True)
before = age_path(X, y, ages=(1, 20), n_jobs=2).coef(2.0)
child = os.fork()
if child == 0:
    after = age_path(X, y, ages=(1, 20), n_jobs=2).coef(2.0)
    os._exit(0 if (after == before).all() else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_computes_as_well():
    assert subprocess.run([sys.executable, "-c", FORK], timeout=60).returncode == 0


# --- every kind of rows -------------------------------------------------------------------------------------------


def test_no_copy_of_a_contiguous_array(diabetes):
    X, y = (np.ascontiguousarray(a) for a in diabetes)
    assert age_path(X, y, ages=(1, 20))._run.x_address == X.ctypes.data
    assert AgePathRegressor(selection=5.0, ages=(1, 20)).fit(X, y).path_._run.x_address == X.ctypes.data
    F = np.asfortranarray(X)
    by_columns = age_path(F, y, ages=(1, 20))
    assert by_columns._run.x_address == F.ctypes.data
    assert (by_columns.coef(2.0) == age_path(X, y, ages=(1, 20)).coef(2.0)).all()


def test_memory_layouts_and_types_agree(diabetes):
    X, y = diabetes
    expected = age_path(X, y, ages=(1, 20)).coef(2.0)
    strided = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    assert not strided.flags.contiguous
    assert (age_path(strided, y, ages=(1, 20)).coef(2.0) == expected).all()
    single = age_path(X.astype(np.float32), y.astype(np.float32), ages=(1, 20)).coef(2.0)
    np.testing.assert_allclose(single, expected, rtol=1e-3, atol=0.1)


def test_sparse_is_dense(diabetes, cancer):
    for (X, y), model in [(diabetes, "lasso"), (cancer, "logistic")]:
        X = np.where(np.abs(X - X.mean(axis=0)) < 0.5 * X.std(axis=0), 0.0, X)
        dense = age_path(X, y, model=model, ages=(1, 20))
        for form in (sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
            path = age_path(form(X), y, model=model, ages=(1, 20))
            assert path.problem["x_mean"] is None
            for age in (1.5, 6.0):
                np.testing.assert_allclose(path.coef(age), dense.coef(age), rtol=1e-7, atol=1e-8)
                np.testing.assert_allclose(path.decision_function(form(X), age), dense.decision_function(X, age), rtol=1e-7)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library, diabetes):
    frames = pytest.importorskip(library)
    X, y = diabetes
    names = load_diabetes().feature_names
    frame = frames.DataFrame({name: X[:, j] for j, name in enumerate(names)})
    model = AgePathRegressor(cv=3).fit(frame, frames.Series(values=y) if library == "polars" else frames.Series(y))
    assert model.feature_names_in_.tolist() == names
    assert model.path_.feature_names == names
    plain = AgePathRegressor(cv=3).fit(X, y)
    assert (model.coef_ == plain.coef_).all()
    np.testing.assert_allclose(model.predict(frame), plain.predict(X), rtol=1e-12)


def test_labels_keep_their_names_and_many_classes_have_a_path_each():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    model = AgePathClassifier(cv=3).fit(X, names[y])
    assert model.classes_.tolist() == names.tolist()
    ordinary = make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())).fit(X, names[y])
    assert model.score(X, names[y]) > ordinary.score(X, names[y]) - 0.05
    assert model.coef_.shape == (3, 4) and model.age_.shape == (3,) and len(model.path_) == 3
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    binary = AgePathClassifier(cv=3).fit(X[:100], names[y[:100]])
    assert set(binary.predict(X[:100])) == {"setosa", "versicolor"}
    assert set(binary.path_.predict(X[:100], binary.age_)) == {"setosa", "versicolor"}


def test_a_path_of_one_class_against_the_rest_reads_back(tmp_path):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    for k, path in enumerate(AgePathClassifier(cv=3).fit(X, names[y]).path_):
        path.save(tmp_path / str(k))
        again = Path.load(tmp_path / str(k))
        assert again.classes.tolist() == path.classes.tolist() == [f"not {names[k]}", names[k]]
        assert (again.coef(path.age) == path.coef(path.age)).all()


def test_weights_survive_files_and_pickles(diabetes, tmp_path):
    X, y = diabetes
    path = age_path(X, y, sample_weight=np.linspace(0, 2, len(y)), ages=(1, 20))
    path.save(tmp_path)
    for again in (Path.load(tmp_path), pickle.loads(pickle.dumps(path))):
        assert (again.coef(2.0) == path.coef(2.0)).all()


def test_integer_weights_are_repeated_rows(diabetes, cancer):
    for (X, y), options in [(diabetes, {"ages": (0.5, 20)}), (cancer, {"model": "logistic", "ages": (0.5, 10)})]:
        weights = np.random.default_rng(1).integers(0, 3, len(y))
        weighted = age_path(X, y, sample_weight=weights, **options)
        repeated = age_path(np.repeat(X, weights, axis=0), np.repeat(y, weights), **options)
        for age in (0.7, 2.0, 8.0):
            np.testing.assert_allclose(weighted.coef(age), repeated.coef(age), rtol=1e-7, atol=1e-8)


# --- what it finds ------------------------------------------------------------------------------------------------


def test_bad_rows_are_found_and_the_fit_is_better(diabetes):
    from sklearn.linear_model import LassoCV

    X, y, bad = corrupted(*diabetes, share=0.2)
    model = AgePathRegressor().fit(X, y)
    clean = np.setdiff1d(np.arange(len(y)), bad)
    error = np.abs(model.predict(X[clean]) - y[clean]).mean()
    assert error < 0.9 * np.abs(LassoCV().fit(X, y).predict(X[clean]) - y[clean]).mean()
    top = np.asarray(model.suspects_["row"])[: len(bad)]
    assert np.isin(top, bad).mean() > 0.9
    assert model.sample_weight_[bad].mean() < 0.1 < 0.5 < model.sample_weight_[clean].mean()
    assert model.sample_age_.shape == y.shape and model.sample_age_[bad].min() > np.median(model.sample_age_[clean])


def test_the_largest_age_is_the_ordinary_svm(cancer):
    from sklearn.svm import SVC

    X, y = cancer
    Z = StandardScaler().fit_transform(X)
    path = age_path(X, y, model="svm", ages=(10, 1e6))
    # Weights are 1 − loss/age there: off by parts in a million.
    ordinary = SVC(tol=1e-8).fit(Z, y)
    np.testing.assert_allclose(path.decision_function(X, 1e6), ordinary.decision_function(Z), atol=1e-5)


def test_a_kernel_machine_predicts_as_its_path_and_survives_a_pickle(cancer):
    X, y = cancer
    model = SelfPacedSVC(cv=3).fit(X, y)
    assert model.score(X, y) > 0.9 and not hasattr(model, "predict_proba") and not hasattr(model, "coef_")
    assert model.dual_coef_.shape == (1, len(model.support_))
    z = model.decision_function(X)
    np.testing.assert_allclose(z, model.path_.decision_function(X, model.age_), rtol=1e-9, atol=1e-9)
    assert (pickle.loads(pickle.dumps(model)).decision_function(X) == z).all()
    linear = AgePathClassifier("hinge", kernel="linear", selection=5.0, ages=(2, 20)).fit(X, y)
    assert linear.score(X, y) > 0.9


def test_a_linear_kernel_has_coefficients(cancer):
    from sklearn.svm import SVC

    X, y = cancer
    model = SelfPacedSVC(kernel="linear", selection=1e6, ages=(10, 1e6)).fit(X, y)
    assert model.coef_.shape == (1, X.shape[1]) and model.intercept_.shape == (1,)
    np.testing.assert_allclose(X @ model.coef_[0] + model.intercept_[0], model.path_.decision_function(X, 1e6), rtol=1e-7)
    scale = StandardScaler().fit(X)
    ordinary = SVC(kernel="linear", tol=1e-8).fit(scale.transform(X), y)
    np.testing.assert_allclose(model.coef_[0] * scale.scale_, ordinary.coef_[0], atol=1e-4)
    assert not hasattr(model.set_params(kernel="rbf").fit(X, y), "coef_")


def test_a_precomputed_kernel_is_the_kernel(cancer):
    from sklearn.metrics.pairwise import rbf_kernel

    X, y = StandardScaler().fit_transform(cancer[0]), cancer[1]
    K = rbf_kernel(X, X[:200], gamma=0.05)
    options = {"selection": 3.0, "ages": (2, 20)}
    own = AgePathClassifier("hinge", kernel="precomputed", **options).fit(K[:200], y[:200])
    plain = AgePathClassifier("hinge", kernel="rbf", gamma=0.05, standardize=False, **options).fit(X[:200], y[:200])
    np.testing.assert_allclose(own.decision_function(K), plain.decision_function(X), rtol=1e-7, atol=1e-8)
    assert (own.support_ == plain.support_).all() and own.score(K[200:], y[200:]) > 0.8
    assert (pickle.loads(pickle.dumps(own)).decision_function(K) == own.decision_function(K)).all()
    with pytest.raises(ValueError, match="precomputed kernel"):
        AgePathClassifier("hinge", kernel="precomputed", selection=3.0).fit(K[:200, :100], y[:200])


def test_quantile_regression_is_that_of_svr(diabetes):
    from sklearn.svm import SVR

    X, y = diabetes[0][:150], diabetes[1][:150] / 100.0
    # Half of the absolute error is the loss of the median.
    options = {"kernel": "rbf", "gamma": 0.5, "standardize": False, "target_scale": "none"}
    path = age_path(10 * X, y, loss="quantile", penalty="l2", quantile=0.5, C=4.0, ages=(10, 1e6), **options)
    ordinary = SVR(C=2.0, epsilon=0.0, gamma=0.5, tol=1e-10).fit(10 * X, y)
    np.testing.assert_allclose(path.predict(10 * X, 1e6), ordinary.predict(10 * X), atol=1e-4)
    for quantile in (0.2, 0.8):
        model = AgePathRegressor("quantile", "l2", quantile=quantile, selection=1e6, ages=(10, 1e6)).fit(X, y)
        assert abs((y <= model.predict(X)).mean() - quantile) < 0.1


def test_huber_regression_is_the_mixture_at_a_large_age(diabetes):
    from scipy.optimize import minimize

    X, y = 10 * diabetes[0][:120, :4], diabetes[1][:120] / 80.0
    y = np.where(np.arange(len(y)) % 10 == 0, y + 6.0, y)
    alpha, gamma = 0.02, 0.4
    options = {"penalty": "l2", "alpha": alpha, "standardize": False, "target_scale": "none"}
    model = AgePathRegressor(pacing="mixture", pacing_gamma=gamma, selection=1e6, ages=(1, 1e6), **options).fit(X, y)

    def huber(theta):
        r = np.abs(X @ theta[:-1] + theta[-1] - y)
        loss = np.where(r <= gamma, r**2, 2 * gamma * r - gamma**2)
        return loss.mean() / 2 + alpha / 2 * theta[:-1] @ theta[:-1]

    theirs = minimize(huber, np.zeros(5), method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), theirs.x, atol=1e-4)


def test_huber_loss_is_huber_regression_at_every_threshold(diabetes):
    from scipy.optimize import minimize

    X, y = 10 * diabetes[0][:120, :4], diabetes[1][:120] / 80.0
    y = np.where(np.arange(len(y)) % 10 == 0, y + 6.0, y)
    alpha = 0.02
    options = {"penalty": "l2", "alpha": alpha, "standardize": False, "target_scale": "none"}
    path = age_path(X, y, loss="huber", ages=(0.2, 5.0), **options)
    assert not (path.events["kind"] == "jump").any()
    for threshold in (0.2, 0.37, 1.0, 2.5):

        def huber(theta):
            r = np.abs(X @ theta[:-1] + theta[-1] - y)
            loss = np.where(r <= threshold, r**2, 2 * threshold * r - threshold**2)
            return loss.mean() / 2 + alpha / 2 * theta[:-1] @ theta[:-1]

        theirs = minimize(huber, np.zeros(5), method="BFGS", options={"gtol": 1e-10})
        ours = path.at(threshold)
        np.testing.assert_allclose(np.append(ours.coef, ours.intercept), theirs.x, atol=1e-4)
    model = AgePathRegressor("huber", "l2", cv=4).fit(X, y)
    assert (model.sample_weight_ < 1).sum() >= 12 and (model.sample_weight_ > 0).all()
    with pytest.raises(ValueError, match="leave pacing at its default"):
        AgePathRegressor("huber", pacing="hard").fit(X, y)


def test_scorers_choose_the_age_as_well_as_names(diabetes, cancer):
    from sklearn.metrics import f1_score, make_scorer, median_absolute_error

    X, y, _ = corrupted(*diabetes)
    named = AgePathRegressor(cv=4, scoring="median-ae").fit(X, y).path_.selection
    own = AgePathRegressor(cv=4, scoring=make_scorer(median_absolute_error, greater_is_better=False)).fit(X, y)
    selection = own.path_.selection
    assert selection["metric"] == "own" and selection["gap"] is None and selection["folds"] == 4
    scores = {c["age"]: c["score"] for c in named["curve"]}
    both = [c for c in selection["curve"] if c["age"] in scores]
    assert len(both) > 40
    for c in both:
        assert abs(c["score"] + scores[c["age"]]) < 1e-9
    assert -selection["score"] < 1.02 * named["score"]
    assert AgePathRegressor(cv=3, scoring="neg_mean_squared_error").fit(X, y).path_.selection["score"] < 0
    assert AgePathRegressor(cv=3, scoring=lambda model, X, y: -np.abs(model.predict(X) - y).max()).fit(X, y).age_ > 0
    X, y = cancer
    labels = np.array(["healthy", "ill"])[y]
    for scoring in (make_scorer(f1_score, pos_label="ill"), "roc_auc", "neg_brier_score", "average_precision"):
        model = AgePathClassifier(cv=3, scoring=scoring).fit(X, y if isinstance(scoring, str) else labels)
        assert model.path_.selection["metric"] == ("auc" if scoring == "roc_auc" else "own")
    X, y = load_iris(return_X_y=True)
    assert AgePathClassifier(cv=3, scoring=make_scorer(f1_score)).fit(X, y).score(X, y) > 0.8

    def broken(model, X, y):
        raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose"):
        AgePathRegressor(cv=3, scoring=broken).fit(*diabetes)
    with pytest.raises(ValueError, match="mae"):
        AgePathRegressor(scoring="no such thing").fit(*diabetes)


def test_splits_of_ones_own_choose_the_same_way(diabetes):
    X, y, _ = corrupted(*diabetes)
    given = AgePathRegressor(cv=KFold(4, shuffle=True, random_state=0)).fit(X, y)
    listed = AgePathRegressor(cv=list(KFold(4, shuffle=True, random_state=0).split(X))).fit(X, y)
    assert given.age_ == listed.age_
    assert given.path_.selection["folds"] == 4
    best = AgePathRegressor(cv=5, random_state=0).fit(X, y).path_.selection
    simple = AgePathRegressor(cv=5, random_state=0, selection="1se").fit(X, y)
    assert simple.age_ >= best["age"] and best["min"]["score"] == best["score"]
    assert AgePathRegressor(selection=3.0).fit(X, y).age_ == 3.0


def test_path_properties(diabetes):
    X, y = diabetes
    path = age_path(X, y, ages=(0.5, 20))
    assert path.ages == (0.5, 20.0) and path.end == "complete" and path.direction == "down"
    events = path.events
    assert set(events["kind"]) <= {"turning", "jump"} and len(events["age"]) > 100
    assert path.certificate["max_kkt"] < 1e-9
    several = path.at([1.0, 2.0, 3.0])
    assert several.coef.shape == (3, 10) and several.weights.shape == (3, len(y))
    assert (several.coef[1] == path.coef(2.0)).all()
    z = X @ path.coef(2.0) + path.intercept(2.0)
    np.testing.assert_allclose(path.predict(X, 2.0), z, rtol=1e-10)
    assert path.predict(X, [1.0, 2.0]).shape == (2, len(y))
    assert "Age-path" in path._repr_html_() and "lasso" in repr(path)


def test_plots_return_axes(diabetes):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.axes import Axes

    X, y, _ = corrupted(*diabetes)
    path = AgePathRegressor(cv=3).fit(X, y).path_
    for plot in (path.plot, path.plot_events, path.plot_learning_curve):
        axes = plot()
        assert isinstance(axes, Axes) and axes.get_xscale() == "log"
        assert plot(ax=axes) is axes


# --- what goes wrong ----------------------------------------------------------------------------------------------


def test_wrong_input_is_said_in_the_words_people_expect(diabetes):
    X, y = diabetes
    with pytest.raises(NotFittedError):
        AgePathRegressor().predict(X)
    cases = [
        (AgePathRegressor(alpha=-1.0), "alpha"),
        (AgePathRegressor(pacing="lazy"), "lazy.*linear"),
        (AgePathRegressor(loss="odd"), "odd"),
        (AgePathRegressor(penalty="l7"), "l7"),
        (AgePathRegressor(ages=(3, 1)), "ages"),
        (AgePathRegressor(ages=3), "ages"),
        (AgePathRegressor(cv=1), "cv"),
        (AgePathRegressor(scoring="accuracy"), "accuracy"),
        (AgePathRegressor(selection="best"), "best"),
        (AgePathRegressor(direction="left"), "left"),
        (AgePathRegressor(selection=1e9), "outside"),
        (AgePathRegressor(target_scale="odd"), "odd"),
        (AgePathClassifier(C=-1.0), "c = -1"),
    ]
    for estimator, text in cases:
        target = y if isinstance(estimator, AgePathRegressor) else (y > 150).astype(int)
        with pytest.raises(ValueError, match=text):
            estimator.fit(X, target)
    with pytest.raises(ValueError, match="NaN"):
        AgePathRegressor().fit(np.where(X > 0.1, np.nan, X), y)
    with pytest.raises(ValueError, match="one class"):
        AgePathClassifier().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="features"):
        AgePathRegressor(cv=3).fit(X, y).predict(X[:, :3])
    with pytest.raises(ValueError, match="negative|0 or more"):
        AgePathRegressor().fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(TypeError, match="alhpa"):
        age_path(X, y, alhpa=1.0)
    with pytest.raises(TypeError, match="alpha"):
        age_path(X, y, alpha="a lot")
    with pytest.raises(ValueError, match="outside"):
        age_path(X, y, ages=(1, 20)).at(100.0)
    with pytest.raises(ValueError, match="3 classes"):
        age_path(*load_iris(return_X_y=True), loss="logistic")
    with pytest.raises((ValueError, FileNotFoundError), match="no-such"):
        Path.load("no-such-directory")


def test_a_panic_is_an_exception():
    with pytest.raises(RuntimeError, match="on purpose"):
        _agepath.panic_for_tests()


# --- being interrupted, being watched -----------------------------------------------------------------------------


def large(n=20000, d=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    y[: n // 4] += 10 * rng.normal(size=n // 4)
    return X, y


def test_ctrl_c_returns_within_a_second():
    X, y = large(n=100_000)
    main = threading.main_thread().ident
    sent = []

    def interrupt():
        time.sleep(0.5)
        sent.append(time.perf_counter())
        signal.pthread_kill(main, signal.SIGINT)

    # Whoever runs the tests in the background of a shell has the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            age_path(X, y, model="lasso", pacing="log", ages=(0.001, 100))
        assert time.perf_counter() - sent[0] < 1.0
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_run_meanwhile():
    X, y = large(n=4000)
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    threading.Thread(target=count).start()
    begun = time.perf_counter()
    age_path(X, y, pacing="log", ages=(0.5, 50))
    seconds = time.perf_counter() - begun
    stop.set()
    assert counted[0] > 50 * seconds


def test_progress_is_told_and_may_stop():
    X, y = large(n=8000)
    seen = []
    age_path(X, y, pacing="log", ages=(0.2, 50), progress=lambda *figures: seen.append(figures))
    assert seen and all(0.0 <= done <= 1.0 + 1e-9 for done, *_ in seen)

    def stop(done, age, events, jumps):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        age_path(X, y, pacing="log", ages=(0.2, 50), progress=stop)


@pytest.mark.skipif(not File("/proc/self/task").is_dir(), reason="no list of threads here")
def test_threads_are_bounded():
    def threads():
        return len(os.listdir("/proc/self/task"))

    X, y = large(n=8000)
    for n_jobs in (1, 2):
        before, seen = threads(), []
        age_path(X, y, pacing="log", ages=(0.2, 50), n_jobs=n_jobs, progress=lambda *_: seen.append(threads()))
        # One thread waits for the others.
        assert max(seen) <= before + n_jobs + 1


def test_verbose_shows_a_bar(diabetes, capsys):
    X, y = diabetes
    age_path(X, y, ages=(1, 20), verbose=1)
    assert "age-path" in capsys.readouterr().err
