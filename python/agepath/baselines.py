"""What the age-path is compared with, on the same rows: for studies.

:func:`fit_rival` learns from some rows and predicts others with one of the library's baselines, each with all of its candidates, so
that whoever compares decides how one of them is chosen. :func:`corrupt` spoils rows on purpose. :func:`fingerprints` says which
sources the installed engine was built from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_array, check_X_y

from . import _agepath, _data
from ._options import engine_options
from ._path import _two_classes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Candidates", "corrupt", "fingerprints", "fit_rival"]


@dataclass(frozen=True)
class Candidates:
    """What a rival learned, one row per candidate.

    Attributes
    ----------
    age : ndarray of shape (n_candidates,)
        The ages; NaN where the rival has none.
    predictions : ndarray of shape (n_candidates, n_rows)
        In the units of y, or for classes numbers whose sign decides.
    theta : ndarray of shape (n_candidates, n_parameters) or None
        Coefficients, then the intercept, in the units the solver saw; None for machines with a kernel of their own.
    seconds : float
        Wall-clock seconds in the library.
    """

    age: np.ndarray
    predictions: np.ndarray
    theta: np.ndarray | None
    seconds: float


def _read(X, y, options):
    y = np.asarray(y)
    classes = _two_classes(y, options)
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=np.float64, y_numeric=classes is None)
    if classes is not None:
        y = np.where(y == classes[1], 1.0, -1.0)
    data = _data.data(X, y, None, [f"x{j}" for j in range(X.shape[1])], classes=classes)
    return X, y, data, classes


def fit_rival(
    name: str,
    X: Any,
    y: ArrayLike,
    X_new: Any,
    *,
    settings: dict[str, float] | None = None,
    random_state: int | None = None,
    n_jobs: int | None = 1,
    **options: Any,
) -> Candidates:
    """Learn from some rows with a baseline and predict others.

    Parameters
    ----------
    name : str
        ``"original"``: the convex model. ``"acs"``: alternate convex search upwards over the ages, settings ``step`` (0.5) and
        ``every`` (1: keep every solution). ``"mospl"``: the front of NSGA-III, settings ``population`` (150), ``generations`` (800)
        and ``exponent`` (1.35). ``"huber-lasso"``: setting ``threshold``, in the solver's units. ``"ls-svm"``, ``"rls-svm"``,
        ``"re-ls-svm"``, ``"robust-svm"``: settings ``c`` (1), ``truncation`` (1.5), ``kept`` (0.7), ``flips`` (0.1); their kernel is
        that of the options, or RBF.
    X, y : the rows to learn from; numbers, or two classes
    X_new : the rows to predict
    settings : dict, optional
        Of the rival.
    random_state : int, optional
        Seed of what the rival draws.
    n_jobs : int or None, default=1
        Threads; None: one per core.
    **options
        As of :func:`agepath.age_path`: ``loss`` or ``model``, ``alpha``, ``C``, ``kernel``, ``pacing``, ``ages``, ``target_scale`` …

    Returns
    -------
    Candidates

    Examples
    --------
    >>> import numpy as np
    >>> from agepath.baselines import fit_rival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = X @ [1.0, 0.0, -2.0] + 0.1 * rng.normal(size=60)
    >>> found = fit_rival("acs", X, y, X[:5], settings={"step": 1.0}, alpha=0.01, ages=(1.0, 4.0))
    >>> found.age.tolist()
    [1.0, 2.0, 3.0, 4.0]
    >>> found.predictions.shape
    (4, 5)
    """
    X, y, data, classes = _read(X, y, options)
    rows = _data.rows(check_array(X_new, accept_sparse="csr", dtype=np.float64))
    options = engine_options(options, X, y, random_state, classifier=classes is not None)
    return Candidates(**_agepath.rival(name, data, rows, options, settings or {}, n_jobs))


def corrupt(
    X: Any, y: ArrayLike, noise: str, *, random_state: int = 0, **options: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with noise, as the command's ``--noise`` makes them.

    Parameters
    ----------
    X, y : the rows; numbers, or two classes
    noise : str
        ``KIND:RATE`` with a kind among outliers, target, flip and margin.
    random_state : int
        The seed.
    **options
        As of :func:`agepath.age_path`; ``margin`` needs to know the model.

    Returns
    -------
    X, y : ndarray
        The rows with noise; classes have their own labels again.
    rows : ndarray
        Which rows were hit.

    Examples
    --------
    >>> import numpy as np
    >>> from agepath.baselines import corrupt
    >>> X, y = np.random.default_rng(0).normal(size=(20, 2)), np.repeat(["a", "b"], 10)
    >>> _, wrong, rows = corrupt(X, y, "flip:0.3", loss="logistic")
    >>> len(rows), int((wrong != y).sum())
    (6, 6)
    """
    X, y, data, classes = _read(X, y, options)
    options = engine_options(options, X, y, random_state, classifier=classes is not None)
    found = _agepath.corrupt(data, options, noise)
    y = found["y"]
    return found["x"], y if classes is None else classes[(y > 0).astype(int)], found["rows"]


def fingerprints() -> dict[str, str]:
    """Of the sources of the installed engine: ``path`` of all of them, ``rivals`` of those that the rivals need."""
    return _agepath.fingerprints()
