"""A table and the roles of its columns -> rows, roles and what there is to say about both."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._label_column import as_list
from pnuauc._label_words import nearest
from pnuauc._role_counts import RoleCounts
from pnuauc._shown import few
from pnuauc._warn import warn
from pnuauc.exceptions import InputError, LabelReadingWarning, PnuaucWarning
from pnuauc.io import TableEncoder
from pnuauc.io._arrow import pa
from pnuauc.io._cells import as_typed, is_number, is_text, tidy
from pnuauc.labels import ROLES, Roles, read_roles

__all__ = [
    "ColumnRoles",
    "LabelCodes",
    "check_enough",
    "check_present",
    "collected",
    "label_values",
    "read_labels",
    "read_values",
    "repeated",
]


@dataclass(frozen=True)
class LabelCodes:
    """Values of the label column that stand for the roles; None leaves the default reading."""

    positive: Any = None
    negative: Any = None
    unlabeled: Any = None

    def for_type(self, kind: Any) -> dict[str, Any]:
        """The values in the type of the column: options from a command line arrive as text."""
        return {f"{role}_label": _in_type(value, kind) for role, value in vars(self).items()}


@dataclass(frozen=True)
class ColumnRoles:
    """Which column is the label, which name the rows, which are left out, which are categories.

    ``decimal`` and ``date_format`` say how text cells are written: see :class:`TableEncoder`.
    """

    label: str
    ids: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    codes: LabelCodes = field(default_factory=LabelCodes)
    decimal: str | None = None
    date_format: str | Mapping[str, str] | None = None

    def encoder(self) -> TableEncoder:
        """The encoder of the feature columns, not fitted."""
        return TableEncoder(self.categorical, decimal=self.decimal, date_format=self.date_format)


def _in_type(value: Any, kind: Any) -> Any:
    if not isinstance(value, str) or kind is None:
        if isinstance(value, (list, tuple)):
            return [_in_type(item, kind) for item in value] or None
        return value
    if pa.types.is_boolean(kind):
        lowered = value.strip().lower()
        if lowered in {"true", "1", "yes"}:
            return True
        if lowered in {"false", "0", "no"}:
            return False
    if is_number(kind):
        try:
            number = float(value)
        except ValueError:
            raise InputError(
                f"The label column holds numbers, so the label value {value!r} cannot occur in it."
            ) from None
        return int(number) if number == int(number) else number
    return value


def label_values(table: Any, label: str) -> Any:
    """The label column as an array that :func:`pnuauc.labels.read_roles` reads."""
    if label not in table.column_names:
        message = f"There is no column '{label}'; the columns are {few(table.column_names, 10)}."
        if len(table.column_names) == 1:
            raise InputError(f"{message} Is the delimiter right?", about="delimiter")
        raise InputError(message)
    values = _label_cells(table, label)
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return values.to_numpy()
    if pa.types.is_nested(values.type) or pa.types.is_temporal(values.type):
        raise InputError(
            f"Label column '{label}' holds {values.type} values; it must hold labels, for example "
            "1 (positive), 0 (negative) and nothing (unlabelled)."
        )
    return np.array(values.to_pylist(), dtype=object)


def _label_cells(table: Any, label: str) -> Any:
    """The cells; text that is all numbers, or all true and false, as such."""
    values = table.column(label)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not is_text(values.type):
        return values
    values = tidy(values)
    typed = as_typed(values)
    return values if pa.types.is_temporal(typed.type) else typed


def read_labels(
    table: Any, label: str, codes: LabelCodes, repeats: NDArray[np.int64] | None = None
) -> Roles:
    """Roles of the rows; errors name the column.

    ``repeats`` says how often each row of the table stands for one; it only matters to remarks.
    """
    values = label_values(table, label)
    kind = _label_cells(table, label).type
    return read_values(values, label, codes.for_type(kind), repeats)


#: Above this share of zeros among 1 and 0 alone, the zeros may be rows that nobody looked at.
_MANY_ZEROS = 0.8


def read_values(
    values: Any, label: str, codes: dict[str, Any], repeats: NDArray[np.int64] | None = None
) -> Roles:
    """Roles of label values, with ``codes`` in their type; see :func:`read_labels`."""
    _check_occurs(values, label, codes)
    try:
        roles = read_roles(values, **codes)
    except ValueError as error:
        about = getattr(error, "about", None) or "labels"
        raise InputError(f"Label column '{label}': {error}", about=about) from error
    named = any(value is not None for value in codes.values())
    if named or roles.announcement is not None:
        return roles
    counts = RoleCounts.of(roles) if repeats is None else repeated(roles, repeats)
    return _announced(roles, counts, values)


def repeated(roles: Roles, repeats: NDArray[np.int64]) -> RoleCounts:
    """Counts of rows of which each of ``roles`` stands for so many."""
    p, n, u = (int(repeats[rows].sum()) for rows in roles.by_letter.values())
    return RoleCounts(p, n, u, roles.positive_label, roles.negative_label, roles.announcement)


def _check_occurs(values: Any, label: str, codes: dict[str, Any]) -> None:
    """Refuse a label value that is named and does not occur, with the nearest one that does."""
    named = [(role.word, value) for role in ROLES for value in as_list(codes[f"{role.name}_label"])]
    if not named:
        return
    array = np.asarray(values, dtype=object)
    there = [v for v in dict.fromkeys(array.tolist()) if v is not None and v == v]
    for word, value in named:
        if value not in there:
            close = nearest(value, there)
            meant = "" if close is None else f" (did you mean {close!r}?)"
            raise InputError(
                f"Label column '{label}' never holds {value!r}, named as {word}{meant}; it holds "
                f"{few(there) or 'nothing'}.",
                about="labels",
            )


def _announced(roles: Roles, counts: RoleCounts, values: Any) -> Roles:
    """Say how 1, 0 and -1 were read, and ask about zeros that may mean only that no one looked."""
    told, n = None, len(counts)
    codes = {str(roles.positive_label).removesuffix(".0"), str(roles.negative_label)}
    if not codes <= {"1", "0", "0.0", "True", "False"}:
        return roles
    if roles.setting == "PN" and n >= 50 and counts.n_negative > _MANY_ZEROS * n:
        told = (
            f"Every row is labelled, {counts.n_positive:,} are 1 and {counts.n_negative:,} are 0; "
            "0 is read as negative: somebody looked at each of these rows and found nothing. If 0 "
            "only means that nobody looked, name it as the unlabelled label: results will differ."
        )
    elif roles.setting == "PNU" and np.isin(np.asarray(values, dtype=str), ["-1", "-1.0"]).any():
        told = "Labels 1, 0 and -1 are read as positive, negative and unlabelled."
    if told is None:
        return roles
    warn(told, LabelReadingWarning)
    return replace(roles, announcement=told)


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
    label_values(table.slice(0, 0), roles.label)
    for what, names in (("names rows", roles.ids), ("is left out", roles.drop)):
        for name in names:
            if name not in table.column_names:
                raise InputError(f"There is no column '{name}', given as one that {what}.")
    named = [roles.label, *roles.ids, *roles.drop]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"Column '{twice}' is given two roles among label, id and drop.")


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
