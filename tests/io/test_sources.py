"""Tests of io/sources."""

from __future__ import annotations

import datetime
import pickle
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pnuauc import AUCClassifierCV
from pnuauc import engines as _parts
from pnuauc.committee import AutoAUCClassifier
from pnuauc.core.basis import MultiscaleBasis
from pnuauc.core.rows import fold_of, matrix_keys, shuffled
from pnuauc.engines import FileParts, Job
from pnuauc.exceptions import InputError
from pnuauc.io.draw import AllUnlabeled, RowKeys, draw_rows, table_keys
from pnuauc.io.sources import FileSource, MemorySource
from pnuauc.labels import Roles

COLUMNS = ("x0", "x1", "x2")


class Pickling(MemorySource):
    """Ships every function as an engine would, and merges neighbours first, as a tree does."""

    def map(self, function):
        return super().map(pickle.loads(pickle.dumps(function)))

    def reduce(self, summarise, merge, zero):
        merge = pickle.loads(pickle.dumps(merge))
        found = list(self.map(summarise))
        while len(found) > 1:
            pairs = [found[i : i + 2] for i in range(0, len(found), 2)]
            found = [pair[0] if len(pair) == 1 else merge(*pair) for pair in pairs]
        return merge(zero, found[0]) if found else zero


@dataclass(frozen=True)
class Codes:
    def __call__(self, table):
        return table.column("y").to_numpy(zero_copy_only=False).astype(np.int8)


@dataclass(frozen=True)
class Matrix:
    def __call__(self, batch):
        columns = [batch.table.column(c).to_numpy(zero_copy_only=False) for c in COLUMNS]
        return np.column_stack(columns), None


def a_table(n=900, n_labeled=60, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.random(n) < 0.3
    X = rng.standard_normal((n, 3)) + hidden[:, None]
    y = np.full(n, -1)
    y[:n_labeled] = hidden[:n_labeled]
    return pa.table({**{c: X[:, j] for j, c in enumerate(COLUMNS)}, "y": y})


def parts_of(table, sizes, folder):
    """The table in files, one a size, and the rest in one more."""
    folder.mkdir()
    start = 0
    for i, size in enumerate([*sizes, table.num_rows]):
        pq.write_table(table.slice(start, size), folder / f"{i:03}.parquet", row_group_size=97)
        start += size
    return FileSource.open([folder])


def shuffled_rows(table, seed):
    return table.take(np.random.default_rng(seed).permutation(table.num_rows))


def test_keys_go_by_what_cells_say():
    when = datetime.datetime(2024, 1, 31, 12, 0, 5, 500_000)
    typed = pa.table(
        {
            "a": [1.0, 2.5, None, -0.0, float("nan")],
            "b": pa.array([1, 2, None, 2**60 + 1, 2**53 + 1], pa.int64()),
            "c": ["x", "007", None, "é", "7"],
            "d": pa.array([when, datetime.datetime(2024, 1, 31), None, when, when]),
            "e": [True, False, None, True, False],
        }
    )
    written = pa.table(
        {
            "a": ["1", "2.50", "NA", "0", ""],
            "b": ["1.0", "+2", "", str(2**60 + 1), str(2**53 + 1)],
            "c": [" x", "007", "null", "é ", "7.0"],
            "d": ["2024-01-31T12:00:05.5", "2024-01-31", "", *["2024-01-31 12:00:05.500"] * 2],
            "e": ["True", "FALSE", "", "true", "false"],
        }
    )
    np.testing.assert_array_equal(table_keys(typed), table_keys(written))
    assert len(set(table_keys(typed.select(["b"])).tolist())) == 5
    coded = typed.set_column(2, "c", typed.column("c").dictionary_encode())
    np.testing.assert_array_equal(table_keys(typed), table_keys(coded))


def test_keys_of_matrix_table_and_lists_agree():
    X = np.random.default_rng(0).standard_normal((50_000, 3)).astype(np.float32)
    X[:5] = [[0, -0.0, np.nan]] * 5
    table = pa.table({f"x{j}": X[:, j] for j in range(3)})
    lists = pa.table({"f": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3)})
    keys = matrix_keys(X)
    np.testing.assert_array_equal(keys, table_keys(table))
    np.testing.assert_array_equal(keys[5:], table_keys(lists)[5:])
    np.testing.assert_array_equal(keys, matrix_keys(X.astype(np.float64)))
    assert len(np.unique(keys)) == len(X) - 4, "identical rows have one key, others do not"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=8), min_size=2, max_size=6, unique=True))
def test_keys_of_texts_do_not_depend_on_their_neighbours(texts):
    alone = [int(table_keys(pa.table({"a": [text]}))[0]) for text in texts]
    together = table_keys(pa.table({"a": pa.chunked_array([texts[:1], texts[1:]])}))
    assert together.tolist() == alone


@pytest.mark.parametrize("n_folds", [2, 5])
def test_keys_are_even(n_folds):
    keys = table_keys(pa.table({"id": np.arange(100_000)}))
    assert len(np.unique(keys)) == 100_000
    sizes = np.bincount(fold_of(keys, n_folds), minlength=n_folds)
    # five standard deviations of a fair draw
    assert np.abs(sizes - 100_000 / n_folds).max() < 5 * np.sqrt(100_000 / n_folds)
    smallest = np.sort(keys)[:1000]
    inside = np.bincount(fold_of(smallest, n_folds), minlength=n_folds)
    assert np.abs(inside - 1000 / n_folds).max() < 5 * np.sqrt(1000 / n_folds)


def drawn_of(source, at_most, seed=3):
    return draw_rows(source, RowKeys(COLUMNS, seed), Codes(), at_most, 840)


@pytest.mark.parametrize("at_most", [0, 1, 50, 839, 840, 5000])
def test_a_draw_is_the_smallest_keys_however_cut(at_most, tmp_path):
    table = a_table()
    keys = RowKeys(COLUMNS, 3).order(table)
    unlabeled = np.flatnonzero(table.column("y").to_numpy() == -1)
    expected = np.sort(np.sort(keys[unlabeled])[:at_most])
    whole = drawn_of(MemorySource(table), at_most)
    np.testing.assert_array_equal(whole.order[whole.codes == -1], expected)
    assert (np.diff(whole.order.astype(object)) >= 0).all()
    assert int((whole.codes >= 0).sum()) == 60
    np.testing.assert_array_equal(table.take(whole.row).to_pandas(), whole.table.to_pandas())
    cuts = [
        Pickling(table, batch_rows=64),
        MemorySource(shuffled_rows(table, 1), batch_rows=7, n_threads=2),
        parts_of(shuffled_rows(table, 2), [1, 300, 5], tmp_path / "cut"),
    ]
    for source in cuts:
        other = drawn_of(source, at_most)
        assert other.table.equals(whole.table)
        np.testing.assert_array_equal(other.codes, whole.codes)


def test_rows_of_one_key_are_drawn_together_where_they_are_few():
    """Ids name rows: all rows of an id come, or none does, but for the last one."""
    table = pa.concat_tables([a_table(6000, 0)] * 2)
    keys = RowKeys(COLUMNS, named=True)
    drawn = draw_rows(MemorySource(table, batch_rows=999), keys, Codes(), 1001, 12_000)
    sizes = np.unique(drawn.key, return_counts=True)[1]
    assert len(drawn) == 1001
    assert sorted(sizes.tolist()) == [1, *[2] * 500]
    other = draw_rows(MemorySource(table), RowKeys(COLUMNS, 1, named=True), Codes(), 1001, 12_000)
    assert not other.table.equals(drawn.table)


@pytest.mark.parametrize("n_kinds", [1, 7, 300])
def test_rows_that_occur_often_are_drawn_by_their_share(n_kinds, tmp_path):
    """A table of few kinds of rows among others: each kind comes in proportion."""
    rng = np.random.default_rng(0)
    n, at_most = 30_000, 3000
    kind = rng.choice(n_kinds, n)
    X = np.column_stack([kind, kind % 2, np.zeros(n)]).astype(float)
    X[: n // 3] = rng.standard_normal((n // 3, 3))  # a third are like no other
    names = dict(zip(COLUMNS, X.T, strict=True))
    table = pa.table({**names, "y": np.where(np.arange(n) < 10, 1, -1)})
    drawn = draw_rows(MemorySource(table), RowKeys(COLUMNS), Codes(), at_most, n - 10)
    assert int((drawn.codes == -1).sum()) == at_most
    common = drawn.table.column("x2").to_numpy() == 0.0
    found = np.bincount(drawn.table.column("x0").to_numpy()[common].astype(int), minlength=n_kinds)
    expected = np.bincount(kind[n // 3 :], minlength=n_kinds) * at_most / n
    # five standard deviations of a fair draw
    assert (np.abs(found - expected) < 5 * np.sqrt(expected) + 1).all()
    for source in (
        Pickling(table, batch_rows=1000),
        parts_of(shuffled_rows(table, 1), [3, 9000], tmp_path / "cut"),
    ):
        other = draw_rows(source, RowKeys(COLUMNS), Codes(), at_most, n - 10)
        assert other.table.equals(drawn.table)
        np.testing.assert_array_equal(other.key, drawn.key)


def fitted_on(source, estimator, at_most=200):
    keys = RowKeys(COLUMNS, 0)
    drawn = draw_rows(source, keys, Codes(), at_most, 840)
    X = np.column_stack([drawn.table.column(c).to_numpy() for c in COLUMNS])
    unlabeled = drawn.key[drawn.codes == -1]
    everything = AllUnlabeled(source, Matrix(), Codes(), keys, unlabeled)
    roles = Roles(drawn.codes)
    if isinstance(estimator, AUCClassifierCV):
        return estimator._fit_with(X, roles, None, everything)
    return estimator._fit_with(X, roles, everything)


def small_grid(**settings):
    return AUCClassifierCV(
        n_centers=20,
        etas=(-0.5, 0.0, 0.5),
        alphas=(0.1, 1.0),
        prior=0.3,
        random_state=0,
        **settings,
    )


@pytest.mark.parametrize("selection", ["average", "paper"])
def test_the_grid_on_all_rows_is_the_same_however_cut(selection, tmp_path):
    table = a_table()
    whole = fitted_on(MemorySource(table), small_grid(selection=selection))
    cuts = [
        Pickling(table, batch_rows=64),
        MemorySource(shuffled_rows(table, 1), batch_rows=7, n_threads=2),
        parts_of(shuffled_rows(table, 2), [1, 300, 5], tmp_path / "cut"),
    ]
    X = np.column_stack([table.column(c).to_numpy() for c in COLUMNS])
    for source in cuts:
        other = fitted_on(source, small_grid(selection=selection))
        np.testing.assert_allclose(
            other.decision_function(X), whole.decision_function(X), rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(
            other.cv_results_["mean_test_risk"], whole.cv_results_["mean_test_risk"], rtol=1e-9
        )


def test_all_rows_elsewhere_are_those_in_memory():
    """With every row drawn, the grid that visits the source is the grid on the array."""
    table = a_table()
    visited = fitted_on(MemorySource(table, batch_rows=100), small_grid(), at_most=840)
    drawn = drawn_of(MemorySource(table), 840, seed=0)
    X = np.column_stack([drawn.table.column(c).to_numpy() for c in COLUMNS])
    folds = fold_of(drawn.key, 5)
    rng = np.random.RandomState(0)
    rng.randint(2**31 - 1)  # the seed of the centres comes first
    from pnuauc.selection import deal_folds

    rows = Roles(drawn.codes).by_letter
    dealt = deal_folds(rows, 5, random_state=rng).refolded("U", rows["U"], folds[rows["U"]])
    held = [np.concatenate([dealt.rows[role][k] for role in "PNU"]) for k in range(5)]
    splits = [(np.setdiff1d(np.arange(len(X)), rows), rows) for rows in held]
    all_rows = np.column_stack([table.column(c).to_numpy() for c in COLUMNS])
    smallest = np.argsort(shuffled(matrix_keys(all_rows), 0))[:20]

    class SmallestHashes(AUCClassifierCV):
        def _make_basis(self, seed):
            return MultiscaleBasis(20, self.widths, all_rows[smallest], random_state=seed)

    local = SmallestHashes(**small_grid(cv=splits).get_params()).fit(X, Roles(drawn.codes))
    np.testing.assert_allclose(
        visited.decision_function(X), local.decision_function(X), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize(("at_most", "n_copies"), [(100, 0), (2000, 300)])
def test_centres_are_the_rows_of_smallest_hash(at_most, n_copies, tmp_path):
    """Among all rows of the table, labelled or not, drawn or not; copies are one row."""
    table = a_table()
    table = pa.concat_tables([table, table.slice(0, n_copies)])
    X = np.column_stack([table.column(c).to_numpy() for c in COLUMNS])
    X = X[np.sort(np.unique(X, axis=0, return_index=True)[1])]
    smallest = X[np.argsort(shuffled(matrix_keys(X), 0))[:20]]
    cut = parts_of(shuffled_rows(table, 3), [400, 2], tmp_path / "cut")
    for source in (MemorySource(table), cut):
        model = fitted_on(source, small_grid(selection="paper"), at_most)
        np.testing.assert_array_equal(sorted(map(tuple, model.basis_.centers_)),
                                      sorted(map(tuple, smallest)))  # fmt: skip


MEMBERS = ("kernels", "processes")


@pytest.mark.parametrize(
    "make", [small_grid, lambda: AutoAUCClassifier(0.3, MEMBERS, random_state=0)]
)
def test_more_rows_than_drawn_change_the_model(make):
    """The rows that were not drawn take part: without them the model is another."""
    table = a_table()
    source = MemorySource(table)
    few = draw_rows(source, RowKeys(COLUMNS, 0), Codes(), 200, 840)
    visited, alone = fitted_on(source, make()), fitted_on(MemorySource(few.table), make())
    X = np.column_stack([table.column(c).to_numpy() for c in COLUMNS])
    assert np.abs(visited.decision_function(X) - alone.decision_function(X)).max() > 1e-3


@pytest.mark.slow
def test_the_committee_visits_all_rows(tmp_path):
    table = a_table()
    fits = [
        fitted_on(source, AutoAUCClassifier(0.3, MEMBERS, random_state=0))
        for source in (
            MemorySource(table),
            parts_of(shuffled_rows(table, 2), [1, 300, 5], tmp_path / "cut"),
        )
    ]
    X = np.column_stack([table.column(c).to_numpy() for c in COLUMNS])
    np.testing.assert_allclose(
        fits[0].decision_function(X), fits[1].decision_function(X), rtol=1e-9, atol=1e-9
    )


def test_large_files_are_several_parts(tmp_path, monkeypatch):
    """Parts of engines: the same batches in the same order, cut between row groups."""
    source = parts_of(a_table(1000), [100, 450], tmp_path / "cut")
    monkeypatch.setattr(_parts, "PART_ROWS", 200)
    parts = FileParts.of(source)
    assert len(parts.numbers) == 1 + 2 + 2  # starts of groups: 0, 97, 194, then 291, 388
    assert parts.part_names == source.part_names
    assert [parts.part_names[i] for i in parts.file_of][:2] == source.part_names[:2]
    select = pickle.loads(pickle.dumps(parts.select(["x1", "y"])))
    found = [batch for i in parts.numbers for batch in select(i, i)]
    for batch in found:
        whole = pq.read_table(batch.name, columns=["x1", "y"])
        assert pa.table(batch.table).equals(whole.slice(batch.first_row, len(batch)))
        assert source.part_names[batch.part] == batch.name
    places = [(batch.part, batch.first_row) for batch in found]
    assert places == sorted(set(places))
    assert sum(map(len, found)) == 1000
    csv = tmp_path / "one.csv"
    pa.csv.write_csv(a_table(1000), csv)
    assert len(FileParts.of(FileSource.open([csv])).numbers) == 1


@pytest.mark.parametrize("harm", ["rewritten", "removed"])
def test_a_part_whose_file_changed_is_named(tmp_path, harm, monkeypatch):
    monkeypatch.setattr(_parts, "PART_ROWS", 200)
    parts = FileParts.of(parts_of(a_table(700), [100], tmp_path / "cut"))
    victim = tmp_path / "cut" / "001.parquet"
    rewritten(victim) if harm == "rewritten" else removed(victim)
    job = Job(parts, len, int.__add__)
    assert job.summary(0, 0) == (100,)
    for part in parts.numbers[1:]:
        with pytest.raises(InputError, match=r"001\.parquet' (was changed|was not found)"):
            job.summary(part, part)


def test_folders_patterns_and_partitions(tmp_path):
    table = a_table(90)
    for i, year in enumerate((2023, 2024)):
        folder = tmp_path / "data" / f"year={year}" / "shop=a%20b"
        folder.mkdir(parents=True)
        pq.write_table(table.slice(45 * i, 45), folder / "part.parquet")
        (folder / "_SUCCESS").write_text("")
        (folder / "note.md").write_text("no table")
    source = FileSource.open([tmp_path / "data"])
    assert source.schema.names == [*COLUMNS, "y", "year", "shop"]
    rows = pa.Table.from_batches([batch.table for batch in source.batches()])
    assert rows.column("year").to_pylist() == [2023] * 45 + [2024] * 45
    assert set(rows.column("shop").to_pylist()) == {"a b"}
    assert rows.select(table.column_names).equals(table)
    by_pattern = FileSource.open([str(tmp_path / "data/*/*/*.parquet")])
    assert by_pattern.schema.names == source.schema.names
    some = source.select(["year", "x1"])
    assert [b.table.schema.names for b in some.batches()] == [["year", "x1"]] * 2
    only_folders = source.select(["year"])
    assert sum(len(batch) for batch in only_folders.batches()) == 90
    with pytest.raises(InputError, match="No file matches"):
        FileSource.open([str(tmp_path / "data/*.csv")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no table"):
        FileSource.open([tmp_path / "empty"])


def test_types_are_settled_over_all_files(tmp_path):
    pq.write_table(pa.table({"a": [1, 2], "b": [None, None], "c": ["u", "v"]}), tmp_path / "1.pq")
    pq.write_table(pa.table({"a": [0.5], "b": [3], "c": ["w"]}), tmp_path / "2.pq")
    source = FileSource.open([tmp_path])
    assert source.schema.types == [pa.float64(), pa.int64(), pa.string()]
    rows = pa.Table.from_batches([batch.table for batch in source.batches()])
    assert rows.to_pydict() == {"a": [1, 2, 0.5], "b": [None, None, 3], "c": ["u", "v", "w"]}
    pq.write_table(pa.table({"a": ["x"], "b": [3], "c": ["w"]}), tmp_path / "3.pq")
    with pytest.raises(InputError, match=r"Column 'a' holds string in '.*3\.pq' but double"):
        FileSource.open([tmp_path])
    pq.write_table(pa.table({"a": [1], "c": ["w"]}), tmp_path / "3.pq")
    with pytest.raises(InputError, match=r"3\.pq' has no column 'b'"):
        FileSource.open([tmp_path])
    pq.write_table(pa.table({"a": [1], "b": [1], "c": ["w"], "d": [1]}), tmp_path / "3.pq")
    with pytest.raises(InputError, match=r"1\.pq' has no column 'd', which '.*3\.pq' has"):
        FileSource.open([tmp_path])


def test_formats_agree(tmp_path):
    """Parquet, Arrow, CSV and JSON lines of one table: the same keys."""
    table = a_table(40)
    pq.write_table(table, tmp_path / "t.parquet")
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as out, pa.ipc.new_file(out, table.schema) as w:
        w.write_table(table)
    pa.csv.write_csv(table, tmp_path / "t.csv")
    table.to_pandas().to_json(
        tmp_path / "t.jsonl", orient="records", lines=True, double_precision=15
    )
    found = {}
    for kind in ("parquet", "arrow", "csv", "jsonl"):
        source = FileSource.open([tmp_path / f"t.{kind}"])
        assert source.reduce(len, int.__add__, 0) == source.n_rows == 40
        found[kind] = np.concatenate([table_keys(b.table) for b in source.batches()])
    for kind in ("arrow", "csv"):
        np.testing.assert_array_equal(found[kind], found["parquet"])
    # JSON as pandas writes it rounds to 15 digits: rows of whole numbers are equal
    assert len(found["jsonl"]) == 40


def rewritten(path):
    pq.write_table(a_table(95), path)


def removed(path):
    path.unlink()


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.parametrize("harm", [rewritten, removed, cut_short])
@pytest.mark.parametrize("moment", ["before", "during"])
def test_a_file_that_changes_is_named(tmp_path, harm, moment):
    source = parts_of(a_table(300), [90, 90], tmp_path / "cut")
    victim = tmp_path / "cut" / "001.parquet"
    seen = []

    def look(batch):
        seen.append(batch.name)
        if moment == "during" and batch.name.endswith("000.parquet"):
            harm(victim)
        return len(batch)

    if moment == "before":
        harm(victim)
    with pytest.raises(InputError, match=r"001\.parquet' (was changed|disappeared)"):
        list(source.map(look))
    assert not any(name.endswith("002.parquet") for name in seen)


def test_rows_with_vectors_are_alike_if_their_vectors_are():
    vectors = [[1.0, 2.0], None, [1.0, 2.5], [1.0, 2.0], None]
    for kind in (pa.list_(pa.float32()), pa.list_(pa.float64(), 2)):
        keys = table_keys(pa.table({"v": pa.array(vectors, kind)})).tolist()
        assert keys[0] == keys[3]
        assert keys[1] == keys[4]
        assert len(set(keys)) == 3
