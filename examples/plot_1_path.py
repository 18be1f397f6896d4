"""
The path of a Lasso with bad rows
=================================

One row in five of the diabetes data gets a wrong target. The coefficients move as the age decides which rows count; dotted
lines are jumps.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from agepath import age_path

data = load_diabetes(as_frame=True)
X, y = data.data, data.target.to_numpy(copy=True)
rng = np.random.default_rng(0)
bad = rng.choice(len(y), len(y) // 5, replace=False)
y[bad] += rng.choice([-1, 1], len(bad)) * 400

path = age_path(X, y, ages=(0.5, 30))
path.plot(ax=plt.subplots(figsize=(8, 5))[1])
plt.tight_layout()

# %%
# Every solution is exact: the largest residual of the optimality conditions over all stored solutions and a thousand
# ages in between.

print(path)
print(path.certificate)

# %%
# Each critical point is a row that changes zone or a coefficient that comes or goes.

path.plot_events(ax=plt.subplots(figsize=(8, 5))[1])
plt.tight_layout()
