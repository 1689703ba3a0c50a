"""Held-out scores of every member on the same folds, and the weights that rest on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, ndtr, ndtri

from pnuauc._utils.arrays import Floats, Indices
from pnuauc.committee.members import Member, Situation, Training
from pnuauc.committee.models import Seat, score_parts
from pnuauc.committee.views import Look, View
from pnuauc.core.rows import row_groups
from pnuauc.evaluation.heldout import HeldOut, row_worth, standardize
from pnuauc.tuning import COMMITTEE

__all__ = ["cross_scores", "expected_distance", "weigh", "weigh_apart"]


@dataclass(frozen=True, eq=False)
class FoldModels:
    """The models of one fold on its scale, one member a column."""

    view: View
    seats: list[Seat]

    def score(self, X: Any, used: Sequence[bool] | None = None) -> Floats:
        """Scores of every member, shape (n, n_members); 0 of those that are not ``used``."""
        look = Look(X, self.view)
        chosen = [True] * len(self.seats) if used is None else used
        unused = np.zeros(len(look))
        pairs = zip(self.seats, chosen, strict=True)
        return np.column_stack([seat.score(look) if own else unused for seat, own in pairs])


def cross_scores(
    training: Training,
    folds: list[list[Any]],
    *,
    groups: Indices | None = None,
    weights: Floats | None = None,
    max_reference: int = 2000,
) -> HeldOut:
    """Score each fold by the parts that were fitted without it.

    Parameters
    ----------
    training : Training
    folds : for each member a list of its parts without each fold
    groups : ndarray of int, shape (n,), optional
        Of all rows; None: identical rows belong together.
    weights : ndarray, shape (n,), optional
        1 / odds of having been labelled.
    max_reference : unlabelled rows of each fold at most

    With both classes labelled, no member has an unlabelled row for a negative, and each fold's
    models score unlabelled rows of all folds to count places among; else those of the fold itself,
    and places are counted among the rows of all folds so scored. So it is, too, where groups hold
    both labelled and unlabelled rows: models know the latter from the former. Without unlabelled
    rows the fold's labelled ones take their place: the others are known to its models.
    """
    rows_of = training.folds.rows
    both = all(role in rows_of for role in "PNU")
    n_folds = training.folds.n_folds
    drawn = [_thinned(rows, max_reference) for rows in rows_of.get("U", [])[:n_folds]]
    every = np.concatenate(drawn) if drawn else np.empty(0, dtype=np.intp)
    if groups is not None and drawn:
        known = np.concatenate([part for role in "PN" for part in rows_of.get(role, [])])
        both = both and not np.isin(groups[every], groups[known]).any()
    every = _thinned(every, max_reference)
    alike = row_groups(training.look.raw) if groups is None else groups
    number, codes, scores, fold, reference, models = [], [], [], [], [], []
    for k in range(n_folds):
        held = {role: rows_of[role][k] for role in "PN" if role in rows_of}
        own = drawn[k] if drawn else np.empty(0, dtype=np.intp)
        others = every if both else own
        if not drawn:
            others = np.concatenate(list(held.values()))
        parts = [member[k] for member in folds]
        # a fold's own unlabelled rows may be among the others
        wanted, place = np.unique(
            np.concatenate([*held.values(), own, others]), return_inverse=True
        )
        look = training.look.take(wanted)
        found = np.column_stack([score_parts(each, look) for each in parts])[place]
        n_own = sum(map(len, held.values())) + len(own)
        center, spread = standardize(found[n_own:] if len(others) else found)
        found = (found - center) / spread
        number += [*held.values(), own]
        codes += [np.full(len(index), int(role == "P")) for role, index in held.items()]
        codes.append(np.full(len(own), -1))
        scores.append(found[:n_own])
        fold.append(np.full(n_own, k))
        reference.append(found[n_own:])
        scales = zip(parts, center.tolist(), spread.tolist(), strict=True)
        models.append(FoldModels(look.view, [Seat("", own, 1.0, *scale) for own, *scale in scales]))
    rows, roles = np.concatenate(number), np.concatenate(codes).astype(np.int8)
    values = np.concatenate(scores)
    return HeldOut(
        rows,
        roles,
        np.concatenate(fold),
        values,
        reference,
        not both,
        row_worth(roles, alike[rows], values, None if weights is None else weights[rows]),
        alike[rows],
        models,
    )


def _thinned(rows: Indices, at_most: int) -> Indices:
    """Evenly spaced; the folds were dealt at random."""
    return rows[:: -(-len(rows) // at_most)] if len(rows) > at_most else rows


def weigh(
    members: Sequence[Member], held_out: HeldOut | None, situation: Situation
) -> tuple[Floats, bool]:
    """Weights of the members, shape (n_members,), and whether held-out rows had a say in them."""
    weights = _own(members)
    tried = _on_trial(members, situation)
    if held_out is None or len(members) < 2 or not (situation.leans or situation.many or tried):
        return weights, False
    if situation.many:
        return _learned(held_out, len(members)), True
    if situation.leans and len(tried) < len(members):
        weights = _leaning(held_out, weights, tried)
    return _tried(members, held_out, weights, tried), True


def weigh_apart(members: Sequence[Member], held_out: HeldOut, situation: Situation) -> Floats:
    """For each fold weights that its rows had no part in, shape (n_folds, n_members).

    Everything that is stated of the committee rests on these. Members have their own weights,
    those on trial what the other folds' rows give them; with many labels these rows weigh all.
    Where labels are too few for that, weights that lean do not, not even on the other folds: the
    models that scored these were fitted to this one.
    """
    apart = np.tile(_own(members), (held_out.n_folds, 1))
    tried = _on_trial(members, situation)
    if len(members) < 2 or not (situation.many or tried):
        return apart
    for k in range(held_out.n_folds):
        rest = held_out.without(k)
        if not situation.many:
            apart[k] = _tried(members, rest, apart[k], tried)
        elif {0, 1} <= set(rest.codes.tolist()):
            apart[k] = _learned(rest, len(members))
    return apart


def _own(members: Sequence[Member]) -> Floats:
    return np.array([member.weight for member in members])


def _on_trial(members: Sequence[Member], situation: Situation) -> list[int]:
    """Members whose weight held-out rows decide; text may say nothing beside columns."""
    mixed = situation.n_features > 0
    return [i for i, m in enumerate(members) if m.on_trial or (m.reads_latent and mixed)]


def _auc_of(held_out: HeldOut, weights: Floats) -> float:
    padded = np.zeros(held_out.scores.shape[1])
    padded[: len(weights)] = weights
    return held_out.auc(held_out.places(np.tile(padded, (held_out.n_folds, 1))))


def _leaning(held_out: HeldOut, weights: Floats, tried: list[int]) -> Floats:
    """Fixed weights, each times exp((AUC of the member - mean AUC) / leaning).

    AUCs of ten positives scatter by several points, hence the small slope: a member that is level
    keeps its weight, one that fails on this table has little of it. Those ``tried`` are left alone.
    """
    others = [i for i in range(len(weights)) if i not in tried]
    alone = np.eye(len(weights))
    auc = np.array([_auc_of(held_out, alone[i]) for i in others])
    most = COMMITTEE.most_leaning.value
    out = weights.copy()
    out[others] *= np.exp(np.clip((auc - auc.mean()) / COMMITTEE.leaning.value, -most, most))
    return out


def _tried(
    members: Sequence[Member], held_out: HeldOut, weights: Floats, tried: list[int]
) -> Floats:
    """The same, but for members on trial: exp((AUC alone - AUC of the others) / tolerance).

    A weight below the least counts as 0, one above the most as that: a hundred labels can say that
    much, since both AUCs come from the same rows. Members that read text are weighed together
    against the sum of all others, as the linear discriminant of the two sums would: each by how
    far positives and negatives are apart on it.
    """
    text = [i for i in tried if members[i].reads_latent]
    columns, beside = weights.copy(), np.zeros(len(weights))
    columns[text], beside[text] = 0.0, weights[text]
    for i in tried:
        if i not in text:
            columns[i] = _ahead(held_out, columns, i)
    if not text:
        return columns
    out = _apart(held_out, columns, 0.0) + _apart(held_out, beside, COMMITTEE.idle_text.value)
    return np.asarray(out * weights.sum() / out.sum())


def _ahead(held_out: HeldOut, weights: Floats, tried: int) -> float:
    """Weight of a member beside the others, by their AUCs."""
    low, high = COMMITTEE.trial_weights.value
    alone, rest = np.zeros(len(weights)), weights.copy()
    alone[tried], rest[tried] = 1.0, 0.0
    gap = _auc_of(held_out, alone) - _auc_of(held_out, rest)
    weight = min(float(np.exp(gap / COMMITTEE.tolerance.value)), high)
    return weight if weight >= low else 0.0


def _apart(held_out: HeldOut, weights: Floats, idle: float) -> Floats:
    """The weights times the expected distance of the classes in deviations of their sum.

    Held-out rows say d = sqrt(2) ndtri(AUC) with the variance discount (1 / n_P + 1 / n_N).
    """
    worth = [held_out.worth[held_out.codes == code].sum() for code in (1, 0)]
    rows = [n or np.count_nonzero(held_out.codes == -1) for n in worth]
    variance = held_out.discount * sum(1.0 / n for n in rows)
    d = np.sqrt(2.0) * ndtri(np.clip(_auc_of(held_out, weights), 0.02, 0.98))
    reference = np.concatenate(held_out.reference)[:, : len(weights)]
    spread = float((reference @ weights).std()) or 1.0
    return weights * expected_distance(float(d), variance, idle) / spread


def expected_distance(d: float, variance: float, idle: float) -> float:
    """E[t | d] for d ~ N(t, variance); t is 0 with probability ``idle``, otherwise |N(0, 1)|."""
    mean, deviation = d / (1.0 + variance), np.sqrt(variance / (1.0 + variance))
    z = mean / deviation
    # densities of d, positive t against 0, times their probabilities
    some = (1.0 - idle) * 2.0 * ndtr(z) * deviation * np.exp(0.5 * z * z)
    expected = mean + deviation * np.exp(-0.5 * z * z) / (np.sqrt(2.0 * np.pi) * ndtr(z))
    return float(expected * some / (some + idle))


def _learned(held_out: HeldOut, m: int) -> Floats:
    """Weights, not negative, of the logistic regression of the label on held-out scores.

    argmin_w sum_i v_i log(1 + exp(-t_i (w's_i + b))) + (pull / 2) |w - mean w|^2, balanced by
    class: hundreds of labels can say that one member is much the best, five cannot.
    """
    own = held_out.labeled
    S, t = held_out.scores[own, :m], np.where(held_out.codes[own] == 1, 1.0, -1.0)
    worth = held_out.worth[own]
    total = worth.sum()
    share = worth * np.where(
        t > 0, 0.5 * total / worth[t > 0].sum(), 0.5 * total / worth[t < 0].sum()
    )
    pull = COMMITTEE.pull.value

    def loss(parameters: Floats) -> tuple[float, Floats]:
        w, b = parameters[:m], parameters[m]
        margin = t * (S @ w + b)
        away = w - w.mean()
        value = float(share @ np.logaddexp(0.0, -margin)) + 0.5 * pull * float(away @ away)
        slope = -share * t * expit(-margin)
        return value, np.append(S.T @ slope + pull * away, slope.sum())

    start = np.append(np.full(m, 1.0 / m), 0.0)
    bounds = [(0.0, None)] * m + [(None, None)]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x[:m]
    return np.asarray(found * m / found.sum()) if found.sum() > 0 else np.ones(m)
