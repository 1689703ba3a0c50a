"""SSRankBoost: RankBoost over single-feature thresholds, unlabelled rows pseudo-labelled."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils._param_validation import Interval

from pnuauc._utils.arrays import Floats, Indices, Mask
from pnuauc.baselines.common import Ranker, intercept_of
from pnuauc.core.basis import squared_distances
from pnuauc.core.rows import row_blocks
from pnuauc.labels import Roles

#: A ranker whose edge is below this orders no pair better than chance.
_NO_EDGE = 1e-12
_PREDICT_ROWS = 4096


@dataclass(eq=False, repr=False)
class SSRankBoost(Ranker):
    """Greedily minimise L_labelled + discount * L_pseudo over H(x) = sum_t a_t 1[x_{j_t} > c_t].

    L_labelled = mean_PN exp(-(H(x) - H(x'))), and L_pseudo the same mean over pairs of unlabelled
    rows, where a row counts as positive with the share s of positives among its ``n_neighbors``
    nearest labelled rows and as negative with 1 - s. Both means are products of two sums over
    rows, so a round (all thresholds of all columns) costs O(n d), or O(number of entries) for CSR,
    after one sort. A round takes the ranker of largest edge
    abs(sum over pairs of weight (h(x) - h(x'))) and the weight a = log((W+ + e)/(W- + e))/2,
    W+ and W- the weights of the pairs it orders rightly and wrongly, e = ``smoothing`` times all
    weight. Without e one threshold that separates a handful of positives would get infinite weight.

    Reference: Amini, Truong, Goutte, "A boosting algorithm for learning bipartite ranking
    functions with partially labeled data", SIGIR 2008; RankBoost in product form from Freund,
    Iyer, Schapire, Singer, JMLR 2003. Ours: shares of neighbours instead of a hard label, ``e``,
    and the treatment of zeros (the most frequent value of a column, zero for CSR, is kept
    implicit, and its sum is the total minus the others').

    Parameters
    ----------
    discount : float >= 0, default=0.01
        Weight of the pseudo-labelled pairs. Without unlabelled rows, or at 0: RankBoost.
    n_neighbors : int, default=3
        Euclidean; at most as many as there are labelled rows.
    n_rounds : int, default=100
    smoothing : float > 0, default=0.3
        Acts as shrinkage: a round's weight never exceeds log(1 + 1/smoothing)/2.
    positive_label, negative_label, unlabeled_label : as in :func:`pnuauc.labels.read_roles`

    Attributes
    ----------
    columns_, thresholds_, weights_ : ndarray, shape (rounds,)
        j_t, c_t and a_t.
    losses_ : ndarray, shape (rounds + 1,)
        log(L_labelled + discount * L_pseudo) before the first round and after each.
    pseudo_positive_ : ndarray, shape (n_unlabeled,)
        The share s of every unlabelled row, in the order of the rows.
    n_iter_ : int
        Rounds done; fewer than ``n_rounds`` if no ranker has an edge left.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [0.9], [1.0], [0.8], [0.2]])
    >>> model = SSRankBoost(n_rounds=1, n_neighbors=1).fit(X, [0, 0, 1, 1, -1, -1])
    >>> model.pseudo_positive_, model.thresholds_
    (array([1., 0.]), array([0.5]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "discount": [Interval(Real, 0, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "smoothing": [Interval(Real, 0, None, closed="neither")],
    }

    discount: float = 0.01
    n_neighbors: int = 3
    n_rounds: int = 100
    smoothing: float = 0.3

    def _train(self, X: Any, roles: Roles) -> float:
        self.pseudo_positive_ = neighbor_shares(X, roles, self.n_neighbors)
        log_weights = _log_weights(roles, self.pseudo_positive_, self.discount)
        self._boost(_Thresholds.of(X), log_weights)
        scores = self._scores(X)
        return intercept_of(scores[roles.positive], scores[roles.negative])

    def _boost(self, rankers: _Thresholds, log_weights: Floats) -> None:
        margin = np.zeros(log_weights.shape[2])  # H up to a constant, which no pair can see
        chosen, weights, losses = [], [], []
        for _ in range(self.n_rounds):
            shares, masses, loss = _shares(log_weights, margin)
            # the edge of a ranker h is sum_x potential(x) h(x)
            best, edge = rankers.best(masses @ (shares[:, 0] - shares[:, 1]))
            if best is None or abs(edge) < _NO_EDGE:
                break
            rows, above = rankers.rows_of(best)
            listed = shares[:, :, rows].sum(axis=2)
            high, low = (listed if above else np.maximum(1.0 - listed, 0.0)).T
            right = masses @ (high * np.maximum(1.0 - low, 0.0))
            wrong = masses @ (np.maximum(1.0 - high, 0.0) * low)
            guard = self.smoothing * masses.sum()
            weight = 0.5 * float(np.log((right + guard) / (wrong + guard)))
            # rows at or below a threshold that is below the base are the listed ones: the others
            # gain the weight, which is the same to all pairs as the listed ones losing it
            margin[rows] += weight if above else -weight
            chosen.append(best)
            weights.append(weight)
            losses.append(loss)
        losses.append(_shares(log_weights, margin)[2])
        index: Indices = np.array(chosen, dtype=np.intp)
        self.columns_, self.thresholds_ = rankers.column[index], rankers.threshold[index]
        self.weights_, self.losses_ = np.array(weights), np.array(losses)
        self.n_iter_ = max(len(weights), 1)

    def _scores(self, X: Any) -> Floats:
        columns, place = np.unique(self.columns_, return_inverse=True)
        out = np.zeros(X.shape[0])
        if not len(columns):
            return out
        X = X[:, columns]
        for block in row_blocks(X.shape[0], _PREDICT_ROWS):
            # the few columns in use only, a block of rows at a time: dense whatever X was
            part = X[block].toarray() if sparse.issparse(X) else X[block]
            out[block] = (part[:, place] > self.thresholds_) @ self.weights_
        return out


def neighbor_shares(X: Any, roles: Roles, n_neighbors: int) -> Floats:
    """Share of positives among each unlabelled row's nearest labelled rows, shape (n_U,)."""
    labeled = np.concatenate([roles.positive, roles.negative])
    k = min(n_neighbors, len(labeled))
    out = np.empty(roles.n_unlabeled)
    for block in row_blocks(roles.n_unlabeled, _PREDICT_ROWS):
        distances = squared_distances(X[roles.unlabeled[block]], X[labeled])
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]  # stable: as sparse rows do
        out[block] = np.mean(nearest < roles.n_positive, axis=1)
    return out


def _log_weights(roles: Roles, pseudo_positive: Floats, discount: float) -> Floats:
    """Logarithms of the rows' weights as the high and as the low row of a pair, shape (g, 2, n).

    A group of pairs is scale * mean over (high, low) of exp(-(H(x) - H(x'))): the labelled pairs,
    and, where any has a weight, the pseudo-labelled ones.
    """
    weights = np.zeros((2, 2, len(roles)))
    weights[0, 0, roles.positive] = weights[0, 1, roles.negative] = 1.0
    weights[1, 0, roles.unlabeled] = pseudo_positive
    weights[1, 1, roles.unlabeled] = 1.0 - pseudo_positive
    weights = weights if discount and weights[1].any(axis=1).all() else weights[:1]
    weights /= weights.sum(axis=2, keepdims=True)
    weights[1:, 0] *= discount
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights))


def _shares(log_weights: Floats, margin: Floats) -> tuple[Floats, Floats, float]:
    """Row weights of this round, (g, 2, n), sums of one; weights of the groups; log of the loss.

    Weights of groups are relative to the largest, through logarithms: hundreds of rounds would
    overflow the exponentials themselves.
    """
    exponents = log_weights + np.stack([-margin, margin])
    top = exponents.max(axis=2, keepdims=True)
    shares = np.exp(exponents - top)
    sums = shares.sum(axis=2, keepdims=True)
    shares /= sums
    logs = (top + np.log(sums)).sum(axis=(1, 2))
    masses = np.exp(logs - logs.max())
    return shares, masses, float(logs.max() + np.log(masses.sum()))


@dataclass(frozen=True, eq=False)
class _Thresholds:
    """All rankers 1[x_j > c]: entries off the base value, sorted once.

    Every column has a base, the value that stays implicit: zero for CSR, the most frequent value
    for dense columns. Entries above the base come largest first, entries below it smallest
    first; each such run is a segment, and a cut after an entry is a ranker. Since the potentials
    of all rows sum to zero, the edge of a ranker that fires above the base is the sum of its run up
    to the cut, and below the base minus that sum: the base rows are never visited.

    rows : row of every entry; start, stop : of every cut's run, stop exclusive
    column, threshold, above : of every cut
    """

    rows: NDArray[Any]
    start: Indices
    stop: Indices
    column: Indices
    threshold: Floats
    above: Mask

    @classmethod
    def of(cls, X: Any) -> _Thresholds:
        rows, columns, values, base = _entries(X)
        above = values > base[columns]
        # one key per run, then the distance from the base downwards: the extreme values first
        distance = np.abs(values - base[columns])
        run = 2 * columns + above
        order = np.lexsort((-distance, run))
        rows, columns, values = rows[order], columns[order], values[order]
        run, above = run[order], above[order]
        n = len(rows)
        starts_run = np.ones(n, dtype=bool)
        starts_run[1:] = run[1:] != run[:-1]
        ends_run = np.append(starts_run[1:], True)[:n]
        following = np.where(ends_run, base[columns], np.append(values[1:], 0.0)[:n])
        is_cut = values != following
        first = np.flatnonzero(starts_run)
        start = first[np.cumsum(starts_run) - 1]
        return cls(
            rows,
            start[is_cut],
            np.flatnonzero(is_cut) + 1,
            columns[is_cut],
            _between(values[is_cut], following[is_cut]),
            above[is_cut],
        )

    def best(self, potential: Floats) -> tuple[int | None, float]:
        """The cut with the largest absolute edge, and that edge."""
        if not len(self.stop):
            return None, 0.0
        running = np.empty(len(self.rows) + 1)
        running[0] = 0.0
        np.cumsum(potential[self.rows], out=running[1:])
        edges = running[self.stop]
        edges -= running[self.start]
        low, high = int(edges.argmin()), int(edges.argmax())
        best = high if edges[high] >= -edges[low] else low
        return best, float(edges[best])

    def rows_of(self, cut: int) -> tuple[NDArray[Any], bool]:
        """The listed rows of a cut, and whether the ranker fires on them (or on all others)."""
        return self.rows[self.start[cut] : self.stop[cut]], bool(self.above[cut])


def _entries(X: Any) -> tuple[Any, Any, Any, Any]:
    """(row, column, value) of every entry that differs from its column's base, and the bases."""
    if sparse.issparse(X):
        table = sparse.csc_matrix(X)
        table.sum_duplicates()
        columns: Indices = np.repeat(np.arange(X.shape[1]), np.diff(table.indptr))
        base, rows, values = np.zeros(X.shape[1]), table.indices, table.data.astype(np.float64)
    else:
        n, d = X.shape
        ordered = np.sort(X, axis=0).astype(np.float64)
        base = np.array([_most_frequent(ordered[:, j]) for j in range(d)])
        columns = np.repeat(np.arange(d), n)
        rows, values = np.tile(np.arange(n), d), X.T.ravel().astype(np.float64)
    keep = values != base[columns]
    return rows[keep].astype(np.int32), columns[keep], values[keep], base


def _most_frequent(ordered: Floats) -> float:
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return float(ordered[starts[np.diff(np.append(starts, len(ordered))).argmax()]])


def _between(a: Floats, b: Floats) -> Floats:
    """A threshold c with lower <= c < upper, half way where numbers leave room for it."""
    lower, upper = np.minimum(a, b), np.maximum(a, b)
    middle = lower + 0.5 * (upper - lower)
    return np.where(middle < upper, middle, lower)
