"""Estimators of the user's: members of the committee, or judged in its place."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import SelfTrainingClassifier

from pnuauc import AUCClassifier, AutoAUCClassifier, fit_table
from pnuauc.committee import MEMBERS
from pnuauc.datasets import make_twonorm, sample_pnu
from pnuauc.exceptions import InputError


class Watched(ClassifierMixin, BaseEstimator):
    """Remembers what it was given, and writes where it should not."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y):
        print("[Watched] training")
        Watched.seen.append((np.isnan(X).any(), sorted(np.unique(y, return_counts=True)[1])))
        self.weights_ = X[y == 1].mean(axis=0) - X[y != 1].mean(axis=0)
        return self

    def decision_function(self, X):
        return X @ self.weights_


def drawn(n_positive=12, n_negative=40, n_unlabeled=300):
    X, y = make_twonorm(3000, n_features=5, random_state=0)
    return sample_pnu(X, y, n_positive, n_negative, n_unlabeled, 0.2, 0, n_test=500)


def fitted(sample, members, **settings):
    settings = {"unlabeled_label": -1, "verbose": False, "random_state": 0, "cv": 3, **settings}
    return AutoAUCClassifier(members=members, **settings).fit(sample.X, sample.y)


def test_alone_it_ranks_as_without_this_package():
    sample = drawn()
    model = fitted(sample, [LinearDiscriminantAnalysis()])
    known = sample.y >= 0
    plain = LinearDiscriminantAnalysis().fit(sample.X[known], sample.y[known])
    scores = plain.decision_function(sample.X_test)
    assert spearmanr(model.decision_function(sample.X_test), scores)[0] > 1 - 1e-9
    assert [m.name for m in model.members_] == ["LinearDiscriminantAnalysis"]
    assert model.members_[0].auc_with == model.auc_.value


def test_it_is_compared_with_the_default_on_the_same_folds():
    """The difference is that of two fits by themselves, from the same seed."""
    sample = drawn()
    own = fitted(sample, [LinearDiscriminantAnalysis()], rivals=True)
    default = fitted(sample, None)
    rival = own.rivals_[0]
    assert rival.name == "default"
    values = [m.held_out_.auc(m.held_out_.places(m.fold_weights_)) for m in (own, default)]
    assert rival.difference.value == pytest.approx(values[0] - values[1])
    assert (own.held_out_.rows == default.held_out_.rows).all()
    assert "labeled_only" not in {r.name for r in own.rivals_}  # it has no kernels of ours


@pytest.mark.parametrize(("noise", "least", "most"), [(False, 0.3, 5.0), (True, 0.0, 0.3)])
def test_beside_ours_its_weight_follows_held_out_rows(noise, least, most):
    own = DummyClassifier(strategy="uniform") if noise else LinearDiscriminantAnalysis()
    sample = drawn(30, 60)
    model = fitted(sample, [..., ("mine", own)])
    weights = {m.name: m.weight for m in model.members_}
    others = [m.name for m in fitted(sample, None, cv=0).members_]
    assert set(others) < set(weights) <= {*MEMBERS, "mine"}
    assert least <= weights["mine"] <= most


@pytest.mark.parametrize(
    ("sizes", "given"),
    [((12, 40, 300), [12, 40]), ((12, 0, 300), [12, 300]), ((0, 40, 300), [40, 300])],
)
def test_it_gets_labelled_rows_or_one_class_against_the_unlabelled(sizes, given):
    Watched.seen.clear()
    fitted(drawn(*sizes), [Watched()])
    assert len(Watched.seen) == 4  # three folds, and all rows
    assert Watched.seen[-1] == (False, given)


def test_estimators_that_read_unlabelled_rows_get_them():
    sample = drawn()
    ours = AUCClassifier(prior=0.2, basis="identity", alpha=0.1)
    direct = clone(ours).fit(sample.X / sample.X.std(axis=0), sample.y)
    found = fitted(sample, [ours]).decision_function(sample.X_test)
    assert spearmanr(found, direct.decision_function(sample.X_test))[0] > 0.99
    labelled = clone(ours).fit(sample.X[sample.y >= 0], sample.y[sample.y >= 0])
    assert spearmanr(found, labelled.decision_function(sample.X_test))[0] < 0.99
    training = SelfTrainingClassifier(LogisticRegression(), threshold=0.9)
    model = fitted(sample, [training])
    known = model.scorer_.seats[0].parts[0].model.model.transduction_
    assert len(known) == len(sample.y)  # it saw all rows, and labelled some itself


def test_tables_with_gaps_texts_and_sparse_rows():
    sample = drawn(20, 40)
    X = sample.X.copy()
    X[::3, 0] = np.nan
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=np.where(X[:, 1] > 0, "x", "y"))
    for own in (LogisticRegression(), HistGradientBoostingClassifier(max_iter=10)):
        model = AutoAUCClassifier(members=[own], cv=0, unlabeled_label=-1).fit(frame, sample.y)
        assert np.isfinite(model.decision_function(frame)).all()
    Z = sparse.csr_matrix(np.maximum(sample.X, 0))
    model = AutoAUCClassifier(members=[LogisticRegression()], cv=3, unlabeled_label=-1)
    assert model.fit(Z, sample.y).auc_ is not None


def test_one_seed_gives_one_result():
    sample = drawn()
    one, two = (fitted(sample, [RandomForestClassifier(20)], cv=0) for _ in range(2))
    assert (one.decision_function(sample.X_test) == two.decision_function(sample.X_test)).all()


class Broken(Watched):
    def fit(self, X, y):
        raise RuntimeError("no licence\nsecond line")


class Endless(Watched):
    def decision_function(self, X):
        return np.full(len(X), np.nan)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (LogisticRegression, "is no estimator"),
        (3, "int is no estimator"),
        (Broken(), "Broken could not be fitted: no licence$"),
        (Endless(), "Endless does not give one finite score"),
    ],
)
def test_what_is_no_classifier_gets_a_sentence(own, said):
    with pytest.raises(InputError, match=said):
        fitted(drawn(), [own])


def test_fit_table_judges_it_and_writes_no_model(tmp_path):
    sample = drawn()
    table = pd.DataFrame(sample.X, columns=list("abcde"))
    table["label"] = pd.array(np.where(sample.y < 0, np.nan, sample.y), dtype="Float64")
    found = fit_table(table, estimator=LinearDiscriminantAnalysis(), importance=False, folds=3)
    assert found.findings["selection"]["message"] == "LinearDiscriminantAnalysis, as given."
    assert found.findings["rivals"][0]["name"] == "what pnuauc fits by itself"
    assert found.findings["auc"]["value"] == found.ranker.auc_.value
    assert any("model is not written" in said for said in found.findings["warnings"])
    page = found.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "what pnuauc fits by itself" in page
    assert "Sakai" not in page  # no member of ours is in it
    with pytest.raises(InputError, match="LinearDiscriminantAnalysis cannot be stored safely"):
        found.save(tmp_path / "m.pnuauc")
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
    again = pickle.loads(pickle.dumps(found.model))
    assert (again.score(table) == found.model.score(table)).all()
    with pytest.raises(InputError, match="without model"):
        fit_table(table, estimator=LinearDiscriminantAnalysis(), model="paper")
