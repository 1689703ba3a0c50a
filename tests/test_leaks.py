"""Leaks by strength: columns that know the label are named, honest ones are not."""

from __future__ import annotations

import datetime as dt
import itertools
import os

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from pnuauc.datasets import DENSE, load, sample_pnu
from pnuauc.io import TableEncoder, _leaks
from pnuauc.io._columns import Column
from pnuauc.io._leaks import find_leaks
from pnuauc.labels import Roles
from tests.conftest import wins

RNG = np.random.default_rng(8)


def honest(seed, n_p=50, n_n=100, n_u=1500, prior=0.1, n_columns=6, shift=0.8):
    rng = np.random.default_rng(seed)
    hidden = np.r_[np.ones(n_p), np.zeros(n_n), rng.random(n_u) < prior].astype(bool)
    columns = {f"x{j}": rng.normal(shift * hidden * (j < 3)) for j in range(n_columns)}
    roles = Roles(np.repeat(np.array([1, 0, -1], np.int8), [n_p, n_n, n_u]))
    return columns, hidden, roles, rng


def named(columns, roles):
    table = pa.table({k: pa.array(v, from_pandas=True) for k, v in columns.items()})
    found = find_leaks(table, TableEncoder(()).fit(table).columns_, roles)
    return [sentence.split("'")[1] for sentence in found], found


@pytest.mark.parametrize("n_n", [100, 0])
def test_honest_columns_raise_no_alarm(n_n):
    for seed in range(20):
        columns, _, roles, _ = honest(seed, n_n=n_n)
        assert named(columns, roles)[0] == []


@pytest.mark.parametrize("seed", range(5))
def test_a_column_filled_in_after_review_is_named(seed):
    """It agrees with the label in 80% of labelled rows, and is "no" for every other row."""
    columns, hidden, roles, rng = honest(seed)
    agrees = rng.random(len(hidden)) < 0.8
    columns["reviewed"] = np.where(roles.codes < 0, 0, np.where(agrees, hidden, ~hidden)) + 0
    names, found = named(columns, roles)
    assert names == ["reviewed"]
    assert "leave it out" in found[0]


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_column_that_is_filled_for_labelled_rows_is_named(share):
    columns, _, roles, rng = honest(0)
    blank = (roles.codes < 0) | (rng.random(len(roles)) > share)
    columns["note"] = np.where(blank, np.nan, rng.normal(size=len(roles)))
    assert named(columns, roles)[0] == ["note"]


@pytest.mark.parametrize("n_n", [100, 0])
def test_a_noisy_copy_of_the_label_is_named(n_n):
    """The label with noise of a tenth of its spread's size; unlabelled rows hold a 0."""
    columns, _, roles, rng = honest(1, n_n=n_n)
    copy = (roles.codes == 1) + 0.4 * rng.normal(size=len(roles))
    names, _ = named({**columns, "copy": copy}, roles)
    assert names == ["copy"]


def test_a_category_that_only_labelled_positives_have_is_named():
    columns, _, roles, rng = honest(2, n_n=0)
    words = rng.choice(["a", "b", "c"], len(roles)).astype(object)
    words[: int(0.8 * roles.n_positive)] = "confirmed"
    assert named({**columns, "status": words}, roles)[0] == ["status"]


def test_a_shift_that_all_columns_share_is_how_rows_were_picked():
    """Reviewers looked at rows with high values: every column shows it, so none is a suspect."""
    columns, _, roles, _ = honest(3)
    picked = {k: v + 0.8 * (roles.codes >= 0) for k, v in columns.items()}
    assert named(picked, roles)[0] == []


@pytest.mark.skipif("PNUAUC_DATA" not in os.environ, reason="PNUAUC_DATA is not set")
@pytest.mark.parametrize("n", [(50, 100), (50, 0), (20, 20)])
def test_at_most_one_benchmark_set_in_fifteen_raises_an_alarm(n):
    """Two draws each, counted together: the one set is skin_nonskin, whose blue says it all."""
    alarmed = set()
    for name in DENSE:
        X, y = load(name)
        n_u = 600 if name in {"usps", "image"} else 1000
        for seed in (0, 112):
            sample = sample_pnu(X, y, *n, n_u, 0.1, random_state=seed)
            columns = {f"c{j}": np.asarray(sample.X[:, j], float) for j in range(sample.X.shape[1])}
            if named(columns, Roles(sample.y.astype(np.int8)))[0]:
                alarmed.add(name)
    assert len(alarmed) <= 1


# ---------------------------------------------------------------------------- parts


@pytest.mark.parametrize("digits", [0, 3])
def test_shares_of_pairs_won(digits):
    a, b = np.round(RNG.normal(0.5, 1, 30), digits), np.round(RNG.normal(size=40), digits)
    assert _leaks._wins(a, b) == pytest.approx(wins(a, b).mean(), abs=1e-12)
    assert np.isnan(_leaks._wins(a[:4], b))
    assert np.isnan(_leaks._wins(a, b[:4]))
    assert _leaks._wins(a[:5], b[:5]) == pytest.approx(wins(a[:5], b[:5]).mean(), abs=1e-12)


@pytest.mark.parametrize("digits", [0, 6])
def test_the_error_of_a_share_when_nothing_separates(digits):
    """Against 4,000 shuffles: within 5%."""
    values = np.round(RNG.normal(size=50), digits)
    shares = []
    for _ in range(4000):
        mixed = RNG.permutation(values)
        shares.append(_leaks._wins(mixed[:20], mixed[20:]))
    assert _leaks._null_error(values[:20], values[20:]) == pytest.approx(np.std(shares), rel=0.05)
    exact = stats.mannwhitneyu(values[:20], values[20:], method="asymptotic", use_continuity=False)
    z = (_leaks._wins(values[:20], values[20:]) - 0.5) / _leaks._null_error(
        values[:20], values[20:]
    )
    assert 2 * stats.norm.sf(abs(z)) == pytest.approx(exact.pvalue, abs=0.01)


def roles_of(n_p, n_n, n_u):
    return Roles(np.repeat(np.array([1, 0, -1], np.int8), [n_p, n_n, n_u]))


@pytest.mark.parametrize(
    ("sizes", "names"),
    [
        ((5, 5, 5), ["positive", "negative", "labelled"]), ((4, 5, 5), ["negative", "labelled"]),
        ((5, 4, 5), ["positive", "labelled"]), ((5, 0, 5), ["positive", "labelled"]),
        ((5, 5, 4), ["positive", "negative"]), ((5, 5, 0), ["positive"]), ((4, 0, 9), []),
    ],
)  # fmt: skip
def test_groups_that_may_be_set_apart(sizes, names):
    """At least five rows inside and outside; without U only P is asked about."""
    roles = roles_of(*sizes)
    found = _leaks._groups(roles)
    assert [name.split()[1] for name in found] == names
    masks = {"positive": roles.codes == 1, "negative": roles.codes == 0,
             "labelled": roles.codes >= 0}  # fmt: skip
    for name, mask in found.items():
        np.testing.assert_array_equal(mask, masks[name.split()[1]])


NUMBER, WORD = Column("c", "number", "double"), Column("c", "category", "string")


def apart(column, values, roles):
    return _leaks._separates(column, pa.array(values, from_pandas=True), _leaks._groups(roles))


def test_a_threshold_sets_rows_apart():
    roles = roles_of(6, 6, 6)
    low, high = np.arange(6.0), np.arange(6.0) + 10
    mixed = np.arange(6.0) * 2
    assert apart(NUMBER, np.r_[high, low, mixed / 2], roles) == "the positive rows"
    assert apart(NUMBER, np.r_[-high, low, mixed / 2], roles) == "the positive rows"
    assert apart(NUMBER, np.r_[low, high, mixed / 2], roles) == "the negative rows"
    assert apart(NUMBER, np.r_[high, high + 1, low], roles) == "the labelled rows"
    # an equal value on both sides is no separation
    assert apart(NUMBER, np.r_[low + 5, low, mixed / 2], roles) is None
    assert apart(NUMBER, np.r_[low - 5, low, mixed / 2], roles) is None
    # some positives without a value: what is missing may lie anywhere
    gap = np.r_[high, low, low]
    gap[0] = np.nan
    assert apart(NUMBER, gap, roles) is None
    gap = np.r_[high, low, low]
    gap[8] = np.nan
    assert apart(NUMBER, gap, roles) == "the positive rows"


@pytest.mark.parametrize("filled", [True, False])
def test_filled_cells_set_rows_apart(filled):
    roles = roles_of(6, 6, 6)
    inside = roles.codes == 1
    cells = np.where(inside == filled, RNG.normal(size=18), np.nan)
    assert apart(NUMBER, cells, roles) == "the positive rows (by which cells are filled)"


def test_categories_set_rows_apart_if_they_repeat():
    roles = roles_of(6, 6, 6)
    assert apart(WORD, [*"xxyyzz", *"ab" * 6], roles) == "the positive rows"
    assert apart(WORD, [*"xxyyzw", *"ab" * 6], roles) is None  # four words in six rows
    assert apart(WORD, [*"xxyyza", *"ab" * 6], roles) is None


def test_orders_that_a_column_gives():
    roles = roles_of(10, 10, 20)
    gap = np.r_[np.nan, np.arange(39.0)]
    found = _leaks._orderings(NUMBER, pa.array(gap, from_pandas=True), roles)
    np.testing.assert_array_equal(found, [~np.isnan(gap), gap])
    whole = _leaks._orderings(NUMBER, pa.array(np.arange(40.0)), roles)
    np.testing.assert_array_equal(whole, [np.arange(40.0)])
    assert len(_leaks._orderings(WORD, pa.array(["a", "b"] * 20), roles)) == 1
    assert len(_leaks._orderings(WORD, pa.array(list("abcd") * 10), roles)) == 1
    assert _leaks._orderings(WORD, pa.array(list("abcde") * 8), roles) == []
    assert _leaks._orderings(WORD, pa.array(["a"] * 40), roles) == []
    assert _leaks._orderings(NUMBER, pa.nulls(40, pa.float64()), roles) == []


@pytest.mark.parametrize("sizes", [(8, 10, 22), (0, 18, 22)])
def test_levels_are_ordered_by_the_other_half(sizes):
    roles = roles_of(*sizes)
    level = RNG.integers(0, 3, 40)
    known = roles.codes == 1 if sizes[0] else roles.codes != 0
    found = _leaks._by_level(level, roles)
    for i in range(40):
        other = np.arange(40) % 2 != i % 2
        same = other & (level == level[i])
        expected = (known[same].sum() + known[other].mean()) / (same.sum() + 1)
        assert found[i] == pytest.approx(expected, abs=1e-12)


def test_most_positives_where_no_unlabelled_row_is():
    """Half of P beyond all but (0.5% of half) of U, counted with three more rows."""
    roles = roles_of(10, 0, 4000)
    p, u = np.arange(10.0), np.linspace(-10, -1, 4000)
    for sign in (1.0, -1.0):
        assert _leaks._most_where_none(sign * np.r_[p, u], roles)
    for beyond, told in ((6, True), (7, False)):  # (n + 3) / 4000 < .0025
        cells = np.r_[p, np.where(np.arange(4000) < beyond, 20.0, u)]
        assert _leaks._most_where_none(cells, roles) is told
    assert not _leaks._most_where_none(np.r_[p, u][1:], roles_of(9, 0, 4000))
    small = roles_of(10, 0, 600)
    assert not _leaks._most_where_none(np.r_[p, np.full(600, -1.0)], small)  # 3 / 600 = .005
    assert not _leaks._most_where_none(np.r_[p, u[:599]], roles_of(10, 0, 599))
    gap = np.r_[np.nan, p, u]
    assert _leaks._most_where_none(gap, roles_of(11, 0, 4000))


def reading(name, pn, *, error=0.01, outside=0.0, pu=np.nan, un=np.nan):
    return _leaks._Reading(name, pn, pu, un, outside, error)


def test_one_column_far_ahead():
    rest = [reading("b", 0.7), reading("c", 0.4)]
    (sentence,) = _leaks._far_ahead([reading("a", 0.95), *rest])
    assert "'a' alone ranks with an AUC of 0.95" in sentence
    assert "'b', with 0.70" in sentence
    (sentence,) = _leaks._far_ahead([reading("a", 0.05), *rest])
    assert "AUC of 0.95" in sentence
    assert _leaks._far_ahead([reading("a", 0.95), rest[0]]) == []
    # .85 less two errors, and .8 of a logit before the next
    assert _leaks._far_ahead([reading("a", 0.88), *rest])
    assert not _leaks._far_ahead([reading("a", 0.88, error=0.02), *rest])
    near = 1 / (1 + np.exp(-(np.log(0.93 / 0.07) - 0.8)))
    assert _leaks._far_ahead([reading("a", 0.95), reading("b", near - 0.01), rest[1]])
    assert not _leaks._far_ahead([reading("a", 0.95), reading("b", near + 0.01), rest[1]])
    # the better reading of a column counts, P against U where there is no N
    twice = [reading("a", 0.6), reading("a", 0.95), *rest]
    assert "'a' alone" in _leaks._far_ahead(twice)[0]
    unknown = [reading("a", np.nan, pu=0.95), *rest]
    assert "'a' alone" in _leaks._far_ahead(unknown)[0]
    assert "'a' alone" in _leaks._far_ahead([reading("a", np.nan, un=0.95), *rest])[0]
    assert not _leaks._far_ahead([reading("a", np.nan), *rest, reading("d", 0.5)])


def test_unlabelled_rows_beyond_the_labelled_ones():
    """By .06, five errors, and three times what is usual among the columns."""

    def suspects(*outside, error=0.001):
        found = _leaks._outside([reading(f"c{k}", 0.6, outside=o, error=error)
                                 for k, o in enumerate(outside)])  # fmt: skip
        return [sentence.split("'")[1] for sentence in found]

    assert suspects(0.07, 0.0, 0.0) == ["c0"]
    assert suspects(0.05, 0.0, 0.0) == []
    assert suspects(0.07, 0.0, 0.0, error=0.0141) == []
    assert suspects(0.07, 0.0, 0.0, error=0.0139) == ["c0"]
    assert suspects(0.1, 0.034, 0.034) == []
    assert suspects(0.1, 0.033, 0.033) == ["c0"]
    assert suspects(0.1, 0.2, 0.0, 0.0, 0.0) == ["c1", "c0"]
    assert _leaks._outside([]) == []


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_readings_of_a_column(sign):
    """P above N; U below N by 2: the mixture would lie between them."""
    roles = roles_of(30, 40, 50)
    p, n, u = RNG.normal(2, 1, 30), RNG.normal(0, 1, 40), RNG.normal(-2, 1, 50)
    found = _leaks._reading("c", sign * np.r_[np.nan, p[1:], n, u], roles)
    p = p[1:]
    assert found.positive_negative == pytest.approx(wins(sign * p, sign * n).mean(), abs=1e-12)
    assert found.positive_unlabeled == pytest.approx(wins(sign * p, sign * u).mean(), abs=1e-12)
    assert found.unlabeled_negative == pytest.approx(wins(sign * u, sign * n).mean(), abs=1e-12)
    assert found.outside == pytest.approx(0.5 - wins(u, n).mean(), abs=1e-12)
    assert found.error == pytest.approx(_leaks._null_error(n, u))
    above = _leaks._reading("c", sign * np.r_[p, 0.0, n, u + 6], roles)
    assert above.outside == pytest.approx(0.5 - wins(np.r_[p, 0.0], u + 6).mean(), abs=1e-12)
    assert above.error == pytest.approx(_leaks._null_error(np.r_[p, 0.0], u))
    between = _leaks._reading("c", np.r_[p, 0.0, n, u + 3], roles)
    assert between.outside == 0.0
    pair = _leaks._reading("c", np.r_[p, u], roles_of(29, 0, 50))
    assert np.isnan(pair.positive_negative)
    assert pair.strength == pytest.approx(abs(wins(p, u).mean() - 0.5), abs=1e-12)
    assert pair.error == pytest.approx(_leaks._null_error(p, u))


@pytest.mark.parametrize("cells", [range(7), [0, 0, 0, 1, 1, 2, 2], [0, 0, 1, 2, 3, 3, 4]])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_error_of_few_rows_against_every_split(cells, n):
    """Ties are counted by t^3 / N^3 in place of (t^3 - t) / (N^3 - N): 1.1% at seven rows."""
    values = np.array(cells, dtype=float)
    shares = []
    for chosen in itertools.combinations(range(7), n):
        a = np.isin(np.arange(7), chosen)
        shares.append(wins(values[a], values[~a]).mean())
    assert _leaks._null_error(values[:n], values[n:]) == pytest.approx(np.std(shares), rel=0.012)


def test_without_rows_the_error_is_a_number():
    none = np.empty(0)
    assert _leaks._null_error(none, none) == pytest.approx(0.5)
    assert _leaks._null_error(none, np.arange(4.0)) == pytest.approx(np.sqrt(6 / 48 * (1 - 1 / 16)))


def test_which_way_a_column_points_is_told_by_p_and_n():
    """P hardly above N, U far below: U is beyond N, not beyond P."""
    p, n, u = np.arange(10.0) + 1, np.arange(12.0) - 1, np.arange(14.0) - 40
    assert 0.5 < wins(p, n).mean() < 0.75
    for sign in (1.0, -1.0):
        found = _leaks._reading("c", sign * np.r_[p, n, u], roles_of(10, 12, 14))
        assert found.outside == 0.5
        assert found.error == pytest.approx(_leaks._null_error(n, u))
    # where P and N are alike, high values count as those of P
    alike = _leaks._reading("c", np.r_[np.arange(6.0), np.arange(6.0), np.arange(6.0), u + 80],
                            roles_of(6, 12, 14))  # fmt: skip
    assert alike.positive_negative == 0.5
    assert alike.error == pytest.approx(_leaks._null_error(np.arange(6.0), u + 80))
    pair = _leaks._reading("c", np.r_[p, u], roles_of(10, 0, 14))
    assert (pair.outside, pair.strength) == (0.0, 0.5)


def test_the_stronger_reading_of_a_column_counts_whichever_comes_first():
    rest = [reading("b", 0.7), reading("c", 0.4)]
    weak, strong = reading("a", 0.6), reading("a", 0.95)
    for both in ([weak, strong], [strong, weak]):
        assert "'a' alone ranks with an AUC of 0.95" in _leaks._far_ahead([*both, *rest])[0]
    # of two that are equally strong the first
    unsure = reading("a", 0.95, error=0.06)
    assert _leaks._far_ahead([strong, unsure, *rest])
    assert not _leaks._far_ahead([unsure, strong, *rest])


def test_two_errors_and_the_limits_themselves():
    rest = [reading("b", 0.7), reading("c", 0.4)]
    assert _leaks._far_ahead([reading("a", 0.88, error=0.014), *rest])
    assert not _leaks._far_ahead([reading("a", 0.88, error=0.016), *rest])
    just = [reading("a", 0.6, outside=_leaks._OUTSIDE, error=0.001), *rest]
    assert _leaks._outside(just) == []
    beyond = [reading("a", 0.6, outside=_leaks._OUTSIDE + 1e-9, error=0.001), *rest]
    assert len(_leaks._outside(beyond)) == 1


def test_a_lead_as_large_as_it_must_be_is_told(monkeypatch):
    """Both limits are met to the last digit; a digit more and they are not."""
    first, *rest = (reading(name, won) for name, won in (("a", 0.95), ("b", 0.7), ("c", 0.4)))
    sure = 0.5 + first.strength - 2.0 * first.error
    gap = _leaks._logit(sure) - _leaks._logit(0.5 + rest[0].strength)
    for name, value in (("_STRONG", sure), ("_GAP", gap)):
        with monkeypatch.context() as patch:
            patch.setattr(_leaks, name, value)
            assert _leaks._far_ahead([first, *rest])
            patch.setattr(_leaks, name, np.nextafter(value, 9))
            assert not _leaks._far_ahead([first, *rest])


def test_a_level_that_one_half_does_not_have():
    """The last level stands once, in an even place: the odd places know nothing of it."""
    roles = roles_of(4, 4, 12)
    level = np.r_[2, np.arange(19) % 2]
    found = _leaks._by_level(level, roles)
    assert found[0] == pytest.approx(0.2)  # two of the ten odd places are positive
    assert len(found) == 20


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_how_few_unlabelled_rows_are_nearly_none(sign):
    """Rows at the cut count on both sides; the share is that of the positives beyond it."""
    u = np.linspace(-10, -1, 4000)
    for beyond, told in ((6, True), (7, False)):  # (n + 3) / 4000 < .0025
        cells = np.r_[np.arange(10.0), np.where(np.arange(4000) < beyond, 20.0, u)]
        assert _leaks._most_where_none(sign * cells, roles_of(10, 0, 4000)) is told
    # the middle one of eleven is beyond the cut: 3 / 1200 < .005 * 6 / 11
    odd = np.r_[np.arange(11.0), u[:1200]]
    assert _leaks._most_where_none(sign * odd, roles_of(11, 0, 1200))
    assert not _leaks._most_where_none(sign * odd[:-120], roles_of(11, 0, 1080))
    # all positives are alike: 3 / 601 < .005
    alike = np.r_[np.zeros(10), u[:601]]
    assert _leaks._most_where_none(sign * alike, roles_of(10, 0, 601))
    assert not _leaks._most_where_none(sign * alike[:-1], roles_of(10, 0, 600))


def test_dates_are_ordered_by_their_days():
    """The month would say nothing: every row has the same."""
    roles = roles_of(6, 6, 8)
    when = Column("c", "date", "date32[day]")
    days = np.r_[20:26, 1:7, 1:9]
    cells = pa.array([dt.date(2024, 1, int(day)) for day in days])
    (order,) = _leaks._orderings(when, cells, roles)
    np.testing.assert_array_equal(order - order.min(), days - 1)
    assert _leaks._separates(when, cells, _leaks._groups(roles)) == "the positive rows"
