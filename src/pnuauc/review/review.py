"""The working loop: draw rows to review, take decisions in, say whether to stop."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.arrays import Floats
from pnuauc._utils.show import ShownAsTable, dump_json
from pnuauc.exceptions import InputError
from pnuauc.io.cells import pa
from pnuauc.io.frames import as_table
from pnuauc.io.readers import read_cells
from pnuauc.io.write import atomic_file, write_text
from pnuauc.model.files import load_model
from pnuauc.report.page import csv_text
from pnuauc.review.audit import Audit
from pnuauc.review.expected import Outlook, outlook
from pnuauc.review.ledger import Drawn, Ledger, check_decisions, id_text
from pnuauc.review.page import review_page, review_sheet
from pnuauc.review.rank import PoolRanker, Ranking, draw_batch, explore_share
from pnuauc.study.rows import ColumnRoles, LabelCodes, need_column, read_labels

_SETTINGS, _LEDGER, _SCORES = "review.json", "ledger.jsonl", "scores.npz"


@dataclass(frozen=True)
class RoundStatus:
    """After a round: rows read, positives found among them, and the proven bound on the rest."""

    round: int
    read: int
    found: int
    hidden_high: int
    recall_low: float


@dataclass(frozen=True, repr=False)
class Status(ShownAsTable):
    """Where a review stands.

    Attributes
    ----------
    round : batches drawn so far
    n_rows : rows of the table
    n_left : rows that nobody has looked at
    n_read : rows drawn or decided by hand
    n_open : rows of the last batch without a decision
    n_undecided : rows that are unsure or skipped
    known : positives that the table itself named
    found : positives found by the review
    hidden_high : proven with probability ``level``: at most this many positives are not found yet
    recall_low : proven likewise: at least this share of all positives is known
    target : the recall to stop at
    stop : whether the proven recall has attained the target
    expected : what the last ranking and the decisions lead to expect, with its AUC; None before the
        review finds a positive
    expected_recall, expected_stop : the same question by the upper limit of ``expected.hidden``
    rounds : one :class:`RoundStatus` for each complete round
    """

    round: int
    n_rows: int
    n_left: int
    n_read: int
    n_open: int
    n_undecided: int
    known: int
    found: int
    hidden_high: int
    recall_low: float
    target: float
    level: float
    stop: bool
    rounds: tuple[RoundStatus, ...]
    expected: Outlook | None = None

    @property
    def expected_recall(self) -> float | None:
        """Lower bound of the recall by the *expected* answer; None where there is none."""
        if self.expected is None or not self.expected.holds:
            return None
        return _recall(self.known + self.found, self.expected.hidden.high + self.n_undecided)

    @property
    def expected_stop(self) -> bool | None:
        return None if self.expected_recall is None else self.expected_recall >= self.target

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        out = asdict(self)
        out |= {"expected_recall": self.expected_recall, "expected_stop": self.expected_stop}
        if self.expected is not None:
            for name in ("hidden", "share", "auc"):
                out["expected"][name] = getattr(self.expected, name)._asdict()
        return out

    def sentences(self) -> list[str]:
        """The answer in words, the decision first."""
        yes = self.stop
        out = [
            f"{'Stop' if yes else 'Go on'}: a recall of {self.target:.0%} "
            f"{'is' if yes else 'is not yet'} proven.",
            f"{self.known + self.found:,} positives are known ({self.known:,} from the table, "
            f"{self.found:,} found in {self.n_read:,} rows read); {self.n_left:,} rows are left.",
            f"Proven at {self.level:.0%}, whatever the ranking is worth: at most "
            f"{self.hidden_high:,} positives are not found, so the recall is at least "
            f"{self.recall_low:.1%}.",
        ]
        found = self.expected
        if found is None:
            out.append("Expected: nothing yet, as too few positives were found.")
        elif self.expected_recall is None:
            out.append(
                f"Expected: cannot be estimated. {found.random_hits} of the rows drawn at random "
                f"were positive where their places lead to expect {found.random_expected:.1f}: the "
                "ranking misses a kind of positive."
            )
        else:
            hidden, share = found.hidden, found.share
            out += [
                f"Expected, if unread rows are like read ones of the same score: "
                f"{hidden.value:.1f} positives hidden, at most {hidden.high:,.0f} (9 of 10 times), "
                f"so the recall is at least {self.expected_recall:.1%}: "
                f"{'stop' if self.expected_stop else 'go on'}. The next batch would find "
                f"{found.next_batch:.1f}.",
                f"Of the rows that the table left unlabelled {share.value:.1%} are positive "
                f"({share.low:.1%} to {share.high:.1%}).",
                f"AUC of the ranking over these rows: {found.auc.value:.3f} ({found.auc.low:.3f} "
                f"to {found.auc.high:.3f}).",
            ]
        if self.n_open:
            out.append(f"{self.n_open:,} rows of round {self.round} wait for a decision.")
        if self.n_undecided:
            out.append(
                f"{self.n_undecided:,} rows are undecided; the proven bound counts them as "
                "positives that are not found."
            )
        return out


class Batch(NamedTuple):
    """The rows of a round.

    Attributes
    ----------
    round : int, the first one 1
    ids : list of str, in the order of the page
    rows : places in the table, shape (k,)
    page, sheet : files to review them with
    """

    round: int
    ids: list[str]
    rows: NDArray[np.intp]
    page: Path
    sheet: Path


@dataclass(frozen=True)
class _Settings:
    """What the folder remembers; ``rows`` is a fingerprint of the ids and their first labels."""

    table: str | None
    label: str
    id: str | None
    batch: int
    explore: float | str
    stop_at_recall: float
    alpha: float
    drop: list[str]
    categorical: list[str]
    group: list[str]
    codes: dict[str, Any]
    model: str | None
    random_state: int
    rows: str = ""

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise InputError(f"A batch has at least one row; got {self.batch}.")
        for name, value in (("stop_at_recall", self.stop_at_recall), ("alpha", self.alpha)):
            if not 0.0 < value < 1.0:
                raise InputError(f"{name} must lie between 0 and 1; got {value}.")
        e = self.explore
        if e != "auto" and (isinstance(e, str) or not 0.0 <= e <= 1.0):
            raise InputError(f"explore must be a share from 0 to 1, or 'auto'; got {e!r}.")

    @classmethod
    def of_folder(cls, folder: Path) -> _Settings:
        where = folder / _SETTINGS
        if not where.is_file():
            raise InputError(f"'{folder}' holds no review; begin one with a table.", about="output")
        try:
            return cls(**json.loads(where.read_text("utf-8")))
        except (ValueError, TypeError, RecursionError):
            raise InputError(
                f"'{where}' is not a file of settings that pnuauc wrote; restore it from a copy."
            ) from None


class Review:
    """A review of the unlabelled rows of a table, round by round.

    Each round draws a batch: most rows by their score, a stated share uniformly at random. The
    folder holds the whole state, an append-only ledger; any step can be repeated after a crash.

    Parameters
    ----------
    table : frame, or path of a file
    folder : path
        State of the review; created if missing. A folder with a review goes on with it.
    label, id : names of columns, optional
        Labels (1 positive, 0 negative, missing unlabelled; by default the column "label" if there
        is one: a review may begin with no label at all) and names of rows (by default their
        number, from 1).
    batch : rows of a round
    explore : float or "auto"
        Share of a batch that is drawn at random; "auto": a tenth while the ranking finds more
        positives than random rows do, then nine tenths.
    stop_at_recall : the recall to prove, known positives / all positives of the table
    alpha : probability with which the proven bound may ever be wrong
    group : names of columns whose rows of one value belong together, such as a customer
        Rows are drawn one by one; a row is judged by models that saw no row of its group.
    drop, categorical, positive_label, negative_label, unlabeled_label
        As in :func:`pnuauc.fit_table`.
    model : path of a model file, optional
        Ranks by this model; by default a ranking is learned in every round.
    """

    def __init__(
        self,
        table: Any,
        folder: str | os.PathLike[str],
        *,
        label: str | None = None,
        id: str | None = None,
        batch: int = 100,
        explore: float | str = 0.1,
        stop_at_recall: float = 0.95,
        alpha: float = 0.05,
        drop: Sequence[str] = (),
        categorical: Sequence[str] = (),
        group: Sequence[str] = (),
        positive_label: Any = None,
        negative_label: Any = None,
        unlabeled_label: Any = None,
        model: str | os.PathLike[str] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.folder = Path(folder)
        self._settings = _Settings(
            table=os.path.abspath(table) if isinstance(table, (str, os.PathLike)) else None,
            label="label" if label is None else label,
            id=id,
            batch=batch,
            explore=explore,
            stop_at_recall=stop_at_recall,
            alpha=alpha,
            drop=list(drop),
            categorical=list(categorical),
            group=list(group),
            codes=vars(LabelCodes(positive_label, negative_label, unlabeled_label)),
            model=None if model is None else os.path.abspath(model),
            random_state=secrets.randbits(32) if random_state is None else int(random_state),
        )
        self._read(table, () if label is None else (label,))
        where = self.folder / _SETTINGS
        if where.exists():
            kept = _Settings.of_folder(self.folder)
            self._check_rows(kept)
            # what decides about rows stays; how many to draw next may change
            for name in ("label", "id", "alpha"):
                if getattr(self._settings, name) != getattr(kept, name):
                    raise InputError(
                        f"The review in '{self.folder}' was begun with {name} "
                        f"{getattr(kept, name)!r}; go on with it, or name another folder."
                    )
            self._settings = replace(self._settings, random_state=kept.random_state)
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise InputError(
                f"'{self.folder}' holds files but no review; name another folder.", about="output"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(where, dump_json(asdict(self._settings)))

    @classmethod
    def open(cls, folder: str | os.PathLike[str], table: Any = None) -> Review:
        """The review in a folder; ``table`` is needed where it is not a file, or has moved."""
        review = cls.__new__(cls)
        review.folder = Path(folder)
        review._settings = kept = _Settings.of_folder(review.folder)
        source = kept.table if table is None else table
        if source is None:
            raise InputError(f"The review in '{folder}' was not made from a file; pass its table.")
        review._read(source)
        review._check_rows(kept)
        return review

    def _read(self, table: Any, needed: Sequence[str] = ()) -> None:
        s = self._settings
        data = read_cells(table) if isinstance(table, (str, os.PathLike)) else as_table(table)
        if not hasattr(data, "column_names"):
            raise InputError("A review needs a table with named columns.")
        ids = () if s.id is None else (s.id,)
        codes = LabelCodes(**s.codes)
        drop, categorical, group = tuple(s.drop), tuple(s.categorical), tuple(s.group)
        self._roles = ColumnRoles(s.label, ids, drop, categorical, codes, groups=group)
        for name in (*needed, *ids, *drop, *self._roles.grouping):
            need_column(name, data.column_names)
        self.table = data
        self.ids = _row_ids(data, s.id)
        self._place = {name: k for k, name in enumerate(self.ids)}
        self._given = np.full(len(self.ids), np.nan)
        if s.label in data.column_names:
            self._given = read_labels(data, s.label, codes).as_float()
        self._pool = {name for name, y in zip(self.ids, self._given, strict=True) if np.isnan(y)}
        known = [None if np.isnan(y) else int(y) for y in self._given]
        fingerprint = hashlib.sha256(json.dumps([self.ids, known]).encode()).hexdigest()
        self._settings = replace(s, rows=fingerprint)

    def _check_rows(self, kept: _Settings) -> None:
        if kept.rows != self._settings.rows:
            raise InputError(
                f"The ids or labels of the table are not those with which the review in "
                f"'{self.folder}' was begun; restore the table, or begin another review."
            )

    # The state.

    @cached_property
    def ledger(self) -> Ledger:
        """All that was drawn and decided."""
        return Ledger(self.folder / _LEDGER)

    @property
    def y(self) -> Floats:
        """Labels of the table and decisions: 1, 0 or NaN, shape (n,)."""
        y = self._given.copy()
        for name, value in self.ledger.labels.items():
            y[self._place[name]] = value
        return y

    @property
    def scores(self) -> Floats | None:
        """Scores of the last ranking, shape (n,); None before the first."""
        ranking = self._last_ranking
        return None if ranking is None else ranking.scores

    @property
    def _last_ranking(self) -> Ranking | None:
        where = self.folder / _SCORES
        if not where.exists():
            return None
        with np.load(where, allow_pickle=False) as kept:
            return Ranking(**kept)

    def labelled(self) -> Any:
        """The table as a ``pyarrow.Table`` with the decisions in its label column, and a column
        "probability": the odds with which a row was drawn, missing where they are unknown."""
        chance = np.full(len(self.ids), np.nan)
        for row in self.ledger.drawn.values():
            chance[self._place[row.id]] = row.probability
        label, table = self._settings.label, self.table
        table = table.select([name for name in table.column_names if name != label])
        table = table.append_column(label, pa.array(self.y, from_pandas=True).cast(pa.int8()))
        if "probability" in table.column_names:
            return table
        return table.append_column("probability", pa.array(chance, from_pandas=True))

    # The loop.

    def next_batch(self) -> Batch:
        """The rows to review now: what is open of the last batch, or a new one."""
        if not self.ledger.open_rows:
            self._draw()
        # the page and the sheet of the last batch, in an order that hides how rows were drawn
        s, number = self._settings, len(self.ledger.batches)
        drawn = self.ledger.batches[-1]
        order = np.random.default_rng([s.random_state, number, 1]).permutation(len(drawn))
        rows = np.array([self._place[drawn[k].id] for k in order])
        ids = [self.ids[k] for k in rows]
        decided = [self.ledger.decision(i) or "" for i in ids]
        hidden = {s.label, *self._roles.ids}
        cells = self.table.select([n for n in self.table.column_names if n not in hidden])
        cells = cells.take(rows)
        marks: list[list[str]] = [[] for _ in ids]
        reasons = ["" for _ in ids]
        if s.model is None:
            marks, reasons = self._ranker.explain(rows, self.y)
        name = Path(s.table or self.folder).name
        key = f"{name} {s.rows[:12]} {number}"
        page, sheet = self.folder / "review.html", self.folder / "review.csv"
        write_text(page, review_page(name, number, key, ids, cells, marks, reasons))
        write_text(sheet, review_sheet(s.id or "id", ids, decided, cells, reasons))
        self._write_ledger()
        return Batch(number, ids, rows, page, sheet)

    def _draw(self) -> None:
        s, ledger = self._settings, self.ledger
        free = self._pool - ledger.seen
        pool = np.array([k for k, i in enumerate(self.ids) if i in free], int)
        if not len(pool):
            raise InputError("Every row of the table is labelled or was reviewed.")
        ranking = self._model_ranking if s.model is not None else self._ranker.rank(self.y)
        explore = s.explore
        if ranking is None:  # nothing to learn from: all rows at random
            explore, scores = 1.0, np.zeros(len(self.ids))
            ranking = Ranking(scores, scores + np.nan)
        if explore == "auto":
            explore = explore_share(self._last_rate("score"), self._last_rate("explore"))
        rng = np.random.default_rng([s.random_state, len(ledger.batches)])
        rows, chance, random = draw_batch(ranking.scores, pool, s.batch, float(explore), rng)
        with atomic_file(self.folder / _SCORES) as stream:
            np.savez(stream, **ranking._asdict())
        ledger.add_batch(
            [
                Drawn(self.ids[k], float(p), float(ranking.scores[k]), by)
                for k, p, by in zip(rows, chance, np.where(random, "explore", "score"), strict=True)
            ]
        )

    def _last_rate(self, by: str) -> float:
        """Positives per row of the last batch, of the rows drawn this way."""
        last = self.ledger.batches[-1] if self.ledger.batches else []
        hits = [self.ledger.decision(row.id) == "positive" for row in last if row.by == by]
        # before the first batch, and after one without such rows, the ranking gets its chance
        return float(np.mean(hits)) if hits else float(by == "score")

    @cached_property
    def _ranker(self) -> PoolRanker:
        return PoolRanker(self.table, self._roles, self._settings.random_state)

    @cached_property
    def _model_ranking(self) -> Ranking:
        scores = load_model(str(self._settings.model)).score(self.table)
        return Ranking(scores, scores)

    def add(self, decisions: Any, *, relabel: bool = False) -> list[str]:
        """Take decisions in: all of them, or none where something is wrong.

        Parameters
        ----------
        decisions : dict from id to decision, a frame or a file with columns id and "decision"
        relabel : whether decisions may replace earlier ones

        Returns
        -------
        list of str
            One sentence about each kind of row that was not simply taken in.
        """
        id = self._settings.id or "id"
        new, notes = check_decisions(decisions, self._place, self.ledger, id=id, relabel=relabel)
        self.ledger.add_decisions(new)
        self._write_ledger()
        return notes

    def _write_ledger(self) -> None:
        write_text(self.folder / "ledger.csv", csv_text(self.ledger.table()))

    # The answer.

    def status(self) -> Status:
        """What is found, what may still be hidden, and whether to stop."""
        s, ledger, pool = self._settings, self.ledger, self._pool
        known = int(np.sum(self.y[~np.isnan(self._given)] == 1))
        audit, rounds = Audit(len(pool), s.alpha), []
        for k, after in enumerate(ledger.rounds(pool), start=1):
            for draw in after.draws:
                audit.update(*draw)
            hidden = min(max(audit.upper - after.found, 0), after.n_left + after.undecided)
            read, recall = len(pool) - after.n_left, _recall(known + after.found, hidden)
            rounds.append(RoundStatus(k, read, after.found, hidden, recall))
        seen = ledger.seen & pool
        words = [ledger.decision(i) for i in seen]
        found, refuted = words.count("positive"), words.count("negative")
        # what was found since the last complete round counts; the bound on all positives stays
        total = rounds[-1].found + rounds[-1].hidden_high if rounds else len(pool)
        hidden = max(min(total, len(pool) - refuted) - found, 0)
        recall, n_left = _recall(known + found, hidden), len(pool) - len(seen)
        return Status(
            round=len(ledger.batches),
            n_rows=len(self.ids),
            n_left=n_left,
            n_read=len(seen),
            n_open=len(ledger.open_rows),
            n_undecided=sum(ledger.decision(i) in {"unsure", "skip"} for i in ledger.seen),
            known=known,
            found=found,
            hidden_high=hidden,
            recall_low=recall,
            target=s.stop_at_recall,
            level=1.0 - s.alpha,
            stop=recall >= s.stop_at_recall,
            rounds=tuple(rounds),
            expected=self._expected(),
        )

    def _expected(self) -> Outlook | None:
        """From the last ranking; how rows picked by hand were found is not known, so that they are
        no evidence."""
        last, s, ledger = self._last_ranking, self._settings, self.ledger
        if last is None:
            return None
        by = np.full(len(self.ids), "", dtype=object)
        for name in ledger.decisions.keys() & ledger.drawn.keys():
            by[self._place[name]] = ledger.drawn[name].by
        by[[self._place[name] for name in ledger.by_hand]] = "hand"
        pool, level = np.isnan(self._given), 1.0 - s.alpha
        return outlook(last.held_out[pool], self.y[pool], by[pool], batch=s.batch, level=level)


def _recall(found: int, hidden: float) -> float:
    """Share of the positives that are known; 1 where there are none."""
    return found / (found + hidden) if found + hidden else 1.0


def _row_ids(table: Any, id: str | None) -> list[str]:
    if id is None:
        return [str(k) for k in range(1, table.num_rows + 1)]
    ids = [id_text(value) for value in table.column(id).to_pylist()]
    first: dict[str, int] = {}
    for k, name in enumerate(ids, start=1):
        if not name:
            raise InputError(f"Row {k} of the table has no '{id}'; every row needs a name.")
        if name in first:
            raise InputError(
                f"Rows {first[name]} and {k} of the table have the same '{id}', '{name}'; every "
                "row needs a name of its own."
            )
        first[name] = k
    return ids
