"""
Finding bad rows
================

How many of the most suspicious rows are really bad, and how many bad rows does the estimator believe there are?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from agepath import AgePathRegressor

X, y = load_diabetes(return_X_y=True)
rng = np.random.default_rng(2)
bad = rng.choice(len(y), round(0.3 * len(y)), replace=False)
y = y.copy()
y[bad] += rng.normal(0, 300, len(bad))

model = AgePathRegressor(random_state=0).fit(X, y)
model.suspects_.head(8)

# %%
# The estimated share of bad rows, its standard error, and the truth:

print("estimate %.2f ± %.2f" % model.path_.noise_fraction, "; truth 0.30")

# %%
# Found among the k most suspicious rows, beside the residuals of least squares:

residual = np.abs(y - np.c_[X, np.ones(len(y))] @ np.linalg.lstsq(np.c_[X, np.ones(len(y))], y, rcond=None)[0])
k = np.arange(1, len(y) + 1)
axes = plt.subplots(figsize=(8, 4))[1]
for name, order in [("agepath", model.suspects_["row"]), ("least squares", np.argsort(-residual))]:
    axes.plot(k, np.cumsum(np.isin(order, bad)), label=name)
axes.plot(k, np.minimum(k, len(bad)), color="grey", linestyle=":", label="at best")
axes.set_xlabel("rows looked at")
axes.set_ylabel("bad rows found")
axes.legend()
plt.tight_layout()
