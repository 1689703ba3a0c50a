"""What a fitted encoder knows, as plain values; each class encodes its kind of column.

scikit-learn's transformers learn; these keep medians, means, scales and categories and apply
them. The same code runs after fitting and after loading, so a model scores alike in both lives,
and a model file holds numbers and strings only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pnuauc._stored import Parts, pack_texts, refuse
from pnuauc.io._extras import need

__all__ = ["MAX_SPARSE", "MAX_WIDTH", "STATES", "Categories", "Flags", "Gaps", "Numbers", "Scales"]

#: Encoded columns of a dense table, and of a sparse one, that a model may have.
MAX_WIDTH = 1_000_000
MAX_SPARSE = 2**24


@dataclass(frozen=True, eq=False)
class Numbers:
    """(x - mean) / scale, missing cells first filled: arrays of shape (columns,)."""

    fill: NDArray[np.float64]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @property
    def width(self) -> int:
        return len(self.fill)

    def transform(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((_filled(values, self.fill) - self.mean) / self.scale)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"fill": self.fill, "mean": self.mean, "scale": self.scale}

    @classmethod
    def from_parts(cls, parts: Parts, n_columns: int) -> Numbers:
        fill, mean, scale = (
            parts.array(k, "float", (n_columns,)) for k in ("fill", "mean", "scale")
        )
        if not (scale > 0).all():
            raise refuse("a scale of its columns is not positive")
        return cls(fill, mean, scale)


@dataclass(frozen=True, eq=False)
class Flags:
    """Booleans as 0/1, missing ones filled: ``fill`` of shape (columns,)."""

    fill: NDArray[np.float64]

    @property
    def width(self) -> int:
        return len(self.fill)

    def transform(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return _filled(values, self.fill)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"fill": self.fill}

    @classmethod
    def from_parts(cls, parts: Parts, n_columns: int) -> Flags:
        fill = parts.array("fill", "float", (n_columns,))
        if not np.isin(fill, (0.0, 1.0)).all():
            raise refuse("a boolean column is filled with what is no boolean")
        return cls(fill)


@dataclass(frozen=True, eq=False)
class Gaps:
    """0/1 columns that say where a cell was missing: ``columns`` holds their indices, sorted."""

    columns: NDArray[np.int64]

    @property
    def width(self) -> int:
        return len(self.columns)

    def transform(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.isnan(values[:, self.columns]).astype(np.float64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"columns": self.columns}

    @classmethod
    def from_parts(cls, parts: Parts, n_columns: int) -> Gaps:
        columns = parts.indices("columns", (None,), 0, n_columns)
        if (np.diff(columns) <= 0).any():
            raise refuse("the columns with missing cells are out of order")
        return cls(columns)


class Categories:
    """One 0/1 column for each kept category and, if there are rare ones, one for these together.

    Parameters
    ----------
    kept, rare : list of list of str
        By column. Categories never seen join the rare ones; without any they are all zeros.
    """

    def __init__(self, kept: list[list[str]], rare: list[list[str]]) -> None:
        self.kept, self.rare = kept, rare
        self._arrow: list[Any] = []

    def names(self) -> list[list[str]]:
        """Names of the 0/1 columns, by column."""
        return [[*k, "(rare)"] if r else k for k, r in zip(self.kept, self.rare, strict=True)]

    @property
    def width(self) -> int:
        return sum(map(len, self.names()))

    def unseen(self, j: int, values: set[str]) -> set[str]:
        """Those of ``values`` that column j did not hold when it was fitted."""
        return values.difference(self.kept[j], self.rare[j])

    def transform(self, texts: NDArray[Any]) -> NDArray[np.float64]:
        pa, pc = need("pyarrow"), need("pyarrow.compute")
        if not self._arrow:
            self._arrow = [pa.array(kept, pa.string()) for kept in self.kept]
        widths = [len(names) for names in self.names()]
        out = np.zeros((len(texts), sum(widths)))
        start = 0
        for j, width in enumerate(widths):
            # where it is among the kept; those that are not get the number after the last, which
            # is the rare column if there is one
            found = pc.index_in(pa.array(texts[:, j], pa.string()), value_set=self._arrow[j])
            where = pc.fill_null(found, len(self.kept[j])).to_numpy(zero_copy_only=False)
            rows = np.flatnonzero(where < width)
            out[rows, start + where[rows]] = 1.0
            start += width
        return out

    def arrays(self) -> dict[str, NDArray[Any]]:
        counts = [[len(k), len(r)] for k, r in zip(self.kept, self.rare, strict=True)]
        levels = [level for k, r in zip(self.kept, self.rare, strict=True) for level in [*k, *r]]
        return {"counts": np.array(counts, dtype=np.int64), **pack_texts("levels", levels)}

    @classmethod
    def from_parts(cls, parts: Parts, n_columns: int) -> Categories:
        levels = parts.texts("levels")
        counts = parts.indices("counts", (n_columns, 2), 0, len(levels) + 1)
        if int(counts.sum()) != len(levels):
            raise refuse("its categories and their counts do not add up")
        kept, rare, start = [], [], 0
        for n_kept, n_rare in counts.tolist():
            kept.append(levels[start : start + n_kept])
            rare.append(levels[start + n_kept : start + n_kept + n_rare])
            start += n_kept + n_rare
            if len({*kept[-1], *rare[-1]}) != n_kept + n_rare:
                raise refuse("a category of one column occurs twice")
        return cls(kept, rare)


@dataclass(frozen=True, eq=False)
class Scales:
    """Sparse columns divided by their largest absolute value: ``scale`` of shape (columns,)."""

    scale: NDArray[np.float64]

    @property
    def width(self) -> int:
        return len(self.scale)

    def transform(self, X: Any) -> Any:
        out = sparse.csr_matrix(X, dtype=np.promote_types(X.dtype, np.float32), copy=True)
        out.data /= self.scale.astype(out.dtype, copy=False)[out.indices]
        return out

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"scale": self.scale}

    @classmethod
    def from_parts(cls, parts: Parts, n_columns: int) -> Scales:
        scale = parts.array("scale", "float", (n_columns,))
        if not (scale > 0).all():
            raise refuse("a scale of its columns is not positive")
        return cls(scale)


#: What is stored of each kind of column, and the class that reads it back.
STATES: dict[str, Any] = {
    "number": Numbers,
    "boolean": Flags,
    "missing": Gaps,
    "category": Categories,
    "sparse": Scales,
}


def _filled(values: NDArray[np.float64], fill: NDArray[np.float64]) -> NDArray[np.float64]:
    gaps = np.isnan(values)
    # without a gap filling only copies; most batches have none
    return np.where(gaps, fill, values) if gaps.any() else values
