"""Keys of rows, the draw of rows that a fit rests on, and visits of all unlabelled rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc.core.rows import (
    MISSING_CELL,
    ArrayRows,
    Block,
    Keys,
    byte_hashes,
    combined,
    fold_of,
    number_bits,
    shuffled,
    whole_bits,
)
from pnuauc.io.cells import is_text, is_vector, matches, pa, pc, tidy, to_numpy
from pnuauc.io.columns import cells_of, texts
from pnuauc.io.encode import Cells, Encoding, TableEncoder
from pnuauc.io.sources import Batch, Source, SourceRows
from pnuauc.labels import UNLABELED

# Rows that occur very often, found in one visit and counted in a second.


#: A row occurs often if it is more than one in this many.
OFTEN = 10_000
#: Counters: no row that is more than one in this many can be missed.
_COUNTERS = 2 * OFTEN


@dataclass(frozen=True, eq=False)
class KeyCounts:
    """Counts of the commonest keys, each too low by at most ``lost`` (Misra and Gries).

    keys : ndarray of uint64, ascending
    counts : ndarray of int, as many
    lost : int, at most the number of rows / 20,000; 0 while the keys are fewer
    """

    keys: Keys
    counts: NDArray[np.int64]
    lost: int = 0

    @classmethod
    def of(cls, keys: Keys) -> KeyCounts:
        """Counts of some rows."""
        return cls(*np.unique(keys, return_counts=True))._cut()

    def __add__(self, other: KeyCounts) -> KeyCounts:
        both = np.concatenate([self.keys, other.keys])
        keys, place = np.unique(both, return_inverse=True)
        counts = np.zeros(len(keys), dtype=np.int64)
        np.add.at(counts, place, np.concatenate([self.counts, other.counts]))
        return KeyCounts(keys, counts, self.lost + other.lost)._cut()

    def _cut(self) -> KeyCounts:
        if len(self.keys) <= _COUNTERS:
            return self
        step = int(np.partition(self.counts, -_COUNTERS - 1)[-_COUNTERS - 1])
        kept = self.counts > step
        return KeyCounts(self.keys[kept], self.counts[kept] - step, self.lost + step)

    def candidates(self, n_rows: int) -> Keys:
        """Keys that may belong to one row in 10,000, among them all that do; ascending."""
        return self.keys[self.counts + self.lost >= _least(n_rows)]

    def drawn(self, n_rows: int, limit: int) -> tuple[Keys, NDArray[np.intp]]:
        """(place in the draw, which key) of all copies whose place is not above ``limit``.

        Copy i of a key that occurs often has a place of its own, shuffled(key + i); copies of the
        others share the place of their key.
        """
        places, which = [], []
        for j, (key, n) in enumerate(zip(self.keys, self.counts, strict=True)):
            place = np.full(int(n), key)
            if n >= _least(n_rows):
                place = shuffled(place + np.arange(int(n), dtype=np.uint64), 1)
            place = place[place <= np.uint64(limit)]
            places.append(place)
            which.append(np.full(len(place), j, dtype=np.intp))
        return np.concatenate(places), np.concatenate(which)


def _least(n_rows: int) -> float:
    return max(n_rows / OFTEN, 2.0)


# Keys of the rows of arrow tables: by what cells say, whatever they are stored as.


#: Written as every program writes numbers; a code such as 007 is text.
_NUMBER = r"^[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?$"
_LONG = r"^[-+]?[1-9][0-9]{15,}$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]?"
_WRITTEN = (
    (r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]", r"\1 "),
    (r"(\.[0-9]*?)0+$", r"\1"),
    (r"\.$", ""),
    (r" 00:00(:00)?$", ""),
)


def table_keys(table: Any, columns: Sequence[str] | None = None) -> Keys:
    """Keys of the rows of a table or record batch, shape (n,), from the named columns in order."""
    names = table.schema.names if columns is None else columns
    cells = (table.column(name) for name in names)
    whole = (c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in cells)
    return combined([part for column in whole for part in _cells(column)], table.num_rows)


def cells_keys(encoding: Encoding, cells: Cells) -> Keys:
    """Keys of rows, shape (n,), by what a model reads in them, however that is written.

    Numbers count to 7 digits, as another format may have rounded the others.
    """
    mantissa, exponent = np.frexp(cells.values)
    read = np.ldexp(np.round(mantissa * 2.0**24), exponent - 24)
    others = {}
    for column in encoding.columns:
        if column.kind not in {"number", "date", "boolean"}:
            own = cells.batch.column(column.name)
            others[column.name] = texts(own) if column.kind == "category" else own
    keys = [table_keys(pa.table(others))] if others else []
    return combined([*np.ascontiguousarray(read.T), *keys], len(read))


def _cells(column: Any) -> Iterator[Keys]:
    """What the cells of one column count as; a column of lists gives one for each place."""
    types, kind = pa.types, column.type
    if types.is_dictionary(kind):
        words = next(_cells(column.dictionary))
        yield _placed(words if words.dtype == np.uint64 else number_bits(words), column.indices)
    elif types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        yield from _lists(column)
    elif types.is_string(kind) or types.is_large_string(kind):
        found = column.dictionary_encode()
        yield _placed(_texts(found.dictionary), found.indices)
    elif types.is_null(kind):
        yield np.full(len(column), MISSING_CELL)
    elif types.is_floating(kind) or types.is_integer(kind):
        yield _numbers(column)
    elif types.is_decimal(kind):
        yield _numbers(column.cast(pa.float64()))
    elif types.is_duration(kind) or types.is_time(kind):
        yield _numbers(column.cast(pa.int32() if types.is_time32(kind) else pa.int64()))
    elif types.is_timestamp(kind):
        yield from _cells(column.cast(pa.timestamp(kind.unit)).cast(pa.large_string()))
    elif types.is_boolean(kind) or types.is_date(kind):
        yield from _cells(column.cast(pa.large_string()))
    else:  # nothing that a model reads
        yield np.zeros(len(column), dtype=np.uint64)


def _lists(column: Any) -> Iterator[Keys]:
    """One for each place of vectors of one length; a missing vector is a row of missing cells."""
    there = column.is_valid()
    present = column.filter(there)
    flat, n = present.flatten(), len(present)
    if not n:
        yield np.full(len(column), MISSING_CELL)
    elif not is_vector(column.type) or len(flat) % n:  # nothing that a model reads
        yield np.zeros(len(column), dtype=np.uint64)
    else:
        for cells in np.ascontiguousarray(next(_cells(flat)).reshape(n, -1).T):
            if n < len(column):
                found = np.full(len(column), MISSING_CELL)
                found[to_numpy(there)] = cells if cells.dtype == np.uint64 else number_bits(cells)
                cells = found
            yield cells


def _numbers(column: Any) -> Any:
    if not column.null_count and str(column.type) != "uint64":
        return column.to_numpy(zero_copy_only=False)
    bits = number_bits(column.fill_null(0).to_numpy(zero_copy_only=False))
    return np.where(column.is_null().to_numpy(zero_copy_only=False), MISSING_CELL, bits)


def _placed(words: Keys, places: Any) -> Keys:
    """What the words count as, by their places; a missing place is a missing cell."""
    whole = places.cast("int64").fill_null(len(words)).to_numpy(zero_copy_only=False)
    return np.asarray(np.append(words, MISSING_CELL)[whole])


def _texts(words: Any) -> Keys:
    """What distinct texts count as: numbers as numbers, dates however written, else their bytes."""
    words = tidy(words.cast(pa.large_string()))
    out = _bytes(words)
    dated = matches(_DATE, words)
    if dated.any():
        found = words.filter(pa.array(dated))
        for pattern, written in _WRITTEN:
            found = pc.replace_substring_regex(found, pattern=pattern, replacement=written)
        out[dated] = _bytes(found)
    truth = matches("^(?:true|false)$", pc.utf8_lower(words))
    if truth.any():
        out[truth] = _bytes(pc.utf8_lower(words.filter(pa.array(truth))))
    numeric = matches(_NUMBER, words)
    if numeric.any():
        found = pc.utf8_ltrim(words.filter(pa.array(numeric)), characters="+")
        bits = number_bits(to_numpy(found.cast(pa.float64())))
        for i in np.flatnonzero(matches(_LONG, found)):  # these keep all their digits
            bits[i] = whole_bits(int(found[int(i)].as_py()))
        out[numeric] = bits
    out[to_numpy(pc.is_null(words))] = MISSING_CELL
    return out


def _bytes(words: Any) -> Keys:
    words = words.fill_null("")
    _, ends, data = words.buffers()
    offsets = np.frombuffer(ends, dtype=np.int64)[words.offset : words.offset + len(words) + 1]
    raw = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
    return byte_hashes(raw, offsets)


# The rows a fit rests on: all labelled ones, and the unlabelled ones with the smallest keys.


#: How many more rows than wanted pass the first sieve, where keys are as even as they should be.
_SLACK = 1.2
_WHOLE = 2**64 - 1
_MANY_CHUNKS = 64
#: The code of a row that stands for all of its copies while rows are gathered.
_EXAMPLE = -2


@dataclass(frozen=True)
class RowKeys:
    """Keys of a batch's rows: of the columns that name them, or of all that is known of them.

    columns : ids, or all features where there are none; sorted, as frames order them differently
    seed : chooses which keys are small and which fold a key falls in
    named : whether the columns are ids: rows of one id differ, and all of them belong together
    """

    columns: tuple[str, ...]
    seed: int = 0
    named: bool = False

    def order(self, table: Any) -> Keys:
        """Where each row stands in the order of the draw, shape (n,)."""
        return shuffled(table_keys(table, self.columns), self.seed)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Labelled rows and a draw of the unlabelled ones, in the order of their keys.

    table, codes : n rows and their roles, as in :class:`pnuauc.labels.Roles`
    key, order, content : key, place in the draw (the key, but for copies of a row that occurs very
        often), and a hash of the whole row that settles ties between equal places; shape (n,)
    part, row : number of the file, and of the row in it, from 0; shape (n,)
    spans : (smallest, largest) by name of columns that hold whole numbers in every row looked at
    often : of unlabelled rows: while these are looked for, of the commonest; then of these
    """

    table: Any
    codes: NDArray[np.int8]
    key: Keys
    order: Keys
    content: Keys
    part: NDArray[np.int64]
    row: NDArray[np.int64]
    spans: dict[str, tuple[int, int]]
    often: KeyCounts

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, index: NDArray[np.intp]) -> Drawn:
        """Some of the rows."""
        return replace(
            self,
            table=self.table.take(pa.array(index)),
            **{name: getattr(self, name)[index] for name in _ARRAYS},
        )

    def smallest(self, at_most: int) -> Drawn:
        """All labelled rows and the first unlabelled ones in the order, up to a limit."""
        ranked = np.lexsort((self.content, self.order))
        unlabeled = self.codes[ranked] == UNLABELED
        return self.take(ranked[~unlabeled | (np.cumsum(unlabeled) <= at_most)])

    def with_copies(self, n_unlabeled: int, limit: int) -> Drawn:
        """Each example replaced by the copies of it whose place is not above ``limit``."""
        examples = np.flatnonzero(self.codes == _EXAMPLE)
        if not len(examples):
            return self
        examples = examples[np.argsort(self.key[examples])]  # as they are counted
        place, which = self.often.drawn(n_unlabeled, limit)
        copies = examples[which]
        rest = np.flatnonzero(self.codes != _EXAMPLE)
        drawn = self.take(np.concatenate([rest, copies]))
        codes, order = drawn.codes.copy(), drawn.order.copy()
        codes[len(rest) :], order[len(rest) :] = UNLABELED, place
        return replace(drawn, codes=codes, order=order)


_ARRAYS = ("codes", "key", "order", "content", "part", "row")


def draw_rows(
    source: Source,
    keys: RowKeys,
    codes: Callable[[Any], NDArray[np.int8]],
    at_most: int,
    n_unlabeled: int,
) -> Drawn:
    """All labelled rows and ``at_most`` unlabelled ones, in the order of their keys.

    source : of which all columns are kept
    codes : roles of a table's rows, shape (n,); shipped to where the batches are
    n_unlabeled : of the source, as counted before; no key far above the wanted share of them is
        kept on the way, so that little is moved and merged
    """
    at_most = min(at_most, n_unlabeled)
    share = min(1.0, _SLACK * (at_most + 100) / max(n_unlabeled, 1))
    apart: Keys = np.empty(0, dtype=np.uint64)
    searches = at_most < n_unlabeled and not keys.named
    while True:
        limit = min(int(share * _WHOLE), _WHOLE)
        look = _Look(keys, codes, limit, apart, searches)
        found: Any = source.reduce(look, functools.partial(_joined, at_most=at_most), None)
        assert found is not None  # a source has rows: they were counted
        if searches:
            searches, apart = False, found.often.candidates(n_unlabeled)
            if len(apart):
                continue
        drawn: Drawn = found.with_copies(n_unlabeled, limit).smallest(at_most)
        if share >= 1.0 or int((drawn.codes == UNLABELED).sum()) >= at_most:
            return drawn
        share = min(1.0, 4 * share)  # rows of one key: fewer of them than expected are low


@dataclass(frozen=True, eq=False)
class _Look:
    """A batch -> its labelled rows, its unlabelled ones of low key, and one of each kept apart.

    searches : whether the commonest keys are counted, to be kept apart in the next visit
    """

    keys: RowKeys
    codes: Callable[[Any], NDArray[np.int8]]
    limit: int
    apart: Keys
    searches: bool

    def __call__(self, batch: Batch) -> Drawn:
        codes, order = np.array(self.codes(batch.table)), self.keys.order(batch.table)
        unlabeled = codes == UNLABELED
        often = unlabeled & np.isin(order, self.apart)
        counted = order[unlabeled if self.searches else often]
        examples = np.flatnonzero(often)[np.unique(order[often], return_index=True)[1]]
        codes[examples] = _EXAMPLE
        low = unlabeled & ~often & (order <= np.uint64(self.limit))
        kept = np.flatnonzero(low | ~unlabeled | (codes == _EXAMPLE))
        table, whole = batch.take(kept), batch.table
        return Drawn(
            table,
            codes[kept],
            order[kept],
            order[kept],
            table_keys(table, sorted(table.column_names)),
            np.full(len(kept), batch.part, dtype=np.int64),
            batch.first_row + kept.astype(np.int64),
            {name: span for name in table.column_names if (span := _span(whole.column(name)))},
            KeyCounts.of(counted),
        )


def _span(values: Any) -> tuple[int, int] | None:
    """(smallest, largest) of whole numbers, also where they are text; None of anything else."""
    if is_text(values.type) and len(values) and str(values[0])[-1:].isdigit():
        try:
            values = values.cast(pa.int64())
        except pa.ArrowInvalid:
            return None
    if not pa.types.is_integer(values.type) or values.null_count or not len(values):
        return None
    found = pc.min_max(values).as_py()
    return found["min"], found["max"]


def _joined(a: Drawn | None, b: Drawn | None, at_most: int) -> Drawn | None:
    if a is None or b is None:
        return a if b is None else b
    arrays = {name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in _ARRAYS}
    table = pa.concat_tables([a.table, b.table]).unify_dictionaries()
    if table.num_columns and table.column(0).num_chunks > _MANY_CHUNKS:
        table = table.combine_chunks()
    spans = {
        name: (min(a.spans[name][0], b.spans[name][0]), max(a.spans[name][1], b.spans[name][1]))
        for name in a.spans.keys() & b.spans.keys()
    }
    both = _without_twins(Drawn(table, **arrays, spans=spans, often=a.often + b.often))
    n_unlabeled = int((both.codes == UNLABELED).sum())
    return both.smallest(at_most) if n_unlabeled > 2 * at_most + 1000 else both


def _without_twins(drawn: Drawn) -> Drawn:
    """One example of each key."""
    examples = np.flatnonzero(drawn.codes == _EXAMPLE)
    first = examples[np.unique(drawn.key[examples], return_index=True)[1]]
    if len(first) == len(examples):
        return drawn
    return drawn.take(np.union1d(np.flatnonzero(drawn.codes != _EXAMPLE), first))


#: What is made of a batch: (matrix of shape (n, d), weights of shape (n,) or None).
ReadRows = Callable[[Batch], tuple[Any, NDArray[np.float64] | None]]


@dataclass(frozen=True, eq=False)
class Encoded:
    """A batch of a table -> its rows as the encoder encodes them; errors name the file."""

    encoder: TableEncoder

    def __call__(self, batch: Batch) -> tuple[Any, None]:
        with cells_of(batch.name):
            return self.encoder.encode(batch.table, batch.first_row), None


@dataclass(frozen=True, eq=False)
class AllUnlabeled:
    """The unlabelled rows of a source; those in memory are a draw (:func:`draw_rows`).

    source : with the columns that are needed and no others
    codes : roles of a table's rows, shape (n,)
    drawn : ``Drawn.key`` of the unlabelled rows in memory
    views : what X goes through, in turn
    together : ``Drawn.key`` of all rows in memory, where rows of one key belong together
    labeled : keys of labelled rows, and the fold of each
    """

    source: Source
    read: ReadRows
    codes: Callable[[Any], NDArray[np.int8]]
    keys: RowKeys
    drawn: Keys
    views: tuple[Callable[[Any], Any], ...] = ()
    together: Keys | None = None
    labeled: tuple[Keys, NDArray[np.intp]] | None = None

    def beside(self, rows: NDArray[np.intp], folds: NDArray[np.intp]) -> AllUnlabeled:
        """The same with unlabelled rows in the fold of the labelled rows of their group.

        ``rows`` are the numbers of labelled rows in memory, ``folds`` where each is.
        """
        if self.together is None:
            return self
        return replace(self, labeled=(self.together[rows], folds))

    def drawn_folds(self, n_folds: int) -> NDArray[np.intp]:
        """The fold of each unlabelled row in memory."""
        return _with_their_group(self.drawn, n_folds, self.labeled)

    def through(self, view: Callable[[Any], Any]) -> AllUnlabeled:
        """The same rows, each block X as view(X)."""
        return replace(self, views=(*self.views, view))

    def rows(self, n_folds: int, block_size: int) -> SourceRows:
        """A visitor of all unlabelled rows, with their folds."""
        # not self: what is shipped to where the batches are need not hold the draw
        folds = functools.partial(_with_their_group, n_folds=n_folds, labeled=self.labeled)
        given = self.read, self.codes, self.keys, self.views, folds, block_size
        return SourceRows(self.source, functools.partial(_blocks, *given))


def _with_their_group(
    keys: Keys, n_folds: int, labeled: tuple[Keys, NDArray[np.intp]] | None
) -> NDArray[np.intp]:
    """The fold of each row: that of a labelled row of the same key, else what the key says."""
    folds = fold_of(keys, n_folds)
    if labeled is None:
        return folds
    known, first = np.unique(labeled[0], return_index=True)
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[place] == keys, labeled[1][first[place]], folds)


def _blocks(
    read: ReadRows,
    codes: Callable[[Any], NDArray[np.int8]],
    keys: RowKeys,
    views: Iterable[Callable[[Any], Any]],
    folds_of: Callable[[Keys], NDArray[np.intp]],
    block_size: int,
    batch: Batch,
) -> Iterator[Block]:
    """A batch -> blocks of its unlabelled rows, each of one fold."""
    rows = np.flatnonzero(codes(batch.table) == UNLABELED)
    if not len(rows):
        return
    X, weight = read(batch)
    for view in views:
        X = view(X)
    folds = folds_of(keys.order(batch.table)[rows])
    order = np.argsort(folds, kind="stable")
    index = rows[order]
    weights = None if weight is None else weight[index]
    yield from ArrayRows(X, index, folds[order], weights, block_size=block_size).map(
        lambda block: block
    )
