"""From arrays, frames and sparse matrices to what the engine reads."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from . import _agepath

TARGET = "target"


def rows(X):
    """Rows for the engine. A float64 array that lies in one piece is shared, not copied."""
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        starts, indices = X.indptr.astype(np.int64), X.indices.astype(np.uint32)
        return _agepath.Rows.sparse(X.shape[1], starts, indices, np.ascontiguousarray(X.data, dtype=np.float64))
    if not (X.flags.c_contiguous or X.flags.f_contiguous) or not X.flags.aligned:
        X = np.array(X, order="C")
    return _agepath.Rows.dense(X)


def data(X, y, weights, names, *, classes=None, target=TARGET):
    """Rows with a target. With `classes`, the labels, y is −1 and +1 if there are two, else their places 0, 1, 2, …"""
    if weights is not None:
        weights = np.ascontiguousarray(weights, dtype=np.float64)
    labels = None if classes is None else [str(label) for label in classes]
    return _agepath.Data(rows(X), np.ascontiguousarray(y, dtype=np.float64), weights, names, target, labels)


def frame(columns):
    """A pandas DataFrame if pandas is there, else a dict of arrays."""
    try:
        import pandas
    except ImportError:
        return {name: np.asarray(values) for name, values in columns.items()}
    return pandas.DataFrame(columns)
