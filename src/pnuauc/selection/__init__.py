"""Model selection: folds by role, grids, validation of many candidates at once."""

from pnuauc.selection.choice import PAPER_ALPHAS, PAPER_ETAS, PAPER_WIDTHS, SelectionReport
from pnuauc.selection.folds import FoldedRows, deal_folds
from pnuauc.selection.grid import ChosenModel, TrainedGrid

__all__ = [
    "PAPER_ALPHAS",
    "PAPER_ETAS",
    "PAPER_WIDTHS",
    "ChosenModel",
    "FoldedRows",
    "SelectionReport",
    "TrainedGrid",
    "deal_folds",
]
