"""Commands killed or stopped at random moments.

The law: every output is whole, old or new; the run ids tell a mixture, and ``inspect`` names it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from attack.runner import Target
from pnuauc.io import load_model
from pnuauc.io.write import run_id_of

__all__ = ["KILLS"]

#: In the order of their renames.
_OUTPUTS = ("t.html", "t.json", "t.review.csv", "t.heldout.csv", "t.pnuauc")
_FIT = ["-l", "y", "--id", "id", "--prior", "0.4", "--centers", "5", "--folds", "2", "--jobs", "1"]


def _table(path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = ["id,a,b,y"]
    for i in range(300):
        label = "" if i > 60 else str(i % 2)
        lines.append(f"r{i},{rng.normal() + i % 2:.4f},{rng.normal():.4f},{label}")
    path.write_text("\n".join(lines) + "\n")


def _command(arguments: list[str], number: int | None, delay: float) -> int:
    """Run a command in a process of its own and send it a signal after ``delay`` seconds."""
    child = os.fork()
    if child == 0:  # pragma: no cover - the other process
        code = 70
        try:
            from pnuauc.cli.app import app
            from pnuauc.cli.console import exit_code_of
            from pnuauc.cli.signals import leave_at_once

            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            leave_at_once()
            code = exit_code_of(lambda: app(arguments, standalone_mode=False))
        finally:
            os._exit(code)
    if number is not None:
        time.sleep(delay)
        os.kill(child, number)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _kills() -> Callable[[int], str]:
    # a harness in the background was started with Ctrl-C ignored, which its children inherit
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    scratch = Path(tempfile.mkdtemp(prefix="pnuauc-attack-"))
    old = scratch / "old"
    old.mkdir()
    _table(old / "t.csv")
    started = time.monotonic()
    assert _command(["fit", str(old / "t.csv"), *_FIT], None, 0) == 0
    lasts = time.monotonic() - started
    assert _command(["score", str(old / "t.pnuauc"), str(old / "t.csv")], None, 0) == 0
    before = {name: (old / name).read_bytes() for name in (*_OUTPUTS, "t.scored.csv")}

    def case(number: int) -> str:
        rng = np.random.default_rng([4, number])
        folder = scratch / str(number)
        shutil.copytree(old, folder)
        sent = int(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
        command = "fit" if number % 4 else "score"
        arguments = (
            ["fit", str(folder / "t.csv"), *_FIT, "--seed", "1"]
            if command == "fit"
            else ["score", str(folder / "t.pnuauc"), str(folder / "t.csv")]
        )
        # half of them in the last quarter of a run, when files are written
        share = rng.uniform(0.6, 1.1) if rng.random() < 0.5 else rng.uniform(0, 1.1)
        code = _command(arguments, sent, share * lasts * (1 if command == "fit" else 0.3))
        # before its handlers are there, a process dies by the signal itself, which a shell tells
        # alike
        expected = {0, -sent} if sent == signal.SIGKILL else {0, 128 + sent, -sent}
        assert code in expected, f"exit code {code} after signal {sent}"
        found = _judge(folder, before, sent == signal.SIGKILL)
        if code == 0 and command == "fit":
            assert found == "new", "said that it was done, but it was not"
        shutil.rmtree(folder)
        return f"{command}, signal {sent}: {found if command == 'fit' else 'whole'}"

    return case


def _judge(folder: Path, before: dict[str, bytes], killed: bool) -> str:
    """Each output old or new, new ones before old ones; a mixture is named; nothing is lost."""
    same = [(folder / name).read_bytes() == before[name] for name in _OUTPUTS]
    assert same == sorted(same), f"replaced out of order: {same}"
    run = load_model(folder / "t.pnuauc").card["run"]
    runs = {run_id_of(folder / name) for name in _OUTPUTS[:-1]}
    assert None not in runs, "an output is not whole"
    json.loads((folder / "t.json").read_text())
    assert (folder / "t.html").read_text().rstrip().endswith("</html>"), "the report is not whole"
    mixed = len(set(same)) > 1
    assert mixed == (runs != {run}), "the run ids do not tell a mixture"
    assert _names_a_mixture(folder / "t.pnuauc") == mixed, "inspect does not name a mixture"
    assert (folder / "t.csv").read_text().count("\n") == 301, "the table changed"
    assert (folder / "t.scored.csv").read_text().count("\n") == 301, "the scores are not whole"
    left = [p.name for p in folder.iterdir() if p.name.startswith(".")]
    assert not left or (killed and all(n.endswith(".part") for n in left)), f"left over: {left}"
    return "mixed" if mixed else "old" if same[0] else "new"


def _names_a_mixture(model: Path) -> bool:
    from typer.testing import CliRunner

    from pnuauc.cli.app import app

    return "Not of the same fit" in CliRunner().invoke(app, ["inspect", str(model)]).output


KILLS = Target("commands killed or stopped", _kills)
