"""Tests of model/scoring."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from scipy import sparse

from pnuauc.exceptions import InputError
from pnuauc.io import (
    OutputChoice,
    read_table,
    score_file,
)
from pnuauc.io.columns import CellError
from pnuauc.io.sources import Batch
from pnuauc.model.scoring import ScoreSummary
from tests.model.conftest import model_of
from tests.typed_tables import FORMATS, TABLES, TYPES, frame_of
from tests.typed_tables import N as TYPED_ROWS
from tests.typed_tables import fitted as typed_model


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scored")
    table = TABLES["floats"]
    pa.parquet.write_table(table, folder / "in.parquet", row_group_size=7)
    return typed_model(table), folder, typed_model(table).score(table)


def output(scored, **choice):
    model, folder, _ = scored
    summary = score_file(
        model, folder / "in.parquet", folder / "out.csv", choice=OutputChoice(**choice)
    )
    return read_table(folder / "out.csv"), summary


def test_sorted_top_and_threshold(scored):
    scores = scored[2]
    order = np.argsort(-scores, kind="stable")
    whole, _ = output(scored, sort=True)
    np.testing.assert_allclose(whole.column("score").to_numpy(), scores[order])
    top, summary = output(scored, top=5)
    assert top.column("id").to_pylist() == [f"{k:08d}" for k in order[:5]]
    assert (summary.n_rows, summary.n_written) == (TYPED_ROWS, 5)
    cut = float(np.sort(scores)[40])
    above, _ = output(scored, threshold=cut)
    assert above.column("id").to_pylist() == [f"{k:08d}" for k in np.flatnonzero(scores >= cut)]
    for sort in (True, False):
        choice = OutputChoice(threshold=1e9, sort=sort, columns=["score"])
        model, folder, _ = scored
        summary = score_file(model, folder / "in.parquet", folder / "none.csv", choice=choice)
        assert summary.n_written == 0
        assert (folder / "none.csv").read_text().strip('"\n') == "score"


@pytest.mark.parametrize("choice", [{}, {"top": 5}, {"threshold": 0.0}, {"sort": True}])
def test_reasons_are_told_of_the_rows_that_are_written(scored, choice):
    """The first reason of each row: replacing its value by the mean moves the score so much."""
    model, folder, _ = scored
    table, _ = output(scored, reasons=1, **choice)
    whole = read_table(folder / "in.parquet")
    features = model.encoder.transform(whole)
    rows = {str(name): i for i, name in enumerate(whole.column("id").to_pylist())}
    assert table.num_rows
    for name, score, reason in zip(
        *(table.column(c).to_pylist() for c in ("id", "score", "reasons")), strict=True
    ):
        i = rows[str(name)]
        column, effect = reason.split(" = ")[0], float(reason.split("(")[-1].rstrip(")"))
        changes = {}
        for own, columns in model.encoder.groups_.items():
            changed = features[i].copy()
            changed[columns] = model.typical[columns]
            changes[own] = score - float(model.score_encoded(changed[None, :])[0])
        assert abs(changes[column]) == pytest.approx(max(map(abs, changes.values())), rel=1e-6)
        assert effect == pytest.approx(changes[column], rel=0.06, abs=1e-6)
        value = whole.column(column)[i].as_py()
        assert reason.startswith(f"{column} = {'(missing)' if value is None else f'{value:.6g}'}")


def test_columns_of_the_output(scored):
    table, _ = output(scored, columns=["score", "id"])
    assert table.column_names == ["score", "id"]
    with pytest.raises(InputError, match="no output column 'nope'; there are 'id', 'y', 'score'"):
        output(scored, columns=["nope"])


def test_a_model_without_probabilities_writes_none(scored):
    table, _ = output(scored)
    assert scored[0].probability(scored[2]) is None
    assert table.column_names == ["id", "y", "score", "percentile"]


def test_scores_to_a_stream_are_csv(scored):
    model, folder, _ = scored
    stream = io.BytesIO()
    score_file(model, folder / "in.parquet", stream, choice=OutputChoice(columns=["id", "score"]))
    lines = stream.getvalue().decode().splitlines()
    assert lines[0].replace('"', "") == "id,score"
    assert len(lines) == TYPED_ROWS + 1


def test_bad_cells_are_named_with_file_column_and_row(tmp_path):
    table = TABLES["floats"]
    model = typed_model(table)
    lines = frame_of(table).to_csv(index=False).splitlines()
    lines[42] = lines[42].replace(lines[42].split(",")[1], "oops")
    (tmp_path / "bad.csv").write_text("\n".join(lines))
    with pytest.raises(CellError, match=r"bad\.csv': Column 'x' holds text \('oops' in row 42\)"):
        score_file(model, tmp_path / "bad.csv", tmp_path / "out.csv")
    # a cell that arrow does not parse, but that says a number, is read
    lines[42] = lines[42].replace("oops", "+1.5")
    (tmp_path / "good.csv").write_text("\n".join(lines))
    score_file(model, tmp_path / "good.csv", tmp_path / "out.csv")
    assert read_table(tmp_path / "out.csv").num_rows == TYPED_ROWS


@pytest.fixture(scope="module")
def expected():
    """Scores of the typed table in memory, by type of column."""
    return {kind: typed_model(table).score(table) for kind, table in TABLES.items()}


@pytest.mark.parametrize("kind", TYPES)
def test_a_model_scores_every_format_alike(tmp_path, expected, kind):
    """Fitted on Parquet, scored on CSV and JSON lines: what a cell says counts, not its type."""
    model = typed_model(TABLES[kind])
    for form in ("csv", "json lines"):
        name, write = FORMATS[form]
        write(TABLES[kind], tmp_path / name)
        score_file(model, tmp_path / name, tmp_path / "out.csv")
        scores = read_table(tmp_path / "out.csv").column("score").to_numpy()
        loose = 2e-3 if kind == "half floats" else 1e-8
        np.testing.assert_allclose(scores, expected[kind], rtol=0, atol=loose)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".arrow"])
@pytest.mark.parametrize("source_ending", [".csv", ".parquet"])
def test_streamed_scores_equal_whole(tmp_path, payments_model, payments, source_ending, ending):
    source = tmp_path / f"in{source_ending}"
    if source_ending == ".csv":
        pa.csv.write_csv(payments, source)
    else:
        pa.parquet.write_table(payments, source, row_group_size=37)
    target = tmp_path / f"out{ending}"
    summary = score_file(payments_model, source, target)
    out = read_table(target)
    assert out.column_names == ["payment_id", "is_fraud", "score", "percentile"]
    np.testing.assert_allclose(
        out.column("score").to_numpy(), payments_model.score(payments), rtol=1e-9
    )
    assert out.column("payment_id").to_pylist() == payments.column("payment_id").to_pylist()
    assert summary.n_rows == len(payments)
    assert [p.name for p in sorted(tmp_path.iterdir())] == sorted([source.name, target.name])


def test_ids_keep_leading_zeros_and_late_floats_are_no_problem(tmp_path, payments_model, payments):
    n = len(payments)
    ids = [f"{i:05d}" for i in range(n)]
    amounts = [float(round(v)) for v in payments.column("amount").to_pylist()[:-1]] + [3.25]
    table = payments.set_column(0, "payment_id", [ids]).set_column(2, "amount", [amounts])
    pa.csv.write_csv(table, tmp_path / "in.csv")
    score_file(
        payments_model,
        tmp_path / "in.csv",
        tmp_path / "out.parquet",
        choice=OutputChoice(keep=["payment_id"]),
    )
    out = read_table(tmp_path / "out.parquet")
    assert out.column("payment_id").to_pylist() == ids
    np.testing.assert_allclose(
        out.column("score").to_numpy(), payments_model.score(table), rtol=1e-9
    )


def test_keep_and_row_numbers(tmp_path, payments_model, payments):
    table = payments.drop_columns(["payment_id", "is_fraud"])
    pa.parquet.write_table(table, tmp_path / "in.parquet")
    score_file(payments_model, tmp_path / "in.parquet", tmp_path / "out.csv")
    out = read_table(tmp_path / "out.csv")
    assert out.column("row").to_pylist() == list(range(1, len(table) + 1))
    score_file(
        payments_model,
        tmp_path / "in.parquet",
        tmp_path / "out.csv",
        choice=OutputChoice(keep=["shop", "amount"]),
    )
    assert read_table(tmp_path / "out.csv").column_names[:3] == ["row", "shop", "amount"]
    with pytest.raises(InputError, match="no column 'nope' to keep"):
        score_file(
            payments_model,
            tmp_path / "in.parquet",
            tmp_path / "out.csv",
            choice=OutputChoice(keep=["nope"]),
        )


def test_an_error_on_the_way_leaves_the_former_file(tmp_path, payments_model, payments):
    amounts = payments.column("amount").to_pylist()
    amounts[-1] = float("inf")
    pa.parquet.write_table(
        payments.set_column(2, "amount", [amounts]), tmp_path / "in.parquet", row_group_size=50
    )
    target = tmp_path / "out.csv"
    target.write_text("former")
    with pytest.raises(InputError, match=r"infinite value \(row 400\)"):
        score_file(payments_model, tmp_path / "in.parquet", target)
    assert target.read_text() == "former"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_summary_goes_on_over_several_tables(scored, tmp_path):
    model, folder, scores = scored
    total, told = ScoreSummary(), []
    for k in range(2):
        score_file(
            model, folder / "in.parquet", tmp_path / f"{k}.csv", tell=told.append, summary=total
        )
    assert total.n_rows == total.n_written == told[-1] == 2 * TYPED_ROWS
    assert total.n_positive == 2 * np.count_nonzero(scores > 0)
    assert (tmp_path / "0.csv").read_bytes() == (tmp_path / "1.csv").read_bytes()
    many = ScoreSummary()
    for k in range(300):
        many.add(np.zeros(1), {"w": {f"w{k}"}})
    assert len(many.new_categories["w"]) == 100


def test_kept_columns_have_the_type_they_had(file, tmp_path):
    """Of JSON lines the type that holds the values of all rows."""
    model = model_of(pa.table({"x": [1.0, 2.0, 4.0, 9.0]}), {"ids": ["i"]})
    pa.parquet.write_table(pa.table({"i": [7, 8], "x": [1.0, 2.0]}), tmp_path / "in.parquet")
    mixed = file('{"i": 7, "x": 1}\n{"i": "b", "x": 2}\n', "mixed.jsonl")
    whole = file('{"i": 7, "x": 1}\n{"i": 8, "x": 2}\n', "whole.jsonl")
    expected = {tmp_path / "in.parquet": [7, 8], mixed: ["7", "b"], whole: [7, 8]}
    for path, ids in expected.items():
        score_file(model, path, tmp_path / "out.parquet")
        assert read_table(tmp_path / "out.parquet").column("i").to_pylist() == ids


RNG = np.random.default_rng(12)


N = 90


@pytest.fixture
def table():
    return pa.table({"a": RNG.normal(size=N).round(3), "b": RNG.integers(0, 9, N)})


@pytest.mark.parametrize("name", ["row", "score", "percentile", "probability", "reasons"])
def test_a_kept_column_with_a_name_of_ours_is_refused(table, tmp_path, name):
    pa.parquet.write_table(table.append_column(name, [["x"] * N]), tmp_path / "in.parquet")
    model = model_of(table)
    choice = OutputChoice(keep=["a", name])
    with pytest.raises(InputError, match=f"has a column '{name}', the name of an output column"):
        score_file(model, tmp_path / "in.parquet", tmp_path / "out.csv", choice=choice)


def test_the_table_itself_is_no_output(table, tmp_path):
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="is the table itself"):
        score_file(model_of(table), tmp_path / "t.parquet", tmp_path / "t.parquet")
    with pytest.raises(InputError, match="Scores cannot be written"):
        score_file(model_of(table), tmp_path / "t.parquet", tmp_path / "t.xlsx")


class Parted:
    """A table in parts, as files have it: record batches, each with its name."""

    name = "rows of mine"

    def __init__(self, table, rows):
        self.table, self.rows, self.schema = table, rows, table.schema

    def select(self, columns):
        return Parted(self.table.select(columns), self.rows)

    def batches(self):
        first = 0
        for k, part in enumerate(self.table.to_batches(max_chunksize=self.rows)):
            yield Batch(part, f"part {k}", first)
            first += part.num_rows


def test_a_source_is_scored_as_the_table(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=50), "b": rng.normal(size=50), "i": np.arange(50) * 3})
    features = table.select(["a", "b"])
    model = model_of(features, {"ids": ["i"], "label": None})
    summary = score_file(model, Parted(table, 7), tmp_path / "out.csv")
    found = read_table(tmp_path / "out.csv")
    assert found.column_names == ["i", "score", "percentile"]
    np.testing.assert_allclose(found.column("score").to_numpy(), model.score(features))
    assert found.column("i").to_pylist() == (np.arange(50) * 3).tolist()
    assert (summary.n_rows, summary.kept) == (50, ("i",))
    words = pa.table({"a": ["1"] * 9 + ["oops"], "b": [1.0] * 10, "i": np.arange(10)})
    with pytest.raises(InputError, match=r"'part 2': Column 'a'.*'oops' in row 10\)"):
        score_file(model, Parted(words, 4), tmp_path / "o.csv")
    with pytest.raises(InputError, match="'rows of mine' has a header but no rows"):
        score_file(model, Parted(table.slice(0, 0), 4), tmp_path / "o.csv")


def test_a_model_of_a_table_does_not_score_a_matrix(tmp_path):
    table = pa.table({"a": RNG.normal(size=90), "b": RNG.integers(0, 9, 90)})
    path = tmp_path / "t.libsvm"
    path.write_text("1 1:1\n0 2:1\n")
    with pytest.raises(InputError, match="fitted on a table with named columns"):
        score_file(model_of(table), path, tmp_path / "out.csv")
    X = sparse.csr_matrix([[1.0, 0], [0, 1.0], [3.0, 2.0]])
    thin = model_of(X)
    score_file(thin, path, tmp_path / "out.csv")
    scores = read_table(tmp_path / "out.csv").column("score").to_numpy()
    np.testing.assert_allclose(scores, thin.score(sparse.csr_matrix([[1.0, 0], [0, 1.0]])))
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="fitted on a LIBSVM file"):
        score_file(thin, tmp_path / "t.parquet", tmp_path / "out.csv")
    ((reason,),) = thin.reasons(thin.encoder.transform(X[[2]]), 1)
    assert reason.column == "feature 2"  # 2 * 1 against 1 * 1
    assert reason.effect == pytest.approx(2.0)
    ((only,),) = thin.reasons(thin.encoder.transform(X[[2]]), 1, ["feature 1"])
    assert only.column == "feature 1"
