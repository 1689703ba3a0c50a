"""Parts of reading and writing against brute force and their stated bounds."""

from __future__ import annotations

import datetime as dt
import io
import itertools
import json
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from pnuauc.exceptions import InputError, ModelFileError
from pnuauc.io import (
    _container,
    _formats,
    _libsvm,
    _row_files,
    _scoring,
    _text_files,
    as_table,
    read_table,
)
from pnuauc.io._after_kill import _move, finish_commits
from pnuauc.io._container import (
    MAX_DEPTH,
    _declared,
    parse_manifest,
    read_container,
    write_container,
)
from pnuauc.io._formats import ReadOptions
from pnuauc.io._frames import array_of, plain_types
from pnuauc.io._scoring import OutputChoice, ScoreSummary, _may_be_written, _read_ahead, _Sink
from pnuauc.io._signs import written_by_us
from pnuauc.io._tables import iter_batches, read_schema
from pnuauc.io._text_files import _sniff
from pnuauc.io._writing import TableWriter, count_formulas, output_format, without_formulas

RNG = np.random.default_rng(8)


# ---------------------------------------------------------------------------- LIBSVM


def test_libsvm_in_blocks_of_any_size(tmp_path, monkeypatch):
    lines = ["1 1:2.5 3:-1", "", "0 2:1 # a remark", "-1", "1 4:1e3"]
    path = tmp_path / "t.libsvm"
    path.write_text("\n".join(lines) + "\n")
    expected = [[2.5, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1000]]
    for n_bytes, rows in itertools.product((1, 7, 1000), (1, 2, 50)):
        monkeypatch.setattr(_libsvm, "_BLOCK_BYTES", n_bytes)
        blocks = list(iter_batches(path, batch_rows=rows, n_features=4))
        assert np.vstack([X.toarray() for X, _ in blocks]).tolist() == expected
        assert np.concatenate([y for _, y in blocks]).tolist() == [1, 0, -1, 1]
        X, y = read_table(path)
        assert (X.toarray().tolist(), y.tolist()) == (expected, [1, 0, -1, 1])
    with pytest.raises(InputError, match="feature 4 in line 5; the model has 3"):
        list(iter_batches(path, n_features=3))
    wide = list(iter_batches(path, n_features=9))
    assert [X.shape[1] for X, _ in wide] == [9]


@pytest.mark.parametrize("rows", [1, 2, 100])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 a:b", "not LIBSVM text in line 5"), ("1 2:inf", "holds inf in line 5, feature 2"),
        ("nan 1:1", "label that is not a number in line 5"), ("1 0:1", "not LIBSVM text in line 5"),
        ("1 4194305:1", "feature 4,194,305 in line 5; features may number 4,194,304"),
    ],
)  # fmt: skip
def test_libsvm_lines_are_counted_from_one(tmp_path, line, message, rows):
    path = tmp_path / "t.libsvm"
    path.write_text(f"1 1:1\n\n0 2:1\n# nothing\n{line}\n1 1:1\n")
    with pytest.raises(InputError, match=message):
        list(iter_batches(path, batch_rows=rows))


def test_libsvm_without_rows(tmp_path):
    path = tmp_path / "t.libsvm"
    path.write_text("\n\n")
    with pytest.raises(InputError, match="has no rows"):
        read_table(path)
    path.write_text("1 4194304:1\n")
    assert read_table(path)[0].shape == (1, 4_194_304)


# ---------------------------------------------------------------------------- containers


def test_arrays_come_back_as_they_were(tmp_path):
    arrays = {
        "a": RNG.normal(size=(3, 5)), "b": np.arange(7, dtype=np.int32), "c": np.empty((0, 4)),
        "d": np.array([True, False, True]), "e": np.float32(RNG.normal(size=(2, 3, 1))),
        "f": np.arange(6.0).reshape(2, 3).T,
    }  # fmt: skip
    path = tmp_path / "m"
    with path.open("wb") as stream:
        write_container(stream, {"k": [1, "ü"]}, arrays)
    manifest, found = read_container(path)
    assert manifest == {"k": [1, "ü"]}
    assert list(found) == list(arrays)
    for name, value in arrays.items():
        np.testing.assert_array_equal(found[name], value)
        assert found[name].shape == value.shape
    assert path.stat().st_size % 8 == 0
    data = path.read_bytes()
    for place in range(0, len(data), 13):  # one bit anywhere is noticed
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(ModelFileError):
            read_container(path)
    for cut in (1, 8, 33, len(data) - 20):
        path.write_bytes(data[:-cut])
        with pytest.raises(ModelFileError):
            read_container(path)


def test_a_model_of_the_usual_size_fits(tmp_path):
    """200 centres of 10,000 columns are 16 MB, and their names 2 MB of manifest."""
    names = [f"{j:0200d}" for j in range(10_000)]
    centres = np.arange(2_000_000.0).reshape(200, 10_000)
    path = tmp_path / "m"
    with path.open("wb") as stream:
        write_container(stream, {"columns": names}, {"centres": centres})
    manifest, found = read_container(path)
    assert manifest == {"columns": names}
    np.testing.assert_array_equal(found["centres"], centres)


def test_sizes_at_their_limits(tmp_path, monkeypatch):
    """What has just so many bytes is written and read, one byte more is refused both times."""
    arrays = {"a": np.arange(3.0), "b": np.zeros(5, dtype=np.uint8)}

    def written(manifest):
        stream = io.BytesIO()
        write_container(stream, manifest, arrays)
        return stream.getvalue()

    data, path = written({"k": 1}), tmp_path / "m"
    path.write_bytes(data)
    length = int.from_bytes(data[12:16], "little")
    for name, size in (("MAX_FILE", len(data)), ("MAX_MANIFEST", length), ("MAX_ARRAYS", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(_container, name, size)
            assert written({"k": 1}) == data
            assert read_container(path)[0] == {"k": 1}
            patch.setattr(_container, name, size - 1)
            with pytest.raises(ModelFileError):
                written({"k": 1})
            with pytest.raises(ModelFileError):
                read_container(path)
    text = b'{"a": [1, 2, 3]}'  # a mark before each value, and two quotes
    monkeypatch.setattr(_container, "MAX_VALUES", 5)
    assert parse_manifest(text) == {"a": [1, 2, 3]}
    monkeypatch.setattr(_container, "MAX_VALUES", 4)
    with pytest.raises(ModelFileError, match="more than 4 values"):
        parse_manifest(text)


def nested(depth):
    return b'{"a": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize(
    ("text", "good"),
    [
        (nested(MAX_DEPTH), True), (nested(MAX_DEPTH + 1), False),
        (b'{"a": "' + b"[" * 99 + b'"}', True), (b'{"a": "\\"' + b"[" * 99 + b'"}', True),
        (b'{"a": "\\\\", "b": ' + b"[" * 24 + b"]" * 24 + b"}", False),
        (b'{"a": [[]], "b": [[[]]]}', True), (b"[]", False), (b"{", False), (b"3", False),
        (b'{"a": 12345678901234567890}', True), (b'{"a": 123456789012345678901}', False),
        (b'{"a": 0.' + b"1" * 38 + b"}", True), (b'{"a": 0.' + b"1" * 39 + b"}", False),
        (b'{"a": NaN}', False), (b'{"a": Infinity}', False), (b'{"a": 1e999}', False),
        (b'{"a": 1, "a": 2}', False), (b'{"a": {"b": 1, "b": 1}}', False), (b"\xff", False),
        (b'{"a": "\\ud800"}', False), (b'{"a": -1.5e-3}', True),
    ],
)  # fmt: skip
def test_manifests_within_their_bounds(text, good):
    if good:
        assert parse_manifest(text) == json.loads(text)
    else:
        with pytest.raises(ModelFileError):
            parse_manifest(text)


@pytest.mark.parametrize(
    ("items", "available"),
    [
        ([{"name": "a", "dtype": "float64", "shape": [2]}], 16),
        ([{"name": "a", "dtype": "uint8", "shape": [3, 3, 1]}], 16),
        ([{"name": "a", "dtype": "int32", "shape": []}], 8),
        ([{"name": "a", "dtype": "int32", "shape": [0, 2**20]}], 0),
        ([{"name": "a", "dtype": "int64", "shape": [1]},
          {"name": "b", "dtype": "float32", "shape": [3]}], 24),
        ([], 0),
    ],
)  # fmt: skip
def test_declared_arrays_fill_the_file(items, available):
    found = _declared({"arrays": items}, available)
    assert {k: (str(t), s) for k, (t, s) in found.items()} == {
        item["name"]: (item["dtype"], tuple(item["shape"])) for item in items
    }
    for other in (available - 8, available + 8, available + 1):
        with pytest.raises(ModelFileError):
            _declared({"arrays": items}, other)


@pytest.mark.parametrize(
    "change",
    [
        {"name": 3}, {"dtype": "object"}, {"shape": [1, 1, 1, 1]}, {"shape": [-1]}, {"shape": 1},
        {"shape": [True]}, {"shape": [1.0]}, {"shape": [0, 2**31]}, {"shape": [0, 2**28 + 1]},
        {"more": 1},
    ],
)  # fmt: skip
def test_declared_arrays_that_are_none(change):
    item = {"name": "a", "dtype": "uint8", "shape": [1]} | change
    with pytest.raises(ModelFileError):
        _declared({"arrays": [item]}, 8)
    with pytest.raises(ModelFileError):
        _declared({"arrays": [{"name": "a", "dtype": "uint8"}]}, 8)
    twice = [{"name": "a", "dtype": "uint8", "shape": [1]}] * 2
    with pytest.raises(ModelFileError):
        _declared({"arrays": twice}, 16)


# ---------------------------------------------------------------------------- text files


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","), ("a;b\n1,5;2\n", ";"), ("a\tb\n1\t2\n", "\t"), ("a|b\n1|2\n", "|"),
        ("a\n1\n", ","), ("a,b;c;d\n1;2;3\n4;5;6\n", ";"), ("a,b,c;d\n1,2,3;4\n", ","),
        ("", ","), ("a;b\n\n1;2\n", ";"), ("a b\n1,2\n", ","),
    ],
)  # fmt: skip
def test_the_delimiter_that_splits_the_first_lines_equally(text, delimiter):
    assert _sniff(text) == delimiter


def test_a_line_that_may_be_cut_does_not_count():
    text = "a;b;c,d\n" + "1;2;3,4\n" * 2500 + "1;2"
    assert len(text) > _text_files.HEAD_BYTES // 4
    assert _sniff(text) == ";"


def test_a_header_longer_than_the_first_look(tmp_path, monkeypatch):
    monkeypatch.setattr(_text_files, "HEAD_BYTES", 64)
    names = [f"column {k}" for k in range(200)]
    path = tmp_path / "t.csv"
    path.write_text(",".join(names) + "\n" + ",".join("1" * 200) + "\n")
    assert read_table(path).column_names == names
    path.write_text('"a\nb","c"\n1,2\n')
    assert read_table(path).column_names == ["a\nb", "c"]
    monkeypatch.setattr(_text_files, "_MAX_HEADER", 64)
    path.write_text('"' + "a" * 5000)
    with pytest.raises(InputError, match="has no line end"):
        read_table(path)


@pytest.mark.parametrize("rows", [1, 3, 7, 1000])
def test_cells_that_turn_out_to_be_text_half_way(tmp_path, monkeypatch, rows):
    """No row twice, none lost, when a block holds a cell that is no plain number."""
    monkeypatch.setattr(_text_files, "_BLOCK_BYTES", 64)
    path = tmp_path / "t.csv"
    cells = [str(k) for k in range(100)]
    cells[60] = "1 000"
    path.write_text("a,b\n" + "".join(f"{c},x{k}\n" for k, c in enumerate(cells)))
    batches = list(iter_batches(path, floats=["a"], batch_rows=rows))
    assert [b for batch in batches for b in batch.column("b").to_pylist()] == [
        f"x{k}" for k in range(100)
    ]
    found = [str(a).removesuffix(".0") for batch in batches for a in batch.column(0).to_pylist()]
    assert found == cells
    assert max(batch.num_rows for batch in batches) <= rows


@pytest.mark.parametrize("size", [1, 5, 2**20])
def test_json_lines_in_pieces(tmp_path, monkeypatch, size):
    monkeypatch.setattr(_row_files, "_BLOCK_CHARACTERS", size)
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\n\n{"b": "\xc3\xbc", "a": null}\n{"a": 3}')
    assert read_table(path).to_pydict() == {"a": [1, None, 3], "b": [None, "ü", None]}
    batches = list(iter_batches(path, ["b", "a"], batch_rows=2))
    assert [batch.to_pydict() for batch in batches] == [
        {"b": [None, "ü"], "a": [1, None]}, {"b": [None], "a": [3]}
    ]  # fmt: skip
    path.write_text('{"a": 1}\n\n{"a": }\n')
    with pytest.raises(InputError, match="not JSON in line 3"):
        read_table(path)
    path.write_text(' [{"a": 1},\n{"a": 2}]')
    assert read_table(path).to_pydict() == {"a": [1, 2]}


def test_what_a_file_says_of_itself(tmp_path):
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})
    pa.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    (tmp_path / "t.jsonl").write_text('{"a": 1, "b": "x"}\n')
    expected = {"parquet": ("int64", 3), "arrow": ("int64", None), "csv": ("string", None),
                "jsonl": ("int64", None)}  # fmt: skip
    for ending, (kind, n) in expected.items():
        schema, n_rows = read_schema(tmp_path / f"t.{ending}")
        assert (schema.names, str(schema.field("a").type), n_rows) == (["a", "b"], kind, n)
    (second,) = iter_batches(tmp_path / "t.parquet", row_groups=[1])
    assert second.to_pydict() == {"a": [3], "b": [None]}
    parts = list(iter_batches(tmp_path / "t.arrow", ["b"], batch_rows=2))
    assert [p.to_pydict() for p in parts] == [{"b": ["x", "y"]}, {"b": [None]}]


@pytest.mark.parametrize(
    ("head", "kind", "ending"),
    [
        (b"a,b\n1,2\n", "csv", ""), (b'  {"a": 1}', "jsonl", ""), (b"[{}]", "jsonl", ""),
        (b"PAR1", "parquet", ""), (b"ARROW1", "arrow", ""), (b"PK\x03\x04", "excel", ""),
        (b"\x1f\x8b", "csv", ".gz"), (b"BZh", "csv", ".bz2"), (b"SQLite format 3", "csv", ""),
    ],
)  # fmt: skip
def test_the_format_of_what_comes_through_a_pipe(head, kind, ending):
    assert _formats._piped_format(head, ReadOptions()) == (kind, ending)
    given = _formats._piped_format(head, ReadOptions(format="tsv"))
    assert given == ("tsv", ending)


# ---------------------------------------------------------------------------- frames


def test_values_of_several_types_in_one_column_are_text():
    import decimal
    import fractions

    values = [1, "a", None, float("nan"), 2.5, True, np.int64(3), fractions.Fraction(1, 2),
              decimal.Decimal("1.50")]  # fmt: skip
    assert array_of(values).to_pylist() == [
        "1", "a", None, None, "2.5", "True", "3", "1/2", "1.50"
    ]  # fmt: skip
    with pytest.raises(InputError, match="Column 'c' holds a dict"):
        array_of([1, "a", {}], "c")
    with pytest.raises(InputError, match="two dimensions"):
        as_table(np.arange(3))


def test_types_that_arrow_stores_but_cannot_compute_with():
    words, halves = ["a", None, "b"], [np.float16(1.5), None, np.float16(2)]
    arrays = {
        "view": pa.array(words, pa.string_view()), "half": pa.array(halves, pa.float16()),
        "runs": pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["a", "b"])),
        "half runs": pa.RunEndEncodedArray.from_arrays(
            [2, 3], pa.array(np.array([1.5, 2.0], np.float16))
        ),
        "shelf": pa.array(words).dictionary_encode(), "plain": pa.array([1, 2, 3]),
        "bytes": pa.array([b"a", None, b"b"], pa.binary_view()),
    }  # fmt: skip
    expected = {
        "view": words, "half": [1.5, None, 2.0], "runs": ["a", "a", "b"],
        "half runs": [1.5, 1.5, 2.0], "shelf": words, "plain": [1, 2, 3],
        "bytes": [b"a", None, b"b"],
    }  # fmt: skip
    try:
        pa.compute.run_end_decode(arrays["half runs"])
    except pa.ArrowNotImplementedError:  # not before pyarrow 19
        del arrays["half runs"], expected["half runs"]
    for made in (pa.table(arrays), pa.RecordBatch.from_pydict(arrays)):
        plain = plain_types(made)
        assert type(plain) is type(made)
        assert plain.to_pydict() == expected
        kinds = [str(plain.schema.field(name).type) for name in ("view", "half", "plain")]
        assert kinds == ["large_string", "float", "int64"]
        assert pa.types.is_dictionary(plain.schema.field("shelf").type)
    untouched = pa.table({"a": [1]})
    assert plain_types(untouched) is untouched


class Marked(pa.ExtensionType):
    """A type of somebody else's, stored as ``storage``."""

    def __init__(self, storage):
        super().__init__(storage, "somebody.marked")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls(storage_type)


def test_extension_types_are_what_they_stand_for_or_store():
    def stored(kind, values, storage):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, storage))

    ids = [uuid.UUID(int=7), None, uuid.UUID(int=2**100)]
    arrays = {
        "flag": stored(pa.bool8(), [1, None, 0], pa.int8()),
        "id": stored(pa.uuid(), [v and v.bytes for v in ids], pa.binary(16)),
        "number": stored(Marked(pa.int32()), [5, None, 6], pa.int32()),
        "half": stored(Marked(pa.float16()), np.array([1.5, 2.0, 2.5], np.float16), pa.float16()),
        "months": pa.array(pd.PeriodIndex(["2024-01", None, "2025-03"], freq="M")),
        "views": pa.DictionaryArray.from_arrays(
            [1, None, 0], pa.array(["a", "b"], pa.string_view())
        ),
    }
    expected = {
        "flag": [True, None, False], "id": [v and str(v) for v in ids], "number": [5, None, 6],
        "half": [1.5, 2.0, 2.5],
        "months": [dt.datetime(2024, 1, 1), None, dt.datetime(2025, 3, 1)],
        "views": ["b", None, "a"],
    }  # fmt: skip
    kinds = ["bool", "large_string", "int32", "float"]
    for made in (pa.table(arrays), pa.RecordBatch.from_pydict(arrays)):
        plain = plain_types(made)
        assert type(plain) is type(made)
        assert plain.to_pydict() == expected
        assert [str(kind) for kind in plain.schema.types[:4]] == kinds
        assert pa.types.is_dictionary(plain.schema.types[5])


# ---------------------------------------------------------------------------- scores out


def written(batches, choice, kind="csv"):
    stream = io.BytesIO()
    sink = _Sink(TableWriter(stream, f"t.{kind}"), choice)
    for batch in batches:
        sink.put(batch)
    return sink.close(), stream.getvalue().decode().splitlines()


@pytest.mark.parametrize("top", [None, 1, 3, 50])
@pytest.mark.parametrize("threshold", [None, 0.0, 9.0])
@pytest.mark.parametrize("sort", [False, True])
def test_rows_that_are_written(top, threshold, sort):
    scores = np.round(RNG.normal(size=20), 1)
    batches = [
        pa.RecordBatch.from_pydict({"row": np.arange(i, i + 5), "score": scores[i : i + 5]})
        for i in range(0, 20, 5)
    ]
    n, lines = written(batches, OutputChoice(top=top, threshold=threshold, sort=sort))
    rows = [i for i in range(20) if threshold is None or scores[i] >= threshold]
    if sort or top is not None:
        rows = sorted(rows, key=lambda i: (-scores[i], i))[:top]
    assert n == len(rows)
    assert [int(line.split(",")[0]) for line in lines[1:]] == rows
    assert lines[0] == '"row","score"'
    kept = [_may_be_written(scores[i : i + 5], OutputChoice(top=top, threshold=threshold)) + i
            for i in range(0, 20, 5)]  # fmt: skip
    assert set(rows) <= set(np.concatenate(kept))
    assert all(np.all(np.diff(part) > 0) for part in kept)
    most = min(5, top or 5)
    assert all(len(part) <= most for part in kept)


def test_the_top_of_a_long_table(monkeypatch):
    """More rows than may wait are reduced to the best again and again."""
    scores = RNG.permutation(250_000).astype(float)
    batches = [
        pa.RecordBatch.from_pydict({"score": scores[i : i + 50_000]})
        for i in range(0, 250_000, 50_000)
    ]
    _, lines = written(batches, OutputChoice(top=3))
    assert lines[1:] == ["249999", "249998", "249997"]


def test_columns_in_order_and_formulas():
    batch = pa.RecordBatch.from_pydict(
        {"id": ["=1+1", "-5", "x", None, "@a"], "score": [1.0, 2, 3, 4, 5], "+n": list("abcde")}
    )
    assert count_formulas(batch) == 3  # two cells and a name
    safe = without_formulas(batch)
    assert safe.schema.names == ["id", "score", "'+n"]
    assert safe.column(0).to_pylist() == ["'=1+1", "-5", "x", None, "'@a"]
    _, lines = written([batch], OutputChoice(columns=["score", "id"]))
    assert lines[:2] == ['"score","id"', '1,"=1+1"']
    _, lines = written([batch], OutputChoice(columns=["id"], spreadsheet=True))
    assert lines[1] == '"\'=1+1"'
    with pytest.raises(InputError, match="no output column 'more'; there are 'id'"):
        written([batch], OutputChoice(columns=["id", "more"]))
    _, lines = written([batch], OutputChoice(columns=["score", "id"]), "tsv")
    assert lines[0] == '"score"\t"id"'


def test_summaries_add_up():
    first, second = ScoreSummary(kept=("id",)), ScoreSummary()
    first.add(np.array([-1.0, 0.0, 2.0]), {"w": {"x"}})
    first.add(np.array([3.0]), {"w": {"y"}, "v": {"z"}})
    second.add(np.array([1.0, 1.0]), {"w": {"x", "q"}})
    second.n_written, second.n_formulas = 5, 7
    both = first.joined(second)
    assert (both.n_rows, both.n_positive, both.n_written, both.n_formulas) == (6, 4, 5, 7)
    assert both.new_categories == {"w": {"x", "y", "q"}, "v": {"z"}}
    assert both.kept == ("id",)
    assert second.joined(first).kept == ("id",)
    assert first.new_categories["w"] == {"x", "y"}
    many = ScoreSummary()
    for k in range(300):
        many.add(np.zeros(1), {"w": {f"w{k}"}})
    assert len(many.new_categories["w"]) == 100


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10])
def test_reading_ahead_changes_nothing(n):
    assert list(_read_ahead(iter(range(n)))) == list(range(n))


def test_reading_ahead_hands_errors_over_and_stops():
    def broken():
        yield 1
        raise ValueError("at the second")

    ahead = _read_ahead(broken())
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="at the second"):
        next(ahead)
    seen = []

    def endless():
        for k in itertools.count():
            seen.append(k)
            yield k

    ahead = _read_ahead(endless())
    assert [next(ahead), next(ahead)] == [0, 1]
    ahead.close()
    assert len(seen) <= 2 + _scoring._AHEAD + 2


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.csv", "csv"), ("a.TSV", "tsv"), ("a.pq", "parquet"), ("a.feather", "arrow"),
     ("a.csv.gz", None), ("a.libsvm", None), ("a.xlsx", None), ("a.jsonl", None)],
)  # fmt: skip
def test_formats_of_scores(name, kind):
    if kind is None:
        with pytest.raises(InputError, match="Scores cannot be written"):
            output_format(name)
    else:
        assert output_format(name) == kind


@pytest.mark.parametrize(
    ("name", "text", "ours"),
    [
        ("a.csv", "id,score,percentile\n", True), ("a.csv", "id,percentile,score,x\n", True),
        ("a.csv", "id,score\n", True), ("a.csv", "score,id\n", False),
        ("a.scored.csv", "score,id\n", True), ("a.scored.csv", "id,x\n", False),
        ("a.tsv", 'id\t"score"\n', True), ("a.csv", "", True), ("a.csv", "\n", False),
        ("a.json", ' {"pnuauc": 1}', True), ("a.json", '{"x": 1}', False),
        ("a.html", '<!doctype html><meta name="generator" content="pnuauc 1">', True),
        ("a.html", "<!DOCTYPE html><title>pnuauc</title>", False),
    ],
)  # fmt: skip
def test_files_that_may_be_replaced(tmp_path, name, text, ours):
    path = tmp_path / name
    path.write_text(text)
    assert written_by_us(path) is ours
    assert not written_by_us(tmp_path / "none")


# ---------------------------------------------------------------------------- after a kill


def ours(folder, number, ending):
    return folder / f".pnuauc-{number:016x}.{ending}"


def test_moves_of_a_journal_are_between_files_of_ours_side_by_side(tmp_path):
    part, old, final = ours(tmp_path, 1, "part"), ours(tmp_path, 2, "old"), tmp_path / "m"
    expected = (part, final, old)
    assert _move(str(part), str(final), str(old)) == expected  # whether they are there or not
    part.write_text("new")
    old.write_text("old")
    assert _move(str(part), str(final), str(old)) == expected
    assert _move(str(part), str(final), None) == (part, final, None)
    other = tmp_path / "other"
    other.mkdir()
    link, folder = ours(tmp_path, 3, "part"), ours(tmp_path, 4, "old")
    link.symlink_to(part)
    folder.mkdir()
    for wrong in (
        (tmp_path / "x.part", final, old), (part, final, part), (old, final, None),
        (part, other / "m", None), (ours(other, 1, "part"), final, None), (link, final, None),
        (part, final, folder), (part, final, ours(other, 2, "old")),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="not"):
            _move(*(None if name is None else str(name) for name in wrong))


@pytest.mark.parametrize(("mode", "done"), [(0o600, True), (0o644, True), (0o620, False)])
def test_what_a_killed_process_had_committed_is_finished(tmp_path, mode, done):
    """Unless others could write the journal; leftovers of ours go either way, nothing else."""
    part, old, final = ours(tmp_path, 1, "part"), ours(tmp_path, 2, "old"), tmp_path / "m"
    part.write_text("new")
    old.write_text("before")
    final.write_text("before")
    left, foreign = ours(tmp_path, 9, "part"), tmp_path / ".pnuauc-9.part"
    left.write_text("half of something")
    foreign.write_text("not ours")
    journal = ours(tmp_path, 5, "commit")
    journal.write_text(json.dumps([[str(part), str(final), str(old)]]))
    journal.chmod(mode)
    finish_commits(tmp_path)
    assert final.read_text() == ("new" if done else "before")
    assert foreign.read_text() == "not ours"
    assert not any(path.exists() for path in (part, old, left))
    assert journal.exists() is not done
    finish_commits(tmp_path)  # once more changes nothing
    assert final.read_text() == ("new" if done else "before")
