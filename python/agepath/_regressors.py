"""Regressors: fit the whole path, choose an age, keep the solution there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin

from . import _agepath
from ._base import AgePathEstimator
from ._options import DEFAULTS, with_parameters_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Self


@with_parameters_of("loss", "pacing")
class AgePathRegressor(RegressorMixin, AgePathEstimator):
    """Self-paced regression with the branch and the age that most rows agree on.

    The path over all ages is computed exactly, and with it branches from starts that rows far out in X cannot break. By default
    every row trains and every row is judged: few rows by the robust scale of those in the middle of X, many by held-out neighbours
    whose errors are capped. The ordinary fit is a candidate, and is kept where there is no evidence of bad rows.

    Parameters
    ----------
    loss : str, default="squared"
        ``"squared"``; ``"huber"``; with ``penalty="l2"`` also ``"epsilon_insensitive"``, ``"quantile"``, ``"expectile"`` and
        ``"poisson"`` (for counts; predictions are means, not their logarithms).
        ``"huber"`` is the squared loss with ``pacing="huber"``: at every age the solution is Huber's regression with that age as
        its threshold, and held-out rows choose it. For a threshold of its own, ``pacing_gamma``, with bad rows left out
        altogether, take the squared loss with ``pacing="mixture"``.
    penalty : {"l1", "l2", "elasticnet", None}, default="l1"
        With the squared loss: Lasso, ridge, elastic net, least squares.
    alpha : float or "auto"
        Strength of the penalty; "auto" looks for the best one near .005 where the engine chooses (without ``cv``), and is .005 else; in the units the solver sees: see ``standardize`` and ``target_scale``.
    l1_ratio : float
        Share of L1 in the elastic net's penalty.
    C : float
        Factor of the losses that have one.
    kernel : str or None, default=None
        None: linear in the features, except for losses with several pieces, which have ``"rbf"``. ``"none"``: linear in the
        features, with one coefficient for each, whatever the loss. Else a kernel: ``"linear"``, ``"rbf"``, ``"poly"``,
        ``"sigmoid"``, ``"precomputed"`` (with an age of your own as ``selection``).
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
        How weights depend on losses: ``"linear"``, ``"hard"``, ``"mixture"``, ``"log"``, ``"huber"``, ``"polynomial"``,
        ``"welsch"``.
    {parameters}
    ages : (float, float) or None, default=None
        Smallest and largest age. None: from the data.
    direction : {"down", "up"}
        Follow the path from the convex problem at age infinity, or from the smallest age.
    branches : {"auto", "down", "up"} or int, default="auto"
        Which branches are followed where the engine chooses: the one that comes down and at most three others, one alone, or at
        most so many.
    selection : {"min", "1se"} or float, default="min"
        The best score, or the largest age within one standard error of it; or an age of your own.
    cv : int, splitter, iterable of splits or None, default=None
        Held-out rows that choose the age. None: with the squared loss in linear space the engine's own judgement, see above; else, or
        with a ``scoring``, its default number of folds, or fewer where a class is small.
    scoring : str, callable or None, default=None
        The engine's metric, by its own or scikit-learn's name; or any other of scikit-learn's scorers, by name or as made by
        :func:`sklearn.metrics.make_scorer`: a function of a fitted estimator, held-out rows and their targets. For a scorer no
        bound is known, so the best age is looked for among some hundred. None: the first metric for the kind of target.
    random_state : int, RandomState or None
        Seed of the folds.
    n_jobs : int or None
        Threads.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    age_ : float
        The chosen age; infinite where the ordinary fit is kept.
    coef_ : ndarray of shape (n_features,)
        Coefficients in the units of the data. With a kernel only if it is linear.
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
        kernel=None,
        gamma=DEFAULTS["gamma"],
        degree=DEFAULTS["degree"],
        coef0=DEFAULTS["coef0"],
        fit_intercept=DEFAULTS["fit_intercept"],
        standardize=DEFAULTS["standardize"],
        target_scale=DEFAULTS["target_scale"],
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
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.target_scale = target_scale
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
        return _agepath.responses(self._loss(), self._predictors(X).reshape(-1))


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
        super().__init__(
            "squared", "l1", alpha=alpha, fit_intercept=fit_intercept, standardize=standardize, target_scale=target_scale,
            pacing=pacing, ages=ages, direction=direction, selection=selection, cv=cv, scoring=scoring,
            random_state=random_state, n_jobs=n_jobs, verbose=verbose,
        )  # fmt: skip
