"""Tests of selection/trainers."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from pnuauc import AUCClassifierCV
from pnuauc.core.basis import MultiscaleBasis
from pnuauc.core.design import Design
from pnuauc.core.risks import pnu_risk
from pnuauc.core.rows import ArrayRows
from pnuauc.losses import get_loss
from pnuauc.selection import TrainedGrid
from pnuauc.selection.trainers import RefitTrainer


def test_the_parts_and_the_estimator_have_the_same_defaults():
    """Loss, limits of the solver, temperature: whoever uses the grid alone gets the same."""
    ours = AUCClassifierCV().get_params()
    assert (ours["max_iter"], ours["tol"], ours["temperature"]) == (500, 1e-6, 0.5)
    shared = set()
    for part in (TrainedGrid, TrainedGrid.choose, RefitTrainer):
        for name, parameter in inspect.signature(part).parameters.items():
            if ours.get(name) is not None and parameter.default is not parameter.empty:
                assert parameter.default == ours[name], (part, name)
                shared.add(name)
    assert shared >= {"loss", "max_iter", "tol", "selection", "temperature"}


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_refits_side_by_side_are_refits_one_by_one(loss):
    """Order (eta, ridge), spread over all training rows, and the longest of the iterations."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(1.0, 1.0, (8, 2)), rng.normal(0.0, 1.0, (52, 2))]
    place = {"P": np.arange(8), "N": np.arange(8, 20), "U": np.arange(20, 60)}
    fold = {role: np.sort(np.arange(len(rows)) % 2) for role, rows in place.items()}
    rows = {role: ArrayRows(X, index, fold[role]) for role, index in place.items()}
    basis = MultiscaleBasis(5, ("median", "2*median"), random_state=0).fit(X)
    risks = [pnu_risk(eta, 0.2) for eta in (-0.5, 0.0, 0.5)]
    trainer = RefitTrainer(rows, basis, risks, (10.0, 1e-3), get_loss(loss), tol=1e-10)
    for out, scale in (((), 0), ((1,), 1)):
        whole = trainer.train(out, scale, range(3))
        parts = [trainer.train(out, scale, [e]) for e in range(3)]
        np.testing.assert_allclose(whole.coef, np.concatenate([p.coef for p in parts]))
        assert whole.n_iter == max(p.n_iter for p in parts)
        assert (whole.n_iter == 1) == (loss == "squared")
        kept = np.concatenate([index[~np.isin(fold[r], out)] for r, index in place.items()])
        features = basis.scale(scale).features(X[kept])
        np.testing.assert_allclose(whole.spread, np.std(features @ whole.coef.T, axis=0))
        for e, risk in enumerate(risks):
            design = Design.of(
                X, {r: i[~np.isin(fold[r], out)] for r, i in place.items()}, basis.scale(scale)
            )
            for a, alpha in enumerate((10.0, 1e-3)):
                w = whole.coef[2 * e + a]
                if whole.corrected[2 * e + a]:
                    continue
                assert value_at(risk, loss, design, w, alpha) <= min(
                    value_at(risk, loss, design, other, alpha)
                    for other in (0.999 * w, 1.001 * w, w + 1e-3, w - 1e-3)
                )
    if loss == "logistic":  # so that the longest is not also the shortest
        assert len({p.n_iter for p in parts}) > 1


def value_at(risk, loss, design, coef, alpha):
    """The objective: risk of the scores plus ridge."""
    return risk.value(get_loss(loss), design.scores(coef)) + alpha * coef @ coef
