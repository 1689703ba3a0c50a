"""Every AUC, share, count and probability that a fit states is the same wherever it stands.

The printed text, the page and the card are read by the form of their sentences and tables; no
number with three decimals and no percentage may be left over that was not compared with the JSON.
"""

from __future__ import annotations

import json
import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

from pnuauc.study.findings import Findings
from pnuauc.study.payments import make_payments
from pnuauc.tables import TableFit
from tests.conftest import run_tool

FAST = ("--model", "average", "--centers", 20, "--folds", 3)
#: Labelled positives and negatives, share of positives, further options of the fit.
STORIES = {
    "PNU": (30, 60, 0.2, ("--folds", 3)),
    "PU": (30, 0, 0.2, ("--folds", 3)),
    "rare": (12, 48, 0.04, ("--folds", 3)),
    "picked": (30, 60, 0.2, ("--folds", 3)),
    "grouped": (30, 60, 0.2, (*FAST, "--group", "customer")),
    "timed": (60, 90, 0.2, (*FAST, "--time", "day")),
}
SLOW = [pytest.param(name, marks=[] if name == "PNU" else pytest.mark.slow) for name in STORIES]


class Told:
    """The files of a fit and what was printed."""

    def __init__(self, name, folder):
        n_positive, n_negative, share, options = STORIES[name]
        self.withheld = name == "picked"
        self.table = folder / "t.csv"
        a_table(n_positive, n_negative, share, picked=name == "picked").to_csv(
            self.table, index=False
        )
        common = ("--label", "y", "--id", "key", "--jobs", 1)
        fit = run_tool("fit", self.table, *common, *options)
        assert fit.exit_code == 0, fit.output
        model = folder / "t.pnuauc"
        self.json = json.loads((folder / "t.json").read_text())
        self.card = json.loads(run_tool("inspect", model, "--json").stdout)["card"]
        self.review = pd.read_csv(folder / "t.review.csv")
        self.heldout = pd.read_csv(folder / "t.heldout.csv")
        assert run_tool("score", model, self.table, "-o", folder / "s.csv").exit_code == 0
        self.scores = pd.read_csv(folder / "s.csv")
        page = (folder / "t.html").read_text()
        self.page = page[page.index("<body") :]
        self.texts = {
            "printed": fit.stdout + fit.stderr,
            "page": plain(self.page),
            "card": run_tool("inspect", model).stdout,
        }


def a_table(n_positive, n_negative, share, picked, n=600):
    """Customers of two rows; the positives that are labelled are the highest where ``picked``."""
    rng = np.random.default_rng(1)
    hidden = rng.random(n) < share
    X = rng.normal(size=(n, 3)) + (3.0 if picked else 1.2) * hidden[:, None]
    ranks = np.argsort(-X.sum(axis=1)) if picked else rng.permutation(n)
    label = np.full(n, np.nan)
    for value, wanted in ((1, n_positive), (0, n_negative)):
        label[[i for i in ranks if hidden[i] == value][:wanted]] = value
    columns = {name: X[:, j] for j, name in enumerate("abc")}
    named = {"customer": np.arange(n) // 2, "day": rng.permutation(n), "key": np.arange(n) + 10_000}
    return pd.DataFrame({**columns, **named, "y": label})


@pytest.fixture(scope="module", params=SLOW)
def told(request, tmp_path_factory):
    return Told(request.param, tmp_path_factory.mktemp(request.param))


def plain(page):
    """The page without drawings, cells of rows and tables, which are read apart."""
    page = re.sub(r"<svg.*?<desc>(.*?)</desc>.*?</svg>", r" \1 ", page, flags=re.S)
    for part in (
        r"<table.*?</table>",
        r'<dl class="cards">.*?</dl>',
        r'<dl class="cells">.*?</dl>',
    ):
        page = re.sub(part, " ", page, flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def tables(page):
    """caption -> rows of cells, as text."""
    out = {}
    for table in re.findall(r"<table.*?</table>", page, flags=re.S):
        caption = unescape(re.search(r"<caption>(.*?)</caption>", table, re.S)[1])
        lines = re.findall(r"<tr>(.*?)</tr>", table, re.S)[1:]
        cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line, re.S) for line in lines]
        out[caption] = [[unescape(re.sub("<[^>]*>", "", cell)) for cell in row] for row in cells]
    return out


def limits(item, form):
    return tuple(form(item[key]) for key in ("value", "low", "high")) if item else None


def three(value):
    return f"{value:.3f}"


def signed(value):
    return f"{value:+.3f}"


def percent(value, digits=1):
    return f"{100 * value:.{digits}f}"


NUMBER, SHARE, COUNT = r"(\d\.\d{3})", r"([\d.]+)%", r"([\d,.]*\d)"


def sentences(f):
    """(how a sentence reads, the numbers in it that the findings allow, places that must say it)"""
    auc, prior, review, timed = (f.get(key) for key in ("auc", "prior", "review", "timed"))
    n, suspected, effect = f["labels"]["unlabeled"], f.get("suspected"), f.get("unlabeled_effect")
    later, spans = (timed or {}).get("auc"), (timed or {}).get("spans", [])
    whole = {"printed", "page"}
    yield (
        rf"{SHARE} of cases \(95% interval {SHARE} to {SHARE}\)",
        [limits(auc, percent)], whole,
    )  # fmt: skip
    yield rf"{NUMBER} \(95% interval {NUMBER} to {NUMBER}\)", [
        limits(auc, three), limits(later, three)
    ], {"printed", "card"}  # fmt: skip
    yield rf"the AUC is {NUMBER} \({NUMBER} to {NUMBER}\)", [limits(later, three)], whole
    yield rf"on shuffled rows {NUMBER} \({NUMBER} to {NUMBER}\)", [
        limits(auc, three) if later else None
    ], whole  # fmt: skip
    stated = three(auc["value"]) if auc else ""
    kept = limits((suspected or {}).get("auc"), three)
    yield rf"AUC {NUMBER} as stated, {NUMBER} \({NUMBER} to {NUMBER}\)", [
        kept and (stated, *kept)
    ], set()  # fmt: skip
    yield rf"encloses an area of {NUMBER}", [stated and (stated,)], {"page"}
    share = limits(prior, percent)
    yield rf"{SHARE} \(interval {SHARE} to {SHARE}\)", [share], {"printed", "card"}
    yield (
        rf"{SHARE} to {SHARE} are positive \(95% interval, best estimate {SHARE}\): {COUNT} to "
        rf"{COUNT} rows",
        [prior and (*share[1:], share[0], *(f"{prior[key] * n:,.0f}" for key in ("low", "high")))],
        whole,
    )
    yield rf"so are {SHARE} of the unlabelled rows", [share and share[:1]], whole
    yield (
        rf"is {SHARE}, estimated from held-out scores \(95% interval {SHARE} to {SHARE}\)",
        [limits(prior, lambda value: percent(value, 2))],
        {"page"},
    )
    yield rf"that makes {SHARE} of all rows", [
        prior and (percent(prior["population"], 2),)
    ], {"page"}  # fmt: skip
    yield rf"{COUNT} positives \({COUNT} to {COUNT}\) are still unlabelled", [
        prior and tuple(f"{value:,.0f}" for value in prior["positives_unlabeled"])
    ], {"page"}  # fmt: skip
    yield rf"{SHARE} of all positives here are known", [
        prior and (percent(prior["share_of_positives_known"]),)
    ], {"page"}  # fmt: skip
    halved = prior and (f"{prior['labels_to_halve']:,}",)
    yield rf"Labels of {COUNT} unlabelled rows drawn at random would halve", [halved], {"page"}
    yield rf"Label about {COUNT} unlabelled rows drawn", [halved], whole
    yield rf"mean, {NUMBER}; vertical band: {NUMBER} to {NUMBER}", [limits(prior, three)], {"page"}
    expected = limits(review and review["expected"], lambda value: f"{value:,.1f}")
    yield (
        rf"expect {COUNT} to {COUNT} positive \(95% interval, best estimate {COUNT}\); as many "
        rf"rows drawn at random would hold {COUNT}\. To find half of all positives, review about "
        rf"{COUNT} rows",
        [
            review
            and (
                *(f"{review['expected'][key]:,.0f}" for key in ("low", "high")),
                expected[0], f"{review['by_chance']:,.1f}", f"{review['rows_for_half']:,}",
            )
        ],
        whole,
    )  # fmt: skip
    counts = review["counts"] if review else []
    listed = [(f"{c['k']:,}", *(count_words(c))) for c in counts]
    yield rf"{COUNT}: {COUNT} \({COUNT} to {COUNT}\)", listed, {"printed", "card"}
    yield rf"half of all in about {COUNT}", [
        review and (f"{review['rows_for_half']:,}",)
    ], {"printed", "card"}  # fmt: skip
    yield rf"about {COUNT} of the first {COUNT} should", [
        review and (f"{counts[0]['value']:,.0f}", f"{counts[0]['k']}")
    ], whole  # fmt: skip
    rivals = [
        (three(r["auc"]), *(signed(r[key]) for key in ("difference", "low", "high")))
        for r in f.get("rivals") or []
    ]
    yield rf"AUC {NUMBER}; this model is ahead by {signed_} \({signed_} to {signed_}\)", rivals, {
        "printed", "card"
    }  # fmt: skip
    changed = effect and effect["difference"] is not None
    yield rf"changed the held-out AUC by {signed_} \({signed_} to {signed_},", [
        changed and tuple(signed(effect[key]) for key in ("difference", "low", "high"))
    ], {"printed", "card", "page"}  # fmt: skip
    yield rf"from (\S+): {SHARE} \({SHARE} to {SHARE}\)", [
        (s["begins"], *map(percent, s["share"])) for s in spans
    ], {"printed", "card"}  # fmt: skip


signed_ = r"([+-]\d\.\d{3})"


def count_words(c):
    return f"{c['value']:,.1f}", f"{c['low']:,.0f}", f"{c['high']:,.0f}"


#: What is no finding: words on levels and on a coin, times, probabilities of rows (read apart),
#: scores, falls of columns.
OTHER = [
    r"\d+% (interval|band)", r"level \d+%", r"a coin does in 50%", r"Took [\d.]+ seconds",
    r"score -?\d+\.\d{3}(, \d+% likely \(\d+% to \d+%\))?",
    r"Highest at -?[\d.]+", r"p = [\de.-]+", r"\d+\.\d+\.\d+\S*", r"\[?default\S*", r"T[\d:.+]+",
]  # fmt: skip


def test_sentences_say_the_numbers_of_the_json(told):
    for place, text in told.texts.items():
        for form, allowed, places in sentences(told.json):
            allowed = {numbers for numbers in allowed if numbers}
            found = {(m,) if isinstance(m, str) else m for m in re.findall(form, text)}
            assert found <= allowed, (place, form)
            if place in places:
                assert found == allowed, (place, form)
            text = re.sub(form, "", text)
        for form in OTHER:
            text = re.sub(form, "", text)
        left = re.findall(r".{0,60}(?:\d\.\d{3}\b|\d%).{0,20}", text)
        assert left == [], place


def test_cards_and_tables_of_the_page(told):
    f, page = told.json, told.page
    assert (f["prior"] is None) == told.withheld
    auc, prior, review = (f.get(key) for key in ("auc", "prior", "review"))
    cards = dict(re.findall(r"<dt>([^<]*)</dt><dd>(.*?)</dd>", page[: page.index("</dl>")]))
    cards = {name: re.findall(r"[\d,.]*\d", re.sub("<[^>]*>", " ", c)) for name, c in cards.items()}
    expected = {"Labelled rows": None}
    if auc:
        expected["AUC, held out"] = [*limits(auc, three)]
    if prior:
        expected["Positives among unlabelled"] = [*limits(prior, percent)]
    if review:
        expected[f"Positives in the top {review['k']}"] = [*count_words(review["expected"])]
    assert set(cards) == set(expected)
    assert all(cards[name] == shown for name, shown in expected.items() if shown)
    for caption, rows in tables(page).items():
        if caption.startswith("Positives to expect"):
            assert f"in about {review['rows_for_half']:,}" in caption
            shown = [[f"{c['k']:,}", *count_words(c)] for c in review["counts"]]
        elif caption.startswith("Rows by role"):
            shown = [[f"{f['labels'][k]:,}"] for k in ("positive", "negative", "unlabeled")]
            rows = [row[-1:] for row in rows]
        elif caption.startswith("Members"):
            keys = ("auc", "auc_with", "auc_without")
            shown = [
                ["" if m[k] is None else three(m[k]) for k in keys]
                for m in f["selection"]["members"]
            ]
            rows = [row[-3:] for row in rows]
        elif caption.startswith("Compared"):
            keys = ("difference", "low", "high")
            shown = [
                [three(r["auc"]), three(r["committee"]), *(signed(r[k]) for k in keys)]
                for r in f["rivals"]
            ]
            rows = [row[1:] for row in rows]
        elif caption.startswith("How much the AUC falls"):
            shown = [[three(c["drop"]), three(c["spread"])] for c in f["importance"]["columns"]]
            rows = [row[2:4] for row in rows]
        else:
            assert caption.startswith("Later rows"), caption
            shown = [
                [s["begins"], f"{s['positive']:,}", f"{s['negative']:,}",
                 *(f"{percent(v)}%" for v in s["share"])]
                for s in f["timed"]["spans"]
            ]  # fmt: skip
        assert rows == shown, caption


def test_card_notebook_and_comparisons_repeat_the_findings(told):
    f = told.json
    for key in ("auc", "auc_reason", "prior", "review", "labels", "groups", "timed", "rivals"):
        assert told.card.get(key) == f.get(key), key
    shown = TableFit.__new__(TableFit)
    shown._found = Findings.from_dict(f)
    stated = three(f["auc"]["value"]) if f["auc"] else "not estimated"
    assert f"AUC {stated}" in repr(shown)
    assert (stated if f["auc"] else f["auc_reason"]) in unescape(shown._repr_html_())
    if not f["auc"]:
        return
    auc = f["auc"]["value"]
    assert {m["auc_with"] for m in f["selection"].get("members", [])} <= {auc, None}
    for rival in f["rivals"]:
        assert rival["committee"] == auc
        assert rival["auc"] == pytest.approx(np.clip(auc - rival["difference"], 0, 1))
    if (f["unlabeled_effect"] or {}).get("with") is not None:
        assert f["unlabeled_effect"]["with"] == auc


def test_rows_have_one_probability(told):
    top, review = told.json["top"], told.review
    columns = ["probability", "probability_low", "probability_high"]
    rows = told.scores.set_index("key").loc[review["key"]]
    np.testing.assert_allclose(review["score"], rows["score"], atol=1e-9)
    shown = re.findall(r"score (-?[\d.]+)(?:, (\d+)% likely \((\d+)% to (\d+)%\))?", told.page)
    assert [line[0] for line in shown] == [three(score) for score in review["score"]]
    if told.json["prior"] is None or told.json["selection"]["model"] != "auto":
        # nothing is stated of any row, anywhere
        for frame in (review, told.scores, told.heldout):
            assert not {*columns} & {*frame}
        assert top["probability"] is None
        assert "likely (" not in told.page
        return
    for j, name in enumerate(columns):
        np.testing.assert_allclose(review[name], top[name], atol=1e-9)
        np.testing.assert_allclose(review[name], rows[name], atol=1e-9)
        assert [line[j + 1] for line in shown] == [percent(value, 0) for value in top[name]]
    chances = told.scores[told.scores["y"].isna()].sort_values("score", ascending=False)
    assert (chances["probability_low"] <= chances["probability"] + 1e-12).all()
    assert (chances["probability"] <= chances["probability_high"] + 1e-12).all()
    held = told.heldout.sort_values("score")["probability"]
    assert held.is_monotonic_increasing


def test_counts_and_probabilities_add_up_to_the_share(told):
    prior, review, n = told.json["prior"], told.json["review"], told.json["labels"]["unlabeled"]
    if prior is None:
        assert review is None
        return
    assert prior["positives_unlabeled"][0] == pytest.approx(prior["value"] * n)
    assert review["by_chance"] == pytest.approx(review["k"] * prior["value"])
    assert review["counts"][0]["value"] == review["expected"]["value"]
    rows = told.scores[told.scores["y"].isna()].sort_values("score", ascending=False)
    assert np.mean(rows["score"] > 0) == pytest.approx(prior["value"], abs=0.005)
    if told.json["selection"]["model"] != "auto":
        return
    assert rows["probability"].mean() == pytest.approx(prior["value"], abs=0.004)
    sums = rows["probability"].cumsum().to_numpy()
    for c in review["counts"]:  # a count is read at even places, probabilities at those of rows
        assert sums[c["k"] - 1] == pytest.approx(c["value"], abs=0.3 + 0.004 * c["k"])
    found = np.searchsorted(sums, sums[-1] / 2) + 1
    assert review["rows_for_half"] == pytest.approx(found, rel=0.1, abs=2)


def test_the_share_of_a_draw_is_asked_of_the_same_posterior():
    """The object in memory says what its files say."""
    from pnuauc import fit_table

    table, _ = make_payments(400, labelled=90, share=0.2, seed=3)
    fit = fit_table(table, "is_fraud", ids="payment_id", importance=False, folds=3)
    assert fit.ranker.auc_.value == fit.findings["auc"]["value"]
    assert fit.ranker.prior_ == pytest.approx(fit.findings["prior"]["value"])


def test_where_the_auc_is_withheld_nothing_is_compared(told):
    if told.withheld:
        assert (told.json["auc"], told.json["unlabeled_effect"], told.json["rivals"]) == (
            None,
            None,
            [],
        )
