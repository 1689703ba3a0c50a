"""Tests of model/model."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy import sparse
from sklearn.preprocessing import PolynomialFeatures

from pnuauc._utils.stored import Parts
from pnuauc.core.basis import GaussianBasis, IdentityBasis, LinearKernelBasis, MultiscaleBasis
from pnuauc.exceptions import InputError, ModelFileError
from pnuauc.io import (
    TableEncoder,
    TableModel,
)
from pnuauc.model.model import (
    N_QUANTILES,
    LinearScorer,
    cell_text,
    read_scorer,
    scorer_of,
    spell_reasons,
)
from tests.model.conftest import Ranker, model_of

RNG = np.random.default_rng(4)


CENTERS = RNG.normal(size=(3, 4))


THIN = sparse.csr_matrix(np.where(RNG.random((3, 4)) < 0.5, 1.0, 0.0) + np.eye(3, 4))


def scorers():
    yield LinearScorer(IdentityBasis.from_parts(4), RNG.normal(size=4))
    for centers in (CENTERS, THIN):
        yield LinearScorer(LinearKernelBasis(centers=centers).fit(centers), RNG.normal(size=3))
        yield LinearScorer(GaussianBasis.from_parts(centers, 1.5), RNG.normal(size=3))
        yield LinearScorer(MultiscaleBasis.from_parts(centers, [1.0, 2.0]), RNG.normal(size=6))


@pytest.mark.parametrize("scorer", list(scorers()))
def test_scorers_come_back_as_they_were(scorer):
    X = RNG.normal(size=(7, 4))
    thin = sparse.issparse(getattr(scorer.basis, "centers_", None))
    X = sparse.csr_matrix(X) if thin else X
    again = read_scorer(Parts(scorer.spec(), scorer.arrays()), {"kernels": 4})
    np.testing.assert_allclose(again.score(X), scorer.score(X), rtol=1e-12)
    for wrong in () if thin else (3, 5):  # sparse centres say no width
        with pytest.raises(ModelFileError):
            read_scorer(Parts(scorer.spec(), scorer.arrays()), {"kernels": wrong})


@pytest.mark.parametrize(
    ("widths", "good"),
    [([1.0], True), ([1e-149], True), ([1e149], True), ([1.0, 0.0], False), ([1.0, -1.0], False),
     ([1.0, 1e150], False), ([1e-150], False), ([], False)],
)  # fmt: skip
def test_widths_whose_squares_are_numbers(widths, good):
    spec = {"kind": "linear", "basis": "gaussian", "centers": "dense"}
    arrays = {"coef": np.ones(3 * max(1, len(widths))), "centers": CENTERS,
              "widths": np.array(widths, dtype=float)}  # fmt: skip
    if good:
        assert read_scorer(Parts(spec, arrays), {"kernels": 4}).kind == "linear"
    else:
        with pytest.raises(ModelFileError, match="widths"):
            read_scorer(Parts(spec, arrays), {"kernels": 4})


@pytest.mark.parametrize(
    "change",
    [
        {"centers_indptr": [0, 2, 1, 4]}, {"centers_indptr": [1, 2, 3, 4]},
        {"centers_indptr": [0, 1, 2, 3]}, {"centers_indptr": [0]},
        {"centers_indices": [0, 1, 2, 4]},
        {"centers_indices": [0, 1, 2, -1]}, {"centers_indptr": [0, 1, 2, 5]},
        {"centers_data": [1.0, 2, 3]},
    ],
)  # fmt: skip
def test_sparse_centres_that_do_not_add_up(change):
    spec = {"kind": "linear", "basis": "gaussian", "centers": "sparse"}
    arrays = {"coef": np.ones(3), "widths": np.ones(1), "centers_data": np.ones(4),
              "centers_indptr": np.array([0, 1, 2, 4]),
              "centers_indices": np.array([0, 1, 2, 3])}  # fmt: skip
    made = read_scorer(Parts(spec, arrays), {"kernels": 4})
    assert made.basis.centers_.toarray().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]]
    bent = arrays | {k: np.array(v) for k, v in change.items()}
    with pytest.raises(ModelFileError):
        read_scorer(Parts(spec, bent), {"kernels": 4})


def test_a_model_scores_places_and_explains():
    """One column: the score is 2 x - 1/4, and a typical row is the mean."""
    X = np.linspace(-2, 2, 401)[:, None]
    encoder = TableEncoder().fit(X)
    encoded = encoder.transform(X)
    ranker = Ranker([2.0], 0.25)
    model = TableModel.from_fitted(encoder, ranker, encoded, {"label": "y"})
    scores = 2.0 * encoded[:, 0] - 0.25
    np.testing.assert_allclose(model.score(X), scores)
    np.testing.assert_allclose(model.percentile(scores), np.linspace(0, 100, 401), atol=1e-9)
    assert model.percentile(np.array([-99.0, 99.0])).tolist() == [0.0, 100.0]
    assert model.probability(scores) is None
    assert model.card == {"label": "y"}
    ((reason,),) = model.reasons(encoded[[400]], 1)
    assert reason.column == "x0"
    assert reason.effect == pytest.approx(2.0 * (encoded[400, 0] - encoded.mean()))
    assert encoder.groups("kernels", "trees") == {"x0": [0, 1]}
    assert model.reasons(encoded[:1], 1, []) == [[]]
    with pytest.raises(InputError, match="holds no typical row"):
        replace(model, typical=None).reasons(encoded[:1])
    with pytest.raises(InputError, match="score of row 2 is too large"):
        model.score_encoded(np.array([[1.0], [1e308 * 1.7]]))


def test_reasons_in_words():
    class Given:
        def __init__(self, column, value, effect, words=()):
            self.column, self.value, self.effect, self.words = column, value, effect, words

    told = spell_reasons([Given("a", 0.1, 1.234), Given("b", 0.2, -0.5)], {"a": "x", "b": None}.get)
    assert told == "a = x (+1.2), b = (missing) (-0.5)"
    assert spell_reasons([Given("feature 3", 0.25, 2.0)], None) == "feature 3 = 0.25 (+2)"
    assert spell_reasons([Given("note", 9, 1.0, ("fit", "tear"))], None) == "note: fit, tear (+1)"
    assert [cell_text(v) for v in (None, 1 / 3, 7, "x")] == ["", "0.333333", "7", "x"]


def test_a_basis_of_ones_own_cannot_be_stored():
    with pytest.raises(InputError, match="PolynomialFeatures cannot be stored"):
        LinearScorer(PolynomialFeatures(1), np.ones(2))


def test_a_ranker_with_a_scorer_of_its_own_keeps_it():
    own = LinearScorer(IdentityBasis.from_parts(2), np.ones(2))
    assert scorer_of(SimpleNamespace(scorer_=own)) is own
    made = scorer_of(Ranker([1.0, -2.0]))
    np.testing.assert_array_equal(made.score(np.eye(2)), [1.0, -2.0])


@pytest.fixture
def summed():
    """A model whose scores are the sum of the encoded columns, less 1/2, and these columns."""
    columns = {f"c{j}": RNG.normal(size=60) for j in range(4)}
    columns["d"] = [dt.date(2024, 1, 1) + dt.timedelta(int(k)) for k in RNG.integers(0, 99, 60)]
    table = pa.table(columns)
    model = model_of(table, coef=np.ones(8))
    return model, model.encoder.transform(table)


def test_quantiles_are_thousandths(summed):
    model, X = summed
    shares = np.arange(1001) / 1000
    assert len(model.quantiles) == N_QUANTILES == 1001
    np.testing.assert_allclose(model.quantiles, np.quantile(X.sum(axis=1) - 0.5, shares))


def test_probabilities_are_those_of_the_scorer(summed):
    """What a scorer calibrated are its own scores, before the threshold is taken off."""
    model, X = summed

    class Calibrated(LinearScorer):
        def chances(self, scores):
            return np.column_stack([scores, scores - 1, scores + 1])

    scorer = model.scorer
    model.scorer = Calibrated(scorer.basis, scorer.coef)
    found = model.probability(model.score_encoded(X))
    np.testing.assert_allclose(found[:, 0], X.sum(axis=1))
    np.testing.assert_allclose(found[:, 2] - found[:, 1], 2.0)
