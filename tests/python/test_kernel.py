"""Paths in kernel space against scikit-learn: ACS with SVC on the same kernel, age after age, and KKT from the file.

Needs the built command (AGEPATH_BIN, default target/release/agepath); builds nothing itself.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import agepath, needs_command
from selfpaced import read_run
from svm import acs, kernel

pytestmark = needs_command

KKT = 1e-9
"""Relative to C."""

AGREE = 1e-4
"""Decision values of the exact path and of an ACS sweep that stops at weights equal to 1e-8."""

HAIR = 1e-5
"""Relative; the solution moves by less than a tenth of a jump within it."""

PACINGS = {"linear": (0.8, 4.0), "mixture": (1.2, 2.5), "hard": (1.0, 4.0), "log": (0.8, 4.0)}


@pytest.fixture(scope="module", params=PACINGS)
def run(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp(request.param)
    low, high = PACINGS[request.param]
    agepath(
        "path", "builtin:breast_cancer", "--model", "svm", "--noise", "flip:0.3", "--seed", 3, "--validation", 0,
        "--pacing", request.param, "--ages", f"{low}:{high}", "--quiet", "-o", directory,
    )
    return read_run(directory)


def solution(run, K, dual, intercept) -> tuple[np.ndarray, np.ndarray]:
    beta = np.zeros(len(run.y))
    for i, value in dual:
        beta[i] = value
    return beta, K @ beta + intercept


def violation(run, beta, z, age) -> float:
    """Distance of -beta from the subdifferential of F(max(0, 1 - yz)), C = 1."""
    margin, alpha = run.y * z, run.y * beta
    weight = run.spec.pacing.weight(np.maximum(0.0, 1.0 - margin), age)
    at_kink = np.abs(margin - 1.0) + np.maximum(0.0, np.maximum(-alpha, alpha - 1.0))
    smooth = np.abs(alpha - np.where(margin < 1.0, weight, 0.0))
    if run.spec.pacing.kind == "hard":
        # On the threshold either weight is optimal.
        tied = np.abs(1.0 - margin - age) < 1e-9
        smooth = np.where(tied, np.minimum(np.abs(alpha), np.abs(alpha - 1.0)), smooth)
    return max(np.minimum(at_kink, smooth).max(), abs(beta.sum()))


def test_every_knot_is_optimal(run):
    K = kernel(run)
    assert run.path["end"] == "complete"
    for knot in run.path["knots"]:
        beta, z = solution(run, K, knot["dual"], knot["intercept"])
        assert violation(run, beta, z, knot["age"]) <= KKT, knot["age"]


def test_every_jump_lands_where_acs_goes(run):
    """From the end of each branch, ACS at an age a hair further on reaches the point where the path goes on."""
    if run.spec.pacing.kind == "hard":
        pytest.skip("hard pacing jumps at every event")
    K = kernel(run)
    for jump in (e for e in run.path["events"] if e["kind"] == "jump"):
        before, *_, after = [k for k in run.path["knots"] if k["age"] == jump["age"]]
        _, start = solution(run, K, before["dual"], before["intercept"])
        _, landed = solution(run, K, after["dual"], after["intercept"])
        z, _ = acs(run, K, start, jump["age"] * (1.0 - HAIR), stop=1e-8)
        moved = np.abs(landed - start).max()
        assert np.abs(z - landed).max() <= 0.1 * moved, jump["age"]


def test_the_path_is_where_acs_goes_until_the_first_jump(run):
    if run.spec.pacing.kind == "hard":
        pytest.skip("hard pacing jumps at every event")
    K = kernel(run)
    low, high = run.path["ages"]
    first = max((e["age"] for e in run.path["events"] if e["kind"] == "jump"), default=low)
    ages = np.geomspace(high, first, 6)[:-1]
    flags = [part for age in ages for part in ("--age", repr(float(age)))]
    points = [json.loads(line) for line in agepath("at", run.directory, "--solver-units", *flags).splitlines()]
    z = run.y.copy()
    for age in [20.0 * high, 4.0 * high, *ages]:
        z, _ = acs(run, K, z, age, stop=1e-8)
        point = next((p for p in points if p["age"] == age), None)
        if point is not None:
            assert point["kkt"] <= KKT
            _, exact = solution(run, K, point["dual"], point["intercept"])
            assert np.abs(exact - z).max() <= AGREE, age
