"""Tests of labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pnuauc import AUCClassifier, AUCClassifierCV
from pnuauc.exceptions import LabelReadingWarning, MissingRoleError
from pnuauc.labels import ROLES, Roles, read_roles

QUIET = [
    [1, 0, None],
    [1, 0, -1],
    (1.0, 0.0, float("nan")),
    np.array([1.0, 0.0, np.nan]),
    np.array([1, 0, -1], dtype=np.int8),
    np.array([True, False, None], dtype=object),
    np.array(["1", "0", ""]),
    np.ma.array([1, 0, 0], mask=[False, False, True]),
    pd.Series([1, 0, None], dtype="Int64"),
    pd.Series([True, False, None], dtype="boolean"),
    pd.Series(["1", "0", None], dtype="string"),
    pd.Series(pd.Categorical([1, 0, None])),
    pd.Series([1, 0, np.nan]),
    pl.Series([1, 0, None]),
    pl.Series([True, False, None]),
    pa.array([1, 0, None]),
    pa.chunked_array([[1], [0, None]]),
]


@pytest.mark.parametrize("y", QUIET, ids=lambda y: f"{type(y).__module__}.{type(y).__name__}")
def test_default_codes_in_every_container(y):
    roles = read_roles(y)
    assert roles.codes.tolist() == [1, 0, -1]
    assert roles.setting == "PNU"
    assert roles.announcement is None


@pytest.mark.parametrize(
    ("y", "codes", "word"),
    [
        ([1, -1, 1], [1, -1, 1], "the negative label"),
        ([1.0, -1.0, np.nan], [1, -1, -1], "the negative label"),
        (["Fraud", "Legit"], [1, 0], "'Fraud' as positive, 'Legit' as negative"),
        (["fraud", None], [1, -1], "missing labels as unlabelled"),
    ],
)
def test_ambiguous_codings_are_announced(y, codes, word):
    with pytest.warns(LabelReadingWarning, match=word):
        roles = read_roles(y)
    assert roles.codes.tolist() == codes
    assert word in roles.announcement


P, N, U = 1, 0, -1

REFUSED = "do not say which is positive"

#: Values of a label column, parameters, the expected roles or the refusal.
CODINGS = [
    ([1, 0, None], {}, [P, N, U]),
    ([1, 0, -1], {}, [P, N, U]),
    (["1", "0", "-1"], {}, [P, N, U]),
    (["1.0", "0.0", ""], {}, [P, N, U]),
    ([True, False, None], {}, [P, N, U]),
    (["TRUE", "False", " "], {}, [P, N, U]),
    (["t", "f", ""], {}, [P, N, U]),
    (["yes", "no", None], {}, [P, N, U]),
    (["Yes", "NO", "yes", "nO"], {}, [P, N, P, N]),
    ([" yes", "no ", ""], {}, [P, N, U]),
    (["Y", "N", None], {}, [P, N, U]),
    (["positive", "negative"], {}, [P, N]),
    (["pos", "neg", "?"], {}, [P, N, U]),
    (["p", "n", None], {}, [P, N, U]),
    (["Fraud", "Legit"], {}, [P, N]),
    (["Legit", "Fraud"], {}, [N, P]),
    (["fraud", "ok", ""], {}, [P, N, U]),
    (["fraud", "genuine", "pending"], {}, [P, N, U]),
    (["fraud", "not fraud", None], {}, [P, N, U]),
    (["fraud", "non-fraud"], {}, [P, N]),
    (["spam", "ham"], {}, [P, N]),
    (["malignant", "benign"], {}, [P, N]),
    (["sick", "healthy", "unknown"], {}, [P, N, U]),
    (["case", "control"], {}, [P, N]),
    (["anomaly", "normal"], {}, [P, N]),
    (["attack", "normal", None], {}, [P, N, U]),
    (["relevant", "irrelevant", "unlabelled"], {}, [P, N, U]),
    (["active", "inactive"], {}, [P, N]),
    (["churn", "no churn"], {}, [P, N]),
    (["member", "non-member"], {}, [P, N]),
    (["fraud", None, None], {}, [P, U, U]),
    (["legit", None, None], {}, [N, U, U]),
    (["fraud", "unknown"], {}, [P, U]),
    (["x", None], {}, [P, U]),
    ([1, None], {}, [P, U]),
    ([0, None], {}, [N, U]),
    ([1, -1], {}, [P, U]),
    ([1, -1], {"negative_label": -1}, [P, N]),
    ([1, 0], {"unlabeled_label": 0}, [P, U]),
    ([2, 1, 0], {"positive_label": 2, "negative_label": 1, "unlabeled_label": 0}, [P, N, U]),
    ([1, 2], {"positive_label": 2}, [N, P]),
    (["cat", "dog"], {"positive_label": "cat"}, [P, N]),
    (["cat", "dog", "cow"], {"positive_label": "cat", "negative_label": ["dog", "cow"]}, [P, N, N]),
    (["fraud", "ok", "?"], {"unlabeled_label": "?"}, [P, N, U]),
    (["fraud", "ok", "later"], {"unlabeled_label": "later"}, [P, N, U]),
    (["fraud", "unknown"], {"positive_label": "fraud"}, [P, U]),
    (["good", "bad"], {"positive_label": "bad"}, [N, P]),
    ([0, 1, None], {"positive_label": 0, "negative_label": 1}, [P, N, U]),
    (["bad", "ok", "x"], {"positive_label": "bad", "unlabeled_label": ["x", "y"]}, [P, N, U]),
    (["cat", "dog"], {}, REFUSED),
    (["good", "bad"], {}, REFUSED),
    (["M", "F"], {}, REFUSED),
    (["A", "B"], {}, REFUSED),
    (["fraud", "other"], {}, REFUSED),
    ([1, 2], {}, REFUSED),
    (["low", "high"], {}, REFUSED),
    (["yes", "no", "maybe"], {}, "3 label values"),
    ([0, 1, 2], {}, "held_out_scores"),
    (["fraud", "fraud"], {}, "one class only"),
    (["yes", None], {"positive_label": "Yes"}, "'Yes' does not occur .did you mean 'yes'"),
    (["fraud", "ok"], {"positive_label": "fruad"}, "'fruad' does not occur .did you mean 'fraud'"),
    (["fraud", "ok"], {"negative_label": "okay!"}, "'okay!' does not occur"),
    ([0, 1, 2], {"positive_label": 1}, "belong to no role: 2"),
    (["0", "1", "2"], {"positive_label": "1"}, "belong to no role: '2'"),
    (["a", "b", "c"], {"positive_label": "a"}, "belong to no role: 'b', 'c'"),
    ([1, 0], {"positive_label": 1, "negative_label": 1}, "given twice"),
    ([], {}, "0 sample"),
    ([0.5, 1.0], {}, "Unknown label type: continuous"),
    ([np.inf, 1.0], {}, "infinity"),
    ([1j, 0], {}, "[Cc]omplex"),
    ([1, 2], {"positive_label": 1, "negative_label": 0}, "negative label 0 does not occur"),
    ([[1, 0], [0, 1]], {}, "1d array"),
    ([{}, 1, None], {}, "row 0"),
    (None, {}, "requires y to be passed"),
    (3, {}, "one-dimensional"),
]  # fmt: skip


@pytest.mark.parametrize(("y", "given", "expected"), CODINGS)
@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.LabelReadingWarning")
def test_every_coding_has_one_reading_or_a_refusal(y, given, expected):
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected) as refusal:
            read_roles(y, **given)
        assert "\n" not in str(refusal.value)
    else:
        assert read_roles(y, **given).codes.tolist() == expected
        # the order of the rows decides nothing
        assert read_roles(y[::-1], **given).codes.tolist() == expected[::-1]


def test_classifiers_keep_to_scikit_learns_rule_for_words_that_say_nothing():
    with pytest.warns(LabelReadingWarning, match="'dog' is read as positive"):
        assert read_roles(["cat", "dog"], unclear="sorted").codes.tolist() == [0, 1]
    assert read_roles(["yes", "no"], unclear="sorted").codes.tolist() == [1, 0]


def test_classes_answer_in_the_users_coding():
    with pytest.warns(LabelReadingWarning):
        assert read_roles([-1, 1]).classes.tolist() == [-1, 1]
    assert read_roles([True, None]).classes.tolist() == [False, True]
    assert read_roles([1, None]).announcement is None  # nobody reads it otherwise
    assert read_roles([0, None, 0]).classes.tolist() == [0, 1]
    words = {"positive_label": "bad", "negative_label": "good"}
    assert read_roles(["bad", "good", None], **words).classes.tolist() == ["good", "bad"]


def test_missing_role_is_named():
    roles = read_roles([1, None, None])
    roles.require("positive", "unlabeled", purpose="the PU risk")
    with pytest.raises(MissingRoleError, match="the PN risk needs negative rows"):
        roles.require("positive", "negative", purpose="the PN risk")
    with pytest.raises(MissingRoleError, match="at least 2 positive rows and there is only 1"):
        roles.require("positive", purpose="the PU risk", at_least=2)


@given(
    st.lists(st.sampled_from([1, 0, -1]), min_size=1, max_size=50),
    st.sampled_from([np.int8, np.int64, np.float32, np.float64, object, "str"]),
)
@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.LabelReadingWarning")
def test_codes_survive_any_dtype(codes, dtype):
    y = np.array(codes).astype(dtype)
    assert read_roles(y).codes.tolist() == codes


@given(
    st.lists(
        st.one_of(st.none(), st.integers(-2, 2), st.floats(), st.text(max_size=3), st.booleans()),
        max_size=20,
    )
)
@pytest.mark.filterwarnings("ignore::pnuauc.exceptions.LabelReadingWarning")
def test_any_list_is_read_or_refused(y):
    try:
        roles = read_roles(y)
    except ValueError:  # refused; any other error fails the test
        return
    assert len(roles) == len(y)
    assert roles.n_positive + roles.n_negative + roles.n_unlabeled == len(y)
    assert len(roles.classes) == 2


def test_roles_pass_through_unread() -> None:
    roles = read_roles(["fraud", None, "ok"], positive_label="fraud", negative_label="ok")
    assert read_roles(roles) is roles
    assert read_roles(roles, positive_label="other") is roles


@given(
    st.lists(st.sampled_from([1, 0, -1]), min_size=1, max_size=20).flatmap(
        lambda codes: st.tuples(
            st.just(codes), st.lists(st.integers(0, len(codes) - 1), min_size=1, max_size=30)
        )
    )
)
def test_subsets_of_roles_are_roles_of_subsets(case) -> None:
    codes, rows = case
    roles = Roles(np.array(codes, dtype=np.int8), "yes", "no")
    part = roles.take(rows)
    assert part.codes.tolist() == [codes[i] for i in rows]
    assert (part.positive_label, part.negative_label) == ("yes", "no")
    assert part.counts == tuple(part.codes.tolist().count(role.code) for role in ROLES)
    mask = np.isin(np.arange(len(codes)), rows)
    assert roles[mask].codes.tolist() == [c for c, kept in zip(codes, mask) if kept]
    assert list(roles[1:]) == codes[1:]
    assert np.asarray(roles).tolist() == codes
    for role in ROLES:
        assert roles.by_letter[role.letter].tolist() == [
            i for i, code in enumerate(codes) if code == role.code
        ]
        assert (role.letter in roles.setting) == (role.code in codes)


def _functions_of_y():
    """Everything public that takes y, as (name, call of (X, y) that gives a comparable result)."""
    from sklearn.model_selection import GridSearchCV, cross_val_score

    from pnuauc import (
        AutoAUCClassifier,
        baselines,
        priors,
    )
    from pnuauc import (
        evaluation as metrics,
    )

    def fitted(model):
        return lambda X, y: model.fit(X, y).decision_function(X)

    def searched(X, y):
        search = GridSearchCV(
            AUCClassifier(prior=0.3, n_centers=10, random_state=0),
            {"alpha": [0.1, 1.0]},
            scoring=metrics.make_auc_scorer(0.3),
            cv=metrics.RoleStratifiedKFold(2),
        )
        return search.fit(X, y).cv_results_["mean_test_score"]

    yield "AUCClassifier", fitted(AUCClassifier(prior=0.3, n_centers=10, random_state=0))
    yield "AUCClassifierCV", fitted(AUCClassifierCV(prior=0.3, n_centers=10, cv=2, random_state=0))
    yield "AutoAUCClassifier", fitted(AutoAUCClassifier(prior=0.3, random_state=0))
    ranker = AUCClassifier(prior=0.3, n_centers=10, random_state=0)
    yield "held_out_scores", lambda X, y: metrics.held_out_scores(ranker, X, y, cv=2)
    for kind in (
        baselines.EntropyAUC,
        baselines.GenerativeAUC,
        baselines.LabeledOnly,
        baselines.PositiveVsUnlabeled,
        baselines.RankSVM,
        baselines.SAMULT,
        baselines.SemiSupervised,
        baselines.SSRankBoost,
    ):
        yield kind.__name__, fitted(kind())
    for name, kind in priors.PRIORS.items():
        model = kind(random_state=0, on_unidentified="ignore")
        yield name, lambda X, y, model=model: model.fit(X, y).prior_
    for name in ("auc_estimate", "roc_curve_estimate", "prior_sensitivity"):
        call = getattr(metrics, name)
        options = {} if name == "prior_sensitivity" else {"prior": 0.3}
        yield name, lambda X, y, call=call, o=options: str(call(y, X[:, 0], **o).to_dict())
    yield "threshold", lambda X, y: str(metrics.threshold_estimate(y, X[:, 0], 0.3, k=5))
    yield "compare", lambda X, y: str(metrics.compare_auc(y, X[:, 0], X[:, 1], 0.3))
    yield "counts", lambda X, y: metrics.ScoreCounts.from_rows(y, X[:, 0]).unlabeled
    for splitter in (metrics.RoleStratifiedKFold(2), metrics.RoleStratifiedShuffleSplit(2)):
        splitter.random_state = None if isinstance(splitter, metrics.RoleStratifiedKFold) else 0
        yield (
            type(splitter).__name__,
            lambda X, y, s=splitter: [test.tolist() for _, test in s.split(X, y)],
        )
    yield "GridSearchCV", searched
    yield (
        "cross_val_score",
        lambda X, y: cross_val_score(
            AUCClassifier(prior=0.3, n_centers=10, random_state=0),
            X,
            y,
            scoring=metrics.make_auc_scorer(0.3),
            cv=metrics.RoleStratifiedKFold(2),
        ),
    )


@pytest.mark.parametrize("call", [pytest.param(c, id=name) for name, c in _functions_of_y()])
def test_whatever_takes_y_takes_roles(call) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([1.0, 0.0, np.nan], [20, 20, 40])
    X = rng.standard_normal((80, 3)) + np.where(np.arange(80) < 20, 1.5, 0.0)[:, None]
    np.testing.assert_array_equal(call(X, read_roles(y)), call(X, y))


def scored_rows(strengths, n_labeled=300, n_unlabeled=3000, prior=0.3, seed=0):
    """Columns x_j = strength_j * class + noise; roles; the hidden classes of all rows."""
    rng = np.random.default_rng(seed)
    classes = np.r_[np.repeat([1, 0], n_labeled), rng.random(n_unlabeled) < prior].astype(int)
    X = np.outer(classes, strengths) + rng.normal(size=(len(classes), len(strengths)))
    labels = np.r_[np.repeat([1.0, 0.0], n_labeled), np.full(n_unlabeled, np.nan)]
    return X, read_roles(labels), classes


def test_percentiles_are_places_among_the_unlabeled_rows():
    """Many labelled positives score high: among all rows the same scores stand lower."""
    pa = pytest.importorskip("pyarrow")
    from pnuauc import fit_table

    X, roles, _ = scored_rows([3.0], n_labeled=150, n_unlabeled=300, prior=0.05)
    labels = [None if code == -1 else int(code) for code in roles]
    table = pa.table({"x": X[:, 0], "y": pa.array(labels, pa.int8())})
    quick = {"n_centers": 10, "folds": 2, "importance": False, "top": 40}
    fit = fit_table(table, "y", prior=0.05, **quick)
    scores = fit.model.score(table)
    unlabeled = scores[roles.unlabeled]
    header = fit.findings["top"]["header"]
    shown = [row[header.index("percentile")] for row in fit.findings["top"]["rows"]]
    top = np.sort(unlabeled)[::-1][:40]
    places = np.array([np.mean(unlabeled <= score) for score in top])
    unit = 100 if max(shown) > 1 else 1
    np.testing.assert_allclose(np.array(shown) / unit, places, atol=0.01)
    among_all = np.array([np.mean(scores <= score) for score in top])
    assert np.abs(places - among_all).max() > 0.1  # else the test would show nothing
