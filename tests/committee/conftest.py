"""One fit for each set of roles, shared by the tests of the committee."""

from __future__ import annotations

import pytest

from tests.committee.samples import SETTINGS, auto, drawn


@pytest.fixture(scope="session")
def fitted():
    """setting -> (sample, model)."""
    found = {}
    for name, sizes in SETTINGS.items():
        sample = drawn(*sizes)
        found[name] = (sample, auto().fit(sample.X, sample.y))
    return found
