"""Where files and stored models begin to be refused: one value on either side of every bound."""

from __future__ import annotations

import io
import os
import threading
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from pnuauc._basis import GaussianBasis, IdentityBasis, LinearKernelBasis, MultiscaleBasis
from pnuauc._stored import Parts
from pnuauc.exceptions import InputError, ModelFileError
from pnuauc.io import TableEncoder, _container, _formats, _workbook, read_table
from pnuauc.io._formats import ReadOptions, detect_format, find_source, spooled
from pnuauc.io._frames import check_names
from pnuauc.io._model import TableModel, _means, grouped_columns
from pnuauc.io._modelfile import _check_card, _without_columns
from pnuauc.io._parts import LinearScorer, read_scorer
from pnuauc.io._reasons import cell_text, spell_reasons
from pnuauc.io._scoring import _output

ROOT = Path(__file__).parents[1]
RNG = np.random.default_rng(4)
CENTERS = RNG.normal(size=(3, 4))
THIN = sparse.csr_matrix(np.where(RNG.random((3, 4)) < 0.5, 1.0, 0.0) + np.eye(3, 4))


# ---------------------------------------------------------------------------- stored scorers


def scorers():
    yield LinearScorer(IdentityBasis.from_parts(4), RNG.normal(size=4))
    for centers in (CENTERS, THIN):
        yield LinearScorer(LinearKernelBasis.from_parts(centers), RNG.normal(size=3))
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


def test_scores_are_sums_over_centres():
    X, coef = RNG.normal(size=(5, 4)), np.array([1.0, -2.0, 0.5])
    squared = ((X[:, None, :] - CENTERS) ** 2).sum(axis=2)
    gaussian = LinearScorer(GaussianBasis.from_parts(CENTERS, 1.5), coef)
    np.testing.assert_allclose(gaussian.score(X), np.exp(-squared / (2 * 1.5**2)) @ coef)
    linear = LinearScorer(LinearKernelBasis.from_parts(CENTERS), coef)
    np.testing.assert_allclose(linear.score(X), X @ CENTERS.T @ coef)


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
    spec = {"kind": "linear", "basis": "linear", "centers": "sparse"}
    arrays = {"coef": np.ones(3), "centers_data": np.ones(4),
              "centers_indptr": np.array([0, 1, 2, 4]),
              "centers_indices": np.array([0, 1, 2, 3])}  # fmt: skip
    made = read_scorer(Parts(spec, arrays), {"kernels": 4})
    assert made.basis.centers_.toarray().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]]
    bent = arrays | {k: np.array(v) for k, v in change.items()}
    with pytest.raises(ModelFileError):
        read_scorer(Parts(spec, bent), {"kernels": 4})


# ---------------------------------------------------------------------------- models


def test_what_is_typical_is_the_mean_of_what_is_there():
    X = np.array([[1.0, np.nan, np.nan], [3.0, 4.0, np.nan]])
    assert _means(X).tolist() == [2.0, 4.0, 0.0]


class Ranker:
    threshold_ = 0.25

    def __init__(self, basis, coef):
        self.basis_, self.coef_ = basis, coef


def test_a_model_scores_places_and_explains():
    """One column: the score is 2 x - 1/4, and a typical row is the mean."""
    X = np.linspace(-2, 2, 401)[:, None]
    encoder = TableEncoder().fit(X)
    encoded = encoder.transform(X)
    ranker = Ranker(IdentityBasis.from_parts(1), np.array([2.0]))
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
    assert grouped_columns(encoder, ("kernels", "trees")) == {"x0": [0, 1]}
    with pytest.raises(InputError, match="score of row 2 is too large"):
        model.score_encoded(np.array([[1.0], [1e308 * 1.7]]))


def test_rows_of_a_batch_are_numbered_from_one():
    table = pa.table({"x": ["1", "2", "4"]})
    encoder = TableEncoder().fit(table)
    model = TableModel.from_fitted(
        encoder, Ranker(IdentityBasis.from_parts(1), np.ones(1)), encoder.transform(table)
    )
    bad = pa.table({"x": ["1", "two"]})
    with pytest.raises(InputError, match=r"'two' in row 2\)"):
        model.encode(bad)
    with pytest.raises(InputError, match=r"'two' in row 12\)"):
        model.encode(bad, 10)


@pytest.mark.parametrize("kept", [{}, {"id": pa.array(["a", "b"])}])
def test_scores_percentiles_and_probabilities_side_by_side(kept):
    class Calibrated:
        def percentile(self, scores):
            return 100 / 3 + scores

        def probability(self, scores):
            return np.column_stack([scores / 10, scores / 20, scores / 5])

    found = _output(Calibrated(), kept, np.array([1.0, 2.0]), 7).to_pydict()
    first = {"id": ["a", "b"]} if kept else {"row": [8, 9]}
    assert found == first | {
        "score": [1.0, 2.0], "percentile": [34.333, 35.333], "probability": [0.1, 0.2],
        "probability_low": [0.05, 0.1], "probability_high": [0.2, 0.4],
    }  # fmt: skip


def test_names_that_occur_twice_are_shown_up_to_five():
    with pytest.raises(InputError, match="named 'a', 'b', 'c', 'd', 'e'; rename"):
        check_names([*"abcdefabcdef"])
    check_names([*"abc"])


def test_views_differ_where_one_column_has_many_categories():
    few, many = [*"ab" * 20], [f"w{'x' * (k % 12)}" for k in range(40)]
    for columns, same in (({"a": few}, True), ({"a": many}, False), ({"a": few, "b": many}, False)):
        assert TableEncoder().fit(pa.table(columns)).encoding_.same_for_trees is same


def test_reasons_in_words():
    class Given:
        def __init__(self, column, value, effect):
            self.column, self.value, self.effect = column, value, effect

    told = spell_reasons([Given("a", 0.1, 1.234), Given("b", 0.2, -0.5)], {"a": "x", "b": None}.get)
    assert told == "a = x (+1.2), b = (missing) (-0.5)"
    assert spell_reasons([Given("feature 3", 0.25, 2.0)], None) == "feature 3 = 0.25 (+2)"
    assert [cell_text(v) for v in (None, 1 / 3, 7, "x")] == ["", "0.333333", "7", "x"]


@pytest.mark.parametrize(
    ("card", "good"),
    [
        ({}, True), ({"label": "y", "ids": ["i"]}, True), ({"label": 3}, False),
        ({"ids": "i"}, False), ({"ids": ["i", 3]}, False), ({"label": "x"}, False),
        ({"ids": ["i", "x"]}, False), ({"table": []}, False), ({"table": {"n_encoded": 2}}, False),
        ({"table": {"n_encoded": 1}}, True), ({"table": {}}, True), ({"label": None}, True),
    ],
)  # fmt: skip
def test_cards_that_agree_with_the_encoder(card, good):
    encoder = TableEncoder().fit(pa.table({"x": [1.0, 2.0, 4.0]}))
    if not good:
        with pytest.raises(ModelFileError, match="card"):
            _check_card(dict(card), encoder)
        return
    found = _check_card(dict(card), encoder)
    if card.get("table"):
        assert [c["name"] for c in found["table"].pop("columns")] == ["x"]
    assert found == card
    assert _without_columns({"table": {"columns": [1], "n": 2}}) == {"table": {"n": 2}}


# ---------------------------------------------------------------------------- archives, workbooks


def archive(path, members):
    with zipfile.ZipFile(path, "w") as made:
        for name, text in members.items():
            made.writestr(name, text)
    return path


@pytest.mark.parametrize(
    ("members", "rows"),
    [
        ({"a.csv": "x,y\n1,2\n"}, 1), ({"folder/": "", "folder/a.csv": "x,y\n1,2\n3,4\n"}, 2),
        ({"a.csv": "x,y\n1,2\n", ".hidden": "?"}, 1),
        ({"a.csv": "x,y\n1,2\n", "__MACOSX/a": "?"}, 1),
        ({"a.csv": "x\n1\n", "b.csv": "x\n1\n"}, None), ({}, None), ({"a.dat": "x\n1\n"}, None),
        ({"a.tsv": "x\ty\n1\t2\n"}, 1),
    ],
)  # fmt: skip
def test_the_one_table_in_an_archive(tmp_path, members, rows):
    path = archive(tmp_path / "t.zip", members)
    if rows is None:
        with pytest.raises(InputError):
            read_table(path)
    else:
        found = read_table(path)
        assert (found.num_rows, found.column_names) == (rows, ["x", "y"])


def test_encrypted_members_are_told(tmp_path):
    path = archive(tmp_path / "t.zip", {"a.csv": "x\n1\n"})
    data = bytearray(path.read_bytes())
    for start in (data.index(b"PK\x03\x04") + 6, data.index(b"PK\x01\x02") + 8):
        data[start] |= 1
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="is encrypted"):
        read_table(path)


def test_workbooks_may_unpack_to_so_much(monkeypatch):
    stream = io.BytesIO()
    archive(stream, {"a.txt": "x" * 1000, "b.txt": "y" * 500})
    content = stream.getvalue()
    monkeypatch.setattr(_workbook, "_MOST_TIMES", 2)
    monkeypatch.setattr(_workbook, "_FREE_BYTES", 1500 - 2 * len(content))
    assert _workbook._checked_size(content, "t") == 1500
    monkeypatch.setattr(_workbook, "_FREE_BYTES", 1499 - 2 * len(content))
    with pytest.raises(InputError, match="unpacks to"):
        _workbook._checked_size(content, "t")


@pytest.mark.parametrize(
    ("rows", "limits", "good"),
    [
        ([(1, 2), (3, 4)], {"most": 4}, True), ([(1, 2), (3, 4)], {"most": 3}, False),
        ([(1,), (), (2,)], {"most": 2}, True), ([(1,), (2, 3)], {"most": 3}, False),
        ([(1,)] * 3, {"rows": 3}, True), ([(1,)] * 3, {"rows": 2}, False),
        ([(1, 2, 3)], {"columns": 3}, True), ([(1, 2, 3)], {"columns": 2}, False),
    ],
)  # fmt: skip
def test_the_rectangle_of_a_sheet_is_bounded(monkeypatch, rows, limits, good):
    monkeypatch.setattr(_workbook, "_MAX_ROWS", limits.get("rows", 100))
    monkeypatch.setattr(_workbook, "_MAX_COLUMNS", limits.get("columns", 100))
    bounded = _workbook._bounded(iter(rows), limits.get("most", 1000), "t")
    if good:
        assert list(bounded) == rows
    else:
        with pytest.raises(InputError, match="claims"):
            list(bounded)


# ---------------------------------------------------------------------------- which format


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.csv", "csv"), ("a.CSV.GZ", "csv"), ("a.b.tsv", "tsv"), ("a.zip", "zip"),
     ("a.json", "jsonl"),
     ("a.csv.zip", "csv"), ("a.xlsm", "excel"), ("a.svm.bz2", "libsvm")],
)  # fmt: skip
def test_formats_by_ending(name, kind):
    assert detect_format(name) == kind
    assert detect_format(name, ReadOptions(format="tsv")) == "tsv"
    with pytest.raises(InputError, match="no format 'xml'"):
        detect_format(name, ReadOptions(format="xml"))
    with pytest.raises(InputError, match="not an ending that names a format"):
        detect_format("a.gz.dat")


@pytest.mark.parametrize(
    ("content", "options", "encoding"),
    [
        (b"\xff\xfea\0", {}, "utf-16"), (b"\xfe\xff\0a", {}, "utf-16"), (b"abc", {}, "utf8"),
        (b"\xff\xfe\0\0a\0\0\0", {}, "utf-32"), (b"abc", {"encoding": "latin-1"}, "latin-1"),
        (b"\xff\xfea\0", {"encoding": "latin-1"}, "latin-1"),
        (b"abc", {"encoding": "UTF-8"}, "utf8"),
        (b"a" * 700 + b"\0" * 300, {}, "utf8"), (b"a" * 699 + b"\0" * 301, {}, None),
    ],
)  # fmt: skip
def test_encodings_by_their_mark(tmp_path, content, options, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    source = find_source(path, ReadOptions(**options))
    if encoding is None:
        with pytest.raises(InputError, match="UTF-16 text without a mark"):
            source.encoding(source.head())
    else:
        assert source.encoding(source.head()) == encoding
    assert source.head(2) == content[:2]


def test_pipes_are_copied_and_files_are_not(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    with spooled(path) as (where, options):
        assert (where, options) == (path, ReadOptions())
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"a\tb\n1\t2\n" * 3))
    writer.start()
    with spooled(pipe, ReadOptions(format="tsv")) as (where, options):
        assert where.read_bytes() == b"a\tb\n1\t2\n" * 3
        assert (options.format, options.name) == ("tsv", str(pipe))
    writer.join()
    assert not where.exists()


def test_a_pipe_that_nobody_writes_to_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(_formats, "_PATIENCE", 0.05)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # a writer that holds the pipe open and says nothing
    handle = os.open(pipe, os.O_RDWR)
    try:
        with pytest.raises(InputError, match="no program writes to"), spooled(pipe):
            pass
    finally:
        os.close(handle)


def test_bounds_are_those_that_are_promised():
    """docs/security.md says what a file from anyone can cost."""
    page = " ".join((ROOT / "docs" / "security.md").read_text(encoding="utf-8").split())
    manifest = f"at most {_container.MAX_MANIFEST >> 20} MB, {_container.MAX_DEPTH} levels and "
    assert f"{manifest}{_container.MAX_VALUES:,} values" in page
    assert f"a file may have {_container.MAX_FILE >> 20} MB" in page
    assert f"(the first {_workbook._FREE_BYTES >> 20} MB are" in page
    assert ("more than a hundred times its size" in page) is (_workbook._MOST_TIMES == 100)
    assert f"version of the format ({_container.FORMAT_VERSION})" in page
    for whole in (_container.MAX_MANIFEST, _container.MAX_FILE, _workbook._FREE_BYTES):
        assert whole % 2**20 == 0
    assert (_workbook._MAX_ROWS, _workbook._MAX_COLUMNS) == (1_048_576, 16_384)  # of Excel itself
