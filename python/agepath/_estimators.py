"""scikit-learn estimators: fit the whole path, choose an age, keep the solution there."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _agepath, _data
from ._options import DEFAULTS, ENGINE, LOSSES, engine_options, threads_of
from ._path import Path
from ._progress import watched

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self


class _AgePathEstimator(BaseEstimator):
    """What regressors and classifiers share."""

    #: Engine options that a preset fixes.
    _fixed: dict[str, str] = {}

    def _given(self):
        """The parameters of this estimator that the engine reads."""
        names = (*ENGINE, "cv", "scoring", "selection")
        return {**{name: getattr(self, name) for name in names if hasattr(self, name)}, **self._fixed}

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
        runs = watched(self.verbose, title, None, lambda tell: _agepath.solve(data, options, threads, tell))
        for notice in dict.fromkeys(notice for run in runs for notice in run.warnings):
            warnings.warn(notice, stacklevel=3)
        if len(runs) == 1:
            paths = [Path(runs[0], None if classes is None else list(classes))]
            self.suspects_ = paths[0].suspects
        else:
            paths = [Path(run) for run in runs]
            self.suspects_ = _data.frame(_agepath.suspects_of_classes(data, runs))
        self._keep(paths)

    def _keep(self, paths):
        """The fitted attributes; one path, or one per class."""
        self._forget()
        single = len(paths) == 1
        solutions = [path._kept for path in paths]
        self.path_ = paths[0] if single else paths
        self.age_ = solutions[0].age if single else np.array([s.age for s in solutions])
        self.sample_weight_ = np.min([s.weights for s in solutions], axis=0)
        self.sample_age_ = np.max([p.entry_ages for p in paths], axis=0)
        fractions = [np.nan if p.noise_fraction is None else p.noise_fraction[0] for p in paths]
        self.noise_fraction_ = fractions[0] if single else np.array(fractions)
        if paths[0]._run.in_kernel_space:
            dual = np.array([s.coef for s in solutions])
            self.support_ = np.flatnonzero((dual != 0).any(axis=0))
            self.dual_coef_ = dual[:, self.support_]
            self._solver = [(s.solver_coef, s.solver_intercept) for s in solutions]
        else:
            self.coef_ = np.array([s.coef for s in solutions])
        self.intercept_ = np.array([s.intercept for s in solutions])

    def _forget(self):
        """A fit in another space leaves none of these behind."""
        for name in ("coef_", "dual_coef_", "support_", "_solver"):
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


class AgePathRegressor(RegressorMixin, _AgePathEstimator):
    """Self-paced regression at the age that held-out rows like best.

    The whole path over all ages is computed exactly, by default once for all rows and once for each fold; the age with the
    best score on held-out rows is kept.

    Parameters
    ----------
    loss : str, default="squared"
        ``"squared"``; with ``penalty="l2"`` and a kernel also ``"epsilon_insensitive"`` and ``"quantile"``.
    penalty : {"l1", "l2", "elasticnet", None}, default="l1"
        With the squared loss: Lasso, ridge, elastic net, least squares.
    alpha : float
        Strength of the penalty, in the units the solver sees: see ``standardize`` and ``target_scale``.
    l1_ratio : float
        Share of L1 in the elastic net's penalty.
    C : float
        Factor of the losses that have one.
    epsilon, quantile : float
        Of the ε-insensitive and of the quantile loss.
    kernel : str or None, default=None
        None: linear in the features, except for losses with kinks, which have ``"rbf"``. Else a kernel: ``"linear"``,
        ``"rbf"``, ``"poly"``, ``"sigmoid"``, ``"precomputed"`` (with an age of your own as ``selection``).
    gamma, degree, coef0
        Of the kernel, as in :class:`sklearn.svm.SVC`.
    fit_intercept : bool
        Whether an intercept is learned. Without one, centred columns and a shifted target still give ``intercept_`` a value;
        set ``standardize=False`` and ``target_scale="none"`` for a model through the origin.
    standardize : bool
        Standardise the columns first (sparse columns are scaled, not centred). ``coef_`` is in the units of the data all
        the same.
    target_scale : {"robust", "minmax", "none"}
        How y is scaled first. Robust: by median and 1.4826 MAD, so that the square root of an age is a cut-off in robust
        standard deviations.
    pacing : str
        How weights depend on losses: ``"linear"``, ``"hard"``, ``"mixture"``, ``"log"``.
    pacing_gamma, pacing_a : float
        Of the mixture and of the log pacing.
    ages : (float, float) or None, default=None
        Smallest and largest age. None: from the data.
    direction : {"down", "up"}
        Follow the path from the convex problem at age infinity, or from the smallest age.
    selection : {"min", "1se"} or float, default="min"
        The best score, or the largest age within one standard error of it; or an age of your own.
    cv : int, splitter, iterable of splits or None, default=None
        Held-out rows. None: the engine's default number of folds, or fewer where a class is small.
    scoring : str or None, default=None
        The engine's metric, by its own or scikit-learn's name. None: the first for the kind of target.
    random_state : int, RandomState or None
        Seed of the folds.
    n_jobs : int or None
        Threads.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    age_ : float
        The chosen age.
    coef_ : ndarray of shape (n_features,)
        Coefficients in the units of the data. Not with a kernel.
    intercept_ : float
        Intercept in the units of the data.
    dual_coef_, support_ : ndarray
        With a kernel: coefficients of the support rows, and which rows they are.
    path_ : Path
        The whole path.
    sample_age_ : ndarray of shape (n_samples,)
        For each row the largest age at which it is still among the largest losses: larger is more suspicious.
    sample_weight_ : ndarray of shape (n_samples,)
        How much each row counts at the chosen age.
    suspects_ : DataFrame
        The rows, most suspicious first. Without pandas, a dict of arrays.
    noise_fraction_ : float
        Estimated share of bad rows (``path_.noise_fraction`` has its standard error); nan for a handful of rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> import numpy as np
    >>> from agepath import AgePathRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> y = X @ [1.0, 0.0, -2.0] + 0.1 * rng.normal(size=100)
    >>> y[:20] = 10.0                                   # bad rows
    >>> model = AgePathRegressor(alpha=0.01).fit(X, y)
    >>> np.round(model.coef_, 1).tolist()
    [1.0, 0.0, -2.0]
    >>> sorted(int(row) for row in model.suspects_["row"][:20]) == list(range(20))
    True
    """

    def __init__(
        self,
        loss="squared",
        penalty="l1",
        *,
        alpha=DEFAULTS["alpha"],
        l1_ratio=DEFAULTS["l1_ratio"],
        C=DEFAULTS["C"],
        epsilon=DEFAULTS["epsilon"],
        quantile=DEFAULTS["quantile"],
        kernel=None,
        gamma=DEFAULTS["gamma"],
        degree=DEFAULTS["degree"],
        coef0=DEFAULTS["coef0"],
        fit_intercept=DEFAULTS["fit_intercept"],
        standardize=DEFAULTS["standardize"],
        target_scale=DEFAULTS["target_scale"],
        pacing=DEFAULTS["pacing"],
        pacing_gamma=DEFAULTS["pacing_gamma"],
        pacing_a=DEFAULTS["pacing_a"],
        ages=None,
        direction=DEFAULTS["direction"],
        selection="min",
        cv=None,
        scoring=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.C = C
        self.epsilon = epsilon
        self.quantile = quantile
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.target_scale = target_scale
        self.pacing = pacing
        self.pacing_gamma = pacing_gamma
        self.pacing_a = pacing_a
        self.ages = ages
        self.direction = direction
        self.selection = selection
        self.cv = cv
        self.scoring = scoring
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Compute the path and choose an age.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            An integer weight counts like as many rows.

        Returns
        -------
        self
        """
        X, y, sample_weight = self._read(X, y, sample_weight, y_numeric=True)
        self._solve(X, y, sample_weight)
        self.intercept_ = float(self.intercept_[0])
        if hasattr(self, "coef_"):
            self.coef_ = self.coef_[0]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predictions.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._predictors(X).reshape(-1)


class SelfPacedLasso(AgePathRegressor):
    """Self-paced Lasso: (1/2n) Σ v r² + α ‖w‖₁ at the age that held-out rows like best.

    A preset of :class:`AgePathRegressor`, where parameters and attributes are explained.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from agepath import SelfPacedLasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SelfPacedLasso(alpha=0.01).fit(X, y)
    >>> model.coef_.shape
    (10,)
    """

    _fixed = {"loss": "squared", "penalty": "l1"}

    def __init__(
        self,
        alpha=DEFAULTS["alpha"],
        *,
        fit_intercept=DEFAULTS["fit_intercept"],
        standardize=DEFAULTS["standardize"],
        target_scale=DEFAULTS["target_scale"],
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
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.target_scale = target_scale
        self.pacing = pacing
        self.ages = ages
        self.direction = direction
        self.selection = selection
        self.cv = cv
        self.scoring = scoring
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


def _engine_loss(estimator):
    loss = estimator._given().get("loss")
    return LOSSES.get(loss, loss)


def _is_logistic(estimator):
    return _engine_loss(estimator) == "logistic"


class AgePathClassifier(ClassifierMixin, _AgePathEstimator):
    """Self-paced classification at the age that held-out rows like best.

    Two classes have one path; more have one each, against all others.

    Parameters
    ----------
    loss : {"logistic", "hinge", "squared_hinge"}, default="logistic"
        The loss; ``predict_proba`` needs the logistic one.
    C : float
        Factor of the loss: ½‖w‖² + C Σ vℓ.
    kernel : str or None, default=None
        None: linear in the features, except for losses with kinks, which have ``"rbf"``. Else a kernel: ``"linear"``,
        ``"rbf"``, ``"poly"``, ``"sigmoid"``, ``"precomputed"`` (with an age of your own as ``selection``).
    gamma, degree, coef0
        Of the kernel, as in :class:`sklearn.svm.SVC`.
    fit_intercept : bool
        Whether an intercept is learned.
    standardize : bool
        Standardise the columns first (sparse columns are scaled, not centred). ``coef_`` is in the units of the data all
        the same.
    pacing, pacing_gamma, pacing_a, ages, direction, selection, cv, scoring, random_state, n_jobs, verbose
        As in :class:`AgePathRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    age_ : float, or ndarray of shape (n_classes,)
        The chosen age; with more than two classes one for each.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients in the units of the data. Not with a kernel.
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
        pacing_gamma=DEFAULTS["pacing_gamma"],
        pacing_a=DEFAULTS["pacing_a"],
        ages=None,
        direction=DEFAULTS["direction"],
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
        self.pacing_gamma = pacing_gamma
        self.pacing_a = pacing_a
        self.ages = ages
        self.direction = direction
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
        return _agepath.probabilities(_engine_loss(self), self._predictors(X))

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

    _fixed = {"loss": "logistic"}

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
        self.C = C
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.pacing = pacing
        self.ages = ages
        self.direction = direction
        self.selection = selection
        self.cv = cv
        self.scoring = scoring
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


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

    _fixed = {"loss": "hinge"}

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
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.standardize = standardize
        self.pacing = pacing
        self.ages = ages
        self.direction = direction
        self.selection = selection
        self.cv = cv
        self.scoring = scoring
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
