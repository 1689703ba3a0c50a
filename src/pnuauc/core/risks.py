"""The AUC risks of the paper, as data: a risk is a weighted list of parts, a part a list of terms.

Every part is an unbiased estimate of the same number, the PN risk

    R_PN = E_P E_N l(g(x) - g(x')),
    R_PU = [E_P E_U l(g(x) - g(x')) - prior E_P E_P' l(g(x) - g(x'))] / (1 - prior),
    R_NU = [E_U E_N l(g(x) - g(x')) - (1 - prior) E_N E_N' l(g(x) - g(x'))] / prior,

where ``prior`` is the share of positives *among the unlabelled rows*. From scores a risk works
for every loss; from moments, for the squared loss, it is a quadratic form in the coefficients.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from pnuauc._utils.arrays import Floats
from pnuauc.core import pairs
from pnuauc.core.losses import Loss, get_loss
from pnuauc.core.moments import Moments
from pnuauc.exceptions import MissingRoleError
from pnuauc.labels import ROLES

_WORDS = {role.letter: role.word for role in ROLES}


@dataclass(frozen=True)
class Term:
    """coefficient * mean of l over pairs (first, second); within one role pairs i = i' are out."""

    coefficient: float
    first: str
    second: str


@dataclass(frozen=True)
class Part:
    """weight * (sum of terms): one unbiased estimate of the PN risk and its share."""

    name: str
    weight: float
    terms: tuple[Term, ...]

    @property
    def bounded(self) -> bool:
        """Whether no term is subtracted: then a non-negative loss gives a non-negative part."""
        return all(term.coefficient >= 0 for term in self.terms)


@dataclass(frozen=True, eq=False)
class QuadraticForm:
    """constant - 2 w'linear + w'quadratic w.

    Parameters
    ----------
    constant : float
    linear : ndarray, shape (b,)
    quadratic : ndarray, shape (b, b), or LinearOperator of that shape
        Symmetric; may be indefinite on small samples.
    convex : bool
        True when the form is certain to be semi-definite by its signs alone.
    """

    constant: float
    linear: Floats
    quadratic: Any
    convex: bool = False

    def is_semidefinite(self) -> bool:
        """Whether the (dense) quadratic part is positive semi-definite to rounding.

        Checked by a Cholesky factorization, at a fifteenth of the cost of the eigenvalues.
        """
        shifted = self.quadratic.copy()
        shifted.flat[:: len(shifted) + 1] += 1e-10 * np.abs(np.diag(self.quadratic)).max()
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            return False
        return True

    def value(self, coef: NDArray[Any]) -> float:
        """Value at ``coef``, shape (b,)."""
        return float(self.constant - 2 * coef @ self.linear + coef @ (self.quadratic @ coef))


@dataclass(frozen=True)
class Risk:
    """A named combination of parts, with what it takes to evaluate it."""

    name: str
    parts: tuple[Part, ...]

    @property
    def roles(self) -> str:
        """Letters of the roles that must have rows, in the order P, N, U."""
        used = {
            role for part in self.parts for term in part.terms for role in (term.first, term.second)
        }
        return "".join(role for role in "PNU" if role in used)

    @functools.cached_property
    def terms(self) -> tuple[Term, ...]:
        """All terms with the weights of their parts multiplied in."""
        return tuple(
            Term(part.weight * term.coefficient, term.first, term.second)
            for part in self.parts
            for term in part.terms
        )

    def _lacking(self, counts: Mapping[str, float]) -> Iterator[tuple[str, int]]:
        """(role, rows that this risk needs of it) for every role that has fewer."""
        for term in self.terms:
            need = 2 if term.first == term.second else 1
            for role in (term.first, term.second):
                if counts.get(role, 0) < need:
                    yield role, need

    def has_roles(self, counts: Mapping[str, float]) -> bool:
        """Whether every role has the rows that this risk needs."""
        return not any(self._lacking(counts))

    def check_roles(self, counts: Mapping[str, float]) -> None:
        """One clear error if a role that this risk needs has too few rows for it."""
        for role, need in self._lacking(counts):
            n = counts.get(role, 0)
            found = "none" if n == 0 else f"only {n:g}"
            present = ", ".join(f"{counts.get(r, 0):g} {_WORDS[r]}" for r in "PNU")
            raise MissingRoleError(
                f"The {self.name} risk needs at least {need} {_WORDS[role]} "
                f"row{'s' if need > 1 else ''} and there is {found}: give more rows of that "
                f"class or choose another risk (present: {present})."
            )

    def value(
        self,
        loss: str | Loss,
        scores: Mapping[str, ArrayLike],
        weights: Mapping[str, Any] | None = None,
    ) -> float:
        """Empirical risk from scores by role, {"P": (n_P,), "N": ..., "U": ...}, for any loss."""
        loss, samples = self._inputs(loss, scores, weights)
        total = 0.0
        for term in self.terms:
            a, b = samples[term.first], samples[term.second]
            mean = pairs.within(loss, a) if a is b else pairs.between(loss, a, b)
            total += term.coefficient * mean
        return float(total)

    def part_gradients(
        self,
        loss: str | Loss,
        scores: Mapping[str, ArrayLike],
        weights: Mapping[str, Any] | None = None,
    ) -> list[tuple[Part, float, dict[str, Floats]]]:
        """For each part (before its weight): value, and gradient with respect to the scores."""
        loss, samples = self._inputs(loss, scores, weights)
        results = []
        for part in self.parts:
            value = 0.0
            gradient = {role: np.zeros(len(samples[role].scores)) for role in self.roles}
            for term in part.terms:
                a, b = samples[term.first], samples[term.second]
                sides = (a,) if a is b else (a, b)
                over_pairs = pairs.within_gradient if a is b else pairs.between_gradient
                mean, *slopes = over_pairs(loss, *sides)
                value += term.coefficient * mean
                for role, slope in zip((term.first, term.second), slopes, strict=False):
                    gradient[role] += term.coefficient * slope
            results.append((part, value, gradient))
        return results

    def _inputs(
        self, loss: str | Loss, scores: Mapping[str, ArrayLike], weights: Mapping[str, Any] | None
    ) -> tuple[Loss, dict[str, pairs.Sample]]:
        given = weights or {}
        self.check_roles(
            {r: len(s) if given.get(r) is None else np.sum(given[r]) for r, s in scores.items()}  # type: ignore[arg-type]
        )
        # read once, as most roles are in several terms
        return get_loss(loss), {r: pairs.read(scores[r], given.get(r), r) for r in self.roles}

    def quadratic_form(self, moments: Mapping[str, Moments]) -> QuadraticForm:
        """The empirical squared-loss risk as a function of w, from moments by role.

        Between roles A, B with d = mean_A - mean_B:  1 - 2 w'd + w'(C_A + C_B + dd')w.
        Within a role:  1 + 2 w' scatter/(n-1) w.
        """
        return quadratic_forms([self], moments)[0]


_PAIRS = (("P", "N"), ("P", "U"), ("U", "N"))


def quadratic_forms(risks: Sequence[Risk], moments: Mapping[str, Moments]) -> list[QuadraticForm]:
    """The forms of many risks on the same rows.

    Each quadratic part is a combination of the same few matrices (a scatter per role, dd' per
    pair of roles), so one small matrix product assembles them all.
    """
    roles = [role for role in "PNU" if role in moments]
    between = [pair for pair in _PAIRS if set(pair) <= set(roles)]
    steps = [moments[a].mean - moments[b].mean for a, b in between]
    shares, constants = [], []
    for risk in risks:
        risk.check_roles({role: m.n for role, m in moments.items()})
        scatter, outer = dict.fromkeys(roles, 0.0), dict.fromkeys(between, 0.0)
        for term in risk.terms:
            if term.first == term.second:
                scatter[term.first] += 2.0 * term.coefficient / (moments[term.first].n - 1.0)
                continue
            outer[term.first, term.second] += term.coefficient
            for role in (term.first, term.second):
                scatter[role] += term.coefficient / moments[role].n
        shares.append([*scatter.values(), *outer.values()])
        constants.append(sum(term.coefficient for term in risk.terms))
    weights = np.array(shares)
    linear = weights[:, len(roles) :] @ np.array(steps)
    scatters = [moments[role].scatter for role in roles]
    quadratic = _assemble(weights, scatters, steps)
    convex = [bool((row >= 0).all()) for row in weights]
    return [
        QuadraticForm(*parts) for parts in zip(constants, linear, quadratic, convex, strict=True)
    ]


def _assemble(weights: Floats, scatters: list[Any], steps: list[Floats]) -> Any:
    """sum weight * scatter + sum weight * dd' for every row of weights: matrices or operators."""
    if not any(isinstance(scatter, LinearOperator) for scatter in scatters):
        b = len(steps[0])
        pieces = [*scatters, *(np.outer(step, step) for step in steps)]
        return (weights @ np.reshape(pieces, (len(pieces), b * b))).reshape(-1, b, b)
    operators = [aslinearoperator(scatter) for scatter in scatters]
    outer = np.array(steps)
    forms = []
    for row in weights:
        used = [share * one for share, one in zip(row, operators, strict=False) if share]
        between = row[len(operators) :, None] * outer
        ranks = aslinearoperator(outer.T) @ aslinearoperator(between)
        forms.append(functools.reduce(operator.add, used, ranks))
    return forms


def check_prior(prior: Any) -> float:
    """The prior as a float strictly between 0 and 1, or one clear sentence."""
    if isinstance(prior, bool) or not isinstance(prior, Real) or not 0.0 < float(prior) < 1.0:
        raise ValueError(
            f"prior must be a number strictly between 0 and 1, the share of positives among the "
            f"unlabelled rows; got {prior!r}."
        )
    return float(prior)


def check_eta(eta: Any) -> float:
    """The weight of U as a float in [-1, 1], or one clear sentence."""
    if isinstance(eta, bool) or not isinstance(eta, Real) or not -1.0 <= float(eta) <= 1.0:
        raise ValueError(f"eta must be a number in [-1, 1]; got {eta!r}.")
    return float(eta)


def pn_risk() -> Risk:
    """R_PN: positives against negatives."""
    return Risk("PN", (Part("PN", 1.0, (Term(1.0, "P", "N"),)),))


def pu_risk(prior: float) -> Risk:
    """R_PU: positives against unlabelled rows, corrected; ``prior`` is that inside U."""
    rest = 1.0 - check_prior(prior)
    terms = Term(1.0 / rest, "P", "U"), Term(-prior / rest, "P", "P")
    return Risk("PU", (Part("PU", 1.0, terms),))


def nu_risk(prior: float) -> Risk:
    """R_NU: unlabelled rows against negatives, corrected; ``prior`` is that inside U.

    The paper prints H_NU with (1 - prior)/prior in front; the risk itself needs 1/prior.
    """
    rest = 1.0 - check_prior(prior)
    terms = Term(1.0 / prior, "U", "N"), Term(-rest / prior, "N", "N")
    return Risk("NU", (Part("NU", 1.0, terms),))


def pnu_risk(eta: float, prior: float | None = None) -> Risk:
    """R_PNU = (1 - eta) R_PN + eta R_PU for eta >= 0, (1 + eta) R_PN - eta R_NU for eta < 0.

    eta in [-1, 1]; ``prior`` is that inside U; eta = 0 uses labelled rows only and needs none.
    Parts of weight zero are left out, so that a risk asks only for the rows it uses.
    """
    eta = check_eta(eta)
    parts = [replace(part, weight=1.0 - abs(eta)) for part in pn_risk().parts]
    if eta:
        other = (pu_risk if eta > 0 else nu_risk)(check_prior(prior))
        parts += [replace(part, weight=abs(eta)) for part in other.parts]
    return Risk("PNU", tuple(part for part in parts if part.weight != 0.0))


#: Names that ``AUCClassifier(risk=...)`` understands, and the eta of those that leave no choice.
RISKS: dict[str, float | None] = {"pn": 0.0, "pu": 1.0, "nu": -1.0, "pnu": None}


def get_risk(name: str, *, prior: float | None = None, eta: float = 0.0) -> Risk:
    """The risk called "pn", "pu", "nu" or "pnu"; ``prior`` is that inside U."""
    fixed = RISKS[name]
    return replace(pnu_risk(eta if fixed is None else fixed, prior), name=name.upper())


def gamma_bar(prior: float, n_positive: float, n_negative: float) -> tuple[float, float]:
    """The paper's simple weights (gamma_PNPU, gamma_PNNU) for validation.

    gamma_PNPU = 1 / (1 + prior^2 n_N / ((1-prior)^2 n_P)),
    gamma_PNNU = 1 / (1 + (1-prior)^2 n_P / (prior^2 n_N)); ``prior`` is that inside U.
    """
    if min(n_positive, n_negative) < 1:
        raise ValueError("gamma_bar needs at least one positive and one negative row.")
    odds = (check_prior(prior) / (1.0 - prior)) ** 2
    return (
        1.0 / (1.0 + odds * n_negative / n_positive),
        1.0 / (1.0 + n_positive / (odds * n_negative)),
    )
