"""What a member comes down to: a sum of simple models, each reading one view of the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.arrays import Floats
from pnuauc._utils.stored import Parts, Storable, Stored, arrays_of, refuse
from pnuauc.committee.forest import Forest
from pnuauc.committee.kernels import KernelSum
from pnuauc.committee.views import Look, View, read_view
from pnuauc.evaluation.heldout import raw_scores
from pnuauc.evaluation.posterior import Posterior
from pnuauc.exceptions import InputError

__all__ = ["MODELS", "Committee", "Foreign", "Part", "Seat", "Slope", "score_parts"]


#: Members, and parts of all members together: a committee has some ten members of 1 to 3 parts.
_MAX_SEATS, _MAX_PARTS = 20, 40
#: Cells of the rows that are scored at a time: views of them take some times as much.
_BLOCK_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class Slope(Stored):
    """coef'x.

    coef : ndarray, shape (d,)
    """

    coef: Floats

    kind = "slope"

    def score(self, X: Any) -> Floats:
        return np.asarray(X @ self.coef)

    @classmethod
    def rebuild(cls, parts: Parts, n_columns: int) -> Slope:
        return cls(parts.array("coef", "float", (n_columns,)).astype(np.float64))


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
MODELS: dict[str, Any] = {m.kind: m for m in (Forest, KernelSum, Slope)}


@dataclass(frozen=True, eq=False)
class Part:
    """A model, and the view of the columns that it reads."""

    reads: str
    model: Any

    def score(self, look: Look) -> Floats:
        return np.asarray(self.model.score(getattr(look, self.reads)), dtype=np.float64)

    def spec(self) -> dict[str, Any]:
        return {"reads": self.reads, **self.model.spec()}

    def arrays(self) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = self.model.arrays()
        return found

    @classmethod
    def rebuild(cls, parts: Parts, view: View) -> Part:
        reads = parts.text("reads", view.widths)
        model = MODELS[parts.text("kind", MODELS)]
        return cls(reads, model.rebuild(parts, view.widths[reads]))


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

    @property
    def _named(self) -> dict[str, Part]:
        return {f"part{j}": part for j, part in enumerate(self.parts)}

    def spec(self) -> dict[str, Any]:
        numbers = {"weight": self.weight, "mean": self.mean, "spread": self.spread}
        parts = {name: part.spec() for name, part in self._named.items()}
        return {"name": self.name, "n_parts": len(parts), **numbers, **parts}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return arrays_of(self._named)

    @classmethod
    def rebuild(cls, parts: Parts, view: View) -> Seat:
        n = parts.spend("parts", parts.integer("n_parts", 1, _MAX_PARTS), _MAX_PARTS)
        return cls(
            parts.text("name", at_most=100),
            tuple(parts.part(f"part{j}", Part.rebuild, view) for j in range(n)),
            parts.number("weight", 0.0, 1e6),
            parts.number("mean"),
            parts.number("spread", 1e-300),
        )


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

    @property
    def _named(self) -> dict[str, Storable]:
        known = {} if self.posterior is None else {"posterior": self.posterior}
        seats = {f"seat{i}": seat for i, seat in enumerate(self.seats)}
        return {"view": self.view, **known, **seats}

    def spec(self) -> dict[str, Any]:
        parts = {name: part.spec() for name, part in self._named.items()}
        return {"kind": self.kind, "n_seats": len(self.seats), **parts}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"quantiles": self.quantiles, **arrays_of(self._named)}

    @classmethod
    def from_parts(cls, parts: Parts, widths: Mapping[str, int]) -> Committee:
        """From a model file, every number checked; ``widths``: of the encoder's views."""
        parts.text("kind", [cls.kind])
        n = parts.integer("n_seats", 1, _MAX_SEATS)
        view = parts.part("view", read_view, widths["kernels"], widths.get("trees", 0))
        seats = tuple(parts.part(f"seat{i}", Seat.rebuild, view) for i in range(n))
        quantiles = parts.array("quantiles", "float", (None,)).astype(np.float64)
        if len(quantiles) < 2 or (np.diff(quantiles) < 0).any():
            raise refuse("quantiles of its scores do not ascend")
        known = parts.has("posterior")
        return cls(
            view, seats, quantiles, parts.part("posterior", Posterior.rebuild) if known else None
        )
