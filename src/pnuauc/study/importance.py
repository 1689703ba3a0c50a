"""Which columns carry the ranking, and which way; at a cost that does not grow with the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse, special
from scipy.stats import rankdata
from sklearn.feature_selection import r_regression

from pnuauc._utils.arrays import Floats
from pnuauc.io.encode import TableEncoder, kernels_of
from pnuauc.study.evidence import Evidence
from pnuauc.study.findings import ColumnImportance, Importance

#: Columns that are tried; of wider tables those most correlated with the scores.
MAX_SHUFFLED = 30
#: Cells that are scored in one call.
_CALL_CELLS = 1 << 20
#: Below this a column's values and the scores go neither up nor down together.
_LEAST_CORRELATION = 0.1
#: Held-out rows of a category below which its mean score is not shown.
_LEAST_ROWS = 5
_REPEATS = 3


def importance_findings(evidence: Evidence, X: Any, encoder: TableEncoder, seed: int) -> Importance:
    """How much the held-out AUC falls when a column of the labelled rows is replaced.

    The cells are those of unlabelled rows drawn at random (without such rows: of other labelled
    ones); all encoded columns of one table column go together. The fall is the paired difference
    on the held-out rows, mean and standard deviation over ``_REPEATS`` draws. Of more than
    ``MAX_SHUFFLED`` columns only those are replaced whose values correlate most with the held-out
    scores. ``direction`` says which values score higher.
    """
    n_columns = encoder.n_features_in_
    scores = special.ndtri(evidence.places)
    held = kernels_of(X[evidence.held_out.rows], encoder)
    groups = _strongest(encoder, r_regression(held, scores), MAX_SHUFFLED)
    names = [] if encoder.is_sparse else encoder.get_feature_names_out().tolist()
    flags = {column.name for column in encoder.columns_ if column.kind == "boolean"}
    replaced = groups
    if held.shape[1] < X.shape[1]:  # the trees' own columns go along
        every = encoder.groups("kernels", "trees")
        replaced = {name: every[name] for name in groups}
    results = _falls(evidence, X, replaced, seed)
    for item in results:
        name, columns = item.column, groups[item.column]
        features = [names[j] for j in columns] if names else [name]
        values = held[:, columns]
        item.direction = _direction(name, values, features, scores, name in flags)
    procedure = (
        "Fall of the held-out AUC when the column's cells in the labelled rows are replaced by "
        f"those of random unlabelled rows; mean and standard deviation of {_REPEATS} draws."
    )
    if n_columns > len(results):
        procedure += (
            f" Of {n_columns:,} columns the {len(results)} most correlated with the scores were "
            "tried."
        )
    return Importance(results, procedure, n_columns)


def _falls(
    evidence: Evidence, X: Any, groups: dict[str, list[int]], seed: int
) -> list[ColumnImportance]:
    """Fall of the AUC, mean and standard deviation over repeats, for every group of columns."""
    rng = np.random.default_rng(seed)
    every = evidence.held_out
    pool = every.rows[every.codes == -1]
    pool = pool if len(pool) else every.rows
    held_out, places = every.of_labeled(), evidence.places[every.labeled]
    share = None if evidence.prior is None else evidence.prior.value
    used = (evidence.weights != 0.0).any(axis=0).tolist()  # rivals have no part in it
    tasks = [(name, columns) for name, columns in groups.items() for _ in range(_REPEATS)]
    changed = np.repeat(held_out.scores[None], len(tasks), axis=0)
    for k, models in enumerate(held_out.models):
        own = np.flatnonzero(held_out.fold == k)
        if not len(own):
            continue
        block = X[held_out.rows[own]]
        # many replacements in one call: a forest's cost is by the call as well as by the row
        step = max(1, _CALL_CELLS // (block.shape[0] * block.shape[1]))
        for start in range(0, len(tasks), step):
            some = range(start, min(start + step, len(tasks)))
            blocks = [_replaced(block, X[rng.choice(pool, len(own))], tasks[i][1]) for i in some]
            together = sparse.vstack(blocks, "csr") if sparse.issparse(X) else np.vstack(blocks)
            changed[start : start + step, own] = models.score(together, used).reshape(
                len(some), len(own), -1
            )
    falls: dict[str, list[float]] = {name: [] for name in groups}
    for (name, _), values in zip(tasks, changed, strict=True):
        moved = held_out.places(evidence.weights, values)
        falls[name].append(held_out.difference(places, moved, share).value)
    results = [
        ColumnImportance(name, float(np.mean(fall)), float(np.std(fall)))
        for name, fall in falls.items()
    ]
    return sorted(results, key=lambda item: -item.drop)


def _strongest(encoder: TableEncoder, related: Floats, at_most: int) -> dict[str, list[int]]:
    """The table columns that correlate most with the scores, and what encodes each."""
    if encoder.is_sparse:  # names of millions of features are not made for the sake of a few
        order = np.argsort(-np.abs(related), kind="stable")[:at_most]
        return {f"feature {j + 1}": [int(j)] for j in order}
    groups = encoder.groups_
    strength = {name: float(np.abs(related[columns]).max()) for name, columns in groups.items()}
    chosen = sorted(groups, key=lambda name: -strength[name])[:at_most]
    return {name: groups[name] for name in chosen}


def _replaced(block: Any, others: Any, columns: Sequence[int]) -> Any:
    """A copy of the rows with some columns of other rows."""
    if sparse.issparse(block):
        # outside of the columns as it was, inside of them as the other rows have it
        inside = np.zeros(block.shape[1])
        inside[list(columns)] = 1.0
        kept = block @ sparse.diags_array(1.0 - inside)
        return sparse.csr_matrix(kept + others @ sparse.diags_array(inside))
    out = np.array(block)
    out[:, columns] = others[:, columns]
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
    if features[0].startswith(f"{name} component "):
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
