"""Tests of study/many_files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from pnuauc import evaluate_table, fit_table
from pnuauc.exceptions import InputError
from pnuauc.io import load_model
from pnuauc.io.sources import FileSource, MemorySource
from pnuauc.study import rows as _rows
from pnuauc.study.evaluate import evaluate_table as evaluate_source
from pnuauc.study.fit import FitSettings, fit_study
from pnuauc.study.rows import ColumnRoles
from tests.conftest import run_tool as run

pytest.importorskip("typer")

QUICK = {"model": "average", "n_centers": 10, "folds": 2, "importance": False}


QUICK_OPTIONS = ["--model", "average", "--centers", "10", "--folds", "2", "--jobs", "1"]


def a_frame(n=1200, n_labeled=80, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.random(n) < 0.25
    label = np.full(n, np.nan)
    label[:n_labeled] = hidden[:n_labeled]
    size = np.where(rng.random(n) < 0.05, np.nan, rng.standard_normal(n) + 2 * hidden)
    return pd.DataFrame(
        {
            "name": [f"r{i}" for i in range(n)],
            "size": size,
            "weight": rng.standard_normal(n) + hidden,
            "shop": rng.choice(["a", "b", "c"], n),
            "number": np.arange(n) + 5,
            "label": label,
        }
    )


def in_files(frame, sizes, folder, kind="parquet"):
    folder.mkdir()
    start = 0
    for i, size in enumerate([*sizes, len(frame)]):
        part = pa.Table.from_pandas(frame.iloc[start : start + size], preserve_index=False)
        part = part.set_column(5, "label", part.column("label").cast("int64", safe=False))
        if kind == "parquet":
            pq.write_table(part, folder / f"{i}.parquet", row_group_size=100)
        else:
            pa.csv.write_csv(part, folder / f"{i}.csv")
        start += size
    return folder


@pytest.fixture(scope="module")
def frame():
    return a_frame()


@pytest.mark.parametrize(
    "settings",
    [{}, {"max_unlabeled": 300}, {"max_unlabeled": "all"}, {"model": "auto", "n_centers": None,
     "max_unlabeled": "all"}],
    ids=["in memory", "drawn", "all", "committee, all"],
)  # fmt: skip
@pytest.mark.slow
def test_a_fit_is_the_same_however_the_table_is_cut(frame, settings, tmp_path, monkeypatch):
    monkeypatch.setattr(_rows, "SAMPLE_ROWS", 250)  # "all" visits what does not come here
    settings = FitSettings(**{**QUICK, **settings}, prior=0.25)
    shuffled = frame.sample(frac=1.0, random_state=1)
    tables = [
        MemorySource(pa.Table.from_pandas(frame, preserve_index=False)),
        FileSource.open([in_files(shuffled, [1, 700, 9], tmp_path / "parquet")], n_threads=2),
        FileSource.open([in_files(shuffled, [500], tmp_path / "csv", "csv")]),
    ]
    if settings.model == "auto":
        tables = tables[:2]  # the committee takes long
    columns = ColumnRoles("label", ids=("name",))
    studies = [fit_study(table, columns, settings) for table in tables]
    scores = [study.model.score(frame) for study in studies]
    for study, score in zip(studies[1:], scores[1:]):
        np.testing.assert_allclose(score, scores[0], rtol=1e-9, atol=1e-9)
        first, other = studies[0].findings.to_dict(), study.findings.to_dict()
        assert [c["name"] for c in other["table"]["columns"]] == ["size", "weight", "shop"]
        assert other["labels"] == first["labels"]
        # rows of several files are named by their file as well
        assert other["top"]["ids"] == ["file", *first["top"]["ids"]]
        assert other["auc"]["value"] == pytest.approx(first["auc"]["value"], rel=1e-9)
        named = [other["top"]["header"].index("name"), first["top"]["header"].index("name")]
        names = [[row[i] for row in f["top"]["rows"]] for f, i in zip((other, first), named)]
        assert names[0] == names[1]


def test_threshold_and_rows_to_review_come_from_all_rows(frame):
    fit = fit_table(frame, ids="name", max_unlabeled=300, prior=0.25, top=15, **QUICK)
    unlabeled = frame[frame.label.isna()]
    scores = fit.model.score(unlabeled)
    header = fit.findings["top"]["header"]
    shown = [row[header.index("name")] for row in fit.findings["top"]["rows"]]
    assert shown == unlabeled.name.iloc[np.argsort(-scores, kind="stable")[:15]].tolist()
    numbers = [row[0] for row in fit.findings["top"]["rows"]]
    assert [f"r{number - 1}" for number in numbers] == shown
    # the cells that scores are counted in hold one row at most: the share is off by that
    assert np.mean(scores > 0) == pytest.approx(0.25, abs=2 / 300)
    places = fit.model.percentile(scores)
    true = 100 * (np.argsort(np.argsort(scores)) / len(scores))
    assert np.abs(places - true).max() < 100 * 2 / 300
    assert fit.ranker.intercept_ == -fit.ranker.threshold_ == pytest.approx(-fit.model.threshold)
    assert np.mean(fit.ranker.decision_function(fit.encoder.transform(unlabeled)) > 0) == (
        np.mean(scores > 0)
    )
    assert any("Fitted on 300 of 1,120" in note for note in fit.findings["table"]["notes"])
    assert fit.findings["labels"]["unlabeled"] == 1120
    assert fit.findings["table"]["rows"] == 1200


@pytest.mark.slow
def test_paths_and_frames_of_any_library(frame, tmp_path):
    import polars as pl

    folder = in_files(frame, [400], tmp_path / "data")
    common = {"ids": "name", "prior": 0.25, **QUICK}
    whole = fit_table(frame, **common).model.score(frame)
    listed = [folder / "0.parquet", folder / "1.parquet"]
    for same in (folder, str(folder / "*.parquet"), listed, pl.from_pandas(frame)):
        np.testing.assert_allclose(fit_table(same, **common).model.score(frame), whole, rtol=1e-9)
    scored = frame.assign(s=frame.weight)[["label", "s"]]
    scored.to_parquet(tmp_path / "s.parquet")
    of_frame = evaluate_table(scored, "label", "s", prior=0.25)
    for same in (tmp_path / "s.parquet", pl.from_pandas(scored)):
        of_same = evaluate_table(same, "label", "s", prior=0.25)
        assert of_same["scores"]["s"]["auc"] == of_frame["scores"]["s"]["auc"]


def test_the_number_of_rows_to_draw_is_checked(frame):
    for wrong in (1, 0, -5, 2.5, "most"):
        with pytest.raises(InputError, match="unlabelled rows to use"):
            fit_table(frame, max_unlabeled=wrong, **QUICK)


def test_no_more_rows_are_held_than_drawn(frame, monkeypatch):
    """Peak memory does not grow with rows: the largest table that a fit ever holds."""
    from pnuauc.io import draw as _draw

    held = []
    take = _draw.Drawn.take

    def watched(self, index):
        held.append(len(index))
        return take(self, index)

    monkeypatch.setattr(_draw.Drawn, "take", watched)
    most = {}
    for n in (4000, 16_000):
        held.clear()
        big = MemorySource(pa.Table.from_pandas(a_frame(n)), batch_rows=500)
        fit_study(big, ColumnRoles("label"), FitSettings(**QUICK, max_unlabeled=200, prior=0.2))
        most[n] = max(held)
    assert most[16_000] <= 1.1 * most[4000] < 1000


def test_text_files_that_disagree_are_named(tmp_path):
    frame = a_frame(200)
    folder = in_files(frame, [100], tmp_path / "csv", "csv")
    text = (folder / "1.csv").read_text().splitlines()
    changed = [text[0], *(line.replace(line.split(",")[2], '"much"', 1) for line in text[1:])]
    (folder / "1.csv").write_text("\n".join(changed))
    columns = ColumnRoles("label", ids=("name",))
    with pytest.raises(InputError, match=r"'weight' holds numbers in '.*0\.csv' but not in '.*1\."):
        fit_study(FileSource.open([folder]), columns, FitSettings(**QUICK))


def test_a_cell_that_was_not_drawn_is_named(tmp_path):
    frame = a_frame(3000)
    folder = in_files(frame, [1000], tmp_path / "csv", "csv")
    lines = (folder / "1.csv").read_text().splitlines()
    lines[601] = lines[601].replace(lines[601].split(",")[2], '"much"', 1)
    (folder / "1.csv").write_text("\n".join(lines))
    settings = FitSettings(**QUICK, max_unlabeled=100, prior=0.25)
    with pytest.raises(
        InputError, match=r"1\.csv': Column 'weight' holds text \('much' in row 601"
    ):
        fit_study(FileSource.open([folder]), ColumnRoles("label", ids=("name",)), settings)


@pytest.mark.parametrize("prior", [0.25, (0.2, 0.3), None])
def test_evaluation_is_the_same_however_the_table_is_cut(prior, tmp_path):
    rng = np.random.default_rng(0)
    frame = a_frame(4000)
    frame["s"] = np.round(frame["weight"] + rng.standard_normal(4000), 1)
    frame["t"] = frame["weight"]
    frame = frame[["label", "s", "t"]]
    table = pa.Table.from_pandas(frame)
    pq.write_table(table.slice(0, 10), tmp_path / "0.parquet")
    pq.write_table(table.slice(10, 3000), tmp_path / "1.parquet", row_group_size=97)
    pq.write_table(table.slice(3010), tmp_path / "2.parquet")
    whole = evaluate_table(frame, "label", ["s", "t"], prior=prior)
    files = evaluate_source(FileSource.open([tmp_path]), "label", ["s", "t"], prior=prior).to_dict()
    assert json.dumps(files["labels"]) == json.dumps(whole["labels"])
    for name in "st":
        assert files["scores"][name]["auc"]["value"] == pytest.approx(
            whole["scores"][name]["auc"]["value"], rel=1e-12
        )
    assert files["comparison"]["p_value"] == pytest.approx(whole["comparison"]["p_value"], rel=1e-9)


@pytest.mark.system
def test_the_tool_on_a_folder(frame, tmp_path):
    folder = in_files(frame, [400, 400], tmp_path / "data")
    common = ["--label", "label", "--id", "name", *QUICK_OPTIONS, "--max-unlabeled", "300"]
    result = run("fit", folder, *common)
    assert result.exit_code == 0, result.stderr
    assert "Fitted on 300 of 1,120 unlabelled rows" in result.stderr
    assert "Use --max-unlabeled" in result.stderr
    assert run("fit", folder / "0.parquet", folder / "1.parquet", folder / "2.parquet", *common,
               "-o", tmp_path / "named").exit_code == 0  # fmt: skip
    assert run("fit", f"{folder}/*.parquet", *common, "-o", tmp_path / "pattern").exit_code == 0
    models = [load_model(tmp_path / f"{n}.pnuauc") for n in ("data", "named", "pattern")]
    scores = [model.score(frame) for model in models]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])

    result = run("score", tmp_path / "data", folder, "-o", tmp_path / "all.csv")
    assert "Scored 1,200 rows" in result.stdout, result.stderr
    np.testing.assert_allclose(pd.read_csv(tmp_path / "all.csv").score, scores[0], rtol=1e-12)
    result = run("score", tmp_path / "data", folder)
    assert result.exit_code == 0, result.stderr
    parts = sorted((tmp_path / "data.scored").iterdir())
    assert [part.name for part in parts] == ["0.parquet", "1.parquet", "2.parquet"]
    joined = pd.concat([pd.read_parquet(part) for part in parts])
    np.testing.assert_allclose(joined.score, scores[0], rtol=1e-12)

    # any scores are evaluated; those of rows that the model has seen are refused
    assert "seen" in run("evaluate", tmp_path / "data.scored", "--json").stderr
    for part in parts:
        pd.read_parquet(part).drop(columns="seen").to_parquet(part)
    pd.read_csv(tmp_path / "all.csv").drop(columns="seen").to_csv(tmp_path / "all.csv")
    result = run("evaluate", tmp_path / "data.scored", "--json")
    whole = run("evaluate", tmp_path / "all.csv", "--json")
    of_files, of_one = (json.loads(r.stdout)["scores"]["score"]["auc"] for r in (result, whole))
    assert of_files["value"] == pytest.approx(of_one["value"], rel=1e-12)
    priors = [
        json.loads(run("prior", table, "--id", "name", "--json").stdout)["value"]
        for table in (folder, f"{folder}/*.parquet")
    ]
    assert priors[0] == priors[1]


def test_the_tool_refuses_in_a_sentence(frame, tmp_path):
    folder = in_files(frame, [400], tmp_path / "data")
    fit = ["fit", folder, "--id", "name", *QUICK_OPTIONS]
    assert "number of rows, 2 or more, or all" in run(*fit, "--max-unlabeled", "few").stderr
    assert run(*fit, "--max-unlabeled", "200", "-o", tmp_path / "m").exit_code == 0
    inside = run("score", tmp_path / "m", folder, "-o", folder / "scored")
    assert "lies inside the table" in inside.stderr
    assert run("fit", tmp_path / "none" / "*.csv").stderr.startswith("Error: No file matches")
    (folder / "2.parquet").write_bytes(b"PAR1 and no more")
    broken = run(*fit)
    assert broken.exit_code == 2
    assert "2.parquet' cannot be read as Parquet" in broken.stderr
