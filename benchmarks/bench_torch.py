"""The torch loss against tables of all pairs: ``python -m benchmarks.bench_torch``.

Forward and backward of the PNU loss (eta .5, logistic) on one batch, half of it unlabelled, a
quarter positive, a quarter negative. The table: the same risk from n x m margins in torch, by its
own gradients. "LibAUC" is its pairwise loss where that is installed (P against N only, squared
hinge), beside ours for the same pairs. The best of the repeats, once with the losses in turns, so
that each finds the caches filled by another, and once with each by itself.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from pnuauc.torch import PNUAUCLoss

PRIOR = 0.1


def table(scores, target):
    p, n, u = (scores[target == code] for code in (1, 0, -1))

    def mean(a, b):
        return torch.nn.functional.softplus(b[None, :] - a[:, None]).mean()

    within = torch.nn.functional.softplus(p[None, :] - p[:, None])
    within = (within.sum() - within.diagonal().sum()) / (len(p) * (len(p) - 1))
    return 0.5 * mean(p, n) + 0.5 * (mean(p, u) - PRIOR * within) / (1 - PRIOR)


def rivals(target):
    pnu = PNUAUCLoss(PRIOR, 0.5)
    found = {"ours": lambda s: pnu(s, target), "table of pairs": lambda s: table(s, target)}
    try:
        from libauc.losses import PairwiseAUCLoss
    except ImportError:
        print("LibAUC is not installed: left out.")
        return found
    pn, labelled = PNUAUCLoss(eta=0.0, loss="squared_hinge"), target >= 0
    theirs = PairwiseAUCLoss()
    found["ours, PN"] = lambda s: pn(s[labelled], target[labelled])
    found["LibAUC, PN"] = lambda s: theirs(s[labelled], target[labelled])
    return found


def seconds(loss, values):
    scores = values.clone().requires_grad_()
    start = time.perf_counter()
    loss(scores).backward()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, nargs="+", default=[256, 1024, 4096, 16384])
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    for n in options.batch:
        rng = np.random.default_rng(0)
        target = torch.tensor(rng.permutation(np.resize([1, 0, -1, -1], n)))
        values = torch.tensor(rng.normal(size=n), dtype=torch.float32)
        losses = rivals(target)
        turns: dict[str, list[float]] = {name: [] for name in losses}
        for _ in range(options.repeats):
            for name, loss in losses.items():
                turns[name].append(seconds(loss, values))
        alone = {
            name: [seconds(loss, values) for _ in range(options.repeats)]
            for name, loss in losses.items()
        }
        for way, times in {"in turns": turns, "each by itself": alone}.items():
            best = {name: 1e3 * min(t) for name, t in times.items()}
            shown = ", ".join(f"{name} {value:.2f} ms" for name, value in best.items())
            gain = best["table of pairs"] / best["ours"]
            print(f"batch {n:,}, {way}: {shown}; {gain:.1f} times faster")


if __name__ == "__main__":
    main()
