"""The prior as a study tells it: rows, share known, posterior, a note if the test of fit fails."""

from __future__ import annotations

import numpy as np
import pytest

from pnuauc._prior import ClassPrior
from pnuauc._report._charts import posterior_chart
from pnuauc._study import prior_findings
from pnuauc.labels import read_roles
from pnuauc.priors import PlacementPrior
from pnuauc.priors._conversion import prior_in_rows


def triangle(low, peak, high, n=101):
    shares = np.linspace(low, high, n)
    weights = np.minimum((shares - low) / (peak - low), (high - shares) / (high - peak))
    return ClassPrior.from_posterior(shares, weights + 1e-6, level=0.9)


def test_findings_hold_rows_and_the_posterior() -> None:
    prior = triangle(0.05, 0.1, 0.3)
    roles = read_roles(np.repeat([1, 0, -1], [30, 50, 2000]))
    found = prior_findings(prior, roles)
    assert found is not None
    value, low, high = found["positives_unlabeled"]
    assert (value, low, high) == pytest.approx(
        (2000 * prior.value, 2000 * prior.low, 2000 * prior.high)
    )
    assert found["share_of_positives_known"] == pytest.approx(30 / (30 + value))
    curve = found["posterior"]
    assert max(curve["density"]) <= 1
    assert curve["shares"][int(np.argmax(curve["density"]))] == pytest.approx(0.1, abs=0.01)
    assert curve["shares"] == sorted(curve["shares"])
    assert prior_findings(ClassPrior.known(0.2), roles)["posterior"] is None


def test_random_labels_as_many_as_stated_halve_the_error() -> None:
    """Combine the present error with that of m random labels: half of it is left."""
    prior = ClassPrior(0.2, 0.1, 0.3, std_error=0.04)
    m = prior_in_rows(prior, 10, 100_000)["labels_to_halve"]
    left = 1 / np.sqrt(1 / 0.04**2 + m / (0.2 * 0.8))
    assert left == pytest.approx(0.02, rel=0.01)
    assert prior_in_rows(prior, 10, 100)["labels_to_halve"] == 100  # there are no more rows
    assert prior_in_rows(ClassPrior.known(0.2), 10, 100)["labels_to_halve"] is None
    assert prior_in_rows(ClassPrior.known(0.0), 0, 100)["share_of_positives_known"] == 0


@pytest.mark.parametrize("ends", [(0.0, 0.001, 0.01), (0.05, 0.1, 0.3), (0.9, 0.99, 1.0)])
def test_the_chart_stays_in_its_frame(ends) -> None:
    prior = triangle(*ends)
    roles = read_roles(np.repeat([1, 0, -1], [5, 5, 100]))
    chart = posterior_chart(prior_findings(prior, roles))
    line = chart.split('class="line" d="M')[1].split('"')[0]
    points = np.array([[float(v) for v in pair.split(",")] for pair in line.split("L")])
    assert points[:, 0].min() >= 60
    assert points[:, 0].max() <= 440
    assert points[:, 1].min() >= 10
    assert points[:, 1].max() <= 175


def test_labelled_positives_unlike_those_in_u_leave_a_note() -> None:
    """Labelled positives far away on a column, those in U near the negatives: the test sees it."""
    rng = np.random.default_rng(0)
    P, N = rng.normal(3, 0.4, (120, 2)), rng.normal(0, 1, (120, 2))
    U = np.concatenate([rng.normal(1.7, 0.6, (400, 2)), rng.normal(0, 1, (600, 2))])
    X, y = np.concatenate([P, N, U]), np.repeat([1, 0, -1], [120, 120, 1000])
    model = PlacementPrior(random_state=0, on_unidentified="ignore").fit(X, y)
    assert model.diagnostics_["fit_p_value"] < 0.01
    assert "not a mixture" in model.estimate_.note
    fair = np.concatenate([P, N, rng.normal(3, 0.4, (400, 2)), rng.normal(0, 1, (600, 2))])
    model.fit(fair, y)
    assert model.estimate_.note is None
    assert "in keeping" in model.diagnostics_["fit"]
