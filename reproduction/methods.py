"""One method on one run, under both protocols.

*Theirs*: learn from all training rows, noise as the released code makes it, the age that the test rows like best. *Honest*: noise as
the paper's text describes it, a quarter of the noisy training rows validates and chooses the age, the test rows are clean and only
scored. Errors of regressions are in units of the standard deviation of the clean training target.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from typing import Any

import numpy as np
from agepath import AgePathClassifier, AgePathRegressor, age_path
from agepath.baselines import corrupt, fingerprints, fit_rival
from sklearn.model_selection import train_test_split

from . import data
from .declared import SEED

#: Ages at which a path is scored, evenly in the logarithm.
AGES = 200

#: Share of the rows nearest the boundary among which the released code flips labels.
NEAREST = 0.3

#: Share of a task's time after which a path stops by itself, so that it is recorded how far it came: there are two per task.
PATH_SHARE = 0.45

#: The name of the library's baseline behind a method, and its settings.
RIVALS = {
    "original": ("original", {}),
    "acs": ("acs", {"step": 0.5}),
    "acs-200": ("acs", {"step": 0.1}),
    "acs-curve": ("acs", {"step": 0.5}),
    "mospl": ("mospl", {}),
    "huber-lasso": ("huber-lasso", {}),
    "rls-svm": ("rls-svm", {}),
    "re-ls-svm": ("re-ls-svm", {}),
    "robust-svm": ("robust-svm", {}),
}


def engine_of(method: str) -> str:
    """The fingerprint of the sources that a method depends on."""
    return fingerprints()["rivals" if method in RIVALS else "path"]


def options_of(spec: dict[str, Any]) -> dict[str, Any]:
    """The options of the engine for a cell."""
    named = {"kernel_gamma": "gamma"}
    words = ("model", "alpha", "C", "kernel", "kernel_gamma", "pacing", "pacing_gamma", "ages")
    return {named.get(word, word): spec[word] for word in words if word in spec}


def noise_of(spec: dict[str, Any], protocol: str) -> str | None:
    """The noise of a protocol, in the words of the engine."""
    if not spec.get("noise"):
        return None
    if spec["model"] in data.REGRESSIONS:
        return f"outliers:{spec['noise']}"
    return f"margin:{NEAREST * spec['noise']:.6g}" if protocol == "theirs" else f"flip:{spec['noise']}"


def spoiled(spec, X, y, run, protocol):
    """The training rows with their noise."""
    noise = noise_of(spec, protocol)
    if noise is None:
        return X, y
    X, y, _ = corrupt(X, y, noise, random_state=SEED + run, **options_of(spec))
    return X, y


class Scores:
    """Errors in units of the target's spread, or the share of right labels."""

    def __init__(self, spec, y_train):
        self.regression = spec["model"] in data.REGRESSIONS
        self.unit = float(np.std(y_train)) if self.regression else 1.0

    def of(self, z: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
        """By metric, one number per row of z."""
        if self.regression:
            error = (z - y) / self.unit
            return {"mae": np.abs(error).mean(axis=1), "mse": (error**2).mean(axis=1)}
        return {"accuracy": (np.where(z > 0, 1, -1) == y).mean(axis=1)}

    def best(self, scores: np.ndarray) -> int:
        """The best candidate; of equals the last, which has the largest age."""
        worst_first = -scores if self.regression else scores
        worst_first = np.where(np.isfinite(worst_first), worst_first, -np.inf)
        return len(scores) - 1 - int(np.argmax(worst_first[::-1]))


def plain(value: Any) -> Any:
    """Numbers that JSON can hold."""
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(v) for v in value]
    if isinstance(value, (np.integer, np.bool_)):
        return value.item()
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.10g}") if math.isfinite(value) else None
    return value


def run_task(spec: dict[str, Any], run: int, method: str, limit: float | None = None) -> dict[str, Any]:
    """What a method makes of a run of a cell."""
    rows = data.split(spec, run)
    if method == "agepath-default":
        return plain({"honest": by_default(spec, rows, run)})
    if method in ("path", "points", "consistency"):
        return plain({"path": path_only(spec, rows, run, method, limit)})
    keep = method in ("curve", "acs-curve")
    told = {p: under(p, spec, rows, run, method, limit, keep) for p in ("theirs", "honest")}
    return plain(told)


def under(protocol, spec, rows, run, method, limit, keep):
    """One protocol."""
    X, y, X_test, y_test = rows
    scores = Scores(spec, y)
    X, y = spoiled(spec, X, y, run, protocol)
    ageless = method in RIVALS and RIVALS[method][0] not in ("acs", "mospl")
    held = np.empty((0, X.shape[1]))
    if protocol == "honest" and not ageless:
        X, held, y, y_held = train_test_split(X, y, test_size=0.25, random_state=SEED + run)
    asked = np.vstack([held, X_test])
    found = rival(spec, X, y, asked, run, method) if method in RIVALS else path(spec, X, y, asked, method, limit)
    z_held, z_test = found["z"][:, : len(held)], found["z"][:, len(held) :]
    tested = scores.of(z_test, y_test)
    told = {key: found[key] for key in found if key not in ("z", "age")}
    metric = "mae" if scores.regression else "accuracy"
    if protocol == "theirs":
        # Each metric may choose an age of its own: the most favourable reading.
        told["test"] = {name: s[scores.best(s)] for name, s in tested.items()}
        k = scores.best(tested[metric])
    else:
        k = 0 if ageless else scores.best(scores.of(z_held, y_held)[metric])
        told["test"] = {name: s[k] for name, s in tested.items()}
    told["age"] = found["age"][k]
    told["candidates"] = len(found["age"])
    if keep and protocol == "theirs":
        told["curve"] = {"age": found["age"], metric: np.round(tested[metric], 5)}
    return told


def rival(spec, X, y, asked, run, method):
    """Candidates of a baseline."""
    name, settings = RIVALS[method]
    options, settings = options_of(spec), dict(settings)
    if name == "mospl":
        settings.update(spec.get("mospl", {}))
    elif name == "huber-lasso":
        options["alpha"], settings["threshold"] = spec["huber_alpha"], spec["huber_threshold"]
    elif name in ("rls-svm", "re-ls-svm"):
        settings["c"] = spec["rls_c" if name == "rls-svm" else "re_c"]
    elif name == "robust-svm":
        settings.update(c=spec["C"], flips=min(spec["noise"], 0.45))
        options.update(kernel="rbf", gamma=spec["robust_gamma"])
    found = fit_rival(name, X, y, asked, settings=settings, random_state=SEED + run, **options)
    return {"z": found.predictions, "age": found.age, "seconds": found.seconds}


def followed(spec, X, y, direction, limit):
    """The path, and what is recorded of it."""
    options = options_of(spec)
    if limit:
        options["time_limit"] = PATH_SHARE * limit
    p = age_path(X, y, direction=direction, n_jobs=1, random_state=SEED, **options)
    events = p.events
    types = Counter(zip(events["kind"], events["cause"], events["from"], events["to"]))
    told = {
        "seconds": p._run.seconds,
        "end": p.end,
        "complete": p.end == "complete",
        "ages": p.ages,
        "kkt": p.certificate["max_kkt"],
        "landings": int((events["kind"] == "jump").sum()),
        "restarts": p.work["restarts"],
        "turning": int((events["kind"] == "turning").sum()),
        "jumps": int((events["kind"] == "jump").sum()),
        "types": {" ".join(part for part in kind if part): count for kind, count in sorted(types.items())},
    }
    return p, told


def path(spec, X, y, asked, method, limit):
    """Candidates of a path."""
    direction = "down" if method == "agepath-down" else "up"
    p, told = followed(spec, X, y, direction, limit)
    ages = np.geomspace(*p.ages, AGES)
    ages[0], ages[-1] = p.ages
    return {"z": p.decision_function(asked, ages), "age": ages, **told}


def by_default(spec, rows, run):
    """The library's own choice: all noisy training rows, no row set aside, its own interval of ages."""
    X, y, X_test, y_test = rows
    scores = Scores(spec, y)
    X, y = spoiled(spec, X, y, run, "honest")
    words = {k: v for k, v in options_of(spec).items() if k not in ("model", "ages")}
    if scores.regression:
        model = AgePathRegressor(loss="squared_error", penalty="l1", random_state=SEED + run, n_jobs=1, **words)
    else:
        loss = "hinge" if spec["model"] == "svm" else "logistic"
        model = AgePathClassifier(loss, random_state=SEED + run, n_jobs=1, **words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    z = model.predict(X_test) if scores.regression else model.decision_function(X_test)
    test = {name: s[0] for name, s in scores.of(z[None, :], y_test).items()}
    p = model.path_
    return {"test": test, "age": model.age_, "seconds": p._run.seconds, "end": p.end, "complete": p.end == "complete"}


def path_only(spec, rows, run, method, limit):
    """A path without any choice, for figures."""
    X, y, *_ = rows
    X, y = spoiled(spec, X, y, run, "honest")
    p, told = followed(spec, X, y, "up", limit)
    if method == "path":
        ages = np.geomspace(*p.ages, 300)
        ages[0], ages[-1] = p.ages
        events = p.events
        told["curve"] = {"age": ages, "coef": np.round(p.at(ages).solver_coef, 5)}
        told["events"] = {name: list(events[name]) for name in ("age", "kind", "cause", "from", "to")}
    elif method == "consistency":
        told.update(consistency(spec, X, y, p, run))
    return told


def consistency(spec, X, y, p, run):
    """ACS at tiny steps, upwards, against the path at the same ages; within two steps of a jump they may differ."""
    step = spec["acs_step"]
    low, high = p.ages
    every = max(1, round((high - low) / step / 400))
    options = {**options_of(spec), "ages": (low, high)}
    found = fit_rival("acs", X, y, X[:1], settings={"step": step, "every": every}, random_state=SEED + run, **options)
    ages, theta = found.age, found.theta
    exact = p.at(ages)
    theirs, ours = theta[:, : exact.solver_coef.shape[1]], exact.solver_coef
    jumps = np.asarray(p.events["age"])[np.asarray(p.events["kind"]) == "jump"]
    near = np.abs(ages[:, None] - jumps[None, :]).min(axis=1) <= 2 * step if len(jumps) else np.zeros(len(ages), bool)
    gap = np.abs(theirs - ours).max(axis=1)
    widest = np.argsort(-np.abs(ours).max(axis=0))[:8]
    return {
        "difference": gap[~near].max() if (~near).any() else None,
        "typical_difference": np.median(gap[~near]) if (~near).any() else None,
        "apart": int((gap[~near] > 1e-3).sum()),
        "compared": int((~near).sum()),
        "near_jumps": int(near.sum()),
        "scale": np.abs(ours).max(),
        "acs_seconds": found.seconds,
        "step": step,
        "curve": {"age": ages[::2], "acs": np.round(theirs[::2][:, widest], 4), "exact": np.round(ours[::2][:, widest], 4)},
    }
