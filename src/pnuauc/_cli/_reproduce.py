"""``pnuauc reproduce``: hands over to the experiments of a source checkout."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

from pnuauc.exceptions import InputError

__all__ = ["run_experiment"]


def run_experiment(arguments: list[str]) -> int:
    """Run ``experiments.main(arguments)`` where it can be found: beside the source, or here."""
    checkout = Path(__file__).resolve().parents[3]
    for folder in (checkout, Path.cwd()):
        if (folder / "experiments" / "__init__.py").is_file():
            if str(folder) not in sys.path:
                sys.path.insert(0, str(folder))
            break
    else:
        raise InputError(
            "The paper's experiments are not part of the installed package; run this command from "
            "a source checkout of pnuauc, where the folder experiments/ is."
        )
    experiments = importlib.import_module("experiments")
    if not hasattr(experiments, "main"):
        raise InputError("This checkout's experiments/ has no main function to run.")
    return int(experiments.main(arguments) or 0)
