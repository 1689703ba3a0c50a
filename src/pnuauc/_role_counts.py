"""How many rows of each role there are: all that most remarks about labels need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Counted", "RoleCounts"]


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
    """How many rows of each role a table has, wherever they are.

    Attributes
    ----------
    n_positive, n_negative, n_unlabeled : int
    positive_label, negative_label, announcement
        As in :class:`pnuauc.labels.Roles`.
    """

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
