"""AUCClassifierCV, AUC estimates and comparisons for tables that Dask holds in partitions."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from pnuauc._utils.extras import need
from pnuauc.dask.source import collection_source, feature_names, is_collection
from pnuauc.engines import count_columns, count_scores, fit_on_source
from pnuauc.estimators import AUCClassifierCV, label_codes
from pnuauc.evaluation import AUCComparison, AUCEstimate, auc_from_counts
from pnuauc.evaluation.compare import compare_counted
from pnuauc.evaluation.estimate import unbiased_auc


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
    labeled, counted = count_columns(source, **label_codes)
    return compare_counted(labeled, counted, prior, method, level, prior_level=prior_level)


class DaskAUCClassifierCV(AUCClassifierCV):
    """:class:`pnuauc.AUCClassifierCV` on Dask collections.

    Labelled rows and a draw of 20,000 unlabelled ones come to the client: prior, centres and
    threshold rest on them, as in memory. Moments and held-out counts are summed over all
    unlabelled rows where they are, in two visits, and merged by a tree of width 4 in a fixed
    order, so that the result does not depend on which worker did what, nor on workers that died.
    Rows fall into folds by a hash of their content: the same rows give the same model, to
    rounding, however they are cut into partitions.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the client in use; without any, Dask's own scheduler of threads.
    **parameters
        Those of :class:`pnuauc.AUCClassifierCV`, by name. ``n_jobs`` concerns the client's part.

    Attributes
    ----------
    As those of :class:`pnuauc.AUCClassifierCV`.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.random(300) < 0.2
    >>> X = rng.standard_normal((300, 2)) + np.where(hidden, 1.0, -1.0)[:, None]
    >>> y = np.where(np.arange(300) < 60, hidden, np.nan)
    >>> X, y = da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100)
    >>> model = DaskAUCClassifierCV(prior=0.2, random_state=0).fit(X, y)
    >>> model.decision_function(X)
    dask.array<_scores, shape=(300,), dtype=float64, chunksize=(100,), chunktype=numpy.ndarray>
    """

    def __init__(self, *, client: Any = None, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.client = client

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None
    ) -> DaskAUCClassifierCV:
        """Fit to a Dask DataFrame or Array X, shape (n, d), and labels y, shape (n,).

        ``y``, ``sample_weight`` and ``groups`` are Series or Arrays with the partitions of X.
        Rows of one group share a fold, labelled or not.
        """
        self._check_settings()
        source = collection_source(
            self.client, features=X, label=y, weight=sample_weight, id=groups
        )
        fit_on_source(self, source, label_codes(self))
        names = feature_names(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def decision_function(self, X: Any) -> Any:
        """Scores of a Dask collection, lazily: a Series or Array; of rows in memory, at once."""
        check_is_fitted(self)
        return self._by_partition(_scores, X, np.dtype(np.float64))

    def predict(self, X: Any) -> Any:
        """Class labels of a Dask collection, lazily; of rows in memory, at once."""
        check_is_fitted(self)
        return self._by_partition(_labels, X, self.classes_.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """AUC estimate from whatever roles y has, as that of :class:`AUCClassifierCV`."""
        if not is_collection(X):
            return self.to_local().score(X, y, sample_weight)
        if sample_weight is not None:
            raise ValueError("Scores of Dask collections take no sample_weight.")
        source = collection_source(self.client, label=y, score=self.decision_function(X))
        return unbiased_auc(count_scores(source, **label_codes(self)), self.class_prior_)

    def to_local(self) -> AUCClassifierCV:
        """The same fitted model without Dask."""
        check_is_fitted(self)
        parameters = AUCClassifierCV().get_params(deep=False)
        local = AUCClassifierCV(**{name: getattr(self, name) for name in parameters})
        for name, value in vars(self).items():
            if name not in parameters and name != "client":
                setattr(local, name, value)
        return local

    def _by_partition(self, function: Any, X: Any, dtype: Any) -> Any:
        if not is_collection(X):
            return function(X, self.to_local())
        # the model is one task, fetched by every worker once
        model = need("dask", "dask").delayed(self.to_local())
        if hasattr(X, "chunks"):
            X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
            return X.map_blocks(
                function, model=model, dtype=dtype, drop_axis=1, meta=np.empty(0, dtype=dtype)
            )
        meta = need("pandas", "dask").Series([], dtype=dtype, index=X._meta.index[:0])
        return X.map_partitions(_as_series, function, model, meta=meta)

    def __sklearn_clone__(self) -> DaskAUCClassifierCV:
        parameters = {n: v for n, v in self.get_params(deep=False).items() if n != "client"}
        # a connection cannot be copied; everything else is
        copied = {name: clone(value, safe=False) for name, value in parameters.items()}
        return type(self)(client=self.client, **copied)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        return state | {"client": None}  # a connection cannot be stored


def _scores(X: Any, model: AUCClassifierCV) -> Any:
    return model.decision_function(X)


def _labels(X: Any, model: AUCClassifierCV) -> Any:
    return model.predict(X)


def _as_series(part: Any, function: Any, model: AUCClassifierCV) -> Any:
    pd = need("pandas", "dask")
    values = function(part, model) if len(part) else np.empty(0)
    return pd.Series(values, index=part.index)


def _with_client(function: Any) -> Any:
    """The parameters of AUCClassifierCV by name, and ``client``: what scikit-learn asks for."""
    own = inspect.signature(AUCClassifierCV.__init__)
    client = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None)
    given = [
        p if p.name == "self" else p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for p in own.parameters.values()
    ]
    function.__signature__ = own.replace(parameters=[*given, client])
    return function


_with_client(DaskAUCClassifierCV.__init__)
