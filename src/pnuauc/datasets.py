"""Data to try things on: generators by formula, P/N/U sampling.

Everywhere here ``y`` is 1 (positive) or 0 (negative) for every row; :func:`sample_pnu` turns such
a fully labelled set into the three samples the method works from, and hides the labels of U.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.utils import check_random_state

__all__ = [
    "GENERATORS",
    "PNUSample",
    "make_banana",
    "make_ringnorm",
    "make_thresholds",
    "make_twonorm",
    "make_waveform",
    "sample_pnu",
]

# --- generators ---------------------------------------------------------------------------------


def _draw_labels(n_samples: int, prior: float, rng: np.random.RandomState) -> NDArray[np.int8]:
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples}.")
    if not 0 <= prior <= 1:
        raise ValueError(f"prior is a share of positives and must lie in [0, 1], got {prior}.")
    return (rng.uniform(size=n_samples) < prior).astype(np.int8)


def make_twonorm(
    n_samples: int = 1000, *, prior: float = 0.5, n_features: int = 20, random_state: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Breiman's twonorm: x ~ N(+a 1, I) if positive, N(-a 1, I) if negative, a = 2/sqrt(20).

    Parameters
    ----------
    n_samples : int
    prior : float
        P(y = 1); labels are drawn independently.
    n_features : int
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray, shape (n_samples, n_features)
    y : ndarray of int8, shape (n_samples,)

    Examples
    --------
    >>> X, y = make_twonorm(500, prior=0.2, random_state=0)
    >>> X.shape, bool(X[y == 1].mean() > 0 > X[y == 0].mean())
    ((500, 20), True)
    """
    rng = check_random_state(random_state)
    y = _draw_labels(n_samples, prior, rng)
    shift = np.where(y == 1, 1.0, -1.0) * 2 / np.sqrt(20)
    return rng.standard_normal((n_samples, n_features)) + shift[:, None], y


def make_ringnorm(
    n_samples: int = 1000, *, prior: float = 0.5, n_features: int = 20, random_state: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Breiman's ringnorm: x ~ N(a 1, I) if positive, N(0, 4 I) if negative, a = 2/sqrt(20).

    The narrow class is the positive one, as in the Delve file. Parameters as in
    :func:`make_twonorm`.
    """
    rng = check_random_state(random_state)
    y = _draw_labels(n_samples, prior, rng)
    noise = rng.standard_normal((n_samples, n_features))
    return np.where(y[:, None] == 1, noise + 2 / np.sqrt(20), 2 * noise), y


def make_waveform(
    n_samples: int = 1000, *, prior: float = 0.33, random_state: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Breiman's waveforms, 21 columns: x_i = u h_a(i) + (1 - u) h_b(i) + e_i, i = 1..21.

    h1(i) = max(6 - |i - 11|, 0), h2(i) = h1(i - 4), h3(i) = h1(i + 4), u uniform, e standard
    normal. Positives mix (h1, h3); negatives mix (h1, h2) or (h2, h3), half each. This is the split
    of the IDA file, which also standardises the columns (this function does not).
    Parameters as in :func:`make_twonorm`.
    """
    rng = check_random_state(random_state)
    y = _draw_labels(n_samples, prior, rng)
    i = np.arange(1, 22)
    h = np.array([np.maximum(6.0 - np.abs(i - center), 0) for center in (11, 15, 7)])
    first, second = np.array([[0, 1], [1, 2], [0, 2]]).T
    kind = np.where(y == 1, 2, rng.randint(0, 2, size=n_samples))
    u = rng.uniform(size=(n_samples, 1))
    waves = u * h[first[kind]] + (1 - u) * h[second[kind]]
    return waves + rng.standard_normal((n_samples, 21)), y


def make_banana(
    n_samples: int = 1000, *, prior: float = 0.45, noise: float = 0.25, random_state: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Two interleaved crescents: (cos t, sin t) and (1 - cos t, 1/2 - sin t), t ~ U(0, pi).

    Each point gets N(0, noise^2 I). A banana-*like* set: the IDA file's own generator is not
    published, so this one has its shape (two curved classes that overlap), not its distribution.
    Parameters as in :func:`make_twonorm`.
    """
    rng = check_random_state(random_state)
    y = _draw_labels(n_samples, prior, rng)
    t = rng.uniform(0, np.pi, size=n_samples)
    upper = np.column_stack([np.cos(t), np.sin(t)])
    lower = np.column_stack([1 - np.cos(t), 0.5 - np.sin(t)])
    return np.where(y[:, None] == 1, upper, lower) + noise * rng.standard_normal((n_samples, 2)), y


def make_thresholds(
    n_samples: int = 1000,
    *,
    prior: float = 0.3,
    n_features: int = 12,
    n_rules: int = 6,
    sharpness: float = 3.0,
    table: int = 0,
    random_state: Any = None,
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Rules of the kind that trees find and kernels do not: x_i above a limit *and* x_j above one.

    Columns are independent: normal, log-normal and small whole numbers in turn, so scales differ.
    Each rule compares two columns with limits between their quartiles, either way round;
    P(y = 1 | x) = expit(sharpness (number of rules that hold) - b), b such that a share ``prior``
    of the drawn rows is expected to be positive.

    Parameters
    ----------
    n_samples, prior, n_features, random_state : as in :func:`make_twonorm`
    n_rules : int
    sharpness : float
        Log-odds of one more rule.
    table : int
        Number of the table: which columns, limits and directions the rules have.
    """
    _draw_labels(n_samples, prior, check_random_state(0))  # the checks of n_samples and prior
    rules = np.random.RandomState(table)
    rng = check_random_state(random_state)
    normal = rng.standard_normal((n_samples, n_features))
    place = np.argsort(np.argsort(normal, axis=0), axis=0) / max(n_samples - 1, 1)
    log_odds = np.zeros(n_samples)
    for _ in range(n_rules):
        i, j = rules.choice(n_features, 2, replace=False)
        limits, above = rules.uniform(0.25, 0.75, 2), rules.uniform(size=2) < 0.5
        first, second = (place[:, c] > t for c, t in zip((i, j), limits, strict=True))
        log_odds += sharpness * ((first == above[0]) & (second == above[1]))
    low, high = -50.0, 50.0 + sharpness * n_rules
    for _ in range(60):  # bisection: the expected share falls as b grows
        b = (low + high) / 2
        low, high = (b, high) if expit(log_odds - b).mean() > prior else (low, b)
    y = (rng.uniform(size=n_samples) < expit(log_odds - high)).astype(np.int8)
    X = normal.copy()
    X[:, 1::3] = np.exp(1.5 * X[:, 1::3])
    X[:, 2::3] = np.floor(4 * np.clip(place[:, 2::3], 0, 0.999) + 0.5)
    return X, y


GENERATORS = {
    "thresholds": make_thresholds,
    "twonorm": make_twonorm,
    "ringnorm": make_ringnorm,
    "waveform": make_waveform,
    "banana": make_banana,
}


# --- sampling -----------------------------------------------------------------------------------


class PNUSample(NamedTuple):
    """What :func:`sample_pnu` drew.

    X : rows to train on, P first, then N, then U; ``y`` their labels 1, 0, -1.
    y_unlabeled : the hidden labels (1/0) of the U rows, in their order; for evaluation only.
    X_test, y_test : rows that were not drawn, with labels 1/0.
    rows : row numbers of ``X`` in the set it was drawn from.
    """

    X: Any
    y: NDArray[np.int8]
    y_unlabeled: NDArray[np.int8]
    X_test: Any
    y_test: NDArray[np.int8]
    rows: NDArray[np.intp]

    def __repr__(self) -> str:
        n = [int((self.y == code).sum()) for code in (1, 0, -1)]
        return (
            f"PNUSample({n[0]} positive, {n[1]} negative, {n[2]} unlabelled rows of "
            f"{self.X.shape[1]} columns, {len(self.y_test)} test rows)"
        )


def sample_pnu(
    X: Any,
    y: Any,
    n_positive: int,
    n_negative: int,
    n_unlabeled: int,
    prior: float,
    random_state: Any = None,
    *,
    unlabeled_draw: str = "exact",
    n_test: int | None = None,
    scale: str = "none",
) -> PNUSample:
    """Draw P, N, U and test rows, disjoint and without replacement, as in the paper's experiments.

    U gets round(prior n_unlabeled) positives ("exact", the default: the truth an estimate is
    compared with is then the same in every trial), or Binomial(n_unlabeled, prior) of them
    ("binomial": U is an i.i.d. sample of the mixture, as the theory and intervals assume).

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n, d)
    y : array of 1 (positive) and 0 (negative), shape (n,)
    n_positive, n_negative, n_unlabeled : int
        Rows wanted in each role; any may be 0.
    prior : float
        Share of positives **inside U**.
    random_state : int, RandomState or None
    unlabeled_draw : {"exact", "binomial"}
    n_test : int, optional
        At most this many test rows, drawn at random from the rest; default all the rest.
    scale : {"none", "standard"}
        "standard" brings every column to mean 0 and deviation 1 with the statistics of the training
        rows (P, N and U together, no labels used). Dense X only.

    Returns
    -------
    PNUSample

    Raises
    ------
    ValueError
        When a class has fewer rows than asked for. Rows are never drawn twice: a copy of one row
        in two roles, or in training and test, would make every result too good.

    Examples
    --------
    >>> X, y = make_twonorm(3000, random_state=0)
    >>> sample = sample_pnu(X, y, 5, 45, 1000, prior=0.1, random_state=0)
    >>> sample.X.shape, int(sample.y_unlabeled.sum())
    ((1050, 20), 100)
    """
    y = np.asarray(y)
    if X.shape[0] != len(y) or not np.isin(y, (0, 1)).all():
        raise ValueError(
            f"y must hold one label, 1 or 0, for each of the {X.shape[0]} rows of X; "
            "turn -1/+1 labels into 0/1 with (y > 0)."
        )
    if not 0 <= prior <= 1:
        raise ValueError(f"prior is a share of positives and must lie in [0, 1], got {prior}.")
    if min(n_positive, n_negative, n_unlabeled) < 0:
        raise ValueError("n_positive, n_negative and n_unlabeled must not be negative.")
    if unlabeled_draw not in ("exact", "binomial"):
        raise ValueError(f'unlabeled_draw must be "exact" or "binomial", got {unlabeled_draw!r}.')
    if scale not in ("none", "standard") or (scale == "standard" and sparse.issparse(X)):
        raise ValueError(f'scale must be "none", or "standard" for dense rows; got {scale!r}.')
    rng = check_random_state(random_state)
    exact = unlabeled_draw == "exact"
    hidden = round(prior * n_unlabeled) if exact else int(rng.binomial(n_unlabeled, prior))
    positives, negatives = (rng.permutation(np.flatnonzero(y == label)) for label in (1, 0))
    for word, available, labeled, unlabeled in (
        ("positive", len(positives), n_positive, hidden),
        ("negative", len(negatives), n_negative, n_unlabeled - hidden),
    ):
        if available < labeled + unlabeled:
            raise ValueError(
                f"The set has {available} {word} rows but {labeled} labelled and {unlabeled} "
                "unlabelled ones are asked for: ask for fewer rows, or another prior (rows are not "
                "drawn twice)."
            )

    end_p, end_n = n_positive + hidden, n_negative + n_unlabeled - hidden
    drawn = rng.permutation(
        np.concatenate([positives[n_positive:end_p], negatives[n_negative:end_n]])
    )
    rows = np.concatenate([positives[:n_positive], negatives[:n_negative], drawn])
    rest = rng.permutation(np.concatenate([positives[end_p:], negatives[end_n:]]))[:n_test]
    codes: NDArray[np.int8] = np.repeat(
        np.array([1, 0, -1], dtype=np.int8), [n_positive, n_negative, n_unlabeled]
    )
    train, test = X[rows], X[rest]
    if scale == "standard":
        center, width = train.mean(axis=0, dtype=float), train.std(axis=0, dtype=float)
        width = np.where(width > 0, width, 1.0)
        train, test = (train - center) / width, (test - center) / width
    return PNUSample(train, codes, y[drawn].astype(np.int8), test, y[rest].astype(np.int8), rows)
