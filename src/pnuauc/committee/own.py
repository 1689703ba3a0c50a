"""Estimators of the user's as members of the committee, or in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from pnuauc.committee.members import Member, Parts, Rows, Situation, Training, against
from pnuauc.committee.models import Foreign, Part
from pnuauc.estimators import AUCScoreMixin
from pnuauc.exceptions import InputError
from pnuauc.labels import Roles

__all__ = ["Own"]


@dataclass(eq=False)
class Own(Member):
    """An estimator of the user's: what it is given is what it would be given without this package.

    Labelled rows; with one class labelled, that class against (a draw of) U. Rows with 1, 0 and -1
    where it is known to take these: estimators of this package and of sklearn.semi_supervised. It
    is cloned, and needs ``fit`` and ``decision_function`` or ``predict_proba``.
    """

    reason: str = "your estimator"
    estimator: Any = None

    def __post_init__(self) -> None:
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type):
            raise InputError(
                f"{self.name} is no estimator: a classifier with fit and predict_proba or "
                "decision_function is needed, not a class."
            )

    def why(self, situation: Situation) -> str:
        """Also of a table of text alone: it reads all columns."""
        return self.reason

    def _rows(self, training: Training) -> tuple[Rows, NDArray[np.int8]]:
        ours = isinstance(self.estimator, AUCScoreMixin)
        theirs = type(self.estimator).__module__.startswith("sklearn.semi_supervised")
        rows, codes = training.classes()
        if not (ours or (theirs and 0 < codes.sum() < len(codes))):
            return against(training)
        others = training.rows("U")
        return np.concatenate([rows, others]), np.pad(codes, (0, len(others)), constant_values=-1)

    def fit(self, training: Training) -> Parts:
        rows, codes = self._rows(training)
        reads = "gapped" if _takes_gaps(self.estimator) else "complete"
        model = _seeded(clone(self.estimator), training.seed)
        y = Roles(codes) if isinstance(model, AUCScoreMixin) else codes.astype(np.int64)
        try:
            model.fit(getattr(training.look.take(rows), reads), y)
        except Exception as error:
            said = str(error).strip().split("\n")[0] or type(error).__name__
            raise InputError(f"{self.name} could not be fitted: {said}") from error
        return (Part(reads, Foreign(self.name, model)),)


def _takes_gaps(estimator: Any) -> bool:
    try:
        return bool(get_tags(estimator).input_tags.allow_nan)
    except Exception:  # not all that has fit has tags
        return False


def _seeded(model: Any, seed: int) -> Any:
    """With a seed where it has none: one random_state gives one result."""
    unset = [
        name
        for name, value in model.get_params().items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]
    return model.set_params(**dict.fromkeys(unset, seed))
