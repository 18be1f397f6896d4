"""The command's results, checked by code that shares nothing with it.

Needs the built command (AGEPATH_BIN, default target/release/agepath); builds nothing itself.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import agepath, needs_command
from reference import Reference, discontinuity
from selfpaced import Run, read_run
from sklearn.datasets import load_breast_cancer, load_diabetes

pytestmark = needs_command

KKT = 1e-9
"""What every returned point must satisfy, relative to sum |psi|."""

AGREE = 1e-6
"""Coefficients of the exact path and of a converged ACS sweep on the same branch."""

TIE = 1e-9
"""Losses this close (relative) to a threshold may be counted to either side of it."""

LOW, HIGH = 0.1, 20.0
ZONES = {"hard": "ED", "linear": "ED", "mixture": "EMD", "log": "ED"}
MODELS = {
    "lasso": ["--alpha", "0.005"],
    "elastic-net": ["--alpha", "0.005", "--l1-ratio", "0.5"],
    "ridge": ["--alpha", "0.005"],
    "logistic": ["--c", "1"],
}
PACINGS = {
    "hard": [],
    "linear": [],
    "mixture": ["--pacing-gamma", "0.5"],
    "log": ["--pacing-a", "1"],
}


# --- running the command ------------------------------------------------------------------------------------------


def compute(data: Path, directory: Path, *options, ages=(LOW, HIGH)) -> Run:
    low, high = (repr(float(a)) for a in ages)
    agepath("path", data, "-o", directory, "--ages", f"{low}:{high}", "--validation", 0, "--threads", 1, "--quiet", *options)
    return read_run(directory)


def solutions(run: Run, ages) -> list[dict]:
    flags = [part for age in ages for part in ("--age", repr(float(age)))]
    points = [json.loads(line) for line in agepath("at", run.directory, "--solver-units", *flags).splitlines()]
    assert [p["age"] for p in points] == pytest.approx(list(ages), rel=1e-15)
    return points


def write_csv(path: Path, X, y) -> Path:
    header = ",".join([f"x{j}" for j in range(X.shape[1])] + ["target"])
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=header, comments="", fmt="%.17g")
    return path


def model_options(model: str, pacing: str) -> list[str]:
    noise = "flip:0.3" if model == "logistic" else "outliers:0.3"
    named = ["--model", model, *MODELS[model], "--pacing", pacing, *PACINGS[pacing]]
    return [*named, "--noise", noise, "--seed", "0"]


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The two public data sets, as files, by the kind of model that uses them."""
    folder = tmp_path_factory.mktemp("data")
    regression = write_csv(folder / "diabetes.csv", *load_diabetes(return_X_y=True, scaled=False))
    classes = write_csv(folder / "breast_cancer.csv", *load_breast_cancer(return_X_y=True))
    return {model: classes if model == "logistic" else regression for model in MODELS}


@pytest.fixture(scope="session")
def runs(files, tmp_path_factory):
    """Computed paths, each made once."""
    made = {}

    def get(model: str, pacing: str, direction: str = "down") -> Run:
        key = (model, pacing, direction)
        if key not in made:
            directory = tmp_path_factory.mktemp("-".join(key)) / "out"
            made[key] = compute(files[model], directory, *model_options(model, pacing), "--direction", direction)
        return made[key]

    return get


def well_scaled_regression(seed=5, n=150, d=5):
    """Standardised columns and a target in units of its own noise, 30 % of it wrong: needs no preprocessing."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X @ np.array([1.0, -0.7, 0.4, 0.0, 0.1]) + 0.5 * rng.standard_normal(n)
    bad = rng.choice(n, size=int(0.3 * n), replace=False)
    y[bad] += rng.choice([-1.0, 1.0], len(bad)) * rng.uniform(2.0, 6.0, len(bad))
    return X, y


RAW = ["--no-standardize", "--target-scale", "none"]


# --- checks -------------------------------------------------------------------------------------------------------


def residual(run: Run, age, coef, intercept) -> float:
    """KKT residual with weights recomputed from the losses. At a jump of hard pacing the loss of a sample equals the
    age, and rounding decides which weight it gets; there the better choice counts."""
    spec, w = run.spec, np.array(coef)
    plain = spec.kkt(run.X, run.y, w, intercept, age)
    if spec.pacing.kind != "hard" or plain <= KKT:
        return plain
    losses = spec.losses(run.X @ w + intercept, run.y)
    tied = np.flatnonzero(np.abs(losses - age) <= TIE * age)
    assert len(tied) <= 6, f"{len(tied)} samples on the threshold at age {age}"
    weights, found = spec.pacing.weight(losses, age), [plain]
    for choice in itertools.product([0.0, 1.0], repeat=len(tied)):
        weights[tied] = choice
        found.append(spec.kkt(run.X, run.y, w, intercept, age, weights))
    return min(found)


def assert_knots_are_solutions(run: Run):
    worst = max((residual(run, k["age"], k["coef"], k["intercept"]), k["age"]) for k in run.path["knots"])
    assert worst[0] <= KKT, f"residual {worst[0]:.1e} at age {worst[1]}"


def away_from_jumps(run: Run, ages, margin=1e-6):
    jumps = np.array([e["age"] for e in run.jumps])
    return np.array([a for a in ages if np.all(np.abs(jumps / a - 1.0) > margin)])


def log_uniform(run: Run, count, seed=1):
    low, high = run.path["ages"]
    return np.sort(np.exp(np.random.default_rng(seed).uniform(np.log(low), np.log(high), count)))[::-1]


# --- (a) every knot is a solution ---------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["down", "up"])
@pytest.mark.parametrize("pacing", PACINGS)
@pytest.mark.parametrize("model", MODELS)
def test_every_knot_is_a_solution(runs, model, pacing, direction):
    run = runs(model, pacing, direction)
    assert run.path["direction"] == direction
    assert len(run.path["knots"]) >= 2
    if "y" in run.path["problem"]:
        np.testing.assert_allclose(run.y, run.path["problem"]["y"], rtol=1e-12, atol=1e-12)
    assert_knots_are_solutions(run)


@pytest.mark.parametrize("pacing", PACINGS)
@pytest.mark.parametrize("model", ["lasso", "elastic-net", "ridge"])
def test_regression_paths_cover_the_interval(runs, model, pacing):
    run = runs(model, pacing)
    assert run.path["end"] == "complete"
    assert run.path["ages"] == pytest.approx([LOW, HIGH], rel=1e-12)
    ages = [k["age"] for k in run.path["knots"]]
    assert ages == sorted(ages, reverse=True) and ages[0] == pytest.approx(HIGH) and ages[-1] == pytest.approx(LOW)


@pytest.mark.parametrize("pacing", PACINGS)
@pytest.mark.parametrize("model", MODELS)
def test_a_turning_sample_sits_on_its_threshold(runs, model, pacing):
    """Every sample event is a zero of its guard: at the event's age the sample's loss is a threshold of the pacing."""
    run = runs(model, pacing)
    events = [e for e in run.events if e["kind"] == "turning" and e["cause"] == "sample"]
    if pacing == "hard":
        assert not events  # every sample event of hard pacing is a jump
        return
    some = events[:: max(1, len(events) // 40)]
    for event, point in zip(some, solutions(run, [e["age"] for e in some])):
        loss = point["losses"][event["index"]]
        thresholds = run.spec.pacing.thresholds(event["age"])
        assert min(abs(loss / t - 1.0) for t in thresholds) <= 1e-6, event


# --- (b) any age --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pacing", PACINGS)
@pytest.mark.parametrize("model", MODELS)
def test_any_age_is_solved_exactly(runs, model, pacing):
    run = runs(model, pacing)
    for point in solutions(run, log_uniform(run, 50)):
        age = point["age"]
        assert residual(run, age, point["coef"], point["intercept"]) <= KKT and point["kkt"] <= KKT
        losses = run.spec.losses(run.X @ np.array(point["coef"]) + point["intercept"], run.y)
        np.testing.assert_allclose(point["losses"], losses, rtol=1e-9, atol=1e-12)
        thresholds = run.spec.pacing.thresholds(age)
        clear = np.all([np.abs(losses - t) > TIE * t for t in thresholds], axis=0)
        weights = run.spec.pacing.weight(losses, age)
        np.testing.assert_allclose(np.array(point["weights"])[clear], weights[clear], rtol=1e-9, atol=1e-9)
        zones = np.searchsorted(thresholds, losses)
        given = [z if isinstance(z, int) else ZONES[pacing].index(z) for z in point["zones"]]
        np.testing.assert_array_equal(np.array(given)[clear], zones[clear])


# --- (c) a fine ACS sweep tells the same story --------------------------------------------------------------------

SWEEP = 2000
CANDIDATE = 5.0
"""A step is looked at more closely when the solution moves this many times further than in the steps around it."""


class FineSweep:
    """ACS at 2000 ages, from far above the interval down, beside the exact path at the same ages."""

    def __init__(self, run: Run):
        low, high = run.path["ages"]
        self.run, self.ages = run, np.geomspace(high, low, SWEEP)
        self.exact = np.array([[*p["coef"], p["intercept"]] for p in solutions(run, self.ages)])
        jumps = np.array([e["age"] for e in run.jumps])
        # step k leads from ages[k] to ages[k + 1]
        self.jump_steps = np.searchsorted(-self.ages, -jumps, side="right") - 1
        self.jumps_in = np.bincount(self.jump_steps.clip(0, SWEEP - 2), minlength=SWEEP - 1)
        self.reference = Reference(run.X, run.y, run.spec)
        self.walk()

    def walk(self):
        theta = self.reference.start(self.ages[0])
        self.before, self.after, self.put_back, self.undecided = [], [theta], 0, []
        for k, age in enumerate(self.ages[1:]):
            self.before.append(theta)
            theta = self.reference.solve(theta, age)
            if self.jumps_in[k] >= 1 and self.off(k + 1, theta):
                theta = self.land(k)
                if self.off(k + 1, theta):
                    theta = self.land_elsewhere(k, theta)
            self.after.append(theta)
            if self.jumps_in[k] >= 2 and self.off(k + 1, theta):
                theta, self.put_back = self.exact[k + 1], self.put_back + 1
        self.before, self.after = np.array(self.before), np.array(self.after)
        self.moved = np.linalg.norm(self.after[1:] - self.before, axis=1)

    def off(self, k, theta) -> bool:
        return np.abs(theta - self.exact[k]).max() > AGREE

    def land(self, k, substeps=64):
        """Step k again in small steps: one large step past a jump may fall into another basin than the path does.
        Two jumps closer than a small step can still hide a landing between them; only then may the sweep be put back
        on the exact branch, and how often is counted."""
        theta = self.before[k]
        for age in np.geomspace(self.ages[k], self.ages[k + 1], substeps + 1)[1:]:
            theta = self.reference.solve(theta, age)
        return theta

    def land_elsewhere(self, k, theta):
        """After a jump ACS itself may land in one basin or in another, depending on how far past the jump it starts: then
        it does not say which is right. Such a jump is noted; the sweep goes on in the basin the path is in, provided that
        ACS reaches that one as well, or that it lies lower than where ACS ends."""
        for jump in [e["age"] for e in self.run.jumps if self.ages[k + 1] < e["age"] <= self.ages[k]]:
            brink = self.reference.solve(self.before[k], min(self.ages[k], jump * (1.0 + 1e-6)))
            for past in np.geomspace(1e-5, 2e-3, 12):
                other = self.reference.solve(self.reference.solve(brink, jump * (1.0 - past)), self.ages[k + 1])
                if not self.off(k + 1, other):
                    self.undecided.append(jump)
                    return other
        age, path = self.ages[k + 1], self.exact[k + 1]
        if self.reference.value(path, age) < self.reference.value(theta, age):
            self.undecided.append(age)
            return path
        return theta

    def jump_near(self, step, reach=1) -> int:
        return self.jumps_in[max(0, step - reach) : step + reach + 1].sum()

    def typical(self, step) -> float:
        """The median movement of the ten steps around."""
        around = np.r_[self.moved[max(0, step - 5) : step], self.moved[step + 1 : step + 6]]
        return np.median(around)


SWEPT = [("lasso", "linear"), ("lasso", "mixture"), ("lasso", "log"), ("lasso", "hard"), ("logistic", "linear")]

MAX_UNDECIDED = 1
"""Jumps of one path after which ACS itself lands in either of two basins; on breast_cancer it does so at age 1.425."""


@pytest.fixture(scope="session", params=SWEPT, ids="-".join)
def swept(request, runs):
    return FineSweep(runs(*request.param))


def test_the_path_is_what_a_fine_sweep_finds(swept):
    clear = np.array([swept.jump_near(k) == 0 and swept.jump_near(k - 1) == 0 for k in range(SWEEP - 1)] + [False])
    apart = np.abs(swept.exact - swept.after).max(axis=1)
    wrong = np.flatnonzero(clear & (apart > AGREE))
    assert clear.sum() > SWEEP / 4
    assert len(wrong) == 0, f"{len(wrong)} ages differ, first {swept.ages[wrong[0]]}: {apart[wrong[0]]:.1e}"
    assert swept.put_back <= SWEEP / 100
    assert len(swept.undecided) <= MAX_UNDECIDED, swept.undecided


def test_every_jump_the_sweep_sees_is_an_event(swept):
    hard = swept.run.spec.pacing.kind == "hard"
    for k in range(SWEEP - 1):
        if hard:  # the path is constant between jumps: any movement is one
            assert swept.moved[k] <= AGREE or swept.jump_near(k), f"unexplained change at {swept.ages[k]}"
        elif swept.moved[k] > max(AGREE, CANDIDATE * swept.typical(k)):
            ends = swept.ages[k], swept.before[k], swept.ages[k + 1], swept.after[k + 1]
            found = discontinuity(swept.reference, *ends)
            if found.size > 0.5 * swept.moved[k]:
                assert swept.jump_near(k), f"no event for the jump of {found.size:.3g} near {found.above}"


def test_every_large_jump_is_seen_by_the_sweep(swept):
    for event, step in zip(swept.run.jumps, swept.jump_steps):
        alone = 0 <= step < SWEEP - 1 and swept.jump_near(step) == 1
        if alone and event["size"] > max(10 * AGREE, CANDIDATE * swept.typical(step)):
            seen = swept.moved[max(0, step - 1) : step + 2].max()
            assert seen >= 0.5 * event["size"], event


# --- (d) scaling laws ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kappa", [4.0, 1e-3, 2.5e4])
@pytest.mark.parametrize("pacing", PACINGS)
def test_another_unit_of_the_target_only_relabels_ages(tmp_path, pacing, kappa):
    """y √κ with α √κ: losses grow by κ, coefficients by √κ, and ages are relabelled (and γ and a with them)."""
    X, y = well_scaled_regression()
    root = kappa**0.5
    by = {"hard": kappa, "linear": kappa, "log": kappa, "mixture": root}[pacing]
    parameter = {"mixture": ["--pacing-gamma", repr(0.5 * root)], "log": ["--pacing-a", repr(1 / kappa)]}
    options = ["--model", "lasso", "--pacing", pacing, *RAW]
    one = compute(write_csv(tmp_path / "one.csv", X, y), tmp_path / "one",
                  *options, *PACINGS[pacing], "--alpha", "0.005")
    two = compute(write_csv(tmp_path / "two.csv", X, y * root), tmp_path / "two",
                  *options, *parameter.get(pacing, []), "--alpha", repr(0.005 * root), ages=(LOW * by, HIGH * by))
    assert len(one.events) == len(two.events)
    np.testing.assert_allclose([e["age"] * by for e in one.events], [e["age"] for e in two.events], rtol=1e-7)
    ages = away_from_jumps(one, log_uniform(one, 30))
    for p, q in zip(solutions(one, ages), solutions(two, ages * by)):
        np.testing.assert_allclose(np.array(p["coef"]) * root, q["coef"], rtol=1e-6, atol=1e-7 * root)
        np.testing.assert_allclose(p["weights"], q["weights"], atol=1e-6)


# --- (e) duplicated rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pacing", PACINGS)
def test_every_row_twice_is_the_same_path(tmp_path, pacing):
    X, y = well_scaled_regression()
    options = ["--model", "lasso", "--pacing", pacing, *PACINGS[pacing], *RAW]
    once = compute(write_csv(tmp_path / "once.csv", X, y), tmp_path / "once", *options)
    twice = compute(write_csv(tmp_path / "twice.csv", np.repeat(X, 2, axis=0), np.repeat(y, 2)), tmp_path / "twice", *options)
    assert_knots_are_solutions(twice)
    a, b = (np.sort([e["age"] for e in run.events]) for run in (once, twice))
    assert len(a) > 0 and len(b) > 0
    for some, all_ages in ((a, b), (b, a)):
        near = np.abs(all_ages[None, :] / some[:, None] - 1.0).min(axis=1)
        assert near.max() <= 1e-7, f"an event at {some[near.argmax()]} has no counterpart"
    ages = away_from_jumps(once, log_uniform(once, 30))
    for p, q in zip(solutions(once, ages), solutions(twice, ages)):
        np.testing.assert_allclose(p["coef"], q["coef"], atol=1e-7)
        np.testing.assert_allclose(np.repeat(p["weights"], 2), q["weights"], atol=1e-6)


@pytest.mark.parametrize("pacing", PACINGS)
def test_some_rows_repeated(tmp_path, pacing):
    """Copies share their weight at every age, and the path is still one of solutions."""
    X, y = well_scaled_regression()
    copies = np.r_[np.arange(len(y)), np.arange(0, 60, 3), np.arange(0, 60, 3)]
    options = ["--model", "lasso", "--pacing", pacing, *PACINGS[pacing], *RAW]
    run = compute(write_csv(tmp_path / "some.csv", X[copies], y[copies]), tmp_path / "some", *options)
    assert run.path["end"] == "complete"
    assert_knots_are_solutions(run)
    for point in solutions(run, away_from_jumps(run, log_uniform(run, 30))):
        assert residual(run, point["age"], point["coef"], point["intercept"]) <= KKT
        weights = np.array(point["weights"])
        for row in np.arange(0, 60, 3):
            assert np.ptp(weights[copies == row]) <= 1e-9
