"""What to do with an indefinite NU risk? ``python -m experiments indefinite``

Nine of the paper's sets, standardised columns, 5 positive and 45 negative labelled rows (the NU
risk uses the latter), 1,000 unlabelled ones, prior .1 (known), widths .5, 1 and 2 times the median
distance. Eigenvalues of the quadratic part: "saddle" leaves them as they are, "zero" sets negative
ones to zero, "raise" adds the size of the lowest to all, "floor" lifts those below that size to it.
A row holds the AUC on test rows for each ridge, the mean over the three widths.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from experiments.config import Experiment, Job
from experiments.kinds import Kind, together
from experiments.rankers import draw
from experiments.summary import finished, markdown_table
from pnuauc.core.basis import GaussianBasis
from pnuauc.core.moments import Moments
from pnuauc.core.risks import nu_risk

__all__ = ["INDEFINITE"]

ALPHAS = (0.01, 0.1, 1.0)
FACTORS = (0.5, 1, 2)
COLUMNS = tuple(f"auc_{alpha:g}" for alpha in ALPHAS)


def run(job: Job) -> list[dict[str, object]]:
    sample = draw(job)
    aucs: dict[tuple[str, float], list[float]] = {}
    for factor in FACTORS:
        basis = GaussianBasis(width=f"{factor}*median", random_state=job.seed).fit(sample.X)
        moments = {
            role: Moments.from_rows(basis.features(sample.X[sample.y == code]))
            for role, code in (("N", 0), ("U", -1))
        }
        form = nu_risk(job.setting.prior).quadratic_form(moments)
        values, vectors = np.linalg.eigh(form.quadratic)
        size = max(-values[0], 0.0)
        kinds = {
            "saddle": values,
            "zero": np.maximum(values, 0),
            "raise": values + size,
            "floor": np.maximum(values, size),
        }
        test = basis.features(sample.X_test)
        for alpha in ALPHAS:
            for method in job.methods:
                kept = kinds[method.name]
                coef = vectors @ (vectors.T @ form.linear / (kept + alpha))
                score = roc_auc_score(sample.y_test, test @ coef)
                aucs.setdefault((method.name, alpha), []).append(score)
    return [
        {"method": m.name}
        | {c: np.mean(aucs[m.name, a]) for c, a in zip(COLUMNS, ALPHAS, strict=True)}
        for m in job.methods
    ]


def show(experiment: Experiment, results: Path) -> str:
    """Mean AUC in per cent over sets and trials."""
    rows = finished(experiment, results)
    lines: list[dict[str, object]] = []
    for method in experiment.methods:
        mine = [row for row in rows if row["method"] == method.name]
        if mine:
            means = [100 * np.mean([float(row[column]) for row in mine]) for column in COLUMNS]
            shown = {f"alpha = {a:g}": f"{m:.1f}" for a, m in zip(ALPHAS, means, strict=True)}
            fits = {"fits": len(mine) * len(FACTORS)}
            lines.append({"eigenvalues": method.name} | shown | fits)
    return markdown_table(lines)


INDEFINITE = Kind(run, show, COLUMNS, together)
