"""The committee against one AUCClassifierCV fit; python -m benchmarks.bench_auto

Processor seconds of each, prior given, every fit in a process of its own, and how far its memory
rose above the input. Scoring: rows a second of the committee, of the committee without its forests
(the best of three, and how many times what the matrix products, exponentials and sums of its
kernels take by themselves: a busy machine slows both), and of ExtraTreesClassifier with as many
trees on the labelled rows. With ``--words`` the rows are
sparse: so many columns, 100 of them filled in a row, and the committee is also held against
AUCClassifierCV(basis="linear"), which takes a tenth of a second there.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from collections.abc import Callable
from dataclasses import replace
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier

from pnuauc import AUCClassifierCV, AutoAUCClassifier

SETTINGS = {"PU": (20, 0), "PNU": (20, 80), "PNU, 1,000 labels": (200, 800)}


def make_rows(n: int, d: int, labels: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussians, n unlabelled rows and the labelled ones."""
    rng = np.random.default_rng(0)
    positive = rng.random(n + sum(labels)) < 0.1
    positive[: labels[0]], positive[labels[0] : sum(labels)] = True, False
    X = rng.standard_normal((len(positive), d))
    X += np.where(positive, 0.4, -0.4)[:, None]
    y = np.full(len(positive), np.nan)
    y[: sum(labels)] = positive[: sum(labels)]
    return X, y


def make_words(n: int, d: int, labels: tuple[int, int]) -> tuple[Any, np.ndarray]:
    """Texts of 100 words out of d, frequent ones first; positives use the first 200 more often."""
    dense, y = make_rows(n, 1, labels)
    rng = np.random.default_rng(1)
    words = np.minimum((d * rng.random((len(y), 100)) ** 3).astype(np.int64), d - 1)
    words[:, :10] = np.where(dense > 0.3, rng.integers(0, min(200, d), (len(y), 10)), words[:, :10])
    ends = np.arange(0, words.size + 1, 100)
    X = sparse.csr_matrix((np.full(words.size, 0.1), words.ravel(), ends), shape=(len(y), d))
    X.sum_duplicates()
    return X, y


def measure(name: str, n: int, d: int, labels: tuple[int, int], words: bool) -> dict[str, float]:
    """One fit, and the scoring of 50,000 rows."""
    make = make_words if words else make_rows
    X, y = make(n, d, labels)
    kind: Any = AutoAUCClassifier if name == "committee" else AUCClassifierCV
    ranker = kind(prior=0.1, verbose=False, random_state=0, n_jobs=1)
    if name == "linear":
        ranker.set_params(basis="linear")
    ranker.fit(*make(300, 3, labels))  # what is loaded at the first use is no part of a fit
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = process_time()
    ranker.fit(X, y)
    found = {"seconds": process_time() - start}
    found["megabytes"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    rows = X[np.resize(np.arange(X.shape[0]), 50_000)]
    found["rate"] = _rate(ranker.decision_function, rows)
    if name == "committee" and not words:
        forests = ("trees", "forest", "boosting")
        seats = tuple(s for s in ranker.scorer_.seats if s.name not in forests)
        rest = replace(ranker.scorer_, seats=seats)
        pairs = [(_rate(rest.score, rows), _rate(bare_kernels(seats), rows)) for _ in range(3)]
        found["rest"], bare = np.max(pairs, axis=0)
        found["times"] = bare / found["rest"]
    if all(labels) and not words:
        known = ~np.isnan(y)
        forest = ExtraTreesClassifier(200, random_state=0).fit(X[known], y[known])
        found["forest"] = _rate(forest.predict_proba, rows)
    return found


def bare_kernels(seats: Any) -> Callable[[Any], None]:
    """What a sum of kernels cannot do without, on arrays of the same sizes: a function of rows."""
    rng = np.random.default_rng(0)
    work = []
    for model in (part.model for seat in seats for part in seat.parts):
        if model.kind != "kernels":
            continue
        arrays = model.arrays()
        (b, d), m = arrays["centers"].shape, len(arrays["widths"])
        powers = len(np.unique(arrays.get("powers", [2]))) if m else 0
        n = max(65_536 // b, 1)
        left, right = rng.random((n, d + 2)), rng.random((d + 2, b))
        kernel, coef = -rng.random((n, b), dtype=np.float32), rng.random(b, dtype=np.float32)
        work.append((left, right, kernel, coef, powers, m))

    def score(rows: Any) -> None:
        for left, right, kernel, coef, powers, m in work:
            product, out = np.empty(kernel.shape), np.empty_like(kernel)
            for _ in range(-(-len(rows) // len(kernel))):
                if m:
                    np.matmul(left, right, out=product)
                for _ in range(powers):
                    np.exp(kernel, out=out)
                for _ in range(m):
                    out @ coef

    return score


def _rate(score: Callable[[Any], Any], rows: Any) -> float:
    """Rows a second."""
    start = process_time()
    score(rows)
    return float(rows.shape[0] / (process_time() - start))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 1_000_000])
    parser.add_argument("--columns", type=int, default=18)
    parser.add_argument("--words", action="store_true", help="sparse rows")
    args = parser.parse_args()
    head = ("unlabelled", "labels", "one s", "committee s", "ratio", "to linear", "MB", "rows/s")
    head += ("no forests", "times bare", "ExtraTrees")
    print(" ".join(f"{name:>18}" for name in head))
    for n in args.rows:
        for name, labels in SETTINGS.items():
            found = {}
            for kind in ("one", "committee", *(["linear"] if args.words else [])):
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    found[kind] = pool.apply(measure, (kind, n, args.columns, labels, args.words))
            one, whole = found["one"], found["committee"]
            values = (one["seconds"], whole["seconds"], whole["seconds"] / one["seconds"])
            shown = [f"{n:,}", name, *(f"{v:.2f}" for v in values)]
            linear = found.get("linear")
            shown += [f"{whole['seconds'] / linear['seconds']:.2f}" if linear else ""]
            shown += [f"{whole['megabytes']:.0f}"]
            rates = [whole.get(key) for key in ("rate", "rest", "forest")]
            shown += ["" if rate is None else f"{rate:,.0f}" for rate in rates]
            shown.insert(-1, f"{whole['times']:.1f}" if "times" in whole else "")
            print(" ".join(f"{v:>18}" for v in shown), flush=True)


if __name__ == "__main__":
    main()
