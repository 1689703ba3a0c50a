"""What Dask and Spark share: tables in parts, one task each; matrices, labels and counts."""

from __future__ import annotations

import functools
import itertools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.arrays import LARGEST
from pnuauc._utils.label_values import RoleCounts
from pnuauc._utils.threads import one_blas_thread
from pnuauc.core.design import MATRIX_FREE_ABOVE
from pnuauc.core.losses import get_loss
from pnuauc.core.ranks import ScoreCounts, check_scores
from pnuauc.core.rows import merge_known, row_blocks
from pnuauc.evaluation.compare import LabeledPairs, PairCounts
from pnuauc.exceptions import InputError
from pnuauc.io.cells import pa
from pnuauc.io.draw import AllUnlabeled, RowKeys, draw_rows
from pnuauc.io.labels import LabelReader, read_counted
from pnuauc.io.readers import BATCH_ROWS
from pnuauc.io.sources import Batch, FileSource, Source
from pnuauc.labels import UNLABELED, Roles, read_roles

if TYPE_CHECKING:
    from typing_extensions import Self


# A table cut into parts, each read and summarized by one task of an engine.


_Result = TypeVar("_Result")

#: Rows of a part: Parquet files of more are cut between row groups.
PART_ROWS = 1_000_000


@dataclass(frozen=True, eq=False)
class Job:
    """What one visit of all parts does; shipped to the tasks as one argument."""

    read: ColumnReader | FileParts
    summarize: Callable[[Batch], Any]
    merge: Callable[[Any, Any], Any] = operator.add

    def summary(self, part: Any, number: int) -> tuple[Any] | None:
        """The merged summaries of a part's batches as a tuple of one; None if it has none."""
        with one_blas_thread():
            return self.joined((self.summarize(batch),) for batch in self.read(part, number))

    def results(self, part: Any, number: int) -> list[Any]:
        """``summarize`` of each batch of a part."""
        with one_blas_thread():
            return [self.summarize(batch) for batch in self.read(part, number)]

    def joined(self, summaries: Iterable[tuple[Any] | None]) -> tuple[Any] | None:
        """Summaries of neighbours merged, in their order."""
        found: tuple[Any] | None = functools.reduce(merge_known(self.merge), summaries, None)
        return found


@dataclass(frozen=True, eq=False)
class EngineSource(ABC):
    """A table in parts: the columns asked for, and the two methods by which rows are visited.

    Attributes
    ----------
    cut : callable(names of columns) -> the parts, as the engine hands them to its tasks
    read : what turns a part into batches, in the task that has it
    """

    cut: Callable[[Sequence[str]], Any]
    read: ColumnReader | FileParts

    @abstractmethod
    def _summary(self, job: Job) -> tuple[Any] | None:
        """``job.summary`` of all parts, merged in a fixed order."""

    @abstractmethod
    def _results(self, job: Job) -> Iterator[list[Any]]:
        """``job.results`` of each part, in order."""

    @property
    def schema(self) -> Any:
        return self.read.schema

    @property
    def part_names(self) -> Sequence[str]:
        """Names of the files; empty where parts have none."""
        return getattr(self.read, "part_names", ())

    @property
    def untyped(self) -> bool:
        """Whether cells are text whose types are still to be found."""
        return getattr(self.read, "untyped", False)

    def select(self, columns: Sequence[str]) -> Self:
        """The same with these columns only: others are not read."""
        return replace(self, read=self.read.select(columns))

    def reduce(
        self,
        summarize: Callable[[Batch], _Result],
        merge: Callable[[_Result, _Result], _Result],
        zero: _Result,
    ) -> _Result:
        """Merge the summaries of all batches: of a part where it is, then those of neighbours."""
        found = self._summary(Job(self.read, summarize, merge))
        return zero if found is None else merge(zero, found[0])

    def map(self, function: Callable[[Batch], _Result]) -> Iterator[_Result]:
        """function(batch) for every batch, in order."""
        for found in self._results(Job(self.read, function)):
            yield from found


@dataclass(frozen=True, eq=False)
class ColumnReader(ABC):
    """What readers of collections share: columns by the names below."""

    columns: Sequence[str]

    @property
    def schema(self) -> Any:
        return pa.schema([(name, pa.null()) for name in self.columns])  # only names are asked for

    def select(self, columns: Sequence[str]) -> Self:
        return replace(self, columns=tuple(columns))

    @abstractmethod
    def __call__(self, part: Any, number: int) -> Iterable[Batch]: ...


@dataclass(frozen=True, eq=False)
class FileParts:
    """The files of a table, one a part: what an engine needs to read them where it works.

    Files must be found under the same name there, as on a shared disk. Large Parquet files are
    several parts, each some of the row groups.

    Attributes
    ----------
    source : FileSource, whose files are the parts
    part_names : files of the table by their number
    file_of : number of the file of each part
    """

    source: FileSource
    part_names: list[str]
    file_of: tuple[int, ...]

    @classmethod
    def of(cls, source: FileSource) -> FileParts:
        """With names that hold in every folder, and nothing that stays with the driver."""
        files = [replace(file, path=file.path.absolute()) for file in source.files]
        pieces = [file.pieces(PART_ROWS) for file in files]
        return cls(
            replace(source, files=[p for own in pieces for p in own], seen=None, n_threads=1),
            [str(file.path) for file in files],
            tuple(i for i, own in enumerate(pieces) for _ in own),
        )

    @property
    def schema(self) -> Any:
        return self.source.schema

    @property
    def columns(self) -> Sequence[str]:
        return list(self.source.schema.names)

    @property
    def numbers(self) -> list[int]:
        """Parts, as they are passed to tasks."""
        return list(range(len(self.file_of)))

    @property
    def untyped(self) -> bool:
        return self.source.untyped

    def select(self, columns: Sequence[str]) -> FileParts:
        return replace(self, source=self.source.select(columns))

    def __call__(self, part: Any, number: int) -> Iterator[Batch]:
        """Batches of a part by its number; Spark passes tables of such numbers."""
        numbers = (
            [part]
            if isinstance(part, int)
            else itertools.chain.from_iterable(table.column(0).to_pylist() for table in part)
        )
        for i in numbers:
            file = self.source.files[i]
            if not file.path.exists():
                raise InputError(
                    f"'{file.path}' was not found by the machine that was to read it: it was "
                    "removed, or lies on a disk that not all machines share. Nothing was fitted or "
                    "written."
                )
            for batch in replace(self.source, files=[file]).batches():
                yield replace(batch, part=self.file_of[i])


def slices(table: Any, name: str, part: int) -> Iterator[Batch]:
    """A table in memory as batches of neighbouring rows."""
    for rows in row_blocks(table.num_rows, BATCH_ROWS):
        yield Batch(table.slice(rows.start, BATCH_ROWS), name, rows.start, part)


# Tables of one feature matrix: rows x, a label, perhaps a weight and an id, wherever they live.


FEATURES, LABEL, WEIGHT, ID = "features", "label", "weight", "id"
#: Unlabelled rows that come to the driver: centres, prior and threshold rest on them.
DRAWN_ROWS = 20_000


def matrix_table(columns: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Numpy columns -> arrow table; the matrix becomes a column of lists and is not copied."""
    made = []
    for name in names:
        values = columns[name]
        if name == FEATURES:
            flat = pa.array(np.ascontiguousarray(values).ravel())
            values = pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
        made.append(values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True))
    lengths = {name: len(column) for name, column in zip(names, made, strict=True)}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise InputError(
            f"Columns that belong together have different numbers of rows ({found}); cut them into "
            "the same partitions."
        )
    return pa.table(made, names=list(names))


def check_cells(X: NDArray[Any], where: str) -> NDArray[Any]:
    """X itself, if it can be computed with; the error names where it comes from."""
    if X.size and not max(X.max(), -X.min()) <= LARGEST[X.dtype.name]:  # not so for NaN either
        raise InputError(
            f"{where} holds NaN, infinity or numbers too large to compute with; fill these cells "
            "in, drop the rows or rescale the columns."
        )
    return X


def as_matrix(column: Any, where: str = "X") -> NDArray[Any]:
    """A column of lists -> shape (n, d), without a copy; missing cells are refused."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    values = column.flatten()
    if column.null_count or values.null_count:
        raise InputError(f"{where} holds missing values; fill them in or drop these rows.")
    n = len(column)
    if n and len(values) % n:
        raise InputError(f"The rows of {where} differ in their number of features.")
    return np.asarray(values.to_numpy(zero_copy_only=False).reshape(n, -1 if n else 0))


def read_matrix(batch: Batch) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """(X, weights or None) of all rows of a batch."""
    table = batch.table
    X = as_matrix(table.column(FEATURES), batch.name)
    if WEIGHT not in table.schema.names:
        return X, None
    weight = table.column(WEIGHT).to_numpy(zero_copy_only=False).astype(np.float64)
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise InputError(f"Weights in {batch.name} must be finite and not negative.")
    return X, weight


def read_labels(source: Source, **label_codes: Any) -> tuple[LabelReader, RoleCounts]:
    """How each label is read, as :func:`pnuauc.labels.read_roles` reads all of them together."""

    def read(cells: Any) -> Roles:
        return read_roles(np.array(cells.column(LABEL).to_pylist(), dtype=object), **label_codes)

    return read_counted(source, LABEL, read)


def fit_on_source(estimator: Any, source: Source, label_codes: Mapping[str, Any]) -> Any:
    """Fit an :class:`AUCClassifierCV` to a source with the columns of this module.

    Rows of one id share a fold: that of its labelled rows, else the one that its hash says.
    """
    if get_loss(estimator.loss).name != "squared":
        raise ValueError(
            f"loss={estimator.loss!r} visits the rows many times and keeps a score of each; tables "
            "in partitions are fitted with the squared loss, which needs their moments only."
        )
    codes, counts = read_labels(source, **label_codes)
    names = source.schema.names
    # which hashes are small, and so which rows are centres, follows the seed
    seed = estimator.random_state if isinstance(estimator.random_state, (int, np.integer)) else 0
    named = ID in names
    keys = RowKeys((ID if named else FEATURES,), int(seed), named)
    drawn = draw_rows(source, keys, codes, DRAWN_ROWS, counts.n_unlabeled)
    X, weight = read_matrix(Batch(drawn.table, "X"))
    if estimator.basis == "identity" and X.shape[1] > MATRIX_FREE_ABOVE:
        raise ValueError(
            f"The linear model of {X.shape[1]} columns keeps all rows; tables in partitions are "
            f"fitted with at most {MATRIX_FREE_ABOVE} columns, or with another basis."
        )
    known = Roles(drawn.codes, counts.positive_label, counts.negative_label, counts.announcement)
    unlabeled = drawn.codes == UNLABELED
    elsewhere = AllUnlabeled(
        source, read_matrix, codes, keys, drawn.key[unlabeled], (), drawn.key if named else None
    )
    # labelled rows of one id belong together
    groups = (
        drawn.key if named and len(np.unique(drawn.key[~unlabeled])) < sum(~unlabeled) else None
    )
    return estimator._fit_with(X, known, weight, elsewhere if unlabeled.any() else None, groups)


# AUC of score columns wherever they live: labelled scores are gathered, the others counted.


SCORE, SECOND_SCORE = "score", "second_score"


def count_scores(source: Source, **label_codes: Any) -> ScoreCounts:
    """Counts of a source with the columns label and score, merged over all its batches."""
    labeled, counted = count_columns(source, (SCORE,), **label_codes)
    return labeled.score_counts(counted)[0]


def count_columns(
    source: Source, names: Sequence[str] = (SCORE, SECOND_SCORE), **label_codes: Any
) -> tuple[LabeledPairs, PairCounts]:
    """Labelled rows, and counts of the others, of a source with a label and one or two scores."""
    codes, _ = read_labels(source, **label_codes)
    columns = ScoreColumns(codes, functools.partial(_scores, names=names))
    found = source.reduce(columns.labeled, _side_by_side, np.empty((1 + len(names), 0)))
    ((_, labeled, counted),) = count_pairs(source, columns, found)
    return labeled, counted


@dataclass(frozen=True)
class ScoreColumns:
    """Columns of scores, as they are read where they are.

    read : a batch -> the scores of its rows, by column
    """

    codes: LabelReader
    read: Callable[[Batch], Sequence[NDArray[np.float64]]]

    def labeled(self, batch: Batch) -> NDArray[np.float64]:
        """Roles and scores of the labelled rows, shape (1 + columns, n)."""
        codes = self.codes(batch.table)
        return np.stack([codes, *self.read(batch)])[:, codes != UNLABELED]

    def count(
        self, pairs: Mapping[tuple[int, int], LabeledPairs], batch: Batch
    ) -> list[PairCounts]:
        """How the unlabelled rows lie among the labelled ones, for each pair of columns."""
        rows = self.codes(batch.table) == UNLABELED
        scores = [own[rows] for own in self.read(batch)]
        return [pair.count(scores[i], scores[j]) for (i, j), pair in pairs.items()]


def count_pairs(
    source: Source, columns: ScoreColumns, labeled: NDArray[np.float64]
) -> list[tuple[tuple[int, int], LabeledPairs, PairCounts]]:
    """How all unlabelled rows lie among the labelled ones, for every pair of columns.

    ``labeled`` is what ``columns.labeled`` gives. One column makes a pair with itself.
    """
    roles, values = Roles(labeled[0].astype(np.int8)), labeled[1:]
    places = list(itertools.combinations(range(len(values)), 2)) or [(0, 0)]
    pairs = {(i, j): LabeledPairs(roles, (values[i], values[j])) for i, j in places}
    nothing = [pair.count(np.empty(0), np.empty(0)) for pair in pairs.values()]
    found = source.reduce(functools.partial(columns.count, pairs), _add_counts, nothing)
    return list(zip(places, pairs.values(), found, strict=True))


def _add_counts(a: list[PairCounts], b: list[PairCounts]) -> list[PairCounts]:
    return [x + y for x, y in zip(a, b, strict=True)]


def _side_by_side(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([a, b], axis=1)


def _scores(batch: Batch, names: Sequence[str]) -> list[NDArray[np.float64]]:
    found = []
    for name in names:
        column = batch.table.column(name)
        if column.null_count:
            raise InputError(
                f"The scores in {batch.name} have missing values; score these rows first."
            )
        values = column.to_numpy(zero_copy_only=False)
        found.append(check_scores(values, name=f"{name} in {batch.name}"))
    return found
