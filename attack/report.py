"""Counts and findings as a table for people."""

from __future__ import annotations

from attack.runner import Tally

__all__ = ["report"]


def report(tally: Tally) -> str:
    """Markdown: a line a target, then every finding."""
    lines = [
        "| what | cases | outcomes | findings | most memory, MB | processor seconds |",
        "|---|---:|---|---:|---:|---:|",
    ]
    for name, entry in sorted(tally.data.items()):
        outcomes = ", ".join(f"{n:,} {what}" for what, n in sorted(entry["outcomes"].items()))
        lines.append(
            f"| {name} | {entry['done']:,} | {outcomes} | {len(entry['findings']):,} | "
            f"{entry['most_megabytes']:,} | {entry['processor_seconds']:,.0f} |"
        )
    total = sum(entry["done"] for entry in tally.data.values())
    found = sum(len(entry["findings"]) for entry in tally.data.values())
    lines += ["", f"{total:,} cases, {found:,} findings."]
    for name, entry in sorted(tally.data.items()):
        for finding in entry["findings"][:50]:
            lines.append(f"- {name}, case {finding['case']}: {finding['what']}")
    return "\n".join(lines)
