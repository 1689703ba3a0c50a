"""What a fit or an evaluation found, one dataclass each; ``to_dict`` gives what JSON files hold.

What was never looked for stays unset: it reads as None, and has no key in JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from keyword import iskeyword
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pnuauc.committee.estimator import MemberReport
from pnuauc.evaluation import AUCEstimate
from pnuauc.evaluation.compare import AUCComparison
from pnuauc.evaluation.posterior import Expected
from pnuauc.evaluation.sensitivity import PriorSensitivity
from pnuauc.io.columns import Column

_Found = TypeVar("_Found", bound="Finding")
_UNSET: Any = None


class Finding:
    """Base of all findings: to JSON and back."""

    def to_dict(self) -> dict[str, Any]:
        """Dicts, lists and plain values, with a key for each field that was set."""
        return {name.rstrip("_"): _plain(value) for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls: type[_Found], item: Mapping[str, Any]) -> _Found:
        """The finding that :meth:`to_dict` described."""
        hints, found = get_type_hints(cls), cls.__new__(cls)
        for key, value in item.items():
            name = f"{key}_" if iskeyword(key) else key
            vars(found)[name] = _read(hints.get(name), value)
        return found


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Expected):
        return value._asdict()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _read(hint: Any, value: Any) -> Any:
    if isinstance(hint, UnionType):  # a finding or None
        hint = get_args(hint)[0]
    if get_origin(hint) is list and isinstance(value, list):
        return [_read(get_args(hint)[0], item) for item in value]
    if isinstance(hint, type) and isinstance(value, dict):
        if issubclass(hint, Finding):
            return hint.from_dict(value)
        if is_dataclass(hint) or hint is Expected:
            return hint(**value)
    return value


@dataclass
class TableFacts(Finding):
    """The table and its columns, as they were read."""

    name: str
    rows: int
    label: str
    ids: list[str]
    dropped: list[str]
    columns: list[Column]
    kinds: dict[str, int]
    n_encoded: int
    notes: list[str]


@dataclass
class Labels(Finding):
    """How labels were read, and how many rows of each role there are."""

    setting: str
    positive: int
    negative: int
    unlabeled: int
    positive_label: str
    negative_label: str
    announcement: str | None


@dataclass
class PriorFinding(Finding):
    """The share of positives inside U, what it means in rows, and its density for a chart."""

    value: float
    std_error: float
    low: float
    high: float
    level: float
    source: str
    doubt: str | None
    positives_unlabeled: tuple[float, float, float]
    share_of_positives_known: float
    labels_to_halve: int | None
    population: float | None
    note: str | None
    posterior: dict[str, list[float]] | None


@dataclass(frozen=True)
class MemberFinding(MemberReport, Finding):
    """A member of the committee."""

    title: str = ""


@dataclass
class Selection(Finding):
    """What was chosen, out of what; of a model on a grid also its :class:`SelectionReport`."""

    model: str
    message: str
    members: list[MemberFinding] = field(init=False, default=_UNSET)
    risk: str = field(init=False, default=_UNSET)
    loss: str = field(init=False, default=_UNSET)
    basis: str = field(init=False, default=_UNSET)
    n_centers: int = field(init=False, default=_UNSET)
    n_candidates: int = field(init=False, default=_UNSET)
    n_kept: int = field(init=False, default=_UNSET)
    n_corrected: int = field(init=False, default=_UNSET)
    best: dict[str, float] = field(init=False, default=_UNSET)
    curves: dict[str, list[dict[str, float]]] = field(init=False, default=_UNSET)


@dataclass
class AUCFinding(Finding):
    """Held-out AUC with its interval."""

    value: float
    low: float
    high: float
    level: float
    notes: list[str] = field(init=False, default=_UNSET)


@dataclass
class Roc(Finding):
    """ROC curve and its band."""

    fpr: list[float]
    tpr: list[float]
    low: list[float]
    high: list[float]
    level: float


@dataclass
class TopCount(Finding):
    """Positives to expect among the k unlabelled rows of highest score."""

    k: int
    value: float
    low: float
    high: float


@dataclass
class Review(Finding):
    """What reviewing the first k rows would find."""

    k: int
    n_unlabeled: int
    level: float
    expected: Expected
    recall: Expected
    by_chance: float
    counts: list[TopCount]
    rows_for_half: int


@dataclass
class Rival(Finding):
    """What one would do instead, on the same held-out rows."""

    name: str
    auc: float
    committee: float
    difference: float
    low: float
    high: float
    p_value: float


@dataclass
class Effect(Finding):
    """What the unlabelled rows changed, on the same held-out rows."""

    message: str
    difference: float | None
    low: float = field(init=False, default=_UNSET)
    high: float = field(init=False, default=_UNSET)
    p_value: float = field(init=False, default=_UNSET)
    with_: float = field(init=False, default=_UNSET)
    without: float = field(init=False, default=_UNSET)


@dataclass
class Groups(Finding):
    """Labelled rows and groups, and how many independent rows they count as."""

    columns: list[str]
    n_groups: int
    n_labeled: int
    worth: float


@dataclass
class Suspected(Finding):
    """Rows that may belong together though nobody said so, and the AUC if they do."""

    column: str | None
    rows: int
    auc: AUCFinding | None
    message: str


@dataclass
class Span(Finding):
    """Later rows: their first time, labels, and share of positives (value, low, high)."""

    begins: str
    positive: int
    negative: int
    share: list[float] | None


@dataclass
class Timed(Finding):
    """Later rows judged by models of earlier ones."""

    column: str
    auc: AUCFinding | None
    spans: list[Span]
    believe: str


@dataclass
class ColumnImportance(Finding):
    """Fall of the AUC without a column, its standard deviation, and which values score higher."""

    column: str
    drop: float
    spread: float
    direction: str | None = field(init=False, default=_UNSET)


@dataclass
class Importance(Finding):
    """The columns, most informative first, and how that was measured."""

    columns: list[ColumnImportance]
    procedure: str
    n_columns: int


@dataclass
class TopRows(Finding):
    """The unlabelled rows to look at next.

    ``rows`` are number, ids, score and percentile (``header``); ``cells`` the values of ``columns``
    as text; ``reasons`` the columns that raise the score; ``marks`` words of texts.
    """

    header: list[str] = field(default_factory=lambda: ["row", "score", "percentile"])
    rows: list[list[Any]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    cells: list[list[str]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    marks: list[list[str]] = field(default_factory=list)
    n_columns: int = field(init=False, default=_UNSET)
    probability: list[float] | None = field(init=False, default=_UNSET)
    probability_low: list[float] | None = field(init=False, default=_UNSET)
    probability_high: list[float] | None = field(init=False, default=_UNSET)


@dataclass
class Findings(Finding):
    """Everything there is to say about a fit."""

    run: str  # first, where a reader of a file's beginning finds it
    pnuauc: str
    created: str
    command: str | None
    table: TableFacts
    labels: Labels
    settings: dict[str, Any]
    selection: Selection
    prior: PriorFinding | None = field(init=False, default=_UNSET)
    auc: AUCFinding | None = field(init=False, default=_UNSET)
    auc_reason: str | None = field(init=False, default=_UNSET)
    folds: int = field(init=False, default=_UNSET)
    copies: dict[str, int] | None = field(init=False, default=_UNSET)
    groups: Groups | None = field(init=False, default=_UNSET)
    scores: dict[str, list[float]] | None = field(init=False, default=_UNSET)
    roc: Roc | None = field(init=False, default=_UNSET)
    review: Review | None = field(init=False, default=_UNSET)
    labels_look_random: bool | None = field(init=False, default=_UNSET)
    rivals: list[Rival] | None = field(init=False, default=_UNSET)
    unlabeled_effect: Effect | None = field(init=False, default=_UNSET)
    importance: Importance | None = field(init=False, default=_UNSET)
    suspected: Suspected | None = field(init=False, default=_UNSET)
    timed: Timed | None = field(init=False, default=_UNSET)
    top: TopRows = field(init=False, default=_UNSET)
    leaks: list[str] = field(init=False, default=_UNSET)
    warnings: list[str] = field(init=False, default=_UNSET)
    seconds: float = field(init=False, default=_UNSET)
    files: dict[str, str] | None = field(init=False, default=_UNSET)


@dataclass
class ScoreFinding(Finding):
    """AUC of one column of scores by every method, the best, or the AUC by prior."""

    methods: dict[str, AUCEstimate]
    auc: AUCEstimate | None = None
    sensitivity: PriorSensitivity = field(init=False, default=_UNSET)


@dataclass(frozen=True, repr=False)
class ColumnComparison(AUCComparison):
    """Columns ``a`` and ``b`` compared; ``p_adjusted`` for the number of comparisons."""

    a: str = ""
    b: str = ""
    p_adjusted: float = 1.0


@dataclass
class Evaluation(Finding):
    """What is said about columns of scores."""

    labels: Labels
    prior: PriorFinding | None
    scores: dict[str, ScoreFinding]
    comparison: ColumnComparison | None
    comparisons: list[ColumnComparison]
    warnings: list[str]
