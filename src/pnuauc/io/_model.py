"""A fitted ranking model of a table: what scoring needs, and no more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pnuauc._design import block_scores
from pnuauc.basis import IdentityBasis, LinearKernelBasis, MultiscaleBasis
from pnuauc.io._encoder import TableEncoder
from pnuauc.io._frames import as_table

__all__ = ["TableModel"]

#: Quantiles of the unlabelled scores that are kept, to place new scores among them.
N_QUANTILES = 1001


@dataclass
class TableModel:
    """Encoder, feature map and coefficients: score(row) = w'phi(encode(row)) - threshold.

    Made by :meth:`from_fitted` from a fitted :class:`TableEncoder` and ranker; saved and loaded
    by :func:`pnuauc.io.save_model` and :func:`pnuauc.io.load_model`.

    Attributes
    ----------
    encoder : TableEncoder
    basis : fitted feature map
    coef : ndarray, shape (b,)
    threshold : float
        Rows with a score above 0 are called positive.
    quantiles : ndarray
        Quantiles 0, 0.001, ..., 1 of the training rows' scores (the unlabelled ones if any).
    card : dict
        What a reader wants to know: labels, prior, selection, AUC, versions, warnings.
    """

    encoder: TableEncoder
    basis: Any
    coef: NDArray[np.float64]
    threshold: float
    quantiles: NDArray[np.float64]
    card: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_fitted(
        cls, encoder: TableEncoder, ranker: Any, X: Any, card: dict[str, Any] | None = None
    ) -> TableModel:
        """Keep of a fitted ranker what scoring needs; ``X`` are encoded rows to place scores by."""
        model = cls(
            encoder,
            ranker.basis_,
            np.asarray(ranker.coef_, dtype=np.float64),
            float(ranker.threshold_),
            np.zeros(N_QUANTILES),
            card or {},
        )
        model.quantiles = np.quantile(model.score_encoded(X), np.linspace(0, 1, N_QUANTILES))
        return model

    def score(self, X: Any, n_threads: int = 1) -> NDArray[np.float64]:
        """Scores of a frame, array or CSR matrix, shape (n,); higher is more likely positive."""
        table = as_table(X)
        return self.score_encoded(self.encoder.transform(table), n_threads)

    def score_encoded(self, X: Any, n_threads: int = 1) -> NDArray[np.float64]:
        """Scores of rows that are encoded already."""
        scores = block_scores(X, self.basis, self.coef, n_threads=n_threads)
        return np.asarray(scores, dtype=np.float64) - self.threshold

    def percentile(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Percent of the (unlabelled) training rows that score lower, shape (n,)."""
        # equal quantiles (tied scores) need no care: interpolation takes the last of them
        share = np.interp(scores, self.quantiles, np.linspace(0.0, 100.0, len(self.quantiles)))
        return np.asarray(share)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The numbers, by name: what the model file stores."""
        out: dict[str, NDArray[Any]] = {"coef": self.coef, "quantiles": self.quantiles}
        out["threshold"] = np.array([self.threshold])
        if isinstance(self.basis, IdentityBasis):
            return out
        centers = self.basis.centers_
        if sparse.issparse(centers):
            out |= {f"centers_{k}": getattr(centers, k) for k in ("data", "indices", "indptr")}
            out["centers_shape"] = np.array(centers.shape)
        else:
            out["centers"] = centers
        if not isinstance(self.basis, LinearKernelBasis):
            widths = getattr(self.basis, "widths_", None)
            out["widths"] = np.array([self.basis.width_]) if widths is None else widths
        return out

    @staticmethod
    def basis_from(arrays: dict[str, NDArray[Any]], n_features: int) -> Any:
        """The feature map that :meth:`arrays` describes."""
        if "centers_data" in arrays:
            parts = tuple(arrays[f"centers_{k}"] for k in ("data", "indices", "indptr"))
            centers: Any = sparse.csr_matrix(parts, shape=tuple(arrays["centers_shape"]))
            centers.check_format()
        elif "centers" in arrays:
            centers = arrays["centers"]
        else:
            basis: Any = IdentityBasis()
            basis.n_features_in_ = n_features
            return basis
        if "widths" in arrays:
            widths = np.asarray(arrays["widths"], dtype=np.float64)
            basis = MultiscaleBasis(centers.shape[0], widths.tolist())
            basis.widths_ = widths
        else:
            basis = LinearKernelBasis(centers.shape[0])
        basis.centers_, basis.n_features_in_ = centers, n_features
        return basis
