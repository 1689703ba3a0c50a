"""Which columns carry the ranking, and which way; at a cost that does not grow with the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import rankdata

from pnuauc._study._crossfit import CrossFit, common_scale
from pnuauc.io import TableEncoder
from pnuauc.io._model import grouped_columns, kernels_of
from pnuauc.labels import Roles
from pnuauc.metrics import ScoreCounts
from pnuauc.metrics._estimate import unbiased_auc

__all__ = ["column_importance", "importance_findings", "permutation_importance"]

Floats = NDArray[np.float64]
#: Columns that are shuffled; of wider tables those most correlated with the scores.
MAX_SHUFFLED = 30
#: Unlabelled rows that they are shuffled among: a fall of the AUC scatters with the labelled rows,
#: which are far fewer.
SHUFFLED_UNLABELED = 500
#: Cells that are scored in one call.
_CALL_CELLS = 1 << 20
#: Below this a column's values and the scores go neither up nor down together.
_LEAST_CORRELATION = 0.1
#: A category needs so many held-out rows before its mean score is worth a word.
_LEAST_ROWS = 5
_REPEATS = 3


def column_importance(
    fit: CrossFit,
    X: Any,
    encoder: TableEncoder,
    prior: Any,
    method: str,
    *,
    seed: int,
) -> list[dict[str, Any]]:
    """How much the held-out AUC estimate (of ``method``) falls when a column is shuffled.

    All encoded columns of one table column are shuffled together; the error is the standard
    deviation over ``_REPEATS``. Of more than ``MAX_SHUFFLED`` columns only those are shuffled whose
    values correlate most with the held-out scores, so that passes over the held-out rows are few
    however wide the table, dense or CSR. ``direction`` says which values score higher.
    """
    held = kernels_of(X[fit.rows], encoder)
    groups = _strongest(encoder, _correlations(held, fit.scores), MAX_SHUFFLED)
    names = [] if encoder.is_sparse else encoder.get_feature_names_out().tolist()
    flags = {column.name for column in encoder.columns_ if column.kind == "boolean"}
    shuffled = groups
    if held.shape[1] < X.shape[1]:  # the trees' own columns go along
        every = grouped_columns(encoder, ("kernels", "trees"))
        shuffled = {name: every[name] for name in groups}
    results = permutation_importance(fit, X, shuffled, prior, method, seed=seed, repeats=_REPEATS)
    for item in results:
        name, columns = item["column"], groups[item["column"]]
        features = [names[j] for j in columns] if names else [name]
        values = held[:, columns]
        item["direction"] = _direction(name, values, features, fit.scores, name in flags)
    return results


def permutation_importance(
    fit: CrossFit,
    X: Any,
    groups: dict[str, list[int]],
    prior: Any,
    method: str,
    *,
    seed: int,
    repeats: int = 3,
) -> list[dict[str, Any]]:
    """Fall of the AUC estimate, mean and spread over repeats, for every group of columns.

    Labelled rows and at most ``SHUFFLED_UNLABELED`` unlabelled ones take part.
    """
    rng = np.random.default_rng(seed)
    fit = _thinned(fit, rng)
    held = X[fit.rows]
    base = _value(fit.roles, fit.scores, prior, method)
    columns_of = list(groups.values())
    shuffled = np.empty((len(groups), repeats, len(fit.rows)))
    for test, ranker in fit.folds:
        block, roles = held[test], fit.roles.take(test)
        # many shuffles in one call: a forest's cost is by the call as well as by the row
        tasks = [(g, r) for g in range(len(groups)) for r in range(repeats)]
        step = max(1, _CALL_CELLS // (block.shape[0] * block.shape[1]))
        for start in range(0, len(tasks), step):
            some = tasks[start : start + step]
            blocks = [_shuffled(block, columns_of[g], rng) for g, _ in some]
            scores = np.split(ranker.decision_function(_stacked(blocks)), len(some))
            for task, own in zip(some, scores, strict=True):
                shuffled[(*task, test)] = common_scale(own, roles)
    drops = {
        name: [base - _value(fit.roles, scores, prior, method) for scores in own]
        for name, own in zip(groups, shuffled, strict=True)
    }
    results = [
        {"column": name, "drop": float(np.mean(fall)), "spread": float(np.std(fall))}
        for name, fall in drops.items()
    ]
    return sorted(results, key=lambda item: -item["drop"])


def _thinned(fit: CrossFit, rng: np.random.Generator) -> CrossFit:
    """The same folds with fewer unlabelled rows, their scores placed among those that stay."""
    unlabeled = fit.roles.unlabeled
    if len(unlabeled) <= SHUFFLED_UNLABELED:
        return fit
    stays = fit.roles.codes != -1
    stays[rng.choice(unlabeled, SHUFFLED_UNLABELED, replace=False)] = True
    kept, place = np.flatnonzero(stays), np.cumsum(stays) - 1
    roles, scores = fit.roles.take(kept), fit.scores[kept]
    folds = []
    for test, ranker in fit.folds:
        own = place[test[stays[test]]]
        scores[own] = common_scale(scores[own], roles.take(own))
        folds.append((own, ranker))
    return replace(fit, rows=fit.rows[kept], roles=roles, scores=scores, folds=folds)


def _stacked(blocks: Sequence[Any]) -> Any:
    if sparse.issparse(blocks[0]):
        return sparse.csr_matrix(sparse.vstack(blocks))
    return np.concatenate(blocks)


def _strongest(encoder: TableEncoder, related: Floats, at_most: int) -> dict[str, list[int]]:
    """The table columns that correlate most with the scores, and what encodes each."""
    if encoder.is_sparse:  # names of millions of features are not made for the sake of a few
        order = np.argsort(-np.abs(related), kind="stable")[:at_most]
        return {f"feature {j + 1}": [int(j)] for j in order}
    groups = encoder.groups_
    strength = {name: float(np.abs(related[columns]).max()) for name, columns in groups.items()}
    chosen = sorted(groups, key=lambda name: -strength[name])[:at_most]
    return {name: groups[name] for name in chosen}


def _value(roles: Roles, scores: Floats, prior: Any, method: str) -> float:
    return unbiased_auc(ScoreCounts.from_roles(roles, scores), prior, method)


def _correlations(X: Any, scores: Floats) -> Floats:
    """Correlation of every encoded column with the scores, shape (d,); 0 for constant ones."""
    centred = scores - scores.mean()
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        spread = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
        product = np.asarray(X.T @ centred).ravel() / len(scores)
    else:
        mean, spread = X.mean(axis=0), X.var(axis=0)
        product = (X - mean).T @ centred / len(scores)
    scale = np.sqrt(np.maximum(spread, 0.0)) * centred.std()
    return np.asarray(np.divide(product, scale, out=np.zeros(len(product)), where=scale > 0))


def _shuffled(block: Any, columns: Sequence[int], rng: np.random.Generator) -> Any:
    """A copy of the rows with some columns in another order."""
    order = rng.permutation(block.shape[0])
    if sparse.issparse(block):
        # outside of the columns as it was, inside of them as rows in another order
        inside = np.zeros(block.shape[1])
        inside[list(columns)] = 1.0
        mask = sparse.diags_array(inside)
        kept = block @ sparse.diags_array(1.0 - inside)
        return sparse.csr_matrix(kept + block[order] @ mask)
    out = np.array(block)
    out[:, columns] = block[order][:, columns]
    return out


def _direction(
    name: str, values: Any, features: Sequence[str], scores: Floats, is_flag: bool
) -> str | None:
    """Which values of the column have high scores, in a few words; None if neither way.

    ``values`` are its encoded columns, shape (m, g). A number's first one grows with it.
    """
    dense = np.asarray(values.todense() if sparse.issparse(values) else values)
    if features[0].startswith(f"{name}="):
        inside = dense > 0
        known = np.flatnonzero(inside.sum(axis=0) >= _LEAST_ROWS)
        if len(known) < 2:
            return None
        best = int(max(known, key=lambda j: float(scores[inside[:, j]].mean())))
        return f"{features[best].removeprefix(f'{name}=')} scores highest"
    if features[0].startswith(f"{name} hash "):
        return None
    first = dense[:, 0]
    if np.ptp(first) == 0:
        return None
    correlation = float(np.corrcoef(rankdata(first), rankdata(scores))[0, 1])
    if abs(correlation) < _LEAST_CORRELATION:
        return "no single direction"
    if is_flag:
        return f"{'true' if correlation > 0 else 'false'} scores higher"
    higher, lower = ("later", "earlier") if features[0] == f"{name} days" else ("higher", "lower")
    return f"{higher if correlation > 0 else lower} values score higher"


def importance_findings(importance: list[dict[str, Any]], n_columns: int) -> dict[str, Any]:
    """The columns, most informative first, and how it was measured."""
    measured = (
        "Fall of the held-out AUC estimate (of the share of pairs won, where an AUC cannot be "
        "told) when the column's values are shuffled among the held-out rows (at most "
        f"{SHUFFLED_UNLABELED:,} unlabelled ones); mean and standard deviation of {_REPEATS} "
        "shuffles."
    )
    if not importance:
        measured = "Not measured."
    elif n_columns > len(importance):
        measured += (
            f" Of {n_columns:,} columns the {len(importance)} most correlated with the scores "
            "were shuffled."
        )
    return {"columns": importance, "procedure": measured, "n_columns": n_columns}
