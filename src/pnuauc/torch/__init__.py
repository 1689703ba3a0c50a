"""The paper's risks as a torch loss, batches by role, AUC as a metric: ``pnuauc[torch]``.

Names are loaded when they are asked for: without torch, that is the error.
"""

import importlib
from typing import TYPE_CHECKING, Any

from pnuauc._utils.extras import need

if TYPE_CHECKING:
    from pnuauc.torch.modules import PNUAUROC, PNUAUCLoss, RoleBatchSampler

__all__ = ["PNUAUROC", "PNUAUCLoss", "RoleBatchSampler"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'pnuauc.torch' has no attribute {name!r}")
    need("torch", "torch")
    return getattr(importlib.import_module("pnuauc.torch.modules"), name)
