"""How many of each: suspects, widths, quantiles, lines looked at; one value on either side."""

from __future__ import annotations

import inspect
import io
import json

import numpy as np
import pyarrow as pa
import pytest

from pnuauc._basis import IdentityBasis
from pnuauc._stored import Parts
from pnuauc.exceptions import ModelFileError
from pnuauc.io import TableEncoder, _encoder, _encoding, _modelfile, _parts
from pnuauc.io._cells import is_form, table_decimal
from pnuauc.io._columns import Column
from pnuauc.io._container import write_container
from pnuauc.io._encoding import encoding_from_spec
from pnuauc.io._leaks import _logit, find_leaks
from pnuauc.io._model import TableModel
from pnuauc.io._modelfile import load_model, write_model
from pnuauc.io._parts import LinearScorer, read_scorer
from pnuauc.io._signs import written_by_us
from pnuauc.io._text_files import _sniff
from pnuauc.labels import Roles

# ---------------------------------------------------------------------------- suspects

SIZES = (40, 60, 800)


def suspects(columns):
    """Names of the columns that may know the label, in the order in which they are told."""
    roles = Roles(np.repeat(np.array([1, 0, -1], np.int8), SIZES))
    described = [Column(name, "number", "double") for name in columns]
    told = find_leaks(pa.table(columns), described, roles)
    return [sentence.split("'")[1] for sentence in told]


def columns_of(make, n, seed=0):
    rng = np.random.default_rng(seed)
    return {f"{make.__name__}{k}": make(rng, k) for k in range(n)}


def honest(rng, k):
    return rng.normal(size=sum(SIZES))


def perfect(rng, k):
    return np.r_[rng.random(SIZES[0]) + 2, rng.random(sum(SIZES[1:]))]


def outside(rng, k):
    """The same noise with U below both classes, the farther the larger k."""
    noise = np.random.default_rng(1).normal(size=sum(SIZES))
    return noise - np.repeat([0.0, 0.5, 1.5 + 0.2 * k], SIZES)


def test_five_suspects_are_told_the_strongest_first():
    rest = columns_of(honest, 12)
    assert suspects(rest) == []
    assert suspects({**rest, **columns_of(outside, 3)}) == ["outside2", "outside1", "outside0"]
    assert suspects({**rest, **columns_of(outside, 5)}) == [f"outside{k}" for k in (4, 3, 2, 1, 0)]
    assert suspects({**rest, **columns_of(outside, 6)}) == [f"outside{k}" for k in (5, 4, 3, 2, 1)]


def test_perfect_suspects_are_all_told_and_before_the_others():
    rest, others = columns_of(honest, 12), columns_of(outside, 3)
    six = [f"perfect{k}" for k in range(6)]
    assert suspects({**rest, **others, **columns_of(perfect, 6)}) == six
    found = suspects({**rest, **others, **columns_of(perfect, 3)})
    assert found == [*six[:3], "outside2", "outside1"]


def test_odds_of_a_share_that_is_next_to_nothing_or_all():
    """A millionth is the least that is told from 0 and from 1."""
    assert _logit(0.5) == 0.0
    assert _logit(0.9) == pytest.approx(np.log(9.0))
    for share in (0.0, 1e-7, 1e-6):
        assert _logit(share) == pytest.approx(np.log(1e-6), rel=1e-5)
        assert _logit(1.0 - share) == pytest.approx(-np.log(1e-6), rel=1e-5)
    assert _logit(2e-6) == pytest.approx(np.log(2e-6), rel=1e-5)


# ---------------------------------------------------------------------------- stored models


@pytest.mark.parametrize("n", [1, 9, 1000, 1001])
def test_a_basis_has_at_most_a_thousand_widths(n):
    spec = {"kind": "linear", "basis": "gaussian", "centers": "dense"}
    arrays = {"coef": np.ones(n), "centers": np.ones((1, 2)), "widths": np.linspace(1, 2, n)}
    assert _parts._MAX_WIDTHS == 1000
    if n <= 1000:
        made = read_scorer(Parts(spec, arrays), {"kernels": 2})
        np.testing.assert_array_equal(made.basis.widths_, arrays["widths"])
        if n < 10:
            expected = np.exp(-2.0 / (2 * arrays["widths"] ** 2)).sum()
            assert made.score(np.zeros((1, 2)))[0] == pytest.approx(expected)
    else:
        with pytest.raises(ModelFileError, match="widths"):
            read_scorer(Parts(spec, arrays), {"kernels": 2})


class Ranker:
    threshold_, basis_, coef_ = 0.0, IdentityBasis.from_parts(1), np.ones(1)


@pytest.fixture
def model():
    table = pa.table({"x": [1.0, 2.0, 4.0]})
    encoder = TableEncoder().fit(table)
    return TableModel.from_fitted(encoder, Ranker(), encoder.transform(table))


def stored(model, path, **manifest):
    """Write the model, with parts of its manifest replaced."""
    stream = io.BytesIO()
    write_model(model, stream)
    data = stream.getvalue()
    length = int.from_bytes(data[12:16], "little")
    written = json.loads(data[16 : 16 + length])
    declared, start, arrays = written.pop("arrays"), 16 + length, {}
    for item in declared:
        kind = np.dtype(item["dtype"])
        n = int(np.prod(item["shape"]))
        arrays[item["name"]] = np.frombuffer(data, kind, n, start).reshape(item["shape"])
        start += -(-n * kind.itemsize // 8) * 8
    with path.open("wb") as target:
        write_container(target, {**written, **manifest}, arrays)
    return path


@pytest.mark.parametrize("n", [1, 2, 3, 100_000, 100_001])
def test_two_to_a_hundred_thousand_quantiles(tmp_path, model, n):
    assert _modelfile._MAX_QUANTILES == 100_000
    model.quantiles = np.linspace(-1, 1, n)
    path = stored(model, tmp_path / "m")
    if 2 <= n <= 100_000:
        np.testing.assert_array_equal(load_model(path).quantiles, model.quantiles)
    else:
        with pytest.raises(ModelFileError, match="quantiles"):
            load_model(path)


def test_quantiles_may_be_equal_and_may_not_fall(tmp_path, model):
    model.quantiles = np.array([0.0, 1.0, 1.0, 2.0])
    assert load_model(stored(model, tmp_path / "m")).percentile(np.array([1.5]))[0] > 60
    model.quantiles = np.array([0.0, 1.0, 0.9, 2.0])
    with pytest.raises(ModelFileError, match="quantiles"):
        load_model(stored(model, tmp_path / "m"))


def test_at_most_a_hundred_libraries_each_with_a_version(tmp_path, model):
    names = {f"l{k}": "1" for k in range(100)}
    assert load_model(stored(model, tmp_path / "m", libraries=names)).threshold == 0.0
    for wrong in ({**names, "more": "1"}, {"l": 1}, {"l": "1", "m": None}):
        with pytest.raises(ModelFileError, match="libraries"):
            load_model(stored(model, tmp_path / "m", libraries=wrong))


def wide(n_levels, n_texts=0, n_numbers=1):
    """A description of numbers with flags, one category column and texts."""
    kinds = ["number"] * n_numbers + ["category"] + ["text"] * n_texts
    columns = [Column(f"c{j}", kind, "any").to_dict() for j, kind in enumerate(kinds)]
    levels = [f"w{k}" for k in range(n_levels)]
    spec = {"kind": "table", "columns": columns, "levels": [levels], "rare": [[]]}
    ones = np.ones(n_numbers)
    arrays = {
        "fill": ones, "mean": ones, "scale": ones, "boolean_fill": np.empty(0),
        "flagged": np.arange(n_numbers), "ranks": np.arange(n_levels),
    }  # fmt: skip
    return spec, arrays


@pytest.mark.parametrize(("n_levels", "n_texts", "n_numbers"), [(7, 0, 1), (3, 2, 4), (5, 1, 2)])
def test_encodings_that_may_be_too_wide(monkeypatch, n_levels, n_texts, n_numbers):
    """A slot and two more of a number, one of a category and of rare ones, 32 of a text."""
    most = 3 * n_numbers + n_levels + 1 + 32 * n_texts
    monkeypatch.setattr(_encoding, "_MAX_WIDTH", most)
    made = encoding_from_spec(*wide(n_levels, n_texts, n_numbers))
    assert made.width() == 2 * n_numbers + n_levels + 32 * n_texts <= most
    monkeypatch.setattr(_encoding, "_MAX_WIDTH", most - 1)
    with pytest.raises(ValueError, match="too wide"):
        encoding_from_spec(*wide(n_levels, n_texts, n_numbers))


def test_sparse_encodings_that_may_be_too_wide(monkeypatch):
    assert (_encoding._MAX_WIDTH, _encoding._MAX_SPARSE) == (1_000_000, 2**24)
    monkeypatch.setattr(_encoding, "_MAX_SPARSE", 5)
    assert encoding_from_spec({"kind": "sparse"}, {"scale": np.ones(5)}).width() == 5
    with pytest.raises(ValueError, match="scales of a sparse encoding"):
        encoding_from_spec({"kind": "sparse"}, {"scale": np.ones(6)})


def test_the_encoder_says_its_numbers():
    """The documentation of TableEncoder is what a user knows of them."""
    page = " ".join((TableEncoder.__doc__ or "").split())
    assert f"at most {_encoder.FIT_ROWS:,} rows" in page
    assert f"hashed into {_encoding.HASHED} columns" in page
    assert f"categories as above up to {_encoding._FEW_LEVELS}, beyond that" in page
    default = inspect.signature(TableEncoder).parameters["max_categories"].default
    assert f"the {default} commonest are kept" in page


# ---------------------------------------------------------------------------- text


@pytest.mark.parametrize(("odd", "delimiter"), [(1, ","), (49, ","), (50, ";"), (59, ";")])
def test_the_delimiter_of_the_first_fifty_lines(odd, delimiter):
    """A line that a delimiter splits otherwise speaks against it, unless it comes later."""
    lines = ["a;b;c,d", *["1;2;3,4"] * 59]
    lines[odd] = "1;2,4"
    assert _sniff("\n".join(lines)) == delimiter


@pytest.mark.parametrize(
    ("n_plain", "n_sure", "n_more", "mark"),
    [(900, 100, 0, ","), (901, 99, 0, None), (900, 100, 50, ","), (1000, 0, 500, None)],
)
def test_the_decimal_mark_is_looked_for_in_a_thousand_cells(n_plain, n_sure, n_more, mark):
    """A tenth of them must leave no doubt."""
    last = "1" if n_sure else "1,5"
    cells = ["1"] * n_plain + ["1,5"] * n_sure + [last] * n_more
    assert table_decimal([pa.chunked_array([cells])]) == mark


def test_formats_of_dates_have_at_most_sixty_letters():
    assert is_form("date", "%d" * 30)
    assert not is_form("date", "%d" * 30 + "-")


@pytest.mark.parametrize(("n", "ours"), [(0, True), (4000, True), (4090, False)])
def test_the_sign_is_looked_for_near_the_start(tmp_path, n, ours):
    path = tmp_path / "a.json"
    path.write_text('{"x": "' + "y" * n + '", "pnuauc": 1}')
    assert written_by_us(path) is ours


def test_linear_scorers_keep_the_order_of_their_columns():
    scorer = LinearScorer(IdentityBasis.from_parts(3), np.array([1.0, 10.0, 100.0]))
    again = read_scorer(Parts(scorer.spec(), scorer.arrays()), {"kernels": 3})
    assert again.score(np.eye(3)).tolist() == [1.0, 10.0, 100.0]
