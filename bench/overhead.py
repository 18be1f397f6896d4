"""What the Python layer adds to the time of the library, on diabetes.

    python bench/overhead.py [--repeats 200] [--profile]

The library tells how long it worked, from the rows to the result (`path_._run.seconds`); the rest of `fit` is the layer: checking the
input, the border, the fitted attributes. The median over the repeats is printed, for a fit at a given age and for one that
chooses it, and where the time of the layer goes.
"""

import argparse
import cProfile
import pstats
import time

import numpy as np
from sklearn.datasets import load_diabetes

from agepath import AgePathRegressor


def measure(model, X, y, repeats):
    layer, engine = [], []
    for _ in range(repeats):
        begun = time.perf_counter()
        model.fit(X, y)
        whole = time.perf_counter() - begun
        engine.append(model.path_._run.seconds)
        layer.append(whole - engine[-1])
    return 1e3 * np.median(layer), 1e3 * np.percentile(layer, 90), 1e3 * np.median(engine)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--profile", action="store_true", help="where the layer's time goes")
    args = parser.parse_args()
    X, y = load_diabetes(return_X_y=True)
    cases = {"selection=3.0": AgePathRegressor(selection=3.0), "cv=5": AgePathRegressor(cv=5)}
    print("| fit | layer, median ms | layer, 90 % ms | library ms |\n|---|---|---|---|")
    for name, model in cases.items():
        model.fit(X, y)
        middle, high, engine = measure(model, X, y, args.repeats)
        print(f"| {name} | {middle:.2f} | {high:.2f} | {engine:.1f} |")
    if args.profile:
        profile = cProfile.Profile()
        model = cases["selection=3.0"]
        profile.runcall(lambda: [model.fit(X, y) for _ in range(args.repeats)])
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
