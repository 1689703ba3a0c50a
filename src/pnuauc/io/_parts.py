"""Scorers that a model file can hold, by kind: one class and one line in ``SCORERS`` each.

A stored scorer has

    kind                         its name in the registry
    views                        the encoder's views that it reads ("kernels", "trees")
    spec(), arrays()             a small dict for JSON, and plain numeric arrays by name
    from_parts(parts, widths)    the scorer back, every number checked; ``widths`` gives the
                                 encoded columns of each view
    score(X, n_threads)          (n, d) -> (n,); X has the views that it reads side by side
    chances(scores)              (n,) -> (n, 3), probability and its interval; only where known
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pnuauc._basis import GaussianBasis, IdentityBasis, LinearKernelBasis, MultiscaleBasis
from pnuauc._committee import Committee
from pnuauc._design import block_scores
from pnuauc._stored import Parts, refuse
from pnuauc.exceptions import InputError

__all__ = ["SCORERS", "LinearScorer", "StoredScorer", "read_scorer", "scorer_of"]

#: Widths of a multiscale basis; a grid has five to ten.
_MAX_WIDTHS = 1000


class StoredScorer(Protocol):
    """What :class:`TableModel` asks of a scorer; see the module's head."""

    kind: str

    @property
    def views(self) -> tuple[str, ...]: ...

    def spec(self) -> dict[str, Any]: ...

    def arrays(self) -> dict[str, NDArray[Any]]: ...

    def score(self, X: Any, n_threads: int = 1) -> NDArray[np.float64]: ...


class LinearScorer:
    """w'phi(x) for the identity, a linear kernel, or Gaussians of one or several widths."""

    kind: str = "linear"
    views: tuple[str, ...] = ("kernels",)

    def __init__(self, basis: Any, coef: NDArray[np.float64]) -> None:
        known = (IdentityBasis, LinearKernelBasis, GaussianBasis, MultiscaleBasis)
        if not isinstance(basis, known):
            raise InputError(
                f"A model on a {type(basis).__name__} cannot be stored; its basis must be "
                "gaussian, multiscale, linear or identity."
            )
        self.basis, self.coef = basis, np.asarray(coef, dtype=np.float64)

    def score(self, X: Any, n_threads: int = 1) -> NDArray[np.float64]:
        scores = block_scores(X, self.basis, self.coef, n_threads=n_threads)
        return np.asarray(scores, dtype=np.float64)

    def spec(self) -> dict[str, Any]:
        if isinstance(self.basis, IdentityBasis):
            return {"kind": self.kind, "basis": "identity"}
        name = "linear" if isinstance(self.basis, LinearKernelBasis) else "gaussian"
        layout = "sparse" if sparse.issparse(self.basis.centers_) else "dense"
        return {"kind": self.kind, "basis": name, "centers": layout}

    def arrays(self) -> dict[str, NDArray[Any]]:
        out: dict[str, NDArray[Any]] = {"coef": self.coef}
        if isinstance(self.basis, IdentityBasis):
            return out
        centers = self.basis.centers_
        if sparse.issparse(centers):
            out |= {f"centers_{k}": getattr(centers, k) for k in ("data", "indices", "indptr")}
        else:
            out["centers"] = centers
        if isinstance(self.basis, GaussianBasis):
            out["widths"] = np.array([self.basis.width_])
        elif isinstance(self.basis, MultiscaleBasis):
            out["widths"] = self.basis.widths_
        return out

    @classmethod
    def from_parts(cls, parts: Parts, widths: Mapping[str, int]) -> LinearScorer:
        n_features = widths["kernels"]
        parts.text("kind", [cls.kind])
        name = parts.text("basis", ("identity", "linear", "gaussian"))
        coef = parts.array("coef", "float", (None,))
        basis: Any
        if name == "identity":
            basis = IdentityBasis.from_parts(n_features)
        elif name == "linear":
            basis = LinearKernelBasis.from_parts(_read_centers(parts, n_features))
        else:
            centers = _read_centers(parts, n_features)
            scales = parts.array("widths", "float", (None,)).astype(np.float64)
            # the square of a width must be a number too
            if not (0 < len(scales) <= _MAX_WIDTHS and (scales > 1e-150).all()):
                raise refuse("its widths are not positive")
            if not (scales < 1e150).all():
                raise refuse("its widths are too large to compute with")
            basis = MultiscaleBasis.from_parts(centers, scales)
        n_outputs = basis.n_features * basis.n_scales
        if len(coef) != n_outputs:
            raise refuse(f"it has {len(coef)} coefficients for {n_outputs} features")
        return cls(basis, coef)


def _read_centers(parts: Parts, n_features: int) -> Any:
    if parts.text("centers", ("dense", "sparse")) == "dense":
        centers = parts.array("centers", "float", (None, n_features))
        if not len(centers):
            raise refuse("it has no centres")
        return centers
    return parts.sparse_centers(n_features)


#: Scorers by kind. A new one: a class as above, and a line here; tests pick it up.
SCORERS: dict[str, Any] = {LinearScorer.kind: LinearScorer, Committee.kind: Committee}


def scorer_of(ranker: Any) -> StoredScorer:
    """The storable scorer of a fitted ranker: its ``scorer_``, or its basis and coefficients."""
    own: StoredScorer | None = getattr(ranker, "scorer_", None)
    if own is not None:
        return own
    return LinearScorer(ranker.basis_, ranker.coef_)


def read_scorer(parts: Parts, widths: Mapping[str, int]) -> StoredScorer:
    """The scorer that a part of a model file describes."""
    kind = parts.text("kind", SCORERS)
    scorer: StoredScorer = SCORERS[kind].from_parts(parts, widths)
    parts.finish()
    return scorer
