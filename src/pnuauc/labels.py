"""Labels in any coding -> roles: positive (P), negative (N), unlabelled (U).

The only module that knows label codes. Everything downstream sees a :class:`Roles`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pnuauc._utils.extras import warn
from pnuauc._utils.label_values import (
    PLAIN,
    Counted,
    as_column,
    as_list,
    did_you_mean,
    distinct,
    refuse_calibration,
    word_role,
)
from pnuauc._utils.show import few
from pnuauc.exceptions import InputError, LabelReadingWarning, MissingRoleError

__all__ = ["NEGATIVE", "POSITIVE", "ROLES", "UNLABELED", "Role", "Roles", "read_roles"]

POSITIVE, NEGATIVE, UNLABELED = 1, 0, -1


class Role(NamedTuple):
    """One role under all its names."""

    letter: str
    #: In parameters, attributes and keys.
    name: str
    #: In sentences.
    word: str
    code: int


#: The only table of the names of roles; its order is that of every (P, N, U) triple.
ROLES = (
    Role("P", "positive", "positive", POSITIVE),
    Role("N", "negative", "negative", NEGATIVE),
    Role("U", "unlabeled", "unlabelled", UNLABELED),
)
_BY_NAME = {role.name: role for role in ROLES}

_HOW = "name the positive, negative or unlabelled label to say otherwise"


@dataclass(frozen=True, eq=False, repr=False)
class Roles(Counted):
    """The role of each row: positive, negative or unlabelled.

    Attributes
    ----------
    codes : ndarray of int8, shape (n,)
        1 positive, 0 negative, -1 unlabelled, whatever the coding of ``y`` was.
    positive_label, negative_label : object
        The values that stand for the two classes in the user's own coding; what ``predict``
        answers with. ``negative_label`` is set even where no row carries it.
    announcement : str or None
        How the labels were read, when they could have been read otherwise.
    """

    codes: NDArray[np.int8]
    positive_label: Any = 1
    negative_label: Any = 0
    announcement: str | None = None

    @cached_property
    def positive(self) -> NDArray[np.intp]:
        """Row numbers of the positives."""
        return np.flatnonzero(self.codes == POSITIVE)

    @cached_property
    def negative(self) -> NDArray[np.intp]:
        """Row numbers of the negatives."""
        return np.flatnonzero(self.codes == NEGATIVE)

    @cached_property
    def unlabeled(self) -> NDArray[np.intp]:
        """Row numbers of the unlabelled rows."""
        return np.flatnonzero(self.codes == UNLABELED)

    @cached_property
    def by_letter(self) -> dict[str, NDArray[np.intp]]:
        """Row numbers of each role, empty ones included: {"P": ..., "N": ..., "U": ...}."""
        return {role.letter: getattr(self, role.name) for role in ROLES}

    @property
    def n_positive(self) -> int:  # type: ignore[override]
        return len(self.positive)

    @property
    def n_negative(self) -> int:  # type: ignore[override]
        return len(self.negative)

    @property
    def n_unlabeled(self) -> int:  # type: ignore[override]
        return len(self.unlabeled)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def shape(self) -> tuple[int]:
        """(n,): scikit-learn splits roles as it would split the array y that they stand for."""
        return (len(self.codes),)

    def take(self, rows: Any) -> Roles:
        """The roles of some rows: numbers, a mask or a slice."""
        codes = np.atleast_1d(self.codes[rows])
        return Roles(codes, self.positive_label, self.negative_label, self.announcement)

    def __getitem__(self, rows: Any) -> Roles:
        # scikit-learn indexes arrays by (rows, ...)
        return self.take(rows[0] if isinstance(rows, tuple) else rows)

    def __iter__(self) -> Iterator[int]:
        return iter(self.codes.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The codes, for code that knows nothing of roles: scikit-learn stratifies by them."""
        return np.array(self.codes, dtype=dtype)

    @property
    def classes(self) -> NDArray[Any]:
        """The two class labels, negative first, in the user's coding."""
        pair = [self.negative_label, self.positive_label]
        kinds = {type(label) for label in pair}
        return np.array(pair) if len(kinds) == 1 else np.array(pair, dtype=object)

    def as_float(self) -> NDArray[np.float64]:
        """1, 0 and NaN, shape (n,): the coding for code that knows nothing of roles."""
        return np.where(self.codes == UNLABELED, np.nan, self.codes)

    def require(self, *roles: str, purpose: str, at_least: int = 1) -> None:
        """Raise :class:`MissingRoleError` unless each of ``roles`` has ``at_least`` rows."""
        for role in (_BY_NAME[name] for name in roles):
            n = len(self.by_letter[role.letter])
            if n < at_least:
                found = "there are none" if n == 0 else f"there is only {n}"
                least = "" if at_least == 1 else f"at least {at_least} "
                one = self.setting in {"P", "N", "U", ""}
                so = ", so only one class or too few rows of it can be seen" if one else ""
                raise MissingRoleError(
                    f"{purpose} needs {least}{role.word} rows and {found}: y holds "
                    f"{self.describe()}{so}."
                )

    def __repr__(self) -> str:
        return f"Roles({self.describe()})"


def read_roles(
    y: ArrayLike | Roles,
    *,
    positive_label: Any = None,
    negative_label: Any = None,
    unlabeled_label: Any = None,
    unclear: str = "refuse",
) -> Roles:
    """Read labels in any coding.

    By default 1 (or True) is positive, 0 (or False) negative, and -1 or a missing value
    (NaN, None, NA, empty string) unlabelled. Words that say what they mean are known (yes and no,
    fraud and legit, spam and ham, member and non-member, "?" and unknown for unlabelled rows); one
    other value beside missing ones is read as positive. Two values that do not say which is
    positive are refused. Whenever the reading is ambiguous a :class:`LabelReadingWarning` says how
    it was read. The parameters settle it: each takes one value or a list of values.

    Parameters
    ----------
    y : array-like, shape (n,), or Roles
        Numbers, booleans, strings, objects; numpy, pandas (nullable, categorical), polars, lists.
        A ``Roles`` is returned unchanged: it has been read, and the parameters are not looked at.
    positive_label, negative_label, unlabeled_label : value or list of values, optional
        Values that stand for a role. Missing values are always unlabelled.
    unclear : "refuse" or "sorted"
        Two values that do not say which is positive: an error, or scikit-learn's rule for
        classifiers, the later in sorted order is positive.

    Returns
    -------
    Roles

    Examples
    --------
    >>> read_roles([1, 0, None, None]).setting
    'PNU'
    >>> read_roles(["fraud", "?", "ok"], positive_label="fraud", unlabeled_label="?").codes
    array([ 1, -1,  0], dtype=int8)
    """
    if isinstance(y, Roles):
        return y
    values, index, missing = distinct(as_column(y))
    given = {
        POSITIVE: as_list(positive_label),
        NEGATIVE: as_list(negative_label),
        UNLABELED: as_list(unlabeled_label),
    }
    mapping, announcement = _assign(values, given, has_missing=bool(missing.any()), unclear=unclear)
    lookup = np.array([*mapping, UNLABELED], dtype=np.int8)
    codes = lookup[index]
    codes[missing] = UNLABELED
    if UNLABELED in codes:
        refuse_calibration()

    positive = _name_of(POSITIVE, values, mapping, given)
    negative = _name_of(NEGATIVE, values, mapping, given)
    if negative is None:
        # y in {-1, 1} answers in the same two codes, so a user of the classic coding gets it back
        classic = [v for v in values if not isinstance(v, str) and v == -1]
        negative = classic[0] if classic and not missing.any() else _like(positive, 0)
    if positive is None:
        positive = _like(negative, 1)
    if announcement:
        warn(announcement, LabelReadingWarning)
    return Roles(codes, positive, negative, announcement)


def _assign(
    values: list[Any], given: dict[int, list[Any]], *, has_missing: bool, unclear: str
) -> tuple[list[int], str | None]:
    """Role of every distinct value, and the announcement where the reading is ambiguous."""
    named = [str(label) for labels in given.values() for label in labels]
    if len(set(named)) < len(named):
        raise ValueError("The same value is given twice; each label belongs to one role.")
    if not values and not has_missing:
        raise ValueError(
            "y is empty: Found array with 0 sample(s) while a minimum of 1 is required."
        )
    if any(given.values()):
        return _assign_given(values, given)
    canonical = [_canonical(v) for v in values]
    if all(c is not None for c in canonical):
        roles = [int(c) for c in canonical if c is not None]
        return roles, _announce_default(set(roles), has_missing=has_missing)
    return _assign_foreign(values, has_missing=has_missing, unclear=unclear)


def _canonical(value: Any) -> int | None:
    """1, 0 or -1 for the default codes, however written (True, 1.0, "1"), else None."""
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, (int, float, np.integer, np.floating)):
        return int(value) if value in (-1, 0, 1) else None
    if isinstance(value, str):
        return {"1": 1, "0": 0, "-1": -1, "1.0": 1, "0.0": 0, "-1.0": -1}.get(value.strip())
    return None


def _announce_default(roles: set[int], *, has_missing: bool) -> str | None:
    if roles == {POSITIVE, UNLABELED}:
        return (
            "Labels are only 1 and -1: -1 is read as unlabelled, so there is no negative class "
            "here (positive-unlabelled data). If -1 means negative, name it as the negative label."
        )
    if has_missing and UNLABELED in roles:
        return (
            "Labels hold both -1 and missing values: both are read as unlabelled. "
            "If -1 means negative, name it as the negative label."
        )
    return None


def _assign_given(values: list[Any], given: dict[int, list[Any]]) -> tuple[list[int], str | None]:
    mapping: list[int | None] = []
    by_word: dict[Any, int] = {}
    for value in values:
        role = next((r for r, labels in given.items() if value in labels), None)
        if role is None:
            default = _canonical(value)
            default = word_role(value, values) if default is None else default
            # a default code stands for its role only while no other value was named for that role
            role = default if default is not None and not given[default] else None
            if role is not None and _canonical(value) is None:
                by_word[value] = role
        mapping.append(role)
    rest = [v for v, role in zip(values, mapping, strict=True) if role is None]
    _check_spelling(rest, values, given)
    announcement = None
    if by_word and sum(not labels for labels in given.values()) > 1:
        announcement = _announce_words(list(by_word), list(by_word.values()))
    # the one value left is the negative one, unless another value is that already
    if len(rest) == 1 and given[POSITIVE] and not given[NEGATIVE] and NEGATIVE not in mapping:
        mapping = [NEGATIVE if role is None else role for role in mapping]
        if not given[UNLABELED]:  # with it named, only one role is left for the rest
            announcement = f"Label {rest[0]!r} is read as negative; {_HOW}."
    elif rest:
        raise InputError(
            f"y holds values that belong to no role: {few(rest)}; name the labels that are "
            "positive, negative and unlabelled (each role takes one value or several).",
            about="labels",
        )
    return [int(role) for role in mapping if role is not None], announcement


def _check_spelling(rest: list[Any], values: list[Any], given: dict[int, list[Any]]) -> None:
    """Refuse a named value that does not occur where one that does may have been meant."""
    for role in ROLES:
        absent = [label for label in given[role.code] if label not in values]
        if not absent or not rest:
            continue
        meant = did_you_mean(absent[0], rest)
        if not meant and len(absent) < len(given[role.code]):
            continue
        raise InputError(
            f"The {role.word} label {absent[0]!r} does not occur{meant}; y holds {few(values)}.",
            about="labels",
        )


def _assign_foreign(
    values: list[Any], *, has_missing: bool, unclear: str
) -> tuple[list[int], str | None]:
    """Words that say their role; of two others the later one is positive, if that is allowed."""
    words = [word_role(v, values) for v in values]
    known = [role for role in words if role is not None]
    if len(known) == len(values) and len({*known, *([UNLABELED] if has_missing else [])}) >= 2:
        return known, _announce_words(values, known, has_missing=has_missing)
    if len(values) == 2 and unclear == "sorted":
        try:
            low, high = sorted(values)
        except TypeError:
            low, high = sorted(values, key=str)
        roles = [POSITIVE if v is high else NEGATIVE for v in values]
        return roles, f"Label {high!r} is read as positive, {low!r} as negative; {_HOW}."
    if len(values) == 1 and has_missing:
        return [POSITIVE], (
            f"Label {values[0]!r} is read as positive, missing labels as unlabelled; {_HOW}."
        )
    if len(values) == 1:
        raise ValueError(
            f"y holds one class only, {few(values)}; a ranking needs at least two roles."
        )
    if len(values) == 2:
        raise InputError(
            f"The labels {values[0]!r} and {values[1]!r} do not say which is positive: set "
            f"positive_label to {values[0]!r} or to {values[1]!r}.",
            about="positive",
        )
    renumbered = sorted(values, key=str) == [0, 1, 2]
    raise InputError(
        f"Only binary classification is supported: y holds {len(values)} label values "
        f"({few(values)}); name those that are positive, negative and unlabelled."
        + (
            " If cross_val_predict or StackingClassifier renumbered the labels 1, 0 and -1: take "
            'pnuauc.metrics.held_out_scores, or fitted models and cv="prefit" on the labelled rows.'
            if renumbered
            else ""
        ),
        about="labels",
    )


def _announce_words(
    values: list[Any], roles: list[int], *, has_missing: bool = False
) -> str | None:
    """How words were read, but for pairs that nobody reads otherwise."""
    if all(str(v).strip().lower() in PLAIN for v in values):
        return None
    parts = [
        f"{few([v for v, code in zip(values, roles, strict=True) if code == role.code])} as "
        f"{role.word}"
        for role in ROLES
        if role.code in roles
    ]
    if has_missing:
        parts.append("missing labels as unlabelled")
    return f"Labels are read by their words: {', '.join(parts)}; {_HOW}."


def _name_of(role: int, values: list[Any], mapping: list[int], given: dict[int, list[Any]]) -> Any:
    seen = [v for v, r in zip(values, mapping, strict=True) if r == role]
    for label in given[role]:
        if label in seen:
            return label
    if seen:
        return seen[0]
    return given[role][0] if given[role] else None


def _like(label: Any, code: int) -> Any:
    """The default code in the type of the other class's label (strings stay strings)."""
    if label is None or isinstance(label, (bool, np.bool_)):
        return bool(code) if label is not None else code
    if isinstance(label, str):
        return str(code) if _canonical(label) is not None else f"not {label}"
    try:
        return type(label)(code)
    except (TypeError, ValueError):
        return code
