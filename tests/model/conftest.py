"""Shared by tests of models: a model whose scores are known, and one that was fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pnuauc import AUCClassifierCV
from pnuauc.core.basis import IdentityBasis
from pnuauc.io import TableEncoder, TableModel
from pnuauc.study.payments import make_payments


class Ranker:
    """A linear ranker on the encoded columns."""

    def __init__(self, coef: Any, threshold: float = 0.5) -> None:
        self.basis_, self.coef_ = IdentityBasis.from_parts(len(coef)), np.asarray(coef, float)
        self.threshold_ = threshold


def model_of(table: Any, card: dict[str, Any] | None = None, coef: Any = None) -> TableModel:
    """The first encoded column and twice the second, and so on, less 1/2; or with these factors."""
    encoder = TableEncoder().fit(table)
    X = encoder.transform(table)
    coef = np.arange(1.0, X.shape[1] + 1) if coef is None else coef
    return TableModel.from_fitted(encoder, Ranker(coef), X, card)


def fitted(table: Any, label: str, **settings: Any) -> tuple[TableModel, AUCClassifierCV, Any]:
    """Model, ranker and encoded rows of payments."""
    y = np.array([np.nan if v is None else v for v in table.column(label).to_pylist()])
    features = table.drop_columns([label, "payment_id"])
    encoder = TableEncoder().fit(features)
    X = encoder.transform(features)
    ranker = AUCClassifierCV(prior=0.2, n_centers=12, etas=(0.0, 0.5), random_state=0, **settings)
    ranker.fit(X, y)
    card = {"label": label, "ids": ["payment_id"], "note": "é"}
    return TableModel.from_fitted(encoder, ranker, X, card), ranker, X


@pytest.fixture(scope="session")
def payments() -> pa.Table:
    return make_payments(400, labelled=60, share=0.2, seed=3)[0]


@pytest.fixture(scope="session")
def payments_model(payments: pa.Table) -> TableModel:
    return fitted(payments, "is_fraud")[0]
