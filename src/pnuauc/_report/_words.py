"""Findings in words and short tables: what text, terminal and HTML share."""

from __future__ import annotations

from typing import Any

__all__ = [
    "auc_words",
    "copies_words",
    "effect_words",
    "headline",
    "interval",
    "percent",
    "prior_words",
    "rests_on",
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
    """How good the ranking is; the share of pairs won where an AUC cannot be told."""
    auc = findings.get("auc")
    if auc is None:
        reason = str(findings.get("auc_reason", "The AUC could not be estimated."))
        raw = findings.get("auc_raw")
        if raw is None:
            return reason
        pair = (
            "a labelled positive row scores above an unlabelled one"
            if raw["method"] == "pu_raw"
            else "an unlabelled row scores above a labelled negative one"
        )
        return (
            f"{reason} What needs no prior: {pair} in {percent(raw['value'])} of pairs "
            f"({raw['level']:.0%} interval {percents(raw)})."
        )
    limits = f"({auc['level']:.0%} interval {percents(auc)})"
    if auc["low"] <= 0.5:
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
    """How many of the unlabelled rows are positive, or that it cannot be told."""
    prior, n = findings.get("prior"), findings["labels"]["unlabeled"]
    if prior is None:
        return ""
    if not prior.get("told", True):
        return (
            f"How many of the {n:,} unlabelled rows are positive cannot be told from these labels. "
            f"{prior['needed']}"
        )
    if prior["source"] == "given" and prior["low"] == prior["high"]:
        return (
            f"{percent(prior['value'])} of the {n:,} unlabelled rows are positive, as given: "
            f"{counted(prior['value'] * n)}."
        )
    return (
        f"Of the {n:,} unlabelled rows {percents(prior)} are positive ({prior['level']:.0%} "
        f"interval, best estimate {percent(prior['value'])}): {prior['low'] * n:,.0f} to "
        f"{prior['high'] * n:,.0f} rows."
    )


def counted(rows: float) -> str:
    """About so many rows, in words that do not claim more."""
    return "fewer than one row" if rows < 0.5 else f"some {rows:,.0f} rows"


def review_words(findings: dict[str, Any]) -> str:
    """Positives to expect among the rows to review."""
    review = findings.get("review")
    if not review:
        return ""
    k, expected = review["k"], review["expected"]
    rows = f"the {k:,} unlabelled rows" if k > 1 else "the unlabelled row"
    top = f"{rows} with the highest score{'s' if k > 1 else ''}"
    if not review["told"]:
        return f"How many of {top} are positive cannot be told from these labels."
    low, high = f"{expected['low']:,.0f}", f"{expected['high']:,.0f}"
    limits = f"{low} to {high}" if low != high else low
    told = (
        f"Among {top}, expect {limits} positive ({review['level']:.0%} interval, best estimate "
        f"{expected['value']:,.1f})"
    )
    prior = findings.get("prior") or {}
    if prior.get("told", True) and review.get("by_chance") is not None:
        told += f"; as many rows drawn at random would hold {review['by_chance']:,.1f}"
    return told + "."


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
        rows.append(("Prior in unlabelled", _prior(prior)))
    auc = findings.get("auc")
    rows.append(("AUC, held out", interval(auc) if auc else str(findings.get("auc_reason"))))
    if auc is not None:
        rows.append(("AUC rests on", rests_on(auc)))
    if findings.get("copies"):
        rows += [("Rows alike", words) for words in copies_words(findings["copies"])]
    rows.append(("Model", _model(findings["selection"])))
    rows += [("Instead", rival_words(line)) for line in findings.get("rivals") or []]
    effect = findings.get("unlabeled_effect")
    if effect:
        rows.append(("Unlabelled rows", effect_words(effect)))
    return rows


def _prior(prior: dict[str, Any]) -> str:
    if not prior.get("told", True):
        return f"cannot be told from these labels. {prior['reason']} {prior['needed']}"
    return f"{percent(prior['value'])} (interval {percents(prior)}), {prior['source']}"


def rests_on(auc: dict[str, Any]) -> str:
    """Which rows, and why the unlabelled ones were left out if they were."""
    rows = {
        "pn": "labelled positives and negatives",
        "pu": "labelled positives and unlabelled rows",
        "nu": "labelled negatives and unlabelled rows",
        "combined": "positives, negatives and unlabelled rows",
    }
    why = next((note for note in auc.get("notes", ()) if "left out, because" in note), None)
    if auc["method"] != "pn" or why is None:
        return rows.get(auc["method"], str(auc["method"]))
    reason = why.split("left out, because ", 1)[1].rstrip(".")
    return f"{rows['pn']}; unlabelled rows are left out, because {reason[0].lower()}{reason[1:]}"


def copies_words(copies: dict[str, Any]) -> list[str]:
    """Identical rows and near copies among those that were evaluated."""
    out = []
    if copies["identical"]:
        weight = copies["rows_per_observation"]
        counts = f", and every {weight:.1f} rows count as one" if weight > 1.05 else ""
        out.append(
            f"{copies['identical']:,} rows have an identical twin; identical rows were kept in one "
            f"fold{counts}"
        )
    if copies["near"]:
        out.append(
            f"{copies['near']:,} labelled rows have a near copy (the same customer twice?): if "
            "copies fall into different folds the AUC reads too high. Keep one of each"
        )
    return out


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
    """One sentence on a rival of the committee."""
    return (
        f"{line['name']}: {rival_measure(line)} in refits {line['auc']:.3f}, committee "
        f"{line['committee']:.3f}; difference {line['difference']:+.3f} ({line['low']:+.3f} to "
        f"{line['high']:+.3f})"
    )


def rival_measure(line: dict[str, Any]) -> str:
    """What is compared: without a prior that the labels tell it is no AUC."""
    return "share of pairs won" if line.get("method", "").endswith("_raw") else "AUC"


def _labels(labels: dict[str, Any]) -> str:
    known = []
    if labels["positive"]:
        known.append(f"{labels['positive_label']} is positive")
    if labels["negative"]:
        known.append(f"{labels['negative_label']} is negative")
    return f"{', '.join(known)}; {setting_words(labels['setting'])}"


def _model(selection: dict[str, Any]) -> str:
    if selection.get("model") == "auto":
        return "committee: " + str(selection["message"])
    centres = f" of {selection['n_centers']} centres" if selection["n_centers"] else ""
    return (
        f"{selection['risk'].upper()} risk, {selection['loss']} loss, {selection['basis']} basis"
        f"{centres}; weighted mean of {selection['n_kept']} of {selection['n_candidates']} "
        "candidates"
    )
