"""The path itself, for those who want more than one model."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_array, check_X_y

from . import _agepath, _data, _plot
from ._options import LOSSES, engine_options, threads_of
from ._progress import watched
from ._scoring import own_score

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Solution:
    """The exact solution at one age, or at several ages, one row each.

    Attributes
    ----------
    age : float or ndarray
        The age.
    coef : ndarray
        Coefficients in the units of the data; in kernel space the coefficients of the training rows.
    intercept : float or ndarray
        Intercept in the units of the data.
    weights : ndarray
        How much each training row counts, from 0 to 1.
    losses : ndarray
        The loss of each training row, in the solver's units.
    zones : ndarray of str
        The zone of each training row, by its name.
    kkt : float or ndarray
        Relative residual of the optimality conditions.
    solver_coef, solver_intercept : ndarray, float or ndarray
        Coefficients and intercept in the units the solver saw, after standardisation and target scaling.
    """

    age: float | np.ndarray
    coef: np.ndarray
    intercept: float | np.ndarray
    weights: np.ndarray
    losses: np.ndarray
    zones: np.ndarray
    kkt: float | np.ndarray
    solver_coef: np.ndarray
    solver_intercept: float | np.ndarray


class Path:
    """A solution path: the exact solution at every age of an interval.

    Made by :func:`age_path`, by fitting an estimator (``path_``), or by :meth:`load`.

    A path keeps a reference to the rows it was computed from, not a copy, where they were a float64 array in one piece:
    do not change that array in place before :meth:`save` or pickling. Solutions come from the engine's own copy.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from agepath import age_path
    >>> X, y = load_diabetes(return_X_y=True)
    >>> path = age_path(X, y, ages=(0.5, 20))
    >>> path.ages
    (0.5, 20.0)
    >>> path.at(2.0).coef.shape
    (10,)
    >>> path.at([1.0, 2.0, 5.0]).coef.shape
    (3, 10)
    >>> bool(path.certificate["max_kkt"] < 1e-9)
    True
    """

    def __init__(self, run: _agepath.Run, classes: list | None = None):
        self._run = run
        labels = run.classes
        self._classes = labels if classes is None else classes

    # What it is

    @property
    def ages(self) -> tuple[float, float]:
        """(float, float): smallest and largest age covered."""
        return self._run.ages

    @property
    def end(self) -> str:
        """str: ``"complete"``, or why the path ends before all ages asked for are covered."""
        return self._run.end

    @property
    def classes(self) -> np.ndarray | None:
        """ndarray or None: the two labels, in the order −1, +1."""
        return None if self._classes is None else np.asarray(self._classes)

    @property
    def feature_names(self) -> list[str]:
        """list of str: names of the columns."""
        return self._run.features

    @property
    def problem(self) -> dict[str, Any]:
        """dict: what was solved, in the words of ``path.json``."""
        return self._about["problem"]

    @property
    def direction(self) -> str:
        """str: ``"down"`` or ``"up"``."""
        return self._about["direction"]

    @property
    def certificate(self) -> dict[str, float]:
        """dict: the largest relative residual of the optimality conditions, and at how many solutions it was checked."""
        return self._about["certificate"]

    @property
    def work(self) -> dict[str, float]:
        """dict: what it took to compute the path."""
        return self._about["work"]

    @property
    def _about(self) -> dict[str, Any]:
        return json.loads(self._run.about())

    @property
    def events(self) -> pandas.DataFrame:
        """DataFrame: every critical point in the order it was met.

        Columns: age, kind (``turning`` or ``jump``), cause (``sample``, ``feature`` or ``fold``), index (row or column, −1
        for a fold), from and to (zones of a row, ``zero``/``active`` of a coefficient), size (length of a jump), drop (by
        how much the objective falls). Without pandas, a dict of arrays.
        """
        return _data.frame(self._run.events())

    @property
    def knots(self) -> dict[str, np.ndarray]:
        """dict: ages, coefficients and intercepts of the stored solutions. A jump's age occurs twice."""
        return self._run.knots()

    # Solutions

    def at(self, age: float | ArrayLike, *, n_jobs: int | None = None) -> Solution:
        """The exact solution at one age or at several.

        Parameters
        ----------
        age : float or array-like of float
            Within :attr:`ages`.
        n_jobs : int, optional
            Threads over the ages, as in scikit-learn.

        Returns
        -------
        Solution
        """
        single = np.ndim(age) == 0
        ages = np.atleast_1d(np.asarray(age, dtype=np.float64))
        if ages.ndim != 1:
            raise ValueError(f"age must be a number or a list of numbers, not an array of {ages.ndim} dimensions")
        return self._solution(self._run.at(ages.tolist(), threads_of(n_jobs)), single)

    def _solution(self, found, single):
        found["zones"] = np.asarray(self._run.zones)[found["zones"]]
        if single:
            found = {name: values[0] for name, values in found.items()}
            for name in ("age", "intercept", "kkt", "solver_intercept"):
                found[name] = float(found[name])
        return Solution(**found)

    @property
    def _kept(self):
        """The solution at the chosen age."""
        return self._solution(self._run.solution(), True)

    def coef(self, age: float | ArrayLike) -> np.ndarray:
        """Coefficients at one age (1-D) or several (one row each), in the units of the data."""
        return self.at(age).coef

    def intercept(self, age: float | ArrayLike) -> float | np.ndarray:
        """Intercept at one age or several, in the units of the data."""
        return self.at(age).intercept

    def weights(self, age: float | ArrayLike) -> np.ndarray:
        """How much each training row counts, at one age (1-D) or several (one row each)."""
        return self.at(age).weights

    def decision_function(self, X: Any, age: float | ArrayLike) -> np.ndarray:
        """Predictors of new rows: predictions in the units of y, or for classes a number whose sign decides.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        age : float or array-like of float

        Returns
        -------
        ndarray of shape (n_samples,) or (n_ages, n_samples)
        """
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
        if X.shape[1] != len(self.feature_names):
            raise ValueError(f"X has {X.shape[1]} features, but the path has {len(self.feature_names)} features")
        ages = np.atleast_1d(np.asarray(age, dtype=np.float64))
        z = self._run.predict(_data.rows(X), ages.tolist(), 1)
        return z[0] if np.ndim(age) == 0 else z

    def predict(self, X: Any, age: float | ArrayLike) -> np.ndarray:
        """Predictions for new rows, at one age (1-D) or several (one row each): numbers, or labels."""
        z = self.decision_function(X, age)
        return z if self.classes is None else self.classes[(z > 0).astype(int)]

    @property
    def entry_ages(self) -> np.ndarray:
        """ndarray: for each training row the largest age at which it is still among the largest losses.

        ``inf``: at every age up to the largest; 0: never on this path.
        """
        return self._run.entry_ages()

    # The chosen age

    @property
    def selection(self) -> dict[str, Any] | None:
        """dict or None: the chosen age and the score of every age that was tried (``curve``); None if none was chosen."""
        text = self._run.selection()
        return None if text is None else json.loads(text)

    @property
    def age(self) -> float | None:
        """float or None: the chosen age."""
        return self._run.age

    @property
    def noise_fraction(self) -> tuple[float, float] | None:
        """(float, float) or None: estimated share of bad rows at the chosen age, and its standard error."""
        return self._run.noise_fraction

    @property
    def suspects(self) -> pandas.DataFrame | None:
        """DataFrame or None: the training rows, most suspicious first; None if no age was chosen.

        Columns as in ``suspects.csv``; without pandas, a dict of arrays.
        """
        columns = self._run.suspects()
        return None if columns is None else _data.frame(columns)

    # Looking at it

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Axes:
        """Coefficients over the age, with jumps as vertical lines; returns the matplotlib Axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For the lines.
        """
        return _plot.coefficients(self, ax, **kwargs)

    def plot_learning_curve(self, ax: Axes | None = None, **kwargs: Any) -> Axes:
        """The score of each age that was tried, with its standard error, and the chosen age; returns the Axes."""
        return _plot.learning_curve(self, ax, **kwargs)

    def plot_events(self, ax: Axes | None = None, **kwargs: Any) -> Axes:
        """Critical points over the age: which row or coefficient, turning point or jump; returns the Axes."""
        return _plot.events(self, ax, **kwargs)

    def __repr__(self) -> str:
        low, high = self.ages
        events = self._run.events()["kind"]
        text = f"{self._run.model}, ages {low:g} to {high:g}, {len(events)} critical points, {events.count('jump')} jumps"
        return f"<agepath.Path: {text}{'' if self._run.complete else ', ' + self.end}>"

    def _repr_html_(self) -> str:
        low, high = self.ages
        events = self._run.events()["kind"]
        problem, certificate = self.problem, self.certificate
        figures = {
            "model": f"{problem['model']}, {problem['pacing']['kind']} pacing",
            "rows × features": f"{problem['n']} × {problem['d']}",
            "ages": f"{low:g} to {high:g}, {self.direction}",
            "critical points": f"{len(events)}, of them {events.count('jump')} jumps",
            "largest residual": f"{certificate['max_kkt']:.1e} at "
            f"{certificate['knots_checked'] + certificate['between_checked']} solutions",
            "end": self.end,
        }
        cells = (f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in figures.items())
        return f"<table><caption>Age-path</caption>{''.join(cells)}</table>"

    # Keeping it

    def save(self, directory: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes the path and its training rows to a directory, as ``agepath path`` does.

        ``agepath at DIRECTORY --age A`` and :meth:`load` read it back to the last bit. The files are written aside and swapped
        in whole; an earlier result in the directory is replaced.

        Parameters
        ----------
        directory : str or path-like
        force : bool, default=False
            Write to the directory even if it holds other things than an earlier result; files of other names are kept.
        """
        self._run.save(directory, force)

    def to_html(self, file: str | os.PathLike[str]) -> None:
        """Writes the report: one page that needs no network, to look at in a browser.

        Parameters
        ----------
        file : str or path-like
        """
        text = self._run.to_html()
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Path:
        """The path that :meth:`save` or ``agepath path`` wrote to a directory, with the age that was chosen, if one was.

        How it was chosen is not in the files: :attr:`selection` is None, and :attr:`suspects` are those of the path itself.
        """
        return cls(_agepath.load(directory))

    def __reduce__(self):
        run = self._run
        return _restored, (type(self), bytes(run.record()), run.train(), run.kept(), self._classes)


def age_path(
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    progress: Callable[[float, float, int, int], object] | None = None,
    verbose: int = 0,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    **options: Any,
) -> Path:
    """Compute the exact solution path over all ages.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Numbers, or labels of two classes: if y has exactly two different values or is not numeric, it is taken as classes,
        unless ``loss`` says otherwise.
    sample_weight : array-like of shape (n_samples,), optional
        An integer weight counts like as many rows.
    feature_names : list of str, optional
        Default: the columns of a frame, else x0, x1, …
    progress : callable, optional
        Called now and then with (share done, age, critical points, jumps); what it raises stops the path.
    verbose : int, default=0
        Show a progress bar.
    n_jobs : int, optional
        Threads, as in scikit-learn.
    random_state : int, RandomState or None
        Seed of folds and random starts; the command's ``--seed``.
    **options
        Any parameter of :class:`AgePathRegressor` or :class:`AgePathClassifier` (``loss``, ``penalty``, ``alpha``,
        ``l1_ratio``, ``C``, ``pacing``, ``ages``, ``direction``, ``standardize``, ``target_scale`` …), and ``model`` (a model
        of the command, instead of ``loss`` and ``penalty``), ``start``, ``max_events``, ``time_limit`` (seconds), ``certify``.
        With ``cv`` an age is chosen.

    Returns
    -------
    Path

    Examples
    --------
    >>> import numpy as np
    >>> from agepath import age_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = X @ [1.0, 0.0, -2.0] + 0.1 * rng.normal(size=60)
    >>> y[:6] += 8.0
    >>> path = age_path(X, y, alpha=0.001, ages=(0.5, 30))
    >>> path.end
    'complete'
    >>> np.round(path.coef(1.0), 1).tolist()
    [1.0, 0.0, -2.0]
    >>> path.weights(1.0)[:6].tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    names = feature_names if feature_names is not None else getattr(X, "columns", None)
    y = np.asarray(y)
    classes = _two_classes(y, options)
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=np.float64, y_numeric=classes is None)
    if names is None or not all(isinstance(name, str) for name in names):
        names = [f"x{j}" for j in range(X.shape[1])]
    if classes is not None:
        options.setdefault("loss", None if "model" in options else "logistic")
        y = np.where(y == classes[1], 1.0, -1.0)
    if sample_weight is not None:
        sample_weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64)
    data = _data.data(X, y, sample_weight, list(names), classes=classes)
    options = engine_options(options, X, y, random_state, classifier=classes is not None)
    threads = threads_of(n_jobs)
    with own_score(options, X, y, classes, options.get("loss")):
        [run] = watched(verbose, "age-path", progress, lambda tell: _agepath.solve(data, options, threads, tell))
    return Path(run, None if classes is None else list(classes))


def _two_classes(y, options):
    """The two labels if y is to be taken as classes, else None."""
    numeric = np.issubdtype(y.dtype, np.number)
    loss = LOSSES.get(options.get("loss"), options.get("loss"))
    if loss is None and "model" not in options:
        wanted = not numeric or len(np.unique(y)) == 2
    else:
        wanted = _agepath.is_for_classes(options.get("model"), loss)
    if not wanted:
        return None
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(f"y has {len(classes)} classes, but a path needs two; AgePathClassifier takes more, one path each")
    return classes


def _restored(cls, record, train, kept, classes):
    about = train["about"]
    if "x" in train:
        rows = _agepath.Rows.dense(train["x"])
    else:
        rows = _agepath.Rows.sparse(len(about["features"]), train["starts"], train["indices"], train["values"])
    data = _agepath.Data(rows, train["y"], train["weights"], about["features"], about["target"], about["classes"])
    return cls(_agepath.restore(record, data, kept), classes)
