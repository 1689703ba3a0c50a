"""Model selection: folds by role, grids, validation of many candidates at once."""

from pnuauc.selection._choice import (
    Candidates,
    Choice,
    SelectionReport,
    average,
    explain,
    order_of,
    pick,
)
from pnuauc.selection._counts import FoldCounts, count_below, with_next_above
from pnuauc.selection._criterion import CRITERIA, Criterion, risk_covariance, validation_risks
from pnuauc.selection._engine import Engine, Fitted
from pnuauc.selection._folds import FoldedRows, fold_rows
from pnuauc.selection._plots import plot_selection
from pnuauc.selection._refit import RefitEngine

__all__ = [
    "CRITERIA",
    "Candidates",
    "Choice",
    "Criterion",
    "Engine",
    "Fitted",
    "FoldCounts",
    "FoldedRows",
    "RefitEngine",
    "SelectionReport",
    "average",
    "count_below",
    "explain",
    "fold_rows",
    "order_of",
    "pick",
    "plot_selection",
    "risk_covariance",
    "validation_risks",
    "with_next_above",
]
