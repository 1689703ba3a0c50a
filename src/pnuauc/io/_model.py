"""A fitted ranking model of a table: what scoring needs, and no more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._shown import ShownAsTable
from pnuauc.exceptions import InputError
from pnuauc.io._encoder import TableEncoder
from pnuauc.io._frames import as_table
from pnuauc.io._parts import StoredScorer, scorer_of

__all__ = ["TableModel"]

#: Quantiles of the unlabelled scores that are kept, to place new scores among them.
N_QUANTILES = 1001


@dataclass(repr=False)
class TableModel(ShownAsTable):
    """Encoder, scorer and threshold: score(row) = scorer(encode(row)) - threshold.

    Made by :meth:`from_fitted` from a fitted :class:`TableEncoder` and ranker; saved and loaded
    by :func:`pnuauc.io.save_model` and :func:`pnuauc.io.load_model`.

    Attributes
    ----------
    encoder : TableEncoder
    scorer : what gives encoded rows a score; see :mod:`pnuauc.io._parts`
    threshold : float
        Rows with a score above 0 are called positive.
    quantiles : ndarray
        Quantiles 0, 0.001, ..., 1 of the training rows' scores (the unlabelled ones if any).
    card : dict
        What a reader wants to know: labels, prior, selection, AUC, versions, warnings.
    """

    encoder: TableEncoder
    scorer: StoredScorer
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
            scorer_of(ranker),
            float(ranker.threshold_),
            np.zeros(N_QUANTILES),
            card or {},
        )
        model.quantiles = np.quantile(model.score_encoded(X), np.linspace(0, 1, N_QUANTILES))
        return model

    def _shown(self) -> list[tuple[str, Any]]:
        """What the card says, for the eye; the file's own reader is ``pnuauc inspect``."""
        auc = self.card.get("auc") or {}
        shown = {
            "label": self.card.get("label"),
            "columns": tuple(column.name for column in self.encoder.columns_),
            "scorer": type(self.scorer).__name__,
            "auc": auc.get("value"),
            "threshold": self.threshold,
            "created": self.card.get("created"),
        }
        return [(name, value) for name, value in shown.items() if value is not None]

    def score(self, X: Any, n_threads: int = 1) -> NDArray[np.float64]:
        """Scores of a frame, array or CSR matrix, shape (n,); higher is more likely positive."""
        table = as_table(X)
        views = {view: self.encoder.transform(table, view) for view in self.scorer.views}
        return self.score_encoded(_one_or_all(views), n_threads)

    def encode(self, batch: Any, first_row: int = 0) -> Any:
        """What the scorer reads of a batch whose columns were checked: a matrix, or one a view."""
        views = {v: self.encoder.encode(batch, first_row, v) for v in self.scorer.views}
        return _one_or_all(views)

    def score_encoded(self, X: Any, n_threads: int = 1) -> NDArray[np.float64]:
        """Scores of rows that are encoded already."""
        with np.errstate(all="ignore"):  # what overflows is told below, in a sentence
            scores = self.scorer.score(X, n_threads) - self.threshold
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores))[0]) + 1
            raise InputError(
                f"The score of row {row} is too large to compute: a number in it, or in the model, "
                "is out of all proportion."
            )
        return scores

    def percentile(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Percent of the (unlabelled) training rows that score lower, shape (n,)."""
        # equal quantiles (tied scores) need no care: interpolation takes the last of them
        share = np.interp(scores, self.quantiles, np.linspace(0.0, 100.0, len(self.quantiles)))
        return np.asarray(share)


def _one_or_all(views: dict[str, Any]) -> Any:
    return views if len(views) > 1 else next(iter(views.values()))
