"""What a new user runs into first, in Python and at the command line."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

import pnuauc
from pnuauc import AUCClassifier, AUCClassifierCV, AutoAUCClassifier
from pnuauc.cli.app import app
from pnuauc.io import TableEncoder
from pnuauc.metrics import RoleStratifiedKFold, make_auc_scorer
from tests.conftest import run_tool


def rows(n_positive, n=120, negative=0, seed=0):
    """Rows of which the first are labelled; the classes overlap."""
    rng = np.random.default_rng(seed)
    y = np.full(n, np.nan)
    y[: n_positive + negative] = 0.0
    y[:n_positive] = 1.0
    hidden = np.where(np.isnan(y), rng.random(n) < 0.2, y)
    return rng.standard_normal((n, 3)) + hidden[:, None], y


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_positives_alone_are_ranked_whatever_the_share_is(seed):
    X, y = rows(5, seed=seed)
    model = AUCClassifierCV(n_centers=10, random_state=0)
    folds = RoleStratifiedKFold(3)
    for scoring in (make_auc_scorer(), None) if seed < 3 else ():
        assert np.isfinite(cross_val_score(model, X, y, scoring=scoring, cv=folds)).all()
    assert 0.0 <= model.fit(X, y).score(X, y) <= 1.0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"members": "trees"}, "must be a list of names, such as \\['trees'\\]"),
        ({"members": ["tree"]}, "no member 'tree'; choose from kernels"),
        ({"n_jobs": "all"}, "'n_jobs' parameter .* must be .* Got 'all'"),
        ({"prior": 0}, "strictly between 0 and 1, the share of positives"),
        ({"cv": "five"}, "at least 2 folds; got 'five'"),
        ({"cv": RoleStratifiedKFold(3)}, r"got a RoleStratifiedKFold\. .*cross_fit_auc judges"),
    ],
)
def test_wrong_settings_get_a_sentence(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        AutoAUCClassifier(**settings).fit(*rows(10, negative=10))


@pytest.mark.parametrize("more", [{"day": pd.date_range("2020-01-01", periods=120)}, {"s": "x y"}])
def test_frames_with_more_than_numbers_say_how(more):
    X, y = rows(10, negative=10)
    frame = pd.DataFrame(X, columns=list("abc")).assign(**more)
    for kind in (AUCClassifier, AUCClassifierCV):
        with pytest.raises(ValueError, match=r"make_pipeline\(pnuauc.io.TableEncoder\(\), AUC"):
            kind(prior=0.2).fit(frame, y)


def test_only_public_names_are_listed():
    assert not [name for name in dir(pnuauc) if name.startswith("_") and name != "__version__"]
    assert {"metrics", "priors", "AutoAUCClassifier"} <= set(dir(pnuauc))


def test_yes_and_no_columns_are_named_in_one_line():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"q{k}": rng.choice(["yes", "no"], 60) for k in range(17)})
    (note,) = TableEncoder().fit(table).notes_
    assert note == "17 columns ('q0', 'q1', 'q2', 'q3', 'q4', ...) are read as yes or no."


def test_three_label_values_are_asked_about(tmp_path):
    path = tmp_path / "t.csv"
    words = ["left", "stayed", "moved"]
    path.write_text("a,y\n" + "".join(f"{k},{words[k % 3]}\n" for k in range(30)))
    result = run_tool("fit", path, "--label", "y")
    assert result.exit_code == 2
    assert "'left', 'moved', 'stayed'" in result.output
    assert "Use --positive, --negative and --unlabeled" in result.output
    assert "StackingClassifier" not in result.output


def test_names_that_are_not_there(tmp_path):
    """The nearest one; all of them for a name that is like none, such as a question mark."""
    path = tmp_path / "t.csv"
    names = [f"column_{k}" for k in range(30)]
    path.write_text(",".join(names) + "\n" + "\n".join([",".join("1" * 30)] * 3) + "\n")
    near = run_tool("fit", path, "--label", "colum_29").output
    assert "did you mean 'column_29'?" in near
    assert "'column_15'" not in near
    asked = run_tool("fit", path, "--label", "?").output
    assert all(repr(name) in asked for name in names)


def test_what_is_to_be_written_into_the_label_column_can_be_read(tmp_path):
    """Not 1 or 0 beside yes and no, which would be four values."""
    X, y = rows(15, negative=15)
    table = pd.DataFrame(X).assign(y=np.where(y == 1, "yes", np.where(y == 0, "no", "")))
    table.to_csv(tmp_path / "t.csv", index=False)
    settings = ("--label", "y", "--centers", 5, "--folds", 2, "--jobs", 1, "--prior", 0.2)
    told = run_tool("fit", tmp_path / "t.csv", *settings)
    assert "into column 'y' (yes or no)" in " ".join(told.output.split())


def test_without_probabilities_none_are_offered(tmp_path):
    X, y = rows(2, negative=2)
    pd.DataFrame(X).assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    told = run_tool("fit", tmp_path / "t.csv", "--label", "y", "--folds", 2, "--jobs", 1).output
    assert "rows can be chosen by number as well" in " ".join(told.split())
    told = run_tool("score", tmp_path / "t.pnuauc", tmp_path / "t.csv").output
    assert "They were too few to hold any back." in " ".join(told.split())
    assert "probabilities are" not in told


@pytest.mark.parametrize("command", [c.callback.__name__ for c in app.registered_commands])
def test_help_is_in_groups_without_types_of_flags(command):
    text = run_tool(command, "--help").output
    assert "<bool>" not in text
    assert f"Example: pnuauc {command}" in text
    first = re.findall(r"^│ (--[\w-]+)", text.partition("─ Options ")[2], re.M)
    if command == "fit":
        assert first[:5] == ["--label", "--output", "--prior", "--id", "--drop"]
        for panel in ("Labels", "Model and estimates", "Reading", "Output"):
            assert f"─ {panel} ─" in text
    if command == "score":
        assert "as many unlabelled rows exceed as are estimated to be" in " ".join(
            re.sub("[│─╭╮╰╯]", " ", text).split()
        )
