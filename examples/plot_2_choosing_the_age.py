"""
Choosing the age
================

Five folds judge every age. The best score and the 1-SE rule are two choices from the same curve; the ordinary Lasso is the
right end of it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV

from agepath import SelfPacedLasso

X, y = load_diabetes(return_X_y=True)
rng = np.random.default_rng(1)
bad = rng.choice(len(y), len(y) // 4, replace=False)
clean = np.setdiff1d(np.arange(len(y)), bad)
dirty = y.copy()
dirty[bad] += 300 + 200 * rng.random(len(bad))

best = SelfPacedLasso(cv=5, random_state=0).fit(X, dirty)
simple = SelfPacedLasso(cv=5, random_state=0, selection="1se").fit(X, dirty)
axes = best.path_.plot_learning_curve(ax=plt.subplots(figsize=(8, 4))[1])
axes.axvline(simple.age_, color="grey", linestyle="-.", label="1-SE age")
axes.legend()
plt.tight_layout()

# %%
# Mean absolute error on the rows that are right:

for name, model in [("best age", best), ("1-SE age", simple), ("ordinary Lasso", LassoCV().fit(X, dirty))]:
    print(f"{name:15} {np.abs(model.predict(X[clean]) - y[clean]).mean():6.1f}")
