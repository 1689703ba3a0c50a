"""Tests of cli/app."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import roc_auc_score

from attack.containers import join, split
from pnuauc.cli.app import app
from pnuauc.cli.console import exit_code_of
from pnuauc.cli.options import parse_belief, parse_prior
from pnuauc.exceptions import InputError
from pnuauc.io import load_model, read_table, save_model
from pnuauc.metrics import auc_estimate, compare_auc
from pnuauc.study.payments import make_payments

pytest.importorskip("typer")

#: Small enough for a test; everything else is the default.
from tests.conftest import run_tool as run
from tests.conftest import start_tool

QUICK = ["--centers", "10", "--folds", "2", "--jobs", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table and everything ``fit`` makes of it."""
    folder = tmp_path_factory.mktemp("cli")
    table, _ = make_payments(300, labelled=60, share=0.2, seed=3)
    pa.parquet.write_table(table, folder / "payments.parquet")
    named = ("--label", "is_fraud", "--id", "payment_id")
    result = run("fit", folder / "payments.parquet", *named, "-o", folder / "model", *QUICK)
    assert result.exit_code == 0, result.output
    (folder / "fit.txt").write_text(result.output)
    return folder


def test_a_mixture_of_two_fits_is_named(folder, tmp_path):
    """All files of a fit carry one id; inspect and score name files of another."""
    for path in folder.glob("model*"):
        shutil.copy(path, tmp_path)
    model, table = tmp_path / "model.pnuauc", folder / "payments.parquet"
    run_id = load_model(model).card["run"]
    others = [tmp_path / f"model{ending}" for ending in (".html", ".json", ".review.csv")]
    commands = [("inspect", model), ("score", model, table, "-o", tmp_path / "s.csv")]
    assert all(run_id in path.read_text() for path in others)
    for command in commands:
        assert "same fit" not in run(*command).output
    for path in others:
        sound = path.read_text()
        path.write_text(sound.replace(run_id, "run-0123456789abcdef"))
        for command in commands:
            result = run(*command)
            assert result.exit_code == 0
            assert f"Not of the same fit as '{model}': '{path}'" in " ".join(result.output.split())
        path.write_text(sound)
    # and a second fit has another id
    assert run("fit", table, "-l", "is_fraud", "-o", model, *QUICK).exit_code == 0
    assert load_model(model).card["run"] != run_id


@pytest.mark.parametrize(
    "card",
    [{"warnings": ["w" * 20] * 300_000}, {"warnings": ["long " * 2_000_000]}],
    ids=["many", "long"],
)
def test_inspect_prints_no_more_than_a_card_has(folder, tmp_path, card):
    """Megabytes of remarks took a terminal minutes."""
    manifest, arrays = split((folder / "model.pnuauc").read_bytes())
    manifest["card"] |= card
    (tmp_path / "m.pnuauc").write_bytes(join(manifest, arrays))
    result = run("inspect", tmp_path / "m.pnuauc")
    assert result.exit_code == 0
    assert len(result.output) < 200_000
    assert "--json" in result.output


def test_fit_tells_what_the_story_promises(folder):
    output = (folder / "fit.txt").read_text()
    for part in (
        "Share of positives",
        "AUC, held out",
        "95% interval",
        "Model",
        "Unlabelled rows",
        "20 positive, 40 negative, 240 unlabelled",
        "model.html",
        "To find half of all positives, review about",
        "What to do next",
        "A score above 0 is called positive",
    ):
        assert part in output
    assert "\x1b[" not in output  # no colours outside a terminal
    assert {p.name for p in folder.iterdir()} >= {"model.pnuauc", "model.html", "model.json"}


def test_fit_reads_the_labels_once(folder, tmp_path, monkeypatch):
    from pnuauc import labels

    read = []
    parse = labels.distinct
    monkeypatch.setattr(labels, "distinct", lambda y: read.append(len(y)) or parse(y))
    result = run(
        "fit", folder / "payments.parquet", "--label", "is_fraud", "-o", tmp_path / "m", *QUICK
    )
    assert result.exit_code == 0, result.output
    assert read == [3]  # the values that occur, not the rows


def test_score_then_evaluate(folder):
    scored = folder / "scored.csv"
    result = run("score", folder / "model", folder / "payments.parquet", "-o", scored)
    assert result.exit_code == 0, result.output
    assert "300 rows" in result.output
    table = read_table(scored)
    expected = load_model(folder / "model.pnuauc").score(read_table(folder / "payments.parquet"))
    np.testing.assert_allclose(table.column("score").to_numpy(), expected, rtol=1e-9)
    refused = run("evaluate", scored, "--label", "is_fraud", "--prior", "0.2", "--json")
    assert refused.exit_code == 2
    assert "heldout.csv" in refused.stderr
    others = folder / "others.csv"  # as if another model had scored them
    pa.csv.write_csv(table.drop_columns(["seen"]), others)
    result = run("evaluate", others, "--label", "is_fraud", "--prior", "0.2", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    labels = [None if v is None else int(v) for v in table.column("is_fraud").to_pylist()]
    known = auc_estimate(labels, expected, 0.2)
    assert found["scores"]["score"]["auc"]["value"] == pytest.approx(known.value, rel=1e-9)
    assert found["scores"]["score"]["auc"]["low"] == pytest.approx(known.low, rel=1e-9)


def test_the_default_model_writes_probabilities_and_reasons(tmp_path):
    """A table with gaps and a long category list: trees read their own view, in the file too."""
    rng = np.random.default_rng(0)
    hidden = rng.random(400) < 0.3
    size = np.where(rng.random(400) < 0.2, None, np.round(rng.normal(size=400) + 2 * hidden, 3))
    shop = [f"shop {k}" for k in rng.integers(0, 15, 400)]
    known = [int(v) if i < 60 else None for i, v in enumerate(hidden)]
    table = pa.table({"size": pa.array(size.tolist()), "shop": shop, "y": pa.array(known)})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    files = (tmp_path / "t.parquet", "-o", tmp_path / "m")
    made = run("fit", *files, "-l", "y", "--prior", "0.3", "--folds", "2")
    assert made.exit_code == 0, made.output
    result = run(
        "score", tmp_path / "m", tmp_path / "t.parquet", "-o", tmp_path / "s.csv", "--reasons", "2"
    )
    assert result.exit_code == 0, result.output
    out = read_table(tmp_path / "s.csv")
    chances = ["probability", "probability_low", "probability_high"]
    assert out.column_names == ["row", "y", "seen", "score", "percentile", *chances, "reasons"]
    value, low, high = (out.column(name).to_numpy() for name in chances)
    assert ((low <= value) & (value <= high)).all()
    assert value[60:].mean() == pytest.approx(0.3, abs=0.05)  # the prior
    # rows that were labelled, and their copies, have the probability of their held-out score
    new = ~np.array(out.column("seen").to_pylist())
    assert not new[:60].any()
    order = np.argsort(out.column("score").to_numpy()[new], kind="stable")
    assert (np.diff(value[new][order]) >= -1e-9).all()
    model = load_model(tmp_path / "m.pnuauc")
    assert model.scorer.views == ("kernels", "trees")
    reasons = out.column("reasons").to_pylist()
    first = int(np.argmax(out.column("score").to_numpy()))
    assert f"size = {size[first]:.6g} (+" in reasons[first]
    assert any("size = (missing) (" in told for told in reasons)
    again = run("score", tmp_path / "m", tmp_path / "t.parquet", "-o", tmp_path / "s.csv")
    assert again.exit_code == 0, again.output  # its own output may be replaced


def write_scores(path, labels):
    rng = np.random.default_rng(0)
    n = len(labels)
    strength = np.array([2.0 if v == 1 else 0.0 for v in labels])
    a, b = strength + rng.normal(size=n), 0.3 * strength + rng.normal(size=n)
    pa.csv.write_csv(pa.table({"a": a, "b": b, "y": pa.array(labels, pa.int8())}), path)
    return a, b


def test_two_columns_are_compared(tmp_path):
    labels = [1] * 30 + [0] * 40 + [None] * 200
    a, b = write_scores(tmp_path / "s.csv", labels)
    two = ("evaluate", tmp_path / "s.csv", "--score", "a", "--score", "b", "--label", "y")
    result = run(*two, "--prior", "0.1", "--json")
    found = json.loads(result.stdout)["comparison"]
    known = compare_auc(labels, a, b, 0.1)
    assert found["p_value"] == pytest.approx(known.p_value, rel=1e-6)
    assert found["difference"] == pytest.approx(known.difference, rel=1e-6)
    text = run(*two).output
    assert "'a' minus 'b'" in text
    assert "a clear difference" in text
    assert "Holm" not in text


def test_more_than_two_columns_are_compared_in_pairs(tmp_path):
    labels = [1] * 30 + [0] * 40 + [None] * 200
    write_scores(tmp_path / "s.csv", labels)
    table = pa.csv.read_csv(tmp_path / "s.csv")
    pa.csv.write_csv(table.append_column("c", table["a"]), tmp_path / "s.csv")
    columns = [word for name in "abc" for word in ("-s", name)]
    text = run("evaluate", tmp_path / "s.csv", *columns, "-l", "y").output
    text = " ".join(text.split())
    for pair in ("'a' minus 'b'", "'a' minus 'c'", "'b' minus 'c'"):
        assert pair in text
    assert text.count("as one of 3 comparisons (Holm)") == 3


def test_positive_unlabeled_scores_without_a_prior(tmp_path):
    labels = [1] * 40 + [None] * 200
    write_scores(tmp_path / "s.csv", labels)
    result = run("evaluate", tmp_path / "s.csv", "--score", "a", "--label", "y")
    assert result.exit_code == 0, result.output
    assert "depends on the share of positives" in result.output
    with_prior = run(
        "evaluate", tmp_path / "s.csv", "--score", "a", "-l", "y", "--prior", "0.05:0.15"
    )
    assert "AUC of 'a'" in with_prior.output
    auto = run(
        "evaluate", tmp_path / "s.csv", "--score", "a", "-l", "y", "--prior", "auto", "--json"
    )
    assert json.loads(auto.stdout)["prior"]["source"].startswith("estimated")


def test_prior(folder):
    result = run("prior", folder / "payments.parquet", "--label", "is_fraud", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert 0 <= found["low"] <= found["value"] <= found["high"] <= 1
    text = run("prior", folder / "payments.parquet", "--label", "is_fraud")
    assert text.stdout.startswith("Of the 240 unlabelled rows ")
    assert "If rows were labelled inside this table, not added to it" in text.stdout


@pytest.mark.slow
def test_belief(folder, tmp_path):
    """What is known beforehand moves the estimate of both commands, and both say so."""
    table = [folder / "payments.parquet", "--label", "is_fraud", "--json"]
    plain, low = (
        json.loads(run("prior", *table, *more).stdout) for more in ([], ["--belief", "0:2%"])
    )
    assert low["value"] < plain["value"]
    assert low["source"].endswith("with the belief (0.0, 0.02)")
    assert low["high"] < 0.04
    fitted = run("fit", *table, "--belief", "0:2%", "-o", tmp_path / "m.pnuauc", *QUICK)
    # of other folds
    assert json.loads(fitted.stdout)["prior"]["value"] == pytest.approx(low["value"], abs=0.005)
    refused = run("prior", tmp_path / "not-there.csv", "--method", "energy", "--belief", "0:0.1")
    assert refused.exit_code == 2
    assert "'energy' takes no belief" in " ".join(refused.output.split())


def test_inspect(folder):
    result = run("inspect", folder / "model.pnuauc")
    assert result.exit_code == 0, result.output
    for part in ("amount (number)", "time (date)", "shop (category)", "scikit-learn", "intact"):
        assert part in result.output
    manifest = json.loads(run("inspect", folder / "model.pnuauc", "--json").stdout)
    assert manifest["format"] == "pnuauc-model"
    # a card tells about the table, but carries none of its rows
    assert "P03-" not in json.dumps(manifest)


def test_a_strangers_model_cannot_steer_the_terminal(folder, tmp_path):
    model = load_model(folder / "model.pnuauc")
    model.card["command"] = "\x1b]0;owned\x07 [red]x[/red]"
    model.card["warnings"] = ["\x1b[2J"]
    save_model(model, tmp_path / "m.pnuauc")
    result = run("inspect", tmp_path / "m.pnuauc")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "[red]x[/red]" in result.output


def test_quiet_says_nothing(folder, tmp_path):
    result = run(
        "score", folder / "model", folder / "payments.parquet", "-o", tmp_path / "s.csv", "--quiet"
    )
    assert (result.exit_code, result.output) == (0, "")


def test_defaults_just_work(tmp_path):
    rng = np.random.default_rng(0)
    n = 120
    y = [1] * 15 + [0] * 15 + [None] * (n - 30)
    x = rng.normal(size=n) + np.array([1.5 if v == 1 else 0 for v in y])
    pa.csv.write_csv(pa.table({"x": x, "z": rng.normal(size=n), "y": y}), tmp_path / "table.csv")
    result = run("fit", tmp_path / "table.csv", "--label", "y", *QUICK)
    assert result.exit_code == 0, result.output
    assert {p.name for p in tmp_path.iterdir()} == {
        "table.csv",
        "table.pnuauc",
        "table.review.csv",
        "table.heldout.csv",
        "table.html",
        "table.json",
    }
    assert run("score", tmp_path / "table.pnuauc", tmp_path / "table.csv").exit_code == 0
    assert (tmp_path / "table.scored.csv").exists()


@pytest.mark.parametrize("setting", ["PN", "NU"])
def test_settings_without_u_or_without_p(tmp_path, setting):
    rng = np.random.default_rng(1)
    hidden = np.arange(160) % 4 == 0
    y = [int(v) for v in hidden]
    if setting != "PN":
        y = [v if v == 0 and i % 8 < 4 else None for i, v in enumerate(y)]
    x = rng.normal(size=160) + 2 * hidden
    pa.csv.write_csv(
        pa.table({"x": x, "z": rng.normal(size=160), "y": pa.array(y, pa.int8())}),
        tmp_path / "t.csv",
    )
    result = run("fit", tmp_path / "t.csv", "--label", "y", "--json", *QUICK)
    assert result.exit_code == 0, result.output
    findings = json.loads(result.stdout)
    assert findings["labels"]["setting"] == setting
    assert (findings["prior"] is None) == (setting == "PN")
    assert findings["auc"]["low"] <= findings["auc"]["value"] <= findings["auc"]["high"]
    assert "<html" in (tmp_path / "t.html").read_text()


def test_label_values_by_option(tmp_path):
    rng = np.random.default_rng(0)
    words = ["fraud"] * 15 + ["fine"] * 15 + ["?"] * 60
    x = rng.normal(size=90) + np.array([1.5 if w == "fraud" else 0 for w in words])
    pa.csv.write_csv(pa.table({"x": x, "z": rng.normal(size=90), "w": words}), tmp_path / "t.csv")
    codes = ("--positive", "fraud", "--negative", "fine", "--unlabeled", "?")
    result = run("fit", tmp_path / "t.csv", "--label", "w", *codes, "--json", *QUICK)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["labels"]["positive"] == 15


def test_libsvm_from_fit_to_score(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((120, 6)) * (rng.random((120, 6)) < 0.6)
    y = np.where(np.arange(120) < 60, np.arange(120) % 2, -1)
    X[:, 0] += (y == 1) * 0.8
    dump_svmlight_file(X, y, str(tmp_path / "t.libsvm"), zero_based=False)
    result = run("fit", tmp_path / "t.libsvm", "--prior", "0.3", *QUICK)
    assert result.exit_code == 0, result.output
    top = json.loads((tmp_path / "t.json").read_text())["top"]
    assert top["columns"]
    for line, cells in zip(top["rows"], top["cells"], strict=True):
        row = X[line[0] - 1]
        wanted = [row[int(name.split()[-1]) - 1] for name in top["columns"]]
        np.testing.assert_allclose([float(cell) for cell in cells], wanted, rtol=1e-5)
    result = run("score", tmp_path / "t.pnuauc", tmp_path / "t.libsvm")
    assert result.exit_code == 0, result.output
    found = read_table(tmp_path / "t.scored.csv")
    assert found.num_rows == 120
    np.testing.assert_array_equal(found["seen"], y >= 0)


@pytest.mark.system
def test_version_and_module():
    from pnuauc import __version__

    assert run("--version").output.strip() == f"pnuauc {__version__}"
    done = subprocess.run(
        [sys.executable, "-m", "pnuauc", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"pnuauc {__version__}"


def test_reproduce_hands_over(monkeypatch, tmp_path):
    from pnuauc.cli import work as _reproduce

    package = tmp_path / "experiments"
    package.mkdir()
    (package / "__init__.py").write_text("def main(argv):\n    print('ran', argv)\n    return 3\n")
    monkeypatch.setattr(_reproduce, "__file__", str(tmp_path / "src" / "pnuauc" / "_cli" / "r.py"))
    monkeypatch.delitem(sys.modules, "experiments", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    result = run("reproduce", "table4", "--trials", "2")
    assert result.exit_code == 3, result.output
    assert "ran ['table4', '--trials', '2']" in result.output
    sys.modules.pop("experiments", None)


@pytest.mark.parametrize(
    ("labels", "options", "code", "message"),
    [
        (["cat", "dog"], [], 2, "do not say which is positive.*--positive cat or --positive dog"),
        (["not me", "x y"], [], 2, "Use --positive 'not me' or --positive 'x y'"),
        (
            ["yes", ""],
            ["--positive", "Yes"],
            2,
            "never holds 'Yes'.*did you mean 'yes'.*--positive",
        ),
        (["0", "1", "2"], ["--positive", "1"], 2, "belong to no role: 2"),
        (
            ["1"] + [""] * 59,
            [],
            2,
            "1 positive, 0 negative and 59 unlabelled|1 positive row and no",
        ),
        (["1"] * 3 + [""] * 57, [], 2, "holds 3 positive rows and no negative one"),
        (["1"] + ["0"] * 9, [], 0, "0 is read as negative.*--unlabeled 0"),
        (["1", "0", "-1"], [], 0, "1, 0 and -1 are read as positive, negative and unlabelled"),
        (["Fraud", "Legit"], [], 0, "'Fraud' as positive, 'Legit' as negative"),
    ],
)
def test_labels_are_asked_about_or_told(tmp_path, labels, options, code, message):
    rng = np.random.default_rng(0)
    cells = (labels * 60)[: max(60, len(labels))]
    rows = [f"{rng.normal() + (c in ('1', 'Fraud')):.4f},{c}" for c in cells]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,y", *rows]) + "\n")
    done = run("fit", path, "--label", "y", "--prior", "0.3", *QUICK, *options)
    assert done.exit_code == code, done.output
    assert re.search(message, " ".join(done.stderr.split()))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["reproduce"], "Name an experiment, for example: pnuauc reproduce table4"),
        (["demo", "--jobs", "0"], "0 means no threads"),
        (["fit", "t.csv", "--jobs", "0"], "0 means no threads"),
        (["fit", "t.csv", "--colour", "red"], "--colour. 'pnuauc fit --help' lists the options."),
        (["fit", "t.csv", "--jbos", "2"], "--jobs"),
        (["fit", "t.csv", "--label"], "'--label'"),
        (["fit", "t.csv", "--seed", "1.5"], "'--seed'"),
        (["fit", "t.csv", "--folds", "1"], "'--folds'"),
        (["score", "m.pnuauc"], "'TABLE'"),
        (["inspect", "m.pnuauc", "b"], "(b)"),
        (["fti", "t.csv"], "'fit'"),
    ],
)
def test_wrong_options_get_a_sentence(command, message, capsys):
    code = exit_code_of(lambda: app(command, prog_name="pnuauc", standalone_mode=False))
    assert code == 2
    printed = capsys.readouterr().err
    assert printed.startswith("Error: ")
    assert message in " ".join(printed.split())
    assert "Usage" not in printed


posix = pytest.mark.skipif(os.name != "posix", reason="links, modes and forks of POSIX")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--report", "t.csv"], "'t.csv' is an input of this command"),
        (["--report", "link.csv"], "same file as .* is an input"),
        (["--report", "hard.csv"], "same file as .* is an input"),
        (["--report", "folder/../t.csv"], "same file as .* is an input"),
        (["-o", "m", "--report", "m.pnuauc"], "is another output"),
        (["-o", "m", "--report", "n.json"], "is another output"),
        (["-o", "m", "--report", "dangling.html"], "same file as .* is another output"),
        (["-o", "notes"], "'notes.html' already exists and was not written by pnuauc"),
    ],
)
def test_fit_replaces_nothing_but_its_own(fitted, tmp_path, monkeypatch, options, message):
    shutil.copy(fitted / "t.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("link.csv").symlink_to("t.csv")
    os.link("t.csv", "hard.csv")
    Path("dangling.html").symlink_to("m.pnuauc")
    Path("notes.html").write_text("<!doctype html><p>mine")
    before = {p.name: p.read_bytes() for p in Path().iterdir() if p.is_file()}
    result = run("fit", "t.csv", "-l", "y", *options, *QUICK)
    assert result.exit_code == 2
    assert re.search(message, result.stderr), result.stderr
    assert {p.name: p.read_bytes() for p in Path().iterdir() if p.is_file()} == before


def test_a_users_json_beside_the_table_is_kept(fitted, tmp_path, monkeypatch):
    shutil.copy(fitted / "t.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("t.json").write_text('{"sales": 1}')
    result = run("fit", "t.csv", "-l", "y", "--prior", "0.4", *QUICK)
    assert result.exit_code == 2
    assert "'t.json' already exists" in result.stderr
    assert Path("t.json").read_text() == '{"sales": 1}'
    assert not Path("t.pnuauc").exists()
    result = run("fit", "t.csv", "-l", "y", "--prior", "0.4", *QUICK, "--overwrite")
    assert result.exit_code == 0, result.output
    assert "pnuauc" in json.loads(Path("t.json").read_text())
    # and from now on it is ours
    assert run("fit", "t.csv", "-l", "y", "--prior", "0.4", *QUICK).exit_code == 0


def test_scores_for_a_spreadsheet(fitted, tmp_path):
    target = tmp_path / "s.csv"
    result = run("score", fitted / "t.pnuauc", fitted / "t.csv", "-o", target)
    assert "60 cells begin with =" in result.stderr
    assert target.read_text().splitlines()[1].startswith('"=0"')
    result = run("score", fitted / "t.pnuauc", fitted / "t.csv", "-o", target, "--spreadsheet")
    assert "formulas" not in result.stderr
    assert target.read_text().splitlines()[1].startswith('"\'=0"')
    result = run("score", fitted / "t.pnuauc", fitted / "t.csv", "-o", tmp_path / "s.parquet")
    assert "formulas" not in result.stderr


def test_names_cannot_steer_terminal_or_page(fitted, tmp_path):
    evil = "t\x1b[2J\u202e\x9b.csv"
    (tmp_path / evil).write_bytes((fitted / "t.csv").read_bytes())
    result = run("fit", tmp_path / evil, "-l", "y", "--prior", "0.4", "-o", tmp_path / "m", *QUICK)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "m.html").read_text()
    for text in (result.output, page):
        assert not {"\x1b", "\x9b", "\u202e"} & set(text)
    for command in (["inspect", tmp_path / "m"], ["fit", tmp_path / ("no" + evil)]):
        for options in ([], ["--json"]):
            output = run(*command, *options).output
            assert not {"\x1b", "\x9b", "\u202e"} & set(output)


@pytest.mark.parametrize(("encoding", "options"), [("ascii", ["--json"]), ("cp1252", [])])
@pytest.mark.system
def test_any_encoding_of_the_terminal(fitted, tmp_path, encoding, options):
    name = "tablé 表.csv"
    (tmp_path / name).write_bytes((fitted / "t.csv").read_bytes())
    process = start_tool(
        *("evaluate", tmp_path / name, "-l", "y", "-s", "a", *options),
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    out, error = process.communicate(timeout=100)
    assert process.returncode == 0, error
    if options:
        assert json.loads(out.decode("ascii"))["scores"]
    process = start_tool(
        *("evaluate", tmp_path / ("no " + name), *options),
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    _, error = process.communicate(timeout=100)
    assert process.returncode == 2
    assert b"There is no file" in error


@posix
@pytest.mark.system
def test_a_reader_that_leaves(fitted):
    process = start_tool("inspect", fitted / "t.pnuauc", "--json")
    process.stdout.close()
    with process.stderr as stream:
        error = stream.read()
    assert process.wait(timeout=50) == 128 + signal.SIGPIPE
    assert error == b""


@posix
@pytest.mark.system
def test_a_full_standard_output(fitted):
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "pnuauc", "inspect", str(fitted / "t.pnuauc"), "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert process.returncode == 1
    assert b"disk is full" in process.stderr
    assert b"Traceback" not in process.stderr


def test_reproduce_needs_a_checkout_of_its_own(tmp_path, monkeypatch):
    from pnuauc.cli import work as _reproduce

    installed = tmp_path / "site-packages" / "pnuauc" / "_cli" / "_reproduce.py"
    monkeypatch.setattr(_reproduce, "__file__", str(installed))
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").write_text("raise SystemExit('owned')\n")
    monkeypatch.chdir(tmp_path)
    result = run("reproduce", "table4")
    assert result.exit_code == 2
    assert "not part of the installed package" in result.output


@pytest.mark.parametrize("text", ["0", "1", "2", "-0.1", "x", "0.3:0.1", "0.1:0.2:0.3", ""])
def test_priors_that_are_none(text):
    with pytest.raises(InputError, match="--prior takes"):
        parse_prior(text)


@pytest.mark.parametrize("text", ["0.1", "x", "0.3:0.1", "0.1:0.1", "-0.1:0.2", "0:1.1", "0:.1:.2"])
def test_beliefs_that_are_none(text):
    with pytest.raises(InputError, match="--belief takes"):
        parse_belief(text)


MINE = """
from tests.committee.test_own import Watched
class Kept:
    ready = Watched()
def broken():
    raise RuntimeError("no licence")
"""


def test_an_estimator_is_judged_but_not_written(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine_of_this_test.py").write_text(MINE)
    ask = ["fit", folder / "payments.parquet", "--label", "is_fraud", "--id", "payment_id"]
    ask += ["-o", "own", "--folds", "3", "--jobs", "1", "--estimator"]
    result = run(*ask, "mine_of_this_test:Kept.ready", "--json")
    assert result.exit_code == 0, result.output
    findings = json.loads(result.stdout)  # what the estimator prints is not in it
    assert findings["selection"]["message"] == "Watched, as given."
    assert findings["rivals"][0]["name"] == "what pnuauc fits by itself"
    assert sorted(p.name for p in tmp_path.glob("own*")) == [
        "own.heldout.csv",
        "own.html",
        "own.json",
        "own.review.csv",
    ]
    assert "model" not in findings["files"]
    result = run(*ask, "tests.committee.test_own:Watched", "--overwrite")
    assert "The model is not written: Watched cannot be stored safely" in result.output
    for wrong, said in (
        ("mine_of_this_test:broken", "no licence"),
        ("mine_of_this_test:none", "no attribute"),
        ("no_such_module:x", "No module named"),
        ("mine_of_this_test:Kept", "Kept is no estimator"),
    ):
        result = run(*ask, wrong)
        assert result.exit_code == 2
        assert said in result.output


@pytest.mark.parametrize("gaps", [False, True])
def test_vectors_from_fit_to_review(tmp_path, gaps):
    """A column of lists, some missing, in every command that reads the table."""
    rng = np.random.default_rng(0)
    hidden = rng.random(400) < 0.3
    vectors = (rng.normal(size=(400, 8)) + 0.9 * hidden[:, None]).tolist()
    cells = [None if gaps and i % 9 == 4 else v for i, v in enumerate(vectors)]
    known = pa.array([int(v) if i < 90 else None for i, v in enumerate(hidden)], pa.int8())
    table = pa.table(
        {"x": rng.normal(size=400), "v": cells, "id": np.arange(400) + 900, "y": known}
    )
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(table, path)
    model = tmp_path / "t.pnuauc"
    made = run("fit", path, "-l", "y", "--id", "id", "--folds", "2")
    assert made.exit_code == 0, made.output
    assert "1 vector" in made.output
    for command in (
        ("score", model, path, "-o", tmp_path / "s.csv", "--reasons", "2"),
        ("monitor", model, path, "-l", "y"),
        ("prior", path, "-l", "y"),
        ("review", path, "-l", "y", "--id", "id", "-o", tmp_path / "r", "--batch", "9"),
    ):
        result = run(*command)
        assert result.exit_code == 0, result.output
    scores = read_table(tmp_path / "s.csv").column("score").to_numpy()
    assert roc_auc_score(hidden[90:], scores[90:]) > 0.85
