"""The default ranker beside simple models, on the same draws: ``python -m experiments auto``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.config import Config, Experiment, Setting
from experiments.figures import pyplot, save
from experiments.kinds import Kind
from experiments.paper_sets import DENSE
from experiments.rankers import COLUMNS, fit_key, run
from experiments.summary import Row, finished, markdown_table

__all__ = ["AUTO", "DESIGN"]

#: The sets on which rules and constants of the committee were chosen: every other one of the list.
DESIGN = tuple(DENSE[::2])
#: (data set, setting key, method) -> seed -> AUC in percent
Scores = dict[tuple[str, str, str], dict[int, float]]
#: Earlier versions of the committee (``committee`` in the configuration) that score as this one
#: up to rounding, oldest first: their AUCs count on draws not computed again, the newest of them;
#: what they say of the top does not.
_SAME_SCORES = {6: (3, 4, 5)}
_SIMPLE = (
    "extra_trees",
    "random_forest",
    "hist_gradient_boosting",
    "svc",
    "logistic_regression",
)


def show(experiment: Experiment, results: Path) -> str:
    """Means by setting; worst cells; how often the stated number of positives was right."""
    scores, labels = _collect(experiment, results)
    parts = [f"### {experiment.title}\n", _means(experiment, scores, labels)]
    parts += ["", _cells(experiment, scores)]
    covered = _coverage(experiment, results)
    return "\n".join([*parts, "", covered] if covered else parts)


def _collect(experiment: Experiment, results: Path) -> tuple[Scores, dict[str, str]]:
    """Own rows and those of the experiment on the same draws."""
    scores: Scores = {}
    labels: dict[str, str] = {}
    sources = [(experiment, tuple(m.name for m in experiment.methods))]
    if "compare" in experiment.options:
        other = Config.read().experiments[experiment.options["compare"]]
        sources.append((other, tuple(experiment.options["beside"])))
    for source, wanted in sources:
        labels |= {m.name: m.label for m in source.methods if m.name in wanted}
        for row in [*_earlier(source, results), *finished(source, results)]:
            if row["method"] in wanted:
                key = (row["data_set"], row["setting"], row["method"])
                scores.setdefault(key, {})[int(row["seed"])] = 100 * float(row["auc"])
    return scores, {name: labels[name] for _, names in sources for name in names if name in labels}


def _earlier(experiment: Experiment, results: Path) -> list[Row]:
    """Rows of earlier versions with the same scores, first of all."""
    return [
        row
        for m in experiment.methods
        for version in _SAME_SCORES.get(m.settings.get("committee", 0), ())
        for row in finished(
            replace(
                experiment,
                methods=(replace(m, settings={**m.settings, "committee": version}),),
            ),
            results,
        )
    ]


def _paired(
    scores: Scores, data_set: str, setting: Setting, method: str
) -> tuple[list[float], ...]:
    """AUCs of the committee and of a method on the draws that both have."""
    ours = scores.get((data_set, setting.key, "auto"), {})
    theirs = scores.get((data_set, setting.key, method), {})
    seeds = sorted(ours.keys() & theirs.keys())
    return [ours[s] for s in seeds], [theirs[s] for s in seeds]


def _means(experiment: Experiment, scores: Scores, labels: dict[str, str]) -> str:
    """Mean AUC over the sets, and the paired difference of the committee with its error."""
    halves = {"all": experiment.data_sets}
    if set(DESIGN) & set(experiment.data_sets):
        halves["chosen on"] = tuple(d for d in experiment.data_sets if d in DESIGN)
        halves["not chosen on"] = tuple(d for d in experiment.data_sets if d not in DESIGN)
    lines = []
    for half, data_sets in halves.items():
        for method, label in labels.items():
            line: dict[str, object] = {"sets": half, "method": label}
            for setting in experiment.settings:
                pairs = [_paired(scores, d, setting, method) for d in data_sets]
                line[_short(setting)] = _mean_text(pairs)
            lines.append(line)
    return markdown_table(lines)


def _mean_text(pairs: list[tuple[list[float], ...]]) -> str:
    """ "mean (difference +- error), n trials" over the sets; "" while one has no pair."""
    if not pairs or any(len(ours) < 1 for ours, _ in pairs):
        return ""
    mean = np.mean([np.mean(theirs) for _, theirs in pairs])
    n = min(len(ours) for ours, _ in pairs)
    differences = [np.subtract(ours, theirs) for ours, theirs in pairs]
    if not any(d.any() for d in differences):
        return f"{mean:.1f} (n = {n})"
    errors = [d.var(ddof=1) / len(d) for d in differences if len(d) > 1]
    gain = np.mean([d.mean() for d in differences])
    if len(errors) < len(pairs):  # one draw has no scatter
        return f"{mean:.1f} ({gain:+.1f}, n = {n})"
    error = np.sqrt(np.sum(errors)) / len(pairs)
    return f"{mean:.1f} ({gain:+.1f} ± {error:.1f}, n = {n})"


def _short(setting: Setting) -> str:
    return f"P{setting.n_positive} N{setting.n_negative}, prior {setting.prior:g}"


def _cells(experiment: Experiment, scores: Scores) -> str:
    """Cells where a simple model is ahead by more than a point and two standard errors."""
    lines = []
    n_cells = 0
    for setting in experiment.settings:
        for data_set in experiment.data_sets:
            pairs = {m: _paired(scores, data_set, setting, m) for m in _SIMPLE}
            judged = {m: pair for m, pair in pairs.items() if len(pair[0]) >= 3}
            n_cells += bool(judged)
            for method, (ours, theirs) in judged.items():
                gap = np.subtract(theirs, ours)
                error = float(gap.std(ddof=1)) / np.sqrt(len(gap))
                if gap.mean() > 1.0 and gap.mean() > 2 * error:
                    name = f"{data_set}, {_short(setting)}"
                    lines.append(
                        {
                            "cell": name,
                            "simple model": method,
                            "ahead by": f"{gap.mean():.1f} ± {error:.1f}",
                            "trials": len(gap),
                        }
                    )
    head = (
        "Cells in which a simple model on the labelled rows is ahead by more than one point and "
        f"two standard errors: {len(lines)}, among {n_cells} cells with three common draws or more."
    )
    return head + ("\n\n" + markdown_table(lines) if lines else "")


def _said(experiment: Experiment, results: Path) -> list[tuple[str, str, dict[str, Any]]]:
    """(data set, setting, what the committee said of U) of every trial.

    ``positives``: how many U holds, the same in every draw.
    """
    share = {setting.key: setting.prior for setting in experiment.settings}
    return [
        (
            row["data_set"],
            row["setting"],
            {
                **json.loads(row["chosen"]),
                "positives": round(share[row["setting"]] * int(row["n_unlabeled"])),
            },
        )
        for row in finished(experiment, results)
        if row["method"] == "auto"
    ]


def _coverage(experiment: Experiment, results: Path) -> str:
    """Share of trials in which the true number of positives lay in its stated 90% interval."""
    said = _said(experiment, results)
    parts = {_short(s): [c for _, key, c in said if key == s.key] for s in experiment.settings}
    parts |= {name: [c for d, _, c in said if d == name] for name in experiment.data_sets}
    lines = []
    for name, chosen in parts.items():
        line: dict[str, object] = {"setting or set": name}
        for place, k in enumerate((20, 100, 500)):
            tops = [(*c["top"][place], c["positives"]) for c in chosen if len(c["top"]) > place]
            hits = [low <= truth <= high for _, _, low, high, truth, _ in tops]
            most = sum(truth == min(size, there) for size, _, _, _, truth, there in tops)
            text = f"{100 * np.mean(hits):.0f}% of {len(hits)}" if hits else ""
            line[f"top {k}"] = f"{text} ({most})" if most else text
        lines.append(line)
    if not said:
        return ""
    return (
        "Stated 90% interval of the positives in the top of U holds the truth. In brackets: "
        "trials in which all of the top is positive or all positives are in it.\n\n"
        + markdown_table(lines)
        + "\n\n"
        + _curve(experiment, said, results)
    )


def _curve(
    experiment: Experiment, said: list[tuple[str, str, dict[str, Any]]], results: Path
) -> str:
    """NAME_calibration.svg: stated probability against share of positives, by tenths of U."""
    lines: list[dict[str, object]] = []
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(5, 4.2))
    axis.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    for setting in experiment.settings:
        curves = [c["curve"] for _, key, c in said if key == setting.key]
        if curves:
            stated, true = np.mean(curves, axis=0).T
            axis.plot(stated, true, marker="o", markersize=3, label=_short(setting))
            for tenth, (p, share) in enumerate(zip(stated, true, strict=True), start=1):
                lines.append(
                    {
                        "setting": setting.key,
                        "tenth": tenth,
                        "stated": f"{p:.3f}",
                        "true": f"{share:.3f}",
                    }
                )
    axis.set(xlabel="stated probability", ylabel="share of positives", xlim=(0, 1), ylim=(0, 1))
    axis.legend(fontsize=7)
    name = f"{experiment.name}_calibration"
    save(figure, name, lines, results)
    return (
        "Stated probability and share of positives in tenths of U by score, mean over trials:\n\n"
        f"![{name}](figures/{name}.svg)"
    )


AUTO = Kind(run, show, COLUMNS, fit_key)
