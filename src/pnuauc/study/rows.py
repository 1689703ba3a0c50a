"""The rows of a study: all labelled ones and the unlabelled ones it draws, in a fixed order.

Rows come in the order of their keys (:mod:`pnuauc.core.rows`), so that a fit does not depend on
the order in which a table lists them, nor on the files that it is cut into.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from pnuauc._utils.arrays import Floats, Indices, Mask
from pnuauc._utils.extras import warn
from pnuauc._utils.label_values import RoleCounts, as_list, did_you_mean
from pnuauc._utils.show import few
from pnuauc.core.rows import Keys
from pnuauc.exceptions import InputError, LabelReadingWarning, PnuaucWarning
from pnuauc.io.cells import as_typed, is_number, is_text, pa, parse_numbers, tidy
from pnuauc.io.columns import NUMBERS_ROWS
from pnuauc.io.draw import AllUnlabeled, Drawn, Encoded, RowKeys, draw_rows, table_keys
from pnuauc.io.encode import TableEncoder
from pnuauc.io.frames import as_table
from pnuauc.io.labels import LabelReader, plain_cells, read_counted
from pnuauc.io.sources import MemorySource, Source, is_source
from pnuauc.labels import ROLES, UNLABELED, Roles, read_roles

# A table and the roles of its columns -> rows, roles and what there is to say about both.


@dataclass(frozen=True)
class LabelCodes:
    """Values of the label column that stand for the roles; None leaves the default reading."""

    positive: Any = None
    negative: Any = None
    unlabeled: Any = None


#: What ``ColumnRoles.groups`` says where rows of one id are independent.
NO_GROUPS = ("none",)


@dataclass(frozen=True)
class ColumnRoles:
    """Which column is the label, which name the rows, which are left out, which are categories.

    Rows that share a value of one of ``groups`` belong together; ("none",) says that rows of one id
    do not. ``time`` names the column by which rows are judged in their order, ``propensity`` the
    one with the chance that a row would be labelled. ``decimal`` and ``date_format`` say how text
    cells are written, ``embedding`` which columns are one vector: see :class:`TableEncoder`.
    """

    label: str
    ids: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    codes: LabelCodes = field(default_factory=LabelCodes)
    decimal: str | None = None
    date_format: str | Mapping[str, str] | None = None
    embedding: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    time: str | None = None
    propensity: str | None = None

    @property
    def apart(self) -> tuple[str, ...]:
        """Columns that the model does not read: ids, groups, time and propensity."""
        single = [name for name in (self.time, self.propensity) if name is not None]
        return tuple(dict.fromkeys([*self.ids, *self.grouping, *single]))

    @property
    def grouping(self) -> tuple[str, ...]:
        """Columns that were named as groups."""
        return () if self.groups == NO_GROUPS else self.groups

    def encoder(self) -> TableEncoder:
        """The encoder of the feature columns, not fitted."""
        return TableEncoder(
            self.categorical,
            decimal=self.decimal,
            date_format=self.date_format,
            embedding=self.embedding,
        )


def need_column(name: str, names: Sequence[str]) -> None:
    """Refuse a name that is no column's, with the nearest one."""
    if name in names:
        return
    near = did_you_mean(name, names)
    shown = few(names, 10 if near else 1000)
    message = f"There is no column '{name}'{near}; the columns are {shown}."
    if len(names) == 1:
        raise InputError(f"{message} Is the delimiter right?", about="delimiter")
    raise InputError(message)


def label_values(table: Any, label: str) -> Any:
    """The label column as an array that :func:`pnuauc.labels.read_roles` reads.

    Text that is all numbers, or all true and false, is taken as such.
    """
    need_column(label, table.column_names)
    values = plain_cells(table, label)
    typed = _typed_cells(table, label)
    if pa.types.is_nested(values.type) or pa.types.is_temporal(values.type):
        raise InputError(
            f"Label column '{label}' holds {values.type} values; it must hold labels, for example "
            "1 (positive), 0 (negative) and nothing (unlabelled)."
        )
    if pa.types.is_decimal(typed.type):
        typed = typed.cast(pa.float64())
    if pa.types.is_integer(typed.type) or pa.types.is_floating(typed.type):
        return typed.to_numpy()
    dates = pa.types.is_temporal(typed.type)
    return np.array((values if dates else typed).to_pylist(), dtype=object)


def _typed_cells(table: Any, label: str) -> Any:
    """The cells; text as what it spells."""
    values = plain_cells(table, label)
    return as_typed(values) if is_text(values.type) else values


def read_labels(table: Any, label: str, codes: LabelCodes) -> Roles:
    """Roles of the rows; errors name the column."""
    reader, counts = read_source_labels(MemorySource(table), label, codes)
    return Roles(reader(table), counts.positive_label, counts.negative_label, counts.announcement)


#: Above this share of zeros among 1 and 0 alone, the zeros may be rows that nobody looked at.
_MANY_ZEROS = 0.8


def _named(codes: LabelCodes, values: Any, label: str) -> dict[str, Any]:
    """The named values as the column holds them; one that it does not hold is refused."""
    array = np.asarray(values, dtype=object)
    there = [v for v in dict.fromkeys(array.tolist()) if v is not None and v == v]
    found: dict[str, list[Any]] = {f"{role.name}_label": [] for role in ROLES}
    for role in ROLES:
        for value in as_list(getattr(codes, role.name)):
            same = [held for held in there if _is_spelled(held, value)]
            if not same:
                meant = did_you_mean(value, there)
                raise InputError(
                    f"Label column '{label}' never holds {value!r}, named as {role.word}{meant}; "
                    f"it holds {few(there) or 'nothing'}.",
                    about="labels",
                )
            found[f"{role.name}_label"] += same
    return found


def _is_spelled(held: Any, value: Any) -> bool:
    """Whether the label is meant: options from a command line arrive as text."""
    if not isinstance(value, str) or isinstance(held, str):
        return bool(held == value)
    if isinstance(held, bool):
        return value.strip().lower() in ({"true", "1", "yes"} if held else {"false", "0", "no"})
    try:
        return bool(float(value) == held)
    except ValueError:
        return False


def _announced(counts: RoleCounts, values: Any) -> RoleCounts:
    """Say how 1, 0 and -1 were read, and ask about zeros that may mean only that no one looked."""
    told = None
    codes = {str(counts.positive_label).removesuffix(".0"), str(counts.negative_label)}
    if not codes <= {"1", "0", "0.0", "True", "False"}:
        return counts
    n = len(counts)
    if counts.setting == "PN" and n >= 50 and counts.n_negative > _MANY_ZEROS * n:
        told = (
            f"Every row is labelled, {counts.n_positive:,} are 1 and {counts.n_negative:,} are 0; "
            "0 is read as negative: somebody looked at each of these rows and found nothing. If 0 "
            "only means that nobody looked, name it as the unlabelled label: results will differ."
        )
    elif counts.setting == "PNU" and np.isin(np.asarray(values, dtype=str), ["-1", "-1.0"]).any():
        told = "Labels 1, 0 and -1 are read as positive, negative and unlabelled."
    if told is None:
        return counts
    warn(told, LabelReadingWarning)
    return replace(counts, announcement=told)


#: Rows of the one labelled class that learning needs: two folds of two.
_FEWEST = 4


def check_enough(roles: RoleCounts, label: str) -> None:
    """Refuse labels of one class alone that are too few to be held out in turn."""
    if roles.setting not in {"PU", "NU"}:
        return
    word, other = ("positive", "negative") if roles.setting == "PU" else ("negative", "positive")
    n = max(roles.n_positive, roles.n_negative)
    if n < _FEWEST:
        raise InputError(
            f"Label column '{label}' holds {n} {word} row{'s' if n > 1 else ''} and no {other} "
            f"one: with {word} labels alone at least {_FEWEST} are needed, as some are "
            "held out in turn; label more rows, of either class.",
            about="labels",
        )


def check_present(table: Any, roles: ColumnRoles) -> None:
    need_column(roles.label, table.column_names)
    given = (
        ("names rows", roles.ids),
        ("is left out", roles.drop),
        ("names groups", roles.grouping),
        ("tells the time", () if roles.time is None else (roles.time,)),
        ("says how rows were picked", () if roles.propensity is None else (roles.propensity,)),
    )
    for what, names in given:
        for name in names:
            if name not in table.column_names:
                near = did_you_mean(name, table.column_names)
                raise InputError(f"There is no column '{name}'{near}, given as one that {what}.")
    named = [roles.label, *roles.ids, *roles.drop]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"Column '{twice}' is given two roles among label, id and drop.")
    if roles.label in roles.apart:
        raise InputError(
            f"Column '{roles.label}' holds the labels; it cannot name groups, time or propensity."
        )
    if roles.time is not None and roles.propensity is not None:
        raise InputError("Later rows are judged by labels as they come; give a time or propensity.")


@contextmanager
def collected(messages: list[str]) -> Iterator[None]:
    """Turn this package's warnings into sentences of a list, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PnuaucWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, PnuaucWarning):
            if (text := str(warning.message)) not in messages:
                messages.append(text)
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )


def read_source_labels(
    source: Source, label: str, codes: LabelCodes
) -> tuple[LabelReader, RoleCounts]:
    """How each value of the label column is read, and how many rows of each role there are."""
    label_values(source.schema.empty_table(), label)  # refuses what holds no labels, by its type

    def read(cells: Any) -> Roles:
        values = label_values(cells, label)
        given = _named(codes, values, label)
        try:
            return read_roles(values, **given)
        except ValueError as error:
            about = getattr(error, "about", None) or "labels"
            raise InputError(f"Label column '{label}': {error}", about=about) from error

    reader, counts = read_counted(source, label, read)
    if counts.announcement is None and not any(map(as_list, vars(codes).values())):
        counts = _announced(counts, reader.cells.to_pylist())
    return reader, counts


# The rows of a study: all labelled ones and the unlabelled ones it draws, in a fixed order.


#: Unlabelled rows that are drawn: on waveform with 200 positives, ranking was as good with 20,000.
SAMPLE_ROWS = 200_000
#: Cells of a column that say what a file holds, and the share that must agree.
_FEW_CELLS, _NEARLY_ALL = 20, 0.9


@dataclass(frozen=True, eq=False)
class Origin:
    """Where all rows of a study are.

    source : Source
    labels : how their labels are read
    keys : how rows are identified
    drawn : keys of the unlabelled rows in memory
    """

    source: Source
    labels: LabelReader
    keys: RowKeys
    drawn: Keys

    def everything(self, encoder: TableEncoder) -> AllUnlabeled:
        """All unlabelled rows, encoded where they are."""
        used = [column.name for column in encoder.columns_]
        needed = list(dict.fromkeys([self.labels.label, *self.keys.columns, *used]))
        return AllUnlabeled(
            self.source.select(needed), Encoded(encoder), self.labels, self.keys, self.drawn
        )


@dataclass(frozen=True, eq=False)
class StudyRows:
    """What a study is made on.

    Attributes
    ----------
    table : pyarrow.Table of the feature columns, or CSR
    roles : Roles, of the rows of ``table``
    ids : pyarrow.Table or None
    numbers : ndarray of int, shape (n,)
        Number of each row in its file, from 0.
    counts : RoleCounts
        Of the whole table.
    notes : sentences about columns and rows that were left out
    origin : Origin or None
        Where they were drawn from; None if that is all there are.
    groups : ndarray of int, shape (n,), or None
        Rows of one number belong together.
    grouping : names of the columns that say so
    time : ndarray, shape (n,), or None; NaN where the cell is empty
    weights : ndarray, shape (n,), or None; unlabelled rows that a labelled row stands for
    spare : pyarrow.Table of columns that the model does not read
    numbering : columns that number the rows of the whole table
    """

    table: Any
    roles: Roles
    ids: Any
    numbers: NDArray[np.int64]
    counts: RoleCounts
    notes: tuple[str, ...] = ()
    origin: Origin | None = None
    groups: Indices | None = None
    grouping: tuple[str, ...] = ()
    time: Floats | None = None
    weights: Floats | None = None
    spare: Any = None
    numbering: tuple[str, ...] = ()

    def named_by(self, names: Sequence[str]) -> StudyRows:
        """With columns of the table among those that name rows."""
        ids = self.ids
        for name in names:
            cells = self.table.column(name)
            ids = pa.table({name: cells}) if ids is None else ids.append_column(name, cells)
        return replace(self, ids=ids)


def study_rows(data: Any, columns: ColumnRoles, max_unlabeled: int | str, seed: int) -> StudyRows:
    """The rows to fit on.

    Parameters
    ----------
    data : any frame, a Source, or (CSR, labels)
    max_unlabeled : int, or "all"
        Unlabelled rows to draw; all are used where they are fewer. With "all" the rows drawn are
        those that come to this machine.
    """
    at_most = _checked(max_unlabeled)
    if isinstance(data, tuple) and len(data) == 2 and sparse.issparse(data[0]):
        roles = read_labels(pa.table({"label": np.asarray(data[1])}), "label", columns.codes)
        numbers = np.arange(len(roles))
        return StudyRows(data[0].tocsr(), roles, None, numbers, RoleCounts.of(roles))
    source: Source = data if is_source(data) else MemorySource(as_table(data))
    check_present(source.schema.empty_table(), columns)
    labels, counts = read_source_labels(source, columns.label, columns.codes)
    check_enough(counts, columns.label)
    left_out = (columns.label, *columns.apart, *columns.drop)
    features = [name for name in source.schema.names if name not in left_out]
    spare = [
        name
        for name in (*columns.apart, *columns.drop)
        if not pa.types.is_nested(source.schema.field(name).type)
    ]
    named = columns.grouping[:1] or columns.ids  # of a group all rows are drawn, or none
    keys = RowKeys(tuple(sorted(named or features)), seed, bool(named))
    kept = [n for n in source.schema.names if n in {*features, *spare, columns.label}]
    drawn = draw_rows(source.select(kept), keys, labels, at_most, counts.n_unlabeled)
    roles = Roles(drawn.codes, counts.positive_label, counts.negative_label, counts.announcement)
    if getattr(source, "untyped", False):
        _check_files_agree(drawn, features, columns, source)
    notes, numbering = [], []
    is_draw = len(drawn) < len(counts)
    if is_draw:
        whole = len(counts) - 1  # from first to last of a column that numbers the rows
        spans = {name: high - low for name, (low, high) in drawn.spans.items()}
        numbering = [name for name in features if spans.get(name) == whole]
        notes += [f"Column '{name}' {NUMBERS_ROWS}" for name in numbering]
        notes.append(_draw_note(roles.n_unlabeled, counts.n_unlabeled, max_unlabeled))
    grouping, groups = grouping_of(drawn, columns)
    if groups is not None and max_unlabeled == "all" and is_draw:
        named_twice = "" if columns.grouping else "The id names several rows, which are a group: "
        raise InputError(
            f"{named_twice}Groups need the rows in memory; draw a number of unlabelled rows, or "
            "name no groups ('none')."
        )
    weights = None
    if columns.propensity is not None:
        weights, told = _label_weights(drawn.table, columns.propensity, roles)
        notes += told
    return StudyRows(
        drawn.table.select([name for name in features if name not in numbering]),
        roles,
        ids_of(drawn.table, (*columns.ids, *numbering), drawn.part, source),
        drawn.row,
        counts,
        tuple(notes),
        Origin(source, labels, keys, drawn.key[roles.unlabeled]) if is_draw else None,
        groups,
        grouping,
        None if columns.time is None else _times(drawn.table, columns.time),
        weights,
        drawn.table.select(spare),
        tuple(numbering),
    )


def grouping_of(drawn: Drawn, columns: ColumnRoles) -> tuple[tuple[str, ...], Indices | None]:
    """Columns that name groups, and the groups: those that are said, or ids of several rows."""
    if columns.grouping:
        return columns.grouping, groups_of(drawn.table, columns.grouping)
    if columns.ids and columns.groups != NO_GROUPS:
        groups = groups_of(drawn.table, (columns.ids,))
        if (np.bincount(groups)[groups[drawn.codes != UNLABELED]] > 1).any():
            return columns.ids, groups
    return (), None


def repeated_ids(ids: Sequence[str], groups: Any) -> str:
    """What is said where nobody named groups and ids were taken for them."""
    return (
        f"The id {few(ids)} names several rows ({len(np.unique(groups)):,} ids for "
        f"{len(groups):,} rows): rows of one id are taken as a group. Name no groups ('none') "
        "if they are independent."
    )


def filled_cells(table: Any, names: Sequence[str]) -> Mask:
    """Rows in which none of the cells is empty, shape (n,)."""
    cells = (table.column(name) for name in names)
    told = [(tidy(c) if is_text(c.type) else c).is_valid() for c in cells]
    return np.asarray(np.all([np.asarray(valid) for valid in told], axis=0))


def groups_of(table: Any, columns: Sequence[Any]) -> Indices:
    """Number of each row's group: rows that share a value of any of the columns, shape (n,).

    An entry of several names is a column of their values together. An empty cell is no value.
    """
    rows, n = np.arange(table.num_rows), table.num_rows
    links: list[Any] = []
    for names in columns:
        names = [names] if isinstance(names, str) else list(names)
        keys = table_keys(table, names)
        first = np.unique(keys, return_index=True, return_inverse=True)
        links.append(np.where(filled_cells(table, names), first[1][first[2].ravel()], rows))
    ends = np.concatenate(links)
    graph = sparse.coo_matrix((np.ones(len(ends)), (np.tile(rows, len(links)), ends)), (n, n))
    return np.asarray(csgraph.connected_components(graph, directed=False)[1], dtype=np.intp)


def _times(table: Any, name: str) -> Floats:
    """Dates and times as microseconds, numbers as they are; NaN where the cell is empty."""
    cells = _typed_cells(table, name)
    if pa.types.is_temporal(cells.type) and not pa.types.is_duration(cells.type):
        cells = cells.cast(pa.timestamp("us")).cast(pa.int64())
    if not is_number(cells.type):
        raise InputError(
            f"Column '{name}' is to tell the time, but holds neither dates nor numbers.",
            about="dates",
        )
    return np.asarray(cells.cast(pa.float64()).to_numpy(), dtype=np.float64)


def _label_weights(table: Any, name: str, roles: Roles) -> tuple[Floats, list[str]]:
    """(1 - e) / e of labelled rows that were labelled with chance e, and what there is to say.

    The sum of f (1 - e) / e over labelled rows has the expectation of the sum of f over those that
    stay unlabelled. A row without e learns with the others and is no evidence: its weight is 0.
    """
    cells = _typed_cells(table, name)
    if not (is_number(cells.type) or pa.types.is_null(cells.type)):
        raise InputError(f"Column '{name}' is to hold chances of being labelled, but no numbers.")
    chance = cells.cast(pa.float64()).to_numpy()
    known, labeled = np.isfinite(chance), roles.codes != UNLABELED
    if bad := np.flatnonzero(known & labeled & ((chance <= 0.0) | (chance > 1.0))).tolist():
        raise InputError(
            f"Column '{name}' holds {chance[bad[0]]:g} for a labelled row; the chance that it is "
            "labelled is above 0 and at most 1."
        )
    weights = np.zeros(len(chance))
    used = known & labeled
    weights[used] = (1.0 - chance[used]) / chance[used]
    for word, rows in (("positive", roles.positive), ("negative", roles.negative)):
        if len(rows) and not weights[rows].any():
            raise InputError(
                f"Column '{name}' gives no {word} row a chance below 1 of having been labelled: "
                f"nothing is known of {word} rows among the unlabelled ones. Go on with the review "
                "until rows drawn at random hold one, or leave this column out: the "
                "ranking is the same, and what cannot be stated is withheld."
            )
    unknown, certain = int((labeled & ~known).sum()), int((weights[used] == 0.0).sum())
    counts = ((unknown, "an unknown chance"), (certain, "certainty"))
    return weights, [
        f"{n:,} rows were labelled with {what}: the ranking learns from them, and no estimate "
        "rests on them."
        for n, what in counts
        if n
    ]


def _checked(max_unlabeled: int | str) -> int:
    if max_unlabeled == "all":
        return SAMPLE_ROWS
    if isinstance(max_unlabeled, (int, np.integer)) and max_unlabeled >= 2:
        return int(max_unlabeled)
    raise InputError(
        f"The number of unlabelled rows to use must be 2 or more, or 'all'; got {max_unlabeled!r}.",
        about="max_unlabeled",
    )


def _draw_note(n_drawn: int, n: int, max_unlabeled: int | str) -> str:
    if max_unlabeled == "all":
        return (
            f"All {n:,} unlabelled rows were used; prior, encoding and trees rest on "
            f"{n_drawn:,} of them, drawn by a hash of each row."
        )
    return (
        f"Fitted on {n_drawn:,} of {n:,} unlabelled rows, drawn by a hash of each row; threshold "
        "and rows to review come from all."
    )


def ids_of(table: Any, ids: Sequence[str], part: NDArray[np.int64], source: Any) -> Any:
    """The columns that name rows, the file in front where there are several; None without any."""
    found, names = table.select(list(ids)), getattr(source, "part_names", ())
    if len(names) > 1 and "file" not in found.column_names:
        files = pa.array([names[i] for i in part])
        found = pa.table({"file": files, **{n: found.column(n) for n in ids}})
    return found if found.num_columns else None


def _check_files_agree(
    drawn: Drawn, features: Sequence[str], columns: ColumnRoles, source: Any
) -> None:
    """Refuse a column of text files that holds numbers in one file and words in another."""
    for name in features:
        values = drawn.table.column(name)
        if not is_text(values.type) or name in columns.categorical:
            continue
        cells = tidy(values)
        there = np.asarray(cells.is_valid().to_numpy())
        number = ~np.isnan(parse_numbers("", cells))
        shares = {}
        for part in np.unique(drawn.part):
            own = there & (drawn.part == part)
            if own.sum() >= _FEW_CELLS:
                shares[int(part)] = float(number[own].mean())
        if not shares:
            continue
        low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
        if shares[high] >= _NEARLY_ALL and shares[low] <= 1 - _NEARLY_ALL:
            words = np.flatnonzero(there & ~number & (drawn.part == low))
            raise InputError(
                f"Column {name!r} holds numbers in '{source.part_names[high]}' but not in "
                f"'{source.part_names[low]}' ({cells[int(words[0])].as_py()[:40]!r}); write it "
                "alike in all files, name it as a categorical column, or leave it out.",
                about="drop",
            )
