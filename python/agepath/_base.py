"""What the estimators share: read the rows, compute the path or paths, keep what was chosen."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _agepath, _data
from ._options import ENGINE, LOSSES, engine_options, threads_of
from ._path import Path
from ._progress import watched
from ._scoring import own_score


class AgePathEstimator(BaseEstimator):
    """What regressors and classifiers share."""

    def _given(self):
        """The parameters of this estimator that the engine reads."""
        names = (*ENGINE, "cv", "scoring", "selection")
        return {name: getattr(self, name) for name in names if hasattr(self, name)}

    def _read(self, X, y, sample_weight, **checks):
        """X, y and weights, checked."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2, **checks)
        if sample_weight is not None:
            sample_weight = check_array(
                sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight", ensure_min_samples=1
            )
            if sample_weight.shape != (X.shape[0],):
                raise ValueError(f"sample_weight.shape == {sample_weight.shape}, expected {(X.shape[0],)}")
        return X, y, sample_weight

    def _solve(self, X, y, sample_weight, classes=None):
        """The path with its chosen age, or with more than two classes one for each; fills the fitted attributes."""
        names = list(getattr(self, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])]))
        data = _data.data(X, y, sample_weight, names, classes=classes)
        options = engine_options(self._given(), X, y, self.random_state, classifier=classes is not None)
        options["choose"] = True
        threads = threads_of(self.n_jobs)
        title = type(self).__name__
        with own_score(options, X, y, classes, self._loss()):
            runs = watched(self.verbose, title, None, lambda tell: _agepath.solve(data, options, threads, tell))
        for notice in dict.fromkeys(notice for run in runs for notice in run.warnings):
            warnings.warn(notice, stacklevel=3)
        if len(runs) == 1:
            self._keep([Path(runs[0], None if classes is None else list(classes))])
        else:
            self._keep([Path(run) for run in runs])
            self._suspects = _agepath.suspects_of_classes(data, runs)

    def _loss(self):
        """The engine's name of the loss."""
        return LOSSES.get(self.loss, self.loss)

    def _keep(self, paths):
        """The fitted attributes; one path, or one per class."""
        self._forget()
        single = len(paths) == 1
        solutions = [path._kept for path in paths]
        self.path_ = paths[0] if single else paths
        ages = [p._run.age for p in paths]
        self.age_ = ages[0] if single else np.array(ages)
        self.sample_weight_ = np.min([s.weights for s in solutions], axis=0)
        self.sample_age_ = np.max([p.entry_ages for p in paths], axis=0)
        fractions = [np.nan if p.noise_fraction is None else p.noise_fraction[0] for p in paths]
        self.noise_fraction_ = fractions[0] if single else np.array(fractions)
        if paths[0]._run.in_kernel_space:
            dual = np.array([s.coef for s in solutions])
            self.support_ = np.flatnonzero((dual != 0).any(axis=0))
            self.dual_coef_ = dual[:, self.support_]
            self._solver = [(s.solver_coef, s.solver_intercept) for s in solutions]
        linear = [p._run.linear() if hasattr(self, "_solver") else (s.coef, s.intercept) for p, s in zip(paths, solutions)]
        if linear[0] is None:
            self.intercept_ = np.array([s.intercept for s in solutions])
        else:
            self.coef_ = np.array([coef for coef, _ in linear])
            self.intercept_ = np.array([intercept for _, intercept in linear])

    @property
    def suspects_(self):
        """The training rows, most suspicious first. Made when asked for: a frame takes as long as all the rest around a path."""
        check_is_fitted(self)
        return _data.frame(getattr(self, "_suspects", None) or self.path_._run.suspects())

    def _forget(self):
        """A fit in another space, or of fewer classes, leaves none of these behind."""
        for name in ("coef_", "dual_coef_", "support_", "_solver", "_suspects"):
            self.__dict__.pop(name, None)

    def _predictors(self, X):
        """One column per path."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        if hasattr(self, "coef_"):
            return safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        rows = _data.rows(X)
        paths = self.path_ if isinstance(self.path_, list) else [self.path_]
        return np.column_stack([p._run.apply(rows, *theta) for p, theta in zip(paths, self._solver)])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        return tags
