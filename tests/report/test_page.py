"""Tests of report/page."""

from __future__ import annotations

import copy
import csv
import io
import json
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

from pnuauc.io.write import CHANCE_COLUMNS
from pnuauc.report.page import review_csv, to_html
from pnuauc.report.words import headline, next_steps, to_json, to_text
from pnuauc.study.findings import Findings
from pnuauc.study.fit import FitSettings, fit_study
from pnuauc.study.payments import make_payments
from pnuauc.study.rows import ColumnRoles

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Checker(HTMLParser):
    """Tags balance; collects what the tests look at."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.tags, self.charts = [], [], [], [], []
        self.headings = []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "a":
            self.links.append(attributes["href"])
        if tag == "svg":
            self.charts.append(attributes)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> without a start"
        assert self.open.pop() == tag


def checked(html):
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    return checker


@pytest.fixture(scope="module")
def findings():
    table, _ = make_payments(300, labelled=60, share=0.2, seed=3)
    roles = ColumnRoles("is_fraud", ids=("payment_id",))
    settings = FitSettings(n_centers=10, folds=2, prior=(0.02, 0.2))
    study = fit_study(table, roles, settings, name="pay & <ments>.parquet", command="pnuauc fit x")
    return study.findings


@pytest.mark.parametrize("setting", ["PN", "PU", "NU", "few"])
def test_other_data_give_whole_pages_too(setting):
    rng = np.random.default_rng(1)
    hidden = np.arange(120) % 4 == 0
    y = [int(v) for v in hidden]
    if setting == "few":
        y = [1, 1, 0, 0] + [None] * 116
    elif setting != "PN":
        known = 1 if setting == "PU" else 0
        y = [v if v == known and i % 8 < 4 else None for i, v in enumerate(y)]
    table = pa.table(
        {
            "x": rng.normal(size=120) + 2 * hidden,
            "z": rng.normal(size=120),
            "y": pa.array(y, pa.int8()),
        }
    )
    settings = FitSettings(n_centers=10, folds=2, prior=None if setting == "few" else 0.2)
    findings = fit_study(table, ColumnRoles("y"), settings).findings
    html = to_html(findings)
    checked(html)
    assert to_text(findings)
    if setting == "few":
        assert findings.auc is None
        assert "at least 3 different rows" in html
    else:
        assert findings.auc.low <= findings.auc.value <= findings.auc.high
        assert (findings.prior is None) == (setting == "PN")


def test_every_promised_part_is_there(findings):
    html = to_html(findings)
    for part in (
        "The answer",
        "how it was read",
        "Rows by role",
        "What is still hidden",
        "ROC curve",
        "Held-out scores",
        "What the unlabelled rows changed",
        "Most informative columns",
        "How the model was chosen",
        "Review these rows next",
        "pnuauc fit x",
        "How this was computed",
    ):
        assert part in html, part
    assert "pay &amp; &lt;ments&gt;.parquet" in html  # names are escaped
    # the answer first, then the rows, then how good it is
    parts = ["answer", "review", "auc", "hidden", "columns", "data", "selection", "method"]
    places = [html.index(f'<section id="{part}">') for part in parts]
    assert places == sorted(places)
    chosen = html[places[parts.index("selection")] : places[parts.index("method")]]
    assert chosen.split(">")[1].strip() == "<details"  # eta, ridge and width are closed


def test_self_contained_and_accessible(findings):
    html = to_html(findings)
    page = checked(html)
    assert "<script" not in html
    assert not re.search(r"(src|href)=\"(?!#)", html)
    assert not re.search(r"url\(|@import|https?://", html)
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert len(page.charts) == 3
    for chart in page.charts:
        assert chart["role"] == "img"
        assert len(chart["aria-label"]) > 20
    assert page.headings[0] == 1
    assert all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:]))
    tags = [tag for tag, _ in page.tags]
    assert tags.count("h1") == 1
    assert tags.count("caption") == tags.count("table")
    attributes = dict(page.tags)
    assert attributes["html"]["lang"] == "en"
    for tag, attrs in page.tags:
        if tag == "th":
            assert attrs["scope"] in {"col", "row"}
        if attrs.get("class") == "scroll":  # what scrolls can be scrolled from the keyboard
            assert attrs["tabindex"] == "0"


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_both_schemes(findings):
    """WCAG AA: 4.5 for text, 3 for lines."""
    html = to_html(findings)
    schemes = re.findall(r":root \{(.*?)\}", html, re.S)
    assert len(schemes) == 2
    for scheme in schemes:
        colors = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", scheme))
        for background in ("page", "card"):
            for text in ("ink", "soft", "accent"):
                assert contrast(colors[text], colors[background]) >= 4.5, (text, background)
            for line in "PNU":
                assert contrast(colors[line], colors[background]) >= 3
        assert contrast(colors["ink"], colors["warn"]) >= 4.5
        assert contrast(colors["ink"], colors["wash"]) >= 4.5


def test_the_page_is_made_of_what_the_numbers_hold(findings):
    parsed = json.loads(to_json(findings))
    # JSON in, the same page out: the dict is all the page is made of
    again = Findings.from_dict(parsed)
    assert to_html(again) == to_html(findings)
    assert to_json(again) == to_json(findings)


def test_sentences_stand_apart(findings):
    """A blank between two sentences, also where a block of the template ends one."""
    page = re.sub(
        r"<style.*?</style>|</?(?:em|strong|code|a)\b[^>]*>", "", to_html(findings), flags=re.S
    )
    text = re.sub(r"<[^>]+>", "\n", page)
    assert re.findall(r"[a-z]{2}\.[A-Z][a-z]+", text) == []


def test_review_rows_as_csv_hold_all_columns_and_no_formulas(findings):
    top = copy.deepcopy(findings.top)
    top.cells[0][0] = "=HYPERLINK(1)"
    top.cells[1][0] = "-3.5"
    rows = list(csv.reader(io.StringIO(review_csv(top))))
    assert rows[0][:4] == ["row", "payment_id", "score", "percentile"]
    assert rows[0][-len(top.columns) :] == top.columns
    assert [row[1] for row in rows[1:]] == [line[1] for line in top.rows]
    first = rows[0].index(top.columns[0])
    assert [rows[1][first], rows[2][first]] == ["'=HYPERLINK(1)", "-3.5"]
    assert ("probability" in rows[0]) == bool(top.probability)
    for name in CHANCE_COLUMNS:
        setattr(top, name, [0.5] * len(top.rows))
    header = review_csv(top).splitlines()[0]
    assert "percentile,probability,probability_low,probability_high,reason" in header


def changed(findings, **values):
    other = copy.copy(findings)
    vars(other).update(values)
    return other


def test_what_to_do_next_follows_from_the_findings(findings):
    files = {"model": "/a/m.pnuauc", "review": "/a/m.review.csv"}
    steps = next_steps(changed(findings, files=files))
    assert "(m.review.csv)" in steps[0]
    assert "pnuauc score m.pnuauc NEW.csv" in steps[-1]
    assert not any("leak" in step for step in steps)
    leaky = next_steps(changed(findings, leaks=["Column 'x' tells the label."]))
    assert "leak" in leaky[0]
    unknown = next_steps(changed(findings, prior=None, review=None))
    assert any("drawn at random" in step for step in unknown)
    assert "cannot be estimated" in unknown[-1]
    for step in [*steps, *leaky, *unknown, *headline(findings)]:
        assert step.endswith(".")
    html, text = to_html(findings), to_text(findings)
    for step in next_steps(findings):
        assert step in unescape(html)
        assert step in text
