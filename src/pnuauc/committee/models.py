"""What a member comes down to: a sum of simple models, each reading one view of the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.arrays import Floats
from pnuauc._utils.stored import Parts, refuse
from pnuauc.committee.forest import Forest
from pnuauc.committee.kernels import KernelSum, read_kernels, sum_kernels
from pnuauc.committee.views import DenseView, Look, SparseView, View
from pnuauc.core.basis import MultiscaleBasis
from pnuauc.core.solvers import LinearModel
from pnuauc.evaluation.heldout import raw_scores
from pnuauc.evaluation.posterior import Posterior
from pnuauc.exceptions import InputError

__all__ = ["MODELS", "Committee", "Foreign", "Gaussians", "Part", "Seat", "Slope", "score_parts"]


#: Members, and parts of all members together: a committee has some ten members of 1 to 3 parts.
_MAX_SEATS, _MAX_PARTS = 20, 40
#: Cells of the rows that are scored at a time: views of them take some times as much.
_BLOCK_CELLS = 1 << 22
_COLUMNS = {"squashed", "trees", "splits", "filled", "unit", "whitened", "components"}
_READABLE = {*_COLUMNS, "latent", "raw"}


@dataclass(frozen=True, eq=False)
class Slope:
    """coef'x.

    coef : ndarray, shape (d,)
    """

    coef: Floats

    kind = "slope"

    def score(self, X: Any) -> Floats:
        return np.asarray(X @ self.coef)

    def spec(self) -> dict[str, Any]:
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"coef": self.coef}

    @classmethod
    def rebuild(cls, parts: Parts, n_columns: int) -> Slope:
        return cls(parts.array("coef", "float", (n_columns,)).astype(np.float64))


@dataclass(frozen=True, eq=False)
class Gaussians:
    """The linear-in-parameter model of the paper: Gaussians of several widths on shared centres."""

    model: LinearModel

    kind = "gaussians"

    def score(self, X: Floats) -> Floats:
        """Shape (n,)."""
        basis = self.model.basis
        m, powers = len(basis.widths_), np.full(len(basis.widths_), 2)
        coef = self.model.coef.reshape(m, -1)
        return sum_kernels(X, basis.centers_, basis.widths_, powers, coef)

    def spec(self) -> dict[str, Any]:
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        basis = self.model.basis
        return {"centers": basis.centers_, "widths": basis.widths_, "coef": self.model.coef}

    @classmethod
    def rebuild(cls, parts: Parts, n_columns: int) -> Gaussians:
        centers, widths = read_kernels(parts, n_columns)
        if not len(centers) or not len(widths):
            raise refuse("it has no centres")
        coef = parts.array("coef", "float", (len(centers) * len(widths),)).astype(np.float64)
        basis = MultiscaleBasis(len(centers), widths.tolist())
        basis.centers_, basis.widths_, basis.n_features_in_ = centers, widths, n_columns
        return cls(LinearModel(basis, coef))


@dataclass(frozen=True, eq=False)
class Foreign:
    """A fitted classifier of the user's. It can be pickled with the committee, but a model file
    holds numbers and no code.
    """

    name: str
    model: Any

    def score(self, X: Any) -> Floats:
        """Shape (n,)."""
        found = raw_scores(self.model, X)
        if found.shape != (X.shape[0],) or not np.isfinite(found).all():
            raise InputError(f"{self.name} does not give one finite score to each row.")
        return found


#: Models that a member may consist of and a file may hold, by kind.
MODELS: dict[str, Any] = {m.kind: m for m in (Forest, KernelSum, Gaussians, Slope)}


@dataclass(frozen=True, eq=False)
class Part:
    """A model, and the view of the columns that it reads."""

    reads: str
    model: Any

    def score(self, look: Look) -> Floats:
        return np.asarray(self.model.score(getattr(look, self.reads)), dtype=np.float64)


def score_parts(parts: Sequence[Part], look: Look) -> Floats:
    """A member's score: the sum of its parts, shape (n,)."""
    return np.asarray(sum(part.score(look) for part in parts))


@dataclass(frozen=True, eq=False)
class Seat:
    """A member in the committee: its parts, and weight (score - mean) / spread to the sum."""

    name: str
    parts: tuple[Part, ...]
    weight: float
    mean: float
    spread: float

    def standardised(self, scores: Floats) -> Floats:
        """What these scores of its parts add to the sum."""
        return self.weight * (scores - self.mean) / self.spread

    def score(self, look: Look) -> Floats:
        return self.standardised(score_parts(self.parts, look))


@dataclass(frozen=True, eq=False)
class Committee:
    """sum over seats of weight (score - mean) / spread.

    Attributes
    ----------
    view : View
    seats : tuple of Seat
    quantiles : ndarray, shape (q,)
        Evenly spaced quantiles of the sum over unlabelled rows; they turn scores into places.
    posterior : Posterior or None
        From places to probabilities.
    """

    view: View
    seats: tuple[Seat, ...]
    quantiles: Floats
    posterior: Posterior | None = None

    kind = "committee"

    @property
    def foreign(self) -> tuple[str, ...]:
        """Members that no model file can hold."""
        parts = (part.model for seat in self.seats for part in seat.parts)
        return tuple(model.name for model in parts if isinstance(model, Foreign))

    @property
    def views(self) -> tuple[str, ...]:
        """Which encodings of a table it reads, side by side."""
        return ("kernels", "trees") if self._n_own else ("kernels",)

    @property
    def _n_own(self) -> int:
        return len(self.view.own_mean)

    def places(self, scores: Floats) -> Floats:
        """Share of unlabelled rows that score lower."""
        shares = np.linspace(0.0, 1.0, len(self.quantiles))
        # a stretch of equal quantiles is one place, its middle: the same however it is approached
        low = np.interp(scores, self.quantiles, shares)
        high = 1.0 - np.interp(-scores, -self.quantiles[::-1], shares)
        edge = 0.5 / len(self.quantiles)
        return np.clip((low + high) / 2.0, edge, 1.0 - edge)

    def probability(self, scores: Floats) -> Floats:
        """Probability that a row of U with this score is positive."""
        if self.posterior is None:
            raise AttributeError("This committee was fitted without held-out rows (cv=0).")
        return self.posterior.probability(self.places(scores))

    def chances(self, scores: Floats, level: float = 0.9) -> Floats | None:
        """That probability, its low and its high end, shape (n, 3); None if not calibrated."""
        if self.posterior is None:
            return None
        places = self.places(scores)
        low, high = self.posterior.probability_interval(places, level).T
        # the mean of a skewed posterior may lie outside its equal-tailed interval
        value = self.posterior.probability(places)
        return np.column_stack([value, np.minimum(low, value), np.maximum(high, value)])

    def score(self, X: Any, n_threads: int = 1) -> Floats:
        """Shape (n,); block by block, so that views of the rows stay small."""
        out = np.empty(X.shape[0])
        step = max(1, min(16_384, _BLOCK_CELLS // max(X.shape[1], 1)))
        heard = [seat for seat in self.seats if seat.weight]
        for start in range(0, X.shape[0], step):
            look = Look(X[start : start + step], self.view)
            out[start : start + step] = sum(seat.score(look) for seat in heard)
        return out

    def spec(self) -> dict[str, Any]:
        seats = {}
        for i, seat in enumerate(self.seats):
            parts = {
                f"part{j}": {"kind": p.model.kind, "reads": p.reads, **p.model.spec()}
                for j, p in enumerate(seat.parts)
            }
            numbers = {"weight": seat.weight, "mean": seat.mean, "spread": seat.spread}
            seats[f"seat{i}"] = {"name": seat.name, "n_parts": len(parts), **numbers, **parts}
        view: dict[str, Any] = {"layout": "sparse" if self.view.is_sparse else "dense"}
        if isinstance(self.view, DenseView):
            view |= {"n_own": self._n_own, "n_latent": self.view.n_latent}
        known: dict[str, Any] = (
            {} if self.posterior is None else {"posterior": self.posterior.spec()}
        )
        return {"kind": self.kind, "n_seats": len(seats), "view": view, **known, **seats}

    def arrays(self) -> dict[str, NDArray[Any]]:
        found = {f"view/{name}": values for name, values in self.view.arrays().items()}
        found["quantiles"] = self.quantiles
        if self.posterior is not None:
            named = self.posterior.arrays()
            found |= {f"posterior/{name}": values for name, values in named.items()}
        for i, seat in enumerate(self.seats):
            for j, part in enumerate(seat.parts):
                named = part.model.arrays()
                found |= {f"seat{i}/part{j}/{name}": values for name, values in named.items()}
        return found

    @classmethod
    def rebuild(cls, parts: Parts, n_features: int, n_own: int = 0) -> Committee:
        """From a model file, every number checked; trees may have ``n_own`` further columns."""
        parts.text("kind", [cls.kind])
        n_seats = parts.integer("n_seats", 1, _MAX_SEATS)
        stored = parts.sub("view")
        view: View
        if stored.text("layout", ("dense", "sparse")) == "sparse":
            view = SparseView.rebuild(stored, n_features)
        else:
            own = stored.integer("n_own", 0, n_own)
            if own not in (0, n_own):
                raise refuse("its trees do not read the columns that the table has for them")
            latent = stored.integer("n_latent", 0, n_features)
            view = DenseView.rebuild(stored, n_features - latent, own, latent)
        stored.finish()
        seats = tuple(_read_seat(parts.sub(f"seat{i}"), view) for i in range(n_seats))
        quantiles = parts.array("quantiles", "float", (None,)).astype(np.float64)
        if len(quantiles) < 2 or (np.diff(quantiles) < 0).any():
            raise refuse("quantiles of its scores do not ascend")
        posterior = None
        if parts.has("posterior"):
            stored = parts.sub("posterior")
            posterior = Posterior.rebuild(stored)
            stored.finish()
        return cls(view, seats, quantiles, posterior)

    @classmethod
    def from_parts(cls, parts: Parts, widths: Mapping[str, int]) -> Committee:
        """As the model file asks for it; see :mod:`pnuauc.io`."""
        return cls.rebuild(parts, widths["kernels"], widths["trees"])


def _read_seat(stored: Parts, view: View) -> Seat:
    n_parts = stored.spend("parts", stored.integer("n_parts", 1, _MAX_PARTS), _MAX_PARTS)
    found = []
    for j in range(n_parts):
        part = stored.sub(f"part{j}")
        reads = part.text("reads", _READABLE & _columns(view).keys())
        model = MODELS[part.text("kind", MODELS)].rebuild(part, _columns(view)[reads])
        part.finish()
        found.append(Part(reads, model))
    seat = Seat(
        stored.text("name", at_most=100),
        tuple(found),
        stored.number("weight", 0.0, 1e6),
        stored.number("mean"),
        stored.number("spread", 1e-300),
    )
    stored.finish()
    return seat


def _columns(view: View) -> Mapping[str, int]:
    """Number of columns of every view that a part may read."""
    names = ("raw", "components") if view.is_sparse else tuple(_READABLE - {"raw"})
    return {name: view.width(name) for name in names}
