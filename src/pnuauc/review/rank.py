"""The ranking of a round, and the draw of its batch.

Rows that were reviewed for their score are the hardest negatives there are. A model of labelled
rows alone separates these from positives and forgets what all other rows look like, so unlabelled
rows take part as weak negatives: positives, reviewed negatives and unlabelled rows get total
weights 1, 1/2 and 1/2. Text is read by words and pairs of words, as they are and in their main
directions; other columns by a linear model, kernels and trees. Members are summed after each was
judged on rows that it had not seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from pnuauc._utils.arrays import Floats
from pnuauc.io.columns import strings
from pnuauc.model.model import cell_text
from pnuauc.study import ColumnRoles

__all__ = ["PoolRanker", "Ranking", "draw_batch", "explore_share"]

#: Main directions of the words, Gaussians of a kernel model, folds in which members are judged.
_DIRECTIONS, _CENTERS, _FOLDS = 100, 300, 3
#: Unlabelled rows that take part as weak negatives, and labelled ones of a class, at most.
_UNLABELED, _LABELED = 4000, 4000
_MARKS, _REASONS = 8, 3


def _kernels(X: Any, seed: int, sharpness: float) -> list[Any]:
    """Gaussians around rows drawn: scoring takes time linear in rows."""
    n, gamma = min(_CENTERS, len(X)), sharpness / X.shape[1]
    gaussians = Nystroem(gamma=gamma, n_components=n, random_state=seed)
    return [gaussians, LogisticRegression(C=8.0, max_iter=300)]


#: (view, steps of a pipeline on it) of each member; held-out rows decide which of them helps.
_MEMBERS: tuple[tuple[str, Callable[[Any, int], list[Any]]], ...] = (
    ("words", lambda X, seed: [LogisticRegression(C=8.0, max_iter=200)]),
    ("directions", lambda X, seed: [LogisticRegression(C=8.0, max_iter=200)]),
    ("columns", lambda X, seed: [LogisticRegression(max_iter=300)]),
    ("columns", lambda X, seed: _kernels(X, seed, sharpness=1.0)),
    ("columns", lambda X, seed: _kernels(X, seed, sharpness=3.0)),
    ("trees", lambda X, seed: [ExtraTreesClassifier(100, min_samples_leaf=2, random_state=seed)]),
)


class Ranking(NamedTuple):
    """Scores of a round.

    Attributes
    ----------
    scores : shape (n,)
    rows : those that stand for the table, shape (m,): all, or where these are many a draw
    held_out : their scores by models that had not seen their labels, shape (m,)
    weights : how many rows of the table each stands for, shape (m,)
    """

    scores: Floats
    rows: NDArray[np.intp]
    held_out: Floats
    weights: Floats


class PoolRanker:
    """Scores all rows of a table from the labels so far; the table is encoded once.

    Parameters
    ----------
    table : ``pyarrow.Table``
    columns : ColumnRoles
    """

    def __init__(self, table: Any, columns: ColumnRoles, random_state: int = 0) -> None:
        self._seed = random_state % 2**31
        self._views: dict[str, Any] = {}
        unused = {columns.label, *columns.ids, *columns.drop}
        features = table.select([name for name in table.column_names if name not in unused])
        kinds = {c.name: c.kind for c in columns.encoder().fit(features).columns_}
        texts = [name for name, kind in kinds.items() if kind == "text"]
        others = [name for name, kind in kinds.items() if kind != "text"]
        self._table = features.select(others)
        if texts:
            self._read_texts([strings(features.column(name)) for name in texts])
        if others:
            categorical = tuple(c for c in columns.categorical if c in others)
            self._encoder = replace(columns, categorical=categorical).encoder().fit(self._table)
            self._views["columns"] = self._encoder.transform(self._table, "kernels")
            self._views["trees"] = np.nan_to_num(self._encoder.transform(self._table, "trees"))
        self._members = [member for member in _MEMBERS if member[0] in self._views]

    def _read_texts(self, columns: list[Any]) -> None:
        vectorizer = TfidfVectorizer(
            sublinear_tf=True, min_df=2, max_df=0.5, ngram_range=(1, 2), dtype=np.float64
        )
        try:
            words = vectorizer.fit_transform([" ".join(row) for row in zip(*columns, strict=True)])
        except ValueError:  # no word occurs twice
            return
        self._views["words"], self._vocabulary = words, vectorizer.get_feature_names_out()
        if min(words.shape) > 2 * _DIRECTIONS:
            svd = TruncatedSVD(_DIRECTIONS, n_iter=3, random_state=self._seed)
            found = svd.fit_transform(words)
            length = np.linalg.norm(found, axis=1, keepdims=True)
            self._views["directions"] = found / np.maximum(length, 1e-12)

    def rank(self, y: Floats) -> Ranking | None:
        """Scores of all rows; None where no row is labelled positive.

        Parameters
        ----------
        y : 1, 0 or NaN, shape (n,)
        """
        if not (y == 1).any() or not self._members:
            return None
        rows, target, weight = self._training(y)
        held_out = self._held_out(rows, target, weight)
        shares = np.full(len(self._members), 1.0 / len(self._members))
        if len(held_out):
            # nothing for what ranks no better than chance, and the better the more
            aucs = np.array([roc_auc_score(target, h, sample_weight=weight) for h in held_out])
            lift = np.maximum(aucs - 0.5, 0.0)
            if lift.any():
                odds = (lift / lift.max()) ** 4
                shares = odds / odds.sum()
        out = np.zeros(len(y))
        free = np.isnan(y) if np.isnan(y).any() else np.ones(len(y), dtype=bool)
        for member, share in zip(self._members, shares, strict=True):
            if share > 0:
                # in units of the rows that are not labelled, among which one chooses
                scores = self._fit(member, rows, target, weight)
                out += share * (scores - scores[free].mean()) / (scores[free].std() + 1e-12)
        if not len(held_out):
            return Ranking(out, rows[:0], out[:0], out[:0])
        stands = np.empty(len(rows))
        for group in (y == 1, y == 0, np.isnan(y)):
            stands[group[rows]] = group.sum() / max(group[rows].sum(), 1)
        return Ranking(out, rows, shares @ held_out, stands)

    def _training(self, y: Floats) -> tuple[NDArray[np.intp], NDArray[np.bool_], Floats]:
        """Rows to learn from, which of them are positive, and their weights."""
        rng = np.random.default_rng(self._seed)
        parts = []
        for group, most in ((y == 1, _LABELED), (y == 0, _LABELED), (np.isnan(y), _UNLABELED)):
            rows = np.flatnonzero(group)
            parts.append(rows if len(rows) <= most else rng.choice(rows, most, replace=False))
        sizes = np.array([len(part) for part in parts])
        totals = np.array([1.0, 0.5, 0.5]) if sizes[1] else np.array([1.0, 0.0, 1.0])
        weight = np.repeat(sizes[0] * totals / np.maximum(sizes, 1), sizes)
        return np.concatenate(parts), np.arange(sizes.sum()) < sizes[0], weight

    def _fit(
        self, member: Any, rows: Any, target: Any, weight: Floats, at: Any = slice(None)
    ) -> Floats:
        """Scores of the rows ``at``, by default all."""
        view, steps = member
        X = self._views[view]
        model = make_pipeline(*steps(X[rows], self._seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of the last digit of a rank
            model.fit(X[rows], target, **{f"{model.steps[-1][0]}__sample_weight": weight})
        if hasattr(model, "decision_function"):
            return np.asarray(model.decision_function(X[at]))
        return np.asarray(model.predict_proba(X[at])[:, 1])

    def _held_out(
        self, rows: NDArray[np.intp], target: NDArray[np.bool_], weight: Floats
    ) -> Floats:
        """Ranks from 0 to 1 by each member without the row's fold, shape (members, m); members is
        0 where positives are too few."""
        if target.sum() < 2 * _FOLDS:
            return np.empty((0, len(rows)))
        fold = np.empty(len(rows), dtype=int)
        rng = np.random.default_rng(self._seed)
        for group in (target, ~target):
            fold[group] = rng.permutation(np.arange(group.sum()) % _FOLDS)
        held_out = np.empty((len(self._members), len(rows)))
        for j, member in enumerate(self._members):
            for k in range(_FOLDS):
                use, out = fold != k, fold == k
                found = self._fit(member, rows[use], target[use], weight[use], rows[out])
                held_out[j, out] = np.argsort(np.argsort(found)) / len(found)
        return held_out

    def explain(self, rows: NDArray[np.intp], y: Floats) -> tuple[list[list[str]], list[str]]:
        """For each row the words that speak for it, and its columns that do, as text."""
        marks: list[list[str]] = [[] for _ in rows]
        reasons = ["" for _ in rows]
        if not (y == 1).any():
            return marks, reasons
        known, target, weight = self._training(y)
        if "words" in self._views:
            X = self._views["words"]
            model = LogisticRegression(C=8.0, max_iter=200)
            coef = model.fit(X[known], target, sample_weight=weight).coef_.ravel()
            for k, row in enumerate(sparse.csr_matrix(X[rows])):
                effect = row.data * coef[row.indices]
                best = [j for j in np.argsort(-effect, kind="stable") if effect[j] > 0]
                terms = [str(self._vocabulary[row.indices[j]]) for j in best]
                marks[k] = [t for t in terms if not ENGLISH_STOP_WORDS.issuperset(t.split())]
                del marks[k][_MARKS:]
        if "columns" in self._views:
            X = self._views["columns"]
            model = LogisticRegression(max_iter=300).fit(X[known], target, sample_weight=weight)
            effect = (X[rows] - X.mean(axis=0)) * model.coef_.ravel()
            groups = {n: list(js) for n, js in self._encoder.groups("kernels").items() if len(js)}
            moved = np.column_stack([effect[:, js].sum(axis=1) for js in groups.values()])
            names = np.array(list(groups), dtype=object)
            for k, (row, line) in enumerate(zip(rows, moved, strict=True)):
                first = np.argsort(-line, kind="stable")[:_REASONS]
                best = names[first[line[first] > 0]]
                cells = [cell_text(self._table.column(n)[int(row)].as_py()) for n in best]
                reasons[k] = ", ".join(
                    f"{n} = {cell or '(missing)'}" for n, cell in zip(best, cells, strict=True)
                )
        return marks, reasons


def draw_batch(
    scores: Floats, pool: NDArray[np.intp], size: int, explore: float, rng: Any
) -> tuple[NDArray[np.intp], Floats, NDArray[np.bool_]]:
    """Rows of the pool to review next.

    Of k rows e = round(explore k), at least one where ``explore`` is above 0, are drawn uniformly
    from the rows that are left when the k - e rows of highest score are taken out:

        P(row is drawn) = 1 for the k - e rows on top, e / (r - (k - e)) for the others.

    Parameters
    ----------
    scores : shape (n,)
    pool : places of the r rows that can be drawn
    explore : share, from 0 to 1

    Returns
    -------
    rows : shape (k,), the rows by score first, then the random ones in the order of their draws
    probability : shape (k,)
    random : shape (k,), True for rows drawn at random
    """
    k = min(size, len(pool))
    e = min(max(round(explore * k), 1), k) if explore > 0 else 0
    # equal scores in random order, not in that of the table
    shuffled = rng.permutation(pool)
    order = shuffled[np.argsort(-scores[shuffled], kind="stable")]
    top, rest = order[: k - e], order[k - e :]
    drawn = rng.choice(rest, e, replace=False, shuffle=True) if e else rest[:0]
    probability = np.append(np.ones(k - e), np.full(e, e / max(len(rest), 1)))
    return np.append(top, drawn), probability, np.arange(k) >= k - e


def explore_share(found_by_score: float, found_at_random: float, least: float = 0.1) -> float:
    """Which share of the next batch to draw at random, from the positives per row of the last.

    While rows picked for their score hold more positives than random ones, as few random rows as
    are allowed; later as many, since only random rows can prove that little is left.
    """
    return least if found_by_score > found_at_random else 1.0 - least
