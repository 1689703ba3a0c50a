"""A study: from a table to a model and to everything there is to say about it."""

from pnuauc.study.evaluate import evaluate_table
from pnuauc.study.evidence import check_belief, find_prior, prior_findings
from pnuauc.study.findings import Evaluation, Findings
from pnuauc.study.fit import FIT_STAGES, FitSettings, Study, fit_study
from pnuauc.study.payments import make_payments
from pnuauc.study.rows import SAMPLE_ROWS, ColumnRoles, LabelCodes, collected, study_rows

__all__ = [
    "FIT_STAGES",
    "SAMPLE_ROWS",
    "ColumnRoles",
    "Evaluation",
    "Findings",
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
