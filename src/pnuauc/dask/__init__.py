"""Fit and evaluate tables that Dask holds in partitions: ``pip install 'pnuauc[dask]'``."""

from pnuauc.dask.estimator import DaskAUCClassifierCV, auc_estimate, compare_auc

__all__ = ["DaskAUCClassifierCV", "auc_estimate", "compare_auc"]
