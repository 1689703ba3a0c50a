"""Shared by test files: rows and scores with a known truth, pairs by brute force, the tool."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from sklearn.base import BaseEstimator

from pnuauc.datasets import GENERATORS, PNUSample, sample_pnu
from pnuauc.labels import Roles

os.environ.setdefault("MPLBACKEND", "Agg")  # no test opens a window

# A background shell hands down an ignored SIGINT, under which no interruption can be tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# the same examples in every run: a test that fails at random tells a newcomer nothing
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")

#: Marks of tests whose files are being rewritten; elsewhere the mark stands at the test.
MARKS = {
    ("committee/test_estimator.py", "slow"): (
        "test_a_category_of_noise_costs_the_ranking_little",
        "test_a_fit_of_few_rows_uses_one_thread",
        "test_boosting_counts_as_far_as_held_out_rows_favour_it",
        "test_check_estimator",
        "test_held_out_scores_of_noise_are_noise",
        "test_labelled_copies_are_placed_as_their_like_in_u",
        "test_many_labels_bring_boosting_and_learned_weights",
        "test_members_on_trial_are_weighed_anew",
        "test_one_column_and_more_columns_than_rows",
        "test_scaling_and_shifting_columns_changes_nothing",
        "test_score_uses_unlabelled_rows_with_the_fitted_prior",
        "test_sparse_rows",
        "test_the_order_of_rows_hardly_matters",
        "test_trees_may_have_columns_of_their_own",
        "test_weights_lean_from_ten_positives_on",
        "test_with_fixed_weights_it_is_the_committee",
    ),
    ("io/test_encode.py", "slow"): ("test_any_columns_give_finite_features_or_one_sentence",),
    ("io/test_readers.py", "system"): (
        "test_fit_then_score_the_same_file",
        "test_mutated_arrow_files_never_kill_the_process",
    ),
    ("io/test_sources.py", "slow"): (
        "test_centres_of_the_committee_are_the_rows_of_smallest_hash",
        "test_components_of_the_committee_are_those_of_all_rows",
        "test_the_committee_visits_all_rows",
    ),
    ("io/test_write.py", "system"): (
        "test_ignored_signals_stay_ignored",
        "test_nothing_is_imported_from_the_current_folder",
        "test_signals_before_and_after_the_command",
        "test_wrong_options_are_one_sentence",
    ),
    ("model/test_files.py", "slow"): ("test_any_value_in_any_place",),
    ("priors/test_base.py", "slow"): (
        "test_float32_rows_in_csr_give_the_dense_answer",
        "test_indistinguishable_rows_are_refused",
        "test_other_label_codes",
        "test_text_with_1_6_million_columns",
    ),
    ("priors/test_placement.py", "slow"): (
        "test_a_category_of_noise_leaves_the_prior_alone",
        "test_copies_do_not_make_the_prior_surer",
        "test_it_finds_the_prior_of_its_own_model_and_covers",
        "test_posterior_equals_plain_sums_over_a_fine_grid",
    ),
    ("study/test_fit.py", "slow"): (
        "test_a_stacked_table_reads_no_better_than_it_is",
        "test_estimate_is_not_fooled_by_noise",
        "test_order_of_rows_does_not_matter_to_the_prior",
        "test_three_different_rows_of_a_class_can_be_held_back",
    ),
    ("study/test_leaks.py", "slow"): ("test_at_most_one_benchmark_set_in_fifteen_raises_an_alarm",),
    ("study/test_many_files.py", "slow"): (
        "test_a_fit_is_the_same_however_the_table_is_cut",
        "test_held_out_rows_are_placed_among_all_rows",
        "test_paths_from_python",
    ),
    ("study/test_many_files.py", "system"): ("test_the_tool_on_a_folder",),
    ("study/test_rows.py", "slow"): ("test_table_and_estimators_use_the_same_prior",),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        for (file, mark), names in MARKS.items():
            if item.path == here / file and getattr(item, "originalname", "") in names:
                item.add_marker(mark)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Whatever has random_state=None draws alike in every run, whichever tests ran before it.

    A hook, not a fixture: fixtures of a module are made before those of its first test.
    """
    np.random.seed(0)  # noqa: NPY002  the state that check_random_state(None) gives


class FirstColumn(BaseEstimator):
    """A ranker whose scores are the first encoded column."""

    def fit(self, X: Any, y: Any) -> FirstColumn:
        self.fitted_ = True
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        return X[:, 0]


class Scored:
    """A model whose scores are a column of the table."""

    def encode(self, table: Any, first_row: int = 0) -> np.ndarray:
        return np.asarray(table.column("s"))

    def score_encoded(self, X: np.ndarray) -> np.ndarray:
        return X


def wins(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """All pairs (a_i, b_j): 1 where a_i > b_j, 1/2 where they are equal. Shape (len(a), len(b))."""
    return (a[:, None] > b) + 0.5 * (a[:, None] == b)


def roles_of(n_p: int, n_n: int, n_u: int) -> Roles:
    """Positive rows first, then negative, then unlabelled ones."""
    return Roles(np.repeat(np.array([1, 0, -1], np.int8), [n_p, n_n, n_u]))


def final_limits(ends: Sequence[float], share: float, both: bool) -> list[float]:
    """(low, value, high) of the model of all rows, from those of refits on a share of them.

    a + (1 - a) (2 a - 1) (1 - share^power) with the powers of docs/truth.md; then each limit goes
    its part of the way from the value, on the scale of arcsin(sqrt(AUC)).
    """
    powers, reach = ((0.25, 0.5, 1.25), (0.8, 1.0)) if both else ((0.0, 0.25, 0.75), (0.9, 0.85))
    low, value, high = (
        a + (1 - a) * max(2 * a - 1, 0) * (1 - share**power) for a, power in zip(ends, powers)
    )
    angles = [math.asin(math.sqrt(a)) for a in (low, value, max(high, value))]
    bottom, top = (angles[1] + r * (angles[k] - angles[1]) for r, k in zip(reach, (0, 2)))
    return [math.sin(bottom) ** 2, value, math.sin(top) ** 2]


def gaussian_scores(
    seed: int,
    sizes: tuple[int, int, int],
    prior: float,
    distance: float = 1.0,
    digits: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels (1, 0, NaN), scores of two unit Gaussians, and who is positive in U.

    Rounding to ``digits`` makes ties.
    """
    n_p, n_n, n_u = sizes
    rng = np.random.default_rng(seed)
    hidden = rng.random(n_u) < prior
    parts = [rng.normal(distance, 1, n_p), rng.normal(0, 1, n_n), rng.normal(distance * hidden, 1)]
    scores = np.concatenate(parts)
    scores = scores if digits is None else np.round(scores, digits)
    return np.repeat([1.0, 0.0, np.nan], sizes), scores, hidden


def generated_sample(
    name: str, sizes: tuple[int, int, int], prior: float, seed: int = 0, **options: Any
) -> PNUSample:
    """P, N, U and test rows of a generator, labels 1, 0, -1."""
    X, y = GENERATORS[name](4000, prior=0.5, random_state=1000 + seed)
    return sample_pnu(X, y, *sizes, prior, seed, **options)


def run_tool(*arguments: object, input: bytes | None = None) -> Any:
    """``pnuauc ARGUMENTS``, in this process."""
    from typer.testing import CliRunner

    from pnuauc.cli.app import app

    return CliRunner().invoke(app, [str(a) for a in arguments], input=input)
