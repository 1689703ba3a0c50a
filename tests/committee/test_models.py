"""Tests of committee/models."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pnuauc._utils.stored import Parts
from pnuauc.committee import Committee
from pnuauc.exceptions import ModelFileError
from tests.committee.samples import SETTINGS, rebuilt


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
            Committee.from_parts(Parts(json.loads(json.dumps(spec)), less), {"kernels": 5})
    parts = Parts(spec, {**arrays, "more": np.zeros(1)})
    Committee.from_parts(parts, {"kernels": 5})
    with pytest.raises(ModelFileError, match="does not write"):
        parts.finish()
    with pytest.raises(ModelFileError):
        Committee.from_parts(Parts(spec, arrays), {"kernels": 6})
