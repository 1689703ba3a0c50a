"""Tests of report/charts."""

from __future__ import annotations

import numpy as np
import pytest

from pnuauc.labels import read_roles
from pnuauc.prior import ClassPrior
from pnuauc.report.charts import posterior_chart
from pnuauc.study.evidence import prior_findings


def triangle(low, peak, high, n=101):
    shares = np.linspace(low, high, n)
    weights = np.minimum((shares - low) / (peak - low), (high - shares) / (high - peak))
    return ClassPrior.from_posterior(shares, weights + 1e-6, level=0.9)


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
