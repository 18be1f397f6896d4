"""Plots with matplotlib; each returns the Axes."""

from __future__ import annotations

import numpy as np

#: More coefficients than this are drawn without a legend.
LEGEND = 12

#: Between the stored solutions the path bends: so many exact solutions are drawn besides them.
BETWEEN = 120


def _axes(ax):
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install matplotlib") from error
    return plt.subplots()[1] if ax is None else ax


def _finish(ax, path, ylabel):
    ax.set_xscale("log")
    ax.set_xlabel("age")
    ax.set_ylabel(ylabel)
    if path.age is not None:
        ax.axvline(path.age, color="black", linestyle="--", linewidth=1, label="chosen age")
    return ax


def coefficients(path, ax=None, **kwargs):
    """Coefficients in the units of the data, at the stored solutions and at ages between them."""
    ax, knots = _axes(ax), path.knots
    names = path.feature_names if path.problem["kernel"] is None else None
    between = path.at(np.geomspace(*path.ages, BETWEEN + 2)[1:-1])
    age, coef = np.r_[knots["age"], between.age], np.vstack([knots["coef"], between.coef])
    # Stable, so that both sides of a jump stay in the order the path met them.
    order = np.argsort(age if path.direction == "up" else -age, kind="stable")
    lines = ax.plot(age[order], coef[order], **{"linewidth": 1.2, **kwargs})
    for age in np.unique(_column(path, "age")[_column(path, "kind") == "jump"]):
        ax.axvline(age, color="grey", linestyle=":", linewidth=0.8, zorder=0)
    _finish(ax, path, "coefficient" if names else "dual coefficient")
    if names and len(names) <= LEGEND:
        ax.legend(lines, names, fontsize="small")
    return ax


def events(path, ax=None, **kwargs):
    """Rows upwards from 0, coefficients downwards from −1; jumps are larger."""
    ax = _axes(ax)
    age, kind, cause, index = (_column(path, name) for name in ("age", "kind", "cause", "index"))
    place = np.where(cause == "feature", -1 - index, index)
    looks = {"turning": {"marker": ".", "s": 12, "alpha": 0.6}, "jump": {"marker": "x", "s": 40, "color": "tab:red"}}
    for name, look in looks.items():
        chosen = kind == name
        if chosen.any():
            ax.scatter(age[chosen], place[chosen], label=f"{name} ({chosen.sum()})", **{**look, **kwargs})
    _finish(ax, path, "row (coefficients below 0)")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize="small")
    return ax


def learning_curve(path, ax=None, **kwargs):
    """Score and standard error of each age that was tried."""
    selection = path.selection
    if selection is None:
        raise ValueError("no age was chosen on this path: give cv to age_path, or fit an estimator")
    ax, curve = _axes(ax), selection["curve"]
    age, score, error = (np.array([c[name] for c in curve], dtype=float) for name in ("age", "score", "standard_error"))
    ax.plot(age, score, **{"label": selection["metric"], **kwargs})
    ax.fill_between(age, score - error, score + error, alpha=0.2, linewidth=0, label="± 1 standard error")
    _finish(ax, path, selection["metric"])
    ax.legend(fontsize="small")
    return ax


def _column(path, name):
    return np.asarray(path.events[name])
