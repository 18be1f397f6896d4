"""The figures as SVG, from the store: one style, colours that everybody can tell apart (Okabe and Ito), the same bytes each time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from .declared import Table
from .summary import Results

BLUE, ORANGE, GREEN, RED, SKY, PURPLE, YELLOW, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#000000",
)  # fmt: skip
CYCLE = [BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK, YELLOW]
METHOD_COLOURS = {
    "original": BLACK, "acs": RED, "acs-200": ORANGE, "mospl": PURPLE, "agepath-up": BLUE, "agepath-down": SKY,
    "agepath-default": GREEN,
}  # fmt: skip
STYLE = {
    "svg.hashsalt": "agepath", "svg.fonttype": "none", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3, "axes.spines.top": False,
    "axes.spines.right": False, "lines.linewidth": 1.3, "legend.frameon": False, "figure.constrained_layout.use": True,
    "axes.prop_cycle": matplotlib.cycler(color=CYCLE),
}  # fmt: skip


def part(results: Results, table: Table, cell, method, protocol):
    """What the first good run recorded."""
    for row in results.of(table, cell, method).values():
        if row.status == "ok" and protocol in row.result:
            return row.result[protocol]
    return None


def learning_curve(results: Results, table: Table):
    """Test error over the age."""
    fig, ax = plt.subplots(figsize=(5.5, 3.4))
    told = part(results, table, table.cells[0], "curve", "theirs")
    if told is None:
        return None
    curve = told["curve"]
    ax.semilogx(curve["age"], curve["mae"], label="coming up, exact")
    best = int(np.argmin(curve["mae"]))
    ax.plot(curve["age"][best], curve["mae"][best], "o", color=RED, label=f"best by the test rows: age {curve['age'][best]:.3g}")
    ax.set(xlabel="age λ", ylabel="mean absolute error, test rows")
    ax.legend()
    return fig


def path_with_events(results: Results, table: Table):
    """Coefficients over the age with the critical points."""
    told = part(results, table, table.cells[0], "path", "path")
    if told is None:
        return None
    fig, ax = plt.subplots(figsize=(6.5, 3.8))
    ages, coef = told["curve"]["age"], np.array(told["curve"]["coef"])
    events = told["events"]
    kinds = {("turning", "sample"): SKY, ("turning", "feature"): GREEN, ("jump", "sample"): RED, ("jump", "fold"): ORANGE}
    for (kind, cause), colour in kinds.items():
        at = [a for a, k, c in zip(events["age"], events["kind"], events["cause"]) if (k, c) == (kind, cause)]
        for k, age in enumerate(at):
            label = f"{kind}: {cause} ({len(at)})" if k == 0 else None
            ax.axvline(age, color=colour, lw=0.25 if kind == "turning" and cause == "sample" else 0.9, alpha=0.7, label=label)
    for j in range(coef.shape[1]):
        ax.semilogx(ages, coef[:, j], color=BLACK, lw=1.2)
    ax.set(xlabel="age λ", ylabel="coefficient, standard units")
    ax.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    return fig


def noise_curves(results: Results, table: Table):
    """Learning curves by share of noise: the exact path and ACS."""
    fig, axes = plt.subplots(1, len(table.cells), figsize=(8.5, 3), sharey=True)
    seen = False
    for ax, cell in zip(np.atleast_1d(axes), table.cells):
        for method, label, style in (("curve", "exact path", "-"), ("acs-curve", "ACS, step 0.5", "--")):
            told = part(results, table, cell, method, "theirs")
            if told:
                seen = True
                colour = BLUE if method == "curve" else RED
                ax.semilogx(told["curve"]["age"], told["curve"]["mae"], style, color=colour, label=label)
        ax.set(title=cell.name, xlabel="age λ")
    np.atleast_1d(axes)[0].set_ylabel("mean absolute error, test rows")
    np.atleast_1d(axes)[0].legend(fontsize=7)
    return fig if seen else None


def running_time(results: Results, table: Table):
    """Seconds by number of rows and by the upper end of the interval."""
    fig, axes = plt.subplots(1, 2, figsize=(8, 3.2))
    seen = False
    groups = (
        ("rows", "rows of the sample", [c for c in table.cells if c.name.endswith("rows")], lambda c: c.spec["rows"]),
        ("ages", "upper end of the ages", [c for c in table.cells if c.name.startswith("ages")], lambda c: c.spec["ages"][1]),
    )
    for ax, (name, label, cells, place) in zip(axes, groups):
        for method in table.methods:
            points = [(place(c), results.number(table, c, method, "theirs", "seconds")) for c in cells]
            points = [p for p in points if p[1] is not None]
            if points:
                seen = True
                ax.plot(*zip(*points), "o-", ms=3, color=METHOD_COLOURS[method], label=method)
        ax.set(xlabel=label, ylabel="seconds, one thread", yscale="log", xscale="log" if name == "rows" else "linear")
    if not seen:
        return None
    axes[0].legend(fontsize=7)
    return fig


def points(results: Results, table: Table):
    """Critical points by type."""
    found = [(cell.name, part(results, table, cell, "points", "path")) for cell in table.cells]
    found = [(name, told) for name, told in found if told]
    if not found:
        return None
    kinds = (("turning", BLUE), ("jumps", RED))
    fig, ax = plt.subplots(figsize=(max(4.5, 0.62 * len(found) + 1.5), 3.6))
    for k, (kind, colour) in enumerate(kinds):
        places = np.arange(len(found)) + 0.38 * (k - 0.5)
        bars = ax.bar(places, [max(told[kind], 0.6) for _, told in found], 0.36, color=colour, label=kind)
        ax.bar_label(bars, [f"{told[kind]}{'' if told['complete'] else '*'}" for _, told in found], fontsize=6)
    ax.set_xticks(range(len(found)), [name for name, _ in found], rotation=35, ha="right", fontsize=7)
    ax.set(yscale="log", ylabel="critical points (* the path is incomplete)" if not all(t["complete"] for _, t in found) else "critical points")
    ax.legend(fontsize=7)
    return fig


def consistency(results: Results, table: Table):
    """ACS at tiny steps over the exact path."""
    found = [(cell, part(results, table, cell, "consistency", "path")) for cell in table.cells]
    found = [(cell, told) for cell, told in found if told]
    if not found:
        return None
    columns = min(4, len(found))
    lines = -(-len(found) // columns)
    fig, axes = plt.subplots(lines, columns, figsize=(2.5 * columns, 2.1 * lines), squeeze=False)
    for ax, (cell, told) in zip(axes.flat, found):
        curve = told["curve"]
        acs, exact = np.array(curve["acs"]), np.array(curve["exact"])
        for j in range(min(5, acs.shape[1])):
            ax.plot(curve["age"], acs[:, j], color=BLUE, lw=2.2, label="ACS" if j == 0 else None)
            ax.plot(curve["age"], exact[:, j], "--", color=ORANGE, lw=1.0, label="exact" if j == 0 else None)
        ax.set_title(cell.name, fontsize=7)
        ax.tick_params(labelsize=6)
    for ax in axes.flat[len(found) :]:
        ax.set_visible(False)
    axes[0, 0].legend(fontsize=6)
    fig.supxlabel("age λ", fontsize=8)
    fig.supylabel("coefficient, standard units", fontsize=8)
    return fig


DRAWN: dict[str, Callable] = {
    "fig:curve": learning_curve, "fig:path": path_with_events, "fig:noisy": noise_curves, "fig:time": running_time,
    "fig:time_log": running_time, "fig:points": points, "path_1": consistency, "path_2": consistency, "path_3": consistency,
    "hist_1": points, "hist_2": points, "hist_3": points,
}  # fmt: skip


def draw(results: Results, table: Table, folder: Path) -> Path | None:
    """Writes the figure; None where nothing was run."""
    with plt.rc_context(STYLE):
        fig = DRAWN[table.label](results, table)
        if fig is None:
            plt.close("all")
            return None
        path = folder / f"{table.label.replace('fig:', '')}.svg"
        fig.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close("all")
    return path
