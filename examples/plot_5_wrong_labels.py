"""
Wrong labels
============

One label in five of the breast cancer data is flipped. Accuracy is measured on clean rows that were set aside.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from agepath import SelfPacedLogisticRegression

data = load_breast_cancer()
labels = data.target_names[data.target]
X, X_test, y, y_test = train_test_split(data.data, labels, random_state=0, stratify=labels)
rng = np.random.default_rng(3)
flipped = rng.random(len(y)) < 0.2
y = np.where(flipped, np.where(y == "benign", "malignant", "benign"), y)

model = SelfPacedLogisticRegression(random_state=0).fit(X, y)
ordinary = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
print(f"self-paced {model.score(X_test, y_test):.3f}, ordinary {ordinary.score(X_test, y_test):.3f}")
print(f"estimated share of wrong labels {model.noise_fraction_:.2f}")

# %%
# Weights at the chosen age: flipped rows count little.

axes = plt.subplots(figsize=(8, 4))[1]
bins = np.linspace(0, 1, 21)
axes.hist([model.sample_weight_[~flipped], model.sample_weight_[flipped]], bins, label=["right label", "wrong label"])
axes.set_xlabel("weight")
axes.set_ylabel("rows")
axes.legend()
plt.tight_layout()
