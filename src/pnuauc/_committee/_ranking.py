"""From members to a ranking: fitted, weighted, brought to one scale and summed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from pnuauc._committee._held_out import (
    HeldOut,
    cross_scores,
    in_all,
    leaning_weights,
    learned_weights,
    trial_weight,
)
from pnuauc._committee._members import Member, Situation, Training
from pnuauc._committee._models import Committee, Part, Seat, score_parts
from pnuauc._committee._views import Look
from pnuauc._prior import ClassPrior
from pnuauc.labels import Roles

__all__ = [
    "RankingOnly",
    "fit_members",
    "seated",
    "situation_of",
    "some_rows",
    "weigh",
    "weigh_apart",
]

Floats: TypeAlias = NDArray[np.float64]
Parts: TypeAlias = tuple[Part, ...]

#: Folds by which a refit weighs members, and unlabelled rows that it takes a fold's AUC and the
#: mean and spread of a member's scores from.
_TRIAL_FOLDS, _TRIAL_ROWS, _SPREAD_ROWS = 3, 400, 2000


def situation_of(X: Any, roles: Roles) -> Situation:
    """What there is to learn from."""
    is_sparse = sparse.issparse(X)
    non_negative = bool(is_sparse and (not X.nnz or X.data.min() >= 0))
    return Situation(
        roles.n_positive,
        roles.n_negative,
        roles.n_unlabeled,
        X.shape[1],
        is_sparse,
        non_negative,
    )


def some_rows(rows: NDArray[np.intp], at_most: int, rng: np.random.RandomState) -> Any:
    """All rows, or a draw of them in their order."""
    if len(rows) <= at_most:
        return rows
    return np.sort(rng.choice(rows, at_most, replace=False))


def fit_members(
    members: Sequence[Member],
    training: Training,
    cv: int,
    tick: Callable[[str, float], None] = lambda name, share: None,
) -> tuple[list[Parts], list[list[Parts]]]:
    """Parts of every member, and with ``cv`` its parts without each fold."""
    whole: list[Parts] = []
    folds: list[list[Parts]] = []
    for i, member in enumerate(members):
        tick(member.name, i / len(members))
        if cv:
            parts, without = member.fit_both(training)
            folds.append(without)
        else:
            parts = member.fit(training)
        whole.append(parts)
    return whole, folds


def weigh(
    members: Sequence[Member],
    held_out: HeldOut | None,
    situation: Situation,
    known: ClassPrior | None,
) -> tuple[Floats, bool]:
    """Weights of the members, and whether held-out rows had a say in them."""
    weights = _own(members)
    tried = _on_trial(members)
    if held_out is None or len(members) < 2 or not (situation.leans or situation.many or tried):
        return weights, False
    if situation.many:
        return learned_weights(held_out), True
    if situation.leans:
        weights = leaning_weights(held_out, weights, tried, _settled(known))
    return _tried(held_out, weights, tried, known), True


def weigh_apart(
    members: Sequence[Member],
    held_out: HeldOut,
    situation: Situation,
    known: ClassPrior | None,
) -> Floats:
    """For each fold weights that its rows had no part in, shape (n_folds, n_members).

    What is said of the committee's held-out scores (places, AUCs) rests on these. Members have
    their own weights, those on trial what the other folds' rows give them; with many labels these
    rows weigh all. Where labels are too few for that, weights that lean do not, not even on the
    other folds: the models that scored these were fitted to this one. On draws with 10 to 20
    positives (docs/auto.md) leaning so is worth .6 points of AUC on U and looks worth 1.5.
    """
    apart = in_all(held_out, _own(members))
    for k in range(held_out.n_folds if len(members) > 1 else 0):
        rest = held_out.without(k)
        if {0, 1} <= set(rest.codes.tolist()):
            apart[k] = (
                learned_weights(rest)
                if situation.many
                else _tried(rest, apart[k], _on_trial(members), known)
            )
    return apart


def _own(members: Sequence[Member]) -> Floats:
    return np.array([member.weight for member in members])


def _on_trial(members: Sequence[Member]) -> list[int]:
    return [i for i, member in enumerate(members) if member.on_trial]


def _settled(known: ClassPrior | None) -> ClassPrior | None:
    """Without its uncertainty: members are compared, no interval is asked for."""
    return known if known is None or not known.identified else ClassPrior.known(known.value)


def _tried(
    held_out: HeldOut, weights: Floats, tried: list[int], known: ClassPrior | None
) -> Floats:
    """The same, but for the weights of members on trial, one after the other."""
    weights = weights.copy()
    for i in tried:
        weights[i] = trial_weight(held_out, weights, i, _settled(known))
    return weights


def seated(
    members: Sequence[Member], whole: Sequence[Parts], weights: Floats, look: Look
) -> tuple[list[Seat], Floats]:
    """Seats, mean and spread of each over the rows looked at; and the sum there, shape (n,)."""
    seats, total = [], np.zeros(len(look))
    for member, parts, weight in zip(members, whole, weights, strict=True):
        scores = score_parts(parts, look)
        seat = Seat(
            member.name, parts, float(weight), float(scores.mean()), float(scores.std()) or 1.0
        )
        seats.append(seat)
        total += seat.standardised(scores)
    return seats, total


@dataclass(eq=False, repr=False)
class RankingOnly(BaseEstimator):
    """What a committee comes to on other rows, scores alone: for refits without a fold.

    The same members on the same rule; nothing is made of held-out rows beyond the weights, which
    rest on three folds instead of five. So that they are honest, they are weighed anew without
    the rows that the refit lacks. Where weights only lean (no member on trial) they stay fixed:
    folds of a refit would cost three times the refit.

    Parameters
    ----------
    committee : AutoAUCClassifier
    weights : dict of name -> weight, optional
        Given weights; members without one are left out.

    Attributes
    ----------
    scorer_ : Committee
    weights_ : dict of name -> weight
    """

    committee: Any = None
    weights: Mapping[str, float] | None = None

    def fit(self, X: Any, y: Any) -> RankingOnly:
        """Fit to rows X, shape (n, d), and labels y, shape (n,)."""
        committee = clone(self.committee)
        rng = check_random_state(committee.random_state)
        X, roles = committee._read(X, y, rng)
        situation = situation_of(X, roles)
        members = [member for member, _ in committee._chosen(situation)]
        trial = self.weights is None and (
            situation.many or any(member.on_trial for member in members)
        )
        if self.weights is not None:
            members = [member for member in members if self.weights.get(member.name, 0.0) > 0]
        committee.set_params(cv=_TRIAL_FOLDS if trial else 0)
        training, known = committee._training(X, roles, rng, None)
        whole, folds = fit_members(members, training, committee.cv)
        held_out = cross_scores(training, folds, _TRIAL_ROWS) if trial else None
        weights, _ = weigh(members, held_out, situation, known)
        if self.weights is not None:
            weights = np.array([self.weights[member.name] for member in members])
        rows = roles.unlabeled if roles.n_unlabeled else np.arange(len(roles))
        look = training.look.take(some_rows(rows, _SPREAD_ROWS, rng))
        seats, _ = seated(members, whole, weights, look)
        self.scorer_ = Committee(training.look.view, tuple(seats), np.zeros(0))
        self.weights_ = {seat.name: seat.weight for seat in seats}
        return self

    def decision_function(self, X: Any) -> Floats:
        """Scores, shape (n,)."""
        return self.scorer_.score(X)
