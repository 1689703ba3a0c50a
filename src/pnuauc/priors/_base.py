"""What every class-prior estimator shares: parameters, reading of y, refusal, fitted names."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length

from pnuauc._prior import ClassPrior
from pnuauc._ranges import check_range, read_rows, rows_differ
from pnuauc._warn import warn
from pnuauc.exceptions import PnuaucWarning, PriorNotIdentifiedError
from pnuauc.labels import Roles, read_roles

__all__ = ["BasePrior", "Estimate", "take"]

#: What ``_estimate`` hands to ``fit``: the prior and its diagnostics.
Estimate = tuple[ClassPrior, dict[str, Any]]


@dataclass(kw_only=True, eq=False, repr=False)
class BasePrior(BaseEstimator):
    """``fit(X, y)`` -> ``estimate_``, ``prior_``, ``interval_``, ``std_error_``, ``diagnostics_``.

    Subclasses write ``_estimate(X, roles)``.
    """

    # scikit-learn reads the parameters from the __init__ that dataclass writes
    max_rows: int | None = None
    level: float = 0.9
    on_unidentified: str = "raise"
    positive_label: Any = None
    negative_label: Any = None
    unlabeled_label: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> BasePrior:
        """Estimate the share of positives among the unlabelled rows.

        Parameters
        ----------
        X : ndarray (float32 or float64) or CSR matrix, shape (n, d)
        y : array-like, shape (n,), or Roles
            1 positive, 0 negative, -1 or missing unlabelled; other codes by the ``*_label``
            parameters.

        Returns
        -------
        self
        """
        self._check_parameters()
        X = read_rows(self, X, ensure_min_samples=2)
        check_range(X)
        roles = read_roles(
            y,
            positive_label=self.positive_label,
            negative_label=self.negative_label,
            unlabeled_label=self.unlabeled_label,
        )
        check_consistent_length(X, roles.codes)
        self._require(roles)
        if not rows_differ(X):
            raise PriorNotIdentifiedError(
                "All rows of X are equal, so they carry nothing that could tell how many of the "
                "unlabelled ones are positive: add columns that differ between rows.",
                about="prior",
            )
        estimate, diagnostics = self._estimate(X, roles)
        if estimate.doubt is not None:
            self._refuse(estimate.doubt)
        self.estimate_ = replace(estimate, source=f"estimated by {type(self).__name__}")
        self.prior_ = estimate.value
        self.std_error_ = estimate.std_error
        self.interval_ = estimate.interval
        self.diagnostics_ = {
            **diagnostics,
            "identified": estimate.identified,
            "doubt": estimate.doubt,
            "n_positive": roles.n_positive,
            "n_negative": roles.n_negative,
            "n_unlabeled": roles.n_unlabeled,
            "level": self.level,
        }
        return self

    def _require(self, roles: Roles) -> None:
        """Raise MissingRoleError unless the roles this estimator needs have two rows each."""
        roles.require("positive", "negative", "unlabeled", purpose=type(self).__name__, at_least=2)

    @abstractmethod
    def _estimate(self, X: Any, roles: Roles) -> Estimate:
        """The prior with its interval at ``level``, and diagnostics.

        The input is valid, and every role that is needed has two rows or more.
        """

    def _check_parameters(self) -> None:
        if self.max_rows is not None and self.max_rows < 2:
            raise ValueError(f"max_rows must be at least 2 or None, got {self.max_rows}.")
        if not 0 < self.level < 1:
            raise ValueError(f"level must lie strictly between 0 and 1, got {self.level}.")
        if self.on_unidentified not in ("raise", "warn", "ignore"):
            raise ValueError(
                'on_unidentified must be "raise", "warn" or "ignore", '
                f"got {self.on_unidentified!r}."
            )

    def _refuse(self, doubt: str) -> None:
        if self.on_unidentified == "raise":
            raise PriorNotIdentifiedError(doubt, about="prior")
        if self.on_unidentified == "warn":
            warn(doubt, PnuaucWarning)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def take(X: Any, n: int | None, rng: np.random.RandomState) -> Any:
    """At most ``n`` rows, uniformly at random without replacement, in their order."""
    if n is None or X.shape[0] <= n:
        return X
    return X[np.sort(rng.choice(X.shape[0], size=n, replace=False))]
