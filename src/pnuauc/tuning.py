"""Every tuned constant that a stated number rests on, with the reason and the command behind it.

A constant is ``Tuned(value, trades, source)``: its value, what a larger or smaller one would trade,
and the command (or the argument) that chose it. ``tests/test_tuning.py`` fails for one without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = [
    "COMMITTEE",
    "DIFFERENT",
    "INTERVALS",
    "LATER",
    "POSTERIOR",
    "TOGETHER",
    "Committee",
    "Different",
    "Intervals",
    "Later",
    "PosteriorTuning",
    "Together",
    "Tuned",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Tuned(Generic[T]):
    """value : the constant; trades : what doubling and halving cost; source : command or reason."""

    value: T
    trades: str
    source: str


@dataclass(frozen=True)
class PosteriorTuning:
    """What :mod:`pnuauc.evaluation.posterior` believes before it sees a label."""

    belief: Tuned[tuple[float, float]] = Tuned(
        (1.0, 6.0),
        "Beta(a, b) of the share of positives in U, mean .14, 95% below .39. With b = 9 (95% below "
        ".28) shares of .3 were missed from few labels: seen on trials 20 to 22. On 237 fits of "
        "trial 900 the rms error of the share is .051 in place of .061, the Brier skill .42 in "
        "place of .39; b = 7 and 5 differ by .001 from b = 6. Shares below .05 are read higher. "
        "The user's to change (belief=).",
        "reason: positives are rare, and .3 still possible; python -m experiments truth",
    )
    slope: Tuned[tuple[float, float]] = Tuned(
        (0.3, 1.2),
        "Mean and standard deviation of the log rate m of logit pi: AUCs of .55 to .999 lie within "
        "two of them. Other values were not tried.",
        "reason: the range of rankings worth having",
    )
    roughness: Tuned[tuple[float, float]] = Tuned(
        (-0.5, 0.6),
        "Mean and standard deviation of log s, the departure of the curve from a line. Less is "
        "stiffer with hundreds of labels, more is vaguer with ten; other values were not tried.",
        "reason: a factor of two in the rate from the middle to the end of the scale",
    )
    length: Tuned[float] = Tuned(
        1.2,
        "Length of the process h in units of z. Half of it needs twice the components.",
        "reason: a curve has a bottom, a middle and a top",
    )
    components: Tuned[int] = Tuned(
        7,
        "Principal components of h that are kept. Cost grows with it; other values were not tried.",
        "reason: numerical accuracy",
    )
    misfit: Tuned[float] = Tuned(
        1e-4,
        "p-value below which labelled rows do not fit any curve and nothing is stated. Of 161 fits "
        "with fair labels (trial 950) one is below it: mushrooms at a share of 1%, 2e-6. "
        "Since then unlabelled rows count as a sample too, which only raises p-values.",
        "reason: one false alarm in 5,000 tables",
    )
    picked: Tuned[float] = Tuned(
        0.01,
        "Probability, before anything is seen, that labels were picked for their score without a "
        "word said; above one half afterwards nothing is stated (a Bayes factor of 99). With .02 "
        "one fair fit more of 90 is withheld. Trial 950: of 38 fair fits at a share of 1% two are "
        "withheld (one by the test of fit), of 52 others none; where the 20 highest rows were "
        "labelled three times, 19 of 20. The one that is missed has 80 positives and no negative.",
        "reason: one table in a hundred",
    )


@dataclass(frozen=True)
class Committee:
    """How members of :class:`pnuauc.AutoAUCClassifier` are weighed and trained."""

    training_prior: Tuned[float] = Tuned(
        0.1,
        "Share that the risks are trained with where none is given: the mean of the belief. "
        "Against an estimate of it the test AUC differs by +.01 (se .01) points with both classes "
        "and +.02 (se .02) with one, on 30 tables.",
        "python -m experiments truth; trials 900 to 903",
    )
    leaning: Tuned[float] = Tuned(
        0.08,
        "AUC that a member must be ahead of the mean for e times its weight while labels are few. "
        "Less follows luck, more hardly leans; not measured again since the one posterior.",
        "python -m experiments auto (docs/lab/auto.md)",
    )
    most_leaning: Tuned[float] = Tuned(
        2.0,
        "Largest power of e of that factor; it bounds what luck can do; not measured again.",
        "python -m experiments auto (docs/lab/auto.md)",
    )
    tolerance: Tuned[float] = Tuned(
        0.05,
        "AUC that a member on trial must be ahead of the others for e times the weight.",
        "python -m experiments auto (docs/lab/auto.md)",
    )
    trial_weights: Tuned[tuple[float, float]] = Tuned(
        (0.1, 8.0),
        "Least and most weight of a member on trial; below the least it is left out, which saves "
        "its time in scoring.",
        "reason: nine in ten of the weight is all of it",
    )
    idle_text: Tuned[float] = Tuned(
        0.8,
        "Probability, before held-out rows are seen, that text beside columns says nothing. On 95 "
        "draws (10 + 40 labels, 21 titles) a column of random titles costs .28 points of AUC (se "
        ".12), with 2/3 .49, with 1/2 .82; on 47 draws of four tables text is worth 2.7, 3.0, 3.1.",
        "python -m experiments text_noise; text_mixed (docs/lab/text.md)",
    )
    pull: Tuned[float] = Tuned(
        10.0,
        "Pull of learned weights towards equal ones, in labelled rows; used from 400 labels.",
        "python -m experiments auto (docs/lab/auto.md)",
    )


@dataclass(frozen=True)
class Together:
    """When rows are suspected to belong together (:mod:`pnuauc.study.groups`)."""

    values: Tuned[tuple[int, int]] = Tuned(
        (20, 60),
        "Least number of values of a column that may name groups, and most rows a value. Fewer "
        "values or more rows each are categories, which a model may read.",
        "reason: twenty groups are the fewest that say how alike rows of one are",
    )
    shared: Tuned[int] = Tuned(
        2,
        "Labelled rows that share a value with another, at least. With 4 one in 16 strong panels "
        "of two rows a group is missed; fewer than two cannot mislead.",
        "reason: one pair of labelled rows in two folds is the least that leaks",
    )
    errors: Tuned[float] = Tuned(
        4.5,
        "Standard errors by which rows of one value must be nearer than rows of two. At 3 one "
        "column in 700 is named by chance, and a table has many.",
        "reason: three in a million for each column",
    )
    nearer: Tuned[float] = Tuned(
        0.05,
        "Share of the squared distance by which they must be nearer as well. Half of it names "
        "columns that change no stated number, twice of it misses weak effects.",
        "reason: correlations of rows below .05 change intervals little",
    )
    chance: Tuned[float] = Tuned(
        1e-4,
        "Chance that labels repeat within values as seen, if values were no names. A smaller one "
        "misses columns that give labels away in small tables.",
        "reason: one false alarm in 10,000 columns",
    )
    near: Tuned[tuple[float, float]] = Tuned(
        (0.3, 0.4),
        "Share of labelled rows with a near labelled one, and how near, as a share of what the "
        "20th and 60th nearest rows lead to expect. Larger distances name tables without groups.",
        "reason: panels of docs/lab/groups.md; set before its tables were drawn",
    )


@dataclass(frozen=True)
class Later:
    """How the past judges the future (:mod:`pnuauc.study.timed`)."""

    begins: Tuned[tuple[float, ...]] = Tuned(
        (0.4, 0.6, 0.8),
        "Shares of the labelled rows at which a span begins that is judged by a model of all rows "
        "before. Earlier ones judge models of few rows, later ones few rows.",
        "reason: models of the past have at least 40% of the labels, 60% are judged",
    )
    fewest: Tuned[int] = Tuned(
        3,
        "Rows of each labelled class that a model of the past needs. With more of them fewer "
        "tables can be judged by time, with fewer the first span means nothing.",
        "reason: as many as folds need",
    )


@dataclass(frozen=True)
class Different:
    """When a table that is scored looks unlike the fitted one (:mod:`pnuauc.model.compare`)."""

    share: Tuned[float] = Tuned(
        0.2,
        "Cells of a column that must be missing, outside of the range or new, beyond the usual "
        "share. Half of it warns of months that are merely different, twice of it misses a file.",
        "reason: a fifth of a column is more than drift and less than half a file",
    )
    chance: Tuned[float] = Tuned(
        1e-4,
        "Chance of such a share in a file of these many rows, over all columns. Larger ones warn "
        "of small files that are fine, smaller ones miss files of ten rows.",
        "reason: one false alarm in 10,000 files",
    )
    outside: Tuned[float] = Tuned(
        0.02,
        "Share of fitted cells outside of the range that a column has, by its definition "
        "(1% at either end, with a margin); it moves with that definition only.",
        "reason: definition of the range in pnuauc.io.encode",
    )
    spans: Tuned[float] = Tuned(
        10.0,
        "Dates go on: only one this many fitted spans away is strange. Half of it would warn of "
        "a model that is used for years, twice of it is a century for ten years of data.",
        "reason: wrong centuries and swapped day and year are found, later years are not",
    )


@dataclass(frozen=True)
class Intervals:
    """Of AUCs from given scores (:mod:`pnuauc.evaluation.conditional`, ``estimate``)."""

    usual: Tuned[float] = Tuned(
        1.2,
        "Factor k of the variance of a row's place that few rows are pulled to: .6 to 1 for two "
        "Gaussians, 3 for an outlier that loses to everything. Less is too narrow with ten rows.",
        "python -m experiments coverage",
    )
    usual_rows: Tuned[float] = Tuned(
        10.0,
        "Rows that the usual value counts for. Fewer leave intervals of ten rows to their luck.",
        "python -m experiments coverage",
    )
    refuted: Tuned[float] = Tuned(
        0.999,
        "Confidence at which a prior under which no AUC in [0, 1] fits is called refuted; at .95 "
        "the true prior would be refuted now and then.",
        "reason: one in a thousand",
    )
    narrower: Tuned[float] = Tuned(
        0.9,
        "Width of the combination over that of PN alone below which auto takes unlabelled rows in: "
        "an interval that was chosen for being narrow is too narrow.",
        "reason: a tenth is worth an assumption",
    )
    away: Tuned[float] = Tuned(
        0.02,
        "PU and NU divide by 1 - prior and prior: where an uncertain prior may come nearer to 0 or "
        "1 than this, the estimate that divides by it is left out of a combination.",
        "reason: an error of .01 in the prior would halve or double what is divided",
    )


POSTERIOR = PosteriorTuning()
INTERVALS = Intervals()
COMMITTEE = Committee()
TOGETHER = Together()
LATER = Later()
DIFFERENT = Different()
