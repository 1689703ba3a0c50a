"""PNU-AUC in torch: the loss, a sampler of batches by role, the metric.

The loss is computed where all losses of this package are, by :mod:`pnuauc.core.pairs` on the CPU in
double precision: the scores of a batch are a few kilobytes, and no table of pairs is formed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pnuauc._utils.arrays import Floats
from pnuauc._utils.extras import warn
from pnuauc.core.losses import Loss, get_loss
from pnuauc.core.risks import Risk, pnu_risk
from pnuauc.evaluation.estimate import AUCEstimate, auc_estimate
from pnuauc.exceptions import PnuaucWarning
from pnuauc.labels import ROLES, Roles

CORRECTIONS = ("abs", "clamp", "none")


def _vector(values: Any, name: str, n_rows: int | None = None) -> Floats:
    """A tensor of shape (n,) or (n, 1) on any device -> float64, shape (n,)."""
    array = torch.as_tensor(values).detach().cpu().to(torch.float64).numpy()
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"{name} must have shape (n,) or (n, 1), one number per row; got {array.shape}."
        )
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(f"{name} has {len(array)} rows but there are {n_rows} scores.")
    return np.asarray(array)


def _codes(target: Any, n_rows: int | None = None) -> NDArray[np.int8]:
    """Targets 1, 0, -1 of any dtype -> int8, shape (n,)."""
    values = _vector(target, "target", n_rows)
    if np.isnan(values).any():
        row = int(np.argmax(np.isnan(values)))
        raise ValueError(f"target is NaN in row {row}: write -1 for an unlabelled row.")
    codes = values.astype(np.int8)
    wrong = (codes != values) | (codes < -1) | (codes > 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"target must be 1 (positive), 0 (negative) or -1 (unlabelled); row {row} is "
            f"{values[row]:g}."
        )
    return codes


class _Known(torch.autograd.Function):
    """A number whose gradient with respect to the scores is known."""

    @staticmethod
    def forward(ctx: Any, scores: Any, value: float, gradient: Floats) -> Any:
        # half precision would lose a small loss; autocast runs losses in float32 as well
        kind = torch.promote_types(scores.dtype, torch.float32)
        slopes = torch.from_numpy(gradient).to(kind).to(scores.device)
        ctx.save_for_backward(slopes.reshape(scores.shape))
        ctx.kind = scores.dtype
        return torch.tensor(value, dtype=kind, device=scores.device)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, upstream: Any) -> Any:
        (slopes,) = ctx.saved_tensors
        return (upstream * slopes).to(ctx.kind), None, None


class PNUAUCLoss(torch.nn.Module):
    """R_PNU = (1 - eta) R_PN + eta R_PU for eta >= 0, (1 + eta) R_PN - eta R_NU for eta < 0.

    The risks are those of :mod:`pnuauc.core.risks`, of the rows of one batch, with the mean loss
    l(g(x) - g(x')) over all pairs. Of R_PNU a batch gives the parts that it has the rows for, their
    weights scaled to one: PU where no negative is in it, PN where nothing is unlabelled. Each part
    is an unbiased estimate of the same risk.

    Memory: O(n) for n scores; no pair is formed. Any device, any precision: computed in float64 on
    the CPU, returned in the scores' precision, float32 at least. Not twice differentiable.

    Parameters
    ----------
    prior : float
        Share of positives **among the unlabelled rows**.
    eta : float in [-1, 1]
        Weight of the unlabelled rows; negative to pair them with negatives. 0 is PN.
    loss : str or Loss
        Any of :data:`pnuauc.losses.LOSSES`; "zero_one" has a value but no gradient.
    correction : {"abs", "clamp", "none"}
        A part with a term subtracted (PU, NU) can fall below zero, which no risk does, and a
        flexible network then lowers it without end. "abs" takes its absolute value, so that the
        gradient leads back; "clamp" takes zero there, without a gradient; "none" leaves it.

    Attributes
    ----------
    n_skipped : int
        Batches that had no part: their loss was zero, with zero gradients. The first one warns.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([1.0, 0.0, 0.5, -1.0], requires_grad=True)
    >>> loss = PNUAUCLoss(0.2, 0.5, "squared")(scores, torch.tensor([1, 1, 0, -1]))
    >>> loss.backward()
    >>> round(loss.item(), 4)
    0.6875
    """

    def __init__(
        self,
        prior: float | None = None,
        eta: float = 0.5,
        loss: str | Loss = "logistic",
        correction: str = "abs",
    ) -> None:
        super().__init__()
        if correction not in CORRECTIONS:
            raise ValueError(
                f"correction must be one of {', '.join(map(repr, CORRECTIONS))}; got {correction!r}"
            )
        self.risk = pnu_risk(eta, prior)
        self.loss = get_loss(loss)
        self.correction = correction
        self.n_skipped = 0
        self._arguments = f"prior={prior}, eta={eta}, loss={self.loss.name!r}"

    def extra_repr(self) -> str:
        """What it was made with."""
        return f"{self._arguments}, correction={self.correction!r}"

    def forward(self, scores: Any, target: Any, weight: Any = None) -> Any:
        """The risk of one batch, a scalar.

        Parameters
        ----------
        scores : tensor, shape (n,) or (n, 1)
        target : tensor of the same number of rows
            1 positive, 0 negative, -1 unlabelled.
        weight : tensor, shape (n,), optional
            Frequency weights: 2 counts as the row twice.
        """
        values = _vector(scores, "scores")
        codes = _codes(target, len(values))
        rows = {role.letter: np.flatnonzero(codes == role.code) for role in ROLES}
        rows = {letter: where for letter, where in rows.items() if len(where)}
        given = _vector(
            torch.ones(len(values)) if weight is None else weight, "weight", len(values)
        )
        by_role = {letter: values[where] for letter, where in rows.items()}
        weights = {letter: given[where] for letter, where in rows.items()}
        counts = {letter: float(own.sum()) for letter, own in weights.items()}
        risk = self._possible(counts)
        gradient = np.zeros(len(values))
        if risk is None:
            self._skip(counts)
            return _Known.apply(scores, 0.0, gradient)
        if not np.isfinite(values).all():  # as torch's own losses; a gradient scaler then waits
            return _Known.apply(scores, np.nan, gradient + np.nan)
        if not self.loss.has_derivative:
            if scores.requires_grad and torch.is_grad_enabled():
                raise ValueError(
                    f"The {self.loss.name} loss has no gradient: use it inside torch.no_grad()."
                )
            return _Known.apply(scores, risk.value(self.loss, by_role, weights), gradient)
        total = 0.0
        for part, value, slopes in risk.part_gradients(self.loss, by_role, weights):
            sign = 1.0
            if value < 0.0 and not part.bounded and self.correction != "none":
                sign = -1.0 if self.correction == "abs" else 0.0
            total += part.weight * sign * value
            for letter, slope in slopes.items():
                gradient[rows[letter]] += part.weight * sign * slope
        return _Known.apply(scores, total, gradient)

    def _possible(self, counts: Mapping[str, float]) -> Risk | None:
        """The parts that a batch with such counts has the rows for."""
        parts = [p for p in self.risk.parts if Risk(p.name, (p,)).has_roles(counts)]
        total = sum(part.weight for part in parts)
        if not parts:
            return None
        return Risk("PNU", tuple(replace(part, weight=part.weight / total) for part in parts))

    def _skip(self, counts: Mapping[str, float]) -> None:
        self.n_skipped += 1
        if self.n_skipped == 1:
            held = ", ".join(f"{counts.get(role.letter, 0):g} {role.word}" for role in ROLES)
            warn(
                f"A batch with {held} rows has no pair for this loss, which is zero there; "
                "RoleBatchSampler deals every role to every batch (n_skipped counts such batches).",
                PnuaucWarning,
            )


class RoleBatchSampler(torch.utils.data.Sampler[list[int]]):
    """Batches with a fixed number of rows of every role, for ``DataLoader(batch_sampler=...)``.

    An epoch shows every row of every role named at least once: it has max over roles of
    ceil(n / per_batch) batches, and smaller roles are dealt again, in a new order. No row is twice
    in a batch; a role with fewer rows than asked for is in it whole.

    Parameters
    ----------
    targets : array-like or tensor, shape (n,)
        1 positive, 0 negative, -1 unlabelled.
    per_batch : mapping of "P", "N", "U" to int
    seed : int
        The same on all processes.
    rank, world_size : int, optional
        Of this process; those of ``torch.distributed`` where it is in use. Each process gets
        batches of its own, all the same number of them.

    Examples
    --------
    >>> sampler = RoleBatchSampler([1, 1, 0, -1, -1, -1, -1], {"P": 1, "U": 2})
    >>> len(sampler), [len(batch) for batch in sampler]
    (2, [3, 3])
    """

    def __init__(
        self,
        targets: Any,
        per_batch: Mapping[str, int],
        *,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        codes = _codes(targets)
        self._rows: dict[str, NDArray[np.intp]] = {}
        for role in ROLES:
            if per_batch.get(role.letter, 0) > 0:
                self._rows[role.letter] = np.flatnonzero(codes == role.code)
                if not len(self._rows[role.letter]):
                    raise ValueError(f"per_batch asks for {role.word} rows and targets has none.")
        if not self._rows or set(per_batch) - {role.letter for role in ROLES}:
            raise ValueError(
                f'per_batch gives rows per batch for "P", "N" and "U"; got {dict(per_batch)!r}.'
            )
        self._take = {r: min(int(per_batch[r]), len(rows)) for r, rows in self._rows.items()}
        self._seed = seed
        spread = torch.distributed.is_available() and torch.distributed.is_initialized()
        if rank is None:
            rank = torch.distributed.get_rank() if spread else 0
        if world_size is None:
            world_size = torch.distributed.get_world_size() if spread else 1
        self._rank, self._world_size = rank, world_size
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """The order of the next pass; without it, each pass has the next one."""
        self._epoch = epoch

    def __len__(self) -> int:
        """Batches of this process in an epoch."""
        most = max(-(-len(rows) // self._take[r]) for r, rows in self._rows.items())
        return -(-most // self._world_size)

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng([self._seed, self._epoch])
        self._epoch += 1
        n_batches = len(self) * self._world_size
        dealt = [_deal(rows, self._take[r], n_batches, rng) for r, rows in self._rows.items()]
        for batch in range(self._rank, n_batches, self._world_size):
            yield np.concatenate([role[batch] for role in dealt]).tolist()


def _deal(
    rows: NDArray[np.intp], size: int, n_batches: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """``n_batches`` hands of ``size`` different rows, shape (n_batches, size)."""
    each = -(-len(rows) // size)
    decks = []
    for _ in range(-(-n_batches // each)):
        deck = rng.permutation(rows)
        # the last hand of a deck is filled up from its top: no row twice in a hand
        decks.append(np.resize(deck, each * size).reshape(each, size))
    return np.concatenate(decks)[:n_batches]


class PNUAUROC:
    """AUC of partly labelled scores that come in batches; ``update`` and ``compute`` as elsewhere.

    Parameters are those of :func:`pnuauc.metrics.auc_estimate`. With ``torch.distributed`` in use,
    ``compute`` takes the scores of all processes together. Memory: the scores.

    Examples
    --------
    >>> import torch
    >>> metric = PNUAUROC(prior=0.2)
    >>> metric.update(torch.tensor([3.0, 2.0]), torch.tensor([1, 1]))
    >>> metric.update(torch.tensor([2.5, 1.0, 0.0]), torch.tensor([-1, -1, -1]))
    >>> round(metric.compute().value, 4)
    0.9167
    """

    def __init__(self, prior: Any = None, method: str = "auto", level: float = 0.95) -> None:
        self._how = {"prior": prior, "method": method, "level": level}
        self.reset()

    def reset(self) -> None:
        """Forget all rows."""
        self._scores: list[Floats] = []
        self._targets: list[NDArray[np.int8]] = []

    def update(self, scores: Any, target: Any) -> None:
        """Add rows: scores of shape (n,) or (n, 1), targets 1, 0, -1."""
        values = _vector(scores, "scores")
        self._targets.append(_codes(target, len(values)))
        self._scores.append(values)

    def compute(self) -> AUCEstimate:
        """The estimate from all rows so far."""
        shards: list[Any] = [(self._targets, self._scores)]
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            shards = [None] * torch.distributed.get_world_size()
            torch.distributed.all_gather_object(shards, (self._targets, self._scores))
        targets = [part for shard in shards for part in shard[0]]
        scores = [part for shard in shards for part in shard[1]]
        if not targets:
            raise ValueError("No rows yet: call update before compute.")
        return auc_estimate(Roles(np.concatenate(targets)), np.concatenate(scores), **self._how)
