"""Tests of experiments/kinds."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import auto, report, runner, tables
from experiments.config import Config
from experiments.kinds import KINDS, kind_of
from experiments.runner import run_job
from experiments.store import Store, read_rows
from experiments.summary import finished
from pnuauc.datasets import make_twonorm, sample_pnu
from pnuauc.priors import EnergyDistancePrior
from tests.experiments.test_experiments import KEY

pytest.importorskip("experiments", reason="experiments/ is not part of the package")

ROOT = Path(__file__).parents[2]

STUDY = """
[protocol]
scale = "standard"
n_test = 0
unlabeled_draw = "exact"
prior_bounds = [0.01, 0.99]
test_share = 0.2

[generated]
twins = { generator = "twonorm", n_samples = 1500, random_state = 0 }

[methods]
"energy" = { estimator = "energy", statistic = "U" }

[experiments.priors]
title = "A prior"
kind = "priors"
trials = 2
data_sets = ["twins"]
methods = ["energy"]
settings = [{ n_positive = 20, n_negative = 20, n_unlabeled = 300, prior = 0.3 }]

[experiments.coverage]
title = "Intervals"
kind = "coverage"
trials = 1
draws = 60
data_sets = ["tied"]
methods = { pn = {}, pu = {}, nu = {}, combined = {} }
settings = [
  { n_positive = 20, n_negative = 80, n_unlabeled = 1000, prior = 0.1 },
  { n_positive = 50, n_negative = 0, n_unlabeled = 500, prior = 0.1 },
]

[experiments.weights]
title = "Weights"
kind = "weights"
trials = 1
draws = 60
data_sets = ["gaussian"]
methods = { raw = {}, steadied = {} }
settings = [{ n_positive = 20, n_negative = 80, n_unlabeled = 300, prior = 0.3 }]

[experiments.variance]
title = "Ratios"
kind = "variance"
trials = 2
reference = 150
data_sets = ["twins"]
methods = { pnu = {} }
settings = [
  { n_positive = 10, n_negative = 10, n_unlabeled = 300, prior = 0.1, train = [10, 10] },
]

[experiments.check]
title = "Simulated"
kind = "variance_check"
trials = 1
reference = 150
draws = 600
data_sets = ["twins"]
methods = { exact = {}, simulated = {} }
settings = [
  { n_positive = 10, n_negative = 10, n_unlabeled = 100, prior = 0.3, train = [10, 10] },
]

[experiments.selection]
title = "Rules"
kind = "selection"
trials = 1
n_scored = 200
protocol = { n_test = 1000 }
data_sets = ["twins"]
methods = { paper = { prior = "given" }, combined = { prior = "given" } }
settings = [{ n_positive = 10, n_negative = 20, n_unlabeled = 60, prior = 0.3 }]

[experiments.indefinite]
title = "Eigenvalues"
kind = "indefinite"
trials = 1
protocol = { n_test = 200 }
data_sets = ["twins"]
methods = { saddle = {}, floor = {} }
settings = [{ n_positive = 5, n_negative = 25, n_unlabeled = 100, prior = 0.2 }]

[experiments.loop]
title = "The loop"
kind = "loop"
trials = 1
data_sets = ["twins"]
methods = { linear_svc = {}, review = { explore = 0.1 } }
settings = [{ n_positive = 5, n_negative = 5, n_unlabeled = 300, prior = 0.1 }]

[experiments.proven]
title = "The proven stop"
kind = "loop_proven"
trials = 1
draws = 40
alpha = 0.05
data_sets = ["perfect", "useless"]
methods = { auto = { explore = "auto" } }
settings = [{ n_positive = 0, n_negative = 0, n_unlabeled = 200, prior = 0.2 }]
"""


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, Path]:
    """Every kind but the rankers, on small numbers, in this process."""
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("studies")
    (folder / "config.toml").write_text(STUDY)
    config = Config.read(folder / "config.toml")
    for part in config.experiments.values():
        kind = kind_of(part)
        with Store(folder / f"{part.name}.csv", kind.columns) as store:
            for job in part.jobs(kind.group):
                rows, _ = run_job(job)
                runner._save(job, rows, store, "test")
    return config, folder


def test_every_kind_runs_and_is_shown(studies: tuple[Config, Path]) -> None:
    config, folder = studies
    for part in config.experiments.values():
        rows = read_rows(folder / f"{part.name}.csv")
        assert {row["status"] for row in rows} <= {"ok", "absent"}
        text = report.show(part, folder)
        assert "|---|" in text
        assert "nan" not in text.replace("| nan |", "")  # PN alone has no ratio to PN


def test_every_registered_kind_is_there() -> None:
    parts = Config.read().experiments.values()
    assert {part.kind for part in parts} == set(KINDS)
    for part in parts:
        kind = kind_of(part)
        assert callable(kind.run)
        assert "method" not in kind.columns  # the store's own


def test_intervals_of_simulated_scores_cover(studies: tuple[Config, Path]) -> None:
    """60 draws at 95%: at least .85 with probability .998; without N there is no PN row."""
    config, folder = studies
    rows = finished(config["coverage"], folder)
    assert {(r["method"], r["setting"][:3]) for r in rows} == {
        *((m, "P20") for m in ("pn", "pu", "nu", "combined")),
        *((m, "P50") for m in ("pu", "combined")),
    }
    rng = np.random.default_rng(0)
    negative, positive = (np.clip(np.round(rng.normal(m, 1, 100_000)), -1, 2) for m in (0, 1))
    truth = np.mean(positive > negative) + np.mean(positive == negative) / 2
    for row in rows:
        assert float(row["coverage"]) >= 0.85
        assert float(row["truth"]) == pytest.approx(truth, abs=0.005)  # 4 standard errors


def test_the_proven_stop_is_rarely_wrong_and_a_good_ranking_ends_sooner(
    studies: tuple[Config, Path],
) -> None:
    """40 reviews at 5%: more than 7 wrong have a probability of .0003."""
    config, folder = studies
    perfect, useless = finished(config["proven"], folder)
    assert max(float(perfect["wrong"]), float(useless["wrong"])) <= 7 / 40
    assert float(perfect["read_mean"]) < float(useless["read_mean"])


def test_loop_counts_what_is_read(studies: tuple[Config, Path]) -> None:
    config, folder = studies
    for row in finished(config["loop"], folder):
        assert (row["n_rows"], row["positives"]) == ("300", "30")
        assert 0.95 * 30 / 300 <= float(row["read_to_95"]) <= 1.0


def test_the_exact_variance_is_the_simulated_one(studies: tuple[Config, Path]) -> None:
    """600 draws tell a variance to about 6%."""
    config, folder = studies
    exact, simulated = (json.loads(r["matrix"]) for r in finished(config["check"], folder))
    for k in (0, 3, 5):  # the diagonal
        assert simulated[k] == pytest.approx(exact[k], rel=0.25)
    (row, _) = finished(config["variance"], folder)
    assert json.loads(row["ratio"])[20] == 1.0  # eta = 0 is the PN risk


def test_prior_rows_are_the_estimators_own(studies: tuple[Config, Path]) -> None:
    config, folder = studies
    X, y = make_twonorm(1500, random_state=0)
    for seed, row in enumerate(finished(config["priors"], folder)):
        sample = sample_pnu(X, y, 20, 20, 300, 0.3, seed, n_test=0, scale="standard")
        own = EnergyDistancePrior(statistic="U", unlabeled_label=-1, random_state=0)
        own.fit(sample.X, sample.y)
        assert float(row["estimate"]) == pytest.approx(own.prior_, rel=1e-5)
        assert float(row["high"]) == pytest.approx(own.interval_[1], rel=1e-5)


def test_pages_are_filled_in(studies: tuple[Config, Path], tmp_path: Path) -> None:
    config, folder = studies
    page = tmp_path / "page.md"
    page.write_text("Before\n\n<!-- results: weights -->\nold\n<!-- end of results -->\nAfter\n")
    report.fill(page, config, folder)
    text = page.read_text()
    assert text.startswith("Before\n\n<!-- results: weights -->\n\n| scores |")
    assert text.endswith("|\n\n<!-- end of results -->\nAfter\n")
    assert "old" not in text
    assert not report.fill(page, config, folder)  # nothing left to change


@pytest.mark.skipif(not runner.RESULTS.exists(), reason="the source distribution has no results")
@pytest.mark.system
def test_report_is_written_from_committed_rows(tmp_path: Path) -> None:
    """Every table and figure has its section, and the numbers are those of the rows."""
    pytest.importorskip("pandas")
    config = Config.read()
    results = tmp_path / "results"
    shutil.copytree(runner.RESULTS, results)  # showing writes beside the rows
    report.write(config, results, tmp_path)
    text = (tmp_path / "lab" / "reproduction.md").read_text()
    for name in [f"Table {k}" for k in range(1, 6)] + [f"Figure {k}" for k in range(1, 8)]:
        assert f"\n## {name}: " in text
    table = tables.make_table(config["table4"], runner.RESULTS)
    for setting in table.experiment.settings:
        mean = table.mean(setting, "pnu_auc")
        if not np.isnan(mean):
            assert f"| **mean** | {mean:.1f} / " in text
    assert "nan" not in text.lower().replace("banana", "")
    assert text == (ROOT / "docs" / "lab" / "reproduction.md").read_text(), (
        "run python -m experiments report"
    )


def shown_of(experiment, lines, folder):
    """The report of one data set from these rows."""
    with (folder / f"{experiment.name}.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    return auto.show(replace(experiment, data_sets=("banana",)), folder)


def test_scores_of_earlier_committees_count_but_not_their_intervals(tmp_path):
    """Committee 5 scores as 3 and 4 did: the newest AUC is taken, of the top only what 5 said."""
    experiment = Config.read().experiments["auto_pu"]
    (now,) = (m for m in experiment.methods if m.name == "auto")
    third, fourth = (replace(now, settings={**now.settings, "committee": v}) for v in (3, 4))
    setting = experiment.settings[-1].key
    lines = []
    for seed, method, auc, high in (
        (0, third, 0.8, 9),
        (1, now, 0.7, 20),
        (1, fourth, 0.6, 9),
        (2, fourth, 0.9, 9),
        (2, third, 0.5, 9),
    ):
        said = {"top": [[20, 10.0, 5, high, 12]], "curve": [[0.1, 0.1]] * 10}
        mark = experiment.fingerprint(method, "banana")
        key = dict(zip(KEY, ("auto_pu", "banana", setting, "auto", seed, mark), strict=True))
        line = {**key, "status": "ok", "auc": auc, "n_unlabeled": 1000}
        lines.append({**line, "chosen": json.dumps(said)})
    shown = shown_of(experiment, lines, tmp_path)
    assert "80.0 (n = 3)" in shown  # 80 of the first draw, 70 of the second, 90 of the third
    assert "| banana | 100% of 1 |" in shown


def test_trials_at_the_end_of_what_is_possible_are_counted(tmp_path):
    """Among 200 rows 20 are positive: 20 of 20, or all 20 in the top 100, is the most there is."""
    experiment = Config.read().experiments["auto_pu"]
    (now,) = (m for m in experiment.methods if m.name == "auto")
    mark, setting = experiment.fingerprint(now, "banana"), experiment.settings[-1].key
    lines = []
    for seed, in_20, in_100 in ((0, 20, 20), (1, 19, 20), (2, 12, 19)):
        said = {
            "top": [[20, 10.0, 15, 20, in_20], [100, 15.0, 10, 20, in_100]],
            "curve": [[0.1, 0.1]] * 10,
        }
        key = dict(zip(KEY, ("auto_pu", "banana", setting, "auto", seed, mark), strict=True))
        line = {**key, "status": "ok", "auc": 0.8, "n_unlabeled": 200}
        lines.append({**line, "chosen": json.dumps(said)})
    shown = shown_of(experiment, lines, tmp_path)
    assert "| banana | 67% of 3 (1) | 100% of 3 (2) |" in shown
