"""Tests of cli/bad_input."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pnuauc.study.payments import make_payments
from tests.conftest import run_tool as run
from tests.conftest import start_tool

pytest.importorskip("typer")

QUICK = ["--centers", "8", "--folds", "2", "--jobs", "1"]

GOOD = "a,b,y\n" + "".join(f"{i * 7 % 13},{i % 5},{i % 2 if i < 20 else ''}\n" for i in range(60))


def rows(label):
    return "a,b,y\n" + "".join(f"{i * 7 % 13},{i % 5},{label(i)}\n" for i in range(40))


# name -> (file name, content, options, what the sentence must say)
CASES = {
    "empty file": ("t.csv", b"", [], "is empty"),
    "wrong delimiter": ("t.csv", GOOD, ["--delimiter", ";"], "Is the delimiter right"),
    "no such column": ("t.csv", GOOD, ["--label", "z"], "no column 'z'"),
    "no such id": ("t.csv", GOOD, ["--id", "z"], "no column 'z', given as one that names rows"),
    "no such drop": ("t.csv", GOOD, ["--drop", "z"], "'z', given as one that is left out"),
    "no such category": ("t.csv", GOOD, ["--categorical", "z"], "no column 'z'"),
    "two roles": ("t.csv", GOOD, ["--id", "y"], "two roles"),
    "all labels missing": ("t.csv", rows(lambda i: ""), [], "at least two of"),
    "one class only": ("t.csv", rows(lambda i: 1), [], "one class|at least two of"),
    "three classes": ("t.csv", rows(lambda i: i % 3 + 5), [], "Use --positive, --negative"),
    "labels are measurements": ("t.csv", rows(lambda i: i / 7), [], "continuous"),
    "one positive": ("t.csv", rows(lambda i: 1 if i == 0 else 0), [], "at least 2 rows"),
    "label value that is no number": ("t.csv", GOOD, ["--positive", "yes"], "never holds"),
    "not UTF-8": ("t.csv", GOOD.encode() + b"\x81,1,\n", [], "--encoding latin-1"),
    "unknown encoding": ("t.csv", GOOD, ["--encoding", "klingon"], "encoding"),
    "prior out of range": ("t.csv", GOOD, ["--prior", "1.5"], "between 0 and 1"),
    "belief of one number": ("t.csv", GOOD, ["--belief", "0.1"], "an interval inside 0 and 1"),
    "belief and prior": (
        "t.csv",
        GOOD,
        ["--belief", "0:0.1", "--prior", "0.1"],
        "so it takes no belief",
    ),
    "unknown basis": ("t.csv", GOOD, ["--basis", "magic"], "--basis must be one of"),
    "nothing to learn from": ("t.csv", "y\n" + "1\n0\n" * 20, [], "No column is left"),
    "constant columns": ("t.csv", "a,y\n" + "3,1\n3,0\n" * 20, [], "No column is left"),
}


@pytest.mark.parametrize("name", CASES)
def test_fit_refuses_with_one_sentence(tmp_path, name):
    file, content, options, message = CASES[name]
    path = tmp_path / file
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    label = [] if "--label" in options else ["--label", "y"]
    result = run("fit", path, *label, *options, *QUICK)
    assert result.exit_code == 2, result.output
    assert len(result.stderr.strip().splitlines()) == 1
    import re

    assert re.search(message, result.stderr), result.stderr
    assert "Traceback" not in result.output
    assert [p.name for p in tmp_path.iterdir()] == [file]


def test_places_that_cannot_be_read_or_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(GOOD)
    for arguments, message in (
        (["fit", tmp_path / "none.csv", "-l", "y"], "no file"),
        (["fit", tmp_path / "*.parquet", "-l", "y"], "No file matches"),
        (["fit", path, "-l", "y", "-o", tmp_path / "no" / "m"], "no folder"),
        (["fit", path, "-l", "y", "-o", path / "m"], "is a file, not a folder"),
        (["score", tmp_path / "none", path], "no model file"),
        (["score", path, path], "not a pnuauc model"),
        (["inspect", path], "not a pnuauc model"),
        (["evaluate", path, "-s", "a", "-l", "z"], "no column 'z'"),
        (["evaluate", path, "-s", "z", "-l", "y"], "no column 'z'"),
        (
            ["evaluate", path, "-l", "y", "-s", "a", "--method", "magic"],
            "--method must be one of auto, pn",
        ),
        (["prior", path, "-l", "y", "--method", "magic"], "--method must be one of auto, "),
        (["demo", "--folder", path], "is a file"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2, (arguments, result.output)
        assert message in result.stderr, (arguments, result.stderr)
        assert len(result.stderr.strip().splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


END = 2**63 - 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([2**30 + i for i in range(60)], pa.int32()).cast(pa.date32()), "years 1 to 9999"),
        (pa.array([END - i for i in range(60)]).cast(pa.timestamp("s")), "years 1 to 9999"),
        (pa.array([i - END for i in range(60)]).cast(pa.timestamp("us")), "years 1 to 9999"),
        (pa.array([END - i for i in range(60)]).cast(pa.duration("s")), "a duration of more than"),
        (pa.array(range(60)).cast(pa.timestamp("s", "Mars/Olympus")), "time zone 'Mars/Olympus'"),
    ],
    ids=["date32", "seconds", "microseconds", "duration", "zone"],
)  # fmt: skip
def test_times_that_nobody_can_hold(tmp_path, values, message):
    labels = [i % 2 if i < 20 else None for i in range(60)]
    table = pa.table({"x": [i * 7 % 13 for i in range(60)], "t": values, "y": labels})
    pa.feather.write_feather(table, tmp_path / "t.feather")
    for more in ((), ("--id", "t")):
        result = run("fit", tmp_path / "t.feather", "-l", "y", *QUICK, *more)
        assert result.exit_code == 2, result.output
        assert message in result.stderr
        assert "'t'" in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "category", ["decimal32", "dictionary of decimal32", "struct", "dictionary of struct"]
)
def test_odd_types_as_categories(tmp_path, category):
    """Used if they can be, or left out with a remark; never unexpected."""
    if "decimal32" in category:
        values = pa.array([Decimal(i % 3) for i in range(60)], pa.decimal32(5, 1))
    else:
        values = pa.array([{"a": i % 3} for i in range(60)])
    if "dictionary" in category:
        values = pa.DictionaryArray.from_arrays(pa.array([i % 3 for i in range(60)]), values[:3])
    labels = [i % 2 if i < 20 else None for i in range(60)]
    table = pa.table({"x": [i * 7 % 13 for i in range(60)], "c": values, "y": labels})
    pa.feather.write_feather(table, tmp_path / "t.feather")
    options = ("-l", "y", "--prior", "0.3", "--categorical", "c", *QUICK)
    result = run("fit", tmp_path / "t.feather", *options)
    assert "unexpected" not in result.output
    assert result.exit_code == 0 or "'c'" in result.stderr, result.output


def test_a_loop_of_links(tmp_path):
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    for command in (["fit"], ["prior"], ["evaluate", "-s", "a"]):
        result = run(*command, tmp_path / "a.csv", "-l", "y")
        assert result.exit_code == 2, result.output
        assert "cannot be read (Too many levels of symbolic links)" in result.stderr
    result = run("fit", tmp_path / "c.csv", "-l", "y", "-o", tmp_path / "a.csv")
    assert result.exit_code == 2


@pytest.mark.parametrize("belief", ["1e-300:1e-299", "0:1e-320", "0.9999999999999999:1"])
def test_beliefs_that_leave_nothing_open(tmp_path, belief):
    (tmp_path / "t.csv").write_text(GOOD)
    result = run("prior", tmp_path / "t.csv", "-l", "y", "--belief", belief)
    assert result.exit_code == 2
    assert "too narrow to compute with" in result.stderr


def test_an_unreadable_table_is_called_so(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    path = tmp_path / "t.csv"
    path.write_text(GOOD)
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # also if root runs the tests
    monkeypatch.setattr("pathlib.Path.open", refuse)
    result = run("prior", path, "-l", "y")
    assert result.exit_code == 2
    assert f"'{path}' may not be read; check its permissions" in result.stderr


def test_closed_standard_output(fitted, tmp_path):
    """The file is written and nothing else went wrong."""
    command = ["-m", "pnuauc", "score", str(fitted / "t.pnuauc"), str(fitted / "t.parquet")]
    words = [sys.executable, *command, "-o", str(tmp_path / "s.csv")]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "s.csv").read_text().count("\n") == 201


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the address space of Linux")
def test_score_works_within_two_gigabytes(fitted, tmp_path):
    """docs/security.md names this limit for files of strangers; here with more than one batch."""
    few = pa.parquet.read_table(fitted / "t.parquet")
    pa.parquet.write_table(pa.concat_tables([few] * 350), tmp_path / "t.parquet")

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))

    words = [sys.executable, "-m", "pnuauc", "score", fitted / "t.pnuauc", tmp_path / "t.parquet"]
    done = subprocess.run(
        [*map(str, words), "-o", str(tmp_path / "s.csv")],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=limit,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "s.csv").read_text().count("\n") == 70_001


def test_text_where_scores_are_needed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("s,y\nhigh,1\nlow,0\nlow,\n")
    result = run("evaluate", path, "-s", "s", "-l", "y")
    assert result.exit_code == 2
    assert "'high' in row 1" in result.stderr
    path.write_text("s,y\n1.0,1\n,0\n2.0,\n")
    assert "1 empty cells (first in row 2)" in run("evaluate", path, "-s", "s", "-l", "y").stderr


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    table, _ = make_payments(200, labelled=60, share=0.2, seed=3)
    pa.parquet.write_table(table, folder / "t.parquet")
    result = run("fit", folder / "t.parquet", "-l", "is_fraud", "--id", "payment_id", *QUICK)
    assert result.exit_code == 0, result.output
    return folder


SCORING = {
    "missing column": (lambda t: t.drop_columns(["shop"]), "lacks column 'shop'"),
    "infinite": (lambda t: t.set_column(2, "amount", [[np.inf] * len(t)]), "infinite value"),
    "no rows": (lambda t: t.slice(0, 0), "no rows"),
    "column named score": (lambda t: t.append_column("score", [[1.0] * len(t)]), "rename it"),
}


@pytest.mark.parametrize("label", ["", "1"])
def test_a_prior_needs_unlabeled_and_labeled_rows(tmp_path, label):
    """No option can make up for them: this command has no --prior."""
    (tmp_path / "t.csv").write_text(rows(lambda i: label))
    result = run("prior", tmp_path / "t.csv", "-l", "y")
    assert result.exit_code == 2, result.output
    assert "an estimate needs unlabelled rows" in result.stderr
    assert "--prior" not in result.stderr


@pytest.mark.parametrize("name", SCORING)
def test_score_refuses(fitted, tmp_path, name):
    import re

    change, message = SCORING[name]
    pa.parquet.write_table(
        change(pa.parquet.read_table(fitted / "t.parquet")), tmp_path / "n.parquet"
    )
    keep = ["--keep", "all"] if "named" in name else []
    result = run(
        "score", fitted / "t.pnuauc", tmp_path / "n.parquet", "-o", tmp_path / "o.csv", *keep
    )
    assert result.exit_code == 2, result.output
    assert re.search(message, result.stderr), result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["n.parquet"]


def test_score_onto_itself_is_refused(fitted):
    path = fitted / "t.parquet"
    before = path.read_bytes()
    result = run("score", fitted / "t.pnuauc", path, "-o", path)
    assert result.exit_code == 2
    assert path.read_bytes() == before


LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))"


@pytest.mark.system
def test_full_disk(fitted, tmp_path):
    """A limit on the size of files fails a write half-way, as a full disk does."""
    table = pa.concat_tables([pa.parquet.read_table(fitted / "t.parquet")] * 50)
    pa.parquet.write_table(table, tmp_path / "n.parquet")
    files = (fitted / "t.pnuauc", tmp_path / "n.parquet", "-o", tmp_path / "o.csv")
    process = start_tool("score", *files, code=LIMITED)
    _, error = process.communicate(timeout=100)
    assert process.returncode == 1, error
    assert b"nothing was replaced" in error
    assert b"Traceback" not in error
    assert [p.name for p in tmp_path.iterdir()] == ["n.parquet"]


def test_no_write_permission_as_anybody(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode, **options: mode != os.W_OK)
    result = run("score", fitted / "t.pnuauc", fitted / "t.parquet", "-o", tmp_path / "o.csv")
    assert result.exit_code == 2
    assert "may not be written" in result.stderr


SLOW = """
import time
from pnuauc.model.model import TableModel
def slow(*arguments):
    print("started", flush=True)
    time.sleep(60)
TableModel.score_encoded = slow
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.system
def test_interrupted_run(fitted, tmp_path, number):
    target = tmp_path / "o.csv"
    target.write_text("id,score,percentile\nformer,1,2\n")
    files = (fitted / "t.pnuauc", fitted / "t.parquet", "-o", target)
    process = start_tool("score", *files, code=SLOW, text=True)
    assert process.stdout.readline().strip() == "started"
    time.sleep(0.1)
    process.send_signal(number)
    _, error = process.communicate(timeout=50)
    assert process.returncode == 128 + number
    assert "Interrupted" in error
    assert "Traceback" not in error
    assert target.read_text() == "id,score,percentile\nformer,1,2\n"
    assert [p.name for p in tmp_path.iterdir()] == ["o.csv"]


def test_missing_extra_is_named(monkeypatch, tmp_path):
    from pnuauc._utils.extras import need
    from pnuauc.exceptions import MissingExtraError

    with pytest.raises(MissingExtraError, match=r"pip install 'pnuauc\[cli\]'"):
        need("a_module_that_is_not_there")
    hidden = "import sys; sys.modules['typer'] = None; from pnuauc.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "pip install 'pnuauc[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    labels=st.lists(
        st.sampled_from(["1", "0", "-1", "", "yes", "no", "NaN", "2", "1.5", "x", "inf"]),
        min_size=1,
        max_size=12,
    )
)
def test_any_labels_are_read_or_refused(tmp_path, labels):
    """``evaluate`` reads labels and table as ``fit`` does, without the cost of a fit."""
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "".join(f"{i},{i % 3},{v}\n" for i, v in enumerate(labels)))
    result = run("evaluate", path, "-s", "a", "-l", "y")
    assert result.exit_code in (0, 2), result.output
    assert "unexpected" not in result.output


def test_an_encoding_that_is_not_marked_is_named_with_the_option(tmp_path):
    (tmp_path / "t.csv").write_bytes("a,y\n1,1\n2,0\n".encode("utf-16-le"))
    result = run("fit", tmp_path / "t.csv", "-l", "y")
    assert result.exit_code == 2
    assert "Use --encoding utf-16-le or --encoding utf-16-be." in " ".join(result.output.split())


@pytest.mark.parametrize("command", ["fit", "evaluate", "prior"])
def test_an_address_is_told_as_such(command):
    """Before anything is said about the folder that the outputs would go to."""
    result = run(command, "https://example.org/t.csv", "-l", "y")
    assert result.exit_code == 2
    told = "'https://example.org/t.csv' is an address, and nothing is fetched"
    assert told in " ".join(result.output.split())
