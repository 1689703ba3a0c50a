"""Tests of api."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pnuauc
from pnuauc import ClassPrior, auc_estimate, compare_auc
from pnuauc.basis import MultiscaleBasis
from pnuauc.exceptions import MissingExtraError
from pnuauc.metrics import prior_sensitivity, roc_curve_estimate, threshold_estimate
from pnuauc.selection import TrainedGrid, deal_folds

API = Path(__file__).parents[1] / "docs" / "api.md"

#: The doors; whatever else there is are rooms behind them.
DOORS = (
    *("baselines", "basis", "boosting", "dask", "datasets", "exceptions", "io", "labels", "losses"),
    *("metrics", "priors", "selection", "spark", "tables", "theory", "torch"),
)


def public_modules():
    return [pnuauc, *(importlib.import_module(f"pnuauc.{name}") for name in DOORS)]


def public_names():
    return {
        f"{module.__name__}.{name}"
        for module in public_modules()
        for name in module.__all__
        if name != "__version__"
    }


@pytest.mark.skipif(not API.exists(), reason="the documentation is not beside the tests")
def test_every_public_name_is_listed_and_nothing_else():
    text = API.read_text(encoding="utf-8")
    listed = re.findall(r"^::: (pnuauc[\w.]+)$|^\| `(pnuauc[\w.]+)` \|", text, re.M)
    names = [a or b for a, b in listed]
    assert len(names) == len(set(names)), "listed twice"
    missing, unknown = public_names() - set(names), set(names) - public_names()
    assert not missing, f"not in docs/api.md: {sorted(missing)}"
    assert not unknown, f"in docs/api.md, but not public: {sorted(unknown)}"


@pytest.mark.parametrize("module", public_modules(), ids=lambda m: m.__name__)
def test_what_is_not_public_has_an_underscore(module):
    """Functions and classes that a public module defines itself are in __all__ or private."""
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__ or name.startswith("_"):
            continue
        if inspect.isclass(value) or inspect.isfunction(value):
            assert name in module.__all__, f"{module.__name__}.{name}"
    for name in module.__all__:
        try:
            assert hasattr(module, name)
        except MissingExtraError as error:
            pytest.skip(str(error))
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{module.__name__}.{name} has no docstring"


@pytest.mark.system
def test_import_needs_no_extra_and_loads_nothing():
    code = (
        "import sys\n"
        "for name in ('pyarrow', 'typer', 'rich', 'jinja2', 'skops', 'matplotlib'):\n"
        "    sys.modules[name] = None\n"
        "import pnuauc\n"
        "assert 'sklearn' not in sys.modules and 'numpy' not in sys.modules\n"
        "assert set(pnuauc.__all__) <= set(dir(pnuauc))\n"
        "assert callable(pnuauc.metrics.auc_estimate)\n"
        "from pnuauc import AUCClassifier, AUCClassifierCV, ClassPrior, auc_estimate, compare_auc\n"
        "from pnuauc import fit_table, load_model, make_auc_scorer, read_roles\n"
        "try:\n"
        "    fit_table({'a': [1]})\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pip install 'pnuauc[cli]'" in done.stdout


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pnuauc.nothing
    with pytest.raises(ImportError):
        from pnuauc import nothing  # noqa: F401


def results():
    rng = np.random.default_rng(0)
    y = np.repeat([1.0, 0.0, np.nan], [20, 30, 400])
    a, b = rng.normal(size=(2, 450)) + (y == 1)
    yield auc_estimate(y, a, (0.1, 0.2))
    yield compare_auc(y, a, b, 0.1)
    yield roc_curve_estimate(y, a, 0.1)
    yield threshold_estimate(y, a, 0.1, k=20)
    yield prior_sensitivity(y, a)
    yield ClassPrior.from_posterior(np.linspace(0.01, 0.5, 300), np.ones(300))


@pytest.mark.parametrize("result", list(results()), ids=lambda r: type(r).__name__)
def test_results_are_one_short_line_and_one_table(result):
    """But a curve over priors, which is a heading and a line for each prior."""
    line, *more = repr(result).splitlines()
    assert line.startswith(f"{type(result).__name__}(")
    assert len(more) == (len(result.priors) if type(result).__name__ == "PriorSensitivity" else 0)
    assert len(line) < 420
    table = result._repr_html_()
    assert table.startswith("<table>")
    assert table.endswith("</table>")
    assert table.count("<tr>") == table.count("</tr>") >= 4
    assert type(result).__name__ in table


def test_a_grid_and_its_parts_are_one_short_line():
    X = np.random.default_rng(0).standard_normal((60, 2)) + (np.arange(60) < 10)[:, None]
    rows = {"P": np.arange(10), "N": np.arange(10, 30), "U": np.arange(30, 60)}
    folds = deal_folds(rows, 3, random_state=0)
    assert repr(folds) == "FoldedRows(3 folds of P=10, N=20, U=30)"
    basis = MultiscaleBasis(10, (1.0,), random_state=0).fit(X)
    grid = TrainedGrid.from_arrays(X, folds, basis, (0.0, 0.5), (0.1, 1.0), 0.2).train()
    assert repr(grid) == "TrainedGrid(4 candidates, 3 folds, PNU)"
    chosen = grid.choose()
    assert repr(chosen).startswith(f"ChosenModel(grid={grid!r}, n_kept=")
    assert "best=(width: 1, eta: " in repr(chosen)
    for shown in (chosen, chosen.model, chosen.report):
        assert len(repr(shown)) < 420
        assert "\n" not in repr(shown)
        assert shown._repr_html_().startswith("<table>")


def test_tables_hold_the_numbers_and_escape_everything():
    prior = ClassPrior(0.1234, 0.05, 0.2, 0.9, 0.04, "<script>x</script>", "a & b")
    table = prior._repr_html_()
    assert "0.1234" in table
    assert "&lt;script&gt;" in table
    assert "<script>" not in table
    assert "a &amp; b" in table
    estimate = auc_estimate([1, 1, 0, 0, None, None], [3, 2, 1, 0, 2, 1], 0.3)
    shown = estimate._repr_html_()
    assert f"{estimate.value:.4g}" in shown
    for note in estimate.notes:
        assert note.replace("'", "&#x27;") in shown
