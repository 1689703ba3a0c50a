"""How held-out rows weigh members."""

import numpy as np
import pytest
from scipy.stats import norm

from pnuauc.committee.held_out import expected_distance


@pytest.mark.parametrize("d", [-1.0, 0.0, 0.7, 2.5])
@pytest.mark.parametrize("idle", [0.0, 0.75])
def test_the_expected_distance_is_the_mean_of_its_posterior(d, idle):
    t = np.linspace(0.0, 12.0, 100_001)
    density = (1 - idle) * 2 * norm.pdf(t) * norm.pdf(d, t, np.sqrt(0.3))
    mass, mean = np.trapezoid(density, t), np.trapezoid(density * t, t)
    nothing = idle * norm.pdf(d, 0.0, np.sqrt(0.3))
    assert expected_distance(d, 0.3, idle) == pytest.approx(mean / (mass + nothing), rel=1e-4)
