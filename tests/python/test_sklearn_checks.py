"""scikit-learn's own checks, on every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from agepath import (
    AgePathClassifier,
    AgePathRegressor,
    SelfPacedLasso,
    SelfPacedLogisticRegression,
    SelfPacedSVC,
)

ESTIMATORS = [
    AgePathRegressor(),
    AgePathRegressor(penalty="l2", pacing="mixture"),
    AgePathClassifier(),
    SelfPacedLasso(),
    SelfPacedLogisticRegression(),
    SelfPacedSVC(),
]


#: See "Known defects" in DESIGN.md. These are not run: some of them do not end.
STALLS = "a path in kernel space stalls where repeated rows, or a handful of rows, leave nothing to hold the intercept"
STALLING = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    name = getattr(check, "func", check).__name__
    if isinstance(estimator, SelfPacedSVC) and name in STALLING:
        pytest.xfail(STALLS)
    check(estimator)
