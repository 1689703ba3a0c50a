"""The torch loss, sampler and metric, against the risks and estimates of the package."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pnuauc.torch
from pnuauc.core.risks import pnu_risk
from pnuauc.exceptions import PnuaucWarning
from pnuauc.losses import LOSSES
from pnuauc.metrics import auc_estimate

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'pnuauc[torch]'")

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_network.py"
PRIOR = 0.3
CODES = {"P": 1, "N": 0, "U": -1}


def batch(n=(7, 9, 30), seed=0, scale=1.0):
    """Scores and targets in a random order."""
    rng = np.random.default_rng(seed)
    target = rng.permutation(np.repeat([1, 0, -1], n))
    return scale * (rng.normal(size=len(target)) + (target == 1)), target


def by_role(values, target):
    return {r: values[target == c] for r, c in CODES.items() if (target == c).any()}


def expected(risk, loss, scores, target, weight=None):
    """Value and gradient of a risk on the same rows."""
    weights = None if weight is None else by_role(weight, target)
    value, gradient = 0.0, np.zeros(len(scores))
    for part, part_value, slopes in risk.part_gradients(loss, by_role(scores, target), weights):
        value += part.weight * part_value
        for role, slope in slopes.items():
            gradient[target == CODES[role]] += part.weight * slope
    return value, gradient


def ours(scores, target, weight=None, dtype=None, **settings):
    tensor = torch.tensor(scores, dtype=dtype or torch.float64, requires_grad=True)
    loss = pnuauc.torch.PNUAUCLoss(**settings)
    value = loss(tensor, torch.tensor(target), None if weight is None else torch.tensor(weight))
    value.backward()
    return value, tensor.grad


def table_loss(name, m):
    """The losses once more, in torch, so that its own gradients can be compared."""
    return {
        "squared": lambda: (1 - m) ** 2,
        "exponential": lambda: torch.exp(-m),
        "logistic": lambda: torch.nn.functional.softplus(-m),
        "hinge": lambda: torch.relu(1 - m),
        "squared_hinge": lambda: torch.relu(1 - m) ** 2,
        "absolute": lambda: (1 - m).abs(),
        "smoothed_hinge": lambda: torch.where(
            (1 - m).abs() <= 1e-2, (1.01 - m) ** 2 / 4e-2, torch.relu(1 - m)
        ),
        "smoothed_absolute": lambda: torch.where(
            (1 - m).abs() <= 1e-2, ((1 - m) ** 2 + 1e-4) / 2e-2, (1 - m).abs()
        ),
    }[name]()


def table(name, scores, target, eta, weight):
    """R_PNU over tables of all pairs, differentiated by torch."""
    s = torch.tensor(scores, requires_grad=True)
    v = torch.tensor(weight)
    t = torch.tensor(target)

    def mean(a, b):
        left, right = t == CODES[a], t == CODES[b]
        pairs = table_loss(name, s[left][:, None] - s[right][None, :])
        mass = v[left][:, None] * v[right][None, :]
        if a == b:
            mass = mass - torch.diag(v[left])
        return (mass * pairs).sum() / mass.sum()

    risk = (1 - abs(eta)) * mean("P", "N")
    if eta > 0:
        risk = risk + eta * (mean("P", "U") - PRIOR * mean("P", "P")) / (1 - PRIOR)
    if eta < 0:
        risk = risk - eta * (mean("U", "N") - (1 - PRIOR) * mean("N", "N")) / PRIOR
    risk.backward()
    return risk.item(), s.grad.numpy()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("eta", [-1.0, -0.4, 0.0, 0.6, 1.0])
@pytest.mark.parametrize("name", [k for k, loss in LOSSES.items() if loss.has_derivative])
def test_values_and_gradients_are_those_of_the_risks_and_of_torch(name, eta, weighted):
    scores, target = batch()
    weight = np.random.default_rng(1).integers(1, 4, len(scores)).astype(float)
    given = weight if weighted else None
    settings = {"prior": PRIOR, "eta": eta, "loss": name, "correction": "none"}
    value, gradient = ours(scores, target, given, **settings)
    right, slopes = expected(pnu_risk(eta, PRIOR), name, scores, target, given)
    assert value.item() == pytest.approx(right, abs=1e-12)
    np.testing.assert_allclose(gradient, slopes, atol=1e-12)
    brute, brute_slopes = table(
        name, scores, target, eta, weight if weighted else np.ones(len(scores))
    )
    assert value.item() == pytest.approx(brute, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(gradient, brute_slopes, atol=1e-10)


@pytest.mark.parametrize("name", LOSSES)
def test_single_precision_is_right_to_1e_6(name):
    scores, target = batch(seed=3)
    scores = scores.astype(np.float32).astype(float)
    settings = {"prior": PRIOR, "eta": 0.5, "loss": name, "correction": "none"}
    loss = pnuauc.torch.PNUAUCLoss(**settings)
    with torch.no_grad():
        value = loss(torch.tensor(scores, dtype=torch.float32), torch.tensor(target))
    assert value.dtype == torch.float32
    right = pnu_risk(0.5, PRIOR).value(name, by_role(scores, target))
    assert value.item() == pytest.approx(right, rel=1e-6, abs=1e-6)
    if LOSSES[name].has_derivative:
        _, gradient = ours(scores, target, dtype=torch.float32, **settings)
        slopes = expected(pnu_risk(0.5, PRIOR), name, scores, target)[1]
        np.testing.assert_allclose(gradient, slopes, atol=1e-6)


def test_a_large_batch_needs_no_table():
    """60,000 x 60,000 pairs in 8 bytes each would be 29 GB."""
    scores, target = batch((60_000, 10, 60_000), seed=5)
    value, gradient = ours(scores, target, prior=PRIOR, eta=1.0)
    assert 0.0 < value.item() < 1.0
    assert gradient.shape == (120_010,)
    assert abs(gradient.sum().item()) < 1e-8  # shifting all scores changes nothing


def test_zero_one_has_a_value_and_no_gradient():
    scores, target = batch()
    loss = pnuauc.torch.PNUAUCLoss(PRIOR, loss="zero_one", correction="none")
    tensor = torch.tensor(scores, requires_grad=True)
    with pytest.raises(ValueError, match="no gradient"):
        loss(tensor, torch.tensor(target))
    with torch.no_grad():
        value = loss(tensor, torch.tensor(target)).item()
    pn = auc_estimate(target, scores, PRIOR, "pn").value
    pu = auc_estimate(target, scores, PRIOR, "pu").unbiased
    assert value == pytest.approx(1 - 0.5 * (pn + pu))


@pytest.mark.parametrize(
    ("n", "eta", "same_as"),
    [
        ((5, 0, 9), 0.4, 1.0),  # no negative: PU
        ((5, 6, 0), 0.4, 0.0),  # nothing unlabelled: PN
        ((1, 6, 9), 0.4, 0.0),  # one positive has no pair within P
        ((0, 6, 9), -0.4, -1.0),
        ((5, 6, 0), -0.4, 0.0),
    ],
)
def test_the_batch_decides_which_parts_there_are(n, eta, same_as):
    scores, target = batch(n)
    value, gradient = ours(scores, target, prior=PRIOR, eta=eta, correction="none")
    right, slopes = expected(pnu_risk(same_as, PRIOR), "logistic", scores, target)
    assert value.item() == pytest.approx(right, abs=1e-12)
    np.testing.assert_allclose(gradient, slopes, atol=1e-12)


def test_a_batch_without_a_pair_is_zero_with_a_graph_and_counted():
    scores, target = batch((0, 4, 9))
    loss = pnuauc.torch.PNUAUCLoss(PRIOR, 0.5)
    tensor = torch.tensor(scores, requires_grad=True)
    with pytest.warns(PnuaucWarning, match="0 positive, 4 negative, 9 unlabelled rows"):
        value = loss(tensor, torch.tensor(target))
    value.backward()
    assert value.item() == 0.0
    assert not tensor.grad.any()
    loss(tensor, torch.tensor(target))  # warns once
    assert loss.n_skipped == 2


def test_a_negative_part_is_mirrored_held_or_left():
    target = np.array([1, 1, 1, -1, -1])
    scores = np.array([8.0, 0.0, -8.0, 0.0, 0.1])  # positives far apart: the P-P term is large
    raw, slopes = expected(pnu_risk(1.0, 0.9), "logistic", scores, target)
    assert raw < -1.0
    for correction, factor in (("none", 1.0), ("abs", -1.0), ("clamp", 0.0)):
        value, gradient = ours(scores, target, prior=0.9, eta=1.0, correction=correction)
        assert value.item() == pytest.approx(factor * raw)
        np.testing.assert_allclose(gradient, factor * slopes, atol=1e-12)


@pytest.mark.slow
@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not beside the tests")
def test_without_a_correction_a_flexible_network_diverges():
    risks = runpy.run_path(str(EXAMPLE))["risks"]
    (left, left_aucs), (mirrored, mirrored_aucs) = (risks(c, 300) for c in ("none", "abs"))
    assert left[-1] < -10.0
    assert max(map(abs, mirrored)) < 1.0
    assert mirrored_aucs[-1] > left_aucs[-1] + 0.02


def test_half_precision_and_overflow():
    scores, target = batch()
    tensor = torch.tensor(scores, dtype=torch.bfloat16, requires_grad=True)
    value = pnuauc.torch.PNUAUCLoss(PRIOR)(tensor, torch.tensor(target))
    assert value.dtype == torch.float32
    value.backward()
    assert tensor.grad.dtype == torch.bfloat16
    assert tensor.grad.isfinite().all()
    tensor = torch.tensor(scores, requires_grad=True)
    spoilt = torch.where(torch.arange(len(scores)) == 3, torch.inf, tensor)
    value = pnuauc.torch.PNUAUCLoss(PRIOR)(spoilt, torch.tensor(target))
    assert value.isnan()  # a gradient scaler skips the step; an exception would end the run
    with torch.autocast("cpu", dtype=torch.bfloat16):
        net = torch.nn.Linear(1, 1)
        out = net(torch.tensor(scores, dtype=torch.float32)[:, None])
        loss = pnuauc.torch.PNUAUCLoss(PRIOR)(out, torch.tensor(target))
    loss.backward()
    assert net.weight.grad.isfinite().all()


def test_second_derivatives_are_refused():
    scores, target = batch()
    tensor = torch.tensor(scores, requires_grad=True)
    value = pnuauc.torch.PNUAUCLoss(PRIOR)(tensor, torch.tensor(target))
    (slope,) = torch.autograd.grad(value, tensor, create_graph=True)
    with pytest.raises(RuntimeError, match=r"does not require grad|once_differentiable"):
        slope.sum().backward()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([1.0, float("nan"), 0.0], "NaN in row 1: write -1"),
        ([1.0, 2.0, 0.0], "row 1 is 2"),
        ([1, 0], "2 rows but there are 3 scores"),
        ([[1, 0, 1]], "shape"),
    ],
)
def test_bad_targets_are_refused_in_a_sentence(target, message):
    with pytest.raises(ValueError, match=message):
        pnuauc.torch.PNUAUCLoss(PRIOR)(torch.zeros(3), torch.tensor(target))


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="weight has 4 rows"):
        pnuauc.torch.PNUAUCLoss(PRIOR)(torch.zeros(3), torch.tensor([1, 0, -1]), torch.ones(4))
    with pytest.raises(ValueError, match="correction must be one of"):
        pnuauc.torch.PNUAUCLoss(PRIOR, correction="maybe")
    with pytest.raises(ValueError, match="prior must be"):
        pnuauc.torch.PNUAUCLoss(1.5)
    with pytest.raises(ValueError, match="eta must be"):
        pnuauc.torch.PNUAUCLoss(PRIOR, eta=2)
    assert "eta=0.5, loss='logistic', correction='abs'" in repr(pnuauc.torch.PNUAUCLoss(PRIOR))


TARGETS = np.random.default_rng(0).permutation(np.repeat([1, 0, -1], [10, 23, 301]))


def test_every_row_is_dealt_and_none_twice_in_a_batch():
    sampler = pnuauc.torch.RoleBatchSampler(TARGETS, {"P": 4, "N": 8, "U": 24})
    batches = list(sampler)
    assert len(batches) == len(sampler) == 13  # 301 / 24
    for rows in batches:
        assert len(set(rows)) == len(rows)
        assert [int((TARGETS[rows] == c).sum()) for c in (1, 0, -1)] == [4, 8, 24]
    assert {row for rows in batches for row in rows} == set(range(len(TARGETS)))
    assert list(sampler) != batches  # the next epoch
    sampler.set_epoch(0)
    assert list(sampler) == batches


def test_a_small_role_is_in_every_batch_whole():
    batches = list(pnuauc.torch.RoleBatchSampler(TARGETS, {"P": 50, "U": 100}))
    assert all((TARGETS[rows] == 1).sum() == 10 for rows in batches)
    assert not any((TARGETS[rows] == 0).any() for rows in batches)


def test_processes_get_batches_of_their_own():
    per_batch = {"P": 2, "U": 30}
    alone = pnuauc.torch.RoleBatchSampler(TARGETS, per_batch, rank=0, world_size=1)
    three = [
        pnuauc.torch.RoleBatchSampler(TARGETS, per_batch, rank=r, world_size=3) for r in range(3)
    ]
    assert [len(s) for s in three] == [4, 4, 4]
    dealt = [list(s) for s in three]
    assert [len(batches) for batches in dealt] == [4, 4, 4]
    unlabelled = [r for batches in dealt for rows in batches for r in rows if TARGETS[r] == -1]
    assert set(unlabelled) == set(np.flatnonzero(TARGETS == -1))
    first = [rows for k in range(4) for batches in dealt for rows in [batches[k]]]
    assert first[: len(alone)] == list(alone)


def test_the_sampler_works_in_a_loader_and_refuses_nonsense():
    X = torch.arange(len(TARGETS))
    data = torch.utils.data.TensorDataset(X, torch.tensor(TARGETS))
    sampler = pnuauc.torch.RoleBatchSampler(torch.tensor(TARGETS), {"P": 4, "U": 60})
    for rows, target in torch.utils.data.DataLoader(data, batch_sampler=sampler):
        assert (TARGETS[rows.numpy()] == target.numpy()).all()
    with pytest.raises(ValueError, match="negative rows and targets has none"):
        pnuauc.torch.RoleBatchSampler([1, -1], {"P": 1, "N": 1})
    for wrong in ({}, {"P": 0}, {"P": 1, "X": 2}):
        with pytest.raises(ValueError, match='"P", "N" and "U"'):
            pnuauc.torch.RoleBatchSampler([1, -1], wrong)


def test_the_metric_adds_batches_up():
    scores, target = batch((20, 30, 400), seed=2)
    metric = pnuauc.torch.PNUAUROC(prior=PRIOR)
    with pytest.raises(ValueError, match="call update"):
        metric.compute()
    for part in np.array_split(np.arange(len(scores)), 7):
        metric.update(torch.tensor(scores[part])[:, None], torch.tensor(target[part]))
    assert metric.compute() == auc_estimate(target, scores, PRIOR)
    metric.reset()
    metric.update(torch.tensor(scores[:100]), torch.tensor(target[:100]))
    assert metric.compute().n_unlabeled == int((target[:100] == -1).sum())


PROCESSES = """
import sys, numpy as np, torch, torch.distributed as dist
from pnuauc.torch import PNUAUROC, RoleBatchSampler
rank, store = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
metric = PNUAUROC(prior=0.3)
rows = np.arange(rank, 60, 2)
metric.update(torch.tensor(rows * 37 % 60 * 1.0), torch.tensor(rows % 3 - 1))
sampler = RoleBatchSampler(np.arange(60) % 3 - 1, {"P": 2, "U": 4})
print(metric.compute().n_unlabeled, metric.compute().value, len(list(sampler)))
"""


@pytest.mark.system
def test_two_processes_share_the_metric_and_the_batches(tmp_path):
    if not torch.distributed.is_available():
        pytest.skip("this torch has no torch.distributed")
    command = [sys.executable, "-W", "ignore", "-c", PROCESSES]
    running = [
        subprocess.Popen([*command, str(r), str(tmp_path / "store")], stdout=subprocess.PIPE)
        for r in range(2)
    ]
    found = [process.communicate(timeout=120)[0].decode().split() for process in running]
    rows = np.arange(60)
    whole = auc_estimate(rows % 3 - 1, rows * 37 % 60, 0.3)
    assert found == [["20", str(whole.value), "5"]] * 2
