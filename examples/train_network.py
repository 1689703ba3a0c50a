"""Train a small network on positive, negative and unlabelled rows with the PNU-AUC loss.

    PNUAUC_DATA=folder python -m examples.train_network

Two of the paper's sets, rows (waveform) and text vectors (amazon2, 100 components), 20 positive, 80
negative and 1,000 unlabelled rows of which a tenth are positive. The same network, batches and
optimiser with eta = 0 (PN: the labelled rows only) and eta = .5 (PN and PU); nothing is tuned. The
AUC is that of 2,000 test rows. Also shown: what becomes of the PU risk without a correction.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import roc_auc_score

from experiments.paper_sets import load
from pnuauc.datasets import PNUSample, sample_pnu
from pnuauc.torch import PNUAUCLoss, RoleBatchSampler

PRIOR = 0.1
SETS = ("waveform", "amazon2")
MODELS = {"PN": 0.0, "PNU, eta .5": 0.5}


def draw(name: str, draws: int) -> list[PNUSample]:
    """Draws of a set; text becomes 100 components of all its rows, which needs no label."""
    X, y = load(name)
    if not isinstance(X, np.ndarray):
        X = TruncatedSVD(100, random_state=0).fit_transform(X)
    return [
        sample_pnu(X, y, 20, 80, 1000, PRIOR, seed, n_test=2000, scale="standard")
        for seed in range(draws)
    ]


def network(n_columns: int, width: int, seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(n_columns, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)]
    return torch.nn.Sequential(*layers)


def train(sample: PNUSample, eta: float, epochs: int, seed: int) -> float:
    """Test AUC of the network after some epochs."""
    X, y = torch.tensor(sample.X, dtype=torch.float32), torch.tensor(sample.y)
    model, loss = network(X.shape[1], 32, seed), PNUAUCLoss(PRIOR, eta)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    data = torch.utils.data.TensorDataset(X, y)
    batches = RoleBatchSampler(sample.y, {"P": 8, "N": 16, "U": 64}, seed=seed)
    for _ in range(epochs):
        for rows, target in torch.utils.data.DataLoader(data, batch_sampler=batches):
            optimizer.zero_grad()
            loss(model(rows), target).backward()
            optimizer.step()
    with torch.no_grad():
        scores = model(torch.tensor(sample.X_test, dtype=torch.float32))
    return float(roc_auc_score(sample.y_test, scores[:, 0].numpy()))


def run(
    draws: int = 5, epochs: int = 40, sets: tuple[str, ...] = SETS
) -> dict[str, dict[str, np.ndarray]]:
    """Test AUC by set and model, shape (draws,) each."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for name in sets:
        samples = draw(name, draws)
        found[name] = {
            model: np.array([train(s, eta, epochs, seed) for seed, s in enumerate(samples)])
            for model, eta in MODELS.items()
        }
    return found


def risks(correction: str, steps: int = 600) -> tuple[list[float], list[float]]:
    """PU risk of the training rows and test AUC, every 10 steps: a wide network, few rows."""
    rng = np.random.default_rng(0)
    hidden, fresh = rng.random(200) < 0.4, rng.random(2000) < 0.4
    target = torch.tensor(np.repeat([1, -1], [15, 200]))
    X, Z = (
        torch.tensor(rng.normal(size=(len(t), 10)) + 0.5 * t[:, None], dtype=torch.float32)
        for t in (np.r_[np.ones(15), hidden], fresh)
    )
    model, loss = network(10, 64, 0), PNUAUCLoss(0.4, 1.0, correction=correction)
    plain = PNUAUCLoss(0.4, 1.0, correction="none")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    values, aucs = [], []
    for step in range(steps):
        if step % 10 == 0:
            with torch.no_grad():
                values.append(plain(model(X), target).item())
                aucs.append(float(roc_auc_score(fresh, model(Z)[:, 0].numpy())))
        optimizer.zero_grad()
        loss(model(X), target).backward()
        optimizer.step()
    return values, aucs


def figure(path: Path) -> None:
    """The PU risk and the AUC of a run with and without a correction."""
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for correction in ("none", "clamp", "abs"):
        for axis, values in zip(axes, risks(correction), strict=True):
            axis.plot(10 * np.arange(len(values)), values, label=correction)
    axes[0].set(yscale="symlog", xlabel="step", title="PU risk of the training rows")
    axes[1].set(xlabel="step", title="AUC of new rows")
    axes[0].legend(title="correction", frameon=False)
    drawing.savefig(path, metadata={"Date": None})
    plt.close(drawing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--figure", type=Path, help="draw the runs with and without correction")
    options = parser.parse_args()
    if options.figure:
        figure(options.figure)
        return
    for name, models in run(options.draws, options.epochs).items():
        gain = models["PNU, eta .5"] - models["PN"]
        shown = ", ".join(f"{model} {aucs.mean():.3f}" for model, aucs in models.items())
        error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
        print(f"{name}: {shown}; difference {gain.mean():+.3f} ± {error:.3f}")


if __name__ == "__main__":
    main()
