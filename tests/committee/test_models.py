"""Tests of committee/models."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from pnuauc import AutoAUCClassifier
from pnuauc._utils.stored import Parts
from pnuauc.committee import Committee
from pnuauc.committee.kernels import KernelSum
from pnuauc.committee.models import Gaussians
from pnuauc.core.basis import MultiscaleBasis
from pnuauc.core.solvers import LinearModel
from pnuauc.datasets import make_twonorm, sample_pnu
from pnuauc.exceptions import ModelFileError


def drawn(n_positive=6, n_negative=30, n_unlabeled=300, prior=0.2, seed=0):
    X, y = make_twonorm(3000, n_features=5, random_state=seed)
    return sample_pnu(X, y, n_positive, n_negative, n_unlabeled, prior, seed, n_test=500)


def rebuilt(committee, n_features):
    spec = json.loads(json.dumps(committee.spec()))
    parts = Parts(spec, committee.arrays())
    found = Committee.rebuild(parts, n_features)
    parts.finish()
    return found


SETTINGS = {"PNU": (6, 30, 300), "PN": (8, 40, 0), "PU": (12, 0, 300), "NU": (0, 40, 300)}


@pytest.fixture(scope="module")
def fitted():
    """setting -> (sample, model), each fitted once."""
    found = {}
    for name, sizes in SETTINGS.items():
        sample = drawn(*sizes)
        model = AutoAUCClassifier(prior=0.2, unlabeled_label=-1, verbose=False, random_state=0)
        found[name] = (sample, model.fit(sample.X, sample.y))
    return found


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_stored_committee_answers_as_the_fitted_one(fitted, setting):
    sample, model = fitted[setting]
    again = rebuilt(model.scorer_, sample.X.shape[1])
    scores = again.score(sample.X_test)
    np.testing.assert_allclose(
        scores - model.threshold_, model.decision_function(sample.X_test), atol=1e-12
    )
    np.testing.assert_allclose(
        again.probability(scores), model.predict_proba(sample.X_test)[:, 1], atol=1e-12
    )


def test_every_array_of_a_committee_is_asked_for(fitted):
    """A file that lacks any one part, or holds one more, is refused."""
    _, model = fitted["PNU"]
    spec, arrays = model.scorer_.spec(), model.scorer_.arrays()
    for name in arrays:
        less = {k: v for k, v in arrays.items() if k != name}
        with pytest.raises(ModelFileError):
            Committee.rebuild(Parts(json.loads(json.dumps(spec)), less), 5)
    parts = Parts(spec, {**arrays, "more": np.zeros(1)})
    Committee.rebuild(parts, 5)
    with pytest.raises(ModelFileError, match="does not write"):
        parts.finish()
    with pytest.raises(ModelFileError):
        Committee.rebuild(Parts(spec, arrays), 6)


def test_fast_kernels_are_the_formula():
    """Both kernel models against their formulas in double precision; equal rows tie."""
    rng = np.random.default_rng(0)
    X, centers = rng.standard_normal((3000, 7)), rng.standard_normal((90, 7))
    X[::3] = X[0]
    X[1] = centers[4]
    distance = cdist(X, centers)
    coef, slope = rng.standard_normal((4, 90)), rng.standard_normal(7)
    widths, powers = np.array([8.0, 4.0, 1.0, 3.0]), np.array([2, 2, 2, 1])
    model = KernelSum(centers, widths, powers, coef, slope)
    exact = X @ slope
    for width, power, c in zip(widths, powers, coef):
        exact += np.exp(-((distance / width) ** power) / power) @ c
    basis = MultiscaleBasis.from_parts(centers, widths)
    sums = Gaussians(LinearModel(basis, coef.ravel()))
    plain = sum(np.exp(-((distance / w) ** 2) / 2) @ c for w, c in zip(widths, coef))
    for found, wanted in ((model.score(X), exact), (sums.score(X), plain)):
        np.testing.assert_allclose(found, wanted, atol=2e-4)  # 360 terms of 1e-6 each at most
        assert np.corrcoef(found, wanted)[0, 1] > 1 - 1e-10
        assert np.ptp(found[::3]) < 1e-12
