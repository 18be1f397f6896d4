"""The rows of one run: read, made two classes, thinned out, split 3 : 1."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from .declared import SEED

#: Models whose target is a number.
REGRESSIONS = {"lasso", "least-squares", "ridge", "elastic-net"}


def folder() -> Path:
    """Where the data sets are: AGEPATH_DATA, or beside the repository."""
    return Path(os.environ.get("AGEPATH_DATA", Path(__file__).parents[2] / "shared/datasets"))


def file_of(name: str) -> Path:
    return folder() / f"{name}.csv.gz"


@lru_cache(maxsize=64)
def hash_of(name: str) -> str:
    """Of the file's bytes."""
    return hashlib.sha256(file_of(name).read_bytes()).hexdigest()[:16]


@lru_cache(maxsize=4)
def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and target."""
    table = pd.read_csv(file_of(name))
    return table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1].to_numpy()


def two_classes(y: np.ndarray) -> np.ndarray:
    """Many classes become two: the first half of the labels, in the order of their names, against the others."""
    labels = sorted(np.unique(y), key=str)
    return np.where(np.isin(y, labels[: len(labels) // 2]), 1, -1)


def split(spec: dict[str, Any], run: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows of a run: X, y, X_test, y_test. Seed 40 + run."""
    X, y = load(spec["data"])
    y = y.astype(float) if spec["model"] in REGRESSIONS else two_classes(y)
    rng = np.random.default_rng(SEED + run)
    if "features" in spec:
        width = X.shape[1]
        X = X[:, np.sort(rng.permutation(width)[: round(spec["features"] * width)])]
    if spec.get("rows", len(y)) < len(y):
        kept = rng.permutation(len(y))[: spec["rows"]]
        X, y = X[kept], y[kept]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=SEED + run)
    return X, y, X_test, y_test
