"""What people use instead, tuned by 5 folds on the rows that they are given: each is a function of rows that returns a predictor."""

import warnings

import numpy as np
from sklearn.linear_model import HuberRegressor, LassoCV, LinearRegression, LogisticRegression, LogisticRegressionCV, RANSACRegressor, TheilSenRegressor
from sklearn.model_selection import GridSearchCV, cross_val_predict

try:
    import statsmodels.api as statsmodels
except ImportError:
    statsmodels = None
try:
    from cleanlab.rank import get_label_quality_scores
except ImportError:
    get_label_quality_scores = None

warnings.filterwarnings("ignore")


def units(x, y):
    """Standardised columns, the target by median and MAD: as agepath sees them."""
    middle, width = x.mean(0), x.std(0)
    width = np.where(width > 0, width, 1)
    centre = np.median(y)
    scale = 1.4826 * np.median(np.abs(y - centre)) or y.std() or 1.0
    return (lambda q: (q - middle) / width), (y - centre) / scale, (lambda z: z * scale + centre)


def m_scale(r, p):
    """Bisquare, breakdown 1/2."""
    delta, s = 0.5 * max(1 - (p + 1) / len(r), 0.05), np.median(np.abs(r)) / 0.6745
    for _ in range(100):
        if not s > 1e-9 * np.abs(r).max():
            return 1e-9 * np.abs(r).max()
        u = np.minimum(np.abs(r) / (1.54764 * s), 1)
        s, old = s * np.sqrt((1 - (1 - u * u) ** 3).mean() / delta), s
        if abs(s / old - 1) < 1e-8:
            break
    return s


def lts(a, u, seed, draws=200):
    """Least trimmed squares by concentration from random subsets, then one reweighted step."""
    n, p = a.shape
    h, r = (n + p + 1) // 2, np.random.default_rng(seed)

    def step(b):
        rows = np.argpartition(np.abs(u - a @ b), h - 1)[:h]
        b = np.linalg.lstsq(a[rows], u[rows], rcond=1e-10)[0]
        return np.sort((u - a @ b) ** 2)[:h].sum(), b

    first = []
    for _ in range(draws):
        rows = r.choice(n, min(n, p + 1), replace=False)
        b = np.linalg.lstsq(a[rows], u[rows], rcond=1e-10)[0]
        for _ in range(2):
            value, b = step(b)
        first.append((value, b))
    last = []
    for value, b in sorted(first, key=lambda f: f[0])[:8]:
        for _ in range(30):
            before, (value, b) = value, step(b)
            if abs(value - before) <= 1e-10 * (1 + before):
                break
        last.append((value, b))
    b = min(last, key=lambda f: f[0])[1]
    rows = np.abs(u - a @ b) <= 2.5 * 1.4826 * np.median(np.abs(u - a @ b))
    return np.linalg.lstsq(a[rows], u[rows], rcond=1e-10)[0] if rows.sum() > p else b


def mm(a, u, seed):
    """Tukey's biweight from the LTS fit, with the S-scale of its residuals."""
    b = lts(a, u, seed)
    s = m_scale(u - a @ b, a.shape[1] - 1)
    for _ in range(200):
        w = np.maximum(1 - ((u - a @ b) / (4.685 * s)) ** 2, 0)
        b, old = np.linalg.lstsq(a * w[:, None], u * w, rcond=1e-10)[0], b
        if np.abs(b - old).max() < 1e-8:
            break
    return b


def numbers(x, y, seed):
    """Predictors by name; the ordinary fit first. What fails is left out."""
    scale, u, back = units(x, y)
    z = scale(x)
    a = np.c_[np.ones(len(u)), z]
    grid = {"epsilon": [1.1, 1.35, 2, 4], "alpha": [1e-4, 1]}
    huber = GridSearchCV(HuberRegressor(max_iter=300), grid, cv=5, scoring="neg_mean_absolute_error")
    few = 300 if z.shape[1] < 30 else 100
    fits = {
        "ordinary": lambda: LinearRegression().fit(z, u).predict,
        "lassocv": lambda: LassoCV(cv=5).fit(z, u).predict,
        "huber": lambda: huber.fit(z, u).predict,
        "theil-sen": lambda: TheilSenRegressor(random_state=seed, max_subpopulation=few, max_iter=100).fit(z, u).predict,
        "ransac": lambda: RANSACRegressor(random_state=seed).fit(z, u).predict,
        "lts": lambda: linear(lts(a, u, seed)),
        "mm": lambda: linear(mm(a, u, seed)),
    }
    if z.shape[1] > 60:
        del fits["theil-sen"]  # minutes for each fit
    if statsmodels:
        tukey = statsmodels.robust.norms.TukeyBiweight()
        fits["tukey"] = lambda: linear(statsmodels.RLM(u, a, M=tukey).fit(maxiter=100).params)
    out = {}
    for name, fit in fits.items():
        try:
            model = fit()
            out[name] = lambda q, model=model: back(model(scale(q)))
        except (ValueError, np.linalg.LinAlgError):
            pass
    return out


def linear(b):
    return lambda q: b[0] + q @ b[1:]


def classes(x, y):
    """Predictors of labels by name, and how bad each row looks by name."""
    scale, _, _ = units(x, y.astype(float))
    z = scale(x)
    plain, tuned = LogisticRegression(max_iter=2000).fit(z, y), LogisticRegressionCV(cv=5, max_iter=2000).fit(z, y)
    doubt = {"residual": 1 - plain.predict_proba(z)[np.arange(len(y)), y]}
    if get_label_quality_scores:
        held_out = cross_val_predict(LogisticRegression(C=tuned.C_[0], max_iter=2000), z, y, cv=5, method="predict_proba")
        doubt["cleanlab"] = -get_label_quality_scores(y, held_out)
    return {"ordinary": lambda q: plain.predict(scale(q)), "tuned": lambda q: tuned.predict(scale(q))}, doubt
