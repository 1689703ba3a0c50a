"""Findings in words and short tables: what text, terminal and HTML share."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

__all__ = [
    "auc_words",
    "copies_words",
    "effect_words",
    "group_words",
    "headline",
    "interval",
    "next_steps",
    "percent",
    "prior_words",
    "review_words",
    "setting_words",
    "summary_rows",
]

_SETTINGS = {
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


def interval(item: dict[str, Any]) -> str:
    """Value with limits."""
    limits = f"{item['low']:.3f} to {item['high']:.3f}"
    return f"{item['value']:.3f} ({item['level']:.0%} interval {limits})"


def percents(item: dict[str, Any]) -> str:
    """The limits in percent."""
    return f"{percent(item['low'])} to {percent(item['high'])}"


def verdict(p_value: float) -> str:
    """What a p-value says about a difference."""
    return "a clear difference" if p_value < 0.05 else "no clear difference"


def setting_words(setting: str) -> str:
    return _SETTINGS.get(setting, setting)


def headline(findings: dict[str, Any]) -> list[str]:
    """The answer in a few sentences that need no statistics."""
    sentences = [auc_words(findings), prior_words(findings), review_words(findings)]
    return [sentence for sentence in sentences if sentence]


def auc_words(findings: dict[str, Any]) -> str:
    """How good the ranking is, or why that cannot be estimated."""
    auc = findings.get("auc")
    if auc is None:
        return str(findings.get("auc_reason", "The AUC could not be estimated."))
    limits = f"({auc['level']:.0%} interval {percents(auc)})"
    if auc["low"] <= _CHANCE:
        return (
            "These labels do not show that the model ranks better than chance: of a positive and a "
            f"negative row it puts the positive one first in {percent(auc['value'])} of cases "
            f"{limits}, and a coin does in 50%."
        )
    return (
        "Of a positive and a negative row picked at random, the model puts the positive one first "
        f"in {percent(auc['value'])} of cases {limits}."
    )


def prior_words(findings: dict[str, Any]) -> str:
    """How many of the unlabelled rows are positive."""
    prior, n = findings.get("prior"), findings["labels"]["unlabeled"]
    if prior is None:
        return ""
    if prior["source"] == "given" and prior["low"] == prior["high"]:
        return (
            f"{percent(prior['value'])} of the {n:,} unlabelled rows are positive, as given: "
            f"{counted(prior['value'] * n)}."
        )
    return (
        f"Of the {n:,} unlabelled rows {percents(prior)} are positive ({prior['level']:.0%} "
        f"interval, best estimate {percent(prior['value'])}): {prior['low'] * n:,.0f} to "
        f"{prior['high'] * n:,.0f} rows." + (f" {prior['note']}" if prior.get("note") else "")
    )


def counted(rows: float) -> str:
    """A number of rows, rounded, in words."""
    return "fewer than one row" if rows < 0.5 else f"some {rows:,.0f} rows"


def review_words(findings: dict[str, Any]) -> str:
    """Positives to expect among the rows to review."""
    review = findings.get("review")
    if not review:
        return ""
    k, expected = review["k"], review["expected"]
    rows = f"the {k:,} unlabelled rows" if k > 1 else "the unlabelled row"
    top = f"{rows} with the highest score{'s' if k > 1 else ''}"
    low, high = f"{expected['low']:,.0f}", f"{expected['high']:,.0f}"
    limits = f"{low} to {high}" if low != high else low
    said = (
        f"Among {top}, expect {limits} positive ({review['level']:.0%} interval, best estimate "
        f"{expected['value']:,.1f})"
    )
    said += f"; as many rows drawn at random would hold {review['by_chance']:,.1f}."
    return f"{said} To find half of all positives, review about {review['rows_for_half']:,} rows."


def next_steps(findings: dict[str, Any]) -> list[str]:
    """What to do next, the most urgent first; each a sentence or two."""
    labels, prior, review = findings["labels"], findings.get("prior"), findings.get("review")
    files, n_listed = findings.get("files") or {}, len(findings["top"]["rows"])
    out = []
    if findings.get("leaks"):
        out.append(
            "Check the columns that are named as leaks: what is known only after the outcome must "
            "be left out, and the fit repeated."
        )
    if n_listed:
        where = f" ({PurePath(files['review']).name})" if files else ""
        found = (
            f": about {review['counts'][0]['value']:,.0f} of the first {review['counts'][0]['k']} "
            "should be positive"
            if review
            else ""
        )
        out.append(
            f"Look at the {n_listed} rows to review{where}{found}. Write what you find into column "
            f"'{findings['table']['label']}' (1 or 0) and fit again; pnuauc review does this round "
            "by round and says when to stop."
        )
    if labels["unlabeled"] and prior is None:
        out.append(
            "Label unlabelled rows that are drawn at random, with positives and negatives: then "
            "AUC, share of positives and probabilities can be stated. The ranking is of use "
            "before that."
        )
    elif prior is not None and prior.get("labels_to_halve"):
        out.append(
            f"Label about {prior['labels_to_halve']:,} unlabelled rows drawn at random: the "
            "interval of the share of positives would be half as wide."
        )
    score, more = "fit.model.score(table)", ""
    if "model" in files:
        score = f"pnuauc score {PurePath(files['model']).name} NEW.csv"
        more = "; rows can be chosen by probability or number as well (pnuauc score --help)"
    out.append(
        f"Score new rows: {score}. A score above 0 is called positive ({_threshold(findings)})"
        f"{more}."
    )
    return out


def _threshold(findings: dict[str, Any]) -> str:
    """What the threshold of the model means."""
    n, prior = findings["labels"]["unlabeled"], findings.get("prior")
    if not n:
        return "where positive is as likely as not"
    if prior is None:
        return "the threshold has no meaning here, as the share of positives cannot be estimated"
    return f"so are {percent(prior['value'])} of the unlabelled rows, the estimated share"


def summary_rows(findings: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, value) lines for a terminal or the head of a report."""
    labels, table = findings["labels"], findings["table"]
    kinds = ", ".join(f"{n} {kind}" for kind, n in table["kinds"].items())
    rows = [
        ("Rows", f"{table['rows']:,}: {role_words(labels)}"),
        ("Columns used", f"{kinds} ({table['n_encoded']} after encoding)"),
        ("Labels", _labels(labels)),
    ]
    prior = findings.get("prior")
    if prior is not None:
        rows.append(("Share of positives", _prior(prior)))
    auc = findings.get("auc")
    rows.append(("AUC, held out", interval(auc) if auc else str(findings.get("auc_reason"))))
    if findings.get("groups"):
        rows.append(("Groups", group_words(findings["groups"])))
    elif (findings.get("copies") or {}).get("identical"):
        rows.append(("Duplicates", copies_words(findings["copies"])))
    if findings.get("timed"):
        rows += timed_rows(findings["timed"])
    rows.append(("Model", _model(findings["selection"])))
    rows += [("Compared with", rival_words(line)) for line in findings.get("rivals") or []]
    effect = findings.get("unlabeled_effect")
    if effect:
        rows.append(("Unlabelled rows", effect_words(effect)))
    return rows


def _prior(prior: dict[str, Any]) -> str:
    return f"{percent(prior['value'])} (interval {percents(prior)}), {prior['source']}"


def copies_words(copies: dict[str, Any]) -> str:
    """Identical rows."""
    return (
        f"{copies['identical']:,} rows have a duplicate; labelled duplicates were kept in one "
        "fold and count as one"
    )


def group_words(groups: dict[str, Any]) -> str:
    """What belongs together, and what it counts for."""
    named = ", ".join(f"'{name}'" for name in groups["columns"])
    return (
        f"by {named}: the {groups['n_labeled']:,} labelled rows belong to "
        f"{groups['n_groups']:,} groups and count as {groups['worth']:,.0f} independent ones; each "
        "group is in one fold, its unlabelled rows too"
    )


def timed_rows(timed: dict[str, Any]) -> list[tuple[str, str]]:
    """AUC of later rows, which one to believe, and the share of positives over time."""
    rows = [("AUC, later rows", interval(timed["auc"]))] if timed["auc"] else []
    rows.append(("By time", timed["believe"]))
    spans = []
    for span in timed["spans"]:
        if span["share"]:
            value, low, high = map(percent, span["share"])
            spans.append(f"from {span['begins']}: {value} ({low} to {high})")
    return [*rows, *([("Share over time", "; ".join(spans))] if spans else [])]


def effect_words(effect: dict[str, Any]) -> str:
    """What the unlabelled rows changed, on the same held-out rows."""
    if effect.get("difference") is None:
        return str(effect["message"])
    return (
        f"changed the held-out AUC by {effect['difference']:+.3f} ({effect['low']:+.3f} to "
        f"{effect['high']:+.3f}, p = {effect['p_value']:.2g}): {verdict(effect['p_value'])}"
    )


def role_words(labels: dict[str, Any]) -> str:
    """How many rows of each role there are."""
    return (
        f"{labels['positive']:,} positive, {labels['negative']:,} negative, "
        f"{labels['unlabeled']:,} unlabelled"
    )


def rival_words(line: dict[str, Any]) -> str:
    """One sentence on what one would do instead."""
    return (
        f"{line['name']}: AUC {line['auc']:.3f}; this model is ahead by {line['difference']:+.3f} "
        f"({line['low']:+.3f} to {line['high']:+.3f})"
    )


def _labels(labels: dict[str, Any]) -> str:
    known = []
    if labels["positive"]:
        known.append(f"{labels['positive_label']} is positive")
    if labels["negative"]:
        known.append(f"{labels['negative_label']} is negative")
    return f"{', '.join(known)}; {setting_words(labels['setting'])}"


def _model(selection: dict[str, Any]) -> str:
    if selection.get("model") in {"auto", "estimator"}:
        return str(selection["message"])
    centers = f" of {selection['n_centers']} centers" if selection["n_centers"] else ""
    return (
        f"{selection['risk'].upper()} risk, {selection['loss']} loss, {selection['basis']} basis"
        f"{centers}; weighted mean of {selection['n_kept']} of {selection['n_candidates']} "
        "candidates"
    )
