"""Charts as inline SVG: no scripts, no images, colours from the page's CSS (light and dark)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

__all__ = [
    "histogram_chart",
    "importance_chart",
    "posterior_chart",
    "roc_chart",
    "selection_chart",
]

_WIDTH, _HEIGHT = 460, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 24, 12, 48


@dataclass(frozen=True)
class _Axes:
    """Data -> SVG coordinates, and the frame around them."""

    x: tuple[float, float]
    y: tuple[float, float]
    height: int = _HEIGHT
    log_x: bool = False
    left: int = _LEFT
    top: int = _TOP

    @property
    def bottom(self) -> int:
        return self.height - _BOTTOM

    def at_x(self, value: float) -> float:
        low, high = self.x
        if self.log_x:
            value, low, high = np.log10([value, low, high]).tolist()
        # nothing is drawn outside of the frame
        share = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5
        return round(self.left + share * (_WIDTH - self.left - _RIGHT), 1)

    def at_y(self, value: float) -> float:
        low, high = self.y
        share = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5
        return round(self.bottom - share * (self.bottom - self.top), 1)

    def path(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        return "M" + "L".join(f"{self.at_x(x)},{self.at_y(y)}" for x, y in zip(xs, ys, strict=True))

    def frame(self, x_label: str, y_label: str, percent: tuple[bool, bool]) -> str:
        right, low = _WIDTH - _RIGHT, self.bottom
        parts = [_line("axis", (self.left, right), (low, low))]
        for value in _ticks(*self.x, log=self.log_x):
            parts.append(_text("tick", self.at_x(value), low + 18, _number(value, percent[0])))
        for value in _ticks(*self.y):
            y = self.at_y(value)
            parts.append(_line("grid", (self.left, right), (y, y)))
            parts.append(_text("tick", self.left - 7, y + 4, _number(value, percent[1]), "end"))
        parts.append(_text("label", (self.left + right) / 2, self.height - 8, escape(x_label)))
        half = (low + self.top) / 2
        parts.append(
            f'<text class="label" transform="translate(14 {half}) rotate(-90)" '
            f'text-anchor="middle">{escape(y_label)}</text>'
        )
        return "".join(parts)

    def upright(self, rows: str, x_label: str) -> str:
        """Grid lines from top to bottom with their numbers, then ``rows``: bars that lie."""
        low = self.bottom
        places = [(self.at_x(value), _number(value, False)) for value in _ticks(*self.x)]
        grid = "".join(
            _line("grid", (x, x), (_TOP, low)) + _text("tick", x, low + 18, number)
            for x, number in places
        )
        return grid + rows + _text("label", (self.left + _WIDTH) / 2, self.height - 8, x_label)

    def marked(self, low: float, high: float, inside: str, at: float) -> str:
        """A range of x behind what is drawn, and one value of x in front of it."""
        left, right, x = map(self.at_x, (low, high, at))
        return (
            f'<rect class="range" x="{left}" y="{_TOP}" width="{max(right - left, 1):.1f}" '
            f'height="{self.bottom - _TOP}"/>{inside}'
            + _line("chance", (x, x), (_TOP, self.bottom))
        )


def _line(css: str, x: tuple[float, float], y: tuple[float, float]) -> str:
    return f'<line class="{css}" x1="{x[0]}" x2="{x[1]}" y1="{y[0]}" y2="{y[1]}"/>'


def _text(css: str, x: float, y: float, text: str, anchor: str | None = "middle") -> str:
    at = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{css}" x="{x}" y="{y}"{at}>{text}</text>'


def _ticks(low: float, high: float, log: bool = False) -> list[float]:
    if log:
        exponents = range(int(np.ceil(np.log10(low) - 1e-9)), int(np.log10(high) + 1e-9) + 1)
        powers = [10.0**k for k in exponents]
        if len(powers) >= 3:
            return powers[:: -(-len(powers) // 6)]
        return [float(v) for v in np.geomspace(low, high, 4)]
    if high <= low:
        return [low]
    rough = (high - low) / 5
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999)
    first = np.ceil(low / step - 1e-9) * step
    return [float(v) for v in np.arange(first, high + step * 1e-6, step)]


def _number(value: float, percent: bool) -> str:
    value = 0.0 if abs(value) < 1e-12 else value
    return f"{100 * value:.3g}%" if percent else f"{value:.3g}"


def _svg(title: str, description: str, body: str, height: int = _HEIGHT) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}. {escape(description)}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{body}</svg>"
    )


def _band(
    axes: _Axes,
    xs: Sequence[float],
    ys: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    between: str = "",
) -> str:
    """A curve and the band that it lies in; ``between`` is drawn over the band only."""
    back = axes.path(xs[::-1], low[::-1]).removeprefix("M")
    band = f'<path class="band" d="{axes.path(xs, high)}L{back}Z"/>'
    return f'{band}{between}<path class="line" d="{axes.path(xs, ys)}"/>'


def roc_chart(roc: dict[str, Any], auc: dict[str, Any]) -> str:
    """ROC curve with its band."""
    axes = _Axes((0, 1), (0, 1), height=400)
    body = axes.frame("negatives flagged in error", "positives found", (True, True))
    chance = f'<path class="chance" d="{axes.path((0, 1), (0, 1))}"/>'
    body += _band(axes, roc["fpr"], roc["tpr"], roc["low"], roc["high"], chance)
    description = (
        f"The curve encloses an area of {auc['value']:.3f}; the shaded band has level "
        f"{roc['level']:.0%}; the dashed diagonal is chance."
    )
    return _svg("ROC curve", description, body, 400)


_ROLES = (
    ("negative", "negatives", "N"),
    ("unlabeled", "unlabelled", "U"),
    ("positive", "positives", "P"),
)


def histogram_chart(scores: dict[str, Any]) -> str:
    """Score distributions by role: outlines, distinguished by color and dashes."""
    edges = scores["edges"]
    present = [(key, name, css) for key, name, css in _ROLES if key in scores]
    top = max(max(scores[key]) for key, _, _ in present) * 1.08
    axes = _Axes((edges[0], edges[-1]), (0, top), top=_TOP + 24)  # the legend lies above the frame
    body = axes.frame("score (in spreads of the unlabelled rows)", "share of rows", (False, True))
    for key, _, css in present:
        xs = np.repeat(edges, 2)[1:-1].tolist()
        ys = np.repeat(scores[key], 2).tolist()
        outline = axes.path([xs[0], *xs, xs[-1]], [0, *ys, 0])
        body += (
            f'<path class="area {css}" d="{outline}Z"/><path class="outline {css}" d="{outline}"/>'
        )
    for i, (_, name, css) in enumerate(reversed(present)):
        x = _LEFT + 124 * i
        body += _line(f"outline {css}", (x, x + 26), (_TOP + 4, _TOP + 4))
        body += _text("label", x + 32, _TOP + 9, name, None)
    names = ", ".join(name for _, name, _ in present)
    return _svg("Distribution of held-out scores", f"One outline each for {names}.", body)


_PARAMETERS = {
    "eta": ("weight of the unlabelled rows (eta)", False),
    "width": ("width of the Gaussians", True),
    "alpha": ("ridge (alpha)", True),
}


def selection_chart(name: str, curve: list[dict[str, float]]) -> str | None:
    """Validation AUC along one parameter, with standard errors; larger dots weigh more."""
    points = [p for p in curve if p["value"] is not None and p["risk"] is not None]
    points = [p for p in points if np.isfinite(p["value"]) and np.isfinite(p["risk"])]
    if len(points) < 2:
        return None
    label, log = _PARAMETERS[name]
    xs = [p["value"] for p in points]
    ys = [1 - p["risk"] for p in points]
    errors = [p.get("std_error") or 0.0 for p in points]
    low = min(y - e for y, e in zip(ys, errors, strict=True))
    high = max(y + e for y, e in zip(ys, errors, strict=True))
    pad = max(0.05 * (high - low), 1e-3)
    extent = (min(xs), max(xs))
    extent = (extent[0] / 1.3, extent[1] * 1.3) if log else (extent[0] - 0.06, extent[1] + 0.06)
    axes = _Axes(extent, (low - pad, high + pad), log_x=log)
    body = axes.frame(label, "best validation AUC", (False, False))
    body += f'<path class="line thin" d="{axes.path(xs, ys)}"/>'
    for point, x, y, error in zip(points, xs, ys, errors, strict=True):
        at = axes.at_x(x)
        body += _line("whisker", (at, at), (axes.at_y(y - error), axes.at_y(y + error)))
        radius = 3 + 9 * np.sqrt(max(point.get("kept") or 0.0, 0.0))
        body += f'<circle class="dot" cx="{at}" cy="{axes.at_y(y)}" r="{radius:.1f}"/>'
    best = points[int(np.argmax(ys))]["value"]
    description = f"Highest at {best:.3g}; bars are one standard error over folds."
    return _svg(f"Validation AUC by {label}", description, body)


def posterior_chart(prior: dict[str, Any]) -> str:
    """How likely every share of positives is, with the interval and the mean."""
    shares, density = prior["posterior"]["shares"], prior["posterior"]["density"]
    ends = min(shares[0], prior["low"]), max(shares[-1], prior["high"])
    axes = _Axes(ends, (0.0, 1.05), height=220)
    body = axes.frame("share of positives among the unlabelled rows", "likely", (True, False))
    drawn = _band(axes, shares, density, [0.0] * len(shares), density)
    body += axes.marked(prior["low"], prior["high"], drawn, prior["value"])
    description = (
        f"Highest at {shares[int(np.argmax(density))]:.3f}; the dashed line is the mean, "
        f"{prior['value']:.3f}; vertical band: {prior['low']:.3f} to {prior['high']:.3f}."
    )
    return _svg("How likely every prior is", description, body, height=axes.height)


def importance_chart(columns: list[dict[str, Any]], most: int = 12) -> str:
    """Bars: how much is lost when a column is shuffled, with the spread over shuffles."""
    shown = columns[:most]
    row, height = 40, 40 * len(shown) + _TOP + _BOTTOM
    high = max(max(c["drop"] + c["spread"] for c in shown), 0.005)
    low = min(min(c["drop"] - c["spread"] for c in shown), 0.0)
    axes = _Axes((low, high * 1.05), (0, 1), height=height, left=216)
    body = ""
    for i, column in enumerate(shown):
        y = _TOP + row * i
        start, end = sorted((axes.at_x(0), axes.at_x(column["drop"])))
        low, high = (axes.at_x(column["drop"] + s * column["spread"]) for s in (-1, 1))
        name, direction = (
            escape(_short(column["column"])),
            escape(_short(column.get("direction") or "", 27)),
        )
        whole = f"<title>{escape(column['column'])}</title>"
        body += _text("label", _RIGHT - 12, y + 15, name + whole, None)
        body += _text("tick", _RIGHT - 12, y + 31, direction, None)
        width = f"{max(end - start, 1):.1f}"
        body += f'<rect class="bar" x="{start}" y="{y + 9}" width="{width}" height="18"/>'
        body += _line("whisker", (low, high), (y + 18, y + 18))
    body = axes.upright(body, "fall when shuffled")
    description = f"Largest for {shown[0]['column']}: {shown[0]['drop']:.3f}."
    return _svg("Most informative columns", description, body, height)


def _short(text: str, most: int = 25) -> str:
    """At most this many characters; three dots show what is left out."""
    return text if len(text) <= most else text[: most - 1] + "…"
