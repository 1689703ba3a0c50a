"""Tests of experiments/experiments."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import experiments
from experiments import report, runner
from experiments.again import compare_again
from experiments.config import CONFIG, Config, Job, Setting
from experiments.rankers import COLUMNS, draw, fit_key, paper_grid
from experiments.runner import Wanted, run_job
from experiments.store import Store, read_rows
from experiments.summary import PAPER, Cell, best_or_comparable, cells, printed
from pnuauc import AUCClassifierCV
from pnuauc.datasets import make_twonorm, sample_pnu

pytest.importorskip("experiments", reason="experiments/ is not part of the package")

ROOT = Path(__file__).parents[2]

KEY = ("experiment", "data_set", "setting", "method", "seed", "fingerprint")

NUMBERS = ("status", "auc", "prior_used", "n_unlabeled", "n_test", "chosen")

TINY = """
[protocol]
scale = "standard"
n_test = 500
unlabeled_draw = "exact"
prior_bounds = [0.01, 0.99]
test_share = 0.2

[generated]
make_twonorm = { n_samples = 1500, random_state = 0 }
make_banana = { n_samples = 1500, random_state = 0 }

[priors]
energy = { estimator = "energy", statistic = "V" }

[methods]
paper = { kind = "auc_cv", selection = "paper", prior = "given", n_centers = 20, paper = "PNU-AUC" }
average = { kind = "auc_cv", selection = "average", prior = "given", n_centers = 20 }
alone = { kind = "auc_cv", selection = "paper", prior = "energy", etas = [0.0], n_centers = 21 }
broken = { kind = "auc_cv", risk = "pn", basis = "no such thing", label = "broken" }
logistic = { kind = "baseline", name = "logistic_regression", trials = 2 }

[experiments.tiny]
title = "A small one"
trials = 4
data_sets = ["make_twonorm", "make_banana"]
methods = ["paper", "average", "alone", "broken", "logistic"]
settings = [
  { n_positive = 10, n_negative = 20, n_unlabeled = 60, prior = 0.3 },
]
"""


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(TINY)
    return path


def command(config: Path, results: Path, n_jobs: int) -> list[str]:
    return [
        *(sys.executable, "-m", "experiments", "tiny", "--config", str(config)),
        *("--results", str(results), "--jobs", str(n_jobs)),
    ]


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        arguments,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def by_key(path: Path) -> dict[tuple[str, ...], dict[str, str]]:
    rows = read_rows(path)
    found = {tuple(row[k] for k in KEY): row for row in rows}
    assert len(found) == len(rows), "a row is there twice"
    return found


def children_of(pid: int) -> list[int]:
    """Worker processes of a parent, where the system lists them."""
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.system
def test_killed_and_resumed_equals_uninterrupted(tmp_path: Path, config_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    process = start(command(config_path, cut, 2))
    file = cut / "tiny.csv"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not file.exists() or len(read_rows(file)) < 5):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.02)
    workers = children_of(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = by_key(file)
    with open(file, "a") as damaged:  # what a kill in the middle of a write leaves behind
        damaged.write("tiny,make_twonorm,P10 N20 U60 pri")
    config = Config.read(config_path)
    n_rows = sum(len(job.methods) for job in config["tiny"].jobs(fit_key))
    assert 5 <= len(before) < n_rows
    deadline = time.monotonic() + 20
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(alive, workers)), "workers outlive a killed parent"

    assert experiments.main(command(config_path, cut, 2)[3:]) == 0
    assert experiments.main(command(config_path, whole, 1)[3:]) == 0
    resumed, straight = by_key(file), by_key(whole / "tiny.csv")
    assert set(resumed) == set(straight)
    assert len(straight) == n_rows
    for key, row in straight.items():
        assert [row[n] for n in NUMBERS] == [resumed[key][n] for n in NUMBERS]
    for key, row in before.items():
        assert resumed[key] == row, "a finished row was computed again"
    content = file.read_text()
    assert experiments.main(command(config_path, cut, 2)[3:]) == 0  # nothing left to do
    assert file.read_text() == content
    check_outputs(config, whole)
    check_again(config, whole)


def check_again(config: Config, results: Path) -> None:
    """Stored rows computed once more: equal, and one that was tampered with is found."""
    wanted, file = Wanted(methods=["logistic"]), results / "tiny.csv"
    told = compare_again(config["tiny"], results, 9, wanted)
    assert told == "4 rows of 4 jobs computed again: 0 values differ."
    auc = next(row["auc"] for row in read_rows(file) if row["method"] == "logistic")
    file.write_text(file.read_text().replace(f",{auc},", ",0.123456,"))
    told = compare_again(config["tiny"], results, 9, wanted)
    assert "1 values differ" in told
    assert f"| auc | 0.123456 | {auc} |" in told


def test_trials_start_at_the_first_seed(config_path: Path) -> None:
    """Other draws, the same rows otherwise: the fingerprint and a method's own trials stay."""
    plain = Config.read(config_path)["tiny"]
    config_path.write_text(TINY.replace("trials = 4\n", "trials = 4\nfirst_seed = 100\n"))
    later = Config.read(config_path)["tiny"]
    seeds = {
        name: sorted({job.seed for job in later.jobs(str, methods=[name])})
        for name in ("paper", "logistic")
    }
    assert seeds == {"paper": [100, 101, 102, 103], "logistic": [100, 101]}
    assert len(list(later.jobs(str))) == len(list(plain.jobs(str)))
    method = plain.methods[0]
    assert later.fingerprint(method, "make_banana") == plain.fingerprint(method, "make_banana")


def check_outputs(config: Config, results: Path) -> None:
    """What a finished run leaves: failures as rows, versions, Markdown and CSV."""
    rows = read_rows(results / "tiny.csv")
    broken = [r for r in rows if r["method"] == "broken"]
    assert broken
    assert all(r["status"] == "failed" and "'basis' parameter" in r["note"] for r in broken)
    assert all(r["status"] == "ok" for r in rows if r["method"] != "broken")
    assert len({r["seed"] for r in rows if r["method"] == "logistic"}) == 2
    runs = (results / "runs.jsonl").read_text()
    assert '"scikit-learn"' in runs
    assert all(r["run"] in runs for r in rows)
    assert '"wall_seconds"' in runs
    assert str(Path.home()) not in runs
    text = (results / "tiny.md").read_text()
    assert "Failed trials" in text
    with open(results / "tiny_summary.csv", newline="") as file:
        (line,) = (
            row
            for row in csv.DictReader(file)
            if (row["data_set"], row["method"]) == ("make_twonorm", "paper")
            and row["setting"].endswith("0.3")
        )
    aucs = [
        100 * float(r["auc"])
        for r in rows
        if (r["data_set"], r["method"]) == ("make_twonorm", "paper") and "0.3" in r["setting"]
    ]
    assert len(aucs) == 4
    assert float(line["auc_percent"]) == pytest.approx(np.mean(aucs), abs=0.006)
    assert float(line["std_err"]) == pytest.approx(stats.sem(aucs), abs=0.006)


def test_shared_fit_equals_a_fit_of_its_own(tmp_path: Path, config_path: Path) -> None:
    """The paper's choice read off the averaged fit is the paper's choice fitted alone."""
    config = Config.read(config_path)
    part = config["tiny"]
    (both,) = part.jobs(fit_key, 1, ["make_banana"], ["paper", "average"], [part.settings[0].key])
    (alone,) = part.jobs(fit_key, 1, ["make_banana"], ["paper"], [part.settings[0].key])
    shared, _ = run_job(both)
    single, _ = run_job(alone)
    assert [row["method"] for row in shared] == ["paper", "average"]
    assert shared[0]["auc"] == pytest.approx(single[0]["auc"], abs=1e-9)
    assert shared[0]["chosen"] == single[0]["chosen"]


@pytest.mark.parametrize("basis", ["gaussian", "linear"])
@pytest.mark.system
def test_one_grid_gives_what_three_fits_give(basis: str) -> None:
    """The paper's choice, the average and eta = 0 off one grid equal AUCClassifierCV's own."""
    X, y = make_twonorm(1500, random_state=0)
    sample = sample_pnu(X, y, 10, 40, 300, 0.2, random_state=1)
    labels = np.where(sample.y == -1, np.nan, sample.y.astype(float))
    grid = paper_grid(sample.X, labels, 0.25, basis == "linear", 3)
    for selection, validation, risk in (
        ("paper", "simple", "pnu"),
        ("average", "combined", "pnu"),
        ("paper", "pn", "pn"),
        ("average", "pn", "pn"),
    ):
        model = AUCClassifierCV(selection, risk=risk, basis=basis, prior=0.25, random_state=3)
        theirs = model.fit(sample.X, labels).decision_function(sample.X_test) - model.intercept_
        chosen = grid.choose(selection, validation).model
        ours = chosen.score(sample.X_test)
        if (selection, validation) == ("average", "pn"):
            # scores are standardised over all training rows here, over P and N alone there
            assert np.corrcoef(ours, theirs)[0, 1] > 0.999
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9 * np.abs(theirs).max())
        assert chosen.parameters["eta"] == model.best_params_["eta"]
        assert chosen.parameters["alpha"] == model.best_params_["alpha"]


@pytest.mark.system
def test_retry_replaces_a_failure(tmp_path: Path, config_path: Path) -> None:
    part = Config.read(config_path)["tiny"]
    only = {"trials": 1, "data_sets": ["make_banana"], "methods": ["logistic"]}
    (job,) = part.jobs(fit_key, 1, ["make_banana"], ["logistic"])
    (method,) = job.methods
    with Store(tmp_path / "tiny.csv", COLUMNS) as store:
        row = dict(zip(KEY, job.key(method), strict=False))
        row |= {"fingerprint": part.fingerprint(method, "make_banana"), "status": "failed"}
        store.append([row | {"note": "once"}])
    runner.run(part, tmp_path, 1, Wanted(**only))
    found = cells(part, tmp_path)
    assert found["make_banana", job.setting, "logistic"].failures == ("once",)
    runner.run(part, tmp_path, 1, Wanted(**only, retry=True))
    found = cells(part, tmp_path)
    assert found["make_banana", job.setting, "logistic"].failures == ()
    assert found["make_banana", job.setting, "logistic"].n == 1


def test_two_runs_cannot_write_one_file(tmp_path: Path) -> None:
    with Store(tmp_path / "a.csv", ["x"]), pytest.raises(RuntimeError, match="Another run"):
        Store(tmp_path / "a.csv", ["x"])


def test_a_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "a.csv", ["x"]).close()
    content = (tmp_path / "a.csv").read_text()
    with pytest.raises(ValueError, match="other columns"):
        Store(tmp_path / "a.csv", ["x", "y"])
    assert (tmp_path / "a.csv").read_text() == content
    Store(tmp_path / "a.csv", ["x"]).close()  # the lock was released


def test_changed_protocol_is_another_row(tmp_path: Path, config_path: Path) -> None:
    config = Config.read(config_path)
    other = config_path.with_name("other.toml")
    other.write_text(TINY.replace('scale = "standard"', 'scale = "none"'))
    changed = Config.read(other)
    ours, theirs = config["tiny"], changed["tiny"]
    for mine, other in zip(ours.methods, theirs.methods, strict=True):
        assert ours.fingerprint(mine, "banana") != theirs.fingerprint(other, "banana")
        assert ours.fingerprint(mine, "news20") == theirs.fingerprint(other, "news20")


def test_unknown_names_are_told(config_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert experiments.main(["table9"]) == 2
    assert "table4" in capsys.readouterr().err
    assert experiments.main(["table4", "--data", str(config_path / "nowhere")]) == 2
    assert "does not exist" in capsys.readouterr().err
    config_path.write_text(TINY.replace('"logistic"]', '"logistics"]'))
    assert experiments.main(["tiny", "--config", str(config_path)]) == 2
    assert "'logistics'" in capsys.readouterr().err


def small_job(setting: Setting) -> Job:
    part = Config.read()["table4"]
    raw = next(m for m in part.methods if m.scale == "none")
    return Job(part, "make_twonorm", setting, 0, (raw,))


def test_resampled_rows_stay_apart_from_the_others() -> None:
    sample = draw(small_job(Setting(40, 160, 20_000, 0.2, fill="resample")))
    labeled, unlabeled = sample.rows[:200], sample.rows[200:]
    assert len(unlabeled) == 20_000
    assert len(np.unique(labeled)) == 200
    assert not np.intersect1d(labeled, unlabeled).size
    assert sample.y_unlabeled.mean() == pytest.approx(0.2)
    assert len(sample.y_test) + 200 + len(np.unique(unlabeled)) <= 3000
    # the hidden labels moved with their rows
    assert sample.X[200:][sample.y_unlabeled == 1].mean() > 0.2
    again = draw(small_job(Setting(40, 160, 20_000, 0.2, fill="resample")))
    assert np.array_equal(sample.rows, again.rows)


def test_fewer_unlabeled_rows_where_a_set_is_small() -> None:
    sample = draw(small_job(Setting(20, 80, 10_000, 0.2, fill="as_many_as_there_are")))
    assert 1000 < len(sample.y_unlabeled) < 3000
    assert min(np.bincount(sample.y_test)) >= 0.19 * 1500


def test_boldface_follows_the_test() -> None:
    rng = np.random.default_rng(0)
    best = tuple(90 + rng.standard_normal(50))
    near, far = tuple(np.array(best) - 0.1), tuple(np.array(best) - 2.0)
    values = {"best": Cell(best), "near": Cell(near), "far": Cell(far), "single": Cell((99.0,))}
    assert best_or_comparable(values) == {"best", "near"}
    assert best_or_comparable({"a": Cell(()), "b": Cell(())}) == set()


def test_our_t_test_gives_the_paper_its_boldfaces() -> None:
    """Fed the paper's means and errors, Welch's one-sided test repeats 238 of 240 boldfaces."""
    experiment = Config.read()["table4"]
    found = printed(experiment)
    assert len(found) == 15 * 4 * 4
    agree = 0
    for data_set in experiment.data_sets:
        for setting in experiment.settings:
            four = {m: v for (d, s, m), v in found.items() if (d, s) == (data_set, setting)}
            best = max(four.values(), key=lambda v: v.mean)
            for value in four.values():
                error = max(np.hypot(best.std_error, value.std_error), 0.05)
                p = stats.t.sf((best.mean - value.mean) / error, 98)
                agree += (value is best or p >= 0.05) == value.best
    assert agree == 238


def test_the_committed_configuration_is_the_papers() -> None:
    """Sets, sizes and grids; every printed number is found under our keys."""
    config = Config.read(CONFIG)
    table2, table4 = config["table2"], config["table4"]
    assert (len(table4.data_sets), len(table4.settings)) == (15, 4)
    assert len(printed(table2)) == 8 * 2 * 2
    assert len(printed(config["table5"])) == 4 * 4  # rcv1 serves two stand-ins
    for setting in table4.settings:
        n_labeled = setting.n_positive + setting.n_negative
        assert setting.n_positive == pytest.approx(setting.prior * n_labeled)
    assert {s.n_positive for s in table2.settings} == {100}
    assert min(s.noise for s in config["figure6"].settings) == -0.09
    assert max(s.n_unlabeled for s in config["figure7"].settings) == 1_000_000
    assert (PAPER / "table4_ssl_auc.csv").exists()


@pytest.mark.slow
def test_figures_are_drawn_from_rows(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    config = Config.read()
    rng = np.random.default_rng(0)
    for name in ("figure6", "figure7", "table4"):
        part = config[name]
        rows = [
            dict(zip(KEY, job.key(m), strict=False))
            | {"fingerprint": part.fingerprint(m, job.data_set), "status": "ok"}
            | {"auc": 0.9 + 0.01 * rng.standard_normal(), "cpu_seconds": 1.0}
            for job in part.jobs(fit_key, 2)
            for m in job.methods[:1]
            if m.settings["kind"] != "baseline"
        ]
        with Store(tmp_path / f"{name}.csv", COLUMNS) as store:
            store.append(rows[:300])
    for name in ("figure4", "figure6", "figure7"):
        text = report.show(config[name], tmp_path)
        assert text.count("\n") > 3
        assert (tmp_path / f"{name}.md").read_text() == text + "\n"
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000
        assert (tmp_path / f"{name}.svg").exists()
    assert "PNU-AUC" in (tmp_path / "figure4.md").read_text()
    assert "not run" in report.show(config["table4"], tmp_path)


def test_candidates_can_be_given_in_the_configuration(config_path: Path) -> None:
    line = '{ kind = "baseline", name = "ss_rank_boost", grid = { n_neighbors = [4] } }'
    text = TINY.replace("[experiments.tiny]", f"own = {line}\n\n[experiments.tiny]")
    config_path.write_text(text.replace('"logistic"]', '"own"]'))
    (job,) = Config.read(config_path)["tiny"].jobs(fit_key, 1, ["make_banana"], ["own"])
    ((row,), _) = run_job(job)
    assert row["status"] == "ok"
    assert json.loads(row["chosen"]) == {"n_neighbors": 4}
