"""The default command beside what people use instead, on real data gone wrong in many ways.

    python bench/decide.py [--seeds 5] [--rows 2000] [--only diabetes ...] [--data ../shared/datasets] [--binary target/release/agepath]

Each cell is a set, a kind of dirt (`dirt.py`) and a seed: a quarter of the rows is kept clean for testing, the others are corrupted, and
every method sees the same corrupted rows; agepath with no option at all, the others (`rivals.py`) tuned by 5 folds. Test errors are
mean absolute errors, or shares of wrong labels. Settings of the default choice were looked for on the sets of `SEEN` only; the others
are reported apart.
"""

import argparse
import io
import json
import subprocess
import tempfile
from pathlib import Path

import dirt
import numpy as np
import pandas as pd
import rivals
from sklearn.metrics import roc_auc_score

NUMBERS = ["houses", "delta_elevators", "cpu_small", "diabetes", "music", "house_8L", "ailerons", "elevators", "fried", "boston"]
CLASSES = ["breast_cancer", "digits", "pendigits_tes", "MagicTelescope", "a9a"]
SEEN = {"houses", "delta_elevators", "cpu_small", "diabetes", "music", "breast_cancer", "digits"}
# Best or within: a factor of the mean absolute error, a difference of the share of wrong labels.
NEAR, NEAR_CLASSES = 1.02, 0.01


def load(data, name, seed, rows):
    table = pd.read_csv(data / f"{name}.csv.gz")
    table = table.sample(min(rows, len(table)), random_state=seed).reset_index(drop=True)
    x, y = table.drop(columns="target").to_numpy(float), table["target"].to_numpy()
    if name in CLASSES:
        labels = np.unique(y)
        y = (np.searchsorted(labels, y) % 2).astype(int)  # many classes become two: every other one
    k = len(y) // 4
    return x[k:], y[k:], x[:k], y[:k]


def agepath(binary, x, y, test):
    """Predictions, scores of the training rows, and the summary."""
    names = [f"x{j}" for j in range(x.shape[1])]
    with tempfile.TemporaryDirectory() as work:
        pd.DataFrame(x, columns=names).assign(target=y).to_csv(f"{work}/train.csv", index=False)
        pd.DataFrame(test, columns=names).to_csv(f"{work}/test.csv", index=False)
        subprocess.run([binary, "path", "train.csv", "-o", "out", "-q"], cwd=work, check=True)
        told = subprocess.run([binary, "predict", "out", "test.csv"], cwd=work, check=True, capture_output=True, text=True)
        prediction = pd.read_csv(io.StringIO(told.stdout))["prediction"].to_numpy()
        score = pd.read_csv(f"{work}/out/suspects.csv").sort_values("row")["score"].to_numpy()
        return prediction, score, json.loads(Path(f"{work}/out/summary.json").read_text())


def cell(binary, data, name, kind, seed, rows):
    x, y, test, truth = load(data, name, seed, rows)
    if name in CLASSES:
        y, bad = dirt.classes(y, kind, seed)
        others, doubt = rivals.classes(x, y)
        y_words = np.where(y == 1, "yes", "no")
        prediction, score, summary = agepath(binary, x, y_words, test)
        error = lambda p: np.mean(p != truth)
        errors = {"agepath": error((prediction == "yes").astype(int)), **{m: error(f(test)) for m, f in others.items()}}
    else:
        x, y, bad = dirt.numbers(x, y.astype(float), kind, seed)
        others = rivals.numbers(x, y, seed)
        doubt = {m: np.abs(f(x) - y) for m, f in others.items()}
        prediction, score, summary = agepath(binary, x, y, test)
        error = lambda p: np.mean(np.abs(p - truth))
        errors = {"agepath": error(prediction), **{m: error(f(test)) for m, f in others.items()}}
    ranks = {m: roc_auc_score(bad, s) for m, s in {"agepath": score, **doubt}.items()} if bad.any() else {}
    share = (summary["chosen"]["noise_fraction"] or {}).get("estimate")
    chosen = "ordinary" if summary["chosen"]["ordinary"] else summary["branch"]
    return {"data": name, "kind": kind, "seed": seed, "errors": errors, "ranks": ranks, "share": share, "truth": bad.mean(), "chosen": chosen}


def verdict(c):
    """Whether agepath is best or near it; whether it is clearly worse than the ordinary fit; the rival that is best."""
    errors = c["errors"]
    best = min((m for m in errors if m != "agepath"), key=errors.get)
    ours = errors["agepath"]
    if c["data"] in CLASSES:
        return ours <= errors[best] + NEAR_CLASSES, ours > errors["ordinary"] + NEAR_CLASSES, best
    return ours <= NEAR * errors[best], ours > NEAR * errors["ordinary"], best


def tally(title, cells):
    if not cells:
        return
    near, worse = sum(verdict(c)[0] for c in cells), sum(verdict(c)[1] for c in cells)
    ranked = [c for c in cells if c["ranks"]]
    top = sum(c["ranks"]["agepath"] >= max(r for m, r in c["ranks"].items() if m != "agepath") - 0.005 for c in ranked)
    told = [c for c in cells if c["share"] is not None]
    right = sum(abs(c["share"] - c["truth"]) <= 0.05 for c in told)
    print(f"{title}: best or near it in {near} of {len(cells)} cells; clearly worse than the ordinary fit in {worse}; "
          f"suspects ranked at least as well as by anyone in {top} of {len(ranked)}; share within .05 in {right} of {len(told)}")
    for method in sorted({m for c in cells for m in c["errors"]} - {"agepath"}):
        have = [c for c in cells if method in c["errors"]]
        limit = lambda c: min(c["errors"].values())
        good = sum(c["errors"][method] <= (limit(c) + NEAR_CLASSES if c["data"] in CLASSES else NEAR * limit(c)) for c in have)
        print(f"    {method}: {good} of {len(have)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--data", type=Path, default=Path("../shared/datasets"))
    parser.add_argument("--binary", default="target/release/agepath")
    args = parser.parse_args()
    binary, cells = str(Path(args.binary).resolve()), []
    for name in args.only or NUMBERS + CLASSES:
        for kind in dirt.CLASSES if name in CLASSES else dirt.NUMBERS:
            for seed in range(args.seeds):
                c = cell(binary, args.data, name, kind, seed, args.rows)
                cells.append(c)
                near, worse, best = verdict(c)
                errors, rank = c["errors"], c["ranks"].get("agepath", float("nan"))
                mark = ("" if near else " !") + (" worse than the ordinary fit" if worse else "")
                share = "-" if c["share"] is None else f"{c['share']:.2f}"
                print(f"{name:16}{kind:12}{seed:2}  {errors['agepath']:.4g}, {best} {errors[best]:.4g}, ordinary {errors['ordinary']:.4g}; "
                      f"AUROC {rank:.2f}; share {share} of {c['truth']:.2f}; {c['chosen']}{mark}", flush=True)
    for kind in ("numbers", "classes"):
        of = [c for c in cells if (c["data"] in CLASSES) == (kind == "classes")]
        tally(f"{kind}, sets that settings were chosen on", [c for c in of if c["data"] in SEEN])
        tally(f"{kind}, other sets", [c for c in of if c["data"] not in SEEN])


if __name__ == "__main__":
    main()
