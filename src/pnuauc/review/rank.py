"""The ranking of a round: what helps when labels come from reviewing the top.

Rows that were reviewed for their score are the hardest negatives there are. A model of labelled
rows alone learns to tell these from positives and forgets what all other rows look like, so
unlabelled rows take part as weak negatives: positives, reviewed negatives and unlabelled rows get
total weights 1, 1/2 and 1/2. Text is read by words and pairs of words, as they are and in their
main directions; other columns by a straight model, kernels and trees. Members are summed after
each was judged on rows that it had not seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

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

from pnuauc._utils.arrays import Floats
from pnuauc.io.columns import strings
from pnuauc.io.encode import TableEncoder
from pnuauc.model.model import cell_text
from pnuauc.study import ColumnRoles

__all__ = ["PoolRanker", "Ranking"]

#: Main directions of the words.
_DIRECTIONS = 100
#: Gaussians of the kernel model.
_CENTERS = 300
#: Unlabelled rows that take part as weak negatives, and labelled ones of a class, at most.
_UNLABELED, _LABELED = 4000, 4000
#: Folds in which members are judged.
_FOLDS = 3
_MARKS, _REASONS = 8, 3


@dataclass(frozen=True)
class _Member:
    """A model, what it reads, and how it is made."""

    name: str
    view: str
    make: Callable[[int], Any]


class _Kernels:
    """Logistic regression on Gaussians around rows drawn: scoring takes time linear in rows."""

    def __init__(self, sharpness: float, seed: int) -> None:
        self.sharpness, self.seed = sharpness, seed

    def fit(self, X: Floats, y: Any, sample_weight: Floats) -> _Kernels:
        n, gamma = min(_CENTERS, len(X)), self.sharpness / X.shape[1]
        self.map = Nystroem(gamma=gamma, n_components=n, random_state=self.seed).fit(X)
        self.model = LogisticRegression(C=8.0, max_iter=300)
        self.model.fit(self.map.transform(X), y, sample_weight=sample_weight)
        return self

    def decision_function(self, X: Floats) -> Floats:
        return np.asarray(self.model.decision_function(self.map.transform(X)))


# One line a member; which of them helps is decided on held-out rows.
_MEMBERS = (
    _Member("words", "words", lambda seed: LogisticRegression(C=8.0, max_iter=200)),
    _Member("directions", "directions", lambda seed: LogisticRegression(C=8.0, max_iter=200)),
    _Member("straight", "columns", lambda seed: LogisticRegression(max_iter=300)),
    _Member("wide kernels", "columns", lambda seed: _Kernels(1.0, seed)),
    _Member("narrow kernels", "columns", lambda seed: _Kernels(3.0, seed)),
    _Member(
        "trees",
        "trees",
        lambda seed: ExtraTreesClassifier(100, min_samples_leaf=2, random_state=seed),
    ),
)


@dataclass(frozen=True, eq=False)
class Ranking:
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
        encoder = columns.encoder().fit(features)
        texts = [c.name for c in encoder.columns_ if c.kind == "text"]
        others = [c.name for c in encoder.columns_ if c.kind != "text"]
        self._table = features.select(others)
        if texts:
            self._read_texts(features, texts)
        if others:
            roles = replace(
                columns, categorical=tuple(c for c in columns.categorical if c in others)
            )
            self._encoder: TableEncoder = roles.encoder().fit(self._table)
            self._views["columns"] = self._encoder.transform(self._table, "kernels")
            self._views["trees"] = np.nan_to_num(self._encoder.transform(self._table, "trees"))
        self._members = [m for m in _MEMBERS if m.view in self._views]

    def _read_texts(self, table: Any, names: list[str]) -> None:
        columns = [strings(table.column(name)) for name in names]
        joined = [" ".join(cells) for cells in zip(*columns, strict=True)]
        self._vectorizer = TfidfVectorizer(
            sublinear_tf=True, min_df=2, max_df=0.5, ngram_range=(1, 2), dtype=np.float64
        )
        try:
            words = self._vectorizer.fit_transform(joined)
        except ValueError:  # no word occurs twice
            return
        self._views["words"] = words
        if min(words.shape) > 2 * _DIRECTIONS:
            svd = TruncatedSVD(_DIRECTIONS, n_iter=3, random_state=self._seed)
            found = svd.fit_transform(words)
            length = np.linalg.norm(found, axis=1, keepdims=True)
            self._views["directions"] = found / np.maximum(length, 1e-12)

    # ------------------------------------------------------------------ scores

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
        weights = np.full(len(self._members), 1.0 / len(self._members))
        if len(held_out):
            weights = combine(
                np.array([roc_auc_score(target, h, sample_weight=weight) for h in held_out])
            )
        out = np.zeros(len(y))
        for member, share in zip(self._members, weights, strict=True):
            if share > 0:
                out += share * _standard(self._fit(member, rows, target, weight), y)
        if not len(held_out):
            return Ranking(out, rows[:0], out[:0], out[:0])
        stands = np.empty(len(rows))
        for group in (y == 1, y == 0, np.isnan(y)):
            stands[group[rows]] = group.sum() / max(group[rows].sum(), 1)
        return Ranking(out, rows, weights @ held_out, stands)

    def _training(self, y: Floats) -> tuple[NDArray[np.intp], NDArray[np.bool_], Floats]:
        """Rows to learn from, which of them are positive, and their weights."""
        rng = np.random.default_rng(self._seed)
        parts = []
        for group, most in ((y == 1, _LABELED), (y == 0, _LABELED), (np.isnan(y), _UNLABELED)):
            rows = np.flatnonzero(group)
            parts.append(rows if len(rows) <= most else rng.choice(rows, most, replace=False))
        rows = np.concatenate(parts)
        n_positive, n_negative, n_unlabeled = map(len, parts)
        totals = np.array([1.0, 0.5, 0.5]) if n_negative else np.array([1.0, 0.0, 1.0])
        sizes = np.array([n_positive, max(n_negative, 1), max(n_unlabeled, 1)])
        weight = np.repeat(n_positive * totals / sizes, [n_positive, n_negative, n_unlabeled])
        return rows, np.arange(len(rows)) < n_positive, weight

    def _fit(
        self,
        member: _Member,
        rows: NDArray[np.intp],
        target: NDArray[np.bool_],
        weight: Floats,
        at: NDArray[np.intp] | None = None,
    ) -> Floats:
        """Scores of the rows ``at``, by default all."""
        X = self._views[member.view]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of the last digit of a rank
            model = member.make(self._seed).fit(X[rows], target, sample_weight=weight)
        Z = X if at is None else X[at]
        if hasattr(model, "decision_function"):
            return np.asarray(model.decision_function(Z))
        return np.asarray(model.predict_proba(Z)[:, 1])

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

    # ------------------------------------------------------------------ reasons

    @cached_property
    def _vocabulary(self) -> NDArray[Any]:
        return np.asarray(self._vectorizer.get_feature_names_out())

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
            reasons = self._column_reasons(rows, known, target, weight)
        return marks, reasons

    def _column_reasons(
        self,
        rows: NDArray[np.intp],
        known: NDArray[np.intp],
        target: NDArray[np.bool_],
        weight: Floats,
    ) -> list[str]:
        X = self._views["columns"]
        model = LogisticRegression(max_iter=300).fit(X[known], target, sample_weight=weight)
        effect = (X[rows] - X.mean(axis=0)) * model.coef_.ravel()
        groups = {name: list(js) for name, js in self._encoder.groups("kernels").items() if len(js)}
        moved = np.column_stack([effect[:, js].sum(axis=1) for js in groups.values()])
        names, out = list(groups), []
        for row, line in zip(rows, moved, strict=True):
            best = [g for g in np.argsort(-line, kind="stable")[:_REASONS] if line[g] > 0]
            cells = {names[g]: self._table.column(names[g])[int(row)].as_py() for g in best}
            out.append(", ".join(f"{n} = {cell_text(v) or '(missing)'}" for n, v in cells.items()))
        return out


def combine(aucs: Floats) -> Floats:
    """Weights of members from their held-out AUCs, sum 1: none for what ranks no better than
    chance, and the better the more."""
    lift = np.maximum(aucs - 0.5, 0.0)
    if not lift.any():
        return np.full(len(aucs), 1.0 / len(aucs))
    odds = (lift / lift.max()) ** 4
    return np.asarray(odds / odds.sum())


def _standard(scores: Floats, y: Floats) -> Floats:
    """Mean 0 and deviation 1 over the rows that are not labelled, among which one chooses."""
    free = scores[np.isnan(y)] if np.isnan(y).any() else scores
    return np.asarray((scores - free.mean()) / (free.std() + 1e-12))
