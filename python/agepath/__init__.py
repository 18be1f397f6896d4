"""Exact solution paths of self-paced learning.

Self-paced learning finds a fit and the rows to trust at the same time: a row counts only while its loss is small compared
with an *age*. This package computes the solution for every age, chooses an age on held-out rows, and ranks the rows by how
little they fit.

* :class:`AgePathRegressor`, :class:`AgePathClassifier` and the presets :class:`SelfPacedLasso`,
  :class:`SelfPacedLogisticRegression` and :class:`SelfPacedSVC` are scikit-learn estimators;
* :func:`age_path` gives the path itself, a :class:`Path`.
"""

from ._agepath import __version__
from ._classifiers import AgePathClassifier, SelfPacedLogisticRegression, SelfPacedSVC
from ._path import Path, Solution, age_path
from ._regressors import AgePathRegressor, SelfPacedLasso

__all__ = [
    "AgePathClassifier",
    "AgePathRegressor",
    "Path",
    "SelfPacedLasso",
    "SelfPacedLogisticRegression",
    "SelfPacedSVC",
    "Solution",
    "__version__",
    "age_path",
]
