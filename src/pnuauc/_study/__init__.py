"""A study: from a table to a model and to everything there is to say about it, as one dict."""

from pnuauc._study._data import ColumnRoles, LabelCodes, collected
from pnuauc._study._evaluate import evaluate_table
from pnuauc._study._fit import FitSettings, Study, fit_study
from pnuauc._study._payments import make_payments
from pnuauc._study._prior import check_belief, find_prior, prior_findings
from pnuauc._study._rows import SAMPLE_ROWS, study_rows

__all__ = [
    "SAMPLE_ROWS",
    "ColumnRoles",
    "FitSettings",
    "LabelCodes",
    "Study",
    "check_belief",
    "collected",
    "evaluate_table",
    "find_prior",
    "fit_study",
    "make_payments",
    "prior_findings",
    "study_rows",
]
