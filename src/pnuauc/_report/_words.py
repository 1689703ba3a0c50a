"""Findings in words and short tables: what text, terminal and HTML share."""

from __future__ import annotations

from typing import Any

__all__ = ["headline", "interval", "percent", "summary_rows"]

_SETTINGS = {
    "PN": "positives and negatives, nothing unlabelled (PN)",
    "PU": "positives and unlabelled rows, no negatives (PU)",
    "NU": "negatives and unlabelled rows, no positives (NU)",
    "PNU": "positives, negatives and unlabelled rows (PNU)",
}


def percent(value: float, digits: int = 1) -> str:
    """0.0342 -> "3.4%"."""
    return f"{100 * value:.{digits}f}%"


def interval(item: dict[str, Any], digits: int = 3) -> str:
    """Value with limits."""
    return (
        f"{item['value']:.{digits}f} ({item['level']:.0%} interval {item['low']:.{digits}f} to "
        f"{item['high']:.{digits}f})"
    )


def setting_words(setting: str) -> str:
    return _SETTINGS.get(setting, setting)


def headline(findings: dict[str, Any]) -> list[str]:
    """The answer in two or three sentences that need no statistics."""
    labels, auc, prior = findings["labels"], findings.get("auc"), findings.get("prior")
    out = []
    if auc is not None:
        shown = min(max(auc["value"], 0.0), 1.0)
        out.append(
            f"Of a positive and a negative row picked at random, the model puts the positive one "
            f"first in {percent(shown)} of cases ({auc['level']:.0%} interval "
            f"{percent(auc['low'])} to {percent(auc['high'])})."
        )
    else:
        out.append(str(findings.get("auc_reason", "The AUC could not be estimated.")))
    if prior is not None:
        n = labels["unlabeled"]
        out.append(
            f"About {percent(prior['value'])} of the {n:,} unlabelled rows are positive"
            + (
                f" ({prior['level']:.0%} interval {percent(prior['low'])} to "
                f"{percent(prior['high'])}): some {round(prior['value'] * n):,} rows."
                if prior["source"] != "given"
                else f", as given: some {round(prior['value'] * n):,} rows."
            )
        )
    review = findings.get("review")
    if review and review.get("lift"):
        lift = review["lift"]
        sentence = (
            f"Among the {review['n_rows']:,} unlabelled rows with the highest scores, positives "
            f"are {lift['value']:.1f} times as frequent as among all unlabelled rows"
        )
        if review.get("precision"):
            precision = review["precision"]
            sentence += (
                f" ({percent(precision['low'], 0)} to {percent(precision['high'], 0)} of them "
                "are positive)"
            )
        out.append(sentence + ".")
    return out


def summary_rows(findings: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, value) lines for a terminal or the head of a report."""
    labels, table = findings["labels"], findings["table"]
    kinds = ", ".join(f"{n} {kind}" for kind, n in table["kinds"].items())
    rows = [
        ("Rows", f"{table['rows']:,}: {_roles(labels)}"),
        ("Columns used", f"{kinds} ({table['n_encoded']} after encoding)"),
        ("Labels", _labels(labels)),
    ]
    prior = findings.get("prior")
    if prior is not None:
        limits = f" (interval {percent(prior['low'])} to {percent(prior['high'])})"
        rows.append(
            ("Prior in unlabelled", f"{percent(prior['value'])}{limits}, {prior['source']}")
        )
    auc = findings.get("auc")
    rows.append(("AUC, held out", interval(auc) if auc else str(findings.get("auc_reason"))))
    rows.append(("Model", _model(findings["selection"])))
    effect = findings.get("unlabelled")
    if effect:
        rows.append(("Unlabelled rows", effect_words(effect)))
    return rows


def effect_words(effect: dict[str, Any]) -> str:
    """What the unlabelled rows changed, on the same held-out rows."""
    if effect.get("difference") is None:
        return str(effect["message"])
    sure = "a clear difference" if effect["p_value"] < 0.05 else "no clear difference"
    return (
        f"changed the held-out AUC by {effect['difference']:+.3f} ({effect['low']:+.3f} to "
        f"{effect['high']:+.3f}, p = {effect['p_value']:.2g}): {sure}"
    )


def _roles(labels: dict[str, Any]) -> str:
    return (
        f"{labels['positive']:,} positive, {labels['negative']:,} negative, "
        f"{labels['unlabeled']:,} unlabelled"
    )


def _labels(labels: dict[str, Any]) -> str:
    known = []
    if labels["positive"]:
        known.append(f"{labels['positive_label']} is positive")
    if labels["negative"]:
        known.append(f"{labels['negative_label']} is negative")
    return f"{', '.join(known)}; {setting_words(labels['setting'])}"


def _model(selection: dict[str, Any]) -> str:
    return (
        f"{selection['risk'].upper()} risk, {selection['loss']} loss, {selection['basis']} basis "
        f"of {selection['n_centers']} centres; weighted mean of {selection['n_kept']} of "
        f"{selection['n_candidates']} candidates"
        if selection["n_centers"]
        else f"{selection['risk'].upper()} risk, {selection['loss']} loss, {selection['basis']} "
        f"basis; weighted mean of {selection['n_kept']} of {selection['n_candidates']} candidates"
    )
