"""pnuauc: rank rare positives when almost nothing is labelled."""

from pnuauc._estimators import AUCClassifier
from pnuauc._estimators_cv import AUCClassifierCV

__version__ = "0.1.0"
__all__ = ["AUCClassifier", "AUCClassifierCV", "__version__"]
