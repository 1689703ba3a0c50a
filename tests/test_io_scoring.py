"""Scoring a file in many batches, and one sentence for whatever goes wrong on the way."""

from __future__ import annotations

import errno
import io
import lzma
import os
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher

from pnuauc._basis import IdentityBasis
from pnuauc.exceptions import InputError
from pnuauc.io import OutputChoice, TableEncoder, TableModel, _text_files, read_table, score_file
from pnuauc.io._encoder import _levels
from pnuauc.io._encoding import text_hasher
from pnuauc.io._formats import ReadOptions, Source, find_source, told
from pnuauc.io._scoring import _columns_to_read, _may_be_written, _Path, _Sink
from pnuauc.io._together import _untouched, written_together
from pnuauc.io._writing import TableWriter, check_writable

RNG = np.random.default_rng(12)
N = 90


class Ranker:
    threshold_ = 0.5

    def __init__(self, width):
        self.basis_, self.coef_ = IdentityBasis.from_parts(width), np.arange(1.0, width + 1)


def model_of(table, card=None):
    encoder = TableEncoder().fit(table)
    X = encoder.transform(table)
    return TableModel.from_fitted(encoder, Ranker(X.shape[1]), X, card)


@pytest.fixture
def table():
    return pa.table({"a": RNG.normal(size=N).round(3), "b": RNG.integers(0, 9, N)})


@pytest.fixture
def in_batches(monkeypatch, table, tmp_path):
    """A CSV file that comes in batches of a few rows, and the model of its columns."""
    monkeypatch.setattr(_text_files, "_BLOCK_BYTES", 96)
    rows = zip(*(column.to_pylist() for column in table.columns))
    lines = ["i,a,b,y", *(f"{k:03d},{a},{b},{k % 2}" for k, (a, b) in enumerate(rows))]
    path = tmp_path / "in.csv"
    path.write_text("\n".join(lines) + "\n")
    return model_of(table, {"label": "y", "ids": ["i"]}), path, lines


def test_batches_are_scored_as_one_table(in_batches, table, tmp_path):
    model, path, _ = in_batches
    told_rows = []
    summary = score_file(model, path, tmp_path / "out.csv", tell=told_rows.append)
    found = read_table(tmp_path / "out.csv")
    assert found.column_names == ["i", "y", "score", "percentile"]
    scores = model.score(table)
    np.testing.assert_allclose(found.column("score").to_numpy(), scores)
    np.testing.assert_allclose(found.column("percentile"), model.percentile(scores), atol=6e-4)
    assert found.column("i").to_pylist() == [f"{k:03d}" for k in range(N)]
    assert (summary.n_rows, summary.n_written) == (N, N)
    assert summary.n_positive == int((scores > 0).sum())
    assert summary.kept == ("i", "y")
    assert len(told_rows) > 5
    assert told_rows[-1] == N
    assert told_rows == sorted(set(told_rows))


def test_rows_without_a_name_are_numbered_through_all_batches(in_batches, tmp_path):
    model, path, _ = in_batches
    model.card = {}
    score_file(model, path, tmp_path / "out.csv")
    assert read_table(tmp_path / "out.csv").column("row").to_pylist() == list(range(1, N + 1))
    top = score_file(model, path, tmp_path / "out.csv", choice=OutputChoice(top=4, reasons=1))
    found = read_table(tmp_path / "out.csv")
    scores = model.score(read_table(path))
    assert found.column("row").to_pylist() == (np.argsort(-scores)[:4] + 1).tolist()
    assert (top.n_rows, top.n_written) == (N, 4)
    assert all(" = " in reason for reason in found.column("reasons").to_pylist())


@pytest.mark.parametrize("row", [1, 47, N])
def test_a_bad_cell_is_named_by_its_row_in_the_file(in_batches, tmp_path, row):
    model, path, lines = in_batches
    cells = lines[row].split(",")
    lines[row] = ",".join([cells[0], "oops", *cells[2:]])
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=rf"in\.csv': Column 'a'.*'oops' in row {row}\)"):
        score_file(model, path, tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_columns_that_are_read_and_kept(in_batches):
    model, path, _ = in_batches
    rows = _Path(path, None)
    assert _columns_to_read(model, rows, None) == (["i", "y"], ["i", "y", "a", "b"])
    assert _columns_to_read(model, rows, ["b", "i", "b"]) == (["b", "i"], ["b", "i", "a"])
    assert _columns_to_read(model, rows, []) == ([], ["a", "b"])
    with pytest.raises(InputError, match="has no column 'q' to keep"):
        _columns_to_read(model, rows, ["i", "q"])


@pytest.mark.parametrize("name", ["row", "score", "percentile", "probability", "reasons"])
def test_a_kept_column_with_a_name_of_ours_is_refused(table, tmp_path, name):
    pa.parquet.write_table(table.append_column(name, [["x"] * N]), tmp_path / "in.parquet")
    model = model_of(table)
    choice = OutputChoice(keep=["a", name])
    with pytest.raises(InputError, match=f"has a column '{name}', the name of an output column"):
        score_file(model, tmp_path / "in.parquet", tmp_path / "out.csv", choice=choice)


def test_plain_numbers_alone_are_parsed_by_the_reader(tmp_path):
    """Kept columns come as they are written; so do numbers of a form, and lenient ones."""
    cells = {
        "plain": ["1", "2.5", "4"] * 20, "comma": ["1,5", "2,5", "3"] * 20,
        "odd": ["1", "2", "?", *map(str, range(57))], "kept": ["1.0", "2.0", "5.0"] * 20,
    }  # fmt: skip
    table = pa.table(cells)
    model = model_of(table)
    path = tmp_path / "in.csv"
    lines = [";".join(cells), *(";".join(row) for row in zip(*cells.values()))]
    path.write_text("\n".join(lines) + "\n")
    rows = _Path(path, ReadOptions(name="the table"))
    assert (rows.name, rows.kind, rows.names()) == ("the table", "csv", list(cells))
    assert _Path(path, None).name == str(path)
    (batch, name, first), *rest = rows.batches(model, list(cells), ["kept"])
    kinds = {field.name: str(field.type) for field in batch.schema}
    assert kinds == {"plain": "double", "comma": "string", "odd": "string", "kept": "string"}
    assert (name, first, rest) == ("the table", 0, [])


def test_a_model_of_a_table_does_not_score_a_matrix(table, tmp_path):
    path = tmp_path / "t.libsvm"
    path.write_text("1 1:1\n0 2:1\n")
    with pytest.raises(InputError, match="fitted on a table with named columns"):
        score_file(model_of(table), path, tmp_path / "out.csv")
    X = sparse.csr_matrix([[1.0, 0], [0, 1.0], [3.0, 2.0]])
    encoder = TableEncoder().fit(X)
    thin = TableModel.from_fitted(encoder, Ranker(2), encoder.transform(X))
    score_file(thin, path, tmp_path / "out.csv")
    scores = read_table(tmp_path / "out.csv").column("score").to_numpy()
    np.testing.assert_allclose(scores, thin.score(sparse.csr_matrix([[1.0, 0], [0, 1.0]])))
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="fitted on a LIBSVM file"):
        score_file(thin, tmp_path / "t.parquet", tmp_path / "out.csv")
    ((reason,),) = thin.reasons(encoder.transform(X[[2]]), 1)
    assert reason.column == "feature 2"  # 2 * 1 against 1 * 1
    assert reason.effect == pytest.approx(2.0)
    ((only,),) = thin.reasons(encoder.transform(X[[2]]), 1, ["feature 1"])
    assert only.column == "feature 1"


def test_the_table_itself_is_no_output(table, tmp_path):
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="is the table itself"):
        score_file(model_of(table), tmp_path / "t.parquet", tmp_path / "t.parquet")
    with pytest.raises(InputError, match="Scores cannot be written"):
        score_file(model_of(table), tmp_path / "t.parquet", tmp_path / "t.xlsx")


def test_reasons_of_some_columns(table):
    model = model_of(table)
    X = model.encoder.transform(table)
    every = model.reasons(X[:3], 2)
    assert [{r.column for r in row} for row in every] == [{"a", "b"}] * 3
    for row, x in zip(every, X):
        effects = {r.column: r.effect for r in row}
        assert effects == pytest.approx(
            {"a": x[0] - X[:, 0].mean(), "b": 2 * (x[1] - X[:, 1].mean())}
        )
        assert abs(row[0].effect) >= abs(row[1].effect)
    assert [[r.column for r in row] for row in model.reasons(X[:2], 2, ["b"])] == [["b"]] * 2
    model.typical = None
    with pytest.raises(InputError, match="holds no typical row"):
        model.reasons(X[:1])


# ---------------------------------------------------------------------------- sentences


def source_at(path, **options):
    return Source(path, "csv", ReadOptions(**options))


@pytest.mark.parametrize(
    ("error", "message", "about"),
    [
        (LookupError("unknown encoding: x"), "Unknown encoding 'latin-9'; try", "encoding"),
        (UnicodeError("'utf-8' codec can't"), "is not UTF-8 text", "encoding"),
        (pa.ArrowInvalid("invalid UTF8 data"), "is not UTF-8 text", "encoding"),
        (pa.ArrowInvalid("Expected 3 columns, got 2: x"), "rows of unequal length", "delimiter"),
        (pa.ArrowInvalid("Empty CSV file"), "is empty: it has no header", None),
        (pa.ArrowInvalid("cannot infer types"), "is empty: it has no header", None),
        (pa.ArrowInvalid("Expected 3.\nmore"), r"cannot be read as CSV \(Expected 3\)", None),
        (pa.ArrowInvalid(""), r"cannot be read as CSV \(unreadable\)", None),
        (OSError("no reason"), r"cannot be read as CSV \(no reason\)", None),
        (OSError(errno.EINVAL, "beyond"), "cannot be read as CSV", None),
        (zipfile.BadZipFile("bad"), "cannot be read as CSV", None),
        (zlib.error("bad"), "cannot be read as CSV", None),
        (lzma.LZMAError("bad"), "cannot be read as CSV", None),
        (EOFError("cut"), "cannot be read as CSV", None),
        (MemoryError(), "needs more memory than there is", None),
        (InputError("as it is"), "as it is", None),
    ],
)  # fmt: skip
def test_what_a_reader_says_becomes_a_sentence(tmp_path, error, message, about):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    with (
        pytest.raises(InputError, match=message) as caught,
        told(source_at(path, encoding="latin-9")),
    ):
        raise error
    assert caught.value.about == about


def test_what_the_system_says_of_a_file_that_is_there_is_handed_on(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    with pytest.raises(PermissionError), told(source_at(path)):
        raise PermissionError(errno.EACCES, "not yours")
    path.unlink()
    with pytest.raises(InputError, match="cannot be read"), told(source_at(path)):
        raise FileNotFoundError(errno.ENOENT, "gone")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.dat", b"PAR1", r"is a Parquet file; name it with the ending \.parquet\."),
        ("t.dat", b"%PDF", r"is a PDF\."), ("t.dat", b"a,b", "'.dat' is not an ending that"),
        ("t", b"a,b", "has no ending that names a format"),
        ("t.csv", b"\x1f\x8b", r"read as CSV, but it is compressed by gzip; name it.*\.gz\."),
        ("t.csv", b"  <!DOCTYPE html>", "it is a web page or XML"),
        ("t.csv", b" " * 190 + b"<html>", "it is a web page or XML"),
        ("t.parquet", b"BZh9", r"named as Parquet, but it is compressed by bzip2\?"),
        ("t.parquet", b"a,b\n", "but its content is not; is it CSV under a wrong name"),
        ("t.xlsx", b"a,b\n", "named as Excel, but its content is not"),
        ("t.csv", b"", "is empty"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_what_it_says(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        find_source(path)


def test_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a folder; name a file"):
        check_writable(tmp_path)
    with pytest.raises(InputError, match="There is no folder"):
        check_writable(tmp_path / "none" / "t.csv")
    with pytest.raises(InputError, match="is a file, not a folder"):
        check_writable(tmp_path / "file" / "t.csv")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        check_writable(tmp_path / "pipe")
    for good in ("file", "new"):
        assert check_writable(tmp_path / good) == tmp_path / good


def test_what_was_left_as_it_was_is_named(tmp_path):
    error = OSError(errno.ENOSPC, "No space")
    one, two = tmp_path / "a", tmp_path / "b"
    assert _untouched(error, [one]) == (
        f"Writing failed (No space): nothing was replaced, '{one}' is as it was."
    )
    assert _untouched(error, [one, two]).endswith(f"'{one}' and '{two}' are as they were.")
    assert _untouched(error, [one, two, one]).endswith(
        f"'{one}', '{two}' and '{one}' are as they were."
    )
    assert "(plain)" in _untouched(OSError("plain"), [one])
    assert "(OSError)" in _untouched(OSError(), [one])


def test_files_get_their_names_together_or_not_at_all(tmp_path):
    one, two = tmp_path / "a", tmp_path / "b"
    one.write_text("old")

    def refuse():
        raise ValueError("changed meanwhile")

    with pytest.raises(ValueError, match="changed"), written_together([one, two], refuse) as made:
        made[0].write(b"new")
    assert (one.read_text(), two.exists()) == ("old", False)
    with written_together([one, two]) as streams:
        for k, stream in enumerate(streams):
            stream.write(b"new %d" % k)
    assert (one.read_text(), two.read_text()) == ("new 0", "new 1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


# ---------------------------------------------------------------------------- ties


@pytest.mark.parametrize("top", [1, 100, 700, 999])
def test_rows_of_equal_scores_come_in_the_order_of_the_file(top):
    """1,000 rows with three different scores: a sort that is not stable would mix them."""
    scores = np.random.default_rng(0).integers(0, 3, 1000).astype(float)
    expected = sorted(range(1000), key=lambda i: (-scores[i], i))[:top]
    assert _may_be_written(scores, OutputChoice(top=top)).tolist() == sorted(expected)
    stream = io.BytesIO()
    sink = _Sink(TableWriter(stream, "t.csv"), OutputChoice(top=top))
    for start in range(0, 1000, 250):
        rows = np.arange(start, start + 250)
        sink.put(pa.RecordBatch.from_pydict({"row": rows, "score": scores[rows]}))
    assert sink.close() == top
    lines = stream.getvalue().decode().splitlines()[1:]
    assert [int(line.split(",")[0]) for line in lines] == expected


def test_categories_of_equal_frequency_are_told_apart_by_their_names():
    names = [f"w{k:03d}" for k in range(200)]
    texts = np.array(names * 3, dtype=object)[np.random.default_rng(0).permutation(600)]
    kept, others, ranks = _levels(texts, 30)
    assert kept == tuple(names[-29:])  # the last of those that tie
    assert others == tuple(names[:-29])
    assert ranks.tolist() == list(range(29))


# ---------------------------------------------------------------------------- text


def letter_triples(text):
    """Of every word, with a blank before and behind it."""
    padded = [f" {word} " for word in text.lower().split()]
    return [word[i : i + 3] for word in padded for i in range(len(word) - 2)]


def test_texts_are_their_letter_triples_in_32_columns_of_length_one():
    texts = ["Hamburg", "hamburgs", "New York City", "a", "ab ab ab", "zürich", "(missing)"]
    expected = FeatureHasher(32, input_type="string").transform(map(letter_triples, texts))
    expected = expected.toarray()
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(text_hasher().transform(texts).toarray(), expected)
    near, far = expected[0] @ expected[1], expected[0] @ expected[2]
    assert near > 0.7 > 0.4 > abs(far)
