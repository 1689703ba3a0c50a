"""Risk and rows -> coefficients: ridge systems, L-BFGS, indefinite forms, ``LinearModel``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from scipy import linalg, optimize
from scipy.linalg import cython_lapack
from scipy.sparse import identity
from scipy.sparse.linalg import LinearOperator, aslinearoperator, cg, eigsh
from sklearn.exceptions import ConvergenceWarning

from pnuauc._utils.arrays import Floats
from pnuauc._utils.extras import warn
from pnuauc._utils.show import ShownAsTable
from pnuauc.core.design import Design, block_scores
from pnuauc.core.losses import Loss
from pnuauc.core.risks import Part, QuadraticForm, Risk

FLOOR = 1e-3
#: Of the residual where conjugate gradients stop, relative to the right-hand side.
_TOL = 1e-10
#: One part of a risk at some w: its value, and the gradient of the value, shape (b,).
PartAt: TypeAlias = tuple[Part, float, Floats]


@dataclass(frozen=True)
class Correction:
    """What was done about a risk without a minimum.

    Attributes
    ----------
    kind : {"none", "eigenvalue_floor", "raised_ridge", "non_negative"}
    message : str
        One sentence for the user; empty when nothing was done.
    n_negative : int
        Negative eigenvalues (1 if only the lowest was looked for), or parts held at the floor.
    lowest : float
        The most negative eigenvalue, or the lowest value of a part, before the correction.
    """

    kind: str = "none"
    message: str = ""
    n_negative: int = 0
    lowest: float = 0.0

    def __bool__(self) -> bool:
        return self.kind != "none"


@dataclass(frozen=True, eq=False)
class Minimum:
    """Coefficients, shape (b,), and how they were found; a closed form counts as one iteration."""

    coef: Floats
    correction: Correction = Correction()
    n_iter: int = 1
    converged: bool = True


def solve_ridge(form: QuadraticForm, alphas: Sequence[float]) -> list[Minimum]:
    """argmin_w form(w) + alpha |w|^2 for every alpha: (H + alpha I) w = h.

    One eigendecomposition serves all alphas when H may be indefinite or alphas are many (it costs
    as much as some twenty linear systems); with alpha = 0 and a singular H the solution of least
    norm is returned. When H is an operator the
    systems are solved by conjugate gradients and H is never formed.
    """
    if isinstance(form.quadratic, LinearOperator):
        return _solve_matrix_free(form, alphas)
    if form.convex and len(alphas) <= 16 and min(alphas) > 0:
        return [Minimum(coef) for coef in _solve_directly(form, alphas)]
    values, vectors = np.linalg.eigh(form.quadratic)
    scale = max(float(np.abs(values).max(initial=0.0)), np.finfo(float).tiny)
    negative = values < -1e-10 * scale
    correction = _lifted("eigenvalue_floor", values[negative])
    kept = np.maximum(values, -correction.lowest)
    rotated = vectors.T @ form.linear
    minima = []
    for alpha in alphas:
        denominator = kept + alpha
        usable = denominator > (1e-12 * scale if alpha == 0 else 0.0)
        inverse = np.divide(1.0, denominator, out=np.zeros_like(denominator), where=usable)
        minima.append(Minimum(vectors @ (inverse * rotated), correction))
    return minima


def check_alpha(alpha: Any) -> float:
    number = isinstance(alpha, Real) and not isinstance(alpha, bool)
    if not number or not np.isfinite(alpha) or alpha < 0:
        raise ValueError(f"alpha (the ridge) must be a finite number >= 0; got {alpha!r}.")
    return float(alpha)


def _solve_directly(form: QuadraticForm, alphas: Sequence[float]) -> Floats:
    """Definite systems, by Cholesky: half the price of LU, and in place."""
    b = len(form.linear)
    coefs = np.tile(form.linear, (len(alphas), 1))
    size, one, info = ctypes.c_int(b), ctypes.c_int(1), ctypes.c_int()
    n = ctypes.byref(size)
    for coef, alpha in zip(coefs, alphas, strict=True):
        system = np.array(form.quadratic, dtype=np.float64, order="C")
        system.flat[:: b + 1] += alpha
        a, w = system.ctypes.data, coef.ctypes.data
        _dposv(b"L", n, ctypes.byref(one), a, n, w, n, ctypes.byref(info))
        if info.value:  # a tiny alpha beside a huge H: singular to rounding
            coef[:] = linalg.lstsq(form.quadratic + alpha * np.eye(b), form.linear)[0]
    return coefs


def _routine(name: str, n_arguments: int) -> Callable[..., None]:
    """A LAPACK routine by its address: called so, unlike in scipy, it lets other threads run."""
    get_name, get_pointer = (
        ctypes.pythonapi.PyCapsule_GetName,
        ctypes.pythonapi.PyCapsule_GetPointer,
    )
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = cython_lapack.__pyx_capi__[name]
    pointer = get_pointer(capsule, get_name(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(pointer)


_dposv = _routine("dposv", 8)


def _lifted(kind: str, negative: Floats) -> Correction:
    if not len(negative):
        return Correction()
    return Correction(
        kind,
        f"The empirical risk has no minimum: negative curvature (lowest {negative.min():.3g}) was "
        "lifted. More rows, a smaller |eta|, or a better prior avoid this.",
        len(negative),
        float(negative.min()),
    )


def _solve_matrix_free(form: QuadraticForm, alphas: Sequence[float]) -> list[Minimum]:
    operator, correction = form.quadratic, Correction()
    if not form.convex:
        # the lowest eigenvalue if it is negative beyond rounding, by Lanczos; fits are repeatable
        start = np.random.default_rng(0).standard_normal(operator.shape[0])
        low, high = (
            eigsh(operator, k=1, which=end, tol=1e-4, v0=start, return_eigenvectors=False)
            for end in ("SA", "LA")
        )
        largest = np.abs([low, high]).max()
        correction = _lifted("raised_ridge", low[low < -1e-10 * largest])
    lift = -correction.lowest
    minima = []
    for alpha in alphas:
        system = operator + (alpha + lift) * aslinearoperator(identity(len(form.linear)))
        steps: list[int] = []
        coef, info = cg(
            system, form.linear, rtol=_TOL, maxiter=5000, callback=lambda _, s=steps: s.append(1)
        )
        if info > 0:
            raise ValueError(
                f"Conjugate gradients did not get to {_TOL:g} in 5000 steps with "
                f"alpha = {alpha:g}; raise alpha or scale the features."
            )
        minima.append(Minimum(coef, correction, max(len(steps), 1)))
    return minima


def minimize(
    parts_at: Callable[[Floats], Sequence[PartAt]],
    start: Floats,
    alpha: float,
    max_iter: int = 500,
    tol: float = 1e-6,
) -> Minimum:
    """argmin_w sum_k weight_k s(r_k(w)) + alpha |w|^2 by L-BFGS, s the smooth floor at zero.

    Parameters
    ----------
    parts_at : callable, w of shape (b,) -> parts, each with its value and the gradient of that
    start : ndarray, shape (b,)
    alpha : float > 0 where a part is not bounded (else the problem may have no minimum)
    max_iter, tol : limit of iterations, and of the largest gradient entry
    """
    alpha = check_alpha(alpha)

    def objective(w: Floats) -> tuple[float, Floats]:
        value, gradient = alpha * float(w @ w), 2.0 * alpha * w
        for part, r, change in parts_at(w):
            lifted, slope = (r, 1.0) if part.bounded else _floor(r)
            value += part.weight * lifted
            gradient = gradient + part.weight * slope * change
        if not np.isfinite(value) or not np.isfinite(gradient).all():
            # an exponential loss can overflow on a long trial step; a high wall makes the line
            # search come back
            return 1e30, np.zeros_like(w)
        return value, gradient

    result = optimize.minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "gtol": tol, "ftol": 1e-14, "maxcor": 20, "maxls": 50},
    )
    lows = [r for part, r, _ in parts_at(result.x) if not part.bounded and r < FLOOR]
    correction = Correction()
    if lows:
        correction = Correction(
            "non_negative",
            "The empirical risk fell to zero and was held there: without the floor it would fall "
            f"below (lowest part {min(lows):.3g}). A larger alpha, more rows or a better prior "
            "avoid this.",
            len(lows),
            float(min(lows)),
        )
    converged = bool(result.success or result.status == 2)
    return Minimum(result.x, correction, max(int(result.nit), 1), converged)


def warn_of_limit(n_iter: int, tol: float) -> None:
    """Say that ``max_iter`` ended a minimisation."""
    warn(
        f"L-BFGS stopped after {n_iter} iterations, short of tol={tol:g}; raise max_iter or alpha.",
        ConvergenceWarning,
    )


def _floor(r: float) -> tuple[float, float]:
    """s(r) = (r + sqrt(r^2 + d^2))/2 and its slope; a smooth max(r, 0)."""
    root = float(np.hypot(r, FLOOR))
    # for r < 0 the direct sum cancels; the conjugate form does not
    value = (r + root) / 2 if r >= 0 else FLOOR**2 / (2 * (root - r))
    return value, value / root


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(ShownAsTable):
    """score(x) = coef'phi(x), with the settings it was fitted with, and whether its empirical risk
    had no minimum and was corrected."""

    basis: Any
    coef: Floats
    parameters: dict[str, float] = field(default_factory=dict)
    corrected: bool = False

    def score(self, X: Any, n_threads: int = 1) -> Floats:
        """Scores of rows, ndarray or CSR of shape (n, d), as shape (n,)."""
        return block_scores(X, self.basis, self.coef, n_threads=n_threads)

    decision_function = score


#: Widths of the smoothing that hinge and absolute loss go through, each started from the last.
SMOOTHING: tuple[float, ...] = (0.5, 0.1, 0.01, 0.001)


def fit_risk(
    risk: Risk,
    loss: Loss,
    design: Design,
    alphas: Sequence[float],
    max_iter: int = 500,
    tol: float = 1e-6,
) -> list[Minimum]:
    """argmin_w R(w) + alpha |w|^2 for every alpha.

    Squared loss: one pass over the rows serves all. Other losses: by L-BFGS, from the largest ridge
    down, each started from the last. A loss with corners is replaced by its smoothed version (exact
    outside a width of 0.001 around each corner), found over a few widths, each started from the
    last; from a known solution the widest are left out.
    """
    if loss.name == "squared":
        return solve_ridge(risk.quadratic_form(design.moments()), alphas)
    minima: dict[int, Minimum] = {}
    coef, widths = np.zeros(design.n_features), SMOOTHING
    for a in np.argsort(alphas)[::-1].tolist():
        n_iter = 0
        for stage in [loss] if loss.differentiable else map(loss.smoothed, widths):

            def parts_at(w: Floats, stage: Loss = stage) -> list[PartAt]:
                found = risk.part_gradients(stage, design.scores(w), design.weights)
                return [(part, value, design.pullback(slope)) for part, value, slope in found]

            found = minimize(parts_at, coef, alphas[a], max_iter, tol)
            coef, n_iter = found.coef, n_iter + found.n_iter
        minima[a] = replace(found, n_iter=n_iter)
        widths = SMOOTHING[-2:]
    return [minima[a] for a in range(len(alphas))]
