"""Labels that were picked with known chances: what is stated is of the rows that were not."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import roc_auc_score

from pnuauc import fit_table
from pnuauc.exceptions import InputError

PLAIN = {"importance": False, "comparisons": False, "max_unlabeled": 2000}


def picked(seed=0, n=6000):
    """Rows of high x are far more likely to be labelled; the truth of all."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = rng.random(n) < 1 / (1 + np.exp(2.0 - 1.2 * X[:, 0] - 0.5 * X[:, 1]))
    chance = np.where(X[:, 0] > 0.8, 0.5, 0.025)
    labeled = rng.random(n) < chance
    table = pa.table(
        {
            "a": X[:, 0],
            "b": X[:, 1],
            "chance": chance,
            "y": pa.array(np.where(labeled, y, np.nan), from_pandas=True),
        }
    )
    return table, y, labeled


def test_numbers_are_those_of_the_rows_that_were_not_labelled():
    table, y, labeled = picked()
    weighted = fit_table(table, "y", propensity="chance", **PLAIN)
    scores = weighted.model.score(table)[~labeled]
    truth, share = roc_auc_score(y[~labeled], scores), y[~labeled].mean()
    auc, prior = weighted.findings["auc"], weighted.findings["prior"]
    assert auc["low"] <= truth <= auc["high"]
    assert prior["low"] <= share <= prior["high"]
    plain = fit_table(table, "y", drop=["chance"], **PLAIN).findings["auc"]
    assert plain is None or not plain["low"] <= truth <= plain["high"]


def test_rows_of_unknown_or_certain_chance_are_no_evidence():
    table, _, labeled = picked(n=3000)
    chance = table["chance"].to_numpy().copy()
    first = np.flatnonzero(labeled)
    chance[first[:20]], chance[first[20:30]] = np.nan, 1.0
    at = table.column_names.index("chance")
    table = table.set_column(at, "chance", pa.array(chance, from_pandas=True))
    warnings = fit_table(table, "y", propensity="chance", **PLAIN).findings["warnings"]
    notes = " ".join(warnings) + str(fit_table(table, "y", propensity="chance", **PLAIN))
    assert "20 rows were labelled with an unknown chance" in notes
    assert "10 rows were labelled with certainty" in notes


@pytest.mark.parametrize(
    ("chance", "message"),
    [(1.5, "above 0 and at most 1"), (0.0, "above 0 and at most 1"), (1.0, "no positive row")],
)
def test_chances_that_say_nothing_are_refused(chance, message):
    table, _, _ = picked(n=1000)
    at = table.column_names.index("chance")
    table = table.set_column(at, "chance", pa.array(np.full(1000, chance)))
    with pytest.raises(InputError, match=message):
        fit_table(table, "y", propensity="chance", **PLAIN)
