"""What the paper says, and what this reproduction set itself, each checked against the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from experiments import priors, variance
from experiments.config import Config, Setting
from experiments.summary import Cell, cells, paper_methods, rows_by_cell
from experiments.tables import TOLERANCE, Table, make_table, within

__all__ = ["Claim", "claims"]


@dataclass(frozen=True)
class Claim:
    """One statement, whether it holds in our rows ("yes", "no", "partly", "open"), and by what."""

    about: str
    statement: str
    verdict: str
    evidence: str


def claims(config: Config, results: Path) -> list[Claim]:
    """All claims that the rows at hand can speak to."""
    checks = (_variance, _priors, _table2, _table4, _table5, _figure6, _figure7, _times)
    return [claim for check in checks for claim in check(config, results)]


def _verdict(holds: int, total: int) -> str:
    if total == 0:
        return "open"
    return "yes" if holds == total else "no" if holds == 0 else "partly"


#: With fewer trials than this a verdict would be a guess.
ENOUGH = 5


def _unless_few(verdict: str, trials: list[int]) -> str:
    """The verdict, or "open" where a cell it rests on has few trials."""
    return verdict if trials and min(trials) >= ENOUGH else "open (few trials)"


def _variance(config: Config, results: Path) -> Iterator[Claim]:
    """Figures 1 and 2: lowest ratio of variances over eta > 0, by curve."""
    for figure, what in (("1", "at every training size"), ("2", "at priors .1, .2 and .3")):
        found = variance.curves(config[f"figure{figure}"], results)
        lowest = [(c.setting, float(c.ratio[variance.ETAS > 0].min())) for c in found]
        yield Claim(
            f"Figure {figure}",
            f"some eta > 0 brings the variance below that of the PN risk, {what}",
            _verdict(sum(v < 1 for _, v in lowest), len(lowest)),
            ", ".join(f"{v:.2f} (nP = {s['train'][0]}, prior {s.prior})" for s, v in lowest),
        )


def _priors(config: Config, results: Path) -> Iterator[Claim]:
    """Tables 1 and 3: the paper's estimators, ours against the printed means."""
    for table, method, tolerance in (("1", "penalized_l1", 0.05), ("3", "energy_V_1.0", 0.02)):
        part = config[f"table{table}"]
        found = rows_by_cell(part, results)
        gaps, errors = [], []
        for (name, *size, prior), theirs in priors.printed(part).items():
            rows = [
                row
                for (d, s, m), cell in found.items()
                if (d, s.prior, m) == (name, prior, method)
                and size in ([], [s.n_positive + s.n_negative])
                for row in cell
            ]
            if rows:
                mean = float(np.mean([float(row["estimate"]) for row in rows]))
                gaps.append(abs(mean - theirs))
                errors.append((abs(mean - prior), abs(theirs - prior)))
        near = sum(gap <= tolerance + 0.005 for gap in gaps)  # the paper prints two digits
        if gaps:
            mine, others = np.mean(errors, axis=0)
            yield Claim(
                f"Table {table}",
                f"the paper's estimator gives the printed mean to within {tolerance:g}",
                _verdict(near, len(gaps)),
                f"{near} of {len(gaps)} cells; mean error of the cell means {mine:.3f}, in the "
                f"paper {others:.3f}",
            )


def _table2(config: Config, results: Path) -> Iterator[Claim]:
    table = make_table(config["table2"], results)
    settings = table.experiment.settings
    near = [within(table, s, TOLERANCE) for s in settings]
    shares = ", ".join(
        f"{a} of {b} at prior {s.prior:g}" for (a, b), s in zip(near, settings, strict=True)
    )
    enough = sum(a >= 6 for a, _ in near)
    begun = [b for _, b in near if b]
    yield Claim(
        "Table 2",
        f"PU-AUC comes within {TOLERANCE} points of the paper on at least 6 of 8 sets, both priors",
        _verdict(enough, len(begun)),
        shares,
    )
    wins = losses = total = 0
    trials = []
    gaps: dict[Setting, list[float]] = {}
    for setting in settings:
        for d in table.experiment.data_sets:
            ours, theirs = (table.cell(d, setting, m) for m in ("pu_auc", "rank_svm"))
            if ours.n > 1 and theirs.n > 1:
                total += 1
                trials.append(min(ours.n, theirs.n))
                gap = ours.mean - theirs.mean
                p = stats.ttest_ind(ours.auc, theirs.auc, equal_var=False).pvalue  # Welch's
                wins += gap > 0 and p < 0.05
                losses += gap < 0 and p < 0.05
                gaps.setdefault(setting, []).append(gap)
    means = "; ".join(f"{np.mean(g):+.1f} at prior {s.prior:g}" for s, g in gaps.items())
    yield Claim(
        "Table 2",
        "PU-AUC is better than PU-RSVM on every set, at both priors",
        _unless_few(_verdict(wins, total), trials),
        f"better on {wins}, worse on {losses} of {total} (two-sided 5%); "
        f"mean difference {means or 'unknown'}",
    )


def _table4(config: Config, results: Path) -> Iterator[Claim]:
    table = make_table(config["table4"], results)
    settings = table.experiment.settings
    gaps = [table.mean(s, "pnu_auc") - table.paper_mean(s, "PNU-AUC") for s in settings]
    known = [g for g in gaps if not np.isnan(g)]
    yield Claim(
        "Table 4",
        f"PNU-AUC's mean over the 15 sets is within {TOLERANCE} points of the paper's",
        _verdict(sum(abs(g) <= TOLERANCE for g in known), len(known)),
        ", ".join(
            f"{g:+.1f} at {s.key}" for s, g in zip(settings, gaps, strict=True) if not np.isnan(g)
        ),
    )
    yield from _cost(table)
    yield from _most_often_best(table, "pnu_auc", "")
    yield from _most_often_best(table, "pnu_auc_standard", ", all on standardised columns")
    yield _against(table, "pnu_auc", "eta0", "The unlabelled rows help: PNU-AUC beats eta = 0")
    says = "Averaging the candidates by their validation risk beats picking one"
    yield _against(table, "pnu_average", "pnu_auc", says)
    says = "With averaging, unlabelled rows help (over eta = 0)"
    yield _against(table, "pnu_average", "eta0_average", says)


def _cost(table: Table) -> Iterator[Claim]:
    """Time of all cells and 50 trials on two cores, from the mean of the fits there are."""
    spent = [
        seconds
        for s in table.experiment.settings
        for c in table.column(s, "pnu_auc")
        for seconds in c.cpu_seconds
    ]
    if spent:
        cells_of = len(table.experiment.settings) * len(table.experiment.data_sets)
        minutes = float(np.mean(spent)) * cells_of * 50 / 2 / 60
        how = "for" if len(spent) >= cells_of * 50 else "extrapolated from"
        yield Claim(
            "Table 4",
            "our own methods (60 cells, 50 trials) take less than 40 minutes on two cores",
            "yes" if minutes < 40 else "no",
            f"{minutes:.0f} minutes {how} {len(spent):,} fits of {np.mean(spent):.2f} processor "
            "seconds, each for four columns",
        )


def _most_often_best(table: Table, ours: str, how: str) -> Iterator[Claim]:
    """Cells in which each of the paper's four is best or comparable; ``ours`` is PNU-AUC's line."""
    names = [ours, *(m.name for m in paper_methods(table.experiment)[1:])]
    labels = [m.label for m in paper_methods(table.experiment)]
    for prior in sorted({s.prior for s in table.experiment.settings}):
        counts = dict.fromkeys(names, 0)
        complete = 0
        for setting in (s for s in table.experiment.settings if s.prior == prior):
            for d in table.experiment.data_sets:
                if all(table.cell(d, setting, n).n > 1 for n in names):
                    complete += 1
                    for name in table.bold(d, setting, names):
                        counts[name] += 1
        others = max(value for name, value in counts.items() if name != ours)
        verdict = "yes" if counts[ours] > others else "no"
        if counts[ours] == others:
            verdict = "partly" if complete else "open"
        there = {0.1: (20, 11, 5, 13), 0.2: (21, 13, 7, 9)}[prior]
        text = ", ".join(
            f"{label} {counts[name]} (paper {k})"
            for k, name, label in zip(there, names, labels, strict=True)
        )
        yield Claim(
            "Table 4",
            f"PNU-AUC is most often best or comparable, prior {prior:g}{how}",
            verdict,
            f"{text}; over the {complete} of 30 cells in which all four have run",
        )


def _against(table: Table, first: str, second: str, statement: str) -> Claim:
    """Paired over data sets, setting by setting."""
    parts, holds, total = [], 0, 0
    for setting in table.experiment.settings:
        one, other = ([c.mean for c in table.column(setting, m)] for m in (first, second))
        gaps = np.subtract(one, other)
        if np.isnan(gaps).any():
            continue
        total += 1
        better = int((gaps > 0).sum())
        p = float(stats.wilcoxon(gaps).pvalue)
        holds += gaps.mean() > 0 and p < 0.05
        parts.append(
            f"{setting.key}: {gaps.mean():+.1f}, better on {better} of {len(gaps)} (p = {p:.2g})"
        )
    return Claim("Table 4", statement, _verdict(holds, total), "; ".join(parts))


def _table5(config: Config, results: Path) -> Iterator[Claim]:
    table = make_table(config["table5"], results)
    (setting,) = table.experiment.settings
    ours = {d: table.cell(d, setting, "pnu_auc") for d in table.experiment.data_sets}
    rivals = [m.name for m in paper_methods(table.experiment)[1:]]
    full = [
        d
        for d in table.experiment.data_sets
        if ours[d].n > 1 and all(table.cell(d, setting, m).n > 1 for m in rivals)
    ]
    wins = [d for d in full if table.bold(d, setting) == {"pnu_auc"}]
    shared = [d for d in full if "pnu_auc" in table.bold(d, setting) and d not in wins]
    yield Claim(
        "Table 5",
        "PNU-AUC is the best method on every text set",
        _unless_few(
            _verdict(len(wins), len(full)),
            [table.cell(d, setting, m).n for d in table.experiment.data_sets for m in rivals],
        ),
        f"alone at the top on {', '.join(wins) or 'none'}; comparable to the best on "
        f"{', '.join(shared) or 'none'}; {len(full)} sets with all four methods",
    )


def _figure6(config: Config, results: Path) -> Iterator[Claim]:
    part = config["figure6"]
    found = cells(part, results)
    low, high = min(s.noise for s in part.settings), max(s.noise for s in part.settings)
    for prior in sorted({s.prior for s in part.settings}):
        drops, trials = {}, []
        for noise in (low, high):
            for d in part.data_sets:
                wrong, right = (
                    found.get((d, s, "pnu_given"), Cell(()))
                    for n in (noise, 0.0)
                    for s in part.settings
                    if s.prior == prior and s.noise == n
                )
                if wrong.n > 1 and right.n > 1:
                    drops[d, noise] = _paired(wrong, right)
                    trials.append(min(wrong.n, right.n))
        if not drops:
            continue
        text = "; ".join(f"{d} {n:+g}: {g:+.1f} ± {e:.1f}" for (d, n), (g, e) in drops.items())
        falls = sum(g < -2 * e for (d, n), (g, e) in drops.items() if n == low)
        others = sum(g < -2 * e for (d, n), (g, e) in drops.items() if n == high)
        if prior == 0.1:
            says = f"AUC falls when the prior is given {low:+g} too low, not when too high"
            verdict = "yes" if falls and not others else "no" if not falls else "partly"
        else:
            says = "AUC is stable whatever the noise"
            verdict = "yes" if falls + others == 0 else "partly" if falls + others < 4 else "no"
        yield Claim("Figure 6", f"prior {prior:g}: {says}", _unless_few(verdict, trials), text)


def _paired(a: Cell, b: Cell) -> tuple[float, float]:
    """Mean difference over the trials both have, and its standard error."""
    n = min(a.n, b.n)
    gaps = np.array(a.auc[:n]) - np.array(b.auc[:n])
    return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(n)) if n > 1 else float("inf")


def _figure7(config: Config, results: Path) -> Iterator[Claim]:
    part = config["figure7"]
    found = cells(part, results)
    for d in part.data_sets:
        steps = [(s, found.get((d, s, part.methods[0].name), Cell(()))) for s in part.settings]
        steps = [(s, c) for s, c in steps if c.n > 1]
        if len(steps) < 2:
            continue
        (first, a), (last, b) = steps[0], steps[-1]
        gap, error = _paired(b, a)
        yield Claim(
            "Figure 7",
            f"{d}: more unlabelled rows do no harm to AUC",
            _unless_few("yes" if gap > -2 * error else "no", [a.n, b.n]),
            f"{first.n_unlabeled:,} to {last.n_unlabeled:,} rows: {gap:+.1f} ± {error:.1f} points, "
            f"{np.mean(a.cpu_seconds):.2g} to {np.mean(b.cpu_seconds):.3g} processor seconds",
        )


def _times(config: Config, results: Path) -> Iterator[Claim]:
    """Figures 3 to 5: the paper's method against each of its competitors, times of one fit."""
    faster, much_faster = ("faster than", 1.0), ("much faster than", 0.5)
    says = {
        ("Figure 3", "table2"): [("slower than", 1.0)],
        ("Figure 4", "table4"): [faster, much_faster, much_faster],
        ("Figure 5", "table5"): [faster, faster, faster],
    }
    for (about, name), sayings in says.items():
        table = make_table(config[name], results)
        ours, *rivals = paper_methods(table.experiment)
        for rival, (words, bound) in zip(rivals, sayings, strict=True):
            ratios = []
            for d in table.experiment.data_sets:
                cells_of = (table.cell(d, table.experiment.timed, m.name) for m in (ours, rival))
                a, b = (cell.cpu_seconds for cell in cells_of)
                if a and b:
                    ratios.append(float(np.mean(a) / np.mean(b)))
            good = sum(r > bound if words == "slower than" else r < bound for r in ratios)
            yield Claim(
                about,
                f"{ours.label} is {words} {rival.label}",
                _verdict(good, len(ratios)),
                f"median ratio of times {np.median(ratios):.2g} over {len(ratios)} sets"
                if ratios
                else "no times yet",
            )
