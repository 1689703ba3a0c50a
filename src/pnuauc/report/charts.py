"""Charts as inline SVG: no scripts, no images, colours from the page's CSS (light and dark)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pnuauc.study.findings import AUCFinding, Findings, PriorFinding, Roc

_WIDTH, _HEIGHT = 460, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 24, 12, 48


def all_charts(found: Findings) -> dict[str, str | None]:
    """Charts by name; None where there are no findings for one."""
    prior = found.prior
    return {
        "roc": roc_chart(found.roc, found.auc) if found.roc and found.auc else None,
        "scores": histogram_chart(found.scores) if found.scores else None,
        "posterior": posterior_chart(prior) if prior and prior.posterior else None,
    }


@dataclass(frozen=True)
class _Axes:
    """Data -> SVG coordinates, and the frame around them."""

    x: tuple[float, float]
    y: tuple[float, float]
    height: int = _HEIGHT
    top: int = _TOP

    @property
    def bottom(self) -> int:
        return self.height - _BOTTOM

    def at_x(self, value: float) -> float:
        return round(_LEFT + _share(value, *self.x) * (_WIDTH - _LEFT - _RIGHT), 1)

    def at_y(self, value: float) -> float:
        return round(self.bottom - _share(value, *self.y) * (self.bottom - self.top), 1)

    def path(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        return "M" + "L".join(f"{self.at_x(x)},{self.at_y(y)}" for x, y in zip(xs, ys, strict=True))

    def curve(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        low: Sequence[float],
        high: Sequence[float],
        between: str = "",
    ) -> str:
        """A curve and the band that it lies in; ``between`` is drawn over the band only."""
        back = self.path(xs[::-1], low[::-1]).removeprefix("M")
        band = f'<path class="band" d="{self.path(xs, high)}L{back}Z"/>'
        return f'{band}{between}<path class="line" d="{self.path(xs, ys)}"/>'

    def frame(self, x_label: str, y_label: str, percent: tuple[bool, bool]) -> str:
        right, low = _WIDTH - _RIGHT, self.bottom
        parts = [_line("axis", (_LEFT, right), (low, low))]
        for value in _ticks(*self.x):
            parts.append(_text("tick", self.at_x(value), low + 18, _number(value, percent[0])))
        for value in _ticks(*self.y):
            y = self.at_y(value)
            parts.append(_line("grid", (_LEFT, right), (y, y)))
            parts.append(_text("tick", _LEFT - 7, y + 4, _number(value, percent[1]), "end"))
        parts.append(_text("label", (_LEFT + right) / 2, self.height - 8, escape(x_label)))
        parts.append(
            f'<text class="label" transform="translate(14 {(low + self.top) / 2}) rotate(-90)" '
            f'text-anchor="middle">{escape(y_label)}</text>'
        )
        return "".join(parts)


def _share(value: float, low: float, high: float) -> float:
    """Nothing is drawn outside of the frame."""
    return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5


def _line(css: str, x: tuple[float, float], y: tuple[float, float]) -> str:
    return f'<line class="{css}" x1="{x[0]}" x2="{x[1]}" y1="{y[0]}" y2="{y[1]}"/>'


def _text(css: str, x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text class="{css}" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'


def _ticks(low: float, high: float) -> list[float]:
    if high <= low:
        return [low]
    rough = (high - low) / 5
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999)
    first = np.ceil(low / step - 1e-9) * step
    return [float(v) for v in np.arange(first, high + step * 1e-6, step)]


def _number(value: float, percent: bool = False) -> str:
    value = 0.0 if abs(value) < 1e-12 else value
    return f"{100 * value:.3g}%" if percent else f"{value:.3g}"


def _svg(title: str, description: str, body: str, height: int = _HEIGHT) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}. {escape(description)}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{body}</svg>"
    )


def roc_chart(roc: Roc, auc: AUCFinding) -> str:
    """ROC curve with its band."""
    axes = _Axes((0, 1), (0, 1), height=400)
    body = axes.frame("negatives flagged in error", "positives found", (True, True))
    chance = f'<path class="chance" d="{axes.path((0, 1), (0, 1))}"/>'
    body += axes.curve(roc.fpr, roc.tpr, roc.low, roc.high, chance)
    description = (
        f"The curve encloses an area of {auc.value:.3f}; the shaded band has level "
        f"{roc.level:.0%}; the dashed diagonal is chance."
    )
    return _svg("ROC curve", description, body, 400)


_ROLES = (
    ("positive", "positives", "P"),
    ("unlabeled", "unlabelled", "U"),
    ("negative", "negatives", "N"),
)


def histogram_chart(scores: dict[str, list[float]]) -> str:
    """Score distributions by role: outlines, distinguished by color and dashes."""
    edges = scores["edges"]
    present = [role for role in _ROLES if role[0] in scores]
    top = max(max(scores[key]) for key, _, _ in present) * 1.08
    axes = _Axes((edges[0], edges[-1]), (0, top), top=_TOP + 24)  # the legend lies above the frame
    body = axes.frame(
        "score (in standard deviations of the unlabelled rows)", "share of rows", (False, True)
    )
    outlines, legend = "", ""
    xs = np.repeat(edges, 2)[1:-1].tolist()
    for i, (key, name, css) in enumerate(present):
        outline = axes.path([xs[0], *xs, xs[-1]], [0, *np.repeat(scores[key], 2).tolist(), 0])
        outlines = (  # positives are drawn last
            f'<path class="area {css}" d="{outline}Z"/><path class="outline {css}" d="{outline}"/>'
            + outlines
        )
        x = _LEFT + 124 * i
        legend += _line(f"outline {css}", (x, x + 26), (_TOP + 4, _TOP + 4))
        legend += _text("label", x + 32, _TOP + 9, name, "start")
    names = ", ".join(name for _, name, _ in present)
    description = f"One outline each for {names}."
    return _svg("Distribution of held-out scores", description, body + outlines + legend)


def posterior_chart(prior: PriorFinding) -> str:
    """How likely every share of positives is, with the interval and the mean."""
    assert prior.posterior is not None
    shares, density = prior.posterior["shares"], prior.posterior["density"]
    ends = min(shares[0], prior.low), max(shares[-1], prior.high)
    axes = _Axes(ends, (0.0, 1.05), height=220)
    low, high, mean = map(axes.at_x, (prior.low, prior.high, prior.value))
    body = axes.frame("share of positives among the unlabelled rows", "likely", (True, False))
    body += (
        f'<rect class="range" x="{low}" y="{_TOP}" width="{max(high - low, 1):.1f}" '
        f'height="{axes.bottom - _TOP}"/>'
        + axes.curve(shares, density, [0.0] * len(shares), density)
        + _line("chance", (mean, mean), (_TOP, axes.bottom))
    )
    description = (
        f"Highest at {shares[int(np.argmax(density))]:.3f}; the dashed line is the mean, "
        f"{prior.value:.3f}; vertical band: {prior.low:.3f} to {prior.high:.3f}."
    )
    return _svg("How likely every prior is", description, body, axes.height)
