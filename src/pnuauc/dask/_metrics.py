"""AUC estimates and comparisons of scores that Dask holds in partitions."""

from __future__ import annotations

from typing import Any

from pnuauc._sources._metrics import count_pairs, count_scores
from pnuauc.dask._collections import collection_source
from pnuauc.metrics import AUCComparison, AUCEstimate, auc_from_counts
from pnuauc.metrics._compare import compare_counted

__all__ = ["auc_estimate", "compare_auc"]


def auc_estimate(
    y: Any,
    scores: Any,
    prior: Any = None,
    method: str = "auto",
    level: float = 0.95,
    *,
    prior_level: float = 0.95,
    variance_factor: float = 1.0,
    client: Any = None,
    **label_codes: Any,
) -> AUCEstimate:
    """:func:`pnuauc.metrics.auc_estimate` on Dask collections, the same to the last digit.

    Scores are visited twice: once to gather those of the labelled rows, once to count the others
    between them. Persist them if they are costly.

    Parameters
    ----------
    y, scores : dask Series or Array, shape (n,), with the same partitions
    client : distributed.Client, optional
        By default the client in use.
    prior, method, level, prior_level, variance_factor, **label_codes
        As in :func:`pnuauc.metrics.auc_estimate`.
    """
    counts = count_scores(collection_source(client, label=y, score=scores), **label_codes)
    return auc_from_counts(
        counts, prior, method, level, prior_level=prior_level, variance_factor=variance_factor
    )


def compare_auc(
    y: Any,
    scores_a: Any,
    scores_b: Any,
    prior: Any = None,
    method: str = "auto",
    level: float = 0.95,
    *,
    prior_level: float = 0.95,
    client: Any = None,
    **label_codes: Any,
) -> AUCComparison:
    """:func:`pnuauc.metrics.compare_auc` on Dask collections, the same to rounding.

    Parameters
    ----------
    y, scores_a, scores_b : dask Series or Array, shape (n,), with the same partitions
    client : distributed.Client, optional
        By default the client in use.
    prior, method, level, prior_level, **label_codes
        As in :func:`pnuauc.metrics.compare_auc`.
    """
    source = collection_source(client, label=y, score=scores_a, second_score=scores_b)
    labeled, counted = count_pairs(source, **label_codes)
    return compare_counted(labeled, counted, prior, method, level, prior_level=prior_level)
