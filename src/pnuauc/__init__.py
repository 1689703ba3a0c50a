"""pnuauc: rank rare positives when almost nothing is labelled."""

from pnuauc.estimators import AUCClassifier
from pnuauc.estimators_cv import AUCClassifierCV

__version__ = "0.1.0"
__all__ = ["AUCClassifier", "AUCClassifierCV", "__version__"]
