"""Rank rare positives from 40 labelled rows: a small story on generated data."""

import numpy as np
from sklearn.metrics import roc_auc_score

from pnuauc import AUCClassifierCV
from pnuauc.datasets import make_waveform, sample_pnu
from pnuauc.metrics import auc_estimate

X, y = make_waveform(6000, random_state=0)
sample = sample_pnu(X, y, 10, 30, 2000, prior=0.1, random_state=0)
print("10 positives, 30 negatives, 2,000 unlabelled rows; 10% of the last are positive.\n")

model = AUCClassifierCV(random_state=0).fit(sample.X, sample.y)
low, high = model.prior_estimator_.interval_
print(
    f"Estimated share of positives among the unlabelled: {model.prior_:.3f} [{low:.3f}, {high:.3f}]"
)
print(model.selection_.message)

scores = model.decision_function(sample.X_test)
print(f"\nAUC on {len(scores):,} test rows: {roc_auc_score(sample.y_test, scores):.3f}")

# what one would know without a fully labelled test set
partly = np.where(np.random.default_rng(0).random(len(scores)) < 0.02, sample.y_test, -1)
print(auc_estimate(partly, scores, prior=float(np.mean(sample.y_test))))
