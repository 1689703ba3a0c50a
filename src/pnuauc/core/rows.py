"""Rows in blocks: stable keys, the one way to visit them, groups of identical rows."""

from __future__ import annotations

import functools
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pnuauc._utils.arrays import Floats, Indices, Mask
from pnuauc._utils.threads import one_blas_thread

Keys: TypeAlias = NDArray[np.uint64]

#: What a missing cell counts as.
MISSING_CELL = np.uint64(0x6D697373696E6721)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_ONE, _TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_WHOLE = np.uint64(0x77686F6C656E756D)
_FOLDS = 0x666F6C6473
#: Rows hashed at a time: what is worked on stays in a core's cache.
_BLOCK = 16_384
#: Bytes of texts hashed at a time.
_HASHED_BYTES = 1 << 22


def matrix_keys(X: Any) -> Keys:
    """Keys of the rows of a matrix, shape (n, d) -> (n,): those of a table with these columns."""
    X = np.asarray(X)
    return combined(list(X.T), len(X))


def combined(columns: Sequence[NDArray[Any]], n_rows: int) -> Keys:
    """Keys of rows, shape (n,), from columns of numbers; names do not count.

    A column of uint64 is taken for what its cells count as already.
    """
    out = np.zeros(n_rows, dtype=np.uint64)
    for start in range(0, n_rows, _BLOCK):
        h = out[start : start + _BLOCK]
        spare = np.empty_like(h)
        for column in columns:
            cells = column[start : start + _BLOCK]
            h ^= cells if column.dtype == np.uint64 else number_bits(cells)
            h *= _STEP
            np.right_shift(h, np.uint64(29), out=spare)
            h ^= spare
            h += _ONE  # a column of zeros counts too
    return _scrambled(out)


def shuffled(keys: Keys, seed: int) -> Keys:
    """Another 64-bit number for each key: a one-to-one map that the seed chooses."""
    return _scrambled(keys ^ _scrambled(np.array([(seed + 1) % 2**64], dtype=np.uint64)))


def fold_of(keys: Keys, n_folds: int) -> NDArray[np.intp]:
    """The fold of each row, shape (n,); rows with the same key share it."""
    return (shuffled(keys, _FOLDS) % np.uint64(n_folds)).astype(np.intp)


def _scrambled(h: Keys) -> Keys:
    """The finaliser of splitmix64, one to one."""
    h = (h ^ (h >> np.uint64(30))) * _ONE
    h = (h ^ (h >> np.uint64(27))) * _TWO
    return np.asarray(h ^ (h >> np.uint64(31)))


def number_bits(values: NDArray[Any]) -> Keys:
    """Numbers as 64 bits to hash: those of the float, or of an integer that no float holds."""
    floats = np.add(values, 0.0, dtype=np.float64)  # -0.0 becomes 0.0
    bits: Keys = floats.view(np.uint64)
    if values.dtype.kind == "f":
        gaps = np.isnan(floats)
        if gaps.any():
            bits[gaps] = MISSING_CELL
    elif values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        for i in np.flatnonzero(np.abs(floats) >= 2.0**53):
            bits[i] = whole_bits(int(values[i]))
    return bits


def whole_bits(number: int) -> np.uint64:
    """What a whole number counts as: that of its float, where that says the same."""
    exact = np.array([float(number)])
    if int(exact[0]) == number:
        return np.uint64(exact.view(np.uint64)[0])
    return np.uint64(_scrambled(np.array([number % 2**64], dtype=np.uint64) ^ _WHOLE)[0])


def byte_hashes(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> Keys:
    """Hashes of byte strings laid end to end, shape (n,): string i is data[ends[i]:ends[i + 1]].

    The sum over a string of a random-looking number for (place, byte), then scrambled with its
    length.
    """
    out = np.diff(ends).astype(np.uint64) * _STEP
    start = 0
    while start < len(out):  # long texts take eight and more times their bytes here
        enough = int(np.searchsorted(ends, ends[start] + _HASHED_BYTES))
        stop = min(max(enough, start + 1), start + _BLOCK, len(out))
        edges = ends[start : stop + 1]
        lengths = np.diff(edges)
        full = np.flatnonzero(lengths)
        if len(full):
            first = edges[:-1] - edges[0]
            place = np.arange(edges[-1] - edges[0]) - np.repeat(first, lengths)
            terms = _scrambled(place.astype(np.uint64) * _STEP + data[edges[0] : edges[-1]])
            out[start + full] += np.add.reduceat(terms, first[full])
        start = stop
    return _scrambled(out + _TWO)


#: Bytes of one block of features (of one scale): measured best of 1.5, 3 and 6 MiB.
BLOCK_BYTES = 6 * 2**20
#: Features of all rows are kept between visits while they fit this many bytes.
CACHE_BYTES = 512 * 2**20

_Result = TypeVar("_Result")
_Part = TypeVar("_Part", covariant=True)


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a visitor.

    n : how many
    read : gives the rows, shape (n, d); called when they are asked for, so that kept features
        cost no reading
    start : how many rows of the visitor come before these
    fold : the fold in which each row is held out, shape (n,)
    weight : frequency weights, shape (n,)
    store : keeps features between visits
    """

    n: int
    read: Callable[[], Any]
    start: int = 0
    fold: Indices | None = None
    weight: Floats | None = None
    store: FeatureStore | None = None

    def __len__(self) -> int:
        return self.n

    @functools.cached_property
    def X(self) -> Any:
        """The rows, shape (n, d)."""
        return self.read()

    @property
    def mass(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(self.n if self.weight is None else self.weight.sum())

    @property
    def place(self) -> slice:
        """Where these rows stand among all rows of the visitor."""
        return slice(self.start, self.start + len(self))

    def features(self, basis: Any) -> Any:
        """phi(x) of the rows, shape (n, number of features)."""
        if self.store is None:
            return basis.features(self.X)
        return self.store.get("features", basis, self, lambda: basis.features(self.X))

    def scales(self, basis: Any) -> Iterable[tuple[int, Any]]:
        """(j, features of scale j) for every scale; each holds good until the next is asked for."""
        if self.store is None or not self.store.has_room(basis, self):
            found: Iterable[tuple[int, Any]] = basis.scales(self.X)
        else:
            found = self.store.get(
                "scales", basis, self, lambda: list(basis.scales(self.X, reuse=False))
            )
        return found

    def take(self, wanted: Mask, start: int) -> Block:
        """Some of the rows, which are rows number ``start`` and following of another visitor."""
        if wanted.all():
            return replace(self, start=start)
        index = np.flatnonzero(wanted)
        return Block(
            len(index),
            lambda: self.X[index],
            start,
            None if self.fold is None else self.fold[wanted],
            None if self.weight is None else self.weight[wanted],
        )

    def by_fold(self) -> Iterator[tuple[int, Block]]:
        """(fold, its rows) for every fold that has rows here."""
        assert self.fold is not None
        for k in np.unique(self.fold):
            yield int(k), self.take(self.fold == k, self.start)


class FeatureStore:
    """Features of one block, kept between visits as long as a budget lasts that blocks share."""

    def __init__(self, budget: list[float]) -> None:
        self._budget, self._found = budget, dict[tuple[str, int], tuple[Any, Any]]()

    def has_room(self, basis: Any, block: Block) -> bool:
        """Whether features are here already, or would still fit."""
        known = any(of is basis for of, _ in self._found.values())
        return known or _feature_bytes(basis, len(block)) <= self._budget[0]

    def get(self, what: str, basis: Any, block: Block, make: Callable[[], Any]) -> Any:
        """What ``make`` gives, made once if it fits."""
        # the basis is kept as well: its id must not be given to another one
        found = self._found.get((what, id(basis)))
        if found is not None:
            return found[1]
        made, size = make(), _feature_bytes(basis, len(block))
        if size <= self._budget[0]:
            self._budget[0] -= size
            self._found[what, id(basis)] = basis, made
        return made


def _feature_bytes(basis: Any, n_rows: int) -> int:
    """Size of the features of some rows; those that are the rows themselves cost nothing more."""
    return 0 if basis.row_sized else n_rows * basis.n_features * basis.n_scales * 8


class Visited(Protocol[_Part]):
    """Parts of a table in a fixed order that no setting of speed changes: the two questions."""

    def map(self, function: Callable[[_Part], _Result]) -> Iterator[_Result]:
        """function(p1), function(p2), ... in the order of the parts."""

    def reduce(
        self,
        summarize: Callable[[_Part], _Result],
        merge: Callable[[_Result, _Result], _Result],
        zero: _Result,
    ) -> _Result:
        """merge(... merge(merge(zero, summarize(p1)), summarize(p2)) ...) over the parts.

        ``merge`` is associative, so that an engine may merge neighbours first.
        """
        return functools.reduce(merge, self.map(summarize), zero)


class Rows(Visited[Block], Protocol):
    """The rows of one role, block by block."""


def merged(
    merge: Callable[[_Result, _Result], _Result], a: tuple[_Result] | None, b: tuple[_Result] | None
) -> tuple[_Result] | None:
    """The merge of two summaries, each a tuple of one or None: nothing to merge."""
    if a is None or b is None:
        return a if b is None else b
    return (merge(a[0], b[0]),)


def merge_known(merge: Callable[[_Result, _Result], _Result]) -> Callable[[Any, Any], Any]:
    """``merge`` for summaries that may be None."""
    return functools.partial(merged, merge)


def add_by_fold(a: dict[int, Any], b: dict[int, Any]) -> dict[int, Any]:
    """Summaries of two blocks by fold as those of both, by ``+``."""
    merged = dict(a)
    for k, found in b.items():
        merged[k] = a[k] + found if k in a else found
    return merged


class RowsElsewhere(Protocol):
    """All unlabelled rows, of which those in memory are a draw."""

    def beside(self, rows: Indices, folds: Indices) -> RowsElsewhere:
        """The same, unlabelled rows in the fold of the labelled ones of their group."""

    def drawn_folds(self, n_folds: int) -> Indices:
        """The fold of each unlabelled row in memory, in their order."""

    def rows(self, n_folds: int, block_size: int) -> Rows:
        """A visitor of all unlabelled rows, with their folds."""

    def through(self, view: Callable[[Any], Any]) -> RowsElsewhere:
        """The same rows, each block X as view(X)."""


class ArrayRows(Rows):
    """Rows of an array or CSR matrix X, shape (n, d), or m of them.

    index, fold, weight : shape (m,); folds ascend, and no block crosses the border of two
    block_size : rows per block
    budget : a list of one number, the bytes left for features that are kept between visits
    seen : called with the number of rows of every visited block
    """

    def __init__(
        self,
        X: Any,
        index: Indices | None = None,
        fold: Indices | None = None,
        weight: Floats | None = None,
        *,
        block_size: int = 8192,
        budget: list[float] | None = None,
        n_threads: int = 1,
        seen: Callable[[int], None] = lambda n: None,
    ) -> None:
        self.X, self.index, self._fold, self.weight = X, index, fold, weight
        n = X.shape[0] if index is None else len(index)
        ends = [n] if fold is None else [*np.flatnonzero(np.diff(fold)) + 1, n]
        starts = [0, *ends[:-1]]
        self._places = [
            slice(start + block.start, start + block.stop)
            for start, end in zip(starts, ends, strict=True)
            for block in row_blocks(end - start, block_size)
        ]
        self._stores = [None if budget is None else FeatureStore(budget) for _ in self._places]
        self._n_threads, self._seen = n_threads, seen

    def _block(self, i: int) -> Block:
        place = self._places[i]
        where = place if self.index is None else self.index[place]
        return Block(
            place.stop - place.start,
            lambda: self.X[where],
            place.start,
            None if self._fold is None else self._fold[place],
            None if self.weight is None else self.weight[place],
            self._stores[i],
        )

    def map(self, function: Callable[[Block], _Result]) -> Iterator[_Result]:
        """function(block) for every block, in order; threads change the time only."""
        found = map_blocks(
            lambda i: function(self._block(i)), range(len(self._places)), self._n_threads
        )
        for place, result in zip(self._places, found, strict=True):
            self._seen(place.stop - place.start)
            yield result


class SomeRows(Rows):
    """Some of the rows of another visitor: those where ``wanted(block)`` is true."""

    def __init__(self, rows: Rows, wanted: Callable[[Block], Mask]) -> None:
        self.rows, self.wanted = rows, wanted
        sizes = list(rows.map(lambda block: (block.start, int(wanted(block).sum()))))
        ends = np.cumsum([n for _, n in sizes])
        self._starts = {
            start: int(end - n) for (start, n), end in zip(sizes, ends, strict=True) if n
        }

    def map(self, function: Callable[[Block], _Result]) -> Iterator[_Result]:
        """function(block) for every block that has wanted rows, in order."""
        wanted, starts = self.wanted, self._starts

        def apply(block: Block) -> tuple[_Result] | None:
            if block.start not in starts:
                return None
            return (function(block.take(wanted(block), starts[block.start])),)

        for found in self.rows.map(apply):
            if found is not None:
                yield found[0]


def array_rows(
    X: Any,
    index: Mapping[str, Indices | Sequence[Indices]],
    basis: Any,
    weight: Floats | None = None,
    *,
    block_size: int | None = None,
    n_threads: int = 1,
    seen: Callable[[int], None] = lambda n: None,
) -> dict[str, ArrayRows]:
    """A visitor of each role's rows; roles without rows are left out.

    index : dict of role letter -> row numbers, or a list of them, one array per fold
    basis : fitted basis; the size of its features settles blocks and what is kept
    weight : ndarray, shape (n,), optional
    """
    found: dict[str, tuple[Indices, Indices | None]] = {}
    for role, rows in index.items():
        if isinstance(rows, np.ndarray):
            found[role] = rows, None
        else:
            sizes = list(map(len, rows))
            found[role] = np.concatenate(rows), np.repeat(np.arange(len(rows)), sizes)
    n = sum(len(rows) for rows, _ in found.values())
    size = _feature_bytes(basis, n)
    budget = [float(CACHE_BYTES)] if size <= CACHE_BYTES else None
    return {
        role: ArrayRows(
            X,
            rows,
            fold,
            None if weight is None else np.asarray(weight[rows], dtype=np.float64),
            block_size=block_size or block_length(X, basis),
            budget=budget,
            n_threads=n_threads,
            seen=seen,
        )
        for role, (rows, fold) in found.items()
        if len(rows)
    }


def block_length(X: Any, basis: Any) -> int:
    """Rows per block, so that a block of features stays in a core's cache and suits BLAS."""
    if basis.row_sized and sparse.issparse(X):
        row_bytes = 2 * X.data.nbytes // max(X.shape[0], 1)
    else:
        row_bytes = np.dtype(X.dtype).itemsize * basis.n_features
    return int(np.clip(BLOCK_BYTES // max(row_bytes, 1), 256, 8192))


def count_rows(rows: Rows) -> int:
    """How many rows a visitor has."""
    return rows.reduce(len, lambda a, b: a + b, 0)


def row_blocks(n_rows: int, block_size: int) -> list[slice]:
    """Slices that cover 0..n_rows in steps of ``block_size``."""
    return [slice(i, min(i + block_size, n_rows)) for i in range(0, n_rows, block_size)]


_Item = TypeVar("_Item")


def map_blocks(
    function: Callable[[_Item], _Result], items: Iterable[_Item], n_threads: int = 1
) -> Iterator[_Result]:
    """function(item) for every item, in order, by threads; BLAS gets one thread meanwhile."""
    if n_threads <= 1:
        yield from map(function, items)
        return
    with one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        pending: deque[Any] = deque()
        for item in items:
            pending.append(pool.submit(function, item))
            # a short queue: results wait to be taken, and each may be large
            if len(pending) > 2 * n_threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def grouped_folds(
    codes: NDArray[np.int8], groups: Any, n_folds: int, rng: np.random.RandomState
) -> Indices:
    """Fold of each row: large groups first, each where it evens out the roles most.

    What counts is the share of each role that a fold holds: three positives weigh as much as a
    thousand unlabelled rows if the table has no more of them.
    """
    number = np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
    role = np.unique(codes, return_inverse=True)[1].ravel()
    n_roles = int(role.max()) + 1
    counts = np.zeros((int(number.max()) + 1, n_roles))
    np.add.at(counts, (number, role), 1.0)
    shares = counts / counts.sum(axis=0)
    single = counts.sum(axis=1) == 1
    of_group: Indices = np.zeros(len(counts), dtype=np.intp)
    load = np.zeros((n_folds, n_roles))
    several = rng.permutation(np.flatnonzero(~single))
    for group in several[np.argsort(-shares[several].max(axis=1), kind="stable")]:
        cost = (load * shares[group]).sum(axis=1)
        best = np.flatnonzero(cost <= cost.min() + 1e-12)
        chosen = best[np.argmin(load[best].sum(axis=1))]
        of_group[group] = chosen
        load[chosen] += shares[group]
    for r in range(n_roles):
        ones = rng.permutation(np.flatnonzero(single & (counts[:, r] == 1)))
        of_group[ones] = _filled(load[:, r] * counts[:, r].sum(), len(ones))
    return of_group[number]


def even_folds(
    codes: NDArray[np.int8], groups: Any, most: int, rng: np.random.RandomState
) -> Indices | None:
    """Fold of each row, groups kept together and every role in every fold; at most ``most`` folds.

    None where no two folds can be had: a role is copies of one row, or groups tie roles together.
    """
    roles = [codes == code for code in np.unique(codes)]
    different = min(len(np.unique(groups[role])) for role in roles)
    for n_folds in range(min(most, different), 1, -1):
        fold = grouped_folds(codes, groups, n_folds, rng)
        if all(len(np.unique(fold[role])) == n_folds for role in roles):
            return fold
    return None


def _filled(load: Floats, n: int) -> Indices:
    """Folds for n single rows, so that the fullest and the emptiest fold differ least."""
    out: Indices = np.empty(n, dtype=np.intp)
    level = np.round(load).astype(np.intp)
    # the emptiest folds are raised to a common level, then filled in turn
    order = np.argsort(level, kind="stable")
    done = 0
    for k in range(1, len(order)):
        gap = int(level[order[k]] - level[order[0]])
        need = min(gap * k, n - done)
        out[done : done + need] = np.resize(order[:k], need)
        level[order[:k]] += gap
        done += need
    out[done:] = np.resize(order, n - done)
    return out


def group_numbers(groups: Any) -> Indices:
    """Names of groups, shape (n,), as numbers from 0; a missing name is a group of its own."""
    values = np.asarray(groups)
    if values.ndim != 1:
        raise ValueError(f"groups must be one name for each row; got shape {values.shape}.")
    missing = np.array([v is None or v != v for v in values.tolist()], dtype=bool)
    names = np.where(missing, "", values.astype(str))
    numbers = np.unique(names, return_inverse=True)[1].astype(np.intp)
    numbers[missing] = numbers.max(initial=0) + 1 + np.arange(int(missing.sum()))
    return numbers


def row_groups(X: Any) -> Indices:
    """Number of each row's content, shape (n,): identical rows have the same number.

    X : ndarray or CSR matrix, shape (n, d)
    """
    if not sparse.issparse(X):
        return np.unique(matrix_keys(X), return_inverse=True)[1].astype(np.intp).ravel()
    known: dict[bytes, int] = {}
    return np.array([known.setdefault(k, len(known)) for k in sparse_contents(X)], dtype=np.intp)


def sparse_keys(X: Any) -> Keys:
    """Keys of the rows of a CSR matrix, shape (n,), from what is not zero in them."""
    digests = (hashlib.blake2b(row, digest_size=8).digest() for row in sparse_contents(X))
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def sparse_contents(X: Any) -> list[bytes]:
    """What each row of a CSR matrix holds, as bytes."""
    rows = sparse.csr_matrix(X, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    columns = rows.indices.astype(np.int64)
    spans = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [columns[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in spans]
