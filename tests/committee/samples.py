"""Samples and models that several tests of the committee take."""

from __future__ import annotations

import json

from pnuauc import AutoAUCClassifier
from pnuauc._utils.stored import Parts
from pnuauc.committee import Committee
from pnuauc.datasets import make_twonorm, sample_pnu

#: Rows of P, N and U.
SETTINGS = {"PNU": (6, 30, 300), "PN": (8, 40, 0), "PU": (12, 0, 300), "NU": (0, 40, 300)}


def drawn(n_positive=6, n_negative=30, n_unlabeled=300, prior=0.2, seed=0):
    X, y = make_twonorm(3000, n_features=5, random_state=seed)
    return sample_pnu(X, y, n_positive, n_negative, n_unlabeled, prior, seed, n_test=500)


def auto(**more):
    settings = {"prior": 0.2, "unlabeled_label": -1, "verbose": False, "random_state": 0}
    return AutoAUCClassifier(**(settings | more))


def rebuilt(committee, n_features):
    """Written and read again."""
    parts = Parts(json.loads(json.dumps(committee.spec())), committee.arrays())
    found = Committee.from_parts(parts, {"kernels": n_features})
    parts.finish()
    return found
