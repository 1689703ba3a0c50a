"""Every AUC, share and count that a fit states is the same number wherever it stands."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from pnuauc.report import to_html, to_json, to_text
from pnuauc.study import ColumnRoles, FitSettings, fit_study, make_payments


@pytest.fixture(scope="module")
def study():
    table, _ = make_payments(900, labelled=120, share=0.2, seed=3)
    roles = ColumnRoles("is_fraud", ids=("payment_id",))
    return fit_study(table, roles, FitSettings(importance=False))


def test_one_auc(study):
    findings = json.loads(to_json(study.findings))
    auc = findings["auc"]["value"]
    assert study.ranker.auc_.value == auc == study.evidence.posterior.auc().value
    assert {m["auc_with"] for m in findings["selection"]["members"]} == {auc}
    assert {line["committee"] for line in findings["rivals"]} == {auc}
    assert findings["unlabeled_effect"]["with"] == auc
    for line in findings["rivals"]:
        assert line["auc"] == pytest.approx(np.clip(auc - line["difference"], 0, 1))
    html, text = to_html(study.findings), to_text(study.findings)
    assert f"<dd>{auc:.3f}<small>" in html
    assert re.findall(r"AUC, held out\s+(\d\.\d+)", text) == [f"{auc:.3f}"]
    assert f"in {100 * auc:.1f}% of cases" in text


def test_one_share_and_counts_that_add_up_to_it(study):
    findings = json.loads(to_json(study.findings))
    prior, review, n = findings["prior"], findings["review"], findings["labels"]["unlabeled"]
    assert study.ranker.prior_ == pytest.approx(prior["value"])
    assert prior["positives_unlabeled"][0] == pytest.approx(prior["value"] * n)
    assert review["by_chance"] == pytest.approx(review["k"] * prior["value"])
    assert review["counts"][0]["value"] == review["expected"]["value"]
    counts = [c["value"] for c in review["counts"]]
    assert counts == sorted(counts)
    assert counts[-1] <= prior["value"] * n * 1.001
    # probabilities of the rows to review are those of the count, up to the places of the rows
    top = findings["top"]
    assert sum(top["probability"]) == pytest.approx(review["expected"]["value"], abs=0.2)
    for low, value, high in zip(
        top["probability_low"], top["probability"], top["probability_high"], strict=True
    ):
        assert low <= value <= high
    html, text = to_html(study.findings), to_text(study.findings)
    assert f"{100 * prior['value']:.1f}%" in html
    assert f"best estimate {100 * prior['value']:.1f}%" in text
    assert f"best estimate {review['expected']['value']:,.1f}" in text
