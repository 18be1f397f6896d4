"""Classifiers: fit the path or paths, choose an age for each, keep the solutions there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from . import _agepath
from ._base import AgePathEstimator
from ._options import DEFAULTS, with_parameters_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self


def _is_logistic(estimator):
    return estimator._loss() == "logistic"


@with_parameters_of("pacing")
class AgePathClassifier(ClassifierMixin, AgePathEstimator):
    """Self-paced classification at the age that held-out rows like best.

    Two classes have one path; more have one each, against all others.

    Parameters
    ----------
    loss : {"logistic", "hinge", "squared_hinge"}, default="logistic"
        The loss; ``predict_proba`` needs the logistic one.
    C : float or "auto"
        Factor of the loss: ½‖w‖² + C Σ vℓ; "auto" looks for the best one where the engine chooses (without ``cv``) in linear space,
        and is 1 else.
    kernel : str or None, default=None
        None: linear in the features, except for losses with several pieces, which have ``"rbf"``. ``"none"``: linear in the
        features, with one coefficient for each, whatever the loss. Else a kernel: ``"linear"``, ``"rbf"``, ``"poly"``,
        ``"sigmoid"``, ``"precomputed"`` (with an age of your own as ``selection``).
    gamma, degree, coef0
        Of the kernel, as in :class:`sklearn.svm.SVC`.
    fit_intercept : bool
        Whether an intercept is learned.
    standardize : bool
        Standardise the columns first (sparse columns are scaled, not centred). ``coef_`` is in the units of the data all
        the same.
    {parameters}
    pacing, ages, direction, selection, cv, scoring, random_state, n_jobs, verbose
        As in :class:`AgePathRegressor`. With more than two classes a scorer of your own sees each class, as True, against the
        others.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    age_ : float, or ndarray of shape (n_classes,)
        The chosen age; with more than two classes one for each.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients in the units of the data. With a kernel only if it is linear.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    dual_coef_, support_ : ndarray
        With a kernel: coefficients of the support rows, and which rows they are.
    path_ : Path, or list of Path
        The whole path; with more than two classes one for each.
    sample_age_, sample_weight_ : ndarray of shape (n_samples,)
        As in :class:`AgePathRegressor`; with more than two classes the worst over the paths: the largest age, the smallest
        weight.
    suspects_ : DataFrame
        The rows, most suspicious first; with more than two classes each row as the path sees it that doubts it most.
    noise_fraction_ : float, or ndarray of shape (n_classes,)
        Estimated share of rows with a wrong label.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from agepath import AgePathClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AgePathClassifier(cv=3).fit(X, y)
    >>> model.classes_.tolist()
    [0, 1, 2]
    >>> model.predict_proba(X).shape
    (150, 3)
    >>> len(model.path_)
    3
    """

    def __init__(
        self,
        loss="logistic",
        *,
        C=DEFAULTS["C"],
        kernel=None,
        gamma=DEFAULTS["gamma"],
        degree=DEFAULTS["degree"],
        coef0=DEFAULTS["coef0"],
        fit_intercept=DEFAULTS["fit_intercept"],
        standardize=DEFAULTS["standardize"],
        pacing=DEFAULTS["pacing"],
        ages=None,
        direction=DEFAULTS["direction"],
        branches="auto",
        selection="min",
        cv=None,
        scoring=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.loss = loss
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.pacing = pacing
        self.ages = ages
        self.direction = direction
        self.branches = branches
        self.selection = selection
        self.cv = cv
        self.scoring = scoring
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Compute the path or paths and choose an age for each.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels, at least two different ones.
        sample_weight : array-like of shape (n_samples,), optional
            An integer weight counts like as many rows.

        Returns
        -------
        self
        """
        X, y, sample_weight = self._read(X, y, sample_weight)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only ({self.classes_[0]!r}); at least two classes are needed")
        places = np.searchsorted(self.classes_, y)
        # The engine reads two classes as -1 and +1.
        self._solve(X, 2.0 * places - 1.0 if len(self.classes_) == 2 else places, sample_weight, classes=self.classes_)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Predictors: for two classes one number per row whose sign decides, else one per class, the largest decides.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        z = self._predictors(X)
        return z.reshape(-1) if z.shape[1] == 1 else z

    def predict(self, X: Any) -> np.ndarray:
        """Labels.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        z = self._predictors(X)
        return self.classes_[(z[:, 0] > 0).astype(int) if z.shape[1] == 1 else _agepath.winners(z)]

    @available_if(_is_logistic)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, with the logistic loss; with more than two classes scaled to a sum of 1.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return _agepath.probabilities(self._loss(), self._predictors(X))

    @available_if(_is_logistic)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.log(self.predict_proba(X))


class SelfPacedLogisticRegression(AgePathClassifier):
    """Self-paced logistic regression: ½‖w‖² + C Σ v ln(1 + exp(−yz)) at the age that held-out rows like best.

    A preset of :class:`AgePathClassifier`, where parameters and attributes are explained.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from agepath import SelfPacedLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SelfPacedLogisticRegression(cv=3).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        C=DEFAULTS["C"],
        *,
        fit_intercept=DEFAULTS["fit_intercept"],
        standardize=DEFAULTS["standardize"],
        pacing=DEFAULTS["pacing"],
        ages=None,
        direction=DEFAULTS["direction"],
        selection="min",
        cv=None,
        scoring=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        super().__init__(
            "logistic", C=C, fit_intercept=fit_intercept, standardize=standardize, pacing=pacing, ages=ages,
            direction=direction, selection=selection, cv=cv, scoring=scoring, random_state=random_state, n_jobs=n_jobs,
            verbose=verbose,
        )  # fmt: skip


class SelfPacedSVC(AgePathClassifier):
    """Self-paced support vector machine: ½‖w‖² + C Σ v max(0, 1 − yz) at the age that held-out rows like best.

    A preset of :class:`AgePathClassifier`, where parameters and attributes are explained.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from agepath import SelfPacedSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SelfPacedSVC(cv=2).fit(X[::3], y[::3])
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        C=DEFAULTS["C"],
        *,
        kernel="rbf",
        gamma=DEFAULTS["gamma"],
        degree=DEFAULTS["degree"],
        coef0=DEFAULTS["coef0"],
        standardize=DEFAULTS["standardize"],
        pacing=DEFAULTS["pacing"],
        ages=None,
        direction=DEFAULTS["direction"],
        selection="min",
        cv=None,
        scoring=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        super().__init__(
            "hinge", C=C, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0, standardize=standardize, pacing=pacing,
            ages=ages, direction=direction, selection=selection, cv=cv, scoring=scoring, random_state=random_state,
            n_jobs=n_jobs, verbose=verbose,
        )  # fmt: skip
