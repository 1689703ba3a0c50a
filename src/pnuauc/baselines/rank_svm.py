"""PU ranking SVM: unlabelled rows stand in for negatives, uncorrected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from pnuauc.baselines.common import (
    ByRole,
    LinearRanker,
    Objective,
    fit_in_stages,
    intercept_of,
    pair_curvature,
)
from pnuauc.core.design import Design
from pnuauc.core.losses import SmoothedHinge
from pnuauc.core.pairs import between, between_gradient
from pnuauc.labels import Roles

#: The smoothing of the hinge starts here and is divided by ``_SHRINK`` until ``tol`` is met.
_WIDEST, _SHRINK = 0.5, 8.0


@dataclass(eq=False, repr=False)
class RankSVM(LinearRanker):
    """argmin_w mean over pairs of max(0, 1 - w'(phi(x_P) - phi(x_B))) + alpha |w|^2.

    B are the unlabelled rows (``pairs="pu"``: they are taken for negatives as they are, so the
    positives among them bias the ranking) or the negative rows (``pairs="pn"``: the ordinary
    ranking SVM). Pairs are never formed: the hinge is summed over all of them by sorting.

    Reference: Sundararajan, Priyanka, Selvaraj, "A pairwise ranking based approach to learning
    with positive and unlabeled examples", CIKM 2011; method "PU-RSVM" of Sakai, Niu, Sugiyama 2018.
    Ours: the ridge is stated per pair instead of C, and the hinge is minimised through a smoothing
    that exceeds it by at most ``tol``, shrunk in steps.

    Parameters
    ----------
    pairs : {"auto", "pu", "pn"}, default="auto"
        "auto" pairs P with U where there are unlabelled rows, else with N.
    basis, n_centers, width, alpha, random_state : as in :class:`pnuauc.AUCClassifier`
    positive_label, negative_label, unlabeled_label : as in :func:`pnuauc.labels.read_roles`
    max_iter : int, default=1000
    tol : float, default=1e-3
        The objective is at most so far above its minimum on account of the smoothing.

    Attributes
    ----------
    pairs_ : str
        The pairs that were used.
    objective_ : float
        Hinge objective at ``coef_`` (the hinge itself, not its smoothing).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(1, 1, (30, 2)), rng.normal(-1, 1, (200, 2))]
    >>> y = np.r_[np.ones(30), np.full(200, np.nan)]
    >>> model = RankSVM(basis="identity").fit(X, y)
    >>> model.pairs_, bool((model.coef_ > 0).all())
    ('pu', True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LinearRanker._parameter_constraints,
        "pairs": [StrOptions({"auto", "pu", "pn"})],
    }

    pairs: str = "auto"
    _: KW_ONLY
    max_iter: int = 1000
    tol: float = 1e-3

    def _train(self, X: Any, roles: Roles) -> float:
        low = "U" if self.pairs_ == "pu" else "N"
        rows = {role: roles.by_letter[role] for role in ("P", low)}
        design = Design.of(X, rows, self._make_basis(X, roles))
        fit_in_stages(self, self._stages(design, low), pair_curvature(design, low, 1.0))
        scores = design.scores(self.coef_)
        value = between("hinge", scores["P"], scores[low])
        self.objective_ = value + self.alpha * float(self.coef_ @ self.coef_)
        return intercept_of(scores["P"], scores[low])

    def _usable(self, roles: Roles) -> Roles:
        """As they are; settles the pairs."""
        automatic = "pu" if roles.n_unlabeled else "pn"
        self.pairs_ = automatic if self.pairs == "auto" else self.pairs
        low = "unlabeled" if self.pairs_ == "pu" else "negative"
        roles.require("positive", low, purpose=f'RankSVM on "{self.pairs_}" pairs')
        return roles

    def _stages(self, design: Design, low: str) -> Iterator[tuple[Objective, Design]]:
        width, last = _WIDEST, min(4.0 * self.tol, _WIDEST)
        while True:
            loss = SmoothedHinge(width)

            def objective(scores: ByRole, loss: SmoothedHinge = loss) -> tuple[float, ByRole]:
                value, high, below = between_gradient(loss, scores["P"], scores[low])
                return value, {"P": high, low: below}

            yield objective, design
            if width <= last:
                return
            width = max(width / _SHRINK, last)
