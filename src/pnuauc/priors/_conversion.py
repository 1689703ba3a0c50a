"""The prior inside U and the prior of the population: the same number only under one scheme."""

from __future__ import annotations

import math
from typing import Any

from pnuauc._prior import ClassPrior

__all__ = ["prior_in_population", "prior_in_rows", "prior_in_unlabeled"]


def prior_in_unlabeled(
    population_prior: float, n_positive: int, n_negative: int, n_unlabeled: int
) -> float:
    """Share of positives **inside U** when the labelled rows were taken out of one data set.

        prior_in_U = (population_prior n - n_positive) / n_unlabeled,   n = all rows.

    For the one-sample scheme only (rows labelled inside one table; U is what is left). If U was
    collected apart from the labelled rows, its prior is the population's and nothing is to be done.

    Parameters
    ----------
    population_prior : float
        Share of positives among **all** rows.
    n_positive, n_negative, n_unlabeled : int
        Rows in each role.

    Returns
    -------
    float

    Examples
    --------
    >>> prior_in_unlabeled(0.1, n_positive=50, n_negative=0, n_unlabeled=950)
    0.05263157894736842
    """
    _check(population_prior, n_positive, n_negative, n_unlabeled)
    n = n_positive + n_negative + n_unlabeled
    hidden = population_prior * n - n_positive
    margin = 1e-9 * n
    if hidden < -margin or hidden > n_unlabeled + margin:
        low, high = n_positive / n, (n_positive + n_unlabeled) / n
        raise ValueError(
            f"A population prior of {population_prior} is impossible: {n_positive} of {n} rows are "
            f"known positives and {n_negative} known negatives, so it lies between {low:.4g} and "
            f"{high:.4g}. If U was collected apart from the labelled rows, use it as it is."
        )
    return min(max(hidden / n_unlabeled, 0.0), 1.0)


def prior_in_population(
    unlabeled_prior: float, n_positive: int, n_negative: int, n_unlabeled: int
) -> float:
    """Share of positives among **all** rows from the share inside U (one-sample scheme).

        population_prior = (n_positive + unlabeled_prior n_unlabeled) / n,   n = all rows.

    The inverse of :func:`prior_in_unlabeled`; parameters alike.

    Examples
    --------
    >>> round(prior_in_population(0.0526315789, 50, 0, 950), 6)
    0.1
    """
    _check(unlabeled_prior, n_positive, n_negative, n_unlabeled)
    return (n_positive + unlabeled_prior * n_unlabeled) / (n_positive + n_negative + n_unlabeled)


def _check(prior: float, n_positive: int, n_negative: int, n_unlabeled: int) -> None:
    if not 0 <= prior <= 1:
        raise ValueError(f"A prior is a share of rows and must lie in [0, 1], got {prior}.")
    if min(n_positive, n_negative) < 0 or n_unlabeled < 1:
        raise ValueError(
            "Row counts must not be negative and there must be unlabelled rows, got "
            f"n_positive={n_positive}, n_negative={n_negative}, n_unlabeled={n_unlabeled}."
        )


def prior_in_rows(prior: ClassPrior, n_positive: int, n_unlabeled: int) -> dict[str, Any]:
    """What a prior means in rows: positives not found yet, the share found, labels worth having.

    m labels of rows of U drawn at random tell the share with variance t (1 - t) / m; a quarter of
    the present variance, which is half of the error, takes 3 t (1 - t) / variance of them.

    Returns
    -------
    dict
        ``positives_unlabeled`` : (value, low, high) rows; ``share_of_positives_known`` : float;
        ``labels_to_halve`` : int, at most ``n_unlabeled``, or None where the value is known.

    Examples
    --------
    >>> prior = ClassPrior(0.1, 0.05, 0.15, std_error=0.03)
    >>> prior_in_rows(prior, n_positive=50, n_unlabeled=1000)["labels_to_halve"]
    300
    """
    hidden = prior.value * n_unlabeled
    positives = n_positive + hidden
    labels = None
    if prior.std_error > 0:
        wanted = 3 * prior.value * (1 - prior.value) / prior.std_error**2
        # rounded first: 300.0000001 is 300
        labels = math.ceil(min(round(wanted, 6), n_unlabeled))
    return {
        "positives_unlabeled": (hidden, prior.low * n_unlabeled, prior.high * n_unlabeled),
        "share_of_positives_known": n_positive / positives if positives else 0.0,
        "labels_to_halve": labels,
    }
