"""Tests of core/pairs."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from pnuauc.core.pairs import between, between_gradient, within, within_gradient
from pnuauc.losses import LOSSES, Loss, SmoothedAbsolute, SmoothedHinge

ALL = [*LOSSES.values(), SmoothedHinge(1e-3), SmoothedHinge(0.6), SmoothedAbsolute(0.6)]

WITH_DERIVATIVE = [loss for loss in ALL if loss.has_derivative]

every_loss = pytest.mark.parametrize("loss", ALL, ids=repr)

examples = settings(max_examples=30, deadline=None, derandomize=True)

EPS = 2.0**-52


def tolerance(loss: Loss, *scores) -> float:
    """1e-9; a smoothed loss is a difference of squares of margins, divided by its width."""
    if not hasattr(loss, "width"):
        return 1e-9
    return 1e-9 + 16 * EPS * max(np.abs(x).max() for x in scores) / loss.width


def all_pairs(loss: Loss, a, b, weight_a, weight_b, leave_out_self=False):
    """(mean, dmean/da, dmean/db, scale): scale is the largest row or column sum of abs(l')."""
    margins = a[:, None] - b[None, :]
    weights = weight_a[:, None] * weight_b[None, :]
    if leave_out_self:  # the pair of a row with itself, once per copy of the row
        weights = weights - np.diag(weight_a)
    weights = weights / math.fsum(weights.ravel())
    seen = weights != 0.0
    values = np.multiply(weights, loss.value(margins), out=np.zeros_like(weights), where=seen)
    mean = math.fsum(values.ravel()) if np.isfinite(values).all() else np.inf
    if not loss.has_derivative:
        return mean, None, None, None
    slopes = np.multiply(weights, loss.derivative(margins), out=np.zeros_like(weights), where=seen)
    scale = max(np.abs(slopes).sum(axis=axis).max() for axis in (0, 1))
    return mean, slopes.sum(axis=1), -slopes.sum(axis=0), scale


def assert_same_mean(ours: float, theirs: float, relative: float = 1e-9) -> None:
    if theirs > 1e290:  # beyond that the order of multiplications decides what overflows
        assert ours > 1e290
    else:  # 1e-12: what logistic pairs beyond a margin of 28 have
        assert ours == pytest.approx(theirs, rel=relative, abs=1e-12)


def assert_same_gradient(ours, theirs, scale, relative: float = 1e-9) -> None:
    assert not np.isnan(ours).any()
    if np.isfinite(scale) and scale < 1e290:
        assert np.abs(ours - theirs).max() <= relative * scale + 1e-12


def assert_is_brute_force(loss, a, b, weight_a, weight_b) -> None:
    relative = tolerance(loss, a, b)
    filled = [np.ones(x.size) if w is None else w for x, w in ((a, weight_a), (b, weight_b))]
    mean, slope_a, slope_b, scale = all_pairs(loss, a, b, *filled)
    # an error in the margins counts like a shift of all scores
    bound = relative * (1.0 + scale / mean) if hasattr(loss, "width") and mean else relative
    assert_same_mean(between(loss, a, b, weight_a, weight_b), mean, bound)
    if loss.has_derivative:
        value, grad_a, grad_b = between_gradient(loss, a, b, weight_a, weight_b)
        assert_same_mean(value, mean, bound)
        assert_same_gradient(grad_a, slope_a, scale, relative)
        assert_same_gradient(grad_b, slope_b, scale, relative)


@st.composite
def scores(draw, smallest=1):
    """Random, tied, constant, skewed."""
    n = draw(st.integers(smallest, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["random", "tied", "constant", "skewed"]))
    x = 3.0 * rng.normal(size=n)
    if kind == "tied":
        x = np.round(2.0 * x) / 2.0
    elif kind == "constant":
        x = np.full(n, np.round(x[0]))
    elif kind == "skewed":
        x = np.sign(x) * np.exp(2.0 * np.abs(x) - 3.0)
    return x


@st.composite
def two_samples(draw):
    """Also shifted by 1e6, and of size 1e6, 1 and 1e-12."""
    a, b = draw(scores()), draw(scores())
    offset, scale = draw(st.sampled_from([(0.0, 1.0), (1e6, 1.0), (0.0, 1e6), (0.0, 1e-12)]))
    return a * scale + offset, b * scale + offset


def draw_weights(data, n, smallest=0):
    kind = data.draw(st.sampled_from(["none", "counts", "real"]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    if kind == "none":
        return None
    if kind == "counts":
        weight = rng.integers(smallest, 4, n).astype(float)
        weight[0] = 2.0
        return weight
    return rng.uniform(0.5, 2.0, n)


@every_loss
@examples
@given(data=st.data())
def test_between_is_the_mean_over_all_pairs(loss, data):
    a, b = data.draw(two_samples())
    assert_is_brute_force(loss, a, b, draw_weights(data, a.size), draw_weights(data, b.size))


@every_loss
@examples
@given(data=st.data())
def test_within_is_the_mean_over_pairs_of_different_rows(loss, data):
    a = data.draw(scores(smallest=2))
    weight = draw_weights(data, a.size, smallest=1)
    full = np.ones(a.size) if weight is None else weight
    mean, rows, columns, scale = all_pairs(loss, a, a, full, full, leave_out_self=True)
    relative = 10 * tolerance(loss, a)
    assert_same_mean(within(loss, a, weight), mean, relative)
    if loss.has_derivative:
        value, gradient = within_gradient(loss, a, weight)
        assert_same_mean(value, mean, relative)
        with np.errstate(invalid="ignore"):  # infinite both ways: nothing to compare with
            assert_same_gradient(gradient, rows + columns, scale, relative)


def shapes(rng, n):
    """Larger samples, where panels are crowded, windows are wide and most pairs are inactive."""
    a, b = rng.normal(size=n), rng.normal(size=n + 37)
    lonely = -np.abs(1e5 * b) - 3.0
    lonely[5] = 0.999 * np.abs(a).min()
    return {
        "dense": (a, b),
        "wide": (30.0 * a, 30.0 * b),
        "crowds far apart": (a + 1e3 * np.round(a), b + 1e3 * np.round(b)),
        "crowds and strays": (np.where(a > 1.0, 1e5 * a, a), np.where(b > 1.0, 1e5 * b, b)),
        "all margins above 5": (np.abs(a) + 5.0, -np.abs(b)),
        "all margins above 60": (np.abs(a) + 60.0, -np.abs(b)),
        "all margins below -60": (-np.abs(a) - 60.0, np.abs(b)),
        "a handful of active pairs": (np.abs(a) + 1.0, lonely),
        "tiny": (1e-12 * a, 1e-12 * b),
        "offset": (a + 1e6, b + 1e6),
        "ties": (np.round(2 * a), np.round(2 * b)),
    }


@pytest.mark.parametrize("shape", shapes(np.random.default_rng(0), 8))
@every_loss
def test_larger_samples(loss, shape):
    rng = np.random.default_rng(3)
    a, b = shapes(rng, 400)[shape]
    weight_a, weight_b = rng.uniform(0.2, 2.0, a.size), rng.integers(0, 3, b.size).astype(float)
    assert_is_brute_force(loss, a, b, weight_a, weight_b)


@every_loss
@examples
@given(data=st.data())
def test_a_weight_of_two_is_a_row_twice(loss, data):
    a, b = data.draw(scores(smallest=2)), data.draw(scores())
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    count_a, count_b = rng.integers(1, 4, a.size), rng.integers(1, 4, b.size)
    long_a, long_b = np.repeat(a, count_a), np.repeat(b, count_b)
    relative = 10 * tolerance(loss, a, b)
    once, twice = between(loss, a, b, count_a, count_b), between(loss, long_a, long_b)
    assert_same_mean(once, twice, relative)
    assert_same_mean(within(loss, a, count_a), within(loss, long_a), relative)


@every_loss
def test_a_row_of_weight_zero_is_no_row(loss):
    a, b = np.array([0.3, -1.0, 900.0]), np.array([0.1, -900.0])
    assert between(loss, a, b, [1, 2, 0], [1, 0]) == pytest.approx(
        between(loss, a[:2], b[:1], [1, 2]), rel=1e-12
    )
    if loss.has_derivative:
        value, grad_a, grad_b = between_gradient(loss, -a, -b, [1, 2, 0], [1, 0])
        assert np.isfinite(value)
        assert grad_a[2] == 0.0
        assert grad_b[1] == 0.0


@examples
@given(samples=two_samples())
def test_zero_one_is_one_minus_auc(samples):
    a, b = samples
    labels = np.append(np.ones(a.size), np.zeros(b.size))
    auc = roc_auc_score(labels, np.append(a, b))
    assert 1.0 - between("zero_one", a, b) == pytest.approx(auc, abs=1e-12)
    assert between("zero_one", a, b) + between("zero_one", b, a) == pytest.approx(1.0, abs=1e-12)


def test_true_overflow_is_infinite_and_silent():
    assert between("exponential", [-1e6], [1e6]) == np.inf
    assert between("exponential", [1e6], [-1e6]) == 0.0
    value, grad_a, grad_b = between_gradient("exponential", [-1e6, 0.0], [1e6])
    assert value == np.inf
    assert grad_a.tolist() == [-np.inf, -np.inf]
    assert grad_b.tolist() == [np.inf]
    value, gradient = within_gradient("exponential", [-1e6, 0.0, 1e6])
    assert value == np.inf
    assert gradient.tolist() == [-np.inf, 0.0, np.inf]


@pytest.mark.parametrize("spread", [1.0, 1e2, 1e6])
@every_loss
def test_memory_is_that_of_the_scores(loss, spread):
    rng = np.random.default_rng(11)
    a, b = spread * rng.normal(size=50_000), spread * rng.normal(size=50_000)
    evaluate = between_gradient if loss.has_derivative else between
    tracemalloc.start()
    evaluate(loss, a, b)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * (a.nbytes + b.nbytes)  # the pairs would take 25,000 times the scores


BAD = [
    (([], [1.0]), {}, "scores a are empty"),
    (([1.0], []), {}, "scores b are empty"),
    (([1.0, np.nan], [1.0]), {}, "scores a must be finite; number 1 is nan"),
    (([1.0], [np.inf]), {}, "scores b must be finite; number 0 is inf"),
    (([[1.0]], [1.0]), {}, r"scores a must be one-dimensional, got shape \(1, 1\)"),
    ((["x"], [1.0]), {}, "scores a must be real numbers"),
    (([1j], [1.0]), {}, "scores a must be real numbers"),
    (([1.0, 2.0], [1.0]), {"weight_a": [1.0]}, "weights of a have length 1 but there are 2"),
    (([1.0], [1.0]), {"weight_b": [-1.0]}, "weights of b must not be negative; number 0"),
    (([1.0], [1.0]), {"weight_b": [0.0]}, "weights of b are all zero"),
    (([1.0], [1.0]), {"weight_a": [np.nan]}, "weights of a must be finite"),
]


@pytest.mark.parametrize("evaluate", [between, between_gradient])
@pytest.mark.parametrize(("samples", "weights", "message"), BAD)
def test_bad_input_is_named(evaluate, samples, weights, message):
    for loss in WITH_DERIVATIVE:
        with pytest.raises(ValueError, match=message):
            evaluate(loss, *samples, **weights)


@pytest.mark.parametrize("evaluate", [within, within_gradient])
@pytest.mark.parametrize(("a", "weight"), [([1.0], None), ([1.0, 2.0], [0.5, 0.5])])
def test_within_needs_two_rows(evaluate, a, weight):
    with pytest.raises(ValueError, match="need two rows"):
        evaluate("squared", a, weight)


def test_zero_one_has_no_gradient():
    with pytest.raises(ValueError, match="zero_one loss has values but no gradient"):
        between_gradient("zero_one", [1.0], [0.0])
    with pytest.raises(ValueError, match="zero_one loss has values but no gradient"):
        within_gradient("zero_one", [1.0, 0.0])


def test_unknown_losses_are_refused():
    class Homeless(Loss):
        name = "homeless"

        def value(self, margins):
            return np.asarray(margins)

        derivative = value

    with pytest.raises(ValueError, match="Unknown loss 'hinges'"):
        between("hinges", [1.0], [0.0])
    with pytest.raises(TypeError, match="No way to sum the loss 'homeless'"):
        between(Homeless(), [1.0], [0.0])
