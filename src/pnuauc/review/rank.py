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
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import rankdata
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from pnuauc._utils.arrays import Floats
from pnuauc.io.columns import strings
from pnuauc.model.model import cell_text
from pnuauc.study.rows import ColumnRoles, groups_of

#: Main directions of the words, Gaussians of a kernel model, folds in which members are judged.
_DIRECTIONS, _CENTERS, _FOLDS, _TREES = 100, 200, 4, 100
#: Widths of the Gaussians: 1 / (2 w^2) = sharpness / columns.
_SHARPNESS = (1.0, 3.0)
#: Unlabelled rows that take part as weak negatives, and labelled ones of a class, at most.
_UNLABELED, _LABELED = 4000, 4000
_MARKS, _REASONS = 8, 3


class Ranking(NamedTuple):
    """Scores of a round.

    Attributes
    ----------
    scores : shape (n,)
    held_out : scores by models that had not seen the row's label, shape (n,); NaN where positives
        are too few for that
    """

    scores: Floats
    held_out: Floats


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
        unused = {columns.label, *columns.apart, *columns.drop}
        self._groups = np.arange(table.num_rows)
        if columns.grouping:
            self._groups = groups_of(table, columns.grouping)
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
            dense = self._encoder.transform(self._table, "kernels")
            self._views["columns"] = dense
            # Gaussians of two widths around rows drawn: scoring takes time linear in rows
            kernels = [
                Nystroem(
                    gamma=sharpness / dense.shape[1],
                    n_components=min(_CENTERS, len(dense)),
                    random_state=self._seed,
                ).fit_transform(dense)
                for sharpness in _SHARPNESS
            ]
            self._views["kernels"] = np.hstack(kernels).astype(np.float32)
            self._views["trees"] = np.nan_to_num(self._encoder.transform(self._table, "trees"))

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
        if not (y == 1).any() or not self._views:
            return None
        rows, target, weight = self._training(y)
        few = len(np.unique(self._groups[rows[target]])) < 2 * _FOLDS
        n_folds = 1 if few else _FOLDS
        fold = self._deal(y, n_folds)
        free = np.isnan(y) if np.isnan(y).any() else np.ones(len(y), dtype=bool)
        scores, held_out, lift = [], [], []
        for name, X in self._views.items():
            total, own = np.zeros(len(y)), np.full(len(y), np.nan)
            for k in range(n_folds):
                use = rows if few else rows[fold[rows] != k]
                found = _fit(name, X, use, y[use] == 1, weight[use], n_folds, self._seed + k)
                total += found
                own[fold == k] = rankdata(found[fold == k]) / np.sum(fold == k)
            # in units of the rows that are not labelled, among which one chooses
            scores.append((total - total[free].mean()) / (total[free].std() + 1e-12))
            held_out.append(own)
            auc = roc_auc_score(target, own[rows], sample_weight=weight[rows])
            lift.append(max(auc - 0.5, 0.0))
        odds = np.ones(len(lift))
        if not few and any(lift):
            # nothing for what ranks no better than chance, and the better the more
            odds = (np.array(lift) / max(lift)) ** 4
        shares = odds / odds.sum()
        nothing = np.full(len(y), np.nan)
        return Ranking(shares @ np.array(scores), nothing if few else shares @ np.array(held_out))

    def _training(self, y: Floats) -> tuple[NDArray[np.intp], NDArray[np.bool_], Floats]:
        """Rows to learn from, which of them are positive, and the weights of all rows."""
        rng, weight, parts = np.random.default_rng(self._seed), np.zeros(len(y)), []
        n_positive = min(int((y == 1).sum()), _LABELED)
        rest = 0.5 if (y == 0).any() else 1.0
        for group, most, total in (
            (y == 1, _LABELED, 1.0),
            (y == 0, _LABELED, 0.5),
            (np.isnan(y), _UNLABELED, rest),
        ):
            rows = np.flatnonzero(group)
            rows = rows if len(rows) <= most else rng.choice(rows, most, replace=False)
            weight[rows] = n_positive * total / max(len(rows), 1)
            parts.append(rows)
        rows = np.concatenate(parts)
        return rows, y[rows] == 1, weight

    def _deal(self, y: Floats, n_folds: int) -> NDArray[np.intp]:
        """Fold of each row: groups are dealt whole, those with positives first, shape (n,)."""
        rng = np.random.default_rng(self._seed)
        fold = np.full(self._groups.max() + 1, -1)
        for role in (y == 1, y == 0, np.isnan(y)):
            new = np.unique(self._groups[role])
            new = new[fold[new] < 0]
            fold[new] = rng.permutation(np.arange(len(new)) % n_folds)
        return np.asarray(fold[self._groups])

    def explain(self, rows: NDArray[np.intp], y: Floats) -> tuple[list[list[str]], list[str]]:
        """For each row the words that speak for it, and its columns that do, as text."""
        if not (y == 1).any():
            return [[] for _ in rows], ["" for _ in rows]
        return self._words(rows, y), self._reasons(rows, y)

    def _words(self, rows: NDArray[np.intp], y: Floats) -> list[list[str]]:
        if "words" not in self._views:
            return [[] for _ in rows]
        effects = sparse.csr_matrix(self._views["words"][rows].multiply(self._slope("words", y)))
        marks = []
        for row in effects:
            best = row.indices[np.argsort(-row.data, kind="stable")][: (row.data > 0).sum()]
            terms = [str(self._vocabulary[j]) for j in best]
            marks.append([t for t in terms if not ENGLISH_STOP_WORDS.issuperset(t.split())])
        return [terms[:_MARKS] for terms in marks]

    def _reasons(self, rows: NDArray[np.intp], y: Floats) -> list[str]:
        if "columns" not in self._views:
            return ["" for _ in rows]
        X = self._views["columns"]
        effect = (X[rows] - X.mean(axis=0)) * self._slope("columns", y)
        groups = {n: list(js) for n, js in self._encoder.groups("kernels").items() if len(js)}
        moved = {name: effect[:, js].sum(axis=1) for name, js in groups.items()}
        reasons = []
        for k, row in enumerate(rows):
            best = sorted((n for n in moved if moved[n][k] > 0), key=lambda n: -moved[n][k])
            cells = ((n, cell_text(self._table[n][int(row)].as_py())) for n in best[:_REASONS])
            reasons.append(", ".join(f"{n} = {cell or '(missing)'}" for n, cell in cells))
        return reasons

    def _slope(self, view: str, y: Floats) -> Floats:
        """Coefficients of the linear model of a view, shape (d,)."""
        rows, target, weight = self._training(y)
        model = _linear(view).fit(self._views[view][rows], target, sample_weight=weight[rows])
        return np.asarray(model.coef_.ravel())


def _linear(view: str) -> LogisticRegression:
    return LogisticRegression(C=1.0 if view == "columns" else 8.0, max_iter=300)


def _fit(
    name: str, X: Any, rows: Any, target: Any, weight: Floats, n_folds: int, seed: int
) -> Floats:
    """Scores of all rows by a model of one view."""
    if name == "trees":
        n = -(-_TREES // n_folds)
        trees = ExtraTreesClassifier(n, min_samples_leaf=2, random_state=seed)
        trees.fit(X[rows], target, sample_weight=weight)
        return np.asarray(trees.predict_proba(X)[:, 1])
    model = _linear(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the last digit of a rank
        model.fit(X[rows], target, sample_weight=weight)
    return np.asarray(model.decision_function(X))


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
