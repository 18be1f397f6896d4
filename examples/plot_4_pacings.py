"""
Pacings
=======

How the weight of a row depends on its loss, at one age of each pacing's own path.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from agepath import _agepath, age_path

X, y = load_diabetes(return_X_y=True)
axes = plt.subplots(figsize=(8, 4))[1]
for pacing in _agepath.choices()["pacing"]:
    there = age_path(X, y, pacing=pacing, ages=(0.5, 20)).at(1.5)
    order = np.argsort(there.losses)
    axes.plot(there.losses[order], there.weights[order], marker=".", markersize=3, linewidth=1, label=pacing)
axes.set_xlim(0, 4)
axes.set_xlabel("loss (squared residual in robust standard deviations)")
axes.set_ylabel("weight at age 1.5")
axes.legend()
plt.tight_layout()
