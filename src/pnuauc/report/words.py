"""Findings in words and short tables: what text, terminal and HTML share."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from pnuauc._utils.show import dump_json

if TYPE_CHECKING:
    from pnuauc.evaluation import AUCEstimate
    from pnuauc.study.findings import (
        AUCFinding,
        Effect,
        Findings,
        Groups,
        Labels,
        PriorFinding,
        Selection,
    )

    Estimated = AUCEstimate | AUCFinding | PriorFinding

SETTINGS = {
    "PN": "positives and negatives, nothing unlabelled (PN)",
    "PU": "positives and unlabelled rows, no negatives (PU)",
    "NU": "negatives and unlabelled rows, no positives (NU)",
    "PNU": "positives, negatives and unlabelled rows (PNU)",
}
#: An interval that begins below this does not rule chance out: the AUC is assumed to be above .5.
_CHANCE = 0.53


def percent(value: float, digits: int = 1) -> str:
    """0.0342 -> "3.4%"."""
    return f"{100 * value:.{digits}f}%"


def interval(item: Estimated) -> str:
    """Value with limits."""
    return f"{item.value:.3f} ({item.level:.0%} interval {item.low:.3f} to {item.high:.3f})"


def percents(item: Estimated) -> str:
    """The limits in percent."""
    return f"{percent(item.low)} to {percent(item.high)}"


def verdict(p_value: float) -> str:
    """What a p-value says about a difference."""
    return "a clear difference" if p_value < 0.05 else "no clear difference"


def role_words(labels: Labels) -> str:
    """How many rows of each role there are."""
    return (
        f"{labels.positive:,} positive, {labels.negative:,} negative, "
        f"{labels.unlabeled:,} unlabelled"
    )


def headline(found: Findings) -> list[str]:
    """The answer in a few sentences that need no statistics."""
    prior = prior_words(found.prior, found.labels.unlabeled)
    return [said for said in (auc_words(found), prior, _review_words(found)) if said]


def auc_words(found: Findings) -> str:
    """How good the ranking is, or why that cannot be estimated."""
    auc = found.auc
    if auc is None:
        return str(found.auc_reason or "The AUC could not be estimated.")
    share, limits = percent(auc.value), f"({auc.level:.0%} interval {percents(auc)})"
    if auc.low <= _CHANCE:
        return (
            "These labels do not show that the model ranks better than chance: of a positive and a "
            f"negative row it puts the positive one first in {share} of cases {limits}, and a coin "
            "does in 50%."
        )
    return (
        "Of a positive and a negative row picked at random, the model puts the positive one first "
        f"in {share} of cases {limits}."
    )


def prior_words(prior: PriorFinding | None, n: int) -> str:
    """How many of the n unlabelled rows are positive."""
    if prior is None:
        return ""
    if prior.source == "given" and prior.low == prior.high:
        hidden = prior.value * n
        rows = "fewer than one row" if hidden < 0.5 else f"some {hidden:,.0f} rows"
        return (
            f"{percent(prior.value)} of the {n:,} unlabelled rows are positive, as given: {rows}."
        )
    return (
        f"Of the {n:,} unlabelled rows {percents(prior)} are positive ({prior.level:.0%} "
        f"interval, best estimate {percent(prior.value)}): {prior.low * n:,.0f} to "
        f"{prior.high * n:,.0f} rows." + (f" {prior.note}" if prior.note else "")
    )


def _review_words(found: Findings) -> str:
    """Positives to expect among the rows to review."""
    review = found.review
    if not review:
        return ""
    expected = review.expected
    rows = (
        f"the {review.k:,} unlabelled rows with the highest scores"
        if review.k > 1
        else "the unlabelled row with the highest score"
    )
    low, high = f"{expected.low:,.0f}", f"{expected.high:,.0f}"
    return (
        f"Among {rows}, expect {f'{low} to {high}' if low != high else low} positive "
        f"({review.level:.0%} interval, best estimate {expected.value:,.1f}); as many rows drawn "
        f"at random would hold {review.by_chance:,.1f}. To find half of all positives, review "
        f"about {review.rows_for_half:,} rows."
    )


def next_steps(found: Findings) -> list[str]:
    """What to do next, the most urgent first; each a sentence or two."""
    prior, review, files = found.prior, found.review, found.files or {}
    out = []
    if found.leaks:
        out.append(
            "Check the columns that are named as leaks: what is known only after the outcome must "
            "be left out, and the fit repeated."
        )
    if found.top.rows:
        where = f" ({PurePath(files['review']).name})" if files else ""
        expected = (
            f": about {review.counts[0].value:,.0f} of the first {review.counts[0].k} should be "
            "positive"
            if review
            else ""
        )
        out.append(
            f"Look at the {len(found.top.rows)} rows to review{where}{expected}. Write what you "
            f"find into column '{found.table.label}' ({found.labels.positive_label} or "
            f"{found.labels.negative_label}) and fit again; pnuauc review does this round by round "
            "and says when to stop."
        )
    meaning = "where positive is as likely as not"
    if found.labels.unlabeled and prior is None:
        meaning = "the threshold has no meaning here, as the share of positives cannot be estimated"
        out.append(
            "Label unlabelled rows that are drawn at random, with positives and negatives: then "
            "AUC, share of positives and probabilities can be stated. The ranking is of use "
            "before that."
        )
    elif prior is not None:
        meaning = f"so are {percent(prior.value)} of the unlabelled rows, the estimated share"
        if prior.labels_to_halve:
            out.append(
                f"Label about {prior.labels_to_halve:,} unlabelled rows drawn at random: the "
                "interval of the share of positives would be half as wide."
            )
    score, more = "fit.model.score(table)", ""
    if "model" in files:
        score = f"pnuauc score {PurePath(files['model']).name} NEW.csv"
        ways = "number" if prior is None else "probability or number"
        more = f"; rows can be chosen by {ways} as well (pnuauc score --help)"
    out.append(f"Score new rows: {score}. A score above 0 is called positive ({meaning}){more}.")
    return out


def summary_rows(found: Findings) -> list[tuple[str, str]]:
    """(name, value) lines for a terminal or the head of a report."""
    labels, table, prior = found.labels, found.table, found.prior
    kinds = ", ".join(f"{n} {kind}" for kind, n in table.kinds.items())
    known = [f"{labels.positive_label} is positive"] if labels.positive else []
    known += [f"{labels.negative_label} is negative"] if labels.negative else []
    rows = [
        ("Rows", f"{table.rows:,}: {role_words(labels)}"),
        ("Columns used", f"{kinds} ({table.n_encoded} after encoding)"),
        ("Labels", f"{', '.join(known)}; {SETTINGS[labels.setting]}"),
    ]
    if prior is not None:
        share = f"{percent(prior.value)} (interval {percents(prior)}), {prior.source}"
        rows.append(("Share of positives", share))
    rows.append(("AUC, held out", interval(found.auc) if found.auc else str(found.auc_reason)))
    if review := found.review:
        counts = [f"{c.k:,}: {c.value:,.1f} ({c.low:,.0f} to {c.high:,.0f})" for c in review.counts]
        half = f"half of all in about {review.rows_for_half:,}"
        rows.append(("Positives in the top", "; ".join([*counts, half])))
    if found.groups:
        rows.append(("Groups", groups_words(found.groups)))
    elif found.copies and found.copies["identical"]:
        said = (
            f"{found.copies['identical']:,} rows have a duplicate; labelled duplicates were kept "
            "in one fold and count as one"
        )
        rows.append(("Duplicates", said))
    if timed := found.timed:
        if timed.auc:
            rows.append(("AUC, later rows", interval(timed.auc)))
        rows.append(("By time", timed.believe))
        spans = [(span.begins, *map(percent, span.share)) for span in timed.spans if span.share]
        shares = [f"from {begin}: {value} ({low} to {high})" for begin, value, low, high in spans]
        rows += [("Share over time", "; ".join(shares))] if shares else []
    rows.append(("Model", _model(found.selection)))
    for line in found.rivals or []:
        said = (
            f"{line.name}: AUC {line.auc:.3f}; this model is ahead by {line.difference:+.3f} "
            f"({line.low:+.3f} to {line.high:+.3f})"
        )
        rows.append(("Compared with", said))
    if found.unlabeled_effect:
        rows.append(("Unlabelled rows", effect_words(found.unlabeled_effect)))
    return rows


def groups_words(groups: Groups) -> str:
    """How many independent rows the labelled rows of groups count as."""
    named = ", ".join(f"'{name}'" for name in groups.columns)
    return (
        f"by {named}: the {groups.n_labeled:,} labelled rows belong to {groups.n_groups:,} groups "
        f"and count as {groups.worth:,.0f} independent ones; each group is in one fold, its "
        "unlabelled rows too"
    )


def effect_words(effect: Effect) -> str:
    """What the unlabelled rows changed, on the same held-out rows."""
    if effect.difference is None:
        return effect.message
    return (
        f"changed the held-out AUC by {effect.difference:+.3f} ({effect.low:+.3f} to "
        f"{effect.high:+.3f}, p = {effect.p_value:.2g}): {verdict(effect.p_value)}"
    )


def _model(chosen: Selection) -> str:
    if chosen.model == "auto":
        return chosen.message
    centers = f" of {chosen.n_centers} centers" if chosen.n_centers else ""
    return (
        f"{chosen.risk.upper()} risk, {chosen.loss} loss, {chosen.basis} basis{centers}; weighted "
        f"mean of {chosen.n_kept} of {chosen.n_candidates} candidates"
    )


def to_json(found: Findings) -> str:
    """The findings as JSON; NaN and infinities are null."""
    return dump_json(found.to_dict())


def to_text(found: Findings) -> str:
    """The findings in plain lines, for a terminal or a log."""
    rows = summary_rows(found)
    width = max(len(name) for name, _ in rows)
    lines = [*headline(found), "", *(f"{name:<{width}}  {value}" for name, value in rows)]
    notes = [*found.warnings, *found.table.notes]
    lines += ["", *(f"- {note}" for note in notes)] if notes else []
    steps = enumerate(next_steps(found), 1)
    return "\n".join([*lines, "", "What to do next", *(f"{i}. {step}" for i, step in steps)])
