"""Parameters as scikit-learn names them, in the words of the engine."""

from __future__ import annotations

import inspect
import numbers
import os

import numpy as np
from joblib import effective_n_jobs
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from . import _agepath

DEFAULTS = _agepath.defaults()

#: The parameters of the engine's losses and pacings: by factor and name, default and one line about it.
PARAMETERS = _agepath.parameters()

#: Parameters that go to the engine under their own names.
ENGINE = (
    "model", "loss", "penalty", "alpha", "l1_ratio", "kernel", "gamma", "degree", "coef0", "fit_intercept", "standardize",
    "target_scale", "pacing", "ages", "direction", "branches", "start", "max_events", "time_limit", "certify",
    *PARAMETERS["loss"], *PARAMETERS["pacing"],
)  # fmt: skip

#: The engine's penalties that scikit-learn calls otherwise.
PENALTIES = {"elasticnet": "elastic-net"}

#: The engine's losses that scikit-learn calls otherwise.
LOSSES = {
    "squared_error": "squared",
    "log_loss": "logistic",
    "squared_hinge": "squared-hinge",
    "epsilon_insensitive": "epsilon-insensitive",
    "huber": "squared",  # with its own pacing
}

#: The engine's metrics that scikit-learn calls otherwise.
METRICS = {
    "neg_mean_absolute_error": "mae",
    "neg_root_mean_squared_error": "rmse",
    "neg_median_absolute_error": "median-ae",
    "neg_log_loss": "log-loss",
    "balanced_accuracy": "balanced-accuracy",
    "roc_auc": "auc",
}


def with_parameters_of(*factors):
    """A class decorator: the parameters of these factors join those that the constructor names itself.

    The engine knows their names, defaults and meanings. In the docstring, ``{parameters}`` stands for them.
    """

    def decorate(cls):
        own, signature = cls.__init__, inspect.signature(cls.__init__)
        known = {name: about for factor in factors for name, about in PARAMETERS[factor].items()}
        more = {name: about for name, about in known.items() if name not in signature.parameters}

        def __init__(self, *args, **given):
            for name, (default, _) in more.items():
                setattr(self, name, given.pop(name, default))
            own(self, *args, **given)

        keyword = inspect.Parameter.KEYWORD_ONLY
        added = [inspect.Parameter(name, keyword, default=default) for name, (default, _) in more.items()]
        __init__.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *added])
        cls.__init__ = __init__
        if cls.__doc__:  # python -OO has none
            lines = [f"{name} : float, default={default:g}\n        {text}." for name, (default, text) in more.items()]
            cls.__doc__ = cls.__doc__.replace("{parameters}", "\n    ".join(lines))
        return cls

    return decorate


def engine_options(given, X, y, random_state, *, classifier):
    """The engine's options of some parameters; those that are not given have the library's defaults.

    A scorer that the engine does not know is there as ``own_scoring``.
    """
    known = {*ENGINE, "cv", "scoring", "selection"}
    unknown = sorted(set(given) - known)
    if unknown:
        raise TypeError(f"unknown parameter {unknown[0]!r}; the parameters are {', '.join(sorted(known))}")
    options = {name: given[name] for name in ENGINE if given.get(name) is not None}
    if "penalty" in given and given["penalty"] is None:
        options["penalty"] = "none"
    for name, words in (("penalty", PENALTIES), ("loss", LOSSES)):
        if name in options:
            options[name] = words.get(options[name], options[name])
    if given.get("loss") == "huber":
        if options.get("pacing", "huber") not in ("huber", DEFAULTS["pacing"]):
            raise ValueError(
                f"pacing={options['pacing']!r} with loss='huber': Huber's loss is the squared loss with pacing='huber'; "
                "leave pacing at its default, or take loss='squared'"
            )
        options["pacing"] = "huber"
    if "ages" in options:
        options["ages"] = interval(options["ages"])
    options["seed"] = seed_of(random_state)
    selection = given.get("selection")
    if isinstance(selection, numbers.Real) and not isinstance(selection, bool):
        options["age"] = float(selection)
    elif "cv" in given:
        options["rule"] = selection
        options.update(scoring_options(given.get("scoring")))
        options["folds"] = folds(given["cv"], X, y, classifier)
    return options


def interval(ages):
    """Two numbers."""
    try:
        low, high = (float(age) for age in ages)
    except (TypeError, ValueError):
        raise ValueError(f"ages={ages!r}: expected (low, high) with 0 < low < high, both finite") from None
    return low, high


def scoring_options(scoring):
    """The engine's name of a metric, or a scorer of scikit-learn's kind."""
    name = METRICS.get(scoring, scoring) if isinstance(scoring, str) else scoring
    if name is None or name in _agepath.choices()["metric"]:
        return {"metric": name}
    if callable(scoring):
        return {"own_scoring": scoring}
    try:
        return {"own_scoring": get_scorer(scoring)}
    except (TypeError, ValueError, KeyError):
        known = ", ".join(_agepath.choices()["metric"])
        raise ValueError(
            f"scoring={scoring!r}: expected a metric ({known}), a name that scikit-learn knows, or a scorer"
        ) from None


def folds(cv, X, y, classifier):
    """A number of folds for the engine to draw, or the held-out rows of each."""
    if cv is None or isinstance(cv, numbers.Integral):
        return None if cv is None else int(cv)
    held_out = []
    for train, held in check_cv(cv, y, classifier=classifier).split(X, y):
        train, held = (np.flatnonzero(part) if part.dtype == bool else part for part in map(np.asarray, (train, held)))
        if len(train) + len(held) != X.shape[0]:
            raise ValueError("cv: every fold must train on all rows it does not hold out, as KFold does")
        held_out.append(held.tolist())
    return held_out


def seed_of(random_state):
    """The engine's seed; a number is the command's ``--seed``."""
    if random_state is None:
        return None
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def threads_of(n_jobs):
    """Threads of one call: what joblib makes of n_jobs here, but no more than there are cores."""
    return max(1, min(effective_n_jobs(n_jobs), os.cpu_count() or 1))
