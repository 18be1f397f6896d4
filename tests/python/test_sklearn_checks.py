"""scikit-learn's own checks, on every estimator."""

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


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
