"""What a label column holds: plain values, words that name a role, counts of roles."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from pnuauc.exceptions import InputError


class Counted:
    """What can be said of roles by their counts alone."""

    n_positive: int
    n_negative: int
    n_unlabeled: int

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of positive, negative and unlabelled rows."""
        return self.n_positive, self.n_negative, self.n_unlabeled

    @property
    def setting(self) -> str:
        """The roles that have rows, as letters: "PN", "PU", "NU", "PNU", "P", ..."""
        return "".join(letter for letter, n in zip("PNU", self.counts, strict=True) if n)

    def describe(self) -> str:
        """One phrase with the counts, for messages and reports."""
        return (
            f"{self.n_positive} positive, {self.n_negative} negative and "
            f"{self.n_unlabeled} unlabelled rows"
        )


@dataclass(frozen=True)
class RoleCounts(Counted):
    """How many rows of each role a table has, wherever they are; labels as those of ``Roles``."""

    n_positive: int
    n_negative: int
    n_unlabeled: int
    positive_label: Any = 1
    negative_label: Any = 0
    announcement: str | None = None

    @classmethod
    def of(cls, roles: Any) -> RoleCounts:
        """The counts of a :class:`pnuauc.labels.Roles`."""
        p, n, u = roles.counts
        return cls(p, n, u, roles.positive_label, roles.negative_label, roles.announcement)

    def __len__(self) -> int:
        return sum(self.counts)


#: Words that name the class one looks for.
_POSITIVE = frozenset((
    "yes", "y", "true", "t", "positive", "pos", "p", "fraud", "fraudulent", "fraudster",
    "scam", "spam", "malicious", "malware", "phishing", "attack", "anomaly", "anomalous",
    "outlier", "abnormal", "suspicious", "malignant", "cancer", "sick", "ill", "diseased",
    "disease", "infected", "affected", "case", "patient", "event", "hit", "present",
    "detected", "relevant", "active", "toxic", "churn", "churned", "default", "defaulted",
    "defective", "faulty", "responder", "converted",
))  # fmt: skip
#: Words that name everybody else.
_NEGATIVE = frozenset((
    "no", "n", "false", "f", "negative", "neg", "legit", "legitimate", "genuine", "ok", "okay",
    "normal", "regular", "clean", "ham", "benign", "healthy", "well", "unaffected",
    "uninfected", "control", "inlier", "absent", "undetected", "irrelevant", "inactive",
    "nontoxic", "harmless", "innocent", "honest", "retained",
))  # fmt: skip
#: Words for a row that nobody has looked at.
_UNLABELED = frozenset((
    "unknown", "unlabeled", "unlabelled", "unchecked", "unreviewed", "unverified", "undecided",
    "pending", "open", "todo", "tbd", "missing", "na", "n/a", "nan", "null", "none", "?", "??",
    "-", "--", ".", "<na>", "#n/a", "not checked", "not reviewed", "not labelled",
    "not labeled", "to do", "not looked at",
))  # fmt: skip
_PREFIXES = ("not ", "non ", "non-", "no ", "not-", "no-", "not_", "non_", "no_")
#: Pairs that nobody reads otherwise: they need no word of explanation.
PLAIN = frozenset((
    "yes", "no", "y", "n", "true", "false", "t", "f", "positive", "negative", "pos", "neg", "p",
))  # fmt: skip


def word_role(value: Any, others: Iterable[Any]) -> int | None:
    """1, 0 or -1 for a word that says so by itself, or as "not" another of the values; else None.

    Examples
    --------
    >>> word_role("Fraud", []), word_role("legit", []), word_role("?", []), word_role("cat", [])
    (1, 0, -1, None)
    >>> word_role("non-member", ["member"]), word_role("member", ["non-member"])
    (0, 1)
    """
    if not isinstance(value, str):
        return None
    word = _plain(value)
    if word in _UNLABELED:
        return -1
    if word in _POSITIVE:
        return 1
    if word in _NEGATIVE:
        return 0
    rest = {_plain(other) for other in others if isinstance(other, str)} - {word}
    if any(word == prefix + other for prefix in _PREFIXES for other in rest):
        return 0
    if any(other == prefix + word for prefix in _PREFIXES for other in rest):
        return 1
    stem = next((word.removeprefix(p) for p in _PREFIXES if word.startswith(p)), None)
    return 0 if stem in _POSITIVE else None


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def did_you_mean(value: Any, known: Iterable[Any]) -> str:
    """The end of a sentence about a value that is not there: " (did you mean 'amount'?)", or "".

    Examples
    --------
    >>> did_you_mean("Yes", ["yes", "no"]), did_you_mean("x", ["yes"])
    (" (did you mean 'yes'?)", '')
    """
    spelled = {_plain(str(item)): item for item in known}
    close = difflib.get_close_matches(_plain(str(value)), list(spelled), n=1, cutoff=0.6)
    return f" (did you mean {spelled[close[0]]!r}?)" if close else ""


def as_column(y: Any) -> NDArray[Any]:
    """One-dimensional numpy array; foreign series become numbers where they can, else objects."""
    if y is None:
        raise ValueError(
            "This estimator requires y to be passed, but the target y is None: "
            "pass labels 1 (positive), 0 (negative) and -1 or missing (unlabelled)."
        )
    if isinstance(y, np.ma.MaskedArray):
        y = np.array(y.tolist(), dtype=object)  # with None where it is masked
    elif not isinstance(getattr(y, "dtype", None), np.dtype):
        # asked of numpy, pandas would print NA, and [1, None, "a"] would be all text
        lister = getattr(y, "to_pylist", None) or getattr(y, "to_list", None)
        y = y if lister is None else lister()
        if not hasattr(y, "__len__") and not hasattr(y, "__array__"):
            raise ValueError(
                f"y must be a one-dimensional array of labels, got {type(y).__name__}."
            )
        mixed = not hasattr(y, "__array__") and any(isinstance(v, str) or v is None for v in y)
        y = np.array(list(y), dtype=object) if mixed else np.asarray(y)
    y = np.asarray(y)
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported: labels y must not be complex numbers.")
    return np.asarray(column_or_1d(y, dtype=None, warn=True))


def distinct(y: NDArray[Any]) -> tuple[list[Any], NDArray[np.intp], NDArray[np.bool_]]:
    """Distinct non-missing values, each row's place among them, and the mask of missing rows.

    A missing row points one past the last value.
    """
    if y.dtype.kind in "biuf":
        missing = np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), dtype=bool)
        if y.dtype.kind == "f" and np.isinf(y).any():
            raise ValueError("Input y contains infinity or a value too large for dtype('float64').")
        seen = np.unique(y[~missing])
        if y.dtype.kind == "f" and np.any(seen != np.floor(seen)):
            raise ValueError(
                "Unknown label type: continuous. y must hold labels, for example 1 (positive), "
                "0 (negative) and -1 or missing (unlabelled)."
            )
        index: NDArray[np.intp] = np.full(len(y), len(seen), dtype=np.intp)
        if len(seen) <= 8:  # one comparison per value beats sorting the rows, by far
            for place, value in enumerate(seen):
                index[y == value] = place
        else:
            index[~missing] = np.searchsorted(seen, y[~missing])
        return seen.tolist(), index, missing  # plain Python values, for messages and classes
    places: dict[Any, int] = {}
    index = np.empty(len(y), dtype=np.intp)
    for i, value in enumerate(y.tolist()):
        if _is_missing(value):
            index[i] = -1
        else:
            try:
                index[i] = places.setdefault(value, len(places))
            except TypeError:
                raise ValueError(
                    f"y holds a {type(value).__name__} in row {i}; labels must be numbers, "
                    "booleans or strings."
                ) from None
    missing = index == -1
    index[missing] = len(places)
    numbers = [v for v in places if isinstance(v, (float, np.floating))]
    if any(np.isinf(v) for v in numbers):
        raise ValueError("Input y contains infinity or a value too large for dtype('float64').")
    if any(v != int(v) for v in numbers):
        raise ValueError("Unknown label type: continuous. y must hold labels, not measurements.")
    return list(places), index, missing


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA refuses to be a truth value
        return True


def as_list(label: Any) -> list[Any]:
    if label is None:
        return []
    if isinstance(label, (str, bytes)) or not isinstance(label, Iterable):
        return [label]
    return list(label)


def label_codes(estimator: Any) -> dict[str, Any]:
    """How an estimator or splitter reads labels."""
    names = ("positive_label", "negative_label", "unlabeled_label")
    codes = {name: getattr(estimator, name) for name in names}
    return codes | {"unclear": "sorted"}  # scikit-learn's rule for the classes of any classifier


def refuse_calibration() -> None:
    """Raise if scikit-learn's calibration is calling: it takes -1 for a third class.

    It fits with the labels as they are, and then holds the scores against three classes of which
    the model has two: probabilities of the wrong class, without a word. What it is given cannot
    know that; only the caller can.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "sklearn.calibration":
            raise InputError(
                "CalibratedClassifierCV takes unlabelled rows for a third class: fit the model "
                "first, and calibrate FrozenEstimator(model) on the labelled rows."
            )
        frame = frame.f_back
