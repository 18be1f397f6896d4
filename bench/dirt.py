"""Ways in which rows of a real table go wrong; every function changes the named rows in place."""

import numpy as np

SHARE = {"none": 0.0, "cluster15": 0.15, "unit": 0.2, "stuck": 0.25, "swap": 0.25, "onesided": 0.25, "middle": 0.25}
NUMBERS = ["none", "yshift", "columns", "cluster30", "cluster15", "unit", "stuck", "swap", "onesided", "middle", "permute"]
CLASSES = ["none", "flip20", "flip40", "onesided30"]


def numbers(x, y, kind, seed):
    """Corrupted copies of x and y, and which rows were hit."""
    r = np.random.default_rng([seed, NUMBERS.index(kind)])
    x, y = x.copy(), y.copy()
    n, d = x.shape
    bad = r.permutation(n)[: int(SHARE.get(kind, 0.3) * n)]
    spread, widths = y.std(), x.std(0)
    some = r.permutation(d)[: max(1, d // 3)]
    if kind == "yshift":  # gross errors of the target, both ways
        y[bad] += r.choice([-1, 1], len(bad)) * r.uniform(5, 10, len(bad)) * spread
    elif kind == "columns":  # a third of the columns garbled, the target another row's
        x[np.ix_(bad, some)] += widths[some] * 3 * r.standard_t(2, (len(bad), len(some)))
        y[bad] = r.permutation(y[bad])
    elif kind.startswith("cluster"):  # one far place with one wrong target
        x[bad] = x.mean(0) + 8 * widths * r.choice([-1, 1], d) + 0.1 * widths * r.normal(size=(len(bad), d))
        y[bad] = y.mean() + r.choice([-1, 1]) * 10 * spread + 0.1 * spread * r.normal(size=len(bad))
    elif kind == "unit":  # other units in a column or two and in the target
        x[bad, some[0]] *= 2.54
        x[bad, some[-1]] *= 1.8
        y[bad] *= 2.2
    elif kind == "stuck":  # sensors that repeat one reading
        x[np.ix_(bad, some)] = x[r.integers(n)][some]
        y[bad] = r.permutation(y[bad])
    elif kind == "swap":  # two columns in the wrong order
        a, b = r.permutation(d)[:2]
        x[np.ix_(bad, [a, b])] = x[np.ix_(bad, [b, a])]
    elif kind == "onesided":  # something added to the target
        y[bad] += r.uniform(2, 6, len(bad)) * spread
    elif kind == "middle":  # filled in with the middle of every column
        x[bad] = np.median(x, 0) + 0.1 * widths * r.normal(size=(len(bad), d))
        y[bad] = r.permutation(y[bad]) + r.choice([-1, 1]) * 3 * spread
    elif kind == "permute":  # targets of other rows
        y[bad] = r.permutation(y[bad])
    return x, y, np.isin(np.arange(n), bad)


def classes(y, kind, seed):
    """Corrupted copies of labels 0 and 1, and which rows were hit."""
    r = np.random.default_rng([seed, CLASSES.index(kind)])
    y = y.copy()
    rows = np.flatnonzero(y == 1) if kind.startswith("onesided") else np.arange(len(y))
    share = {"none": 0.0, "flip20": 0.2, "flip40": 0.4, "onesided30": 0.3}[kind]
    bad = r.permutation(rows)[: int(share * len(rows))]
    y[bad] = 1 - y[bad]
    return y, np.isin(np.arange(len(y)), bad)
