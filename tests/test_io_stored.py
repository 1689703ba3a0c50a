"""Stored models to the byte: sizes, shapes and heads at their bounds; views, groups, quantiles."""

from __future__ import annotations

import datetime as dt
import io

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from attack.containers import join, sealed
from pnuauc._basis import IdentityBasis
from pnuauc._stored import Parts
from pnuauc.exceptions import ModelFileError
from pnuauc.io import TableEncoder, TableModel, _container
from pnuauc.io._columns import CellError
from pnuauc.io._container import MAGIC, _declared, parse_manifest, read_container, write_container
from pnuauc.io._model import N_QUANTILES, encode_batch, encode_views, grouped_columns, kernels_of
from pnuauc.io._modelfile import _first
from pnuauc.io._parts import LinearScorer, read_scorer

RNG = np.random.default_rng(17)


# ---------------------------------------------------------------------------- bytes


def contained(manifest, arrays):
    stream = io.BytesIO()
    write_container(stream, manifest, arrays)
    return stream.getvalue()


@pytest.fixture
def refused(tmp_path):
    """The sentence with which bytes are refused."""

    def sentence(data):
        (tmp_path / "m").write_bytes(data)
        with pytest.raises(ModelFileError) as caught:
            read_container(tmp_path / "m")
        return str(caught.value)

    return sentence


def test_a_container_may_hold_no_arrays(tmp_path, refused):
    """Head, manifest and checksum fill it; a byte less is told as a cut, not as damage."""
    data = contained({"k": 1}, {})
    (tmp_path / "m").write_bytes(data)
    assert read_container(tmp_path / "m") == ({"k": 1}, {})
    for cut in (1, 8, 31, 32):
        assert refused(data[:-cut]) == "it is cut short"


@pytest.mark.parametrize("n", [8, 9, 15])
def test_a_file_that_ends_within_its_head_is_none(refused, n):
    data = contained({"k": 1}, {})
    assert data.startswith(MAGIC)
    assert refused(data[:n]).startswith("it is not a pnuauc model")


@pytest.mark.parametrize("n", [1, 150_000, 400_000])
def test_what_a_stranger_wrote_is_told_from_damage(refused, n):
    """A right checksum, whatever the size: the lie is told, not damage; a wrong one is damage."""
    lie = [{"name": "a", "dtype": "float64", "shape": [n + 1]}]
    data = join({}, {"a": np.arange(float(n))}, lie)
    assert refused(data) == "its arrays and its size do not fit together"
    damaged = bytearray(data)
    damaged[-40] ^= 1
    assert refused(bytes(damaged)) == "it is damaged (its checksum differs)"
    assert refused(sealed(b"[]", b"\0" * 8 * n)) == "its manifest is not JSON that pnuauc writes"


def declared(shape, available, dtype="uint8", n=1):
    items = [{"name": f"a{k}", "dtype": dtype, "shape": shape} for k in range(n)]
    return _declared({"arrays": items}, available)


@pytest.mark.parametrize(
    ("shape", "good"),
    [
        ([0, 2**28], True), ([0, 2**28 + 1], False), ([0, 2**14, 2**14], True), ([1, 0], True),
        ([0, 2**14, 2**14 + 1], False), ([0, True], False), ([0, 1.0], False), ([0, -1], False),
    ],
)  # fmt: skip
def test_sides_beside_a_zero(shape, good):
    """Each is a whole number, and their product what a file could hold."""
    if good:
        assert declared(shape, 0)["a0"][1] == tuple(shape)
    else:
        with pytest.raises(ModelFileError, match=r"does not describe|no model file can hold"):
            declared(shape, 0)


def test_a_side_is_below_two_billion(monkeypatch):
    monkeypatch.setattr(_container, "MAX_FILE", 2**40)
    assert declared([0, 2**31 - 1], 0)["a0"][1] == (0, 2**31 - 1)
    with pytest.raises(ModelFileError, match="does not describe"):
        declared([0, 2**31], 0)


def test_ten_thousand_arrays():
    assert len(declared([0], 0, n=10_000)) == 10_000
    with pytest.raises(ModelFileError, match="does not list"):
        declared([0], 0, n=10_001)


def test_quotes_count_as_values(monkeypatch):
    """Strings cost memory without a comma: a quote is counted as a mark is."""
    monkeypatch.setattr(_container, "MAX_VALUES", 4)
    assert parse_manifest(b'{"a":"b"}') == {"a": "b"}
    monkeypatch.setattr(_container, "MAX_VALUES", 3)
    with pytest.raises(ModelFileError, match="more than 3 values"):
        parse_manifest(b'{"a":"b"}')


def test_types_that_no_file_holds():
    for value in (np.array(["a"]), np.zeros(2, dtype=complex), np.zeros(2, dtype=np.int16)):
        with pytest.raises(TypeError, match="array x of type"):
            contained({}, {"x": value})


def test_reasons_of_refusal_are_one_line_of_200_letters():
    assert _first(ValueError("a" * 200)) == "a" * 200
    assert _first(ValueError("a" * 201)) == "a" * 200
    assert _first(ValueError(" one\ntwo")) == "one"
    assert _first(ValueError()) == "ValueError"


@pytest.mark.parametrize(("width", "good"), [(1.2e-150, True), (9e149, True), (1.2e150, False)])
def test_widths_between_their_bounds(width, good):
    spec = {"kind": "linear", "basis": "gaussian", "centers": "dense"}
    parts = Parts(
        spec, {"coef": np.ones(1), "centers": np.zeros((1, 1)), "widths": np.array([width])}
    )
    if good:
        assert read_scorer(parts, {"kernels": 1}).score(np.zeros((1, 1))).tolist() == [1.0]
    else:
        with pytest.raises(ModelFileError, match="too large to compute with"):
            read_scorer(parts, {"kernels": 1})


# ---------------------------------------------------------------------------- views


def words(n_levels, n=132):
    return [f"w{'x' * (k % n_levels)}" for k in range(n)]


@pytest.mark.parametrize("n_levels", [2, 9, 10, 11, 12])
def test_trees_take_ten_categories_apart_and_number_more(n_levels):
    table = pa.table({"w": words(n_levels), "x": RNG.normal(size=132)})
    encoder = TableEncoder().fit(table)
    trees, kernels = (encoder.transform(table, view=view) for view in ("trees", "kernels"))
    names = sorted(set(words(n_levels)))
    one_hot = np.array(words(n_levels))[:, None] == names
    np.testing.assert_array_equal(kernels[:, 1:], one_hot)
    few = n_levels <= 10
    assert encoder.encoding_.same_for_trees is few
    np.testing.assert_array_equal(trees[:, 0], table.column("x"))
    if few:
        np.testing.assert_array_equal(trees[:, 1:], one_hot)
        assert encoder.get_feature_names_out(view="trees")[1:].tolist() == [f"w={w}" for w in names]
    else:
        assert trees.shape == (132, 2)
        assert encoder.get_feature_names_out(view="trees").tolist() == ["x", "w code"]
        np.testing.assert_array_equal(trees[:, 1], one_hot.argmax(axis=1))


def test_views_differ_where_a_cell_is_missing():
    for gap, same in ((None, False), (1.5, True)):
        table = pa.table({"x": [gap, 1.0, 2.0, 4.0], "w": ["a", "b"] * 2})
        assert TableEncoder().fit(table).encoding_.same_for_trees is same


def test_three_lists_of_categories_come_back():
    """Frequencies differ, so that each list has ranks of its own."""
    draws = {name: RNG.choice(words(14)[:14], 400, p=RNG.dirichlet(np.ones(14))) for name in "abc"}
    table = pa.table(draws)
    encoder = TableEncoder().fit(table)
    again = TableEncoder.from_spec(encoder.spec(), encoder.arrays())
    for view in ("kernels", "trees"):
        X = encoder.transform(table, view=view)
        np.testing.assert_array_equal(again.transform(table, view=view), X)
    for name, codes in zip("abc", X.T, strict=True):
        sizes = [(codes == code).sum() for code in range(int(codes.max()))]
        assert sizes == sorted(sizes, reverse=True)
        assert set(draws[name][codes == 0]) == {max(set(draws[name]), key=list(draws[name]).count)}


def test_rare_categories_are_not_new():
    table = pa.table({"w": [*"aabbc" * 4, "r"], "x": RNG.normal(size=21)})
    encoder = TableEncoder().fit(table)
    assert encoder.spec()["rare"] == [["r"]]
    assert encoder.new_categories(table) == {}
    assert encoder.new_categories(pa.table({"w": ["a", "r", "s"]})) == {"w": {"s"}}


def test_sparse_columns_without_a_value_have_scale_one():
    X = sparse.csr_matrix([[0, -4.0, 0.25], [0, 2.0, 0], [0, 0, 0.5]])
    assert TableEncoder().fit(X).arrays()["scale"].tolist() == [1.0, 4.0, 0.5]


# ---------------------------------------------------------------------------- models


class Ranker:
    """The sum of the encoded columns, less 1/2."""

    threshold_ = 0.5

    def __init__(self, width):
        self.basis_, self.coef_ = IdentityBasis.from_parts(width), np.ones(width)


@pytest.fixture
def fitted():
    columns = {f"c{j}": RNG.normal(size=60) for j in range(4)}
    columns["d"] = [
        dt.date(2024, 1, 1) + dt.timedelta(days=int(k)) for k in RNG.integers(0, 99, 60)
    ]
    table = pa.table(columns)
    encoder = TableEncoder().fit(table)
    X = encoder.transform(table)
    return TableModel.from_fitted(encoder, Ranker(X.shape[1]), X, {}), table, X


def test_quantiles_are_thousandths(fitted):
    model, _, X = fitted
    shares = np.arange(1001) / 1000
    assert len(model.quantiles) == N_QUANTILES == 1001
    np.testing.assert_allclose(model.quantiles, np.quantile(X.sum(axis=1) - 0.5, shares))


def test_three_reasons_unless_asked_for_more(fitted):
    model, _, X = fitted
    assert [len(row) for row in model.reasons(X[:2])] == [3, 3]
    (row,) = model.reasons(X[:1], 5)
    effects = [abs(reason.effect) for reason in row]
    assert effects == sorted(effects, reverse=True)
    assert {reason.column for reason in row} == {"c0", "c1", "c2", "c3", "d"}


def test_views_stand_side_by_side(fitted):
    """Dates feed four columns of each view; groups count through both."""
    model, table, X = fitted
    encoder = model.encoder
    both = encode_views(encoder, table, ("kernels", "trees"))
    np.testing.assert_array_equal(both[:, :8], X)
    np.testing.assert_array_equal(both[:, 8:], encoder.transform(table, "trees"))
    np.testing.assert_array_equal(kernels_of(both, encoder), X)
    groups = grouped_columns(encoder, ("kernels", "trees"))
    assert groups == {**{f"c{j}": [j, 8 + j] for j in range(4)},
                      "d": [4, 5, 6, 7, 12, 13, 14, 15]}  # fmt: skip
    part = encode_batch(encoder, table.slice(5, 7), ("kernels", "trees"))
    np.testing.assert_array_equal(part, both[5:12])
    bad = table.slice(0, 1).set_column(0, "c0", [["oops"]])
    with pytest.raises(CellError, match=r"'oops' in row 1\)"):
        encode_batch(encoder, bad, ("kernels",))


def test_probabilities_are_those_of_the_scorer(fitted):
    """What a scorer calibrated are its own scores, before the threshold is taken off."""
    model, _, X = fitted

    class Calibrated(LinearScorer):
        def chances(self, scores):
            return np.column_stack([scores, scores - 1, scores + 1])

    scorer = model.scorer
    model.scorer = Calibrated(scorer.basis, scorer.coef)
    found = model.probability(model.score_encoded(X))
    np.testing.assert_allclose(found[:, 0], X.sum(axis=1))
    np.testing.assert_allclose(found[:, 2] - found[:, 1], 2.0)


def test_a_model_shows_what_its_card_says(fitted):
    model, _, _ = fitted
    assert dict(model._shown()) == {
        "columns": ("c0", "c1", "c2", "c3", "d"), "scorer": "LinearScorer", "threshold": 0.5
    }  # fmt: skip
    model.card = {"auc": {"value": 0.75}, "label": "y", "created": "today"}
    shown = dict(model._shown())
    assert (shown["auc"], shown["label"], shown["created"]) == (0.75, "y", "today")
