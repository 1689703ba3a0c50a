"""OptAG: logistic AUC with entropy, and a generative model's log-likelihood ratio in the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pnuauc._arrays import Floats
from pnuauc._design import block_scores
from pnuauc.baselines._entropy_auc import EntropyAUC
from pnuauc.baselines._generative import GENERATIVE_MODELS
from pnuauc.labels import Roles

__all__ = ["GenerativeAUC"]


@dataclass(eq=False, repr=False)
class GenerativeAUC(EntropyAUC):
    """:class:`EntropyAUC` with g(x) = w'phi(x) + w0 log(p(x|+)/p(x|-)) / s, w0 learned with w.

    argmin over (w, w0) of mean_PN l(m) + entropy_weight (mean_PU h(m) + mean_UN h(m))
    + alpha (|w|^2 + w0^2), m = g(x) - g(x'), l logistic loss and h entropy of a pair's order. The
    classes p(x|+), p(x|-) are estimated once, by MAP, from the labelled rows:

    - "gaussian": N(mu, I/tau) with a Gaussian prior on mu and a Gamma prior on tau, both centred
      on all rows, unlabelled ones included, and as strong as one row;
    - "multinomial": naive Bayes for counts with a Dirichlet prior (CSR text).

    s, the standard deviation of the log ratio over the training rows, puts it on the scale of the
    other features. Unlabelled rows enter through the entropy and the centre of the priors.

    Reference: method "OptAG" of Sakai, Niu, Sugiyama 2018, from Fujino, Ueda, "A semi-supervised
    AUC optimization method with generative models", ICDM 2016. **Reconstructed** from the
    description in the former (densities and their priors in its footnote), the article not being
    at hand; the hyper-parameters of the priors, s and the ridge are ours.

    Parameters
    ----------
    entropy_weight, basis, n_centers, width, alpha, max_iter, tol, random_state
        As in :class:`EntropyAUC`.
    generative_model : {"gaussian", "multinomial"}, default="gaussian"
    positive_label, negative_label, unlabeled_label : optional
        As in :func:`pnuauc.labels.read_roles`.

    Attributes
    ----------
    coef_ : ndarray, shape (b + 1,)
        w, then w0.
    generative_ : fitted generative model with ``log_ratio(X)``
    ratio_scale_ : float
        s.
    intercept_, basis_, objective_, n_iter_ : as in :class:`EntropyAUC`
    """

    generative_model: str = "gaussian"

    def _make_basis(self, X: Any, roles: Roles) -> Any:
        if self.generative_model not in GENERATIVE_MODELS:
            known = ", ".join(map(repr, GENERATIVE_MODELS))
            raise ValueError(
                f"generative_model must be one of {known}; got {self.generative_model!r}."
            )
        model = GENERATIVE_MODELS[self.generative_model]()
        self.generative_ = model.fit(X, X[roles.positive], X[roles.negative])
        # Ratios of labelled rows from estimates that leave each row out were rejected: with five
        # positives the left-out mean is so much worse that w0 often came out negative.
        spread = float(np.std(self.generative_.log_ratio(X)))
        self.ratio_scale_ = spread if spread > 0 else 1.0
        return self._with_ratio(super()._make_basis(X, roles))

    def _with_ratio(self, basis: Any) -> RatioBasis:
        return RatioBasis(basis, self.generative_, self.ratio_scale_)

    def _scores(self, X: Any) -> Floats:
        return block_scores(X, self._with_ratio(self.basis_), self.coef_)


class RatioBasis:
    """(phi(x), log ratio(x) / scale): one feature more than ``basis`` has, at the end."""

    n_scales, bounded = 1, False

    def __init__(self, basis: Any, model: Any, scale: float) -> None:
        self.basis, self.model, self.scale = basis, model, scale
        self.n_features = basis.n_features * basis.n_scales + 1
        self.row_sized = basis.row_sized

    def features(self, X: Any) -> Any:
        """Features of validated rows, shape (n, b + 1); CSR where those of ``basis`` are."""
        features = self.basis.features(X)
        ratio = (self.model.log_ratio(X) / self.scale)[:, None]
        if sparse.issparse(features):
            return sparse.hstack([features, ratio], format="csr")
        return np.hstack([features, ratio])
