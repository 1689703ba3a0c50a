"""``pnuauc reproduce``: hands over to the experiments of the checkout that this file is in."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from pnuauc.exceptions import InputError

__all__ = ["run_experiment"]


def run_experiment(arguments: list[str]) -> int:
    """Run ``experiments.main(arguments)`` of the checkout that this file is in.

    Never of the folder one happens to stand in: whoever filled that could run anything.
    """
    checkout = Path(__file__).resolve().parents[3]
    inside = Path(__file__).resolve().parents[2] == checkout / "src"
    if not (inside and (checkout / "experiments" / "__init__.py").is_file()):
        raise InputError(
            "The paper's experiments are not part of the installed package; get the source, "
            "install it with pip install --editable . and run the command again."
        )
    sys.path.insert(0, str(checkout))
    experiments = importlib.import_module("experiments")
    home = Path(str(experiments.__file__)).resolve().parent
    if home != checkout / "experiments" or not hasattr(experiments, "main"):
        raise InputError("This checkout's experiments/ has no main function to run.")
    return int(experiments.main(arguments) or 0)
