"""SAMULT: unlabelled rows as negatives and as positives at once; no prior needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from pnuauc._design import Design
from pnuauc._risks import Part, Risk, Term
from pnuauc._solvers import solve_ridge
from pnuauc.baselines._common import LinearRanker

__all__ = ["SAMULT", "samult_risk"]


def samult_risk(gamma: float) -> Risk:
    """(1 - gamma) E_P E_N l + gamma (E_P E_U l + E_U E_N l), gamma in [0, 1].

    For the zero-one loss (any loss with l(m) + l(-m) = 1) the second part is the PN risk plus 1/2
    whatever the share t of positives inside U: E_P E_U l = t/2 + (1-t) R_PN and
    E_U E_N l = t R_PN + (1-t)/2.
    """
    if isinstance(gamma, bool) or not 0.0 <= gamma <= 1.0:
        raise ValueError(f"gamma must be a number in [0, 1]; got {gamma!r}.")
    parts = (
        Part("PN", 1.0 - gamma, (Term(1.0, "P", "N"),)),
        Part("PU+UN", gamma, (Term(1.0, "P", "U"), Term(1.0, "U", "N"))),
    )
    return Risk("SAMULT", tuple(part for part in parts if part.weight != 0.0))


@dataclass(eq=False, repr=False)
class SAMULT(LinearRanker):
    """argmin_w (1-gamma) R_PN + gamma (R_PU + R_UN - 1/2) + alpha |w|^2, R_AB = E_A E_B (1-m)^2.

    m = w'(phi(x_A) - phi(x_B)): an unlabelled row should rank below the positives *and* above the
    negatives. For the zero-one loss R_PU + R_UN - 1/2 = R_PN exactly in expectation, so no prior
    is needed; for the squared loss the identity does not hold, and the sum is a convex surrogate,
    solved in closed form from the moments of each role.

    Reference: Xie, Li, "Semi-supervised AUC optimization without guessing labels of unlabeled
    data", AAAI 2018. Ours: the objective is rebuilt from its description (the article is not at
    hand), with one weight ``gamma`` between labelled and unlabelled pairs.

    Parameters
    ----------
    gamma : float in [0, 1], default=0.5
        Weight of the pairs with unlabelled rows. Without unlabelled rows the objective is R_PN.
    basis, n_centers, width, random_state
        Feature map, as in :class:`pnuauc.AUCClassifier`.
    alpha : float, default=0.1
        Ridge.
    positive_label, negative_label, unlabeled_label : optional
        As in :func:`pnuauc.labels.read_roles`.

    Attributes
    ----------
    coef_ : ndarray, shape (b,)
    intercept_ : float
    basis_ : fitted feature map
    """

    gamma: float = 0.5

    def fit(self, X: Any, y: ArrayLike) -> SAMULT:
        """Fit to rows X, shape (n, d), and labels y, shape (n,)."""
        X, roles = self._read_classes(X, y)
        risk = samult_risk(self.gamma)  # read first, so that a bad gamma is an error in any setting
        if not roles.n_unlabeled:
            risk = samult_risk(0.0)
        design = Design.of(X, roles.by_letter, self._make_basis(X, roles))
        self.coef_ = solve_ridge(risk.quadratic_form(design.moments()), [self.alpha]).coef[0]
        scores = design.scores(self.coef_)
        self._set_threshold(scores["P"], scores["N"])
        return self
