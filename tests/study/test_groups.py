"""Tests of study/groups and of groups, time and suspicion through fit_table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pnuauc import fit_table
from pnuauc.exceptions import InputError
from pnuauc.labels import Roles
from pnuauc.study.groups import find_groups
from pnuauc.study.rows import ColumnRoles, study_rows
from pnuauc.study.timed import past_to_future


def panel(seed=0, n_groups=150, m=6, effect=2.0, n_labeled=12):
    """Rows of customers; all rows of some of them are labelled; and the truth about the others."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), m)
    base = rng.normal(size=(n_groups, 5))
    y = (rng.random(n_groups) < 0.4)[group]
    X = effect * base[group] + rng.normal(size=(len(group), 5))
    X[:, 0] += 0.8 * y
    labeled = np.isin(group, rng.choice(n_groups, n_labeled, replace=False))
    table = pd.DataFrame(X, columns=list("abcde"))
    table["customer"] = rng.permutation(100_000)[:n_groups][group]
    table["label"] = np.where(labeled, y.astype(float), np.nan)
    table["truth"] = y
    order = rng.permutation(len(table))
    return table.iloc[order].reset_index(drop=True)


def looked_at(table):
    """Columns that are read, the others, X, and roles."""
    import pyarrow as pa

    codes = np.where(table["label"].isna(), -1, table["label"]).astype(np.int8)
    features = table[list("abcde")]
    spare = pa.table(table[["customer"]])
    return pa.table(features), spare, features.to_numpy(), Roles(codes)


@pytest.mark.parametrize("seed", range(5))
def test_a_column_that_names_groups_is_found_and_one_that_measures_is_not(seed):
    table = panel(seed)
    assert find_groups(*looked_at(table), {}).column == "customer"
    shuffled = table.assign(customer=np.random.default_rng(seed).permutation(table["customer"]))
    found = find_groups(*looked_at(shuffled), {})
    assert found is None or found.column is None  # near rows remain what they are
    measured = np.round(table["a"] * 30).astype(int)  # many values, each of a few rows
    independent = table.assign(customer=measured, label=table["label"].sample(frac=1).to_numpy())
    assert find_groups(*looked_at(independent), {}) is None


def test_a_column_of_one_label_a_group_matters_where_it_is_read():
    table = panel(2, effect=0.0, n_labeled=24)
    read, spare, X, roles = looked_at(table)
    assert find_groups(read, spare, X, roles, {}) is None
    both = read.append_column("customer", spare.column("customer"))
    assert find_groups(both, spare.select([]), X, roles, {}).column == "customer"


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_one_class_are_no_group(seed):
    """Rows of a value share the class and nothing else: dealt one by one they do no harm."""
    table = panel(seed, n_groups=450, m=2, effect=0.0, n_labeled=45)
    table[["a", "b"]] += 1.5 * table["truth"].to_numpy()[:, None]
    assert find_groups(*looked_at(table), {}) is None
    strong = panel(seed, n_groups=450, m=2, effect=1.5, n_labeled=45)
    assert find_groups(*looked_at(strong), {}).column == "customer"


def test_near_rows_are_found_without_a_column_if_labels_go_by_group():
    table = panel(3, effect=30.0).drop(columns="customer")
    alone = table.assign(customer=np.arange(len(table)))
    assert find_groups(*looked_at(alone), {}).column is None
    by_row = table.assign(
        customer=0, label=table["label"].sample(frac=1, random_state=0).to_numpy()
    )
    assert find_groups(*looked_at(by_row), {}) is None


def test_groups_of_several_columns_are_linked_and_empty_cells_name_nothing():
    table = pd.DataFrame(
        {
            "x": np.arange(6.0),
            "person": ["a", "a", "b", None, None, "c"],
            "house": [1, 2, 2, 3, 4, 5],
            "label": [1, 0, 1, 0, 1, 0],
        }
    )
    rows = study_rows(table, ColumnRoles("label", groups=("person", "house")), 10, 0)
    groups = rows.groups[np.argsort(rows.numbers)]
    assert len(set(groups[:3])) == 1
    assert len(set(groups)) == 4


def test_ids_that_repeat_are_groups_unless_the_user_says_otherwise():
    table = panel(1).drop(columns="truth")
    rows = study_rows(table, ColumnRoles("label", ids=("customer",)), 10_000, 0)
    assert rows.grouping == ("customer",)
    assert len(np.unique(rows.groups)) == 150
    said = ColumnRoles("label", ids=("customer",), groups=("none",))
    assert study_rows(table, said, 10_000, 0).groups is None
    single = table.assign(customer=np.arange(len(table)))
    assert study_rows(single, ColumnRoles("label", ids=("customer",)), 10_000, 0).groups is None


def test_groups_are_kept_together_in_memory_only(monkeypatch):
    table, roles = panel(1), ColumnRoles("label", ids=("customer",))
    assert study_rows(table, roles, "all", 0).grouping == ("customer",)
    monkeypatch.setattr("pnuauc.study.rows.SAMPLE_ROWS", 500)
    with pytest.raises(InputError, match="The id names several rows, which are a group"):
        study_rows(table, roles, "all", 0)
    with pytest.raises(InputError, match="Groups need the rows in memory"):
        study_rows(table, ColumnRoles("label", groups=("customer",)), "all", 0)
    apart = ColumnRoles("label", ids=("customer",), groups=("none",))
    assert study_rows(table, apart, "all", 0).groups is None


def test_later_rows_are_judged_by_earlier_ones_only():
    rng = np.random.default_rng(0)
    time = rng.permutation(400).astype(float)
    time[:5] = np.nan
    codes = rng.choice([1, 0, -1], 400, p=[0.2, 0.3, 0.5]).astype(np.int8)
    splits = past_to_future(time, Roles(codes))
    assert len(splits) == 3
    tested = np.concatenate([span for _, span in splits])
    assert len(set(tested.tolist())) == len(tested)
    for past, span in splits:
        assert time[past].max() < time[span].min()


@pytest.mark.slow
def test_grouping_undoes_what_rows_of_one_customer_pretend():
    """The same table, rows dealt one by one and by group; the truth is about .6."""
    table = panel(0, n_labeled=24).drop(columns="truth")
    quick = {"comparisons": False, "importance": False, "n_jobs": 1, "random_state": 0}
    alone = fit_table(table, drop=["customer"], **quick).findings
    assert alone["suspected"]["column"] == "customer"
    assert alone["suspected"]["auc"]["value"] < alone["auc"]["value"] - 0.1
    assert "customer" in " ".join(alone["warnings"])
    grouped = fit_table(table, groups=["customer"], **quick).findings
    assert grouped["groups"]["n_groups"] == 24
    assert grouped["groups"]["worth"] < 0.6 * grouped["groups"]["n_labeled"]
    assert grouped["auc"]["low"] < 0.6 < alone["auc"]["low"]
