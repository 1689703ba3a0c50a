"""Class priors: every registered estimator, then the energy distance and the conversions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone

from pnuauc.datasets import GENERATORS, make_twonorm, make_waveform, sample_pnu
from pnuauc.exceptions import (
    LabelReadingWarning,
    MissingRoleError,
    PnuaucWarning,
    PriorNotIdentifiedError,
)
from pnuauc.priors import (
    PRIORS,
    Beta,
    EnergyDistancePrior,
    _distances,
    default_prior,
    prior_in_population,
    prior_in_unlabeled,
)
from tests.conftest import generated_sample

ALL_ROLES = {"energy", "em", "hellinger"}
#: Those that make do with one labelled class.
ONE_CLASS = sorted(set(PRIORS) - ALL_ROLES)


def draw(name="twonorm", n_p=40, n_n=40, n_u=400, prior=0.2, seed=0, **options):
    return generated_sample(name, (n_p, n_n, n_u), prior, seed, **options)


def make(name, **parameters):
    return PRIORS[name](unlabeled_label=-1, random_state=0, **parameters)


# --- what holds for all -------------------------------------------------------------------------


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
def test_float32_rows_in_csr_give_the_dense_answer(name: str) -> None:
    s = draw(n_u=200)
    options = {"placement": {"scorers": ("linear", "distance")}}.get(name, {})
    options |= {"scorer": "linear"} if name in ("em", "hellinger") else {}
    dense = make(name, **options).fit(s.X, s.y)
    thin = make(name, **options).fit(sparse.csr_matrix(s.X), s.y)
    single = make(name, **options).fit(s.X.astype(np.float32), s.y)
    # those that score rows squash dense columns first, and cannot do so with sparse ones
    assert abs(dense.prior_ - thin.prior_) < (0.06 if options else 1e-4)
    assert abs(dense.prior_ - single.prior_) < 0.02  # a grid step, if rounding moves a minimum


@pytest.mark.parametrize("name", PRIORS)
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
    # with 40 positives the matching estimators are far too high, on any data
    margin = 0.3 if name in ("pearson", "penalized_l1") else 0.1
    assert abs(model.prior_ - topic[y == -1].mean()) < margin


@pytest.mark.parametrize("name", PRIORS)
def test_other_label_codes(name: str) -> None:
    s = draw(n_u=200)
    words = np.array(["?", "no", "yes"])[s.y + 1]
    model = PRIORS[name](
        positive_label="yes", negative_label="no", unlabeled_label="?", random_state=0
    )
    assert model.fit(s.X, words).prior_ == make(name).fit(s.X, s.y).prior_


def test_positive_unlabeled_codes_are_announced() -> None:
    s = draw(n_n=0, n_u=100)
    with pytest.warns(LabelReadingWarning, match="-1 is read as unlabelled"):
        PRIORS["penalized_l1"](random_state=0).fit(s.X, s.y)


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRIORS)
def test_a_single_row_is_refused_before_its_label_is_looked_at(name: str) -> None:
    with pytest.raises(ValueError, match=r"1 sample\(s\).* minimum of 2 is required"):
        make(name).fit(np.ones((1, 3)), np.array([1]))


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


@pytest.mark.parametrize("name", PRIORS)
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


def test_doubt_can_be_a_warning_or_silent() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((160, 3)), np.repeat([1, 0, -1], [30, 30, 100])
    model = EnergyDistancePrior(random_state=0, on_unidentified="warn")
    with pytest.warns(PnuaucWarning, match="cannot be told apart"):
        model.fit(X, y)
    assert model.diagnostics_["identified"] is False
    assert model.set_params(on_unidentified="ignore").fit(X, y).diagnostics_["doubt"]


@pytest.mark.parametrize("name", PRIORS)
def test_bad_parameters_and_input(name: str) -> None:
    s = draw(n_p=10, n_n=10, n_u=30)
    bad = {"level": 1.0, "on_unidentified": "maybe", "max_rows": 1}
    bad |= {"energy": {"alpha": 2, "statistic": "W", "identification_level": 0}}.get(name, {})
    bad |= {"placement": {"scorers": ("x",), "n_trees": 5, "spread_sd": 0}}.get(name, {})
    bad |= {"placement": {"belief": (0.3, 0.2), "n_centers": 1}}.get(name, {})
    bad |= {"em": {"n_bootstrap": 1, "scorer": "x"}, "hellinger": {"n_bins": (1,)}}.get(name, {})
    bad |= {"pearson": {"widths": (), "n_folds": 1}, "penalized_l1": {"alphas": (0,)}}.get(name, {})
    for parameter, value in bad.items():
        with pytest.raises(ValueError, match=parameter):
            make(name, **{parameter: value}).fit(s.X, s.y)
    with pytest.raises(ValueError, match="NaN"):
        make(name).fit(np.where(s.X > 2, np.nan, s.X), s.y)
    with pytest.raises(ValueError, match="inconsistent"):
        make(name).fit(s.X, s.y[:-1])


# --- energy distance ----------------------------------------------------------------------------


def brute_force(P, N, U, alpha, statistic):
    def mean(A, B):
        return (cdist(A, B) ** alpha).mean()

    def parts(p_factor, n_factor):
        pp, nn = mean(P, P) * p_factor, mean(N, N) * n_factor
        return mean(N, U) - mean(P, U) + mean(P, N) - nn, 2 * mean(P, N) - pp - nn

    v, u = parts(1, 1), parts(len(P) / (len(P) - 1), len(N) / (len(N) - 1))
    if statistic == "guarded" and u[1] < v[1] / 2:
        share = (v[1] / 2 - u[1]) / (v[1] - u[1])
        return ((1 - share) * u[0] + share * v[0]) / (v[1] / 2)
    chosen = v if statistic == "V" else u
    return chosen[0] / chosen[1]


@pytest.mark.parametrize("statistic", ["U", "V", "guarded"])
@pytest.mark.parametrize("alpha", [0.5, 1, 1.7])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_energy_equals_sums_over_pairs(statistic, alpha, container, monkeypatch) -> None:
    s = draw(n_p=7, n_n=30, n_u=90)
    expected = brute_force(*(s.X[s.y == c] for c in (1, 0, -1)), alpha, statistic)
    for block in (_distances._BLOCK, 64):  # blocks of two rows and a bit
        monkeypatch.setattr(_distances, "_BLOCK", block)
        model = EnergyDistancePrior(alpha=alpha, statistic=statistic).fit(container(s.X), s.y)
        assert model.prior_ == pytest.approx(np.clip(expected, 0, 1), abs=1e-9)
        assert model.diagnostics_[f"estimate_{statistic.lower()}"] == pytest.approx(expected)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 50),
    shift=st.floats(-1e6, 1e6),
    scale=st.floats(1e-3, 1e3),
    statistic=st.sampled_from(["U", "V", "guarded"]),
)
def test_energy_ignores_shift_scale_and_order_and_mirrors(seed, shift, scale, statistic) -> None:
    s = draw(n_p=8, n_n=20, n_u=60, seed=seed)
    model = EnergyDistancePrior(statistic=statistic, on_unidentified="ignore", random_state=0)
    value = model.fit(s.X, s.y).diagnostics_[f"estimate_{statistic.lower()}"]
    order = np.random.default_rng(seed).permutation(len(s.y))
    moved = model.fit(s.X[order] * scale + shift, s.y[order])
    margin = 1e-6 + 1e-9 * abs(shift) / scale
    assert moved.diagnostics_[f"estimate_{statistic.lower()}"] == pytest.approx(value, abs=margin)
    swapped = np.where(s.y == -1, -1, 1 - s.y)
    mirrored = model.fit(s.X, swapped).diagnostics_[f"estimate_{statistic.lower()}"]
    assert mirrored == pytest.approx(1 - value, abs=1e-9)


def test_guard_acts_where_the_unbiased_denominator_fails() -> None:
    """Three rows a class of one law: U's denominator is often below 0, the guarded ratio finite."""
    acted = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((60, 2)), np.repeat([1, 0, -1], [3, 3, 54])
        model = EnergyDistancePrior(on_unidentified="ignore", random_state=0).fit(X, y)
        P, N, U = (X[y == c] for c in (1, 0, -1))
        assert model.diagnostics_["estimate_guarded"] == pytest.approx(
            brute_force(P, N, U, 1, "guarded")
        )
        acted += model.diagnostics_["denominator"] <= 0
    assert acted > 10


def test_a_narrow_class_of_five_rows_is_told_apart() -> None:
    """Ringnorm: a permutation test on V-statistics sees it in one draw of seven only."""
    p_values = []
    for seed in range(20):
        s = draw("ringnorm", n_p=5, n_n=45, n_u=50, seed=seed)
        model = EnergyDistancePrior(on_unidentified="ignore", random_state=0).fit(s.X, s.y)
        p_values.append(model.diagnostics_["p_value"])
    assert np.mean(np.array(p_values) <= 0.1) > 0.8


def test_v_statistic_leans_to_the_labelled_share_and_u_does_not() -> None:
    """Labelled half and half, prior .1, five rows a class: V is pulled up, U is not."""
    estimates = {"u": [], "v": []}
    for seed in range(150):
        s = draw(n_p=5, n_n=5, n_u=300, prior=0.1, seed=seed)
        model = EnergyDistancePrior(on_unidentified="ignore", random_state=0).fit(s.X, s.y)
        for kind in "uv":
            estimates[kind].append(model.diagnostics_[f"estimate_{kind}"])
    assert np.mean(estimates["v"]) > 0.16
    assert abs(np.median(estimates["u"]) - 0.1) < 0.03


@pytest.mark.parametrize(
    ("name", "n_p", "n_n"), [("waveform", 5, 45), ("twonorm", 25, 25), ("banana", 20, 80)]
)
def test_energy_intervals_cover(name: str, n_p: int, n_n: int) -> None:
    """90% intervals hold the truth in 85 to 95% of 400 draws (one error of the count: 1.5%)."""
    X, y = GENERATORS[name](20_000, prior=0.5, random_state=7)
    covered = 0
    for seed in range(400):
        s = sample_pnu(X, y, n_p, n_n, 300, 0.1, seed, unlabeled_draw="binomial", n_test=1)
        model = EnergyDistancePrior(on_unidentified="ignore", random_state=0).fit(s.X, s.y)
        covered += model.interval_[0] <= 0.1 <= model.interval_[1]
    assert 0.85 <= covered / 400 <= 0.95


def test_energy_on_a_subsample_states_its_error() -> None:
    X, y = make_waveform(20_000, prior=0.4, random_state=0)
    s = sample_pnu(X, y, 300, 300, 9000, 0.3, 0)
    whole = EnergyDistancePrior(statistic="U", random_state=0).fit(s.X, s.y)
    assert whole.diagnostics_["subsampling_std_error"] == 0
    gaps = []
    for seed in range(30):
        part = EnergyDistancePrior(statistic="U", max_rows=150, random_state=seed).fit(s.X, s.y)
        gaps.append((part.prior_ - whole.prior_) / part.diagnostics_["subsampling_std_error"])
    assert abs(np.mean(gaps)) < 4 / np.sqrt(30)
    assert 0.6 < np.std(gaps) < 1.4


# --- conversions and defaults -------------------------------------------------------------------


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


def test_one_estimator_is_the_default_everywhere() -> None:
    for setting in ("PNU", "PU", "NU"):
        assert type(default_prior(setting, level=0.5)) is PRIORS["placement"]
        assert default_prior(setting, level=0.5).level == 0.5
    with pytest.raises(MissingRoleError, match="PN"):
        default_prior("PN")


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
    assert n.prior_ == pytest.approx(1 - p.prior_)
    assert n.interval_ == pytest.approx((1 - p.interval_[1], 1 - p.interval_[0]))
    assert n.diagnostics_["known_class"] == "negative"


def test_a_population_of_positives_is_not_refused_for_rounding():
    """(p + u) / n * n - p exceeds u by rounding in one of 50 tables of this size."""
    for p, n, u in itertools.product(range(1, 12), range(12), range(1, 40)):
        whole = prior_in_population(1.0, p, n, u)
        assert prior_in_unlabeled(whole, p, n, u) == pytest.approx(1.0)
