"""Tests of model/compare: a table that is scored against the one that was fitted."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest

from pnuauc.exceptions import InputError
from pnuauc.io import OutputChoice, TableEncoder, read_table, score_file
from pnuauc.io.readers import read_cells
from tests.model.conftest import model_of

N = 400


def columns(rng, n=N):
    """A messy export: decimal commas, percents, thousands marks, dates, yes and no, shops."""
    return {
        "id": [f"r{k:05d}" for k in range(n)],
        "height": [f"{x:.2f}".replace(".", ",") for x in rng.normal(170, 10, n)],
        "rate": [f"{x:.1f} %".replace(".", ",") for x in rng.uniform(1, 12, n)],
        "income": [f"{x:,.0f}".replace(",", ".") for x in np.exp(rng.normal(9, 1, n))],
        "when": [f"{a[0] + 1:02d}.{a[1] + 1:02d}.2024" for a in rng.integers(0, (28, 12), (n, 2))],
        "paid": np.where(rng.random(n) < 0.5, "yes", "no").tolist(),
        "shop": rng.choice(list("abcdef"), n).tolist(),
        "age": [str(a) if rng.random() > 0.05 else "" for a in rng.integers(18, 90, n)],
    }  # fmt: skip


def written(cells):
    """As a CSV file has it."""
    rows = [";".join(cells), *(";".join(row) for row in zip(*cells.values(), strict=True))]
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("fit") / "old.csv"
    path.write_text(written(columns(np.random.default_rng(0))))
    table = read_cells(path).drop_columns(["id"])
    return model_of(table, {"ids": ["id"]})


def scored(model, tmp_path, cells, **choice):
    (tmp_path / "new.csv").write_text(written(cells))
    target = tmp_path / "out.csv"
    summary = score_file(model, tmp_path / "new.csv", target, choice=OutputChoice(**choice))
    return summary, read_table(target).column("score").to_numpy()


@pytest.fixture
def new():
    return columns(np.random.default_rng(1))


@pytest.mark.parametrize("n", [1, 5, 40, 400])
def test_a_table_of_the_same_kind_looks_the_same(model, tmp_path, n):
    """Whatever its size: in 20 draws of each no column is named."""
    for seed in range(20):
        summary, _ = scored(model, tmp_path, columns(np.random.default_rng(100 + seed), n))
        assert summary.different == {}


def test_decimal_points_are_read_where_commas_were_fitted(model, tmp_path, new):
    """The same numbers written otherwise get the same scores, and a word is said."""
    _, expected = scored(model, tmp_path, new)
    pointed = new | {"height": [x.replace(",", ".") for x in new["height"]]}
    summary, found = scored(model, tmp_path, pointed)
    np.testing.assert_allclose(found, expected)
    assert list(summary.different) == ["height"]
    assert (
        "plain numbers, as numbers with a decimal comma when fitted"
        in summary.different["height"][0]
    )


def test_dates_with_the_year_first_are_read_where_the_day_came_first(model, tmp_path, new):
    _, expected = scored(model, tmp_path, new)
    turned = new | {"when": ["-".join(reversed(x.split("."))) for x in new["when"]]}
    summary, found = scored(model, tmp_path, turned)
    np.testing.assert_allclose(found, expected)
    assert list(summary.different) == ["when"]


@pytest.mark.parametrize(
    ("column", "change", "said"),
    [
        ("rate", lambda x: x.removesuffix(" %"), "of its values outside of what was fitted"),
        ("height", lambda x: "", "100% missing, 0% when fitted"),
        ("age", lambda x: x and f"{x}000", "of its values outside of what was fitted"),
        ("shop", lambda x: x.upper(), "in categories that were never seen"),
        ("shop", lambda x: "", "100% missing"),
    ],
)
def test_a_column_that_looks_different_is_named(model, tmp_path, new, column, change, said):
    changed = new | {column: [change(x) for x in new[column]]}
    summary, _ = scored(model, tmp_path, changed)
    assert list(summary.different) == [column]
    assert said in " ".join(summary.different[column])


def test_strict_writes_nothing(model, tmp_path, new):
    changed = new | {"rate": [x.removesuffix(" %") for x in new["rate"]]}
    with pytest.raises(InputError, match=r"looks different .*'rate' \(.*Nothing was written"):
        scored(model, tmp_path, changed, strict=True)
    assert not (tmp_path / "out.csv").exists()
    stream = io.BytesIO()
    with pytest.raises(InputError, match="looks different"):
        score_file(model, tmp_path / "new.csv", stream, choice=OutputChoice(strict=True))
    assert stream.getvalue() == b""
    (tmp_path / "new.csv").write_text(written(new))
    score_file(model, tmp_path / "new.csv", stream, choice=OutputChoice(strict=True))
    assert stream.getvalue().count(b"\n") == N + 1


def test_a_new_word_among_yes_and_no_is_missing_and_told(model, tmp_path, new):
    summary, _ = scored(model, tmp_path, new | {"paid": ["maybe", *new["paid"][1:]]})
    assert summary.different == {
        "paid": ["1 cell such as 'maybe' neither yes nor no, read as missing"]
    }


def test_ids_go_into_every_output(model, tmp_path, new):
    (tmp_path / "new.csv").write_text(written(new))
    for choice, names in [
        ({}, ["id", "score", "percentile"]),
        ({"keep": ["age"]}, ["id", "age", "score", "percentile"]),
        ({"columns": ["id", "score"]}, ["id", "score"]),
        ({"columns": ["score", "age"]}, ["score", "age"]),
        ({"columns": ["row", "score"]}, ["row", "score"]),
    ]:
        score_file(model, tmp_path / "new.csv", tmp_path / "o.csv", choice=OutputChoice(**choice))
        assert read_table(tmp_path / "o.csv").column_names == names
    with pytest.raises(InputError, match=r"no output column 'scor' \(did you mean 'score'\?\)"):
        score_file(
            model, tmp_path / "new.csv", tmp_path / "o.csv", choice=OutputChoice(columns=["scor"])
        )


def test_ranges_and_gaps_are_those_of_the_rows(model):
    """1% of the values lie outside at each end, brute force; shares of gaps are exact."""
    rng = np.random.default_rng(3)
    x = np.where(rng.random(1000) < 0.3, np.nan, rng.standard_cauchy(1000))
    encoding = TableEncoder().fit(pa.table({"x": x, "y": rng.random(1000)})).encoding_
    there = np.sort(x[~np.isnan(x)])
    k = len(there) // 100
    assert (encoding.low[0], encoding.high[0]) == (there[k], there[-1 - k])
    assert encoding.missing[0] == np.isnan(x).mean()
