"""pnuauc: rank rare positives when almost nothing is labelled."""

from pnuauc.estimators import AUCClassifier

__version__ = "0.1.0"
__all__ = ["AUCClassifier", "__version__"]
