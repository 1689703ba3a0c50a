"""A fitted ranking model of a table: what scoring needs, and no more."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pnuauc._utils.show import ShownAsTable
from pnuauc._utils.stored import Parts, Storable, refuse
from pnuauc.committee import Committee, Reason, find_reasons
from pnuauc.committee.reasons import name_words
from pnuauc.core.basis import GaussianBasis, IdentityBasis, LinearKernelBasis, MultiscaleBasis
from pnuauc.core.design import block_scores
from pnuauc.core.rows import shuffled, sparse_keys
from pnuauc.exceptions import InputError
from pnuauc.io.draw import cells_keys
from pnuauc.io.encode import (
    TableEncoder,
)

# Why a row scores as it does, in words: columns, their values, what they do to the score.


def spell_reasons(reasons: Sequence[Reason], cell: Callable[[str], Any] | None) -> str:
    """ "income = 900 (+1.2), notes: refund, fit (+0.3)": the score's loss at a typical value.

    ``cell`` gives the row's value in a table column, as the table holds it; None: rows have no
    named columns, and the encoded value is shown.
    """
    spelled = []
    for reason in reasons:
        if reason.words:
            shown = f": {', '.join(reason.words)}"
        else:
            value = reason.value if cell is None else cell(reason.column)
            shown = f" = {cell_text(value) or '(missing)'}"
        spelled.append(f"{reason.column}{shown} ({reason.effect:+.2g})")
    return ", ".join(spelled)


def cell_of(table: Any, row: int, name: str) -> Any:
    """The value of one cell."""
    return table.column(name)[row].as_py()


def cell_text(value: Any) -> str:
    """A cell as the table holds it."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


# Scorers that a model file can hold, by kind: one class and one line in ``SCORERS`` each.


#: Widths of a multiscale basis, of which a grid has five to ten; centres, of which it has hundreds.
_MAX_WIDTHS = 100
_MAX_CENTERS = 100_000


class StoredScorer(Storable, Protocol):
    """What :class:`TableModel` asks of a scorer."""

    kind: str

    @property
    def views(self) -> tuple[str, ...]: ...

    def score(self, X: Any, n_threads: int = 1) -> NDArray[np.float64]: ...


class LinearScorer:
    """w'phi(x) for the identity, or Gaussians of one or several widths.

    A linear kernel C x of centres C is the identity with coefficients C'w: no centre is kept.
    """

    kind: str = "linear"
    views: tuple[str, ...] = ("kernels",)

    def __init__(self, basis: Any, coef: NDArray[np.float64]) -> None:
        if isinstance(basis, LinearKernelBasis):
            coef = basis.centers_.T @ coef
            basis = IdentityBasis.from_parts(len(coef))
        elif isinstance(basis, GaussianBasis):
            basis = MultiscaleBasis.from_parts(basis.centers_, [basis.width_])
        if not isinstance(basis, (IdentityBasis, MultiscaleBasis)):
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
        layout = "sparse" if sparse.issparse(self.basis.centers_) else "dense"
        return {"kind": self.kind, "basis": "gaussian", "centers": layout}

    def arrays(self) -> dict[str, NDArray[Any]]:
        if isinstance(self.basis, IdentityBasis):
            return {"coef": self.coef}
        centers = self.basis.centers_
        names = ("data", "indices", "indptr") if sparse.issparse(centers) else ()
        stored = {f"centers_{name}": getattr(centers, name) for name in names}
        return {"coef": self.coef, "widths": self.basis.widths_, **(stored or {"centers": centers})}

    @classmethod
    def from_parts(cls, parts: Parts, widths: Mapping[str, int]) -> LinearScorer:
        n_features = widths["kernels"]
        parts.text("kind", [cls.kind])
        coef = parts.array("coef", "float", (None,))
        basis: Any = IdentityBasis.from_parts(n_features)
        if parts.text("basis", ("identity", "gaussian")) == "gaussian":
            centers = _read_centers(parts, n_features)
            scales = parts.array("widths", "float", (None,), at_most=_MAX_WIDTHS)
            scales = scales.astype(np.float64)
            # the square of a width must be a number too
            if not (len(scales) and (scales > 1e-150).all()):
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
        if not 0 < len(centers) <= _MAX_CENTERS:
            raise refuse(f"it has no centres, or more than {_MAX_CENTERS:,}")
        return centers
    return parts.sparse_centers(n_features, _MAX_CENTERS)


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


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Labelled rows that a model was fitted to: a keyed hash of each, none of their cells.

    key : int; hashes : ndarray of int64, ascending; scores : ndarray, held-out scores, or NaN
    """

    key: int
    hashes: NDArray[np.int64]
    scores: NDArray[np.float64]

    @classmethod
    def of(cls, keys: NDArray[np.uint64], scores: NDArray[np.float64]) -> SeenRows:
        """Of labelled rows by their :meth:`TableModel.row_keys`."""
        key = secrets.randbits(62)
        hashes = shuffled(keys, key).view(np.int64)
        order = np.argsort(hashes, kind="stable")
        return cls(key, hashes[order], np.asarray(scores, dtype=np.float64)[order])

    def find(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Whether each row was seen, and its held-out score, NaN where there is none."""
        hashes = shuffled(keys, self.key).view(np.int64)
        if not len(self.hashes):
            return np.zeros(len(hashes), dtype=bool), np.full(len(hashes), np.nan)
        place = np.searchsorted(self.hashes, hashes).clip(max=len(self.hashes) - 1)
        seen = self.hashes[place] == hashes
        return seen, np.where(seen, self.scores[place], np.nan)


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
    scorer : what gives encoded rows a score; see :mod:`pnuauc.model.model`
    threshold : float
        Rows with a score above 0 are called positive.
    quantiles : ndarray
        Quantiles 0, 0.001, ..., 1 of the training rows' scores (the unlabelled ones if any).
    typical : ndarray, shape (encoded columns,), or None
        Their means over those rows, with which :meth:`reasons` compares; None for sparse rows.
    card : dict
        What a reader wants to know: labels, prior, selection, AUC, versions, warnings.
    seen : SeenRows or None
        The labelled rows that it was fitted to.
    """

    encoder: TableEncoder
    scorer: StoredScorer
    threshold: float
    quantiles: NDArray[np.float64]
    card: dict[str, Any] = field(default_factory=dict)
    typical: NDArray[np.float64] | None = None
    seen: SeenRows | None = None

    @classmethod
    def from_fitted(
        cls,
        encoder: TableEncoder,
        ranker: Any,
        X: Any,
        card: dict[str, Any] | None = None,
        *,
        scores: NDArray[np.float64] | None = None,
    ) -> TableModel:
        """Keep of a fitted ranker what scoring needs; ``X`` are encoded rows to place scores by.

        ``scores`` are theirs by this model, where they are known.
        """
        model = cls(
            encoder,
            scorer_of(ranker),
            float(ranker.threshold_),
            np.zeros(N_QUANTILES),
            card or {},
            None if sparse.issparse(X) else _means(X),
        )
        scores = model.score_encoded(X) if scores is None else scores
        model.quantiles = np.quantile(scores, np.linspace(0, 1, N_QUANTILES))
        return model

    @property
    def unstorable(self) -> str | None:
        """Why no model file can hold it, in a sentence; None: one can."""
        foreign = getattr(self.scorer, "foreign", ())
        if not foreign:
            return None
        return (
            f"The model is not written: {' and '.join(foreign)} cannot be stored safely, as a "
            "model file holds numbers and no code. In Python, fit_table(...).model scores tables "
            "and can be pickled."
        )

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
        return self.score_encoded(self.encoder.views_of(X, self.scorer.views), n_threads)

    def encode(self, batch: Any, first_row: int = 0) -> Any:
        """What the scorer reads of a batch whose columns were checked: its views side by side."""
        return self.encoder.encode(batch, first_row, self.scorer.views)

    def score_encoded(self, X: Any, n_threads: int = 1) -> NDArray[np.float64]:
        """Scores of rows that are encoded already."""
        with np.errstate(all="ignore"):  # an overflow is reported below
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

    def find_seen(self, table: Any) -> tuple[NDArray[np.bool_], NDArray[np.float64]] | None:
        """Whether each row was labelled at fitting, and its held-out score; None: not known."""
        return None if self.seen is None else self.seen.find(self.row_keys(table))

    def row_keys(self, table: Any) -> NDArray[np.uint64]:
        """A number for each row, the same for rows that agree in all that the model reads."""
        encoding: Any = self.encoder.encoding_
        read = encoding.read(table)
        return sparse_keys(read) if self.encoder.is_sparse else cells_keys(encoding, read)

    def reasons(
        self, X: Any, n_reasons: int = 3, columns: Sequence[str] | None = None, table: Any = None
    ) -> list[list[Reason]]:
        """For each encoded row the table columns that move its score most, strongest first.

        Parameters
        ----------
        X : what :meth:`encode` gives
        columns : table columns to try; None: all (of sparse rows the words that they hold)
        table : arrow table of the same rows, for the words of their text
        """
        if sparse.issparse(X):
            names = None if columns is None else {int(name.split()[-1]) - 1 for name in columns}
            found = find_reasons(self.score_encoded, X, None, n_reasons, only=names)
            return [[replace(r, column=f"feature {r.column + 1}") for r in row] for row in found]
        if self.typical is None:
            raise InputError("The model file holds no typical row to compare with; fit it again.")
        groups = self.encoder.groups(*self.scorer.views)
        if columns is not None:
            blocks = getattr(self.encoder.encoding_, "blocks", ())
            block_of = {name: block.name for block in blocks for name in block.columns}
            groups = {name: groups[name] for name in (block_of.get(c, c) for c in columns)}
        found = find_reasons(self.score_encoded, X, self.typical, n_reasons, groups)
        if table is None:
            return found
        return name_words(found, self.score_encoded, X, table, self.encoder, self.scorer.views)


def _means(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the cells that are there; 0 where none is."""
    there = ~np.isnan(X)
    total = np.sum(X, axis=0, where=there, dtype=np.float64)
    return np.asarray(total / np.maximum(there.sum(axis=0), 1))
