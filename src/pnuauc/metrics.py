"""AUC of any model's scores from partly labelled data (:mod:`pnuauc.evaluation`)."""

from pnuauc.evaluation import *  # noqa: F403
from pnuauc.evaluation import __all__ as __all__
