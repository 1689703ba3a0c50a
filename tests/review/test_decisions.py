"""Decisions: one sentence for each kind of trouble, all or nothing, none silently dropped."""

import warnings

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pnuauc.exceptions import InputError, ReadingWarning
from pnuauc.review.ledger import DECISIONS, Drawn, Ledger, check_decisions

KNOWN = {f"r{k}": k for k in range(6)}


@pytest.fixture
def ledger(tmp_path):
    found = Ledger(tmp_path / "ledger.jsonl")
    found.add_batch([Drawn(f"r{k}", 1.0, 0.0, "score") for k in range(4)])
    found.add_decisions({"r0": "positive", "r1": "unsure"})
    return found


def answer(decisions, ledger, **more):
    """What was found, or the sentence of a refusal."""
    try:
        return check(decisions, ledger, **more)
    except InputError as error:
        return str(error)


def check(decisions, ledger, **more):
    return check_decisions(decisions, KNOWN, ledger, id="id", **more)


SPELLED = {
    **dict.fromkeys(["1", 1.0, " YES "], "positive"),
    **dict.fromkeys(["0", "no"], "negative"),
    "?": "unsure",
    "skip": "skip",
}


@pytest.mark.parametrize(("cell", "meant"), SPELLED.items())
def test_spellings(ledger, cell, meant):
    assert check({"r2": cell}, ledger)[0] == {"r2": meant}


def test_unsure_rows_can_be_decided_and_equal_decisions_repeated(ledger):
    new, notes = check({"r0": "positive", "r1": "negative"}, ledger)
    assert new == {"r1": "negative"}
    assert notes == ["1 row ('r0'): decided as before; nothing to change."]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([("r9", "yes")], "1 id is not in the table, the first is 'r9' in row 1"),
        ([("r2", "perhaps")], "1 cell holds no decision, the first is 'perhaps' in row 1"),
        ([("r2", "yes"), ("r2", "no")], r"1 row \('r2'\) have two different decisions"),
        ([("r0", "no")], "'r0' was positive, is negative here"),
        ([("", "yes")], "1 id is not in the table, the first is '' in row 1"),
        (
            [("x", "yes"), ("r2", "hm"), ("r1", "yes"), ("r1", "no"), ("r0", "no")],
            "not in the table.*no decision.*two different.*than before",
        ),
    ],
)
def test_trouble_is_named_and_nothing_taken(ledger, rows, sentence):
    frame = pd.DataFrame([*rows, ("r3", "no")], columns=["id", "decision"])
    with pytest.raises(InputError, match=f"^Nothing was taken in. .*{sentence}"):
        check(frame, ledger)


def test_relabel_and_rows_picked_by_hand(ledger):
    new, notes = check({"r0": "no", "r5": "yes", "r2": ""}, ledger, relabel=True)
    assert new == {"r0": "negative", "r5": "positive"}
    assert [note.split(": ")[1].split(";")[0] for note in notes] == [
        "given another decision than before",
        "without a decision",
        "not drawn by the review",
    ]


@pytest.mark.parametrize("header", ["name,decision", "id,verdict", "id"])
def test_missing_columns_are_named(ledger, tmp_path, header):
    path = tmp_path / "decisions.csv"
    path.write_text(f"{header}\nr1,1\n" if "," in header else "id\nr1\n")
    with pytest.raises(InputError, match="must have the columns 'id' and 'decision'"):
        check(path, ledger)


CELLS = st.sampled_from([*DECISIONS, "", "1", "0", "Yes", "hm", "2", "=1", None])
NAMES = st.sampled_from([*KNOWN, "'r2", "r9", "", "R1", None])


@given(rows=st.lists(st.tuples(NAMES, CELLS), max_size=8), relabel=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_every_row_is_taken_or_counted(ledger, rows, relabel):
    """Rows = new ones + those counted in a note; or one sentence and nothing."""
    frame = pd.DataFrame(rows, columns=["id", "decision"], dtype=object)
    found = answer(frame, ledger, relabel=relabel)
    if isinstance(found, str):
        assert found.startswith("Nothing was taken in.")
        assert len(found) > 40
        return
    new, notes = found
    kinds = ("given twice", "decided as before", "without a decision")
    counted = sum(int(n.split()[0]) for n in notes if n.split(": ")[1].startswith(kinds))
    assert len(new) + counted == len(rows)
    assert set(new) <= set(KNOWN)
    assert set(new.values()) <= set(DECISIONS)


@given(content=st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_file_is_read_or_refused_with_a_sentence(ledger, tmp_path, content):
    path = tmp_path / "any.csv"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)
        assert isinstance(answer(path, ledger), str)
