"""Reading a stored part of a model: one named value at a time, nothing taken on trust.

A part is a small ``spec`` (JSON values) and plain numeric ``arrays``. The code that rebuilds a
part asks for every value by name, type and range, and calls :meth:`Parts.finish`, which refuses
whatever was not asked for: a file holds exactly what the code that writes it would write.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pnuauc.exceptions import ModelFileError

T = TypeVar("T")

_KINDS = {"float": ("float64", "float32"), "integer": ("int64", "int32"), "byte": ("uint8",)}


def refuse(reason: str) -> ModelFileError:
    """The error of a file that cannot be a model; a caller that knows the file adds its name."""
    return ModelFileError(reason)


class Parts:
    """Named values and arrays of one stored part; each question is also a check.

    Parameters
    ----------
    spec : dict
        As JSON gave it.
    arrays : dict of name -> ndarray
    where : str
        What the part is called in messages.
    spent : dict of str -> int, optional
        Counts of the whole file, which its parts share; see :meth:`spend`.
    """

    def __init__(
        self,
        spec: Any,
        arrays: Mapping[str, NDArray[Any]],
        where: str = "model",
        spent: dict[str, int] | None = None,
    ) -> None:
        if not isinstance(spec, dict):
            raise refuse(f"its {where} is not described")
        self.spec, self.arrays, self.where = spec, dict(arrays), where
        self._left = set(spec)
        self._left_arrays = set(self.arrays)
        self._spent = {} if spent is None else spent

    def _take(self, key: str, kind: type | tuple[type, ...]) -> Any:
        if key not in self.spec:
            raise refuse(f"its {self.where} lacks {key}")
        self._left.discard(key)
        value = self.spec[key]
        # True is an int to Python, not to us
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise refuse(f"{key} of its {self.where} is of the wrong type")
        return value

    def spend(self, what: str, n: int, at_most: int) -> int:
        """Count ``n`` more of what costs time to rebuild; refuse a file with more than a fit has.

        The check comes before anything is built, and holds for all parts of the file together.
        """
        self._spent[what] = self._spent.get(what, 0) + n
        if self._spent[what] > at_most:
            raise refuse(f"it has more than {at_most:,} {what}, which no fit of pnuauc has")
        return n

    def has(self, key: str) -> bool:
        """Whether the spec names ``key``."""
        return key in self.spec

    def text(self, key: str, choices: Iterable[str] | None = None, at_most: int = 10_000) -> str:
        """A string, one of ``choices`` if given."""
        value = self._take(key, str)
        if len(value) > at_most or (choices is not None and value not in set(choices)):
            raise refuse(f"{key} of its {self.where} is not one that pnuauc writes")
        return str(value)

    def flag(self, key: str) -> bool:
        """True or false."""
        return bool(self._take(key, bool))

    def integer(self, key: str, low: int, high: int) -> int:
        """A whole number in [low, high]."""
        value = int(self._take(key, int))
        if not low <= value <= high:
            raise refuse(f"{key} of its {self.where} is outside {low} to {high}")
        return value

    def number(self, key: str, low: float = -math.inf, high: float = math.inf) -> float:
        """A finite number in [low, high]."""
        value = float(self._take(key, (int, float)))
        if not (math.isfinite(value) and low <= value <= high):
            raise refuse(f"{key} of its {self.where} is outside {low:g} to {high:g}")
        return value

    def items(self, key: str, at_most: int) -> list[Any]:
        """A list; what its items are is for the caller to check."""
        value = self._take(key, list)
        if len(value) > at_most:
            raise refuse(f"{key} of its {self.where} has more than {at_most} items")
        return list(value)

    def mapping(self, key: str) -> dict[str, Any]:
        """A dictionary as it is, for the caller to check."""
        return dict(self._take(key, dict))

    def array(
        self,
        name: str,
        kind: str,
        shape: Sequence[int | None],
        *,
        finite: bool = True,
        at_most: int | None = None,
    ) -> NDArray[Any]:
        """An array of ``kind`` float, integer or byte; None in ``shape`` stands for any length.

        ``at_most`` bounds the length of every axis.
        """
        if name not in self.arrays:
            raise refuse(f"its {self.where} lacks the array {name}")
        self._left_arrays.discard(name)
        value = self.arrays[name]
        if value.dtype.name not in _KINDS[kind]:
            raise refuse(f"array {name} of its {self.where} is of the wrong type")
        fits = value.ndim == len(shape) and all(
            wanted is None or wanted == size
            for wanted, size in zip(shape, value.shape, strict=True)
        )
        if not fits:
            raise refuse(f"array {name} of its {self.where} is of the wrong shape")
        if at_most is not None and max(value.shape, default=0) > at_most:
            raise refuse(f"array {name} of its {self.where} is longer than any fit makes it")
        if kind == "float" and finite and not np.isfinite(value).all():
            raise refuse(f"array {name} of its {self.where} holds numbers that are not finite")
        return value

    def indices(
        self, name: str, shape: Sequence[int | None], low: int, high: int
    ) -> NDArray[np.int64]:
        """Whole numbers in [low, high): whatever is used to look something up."""
        value = np.asarray(self.array(name, "integer", shape), dtype=np.int64)
        if value.size and not (value.min() >= low and value.max() < high):
            raise refuse(f"array {name} of its {self.where} points outside of what is there")
        return value

    def sparse_centers(self, n_columns: int, at_most: int) -> Any:
        """CSR matrix of 1 to ``at_most`` rows: ``centers_data``, ``_indices``, ``_indptr``."""
        data = self.array("centers_data", "float", (None,))
        indices = self.indices("centers_indices", (len(data),), 0, n_columns)
        ends = self.indices("centers_indptr", (None,), 0, len(data) + 1)
        if len(ends) > at_most + 1:
            raise refuse(f"it has more than {at_most:,} centres, which no fit of pnuauc has")
        if len(ends) < 2 or ends[0] != 0 or ends[-1] != len(data) or (np.diff(ends) < 0).any():
            raise refuse("its sparse centres do not add up")
        return sparse.csr_matrix((data, indices, ends), shape=(len(ends) - 1, n_columns))

    def sub(self, key: str) -> Parts:
        """A part of this part: ``spec[key]`` and the arrays named ``key/...``."""
        spec = self._take(key, dict)
        prefix = f"{key}/"
        chosen = {k.removeprefix(prefix): v for k, v in self.arrays.items() if k.startswith(prefix)}
        self._left_arrays -= {prefix + name for name in chosen}
        where = f"{self.where} {key}" if self.where != "model" else key
        return Parts(spec, chosen, where, self._spent)

    def part(self, key: str, rebuild: Callable[..., T], *more: Any) -> T:
        """What ``rebuild(part, *more)`` makes of a part of this one; it must ask for all of it."""
        own = self.sub(key)
        found = rebuild(own, *more)
        own.finish()
        return found

    def finish(self) -> None:
        """Refuse values and arrays that were not asked for."""
        for name in sorted(self._left | self._left_arrays)[:1]:
            raise refuse(f"its {self.where} holds {name[:60]!r}, which pnuauc does not write there")


class Storable(Protocol):
    """What a model file can hold."""

    def spec(self) -> dict[str, Any]: ...

    def arrays(self) -> dict[str, NDArray[Any]]: ...


class Stored:
    """A dataclass that a model file can hold; its ``rebuild(parts, ...)`` checks every number."""

    kind: ClassVar[str]

    def spec(self) -> dict[str, Any]:
        """What is no array, as JSON values."""
        return {"kind": self.kind}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Its fields that are arrays."""
        return {k: v for k, v in vars(self).items() if isinstance(v, np.ndarray) and k[0] != "_"}


def arrays_of(parts: Mapping[str, Storable]) -> dict[str, NDArray[Any]]:
    """The arrays of parts by name, as :meth:`Parts.sub` finds them."""
    return {f"{n}/{k}": values for n, part in parts.items() for k, values in part.arrays().items()}
