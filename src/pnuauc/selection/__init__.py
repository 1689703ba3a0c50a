"""Model selection: folds by role, grids, validation of many candidates at once."""

from pnuauc.selection._choice import (
    PAPER_ALPHAS,
    PAPER_ETAS,
    PAPER_WIDTHS,
    Candidates,
    Choice,
    SelectionReport,
    average,
    order_of,
    pick,
)
from pnuauc.selection._criterion import CRITERIA, Criterion
from pnuauc.selection._folds import FoldedRows, deal_folds
from pnuauc.selection._grid import ChosenModel, TrainedGrid
from pnuauc.selection._plots import plot_selection

__all__ = [
    "CRITERIA",
    "PAPER_ALPHAS",
    "PAPER_ETAS",
    "PAPER_WIDTHS",
    "Candidates",
    "Choice",
    "ChosenModel",
    "Criterion",
    "FoldedRows",
    "SelectionReport",
    "TrainedGrid",
    "average",
    "deal_folds",
    "order_of",
    "pick",
    "plot_selection",
]
