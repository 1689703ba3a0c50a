"""A review from the first batch to the stop, and over crashes."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from pnuauc import Review, fit_table
from pnuauc.exceptions import InputError
from pnuauc.review.rank import PoolRanker
from pnuauc.study.rows import ColumnRoles


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.permutation(np.arange(n) < n // 10)
    frame = pd.DataFrame(rng.normal(size=(n, 3)) + 2.5 * hidden[:, None], columns=list("abc"))
    frame.insert(0, "id", np.arange(1000, 1000 + n))
    known = np.append(np.flatnonzero(hidden)[:4], np.flatnonzero(~hidden)[:4])
    frame["y"] = np.where(np.isin(np.arange(n), known), hidden, np.nan)
    return frame, {str(i): int(y) for i, y in zip(frame["id"], hidden)}


def begin(tmp_path, **more):
    frame, truth = table()
    settings = {"label": "y", "id": "id", "batch": 20, "random_state": 0, **more}
    return Review(frame, tmp_path / "r", **settings), frame, truth


def answer(batch, truth):
    return {i: truth[i] for i in batch.ids}


@pytest.mark.slow
def test_to_the_stop(tmp_path):
    review, _, truth = begin(tmp_path, explore=0.5)
    bounds = []
    for k in range(1, 12):
        batch = review.next_batch()
        assert batch.round == k
        assert review.add(answer(batch, truth)) == []
        status = review.status()
        bounds.append(status.found + status.hidden_high)
        assert bounds[-1] >= sum(truth.values()) - 4  # the bound holds here
        if status.stop:
            break
    assert status.stop
    assert status.n_left > 0
    assert status.recall_low >= 0.95
    assert (status.known + status.found) / sum(truth.values()) >= 0.95
    assert bounds == sorted(bounds, reverse=True)
    assert [r.read for r in status.rounds] == [20 * k for k in range(1, status.round + 1)]
    assert status.sentences()[0] == "Stop: a recall of 95% is proven."
    json.dumps(status.to_dict())


def test_all_rows_read_is_recall_1(tmp_path):
    review, _, truth = begin(tmp_path, batch=1000)
    review.add(answer(review.next_batch(), truth))
    status = review.status()
    assert (status.n_left, status.hidden_high, status.recall_low) == (0, 0, 1.0)
    with pytest.raises(InputError, match="Every row"):
        review.next_batch()


def test_every_step_can_be_repeated_and_the_folder_is_the_state(tmp_path):
    review, frame, truth = begin(tmp_path)
    first = review.next_batch()
    page = first.page.read_text()
    again = review.next_batch()  # nothing decided: the same batch
    assert (again.round, again.ids) == (1, first.ids)
    reopened = Review.open(tmp_path / "r", frame)
    assert reopened.next_batch().ids == first.ids
    assert first.page.read_text() == page
    some = dict(list(answer(first, truth).items())[:5])
    reopened.add(some)
    later = Review.open(tmp_path / "r", frame)
    assert later.status().n_open == 15
    assert len(later.add(some)) == 1  # decided as before
    later.add(answer(first, truth))
    assert later.next_batch().round == 2
    assert Review.open(tmp_path / "r", frame).status() == later.status()


def test_a_batch_lost_in_a_crash_is_drawn_again_alike(tmp_path):
    review, frame, _ = begin(tmp_path)
    ids = review.next_batch().ids
    ledger = tmp_path / "r" / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-10])  # killed before the line was complete
    again = Review.open(tmp_path / "r", frame)
    assert again.status().round == 0
    assert again.next_batch().ids == ids


def test_undecided_rows_count_as_hidden_and_open_rounds_do_not_count(tmp_path):
    review, _, truth = begin(tmp_path, explore=1.0, batch=100)
    batch = review.next_batch()
    assert review.status().hidden_high == 192
    said = answer(batch, truth)
    review.add({i: said[i] for i in batch.ids[:-1]})
    assert review.status().rounds == ()
    review.add({batch.ids[-1]: "unsure"})
    unsure = review.status()
    review.add({batch.ids[-1]: "negative"})
    sure = review.status()
    assert unsure.n_undecided == 1
    assert sure.hidden_high < unsure.hidden_high
    assert len(sure.rounds) == 1


def test_relabelling_also_of_rows_that_the_table_labels(tmp_path):
    review, frame, truth = begin(tmp_path)
    batch = review.next_batch()
    review.add(answer(batch, truth))
    named = str(frame["id"][frame["y"] == 1].iloc[0])
    before = review.status()
    with pytest.raises(InputError, match="than before"):
        review.add({batch.ids[0]: 1 - truth[batch.ids[0]]})
    review.add({batch.ids[0]: 1 - truth[batch.ids[0]]}, relabel=True)
    review.add({named: 0})
    after = review.status()
    assert after.known == before.known - 1
    assert after.n_read == before.n_read
    assert abs(after.found - before.found) == 1


def test_labelled_table_has_decisions_and_odds_and_can_be_fitted(tmp_path):
    review, _frame, truth = begin(tmp_path)
    batch = review.next_batch()
    review.add(answer(batch, truth))
    found = review.labelled().to_pandas()
    assert found["y"].notna().sum() == 8 + 20
    assert found["probability"].notna().sum() == 20
    drawn = found.set_index(found["id"].astype(str)).loc[batch.ids]
    assert drawn["y"].tolist() == [truth[i] for i in batch.ids]
    assert np.isin(drawn["probability"].round(6), [1.0, round(2 / 174, 6)]).all()
    study = fit_table(
        found, "y", ids=["id"], drop=["probability"], comparisons=False, importance=False
    )
    assert study.findings["labels"]["unlabeled"] == 200 - 28


def test_expected_counts_undecided_rows_and_not_those_picked_by_hand(tmp_path):
    review, frame, truth = begin(tmp_path, batch=8)
    assert review.status().expected is None
    review.add(answer(review.next_batch(), truth))
    assert review.status().expected is None  # the ranking of the first round knew 4 positives
    batch = review.next_batch()
    said = answer(batch, truth)
    review.add(said)
    status = review.status()
    hidden = status.expected.hidden
    known = status.known + status.found
    assert hidden.low <= hidden.value
    assert status.expected_recall == pytest.approx(known / (known + hidden.high))
    assert "Expected, if unread rows are like read ones" in " ".join(status.sentences())
    json.dumps(status.to_dict())
    negative = next(i for i in batch.ids if not truth[i])
    review.add({negative: "unsure"}, relabel=True)
    unsure = review.status()
    assert unsure.expected_recall == pytest.approx(
        known / (known + unsure.expected.hidden.high + 1)
    )
    review.add({negative: "negative"}, relabel=True)
    seen = {*review.ledger.seen, *frame["id"][frame["y"].notna()].astype(str)}
    hand = next(i for i in truth if truth[i] and i not in seen)
    review.add({hand: "positive"})
    after = review.status()
    assert after.found == status.found + 1
    assert after.expected.share == status.expected.share


def test_without_any_label_the_first_batch_is_random(tmp_path):
    frame, _ = table()
    review = Review(frame.drop(columns="y"), tmp_path / "r", id="id", batch=10, random_state=0)
    review.next_batch()
    assert {row.by for row in review.ledger.batches[0]} == {"explore"}


def test_a_model_can_rank(tmp_path):
    frame, _ = table()
    fitted = fit_table(frame, "y", ids=["id"], comparisons=False, importance=False)
    fitted.save(tmp_path / "m.pnuauc")
    review = Review(
        frame, tmp_path / "r", label="y", id="id", model=tmp_path / "m.pnuauc", random_state=0
    )
    review.next_batch()
    assert review.scores == pytest.approx(fitted.model.score(frame.drop(columns=["id", "y"])))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"id": "no"}, "There is no column 'no'"),
        ({"label": "no"}, "There is no column 'no'"),
        ({"id": "same"}, "Rows 1 and 2 of the table have the same 'same'"),
        ({"id": "gap"}, "Row 3 of the table has no 'gap'"),
        ({"batch": 0}, "at least one row"),
        ({"explore": 2.0}, "explore must be a share"),
        ({"explore": "most"}, "explore must be a share"),
        ({"stop_at_recall": 1.0}, "stop_at_recall must lie"),
    ],
)
def test_bad_settings(tmp_path, change, sentence):
    frame, _ = table()
    frame["same"], frame["gap"] = "x", [f"n{k}" if k != 2 else None for k in range(200)]
    with pytest.raises(InputError, match=sentence):
        Review(frame, tmp_path / "r", **{"label": "y", "id": "id", **change})
    assert not (tmp_path / "r").exists()


def test_folders_of_others_and_other_tables_are_refused(tmp_path):
    review, frame, _ = begin(tmp_path)
    with pytest.raises(InputError, match="ids or labels of the table are not those"):
        Review(frame[:100], tmp_path / "r", label="y", id="id")
    with pytest.raises(InputError, match="ids or labels of the table are not those"):
        Review(
            frame.assign(y=frame["y"].where(frame["y"] == 1)), tmp_path / "r", label="y", id="id"
        )
    with pytest.raises(InputError, match=r"begun with alpha 0\.05"):
        Review(frame, tmp_path / "r", label="y", id="id", alpha=0.1)
    with pytest.raises(InputError, match="was not made from a file"):
        Review.open(tmp_path / "r")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(InputError, match="holds files but no review"):
        Review(frame, tmp_path / "other", label="y", id="id")
    with pytest.raises(InputError, match="holds no review"):
        Review.open(tmp_path / "other", frame)
    for text in ("[]", "[" * 60_000):
        (review.folder / "review.json").write_text(text)
        with pytest.raises(InputError, match="not a file of settings"):
            Review.open(tmp_path / "r", frame)


def test_ranking_drops_what_ranks_no_better_than_chance():
    """Classes inside and outside of a circle: a straight model is worth nothing there."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    inside = (X**2).sum(axis=1) < 0.2
    y = np.where(rng.random(1500) < 0.2, inside, np.nan)
    scores = PoolRanker(pa.table({"a": X[:, 0], "b": X[:, 1]}), ColumnRoles("y")).rank(y).scores
    free = np.isnan(y)
    top = np.argsort(-np.where(free, scores, -np.inf))[:50]
    assert inside[top].mean() > 0.9


def test_rows_of_a_group_are_judged_by_models_that_saw_none_of_them(tmp_path):
    """Copies of labelled rows tell their label, and nothing else does."""
    rng = np.random.default_rng(0)
    n, copies = 150, 4
    who = np.repeat(np.arange(n), copies)
    hidden = rng.permutation(np.arange(n) < 40)[who]
    values = rng.normal(size=(n, 6))[who] + 0.01 * rng.normal(size=(n * copies, 6))
    frame = pd.DataFrame(values, columns=list("abcdef"))
    frame["who"], frame["y"] = who, np.where(rng.random(n * copies) < 0.5, hidden, np.nan)
    aucs = {}
    for group in ((), ("who",)):
        drop = () if group else ("who",)
        review = Review(
            frame, tmp_path / f"r{len(group)}", label="y", drop=drop, group=group, random_state=0
        )
        ranking = review._ranker.rank(review.y)
        aucs[group] = roc_auc_score(hidden, ranking.held_out)
    assert aucs[()] > 0.8
    assert abs(aucs["who",] - 0.5) < 0.15
