"""What a study tells: AUC by every method, curves, verdicts, charts and rows to review."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from pnuauc import AUCClassifierCV
from pnuauc._committee import Reason
from pnuauc._prior import ClassPrior
from pnuauc._role_counts import RoleCounts
from pnuauc._study._copies import Copies
from pnuauc._study._crossfit import CrossFit
from pnuauc._study._findings import (
    _sensitivity,
    auc_findings,
    prior_verdict,
    review_findings,
    score_histograms,
    selection_findings,
    unlabeled_effect,
)
from pnuauc._study._prior import _posterior
from pnuauc._study._review import _sparse_cells, _speaks, top_rows
from pnuauc.labels import Roles
from pnuauc.metrics import auc_estimate, roc_curve_estimate
from tests.conftest import final_limits, gaussian_scores, roles_of


def held_out(sizes, prior=0.25, distance=1.2, n_folds=4, pairs=0):
    """Scores of two Gaussians; the first rows of P come ``pairs`` times twice."""
    _, scores, _ = gaussian_scores(3, sizes, prior, distance)
    groups = np.arange(len(scores))
    groups[1 : 2 * pairs : 2] -= 1
    folds = [()] * n_folds
    return CrossFit(
        np.arange(len(scores)), roles_of(*sizes), scores, folds, Copies(groups, 2 * pairs, 0)
    )


# --- the AUC --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", [0, 10])
def test_every_method_has_the_limits_of_refits_moved_to_the_final_model(pairs):
    """Scores scatter by the factor of refits, copies by that of copies; shares of pairs as well."""
    held = held_out((40, 50, 300), pairs=pairs)
    factor = held.variance_factor
    assert factor > 1.0
    prior = ClassPrior.from_interval(0.2, 0.3, 0.95)
    found = auc_findings(held, prior, 0.9)
    assert set(found["auc_methods"]) == {"combined", "pn", "pu", "nu"}
    estimates = {**found["auc_methods"], "auto": found["auc"]}
    for method, told in estimates.items():
        exact, plain = (
            auc_estimate(held.roles, held.scores, prior, method, 0.9, variance_factor=f)
            for f in (factor, 1.0)
        )
        limits = final_limits((exact.low, exact.value, exact.high), 0.75, True)
        assert [told["low"], told["value"], told["high"]] == pytest.approx(limits)
        assert told["std_error"] == pytest.approx(exact.std_error)
        assert exact.std_error > plain.std_error
    raw = auc_estimate(held.roles, held.scores, None, "pu_raw", 0.9, variance_factor=factor)
    told = found["auc_raw"]
    assert [told[name] for name in ("low", "value", "high", "std_error", "level")] == pytest.approx(
        [raw.low, raw.value, raw.high, raw.std_error, 0.9]
    )


@pytest.mark.parametrize("sizes", [(150, 170, 0), (120, 0, 300)])
def test_the_curve_has_two_hundred_points_and_uses_all_rows(sizes):
    held = held_out(sizes)
    prior = ClassPrior.known(0.25) if sizes[2] else None
    found = auc_findings(held, prior, 0.9)["roc"]
    args = (held.roles, held.scores, prior, "auto")
    curve = roc_curve_estimate(*args, level=0.9, max_points=200)
    more = roc_curve_estimate(*args, level=0.9, max_points=202)
    assert len(curve.fpr) != len(more.fpr)
    for name in ("fpr", "tpr", "band_low", "band_high"):
        np.testing.assert_array_equal(found[name], np.round(getattr(curve, name), 5))
    assert found["method"] == curve.method
    assert (found["method"] == "pn") is (sizes[2] == 0)


@pytest.mark.parametrize(
    ("prior", "first", "last", "size"),
    [
        (ClassPrior(0.02, 0.01, 0.02, std_error=0.003), 0.02 / 3, 0.02, 25),
        (ClassPrior(0.001, 0.0, 0.01, std_error=0.001), 0.002, 0.02, 25),
        (ClassPrior(0.97, 0.9, 0.99, std_error=0.02), 0.97 / 3, None, 25),
        (ClassPrior(0.0205, 0.02, 0.021, std_error=0.001), 0.0205 / 3, 0.021, 26),
    ],
)
def test_priors_near_the_ends_of_the_range_that_is_shown(prior, first, last, size):
    """From .002 to .95; the prior itself is one of them, moved into the range."""
    found = _sensitivity(held_out((60, 0, 300), 0.02, 1.0), prior, "pu", 0.95)
    shown = found["priors"]
    assert shown[0] == pytest.approx(first)
    assert len(shown) + found["refuted"] == size
    assert shown == sorted(shown)
    if last is not None:
        assert shown[-1] == pytest.approx(last)
    assert found["at"] == min(max(prior.value, shown[0]), shown[-1])


@pytest.mark.parametrize(
    ("low", "high", "counts", "told"),
    [
        (0.0, 0.8, (9, 9, 500), False),  # .8 of what is possible says nothing
        (0.0, 0.799, (9, 9, 500), True),
        (0.1, 0.2, (9, 9, 2), True),  # unlabelled rows may be few
        (0.1, 0.2, (0, 0, 500), False),
        (0.1, 0.2, (3, 4, 500), True),
        (0.1, 0.2, (4, 2, 500), False),
    ],
)
def test_when_labels_tell_the_prior_at_its_limits(low, high, counts, told):
    prior = ClassPrior(0.15, low, high, 0.95, 0.03, "estimated by hand")
    assert prior_verdict(prior, RoleCounts(*counts))["told"] is told


def test_a_model_without_centres_has_none():
    """Columns as they are have no centres; parameters that do not exist are no numbers."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:20] += 1.0
    ranker = AUCClassifierCV(basis="identity", prior=0.3, verbose=False, random_state=0)
    ranker.fit(X, roles_of(20, 20, 20))
    told = selection_findings(ranker)
    assert (told["n_centers"], told["basis"]) == (0, "identity")
    assert told["n_kept"] == np.sum(np.asarray(ranker.cv_results_["weight"]) != 0)
    assert all(np.isfinite(v) for v in told["best"].values())
    effect = unlabeled_effect(ranker, None, X, roles_of(20, 40, 0), None, None, 2, 0)
    assert effect == {"message": "There are no unlabelled rows.", "difference": None}


# --- charts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_the_axis_of_scores_reaches_to_every_positive(side):
    """And gathers the tails of the others: the half per cents at either end."""
    roles = roles_of(3, 200, 4000)
    scores = np.random.default_rng(0).normal(size=4203)
    scores[0] = 30.0 * side
    scores[500] = -40.0 * side
    edges = np.array(score_histograms(roles, scores)["edges"])
    low, high = np.quantile(scores, [0.005, 0.995])
    expected = (low, 30.0) if side > 0 else (-30.0, high)
    assert (edges[0], edges[-1]) == pytest.approx(expected)


def test_histograms_without_positives_or_without_any_spread():
    roles = roles_of(0, 40, 60)
    scores = np.random.default_rng(0).normal(size=100)
    found = score_histograms(roles, scores, bins=5)
    edges = np.array(found["edges"])
    assert (edges[0], edges[-1]) == pytest.approx(tuple(np.quantile(scores, [0.005, 0.995])))
    assert set(found) == {"edges", "negative", "unlabeled"}
    inside = np.clip(scores[:40], edges[0], edges[-1])
    place = np.clip(np.searchsorted(edges, inside, side="right") - 1, 0, 4)
    np.testing.assert_allclose(found["negative"], np.bincount(place, minlength=5) / 40)
    flat = score_histograms(roles_of(2, 2, 4), np.full(8, 5.0), bins=4)
    assert flat["edges"] == [5.0, 5.25, 5.5, 5.75, 6.0]
    assert flat["positive"] == flat["negative"] == flat["unlabeled"] == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(("ratio", "left"), [(1.05e-3, 50), (0.95e-3, 49)])
@pytest.mark.parametrize("width", [0.9, 0.01])
def test_a_thousandth_of_the_highest_density_is_drawn(ratio, left, width):
    """However high that is: shares between .05 and .95, or .05 and .06."""
    shares = np.linspace(0.05, 0.05 + width, 50)
    weights = np.ones(50)
    weights[20] = ratio
    found = _posterior(ClassPrior.from_posterior(shares, weights))
    assert len(found["shares"]) == len(found["density"]) == left
    assert found["shares"] == [round(s, 6) for k, s in enumerate(shares) if k != 20 or left == 50]
    assert max(found["density"]) == 1.0


def test_points_of_a_chart_are_rounded_to_a_millionth():
    shares = np.linspace(0.1, 0.8, 78)
    weights = np.exp(-(((shares - 0.4) / 0.2) ** 2))
    found = _posterior(ClassPrior.from_posterior(shares, weights))
    assert found["shares"] == [round(s, 6) for s in shares]
    assert found["density"] == pytest.approx(weights / weights.max(), abs=5.1e-7)
    assert found["density"] == [round(d, 6) for d in found["density"]]


# --- rows to review -------------------------------------------------------------------------------


def test_an_interval_of_all_rows_is_told_where_it_is_narrow():
    """Among all 300 rows as many as the prior says; more than chance they cannot be."""
    prior = ClassPrior(0.9, 0.85, 0.95, 0.95, 0.025)
    found = review_findings(held_out((40, 50, 300)), prior, 300, 300, 0.95)
    low, high = found["expected"]["low"], found["expected"]["high"]
    assert high - low < 0.8 * 300 < low < high < 300 * prior.high + 5
    assert found["told"] is True
    assert found["by_chance"] == pytest.approx(300 * prior.value)


def test_one_row_may_be_reviewed_and_none_may_not():
    held, prior = held_out((40, 50, 300)), ClassPrior.known(0.25)
    one = review_findings(held, prior, 300, 1, 0.95)
    assert (one["k"], one["n_unlabeled"], one["by_chance"]) == (1, 300, 0.25)
    assert 0.25 < one["expected"]["value"] <= 1.0
    for n, k in ((300, 0), (0, 5)):
        assert review_findings(held, prior, n, k, 0.95) is None


def test_three_reasons_that_put_a_row_up():
    same = [SimpleNamespace(effect=1.0, k=k) for k in range(5)]
    assert [r.k for r in _speaks(same)] == [0, 1, 2]
    assert _speaks([SimpleNamespace(effect=0.0)]) == []
    assert len(_speaks([SimpleNamespace(effect=0.4), SimpleNamespace(effect=0.0)])) == 1


def test_features_of_sparse_rows_that_are_listed():
    """200 of 300, those that most of the rows have first; a row's own, where fewer."""
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix((rng.random((5, 300)) < 0.7) * rng.integers(1, 9, (5, 300))).astype(float)
    found = _sparse_cells(X, np.arange(5))
    counts = np.asarray((X != 0).sum(axis=0)).ravel()
    most = sorted(np.flatnonzero(counts), key=lambda j: (-counts[j], j))[:200]
    assert list(found) == [f"feature {j + 1}" for j in most]
    assert all(found[f"feature {j + 1}"] == X[:, [j]].toarray().ravel().tolist() for j in most)
    few = X[:, :30]
    own = [f"feature {j + 1}" for j in range(30) if few[2, j]]
    assert list(_sparse_cells(few, np.array([2]))) == own


@pytest.mark.parametrize("thin", [False, True])
def test_rows_to_review_with_probabilities_and_reasons(thin):
    """Values in reasons are the table's; of sparse rows, which have no named columns, encoded."""
    X = np.array([[3.0, 0.0], [1.0, 5.0], [2.0, 5.0], [4.0, 0.0]])
    table = sparse.csr_matrix(X) if thin else pa.table({"a": X[:, 0], "b": ["p", "q", "r", "s"]})
    names = [] if thin else ["a", "b"]
    column = "feature 1" if thin else "b"

    def reasons(rows, n, tried):
        return [
            [Reason(column, 7.0, 0.0, 0.5), Reason("a", 8.0, 0.0, 0.01)]
            for _ in range(rows.shape[0])
        ]

    def probability(scores):
        return np.column_stack([scores / 10, scores / 100, scores])

    model = SimpleNamespace(
        encoder=SimpleNamespace(columns_=[SimpleNamespace(name=n) for n in names], is_sparse=thin),
        score_encoded=lambda rows: (np.asarray(rows.todense()) if thin else rows)[:, 0],
        percentile=lambda s: 10 * s, probability=probability, reasons=reasons,
    )  # fmt: skip
    roles = Roles(np.array([-1, -1, -1, 1], np.int8))
    found = top_rows(model, sparse.csr_matrix(X) if thin else X, table, None, roles, 2)
    assert [line[:3] for line in found["rows"]] == [[1, 3.0, 30.0], [3, 2.0, 20.0]]
    assert found["probability"] == pytest.approx([0.3, 0.2])
    if thin:
        assert found["columns"] == ["feature 1", "feature 2"]
        assert found["cells"] == [["3", "0"], ["2", "5"]]
        assert found["reasons"] == ["feature 1 = 7 (+0.5)"] * 2
    else:
        assert found["cells"] == [["3", "p"], ["2", "r"]]
        assert found["reasons"] == ["b = p (+0.5)", "b = r (+0.5)"]
    assert found["n_columns"] == 2
