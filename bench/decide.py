"""Test error and suspect ranking beside what people use instead, on corrupted real data.

    python bench/decide.py [--seeds 5] [--only diabetes ...] [--data ../shared/datasets] [--binary target/release/agepath]

Each cell: a quarter of the rows is set aside as clean test rows; the others are corrupted by `agepath path --noise` and everything
that is tuned is tuned on these corrupted rows (`--cv 5`): agepath's model and pacing among `CANDIDATES`, by the score at the chosen
age, as the others choose their C, alpha and gamma. The rows that agepath wrote are handed to scikit-learn, so all methods see the
same numbers. Prints one table: mean over seeds of the test error (MAE relative to the best, or share of wrong classes) and
of the AUROC with which corrupted rows are ranked.
"""

import argparse
import csv
import json
import subprocess
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import HuberRegressor, Lasso, LassoCV, LogisticRegression, LogisticRegressionCV, RANSACRegressor
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

try:
    from cleanlab.rank import get_label_quality_scores
    from cleanlab.regression.rank import get_label_quality_scores as get_regression_scores
except ImportError:
    get_label_quality_scores = get_regression_scores = None

warnings.filterwarnings("ignore")

REGRESSION = ["diabetes", "boston", "cpu_small", "delta_elevators", "houses"]
CLASSES = ["breast_cancer", "digits", "pendigits_tes"]
# Larger sets are cut to this many rows, drawn by the seed, so that all repeats end within an hour; kernels grow fastest.
MAX_ROWS = {"regression": 4000, "classes": 2000}
CANDIDATES = {
    "regression": [["--pacing", "linear"], ["--pacing", "mixture"]],
    "classes": [
        ["--model", "logistic", "--pacing", "linear"],
        ["--model", "logistic", "--pacing", "mixture"],
        ["--model", "svm", "--pacing", "linear"],
    ],
}


def kind_of(name):
    return "classes" if name in CLASSES else "regression"


def load(data, name, seed):
    table = pd.read_csv(data / f"{name}.csv.gz")
    if len(table) > MAX_ROWS[kind_of(name)]:
        table = table.sample(MAX_ROWS[kind_of(name)], random_state=seed).reset_index(drop=True)
    if name in ("digits", "pendigits_tes"):
        # Ten classes become two, even and odd.
        table["target"] = np.where(table["target"] % 2 == 0, "even", "odd")
    return table


def agepath(binary, train, test, noise, seed, options):
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        train.to_csv(work / "train.csv", index=False)
        test.to_csv(work / "test.csv", index=False)
        command = [binary, "path", "train.csv", "-o", "out", "--noise", noise, "--seed", str(seed), "--cv", "5", "-q"]
        subprocess.run([*command, *options], cwd=work, check=True)
        if not (work / "out/model.json").exists():
            return None  # no age could be chosen: this candidate is out
        subprocess.run([binary, "predict", "out", "test.csv", "-o", "p.csv"], cwd=work, check=True)
        record = json.loads((work / "out/path.json").read_text())
        summary = json.loads((work / "out/summary.json").read_text())
        seen = training_rows(work / "out/train.npz", record["problem"])
        bad = np.isin(record["problem"]["rows"], record["noise"]["rows"])
        scores = {int(r["row"]): float(r["score"]) for r in csv.DictReader(open(work / "out/suspects.csv"))}
        score = np.array([scores[row] for row in record["problem"]["rows"]])
        prediction = pd.read_csv(work / "p.csv")["prediction"].to_numpy()
        return seen, bad, score, prediction, summary["chosen"]


def training_rows(file, problem):
    """The training rows as the path saw them, noise included; the last column is the target."""
    rows = np.load(file)
    y, classes = rows["y"], problem.get("classes")
    table = pd.DataFrame(rows["X"], columns=problem["features"])
    table[problem["target"]] = np.where(y > 0, classes[1], classes[0]) if classes else y
    return table


def robust_target(model):
    """The target in the units that agepath uses, so that alpha means the same."""
    units = {}

    def scale(y):
        middle = np.median(y)
        units.update(middle=middle, scale=1.4826 * np.median(np.abs(y - middle)) or 1.0)
        return (y - units["middle"]) / units["scale"]

    transformer = FunctionTransformer(scale, lambda z: units["middle"] + units["scale"] * z, check_inverse=False)
    return TransformedTargetRegressor(model, transformer=transformer)


def regressors(seed):
    scaled = lambda model: robust_target(make_pipeline(StandardScaler(), model))
    return {
        "original": scaled(Lasso(alpha=0.005)),
        "tuned": scaled(LassoCV(cv=5)),
        "huber": scaled(HuberRegressor(max_iter=1000)),
        "ransac": scaled(RANSACRegressor(random_state=seed)),
    }


def classifiers(_):
    scaled = lambda model: make_pipeline(StandardScaler(), model)
    grid = {"svc__C": [0.1, 1, 10, 100], "svc__gamma": ["scale", 0.01, 0.1]}
    return {
        "original": scaled(LogisticRegression(max_iter=5000)),
        "tuned": scaled(LogisticRegressionCV(cv=5, max_iter=5000)),
        "svm-rbf": GridSearchCV(scaled(SVC()), grid, cv=5, n_jobs=1),
    }


def cleanlab_scores(x, y, is_class, model):
    if get_label_quality_scores is None:
        return None
    if is_class:
        codes = np.unique(y, return_inverse=True)[1]
        probability = cross_val_predict(model, x, y, cv=5, method="predict_proba")
        return -get_label_quality_scores(codes, probability)
    return -get_regression_scores(y, cross_val_predict(model, x, y, cv=5))


def cell(binary, data, name, noise, seed):
    is_class = kind_of(name) == "classes"
    table = load(data, name, seed)
    stratify = table["target"] if is_class else None
    train, test = train_test_split(table, test_size=0.25, random_state=seed, stratify=stratify)
    tried = [(options, agepath(binary, train, test, noise, seed, options)) for options in CANDIDATES[kind_of(name)]]
    tried = [(options, run) for options, run in tried if run]
    # Accuracy should be high, the mean absolute error low.
    better = lambda candidate: candidate[1][-1]["score"] * (-1 if is_class else 1)
    options, (seen, bad, score, prediction, chosen) = min(tried, key=better)
    x, y = seen.drop(columns="target").to_numpy(), seen["target"].to_numpy()
    truth = test["target"].to_numpy()
    if is_class:
        prediction = prediction.astype(str)
        y, truth = y.astype(str), truth.astype(str)
        error = lambda p: np.mean(p != truth)
    else:
        error = lambda p: np.mean(np.abs(p - truth))
    errors, ranks = {"agepath": error(prediction)}, {"agepath": roc_auc_score(bad, score)}
    for label, model in (classifiers if is_class else regressors)(seed).items():
        model.fit(x, y)
        errors[label] = error(model.predict(test.drop(columns="target").to_numpy()))
        if label == "original":
            if is_class:
                residual = 1 - model.predict_proba(x)[np.arange(len(y)), np.unique(y, return_inverse=True)[1]]
            else:
                residual = np.abs(model.predict(x) - y)
            ranks["residual"] = roc_auc_score(bad, residual)
            quality = cleanlab_scores(x, y, is_class, model)
            if quality is not None:
                ranks["cleanlab"] = roc_auc_score(bad, quality)
    return errors, ranks, chosen["noise_fraction"]["estimate"], " ".join(options[1::2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--data", type=Path, default=Path("../shared/datasets"))
    parser.add_argument("--binary", default="target/release/agepath")
    args = parser.parse_args()
    binary = str(Path(args.binary).resolve())
    print(f"{'data':16}{'noise':10} | test error of each method; * the best, + within 2 % | AUROC of suspects | noise found | chosen")
    cells = good = 0
    for name in args.only or REGRESSION + CLASSES:
        for kind in ["flip", "margin"] if name in CLASSES else ["outliers", "target"]:
            runs = [cell(binary, args.data, name, f"{kind}:0.3", seed) for seed in range(args.seeds)]
            errors = {m: np.mean([r[0][m] for r in runs]) for m in runs[0][0]}
            ranks = {m: np.mean([r[1][m] for r in runs]) for m in runs[0][1]}
            best = min(errors.values())
            mark = lambda e: "*" if e == best else "+" if e <= 1.02 * best else " "
            cells, good = cells + 1, good + (mark(errors["agepath"]) != " ")
            shown = "  ".join(f"{m} {e:.4g}{mark(e)}" for m, e in errors.items())
            ranked = "  ".join(f"{m} {r:.3f}" for m, r in ranks.items())
            found, chosen = np.mean([r[2] for r in runs]), Counter(r[3] for r in runs).most_common()
            models = ", ".join(f"{times} {options}" for options, times in chosen)
            print(f"{name:16}{kind:10} | {shown} | {ranked} | {found:.2f} | {models}", flush=True)
    print(f"agepath is best or within 2 % of the best in {good} of {cells} cells")


if __name__ == "__main__":
    main()
