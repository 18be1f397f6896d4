"""Scores of the user's own: scikit-learn's scorers, told what a path predicts for held-out rows."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from . import _agepath


@contextmanager
def own_score(options, X, y, classes, loss):
    """Hands a scorer of the user's own to the engine, if the options have one, and raises what it raised."""
    scorer = options.pop("own_scoring", None)
    if scorer is None:
        yield
        return
    options["scorer"] = own = OwnScore(scorer, X, y, classes, loss)
    try:
        yield
    finally:
        if own.raised is not None:
            raise own.raised


class OwnScore:
    """A scorer as the engine calls it, from any thread: with the numbers of some rows, their predictors, and the class that is
    told from all others, if there are several.

    Parameters
    ----------
    scorer : callable
        Of an estimator, rows and targets.
    X, y : the rows; y as the engine has it
    classes : the labels, or None for numbers
    loss : the engine's name of the loss
    """

    def __init__(self, scorer, X, y, classes, loss):
        self.scorer, self.X, self.y, self.classes, self.loss = scorer, X, y, classes, loss
        self.raised, self.lock = None, threading.Lock()

    def __call__(self, rows, z, side):
        if self.raised is not None:
            return None
        try:
            held, y = self.X[rows], self.y[rows]
            if self.classes is None:
                candidate = _Regression(z)
            elif side is None:
                candidate, y = _Classes(z, self.classes, self.loss), np.asarray(self.classes)[(y > 0).astype(int)]
            else:
                candidate, y = _Classes(z, [False, True], self.loss), y == side
            with self.lock:
                return float(self.scorer(candidate, held, y))
        except BaseException as error:
            self.raised = error
            return None


class _Candidate(BaseEstimator):
    """A fitted estimator that predicts one set of rows."""

    def __init__(self, z):
        self.z = z

    def __sklearn_is_fitted__(self):
        return True

    def _predictors(self, X):
        if X.shape[0] != len(self.z):
            raise ValueError("a scorer must ask for the rows it was given, all of them")
        return self.z


class _Regression(RegressorMixin, _Candidate):
    def predict(self, X):
        return self._predictors(X)


class _Classes(ClassifierMixin, _Candidate):
    def __init__(self, z, classes, loss):
        super().__init__(z)
        self.classes, self.loss = classes, loss
        self.classes_ = np.asarray(classes)

    def decision_function(self, X):
        return self._predictors(X)

    def predict(self, X):
        return self.classes_[(self._predictors(X) > 0).astype(int)]

    def predict_proba(self, X):
        return _agepath.probabilities(self.loss, self._predictors(X).reshape(-1, 1))
