"""Parts of a study against plain loops: places, cells, labels, rows to review, settings."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse, stats

from pnuauc._committee import AutoAUCClassifier
from pnuauc._prior import ClassPrior
from pnuauc._role_counts import RoleCounts
from pnuauc._sources import Batch, MemorySource
from pnuauc._study import ColumnRoles, FitSettings, LabelCodes, _findings, _reference, _rows
from pnuauc._study import _fit as study_fit
from pnuauc._study._census import LabelReader, read_source_labels
from pnuauc._study._copies import Copies, _nearest, find_copies
from pnuauc._study._crossfit import CrossFit, Reference, common_scale, cross_fit
from pnuauc._study._data import check_enough, check_present, collected
from pnuauc._study._evaluate import _add_empty, _known_prior, _names, _ScoreColumns
from pnuauc._study._everywhere import _Count, _FoldCounts, nothing_counted
from pnuauc._study._importance import column_importance
from pnuauc._study._prior import _posterior
from pnuauc._study._review import _cell, _sparse_cells, _speaks
from pnuauc._study._rows import study_rows
from pnuauc.exceptions import InputError, LabelReadingWarning
from pnuauc.io import TableEncoder
from pnuauc.metrics import auc_estimate
from tests.conftest import FirstColumn, Scored, final_limits, roles_of

RNG = np.random.default_rng(9)


# --- places ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [1, 6])
def test_places_among_unlabelled_scores_by_hand(digits):
    """Phi^-1 of the share below and half of the share at; beyond, half a step at most."""
    u = np.round(RNG.normal(size=40), digits)
    scale = Reference.of(u)
    for s in np.unique(u):
        place = np.mean(u < s) + 0.5 * np.mean(u == s)
        z = stats.norm.ppf(np.clip(place, 0.5 / 40, 1 - 0.5 / 40))
        assert scale(np.array([s]))[0] == pytest.approx(z)
    unit = np.subtract(*np.quantile(u, [0.75, 0.25]))
    ends = scale(np.array([u.min(), u.max()]))
    far = scale(np.array([u.min() - 0.2 * unit, u.max() + 0.3 * unit, u.max() + 9 * unit]))
    np.testing.assert_allclose(far - ends[[0, 1, 1]], [-0.1, 0.15, 0.5])


@pytest.mark.parametrize("digits", [1, 6])
def test_counted_places_are_those_of_the_scores_themselves(digits):
    u, points = np.round(RNG.normal(size=300), digits), np.unique(np.round(RNG.normal(size=9), 1))
    cells = np.zeros(2 * len(points) + 1, dtype=np.int64)
    for s in u:
        k = int(np.searchsorted(points, s))
        cells[2 * k + 1 if k < len(points) and points[k] == s else 2 * k] += 1
    found = Reference.counted(points, cells, u.min(), u.max(), u)(points)
    place = [np.mean(u < s) + 0.5 * np.mean(u == s) for s in points]
    expected = stats.norm.ppf(np.clip(place, 0.5 / 300, 1 - 0.5 / 300))
    # between two neighbouring rows a point may move by half a row
    place_of = stats.norm.cdf(found)
    np.testing.assert_allclose(place_of, stats.norm.cdf(expected), atol=0.5 / 300 + 1e-9)
    assert (np.diff(found) > 0).all()


def test_points_between_the_same_two_rows_keep_their_order():
    scale = Reference.counted(np.array([1.0, 2.0, 3.0]), np.array([4, 0, 0, 0, 0, 0, 6]), 0.0, 9.0,
                              np.array([0.0, 9.0]))  # fmt: skip
    np.testing.assert_allclose(stats.norm.cdf(scale.z), [0.375, 0.4, 0.425])


def test_scores_without_a_reference_are_standardised():
    scores = np.array([1.0, 2.0, 6.0, 3.0])
    for n_u in (0, 1):
        found = common_scale(scores, roles_of(2, 2 - n_u, n_u))
        np.testing.assert_allclose(found, (scores - 3) / scores.std())
    same = common_scale(np.array([1.0, 5.0, 2.0, 2.0]), roles_of(1, 1, 2))
    assert same.mean() == pytest.approx(0)
    assert common_scale(np.full(3, 7.0), roles_of(1, 0, 2)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("sizes", "n_folds", "factor", "share"),
    [((5, 5, 9), 4, "both", 0.75), ((5, 0, 9), 2, 1.0, 0.5), ((0, 5, 9), 1, 1.0, 0.5)],
)
def test_what_refits_cost(sizes, n_folds, factor, share):
    n = sum(sizes)
    held = CrossFit(np.arange(n), roles_of(*sizes), np.zeros(n), [()] * n_folds,
                    Copies(np.arange(n), 0, 0))  # fmt: skip
    expected = _findings_factor() if factor == "both" else factor
    assert held.variance_factor == pytest.approx(expected)
    assert held.training_share == share
    assert (held.places == 0.5).all()


def _findings_factor():
    from pnuauc.metrics._estimate import CROSS_FIT_VARIANCE

    return CROSS_FIT_VARIANCE


# --- cells of all rows ----------------------------------------------------------------------------


def test_edges_lie_between_scores_and_are_evenly_spaced_in_rank(monkeypatch):
    monkeypatch.setattr(_reference, "_CELLS", 4)
    np.testing.assert_allclose(_reference._edges(np.arange(8.0)[::-1]), [0.5, 2.5, 4.5])
    np.testing.assert_allclose(_reference._edges(np.arange(9.0)), [1.5, 3.5, 5.5])
    np.testing.assert_allclose(_reference._edges(np.array([3.0, 1.0])), [2.0])
    np.testing.assert_allclose(_reference._edges(np.array([1.0, 1, 1, 1, 1, 1, 2])), [1.5])
    assert _reference._edges(np.array([5.0, 5.0])).tolist() == [5.0]
    monkeypatch.setattr(_reference, "_CELLS", 4096)
    scores = RNG.normal(size=50)
    known = np.sort(scores)
    np.testing.assert_allclose(_reference._edges(scores), (known[1:-1] + known[:-2]) / 2)


@pytest.mark.parametrize("n_top", [0, 1, 3, 50])
def test_batches_are_counted_in_cells_and_the_best_are_kept(n_top):
    scores, codes = np.round(RNG.normal(size=30), 1), RNG.choice([-1, -1, 1, 0], 30)
    table = pa.table({"s": scores, "k": np.arange(30), "y": codes})
    keys = SimpleNamespace(order=lambda t: np.asarray(t.column("k")).astype(np.uint64))
    edges = np.array([-0.55, 0.05, 0.85])

    def labels(t):
        return np.asarray(t.column("y"))

    found = None
    for start in range(0, 30, 10):
        batch = Batch(table.slice(start, 10), "f", start, 0)
        part = _reference._place(batch, Scored(), labels, keys, edges, n_top)
        found = _reference._join(found, part, n_top)
    own = np.flatnonzero(codes == -1)
    u = scores[own]
    expected = [(u < -0.55).sum(), ((u > -0.55) & (u < 0.05)).sum(),
                ((u > 0.05) & (u < 0.85)).sum(), (u > 0.85).sum()]  # fmt: skip
    assert found.counts.tolist() == expected
    assert (found.low, found.high) == (u.min(), u.max())
    best = sorted(own, key=lambda i: (-scores[i], i))[:n_top]
    assert found.leaders.row.tolist() == best
    assert found.leaders.table.column("k").to_pylist() == best
    assert found.leaders.score.tolist() == scores[best].tolist()


def test_a_batch_without_unlabelled_rows_counts_nothing():
    anchors = (np.array([1.0, 2.0]), np.array([3.0]))
    count = _Count(lambda table: np.array([1, 0]), None, None, (), (None, None), anchors)
    total = count(Batch(pa.table({"a": [1, 2]}))) + nothing_counted(anchors)
    assert [fold.cells.tolist() for fold in total.folds] == [[0] * 5, [0] * 3]
    some = _FoldCounts(np.array([1, 2]), 0.5, 3.0) + _FoldCounts(np.array([3, 4]), -1.0, 2.0)
    assert (some.cells.tolist(), some.low, some.high) == ([4, 6], -1.0, 3.0)


# --- sensitivity to the prior ---------------------------------------------------------------------


def held_out(seed=0, sizes=(20, 0, 300), share=0.2, shift=1.5):
    rng = np.random.default_rng(seed)
    hidden = rng.random(sizes[2]) < share
    scores = np.r_[rng.normal(shift, 1, sizes[0]), rng.normal(0, 1, sizes[1]),
                   rng.normal(shift * hidden, 1)]  # fmt: skip
    n = len(scores)
    return CrossFit(np.arange(n), roles_of(*sizes), scores, [()] * 5, Copies(np.arange(n), 0, 0))


@pytest.mark.parametrize(
    ("prior", "low", "high"),
    [
        (ClassPrior(0.2, 0.1, 0.3, std_error=0.05), 0.2 / 3, 0.3),
        (ClassPrior(0.2, 0.01, 0.3, std_error=0.05), 0.01, 0.3),
        (ClassPrior(0.003, 0.0, 0.01, std_error=0.001), 0.002, 0.02),
        (ClassPrior(0.3, 0.2, 0.99, std_error=0.2), 0.1, 0.95),
    ],
)
@pytest.mark.parametrize("n_negative", [0, 30])
def test_sensitivity_is_the_auc_at_every_prior(prior, low, high, n_negative):
    held = held_out(sizes=(20, n_negative, 300))
    found = _findings._sensitivity(held, prior, "pu", 0.9)
    grid = sorted({*np.linspace(low, high, 25), prior.value})
    kept = found["priors"]
    assert found["refuted"] == len(grid) - len(kept)
    np.testing.assert_allclose(kept, grid[: len(kept)])
    for k, t in enumerate(kept):
        exact = auc_estimate(held.roles, held.scores, float(t), "pu", 0.9,
                             variance_factor=held.variance_factor)  # fmt: skip
        ends = (exact.low, exact.value, exact.high)
        bottom, value, top = final_limits(ends, 0.8, n_negative > 0)
        assert found["value"][k] == pytest.approx(value)
        assert found["high"][k] == pytest.approx(top)
        assert found["low"][k] == pytest.approx(bottom)
        assert found["std_error"][k] == pytest.approx(exact.std_error)
    assert found["at"] == pytest.approx(min(prior.value, kept[-1]))
    assert (found["method"], found["level"]) == ("pu", 0.9)


@pytest.mark.parametrize("n_finite", [1, 2, 3])
def test_sensitivity_needs_two_priors_that_are_not_refuted(monkeypatch, n_finite):
    def curve(roles, scores, grid, method, level, variance_factor):
        value = np.where(np.arange(len(grid)) < n_finite, 0.8, np.nan)
        return SimpleNamespace(priors=grid, value=value, std_error=value, low=value, high=value,
                               method=method)  # fmt: skip

    monkeypatch.setattr(_findings, "prior_sensitivity", curve)
    found = _findings._sensitivity(held_out(), ClassPrior(0.2, 0.1, 0.3), "pu", 0.9)
    assert (found is None) is (n_finite < 2)
    if found:
        assert len(found["priors"]) == n_finite
        assert found["at"] == found["priors"][-1]


def test_a_posterior_for_a_chart():
    shares = np.linspace(0.01, 0.99, 300)
    weights = np.exp(-(((shares - 0.3) / 0.1) ** 2) / 2)
    found = _posterior(ClassPrior.from_posterior(shares, weights))
    assert 80 <= len(found["shares"]) < 200
    assert max(found["density"]) == pytest.approx(1.0, abs=1e-3)
    expected = np.exp(-(((np.array(found["shares"]) - 0.3) / 0.1) ** 2) / 2)
    np.testing.assert_allclose(found["density"], expected, atol=0.01)
    assert min(found["density"]) >= 1e-3
    assert _posterior(ClassPrior.known(0.2)) is None


# --- labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "given", "read"),
    [
        (pa.int64(), "1", 1), (pa.float64(), "1.5", 1.5), (pa.float64(), "2.0", 2),
        (pa.int64(), ["1", "7"], [1, 7]), (pa.bool_(), "Yes", True), (pa.bool_(), "0", False),
        (pa.bool_(), "maybe", "maybe"), (pa.string(), "1", "1"), (None, "1", "1"),
        (pa.int64(), 3, 3), (pa.int64(), [], None), (pa.int64(), None, None),
    ],
)  # fmt: skip
def test_label_values_in_the_type_of_the_column(kind, given, read):
    found = LabelCodes(positive=given).for_type(kind)
    value = found["positive_label"]
    assert value == read
    assert type(value) is type(read)
    assert found["negative_label"] is None
    with pytest.raises(InputError, match="'x' cannot occur"):
        LabelCodes(unlabeled="x").for_type(pa.int64())


def test_columns_are_split_by_their_roles():
    table = pa.table({"a": [1.0, 2, 3, 4], "y": [1, 0, 1, None], "i": list("pqrs"), "d": [0] * 4})
    found = study_rows(table, ColumnRoles("y", ("i",), ("d",)), "all", 0)
    assert found.table.column_names == ["a"]
    order = np.argsort(found.numbers)
    assert found.table.column("a").to_numpy()[order].tolist() == [1, 2, 3, 4]
    assert found.roles.codes[order].tolist() == [1, 0, 1, -1]
    assert [found.ids.column("i")[int(i)].as_py() for i in order] == list("pqrs")
    assert study_rows(table, ColumnRoles("y"), "all", 0).ids is None
    X = sparse.csr_matrix(np.eye(3))
    found = study_rows((X, np.array([1.0, 0.0, np.nan])), ColumnRoles("y"), "all", 0)
    assert (found.table != X).nnz == 0
    assert (found.roles.codes.tolist(), found.ids) == ([1, 0, -1], None)
    assert found.numbers.tolist() == [0, 1, 2]
    assert tuple(found.counts.counts) == (1, 1, 1)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (ColumnRoles("y", ("no",)), "'no', given as one that names rows"),
        (ColumnRoles("y", (), ("no",)), "'no', given as one that is left out"),
        (ColumnRoles("y", ("a",), ("a",)), "'a' is given two roles"),
        (ColumnRoles("y", ("y",)), "'y' is given two roles"), (ColumnRoles("z"), "no column 'z'"),
        (ColumnRoles("y", ("a",), ("b",)), None),
    ],
)  # fmt: skip
def test_columns_that_have_a_role_are_there_once(columns, message):
    table = pa.table({"a": [1], "b": [2], "y": [1]})
    if message is None:
        check_present(table, columns)
    else:
        with pytest.raises(InputError, match=message):
            check_present(table, columns)


@pytest.mark.parametrize(
    ("counts", "enough"),
    [((4, 0, 9), True), ((3, 0, 9), False), ((0, 4, 9), True), ((0, 3, 9), False),
     ((1, 1, 9), True), ((2, 2, 0), True)],
)  # fmt: skip
def test_one_class_alone_needs_four_rows(counts, enough):
    if enough:
        check_enough(RoleCounts(*counts), "y")
    else:
        with pytest.raises(InputError, match="at least 4 are needed"):
            check_enough(RoleCounts(*counts), "y")


def test_warnings_of_ours_become_sentences_each_once():
    messages = ["before"]

    def loud():
        with collected(messages):
            for text in ("one", "two", "one", "before"):
                warnings.warn(text, LabelReadingWarning, stacklevel=1)
            warnings.warn("foreign", RuntimeWarning, stacklevel=1)

    with pytest.warns(RuntimeWarning, match="foreign"):
        loud()
    assert messages == ["before", "one", "two"]


@pytest.mark.parametrize("kind", [pa.string(), pa.float64(), pa.int64()])
def test_labels_of_a_source_are_read_as_one_column(kind):
    values = {pa.string(): ["yes", "no", None, "yes", " "], pa.float64(): [1, 0, None, 1, np.nan],
              pa.int64(): [1, 0, None, 1, None]}[kind]  # fmt: skip
    table = pa.table({"y": pa.array(values, kind), "x": range(5)})
    reader, counts = read_source_labels(MemorySource(table), "y", LabelCodes())
    assert counts.counts == (2, 1, 2)
    assert reader(table).tolist() == [1, 0, -1, 1, -1]
    assert reader(table.slice(1, 2)).tolist() == [0, -1]
    other = LabelReader("y", reader.cells.slice(0, 1), reader.codes)
    with pytest.raises(InputError, match="not there when labels were counted"):
        other(table)


# --- rows -----------------------------------------------------------------------------------------


def test_ids_name_the_file_where_there_are_several():
    table = pa.table({"i": ["a", "b"], "x": [1, 2]})
    part = np.array([1, 0])
    one, two = (SimpleNamespace(part_names=names) for names in (("f",), ("f", "g")))
    assert _rows.ids_of(table, ["i"], part, one).to_pydict() == {"i": ["a", "b"]}
    found = _rows.ids_of(table, ["i"], part, two)
    assert found.column_names == ["file", "i"]
    assert found.column("file").to_pylist() == ["g", "f"]
    assert _rows.ids_of(table, [], part, one) is None
    assert _rows.ids_of(table, [], part, two).column_names == ["file"]
    own = table.rename_columns(["file", "x"])
    assert _rows.ids_of(own, ["file"], part, two).to_pydict() == {"file": ["a", "b"]}


@pytest.mark.parametrize(
    ("n_words", "n", "told"), [(19, 20, True), (17, 20, False), (19, 19, False)]
)
def test_files_that_write_a_column_otherwise_are_named(n_words, n, told):
    """Nearly all numbers in one and nearly all words in the other, of at least twenty cells."""
    words = ["w"] * n_words + ["7"] * (n - n_words)
    drawn = SimpleNamespace(
        table=pa.table({"c": ["1"] * 18 + ["x", "y"] + words}), part=np.repeat([0, 1], [20, n])
    )
    source = SimpleNamespace(part_names=("first", "second"))
    if told:
        with pytest.raises(InputError, match=r"numbers in 'first' but not in 'second' \('w'\)"):
            _rows._check_files_agree(drawn, ["c"], ColumnRoles("y"), source)
    else:
        _rows._check_files_agree(drawn, ["c"], ColumnRoles("y"), source)
    _rows._check_files_agree(drawn, ["c"], ColumnRoles("y", categorical=("c",)), source)


def test_nearest_rows_that_are_not_identical():
    X = np.round(RNG.normal(size=(600, 3)), 1)
    X[5] = X[9]
    groups = find_copies(X, roles_of(10, 10, 580)).groups
    rows = np.arange(0, 600, 2)
    found = _nearest(X, rows, np.arange(600), groups)
    distance = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    distance[groups[:, None] == groups] = np.inf
    np.testing.assert_allclose(found, distance[rows].min(axis=1), atol=1e-6)


# --- rows to review -------------------------------------------------------------------------------


def test_reasons_that_speak_for_a_row():
    """Effects that put it up, at least a tenth of the largest, three at most."""
    effects = [2.0, 0.3, 0.2, 0.19, -1.0]
    given = [SimpleNamespace(effect=e) for e in effects]
    assert [r.effect for r in _speaks(given)] == [2.0, 0.3, 0.2]
    assert [r.effect for r in _speaks(given[2:])] == [0.2, 0.19]
    assert [r.effect for r in _speaks([given[0], given[3]])] == [2.0]
    assert _speaks([given[4]]) == []


def test_cells_of_sparse_rows_the_commonest_features_first():
    X = sparse.csr_matrix([[0, 1, 0, 2], [0, 0, 0, 3], [5, 0, 0, 0]])
    assert _sparse_cells(X, np.array([0, 1])) == {"feature 4": [2.0, 3.0], "feature 2": [1.0, 0.0]}
    assert [_cell(v) for v in (None, True, 3, 2.5, "x" * 70)] == [None, True, 3, 2.5, "x" * 60]


def test_columns_of_a_table_are_told_with_their_direction():
    """x carries the scores; of the words the one that goes along with x scores highest."""
    rng = np.random.default_rng(2)
    roles = roles_of(15, 15, 60)
    x = rng.normal(size=90) + 2.0 * (roles.codes == 1)
    words = np.where(x > np.median(x), "up", "down")
    encoder = TableEncoder().fit(pa.table({"x": x, "w": words}))
    X = encoder.transform(pa.table({"x": x, "w": words}))
    fit = cross_fit(FirstColumn(), X, roles, np.arange(90), n_folds=3, seed=0)
    found = column_importance(fit, X, encoder, None, "pn", seed=0)
    assert [item["column"] for item in found] == ["x", "w"]
    assert [item["direction"] for item in found] == [
        "higher values score higher", "up scores highest"
    ]  # fmt: skip
    assert found[0]["drop"] > 0.2
    assert found[1]["drop"] == 0


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "selection", "basis", "n_centers"),
    [
        ({}, "auto", None, None), ({"model": "paper"}, "paper", "gaussian", 200),
        ({"basis": "linear"}, "average", "linear", 200),
        ({"n_centers": 7}, "average", "gaussian", 7),
        ({"model": "paper", "basis": "identity", "n_centers": 9}, "paper", "identity", 9),
    ],
)  # fmt: skip
def test_the_ranker_that_is_asked_for(settings, selection, basis, n_centers):
    prior = ClassPrior.known(0.3)
    made = study_fit._ranker(FitSettings(**settings, random_state=4, n_jobs=2), prior, False)
    assert (made.prior, made.random_state, made.n_jobs) == (prior, 4, 2)
    if selection == "auto":
        assert isinstance(made, AutoAUCClassifier)
    else:
        assert (made.selection, made.basis, made.n_centers) == (selection, basis, n_centers)
    with pytest.raises(InputError, match="no model 'other'"):
        study_fit._ranker(FitSettings(model="other"), None, False)
    with pytest.raises(InputError, match="has no basis or centres"):
        study_fit._ranker(FitSettings(model="auto", n_centers=9), None, False)


def test_trees_read_a_view_of_their_own_where_it_differs():
    plain = TableEncoder().fit(pa.table({"x": RNG.normal(size=9)}))
    gaps = TableEncoder().fit(pa.table({"x": [1.0, None, 3.0, 5.0]}))
    thin = TableEncoder().fit(sparse.csr_matrix(np.eye(3)))
    assert study_fit._views(FitSettings(), plain) == ("kernels",)
    assert study_fit._views(FitSettings(), gaps) == ("kernels", "trees")
    assert study_fit._views(FitSettings(model="average"), gaps) == ("kernels",)
    assert study_fit._views(FitSettings(), thin) == ("kernels",)


@pytest.mark.parametrize(("n", "kept"), [(5, 5), (6, 3), (10, 5), (11, 4)])
def test_rows_that_scores_are_placed_by(n, kept):
    X = np.arange(n + 4.0)[:, None]
    found = study_fit._reference_rows(X, roles_of(2, 2, n), at_most=5)
    assert len(found) == kept
    assert found.min() == 4
    assert len(study_fit._reference_rows(X, roles_of(2, n + 2, 0))) == n + 4


@pytest.mark.parametrize(
    ("counts", "good"),
    [((2, 2, 0), True), ((2, 0, 2), True), ((0, 2, 2), True), ((2, 2, 2), True), ((5, 0, 0), False),
     ((0, 0, 5), False), ((1, 5, 5), False), ((5, 5, 1), False)],
)  # fmt: skip
def test_roles_that_a_ranking_needs(counts, good):
    if good:
        study_fit._check_setting(RoleCounts(*counts), "y")
    else:
        with pytest.raises(InputError, match="at least"):
            study_fit._check_setting(RoleCounts(*counts), "y")


# --- evaluation -----------------------------------------------------------------------------------


def test_one_or_two_score_columns():
    assert _names(["a", "b", "a"]) == ["a", "b"]
    assert _names(["a", "a"]) == ["a"]
    for wrong in ([], ["a", "b", "c"]):
        with pytest.raises(InputError, match=f"got {len(wrong)}"):
            _names(wrong)


def test_empty_scores_are_counted_and_the_first_is_named():
    columns = _ScoreColumns(("a", "b"), None)
    table = pa.table({"a": [1.0, 2.0, 3.0], "b": [1.0, None, None]})
    assert columns._empty(Batch(table, "table", 10)) == {"b": (2, "row 12")}
    assert columns._empty(Batch(table, "f.csv", 0)) == {"b": (2, "row 2 of 'f.csv'")}
    assert _add_empty({"b": (2, "x"), "a": (1, "y")}, {"b": (3, "z"), "c": (4, "w")}) == {
        "b": (5, "x"), "a": (1, "y"), "c": (4, "w")
    }  # fmt: skip
    with pytest.raises(InputError, match=r"'b' has 2 empty cells .first in row 2"):
        columns.check(MemorySource(table))
    columns.check(MemorySource(table.slice(0, 1)))


@pytest.mark.parametrize(
    ("sizes", "given", "estimate", "known"),
    [
        ((9, 9, 50), None, False, True), ((9, 0, 50), None, False, False),
        ((9, 0, 50), None, True, True), ((9, 0, 50), 0.3, False, True),
        ((1, 9, 50), None, True, False), ((1, 9, 50), 0.3, True, True),
        ((9, 1, 50), None, False, False), ((2, 9, 50), None, False, True),
    ],
)  # fmt: skip
def test_when_the_prior_of_scores_is_estimated(sizes, given, estimate, known):
    rng = np.random.default_rng(1)
    roles = roles_of(*sizes)
    scores = rng.normal(size=len(roles)) + 3.0 * (roles.codes == 1)
    scores[roles.unlabeled[:15]] += 3.0
    found = _known_prior(given, estimate, scores, roles, 50, 0.9)
    assert (found is not None) is known
    if given:
        assert found.value == given
