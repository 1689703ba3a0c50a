"""The ledger: append only, whole lines or nothing, and the draws that it gives to the audit."""

import itertools

import pytest

from pnuauc.exceptions import InputError
from pnuauc.review.ledger import Drawn, Ledger


def batch(*names, explore=1):
    k = len(names) - explore
    return [
        Drawn(name, 1.0 if j < k else 0.25, 2.0 - j, "score" if j < k else "explore")
        for j, name in enumerate(names)
    ]


def filled(path):
    ledger = Ledger(path)
    ledger.add_batch(batch("a", "b\n,'", "ü"))
    ledger.add_decisions({"a": "positive", "ü": "negative"})
    ledger.add_decisions({"b\n,'": "unsure", "z": "positive"})
    ledger.add_batch(batch("c", "d"))
    return ledger


def state(ledger):
    return ledger.batches, ledger.decisions, ledger.by_hand


def test_what_was_written_is_read_again(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = filled(path)
    again = Ledger(path)
    assert state(again) == state(ledger)
    assert again.labels == {"a": 1, "ü": 0, "z": 1}
    assert again.seen == {"a", "b\n,'", "ü", "z", "c", "d"}
    assert [row.id for row in again.open_rows] == ["c", "d"]
    assert again.by_hand == {"z": 1}


def test_a_kill_at_any_byte_leaves_whole_entries_and_the_next_one_fits(tmp_path):
    whole = tmp_path / "whole.jsonl"
    filled(whole)
    content = whole.read_bytes()
    ends = [0, *itertools.accumulate(len(line) for line in content.splitlines(keepends=True))]
    for size in range(len(content) + 1):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(content[:size])
        ledger = Ledger(path)
        n_lines = sum(end <= size for end in ends) - 1
        path.write_bytes(content[: ends[n_lines]])
        assert state(ledger) == state(Ledger(path))
        path.write_bytes(content[:size])
        ledger.add_decisions({"a": "negative"})
        assert Ledger(path).decision("a") == "negative"
        assert path.read_bytes().startswith(content[: ends[n_lines]])


DEEP = pytest.param(b"[" * 60_000, id="deep")


@pytest.mark.parametrize(
    "line", [b"{}", b"[1]", b'{"date": 1, "drawn": [[1]]}', b"\xff", b"null", DEEP]
)
def test_a_line_that_is_none_of_ours_is_named(tmp_path, line):
    path = tmp_path / "ledger.jsonl"
    filled(path)
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(InputError, match=r"Line 5 of .* is not a line of a ledger"):
        Ledger(path)


def test_draws_count_rows_by_score_first_and_undecided_ones_as_positive(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    pool = {f"r{k}" for k in range(10)}
    ledger.add_decisions({"r9": "positive", "known": "positive"})  # by hand, before any draw
    ledger.add_batch(batch("r0", "r1", "r2", "r3", explore=2))
    ledger.add_decisions({"r0": "positive", "r1": "negative", "r2": "unsure", "r3": "negative"})
    (only,) = ledger.rounds(pool)
    assert (only.n_left, only.found, only.undecided) == (5, 2, 1)
    assert only.draws == [(7, 2, True), (6, 3, False)]
    ledger.add_batch(batch("r4", "r5"))
    ledger.add_decisions({"r5": "positive"})
    assert len(list(ledger.rounds(pool))) == 1  # the second batch is not complete
    ledger.add_decisions({"r4": "skip", "r2": "negative"})
    first, second = ledger.rounds(pool)
    assert first.draws == [(7, 2, False), (6, 2, False)]
    assert (second.n_left, second.found, second.undecided) == (3, 3, 1)
    assert second.draws == [(4, 3, True)]


def test_table_has_every_row_once(tmp_path):
    header, *rows = filled(tmp_path / "ledger.jsonl").table()
    assert header[:4] == ["id", "round", "probability", "score"]
    assert [row[0] for row in rows] == ["a", "b\n,'", "ü", "c", "d", "z"]
    assert [row[5] for row in rows] == ["positive", "unsure", "negative", "", "", "positive"]
