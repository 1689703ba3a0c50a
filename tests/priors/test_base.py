"""Tests of priors/base."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import beta
from sklearn.base import clone

from pnuauc.datasets import make_twonorm, sample_pnu
from pnuauc.exceptions import (
    MissingRoleError,
    PriorNotIdentifiedError,
)
from pnuauc.labels import read_roles
from pnuauc.prior import ClassPrior
from pnuauc.priors import (
    PRIORS,
    Beta,
    PlacementPrior,
    prior_in_population,
    prior_in_unlabeled,
)
from pnuauc.priors.base import prior_in_rows, read_belief
from pnuauc.priors.resolve import resolve_prior
from pnuauc.study.evidence import find_prior
from pnuauc.tuning import POSTERIOR
from tests.conftest import generated_sample


def test_random_labels_as_many_as_stated_halve_the_error() -> None:
    """Combine the present error with that of m random labels: half of it is left."""
    prior = ClassPrior(0.2, 0.1, 0.3, std_error=0.04)
    m = prior_in_rows(prior, 10, 100_000)["labels_to_halve"]
    left = 1 / np.sqrt(1 / 0.04**2 + m / (0.2 * 0.8))
    assert left == pytest.approx(0.02, rel=0.01)
    assert prior_in_rows(prior, 10, 100)["labels_to_halve"] == 100  # there are no more rows
    assert prior_in_rows(ClassPrior.known(0.2), 10, 100)["labels_to_halve"] is None
    assert prior_in_rows(ClassPrior.known(0.0), 0, 100)["share_of_positives_known"] == 0


#: Those that make do with one labelled class.
ONE_CLASS = sorted(set(PRIORS) - {"energy"})


def draw(name="twonorm", n_p=40, n_n=40, n_u=400, prior=0.2, seed=0, **options):
    return generated_sample(name, (n_p, n_n, n_u), prior, seed, **options)


def make(name, **parameters):
    return PRIORS[name](unlabeled_label=-1, random_state=0, **parameters)


@pytest.mark.parametrize("name", PRIORS)
def test_common_interface(name: str) -> None:
    s = draw()
    model = make(name, level=0.8)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert model.fit(s.X, s.y) is model
    low, high = model.interval_
    assert 0 <= low <= high <= 1
    assert 0 <= model.prior_ <= 1
    assert abs(model.prior_ - 0.2) < 0.3  # the matching ones are biased upwards
    assert model.std_error_ > 0
    assert model.diagnostics_["identified"]
    assert model.diagnostics_["level"] == 0.8
    assert model.diagnostics_["n_unlabeled"] == 400
    assert copy.fit(s.X, s.y).prior_ == model.prior_


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.slow
def test_float32_rows_in_csr_give_the_dense_answer(name: str) -> None:
    s = draw(n_u=200)
    dense = make(name).fit(s.X, s.y)
    thin = make(name).fit(sparse.csr_matrix(s.X), s.y)
    single = make(name).fit(s.X.astype(np.float32), s.y)
    # other members rank sparse rows
    assert abs(dense.prior_ - thin.prior_) < (0.06 if name == "placement" else 1e-4)
    assert abs(dense.prior_ - single.prior_) < 0.02  # a grid step, if rounding moves a minimum


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.slow
def test_text_with_1_6_million_columns(name: str) -> None:
    """Two topics of 30 words each in 1.6 million columns; no dense copy would fit (12 GB)."""
    rng = np.random.default_rng(0)
    sizes = {1: 40, 0: 40, -1: 300}
    y = np.repeat([1, 0, -1], list(sizes.values()))
    topic = np.where(y == -1, rng.uniform(size=len(y)) < 0.3, y)
    columns = np.where(topic[:, None] == 1, 0, 800_000) + rng.integers(0, 30, size=(len(y), 12))
    rows = np.repeat(np.arange(len(y)), 12)
    X = sparse.csr_matrix((np.ones(rows.size), (rows, columns.ravel())), shape=(len(y), 1_619_223))
    model = make(name).fit(X, y)
    # with 40 positives the matching estimator is far too high, on any data
    margin = 0.3 if name == "penalized_l1" else 0.1
    assert abs(model.prior_ - topic[y == -1].mean()) < margin


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.slow
def test_other_label_codes(name: str) -> None:
    s = draw(n_u=200)
    words = np.array(["?", "no", "yes"])[s.y + 1]
    model = PRIORS[name](
        positive_label="yes", negative_label="no", unlabeled_label="?", random_state=0
    )
    assert model.fit(s.X, words).prior_ == make(name).fit(s.X, s.y).prior_


@pytest.mark.parametrize("name", PRIORS)
def test_equal_rows_are_refused(name: str) -> None:
    y = np.repeat([1, 0, -1], 10)
    for X in (np.ones((30, 3)), sparse.csr_matrix(np.ones((30, 3)))):
        with pytest.raises(PriorNotIdentifiedError, match="All rows of X are equal"):
            make(name).fit(X, y)


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("role", [1, -1])
@pytest.mark.parametrize("left", [0, 1])
def test_missing_roles_are_refused(name: str, role: int, left: int) -> None:
    s = draw(n_p=10, n_n=10, n_u=30)
    keep = s.y != role
    if name in ONE_CLASS and role == 1:
        keep &= s.y != 0  # they would fall back to N and U
    keep[np.flatnonzero(s.y == role)[:left]] = True
    with pytest.raises(MissingRoleError, match=r"there (is|are)"):
        make(name).fit(s.X[keep], s.y[keep])


@pytest.mark.parametrize("name", [name for name in PRIORS if name != "placement"])
@pytest.mark.slow
def test_indistinguishable_rows_are_refused(name: str) -> None:
    """All roles from one law: refused in most of six draws (the tests have level .05 to .1)."""
    refused = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((460, 3)), np.repeat([1, 0, -1], [80, 80, 300])
        model = make(name, on_unidentified="ignore").fit(X, y)
        refused += not model.diagnostics_["identified"]
        if not model.diagnostics_["identified"]:
            with pytest.raises(PriorNotIdentifiedError, match="not identified: ") as caught:
                make(name).fit(X, y)
            assert str(caught.value) == model.diagnostics_["doubt"]
            assert ". " not in str(caught.value)
    assert refused >= 5


@pytest.mark.parametrize("name", PRIORS)
def test_bad_parameters_and_input(name: str) -> None:
    s = draw(n_p=10, n_n=10, n_u=30)
    bad = {"level": 1.0, "on_unidentified": "maybe", "max_rows": 1}
    bad |= {"energy": {"alpha": 2, "statistic": "W", "identification_level": 0}}.get(name, {})
    bad |= {"placement": {"belief": (0.3, 0.2), "sampling": "some"}}.get(name, {})
    bad |= {"penalized_l1": {"alphas": (0,)}}.get(name, {})
    for parameter, value in bad.items():
        with pytest.raises(ValueError, match=parameter):
            make(name, **{parameter: value}).fit(s.X, s.y)
    with pytest.raises(ValueError, match="NaN"):
        make(name).fit(np.where(s.X > 2, np.nan, s.X), s.y)
    with pytest.raises(ValueError, match="inconsistent"):
        make(name).fit(s.X, s.y[:-1])


@given(
    hidden=st.integers(0, 200),
    n_positive=st.integers(0, 100),
    n_negative=st.integers(0, 100),
    other=st.integers(1, 200),
)
def test_conversion_counts_rows_and_round_trips(hidden, n_positive, n_negative, other) -> None:
    n_unlabeled = hidden + other
    population = (n_positive + hidden) / (n_positive + n_negative + n_unlabeled)
    inside = prior_in_unlabeled(population, n_positive, n_negative, n_unlabeled)
    assert inside == pytest.approx(hidden / n_unlabeled, abs=1e-9)
    back = prior_in_population(inside, n_positive, n_negative, n_unlabeled)
    assert back == pytest.approx(population, abs=1e-9)


def test_conversion_refuses_what_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"lies between 0\.1 and 1"):
        prior_in_unlabeled(0.05, 100, 0, 900)
    with pytest.raises(ValueError, match="is impossible"):
        prior_in_unlabeled(0.95, 0, 100, 900)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        prior_in_population(1.2, 1, 1, 1)
    with pytest.raises(ValueError, match="unlabelled rows"):
        prior_in_population(0.2, 1, 1, 0)


@pytest.mark.parametrize("name", ONE_CLASS)
def test_negatives_and_unlabeled_mirror_positives_and_unlabeled(name: str) -> None:
    X, y = make_twonorm(3000, random_state=0)
    s = sample_pnu(X, y, 60, 0, 300, 0.3, 0)
    as_negative = np.where(s.y == 1, 0, -1)
    shared = {"unlabeled_label": -1, "random_state": 0}
    if name == "placement":
        shared["belief"] = Beta(1, 1)  # the default holds positives for the smaller part
    p = PRIORS[name](**shared).fit(s.X, s.y)
    n = PRIORS[name](**shared).fit(s.X, as_negative)
    # of another sample of the posterior
    assert n.prior_ == pytest.approx(1 - p.prior_, abs=0.02)
    assert n.interval_ == pytest.approx((1 - p.interval_[1], 1 - p.interval_[0]), abs=0.04)


def test_beliefs_are_read_or_refused() -> None:
    read = read_belief((0.1, 0.3))
    assert read.mean == pytest.approx(0.2)
    assert beta.std(read.a, read.b) == pytest.approx(0.2 / 3.92, rel=1e-3)
    default = read_belief(None)
    assert (default.a, default.b) == POSTERIOR.belief.value
    for bad in ((0.3, 0.2), (0.1, 1.2), (0.1,), "x", 0.2, (np.nan, 0.3)):
        with pytest.raises(ValueError, match="belief must be"):
            read_belief(bad)
    with pytest.raises(ValueError, match="belief must be"):
        Beta(0, 1)


@pytest.mark.slow
def test_a_belief_reaches_the_estimate():
    """A study starts from it as the estimator does; with flat columns it is all there is."""
    rng = np.random.default_rng(4)
    X = np.r_[rng.normal(2, 1, (40, 2)), rng.normal(2, 1, (60, 2)), rng.normal(0, 1, (240, 2))]
    roles = read_roles([1] * 40 + [None] * 300)
    for belief in ((0.0, 0.1), (0.5, 1.0), Beta(2, 5)):
        found = find_prior(None, X, roles, belief=belief, level=0.9)
        alone = PlacementPrior(belief=belief, level=0.9)
        expected, _ = resolve_prior(alone, X, roles, random_state=0)
        assert (found.value, found.low, found.high) == (expected.value, expected.low, expected.high)
        assert found.source.endswith(f"with the belief {belief}")
    low, high = (find_prior(None, X, roles, belief=b).value for b in ((0.0, 0.1), (0.5, 1.0)))
    assert low < find_prior(None, X, roles).value < high


@pytest.mark.parametrize(("n", "told"), [(9_900, ""), (10_100, " on 10,000 of the unlabelled")])
def test_the_source_of_a_prior_says_how_many_rows_were_used(n, told):
    X = np.random.default_rng(0).normal(size=(n + 20, 1))
    y = np.r_[np.ones(20), np.full(n, np.nan)]
    source = find_prior(None, X, read_roles(y)).source
    assert told in source
    assert ("drawn at random" in source) == bool(told)
