"""A fitted ranking model of a table: what scoring needs, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pnuauc._committee import Reason, find_reasons
from pnuauc._shown import ShownAsTable
from pnuauc.exceptions import InputError
from pnuauc.io._encoder import TableEncoder
from pnuauc.io._frames import as_table
from pnuauc.io._parts import StoredScorer, scorer_of

__all__ = ["TableModel", "encode_batch", "encode_views", "grouped_columns", "kernels_of"]

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
    typical : ndarray, shape (encoded columns,), or None
        Their means over those rows, with which :meth:`reasons` compares; None for sparse rows.
    card : dict
        What a reader wants to know: labels, prior, selection, AUC, versions, warnings.
    """

    encoder: TableEncoder
    scorer: StoredScorer
    threshold: float
    quantiles: NDArray[np.float64]
    card: dict[str, Any] = field(default_factory=dict)
    typical: NDArray[np.float64] | None = None

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
            None if sparse.issparse(X) else _means(X),
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
        return self.score_encoded(encode_views(self.encoder, X, self.scorer.views), n_threads)

    def encode(self, batch: Any, first_row: int = 0) -> Any:
        """What the scorer reads of a batch whose columns were checked: its views side by side."""
        return encode_batch(self.encoder, batch, self.scorer.views, first_row)

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

    def probability(self, scores: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """P(positive) of a row of U with this score, low and high end, shape (n, 3).

        None where the model was not calibrated. The ends are those of a 90% interval.
        """
        calibrated = getattr(self.scorer, "chances", None)
        found = None if calibrated is None else calibrated(scores + self.threshold)
        return None if found is None else np.asarray(found)

    def reasons(
        self, X: Any, n_reasons: int = 3, columns: Sequence[str] | None = None
    ) -> list[list[Reason]]:
        """For each encoded row the table columns that move its score most, strongest first.

        Parameters
        ----------
        X : what :meth:`encode` gives
        columns : table columns to try; None: all (of sparse rows the words that they hold)
        """
        if sparse.issparse(X):
            names = None if columns is None else {int(name.split()[-1]) - 1 for name in columns}
            found = find_reasons(self.score_encoded, X, None, n_reasons, only=names)
            return [[replace(r, column=f"feature {r.column + 1}") for r in row] for row in found]
        if self.typical is None:
            raise InputError("The model file holds no typical row to compare with; fit it again.")
        groups = grouped_columns(self.encoder, self.scorer.views)
        if columns is not None:
            groups = {name: groups[name] for name in columns}
        return find_reasons(self.score_encoded, X, self.typical, n_reasons, groups)


def encode_views(encoder: TableEncoder, X: Any, views: Sequence[str]) -> Any:
    """A whole table in one or more of the encoder's views, side by side."""
    table = as_table(X)
    return _side_by_side([encoder.transform(table, view) for view in views])


def encode_batch(
    encoder: TableEncoder, batch: Any, views: Sequence[str], first_row: int = 0
) -> Any:
    """The same of a batch whose columns were checked; ``first_row`` is for messages."""
    return _side_by_side([encoder.encode(batch, first_row, view) for view in views])


def kernels_of(X: Any, encoder: TableEncoder) -> Any:
    """The view "kernels" of rows encoded for any scorer: it always comes first."""
    return X if encoder.is_sparse else X[:, : encoder.encoding_.width("kernels")]


def grouped_columns(encoder: TableEncoder, views: Sequence[str]) -> dict[str, list[int]]:
    """Which columns of :func:`encode_views` each table column feeds; those that feed some."""
    out: dict[str, list[int]] = {}
    start = 0
    for view in views:
        for name, columns in encoder.groups(view).items():
            out.setdefault(name, []).extend(start + j for j in columns)
        start += encoder.encoding_.width(view)
    return {name: columns for name, columns in out.items() if columns}


def _side_by_side(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _means(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the cells that are there; 0 where none is."""
    there = ~np.isnan(X)
    total = np.sum(X, axis=0, where=there, dtype=np.float64)
    return np.asarray(total / np.maximum(there.sum(axis=0), 1))
