"""The members of the committee: kinds of model, and a line in ``MEMBERS`` for each member."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.utils import check_random_state

from pnuauc._utils.arrays import Floats
from pnuauc.committee.forest import Forest, grow_trees
from pnuauc.committee.kernels import KernelSum, average_processes
from pnuauc.committee.models import Part, Slope
from pnuauc.committee.views import Look, see
from pnuauc.core.basis import MultiscaleBasis, fit_basis
from pnuauc.core.rows import RowsElsewhere
from pnuauc.labels import Roles
from pnuauc.selection import FoldedRows, TrainedGrid

__all__ = ["MEMBERS", "Member", "Parts", "Situation", "Training", "against", "fit_rivals"]

Parts: TypeAlias = tuple[Part, ...]
Rows: TypeAlias = NDArray[np.intp]

#: Half as many as in the paper: averaged, they rank as well.
_ETAS = {
    "PNU": tuple(round(0.2 * k, 1) for k in range(-4, 5)),
    "PN": (0.0,),
    "PU": (1.0,),
    "NU": (-1.0,),
}
_ALPHAS = (1e-3, 1e-2, 1e-1, 1e0, 1e1)
_WIDTHS = ("0.125*median", "0.25*median", "0.5*median", "1*median", "2*median")
_N_CENTERS = 200
#: Labelled rows of the rarer class, and of both: with as many all weights are learned from held-out
#: rows; with as many boosting may take part as far as held-out rows favour it.
MANY_RARE, MANY_LABELS = 50, 400
SOME_RARE, SOME_LABELS = 20, 100
#: With this many labelled rows of the rarer class weights lean towards members that do better on
#: held-out rows; with five that is mostly luck.
LEAN_RARE = 10
#: Up to this many labels of one class a second metric helps.
_FEW_LABELS = 10
#: Above this number of labels Gaussian processes cost more than they give.
_PROCESS_LABELS = 300
_N_TREES, _N_BEST, _RIVAL_TREES = 200, 100, 100  # rivals have the settings they come with
#: Leading components of text: its subject.
_LEADING = 30
#: Strength of a strongly regularised regression against a draw of U, beside that of labels alone.
_DRAWN_STRENGTH = 0.1
#: Rounds of boosting.
_ROUNDS = 100
#: A fit without a fold has half the trees, and while labels are few half the rounds: on ten tables,
#: 80 to 300 labels, two draws, their AUCs differed by .04 points in the mean.
_ROUGHER = 2
#: Labelled rows that trees are grown on, and leaves that a tree of them may have.
_TREE_ROWS, _LEAVES = 20_000, 5000
#: Unlabelled rows beside the labelled class in one tree: at least this many for each labelled row;
#: the rows that they are drawn from; and labelled rows in one tree at most.
_BAG_RATIO, _BAG_ROWS = 1, 50
_BAG_POOL, _BAG_LABELS = 20_000, 500


@dataclass(frozen=True)
class Situation:
    """What there is to learn from."""

    n_positive: int
    n_negative: int
    n_features: int
    is_sparse: bool
    n_latent: int = 0
    non_negative: bool = False

    @classmethod
    def of(cls, X: Any, roles: Roles, n_latent: int) -> Situation:
        """``n_latent`` columns are components of text and vectors."""
        is_sparse = sparse.issparse(X)
        non_negative = bool(is_sparse and (not X.nnz or X.data.min() >= 0))
        counts = (roles.n_positive, roles.n_negative, X.shape[1] - n_latent)
        return cls(*counts, is_sparse, n_latent, non_negative)

    @property
    def n_labeled(self) -> int:
        return self.n_positive + self.n_negative

    @property
    def both(self) -> bool:
        """Whether both classes have labelled rows."""
        return bool(self.n_positive and self.n_negative)

    @property
    def leans(self) -> bool:
        """Whether weights may lean a little: dense rows, some of either class."""
        return not self.is_sparse and min(self.n_positive, self.n_negative) >= LEAN_RARE

    @property
    def many(self) -> bool:
        """Whether held-out rows can distinguish all members."""
        rare = min(self.n_positive, self.n_negative)
        return rare >= MANY_RARE and self.n_labeled >= MANY_LABELS

    @property
    def some(self) -> bool:
        """Whether held-out rows can identify a member that is far behind."""
        rare = min(self.n_positive, self.n_negative)
        return rare >= SOME_RARE and self.n_labeled >= SOME_LABELS


@dataclass(frozen=True, eq=False)
class Training:
    """Rows by role and fold, through the view.

    look : Look, of all rows
    folds : FoldedRows
        Role -> row numbers of each fold; more lists than ``n_folds`` are never held out.
    prior : float or None, for the risks
    seed : int
    n_threads : int
    held_back : bool
        Whether a fold was left out; such fits serve comparisons only and may be rougher.
    elsewhere : RowsElsewhere, optional
        All unlabelled rows, where those in memory are a draw; members that make use of more
        visit them there.
    known : dict
        What one member found out and another uses: the trained grid of the kernels.
    """

    look: Look
    folds: FoldedRows
    prior: float | None
    seed: int
    n_threads: int = 1
    held_back: bool = False
    elsewhere: RowsElsewhere | None = None
    known: dict[str, Any] = field(default_factory=dict)

    def rows(self, role: str) -> Rows:
        """Row numbers of a role, all folds."""
        lists = self.folds.rows.get(role, [])
        return np.sort(np.concatenate(lists)) if lists else np.empty(0, dtype=np.intp)

    def without(self, fold: int) -> Training:
        """The same with one fold left out."""
        rest = {
            role: [rows for k, rows in enumerate(lists) if k != fold]
            for role, lists in self.folds.rows.items()
        }
        folds = FoldedRows(rest, self.folds.n_folds - 1)
        return replace(self, folds=folds, held_back=True, elsewhere=None, known={})

    def classes(self) -> tuple[Rows, NDArray[np.int8]]:
        """Labelled rows and their class, 1 or 0."""
        positive, negative = self.rows("P"), self.rows("N")
        codes = np.repeat(np.array([1, 0], dtype=np.int8), [len(positive), len(negative)])
        return np.concatenate([positive, negative]), codes


@dataclass(eq=False)
class Member:
    """What members share: without a fold they are fitted as with it.

    Attributes
    ----------
    name : str
    reason : str
        Why it is taken, in a few words.
    suits : Situation -> bool
        Where it takes part, if there is something for it to read.
    weight : float
        While labels are too few to choose weights by.
    on_trial : bool
        Whether even then held-out rows may lower or raise its weight, as they do for members that
        read latent components beside columns.
    reads_latent : bool
        Whether it reads components of text and vectors, not the columns.
    """

    name: str
    reason: str
    suits: Callable[[Situation], bool] = lambda situation: True
    weight: float = 1.0
    on_trial: bool = False
    reads_latent: bool = False

    def why(self, situation: Situation) -> str | None:
        """Why it takes part in this situation; None: it does not."""
        there = situation.n_latent if self.reads_latent else situation.n_features
        return self.reason if there and self.suits(situation) else None

    def fit(self, training: Training) -> Parts:
        """Its parts, from the training rows."""
        raise NotImplementedError

    def fit_both(self, training: Training) -> tuple[Parts, list[Parts]]:
        """The same, and its parts without each fold in turn."""
        folds = [self.fit(training.without(k)) for k in range(training.folds.n_folds)]
        return self.fit(training), folds


@dataclass(eq=False)
class KernelAverage(Member):
    """Our semi-supervised AUC optimisation: Gaussians around some rows, the grid averaged."""

    #: View of dense columns.
    reads: str = "squashed"

    def view(self, look: Look) -> str:
        return "components" if look.view.is_sparse else self.reads

    def trained(self, training: Training) -> Any:
        """The grid."""
        if self.name in training.known:
            return training.known[self.name]
        look, reads = training.look, self.view(training.look)
        rows, elsewhere = getattr(look, reads), training.elsewhere
        if elsewhere is not None:
            elsewhere = elsewhere.through(partial(see, look.view, reads))
        basis = fit_basis(
            MultiscaleBasis(_N_CENTERS, _WIDTHS, random_state=training.seed),
            rows,
            in_order=elsewhere is not None,
        )
        setting = "".join(role for role in "PNU" if role in training.folds.rows)
        grid = TrainedGrid.from_arrays(
            rows,
            training.folds,
            basis,
            _ETAS[setting],
            _ALPHAS,
            training.prior,
            n_threads=training.n_threads,
            elsewhere=elsewhere,
        )
        training.known[self.name] = grid.train()
        return training.known[self.name]

    def parts(self, training: Training, models: Iterable[Any]) -> list[Parts]:
        reads = self.view(training.look)
        return [(Part(reads, KernelSum.of_model(model)),) for model in models]

    def fit(self, training: Training) -> Parts:
        chosen = self.trained(training).choose("average", "combined")
        return self.parts(training, [chosen.model])[0]

    def fit_both(self, training: Training) -> tuple[Parts, list[Parts]]:
        """One grid gives both."""
        chosen = self.trained(training).choose("average", "combined")
        whole, *folds = self.parts(training, [chosen.model, *chosen.fold_models()])
        return whole, folds


class Trees(Member):
    """Extremely randomised trees on columns and principal components of all rows."""

    def fit(self, training: Training) -> Parts:
        rng = check_random_state(training.seed)
        rows, codes = training.classes()
        n_trees = _N_TREES // (_ROUGHER if training.held_back else 1)
        if 0 < codes.sum() < len(codes):
            rows, codes = _at_most(rows, codes, _TREE_ROWS, rng)
            samples = [np.arange(len(rows))] * n_trees
        else:
            rows, codes, samples = _against_draws(rows, codes, training.rows("U"), n_trees, rng)
        leaf = max(1, len(samples[0]) // _LEAVES)
        trees = grow_trees(training.look.take(rows).trees, samples, codes, rng, leaf)
        return (Part("trees", Forest.from_trees(trees)),)


class BestSplits(Member):
    """A random forest on the columns: the best split of a few columns at a time, no components.

    Where a few of many columns matter, yes/no columns above all, random splits and components
    dilute them. On other tables it is far behind the other members, so it takes part only
    where held-out rows may weigh it.
    """

    def fit(self, training: Training) -> Parts:
        rng = check_random_state(training.seed)
        rows, codes = training.classes()
        n_trees = _N_BEST // (_ROUGHER if training.held_back else 1)
        samples = [rng.randint(0, len(rows), len(rows)) for _ in range(n_trees)]
        trees = grow_trees(training.look.take(rows).splits, samples, codes, rng, best=True)
        return (Part("splits", Forest.from_trees(trees)),)


def _against_draws(
    rows: Rows, codes: NDArray[np.int8], others: Rows, n_trees: int, rng: np.random.RandomState
) -> tuple[Rows, NDArray[np.int8], list[Rows]]:
    """The labelled class, for each tree against its own draw of unlabelled rows."""
    if len(rows) > _BAG_LABELS:
        rows = np.sort(rng.choice(rows, _BAG_LABELS, replace=False))
    own = len(rows)
    beside = min(max(_BAG_RATIO * own, _BAG_ROWS), max(len(others) // 3, 1))
    pool = others if len(others) <= _BAG_POOL else rng.choice(others, _BAG_POOL, replace=False)
    labelled = np.arange(own)
    samples = [
        np.concatenate([labelled, own + rng.choice(len(pool), beside, replace=False)])
        for _ in range(n_trees)
    ]
    classes = np.repeat(np.array([codes[0], 1 - codes[0]], dtype=np.int8), [own, len(pool)])
    return np.concatenate([rows, pool]), classes, samples


def _at_most(
    rows: Rows, codes: NDArray[np.int8], limit: int, rng: np.random.RandomState
) -> tuple[Rows, NDArray[np.int8]]:
    """A draw of labelled rows with both classes in it."""
    if len(rows) <= limit:
        return rows, codes
    chosen = np.sort(rng.choice(len(rows), limit, replace=False))
    rare = np.flatnonzero(codes == (codes.mean() < 0.5))
    chosen = np.union1d(chosen, rare[: limit // 10])
    return rows[chosen], codes[chosen]


class Processes(Member):
    """Gaussian-process regressions of the labels, averaged by evidence."""

    def fit(self, training: Training) -> Parts:
        rows, codes = training.classes()
        look = training.look.take(rows)
        names = ("filled", "unit", *(["whitened"] if len(look.view.lengths) else []))
        models = average_processes({name: getattr(look, name) for name in names}, codes == 1)
        return tuple(Part(name, model) for name, model in models.items())


class Boosting(Member):
    """Histogram gradient boosting on the labelled rows."""

    def fit(self, training: Training) -> Parts:
        rows, codes = training.classes()
        rougher = training.held_back and len(rows) < MANY_LABELS
        model = HistGradientBoostingClassifier(
            max_iter=_ROUNDS // (_ROUGHER if rougher else 1),
            early_stopping=False,
            random_state=training.seed,
        )
        model.fit(training.look.take(rows).splits, codes)
        return (Part("splits", Forest.from_boosting(model)),)


@dataclass(eq=False)
class Logistic(Member):
    """Logistic regression on one view."""

    reads: str = "squashed"
    strength: float = 1.0
    #: Whether classes weigh alike although both are labelled.
    even: bool = False

    def fit(self, training: Training) -> Parts:
        rows, codes = against(training)
        plain = training.look.view.is_sparse and self.reads == "squashed"
        reads = "raw" if plain else self.reads  # of sparse rows the columns as they are
        X = getattr(training.look.take(rows), reads)
        return (Part(reads, Slope(self._slope(X, codes, training))),)

    def _slope(self, X: Any, codes: NDArray[np.int8], training: Training) -> Floats:
        """Coefficients."""
        drawn = len(training.classes()[1]) < len(codes)  # one class is a draw of U
        balanced = "balanced" if drawn or self.even else None
        # against a draw of U there are many rows, and still a few labels
        strength = self.strength * (_DRAWN_STRENGTH if drawn and self.even else 1.0)
        model = LogisticRegression(C=strength, max_iter=1000, class_weight=balanced)
        slope = np.zeros(X.shape[1])
        # a word that none of these rows has keeps the slope 0; without it the search is shorter
        used = np.unique(X.indices) if sparse.issparse(X) else slice(None)
        slope[used] = model.fit(X[:, used], codes).coef_[0]
        return slope


class TextLinear(Logistic):
    """Logistic regressions on all components of text and vectors, and on the leading ones.

    Strongly regularised, each brought to deviation 1, summed. On four systematic reviews the sum is
    ahead of the first by .3 points and of the second by .2 (10 to 20 positives, three draws).
    """

    def fit(self, training: Training) -> Parts:
        rows, codes = against(training)
        latent = training.look.latent
        coef = np.zeros(latent.shape[1])
        for k in sorted({min(_LEADING, len(coef)), len(coef)}):
            slope = self._slope(latent[rows, :k], codes, training)
            coef[:k] += slope / (float((latent[:, :k] @ slope).std()) or 1.0)
        return (Part("latent", Slope(coef)),)


class NaiveBayes(Member):
    """Multinomial naive Bayes: best on some texts, far behind on others, so it is on trial."""

    def fit(self, training: Training) -> Parts:
        rows, codes = against(training)
        model = MultinomialNB(alpha=0.1).fit(training.look.raw[rows], codes)
        return (Part("raw", Slope(model.feature_log_prob_[1] - model.feature_log_prob_[0])),)


def against(training: Training) -> tuple[Rows, NDArray[np.int8]]:
    """Labelled rows by class; with one class labelled, that class against (a draw of) U."""
    rows, codes = training.classes()
    if 0 < codes.sum() < len(codes):
        return rows, codes
    others = training.rows("U")
    drawn = check_random_state(training.seed).permutation(others)[: 10 * len(rows) + 1000]
    beside = np.full(len(drawn), 1 - codes[0], dtype=np.int8)
    return np.concatenate([rows, np.sort(drawn)]), np.concatenate([codes, beside])


def fit_rivals(training: Training) -> dict[str, list[Parts]]:
    """What one would do instead, its parts without each fold.

    "labeled_only": the kernels by labelled rows alone (eta = 0), of the grid that is trained
    already; "paper": its selection, one candidate of that grid; "extra_trees": scikit-learn's
    on the labelled rows and the columns as they are.
    """
    found: dict[str, list[Parts]] = {}
    only_text = not training.look.view.is_sparse and not len(training.look.view.mean)
    kernels = MEMBERS["text_kernels" if only_text else "kernels"]
    grid = kernels.trained(training)
    both = "P" in training.folds.rows and "N" in training.folds.rows
    ways = {"paper": ("paper", "simple")}
    if both and "U" in training.folds.rows:
        ways["labeled_only"] = ("average", "pn")
    for name, way in ways.items():
        found[name] = kernels.parts(training, grid.choose(*way).fold_models())
    if both and not training.look.view.is_sparse:
        trees: list[Parts] = []
        columns = "latent" if only_text else "filled"
        for k in range(training.folds.n_folds):
            rows, codes = training.without(k).classes()
            samples = [np.arange(len(rows))] * _RIVAL_TREES
            rng = check_random_state(training.seed)
            held = getattr(training.look.take(rows), columns)
            grown = grow_trees(held, samples, codes, rng)
            trees.append((Part(columns, Forest.from_trees(grown)),))
        found["extra_trees"] = trees
    return found


def _few_of_one_class(situation: Situation) -> bool:
    few = not situation.both and situation.n_labeled <= _FEW_LABELS
    return few and not situation.is_sparse and situation.n_features > 1


def _leans_only(situation: Situation) -> bool:
    return situation.leans and not situation.many


#: All members, in the order of the report. Of tables that people keep many rank well by a weighted
#: sum of their columns; on others it is far behind, so "linear" is there only where held-out rows
#: may weigh it.
MEMBERS: dict[str, Any] = {
    member.name: member
    for member in (
        KernelAverage("kernels", "AUC risk with unlabelled rows, all settings averaged"),
        KernelAverage(
            "whitened",
            "the same risk on components of all rows, each of unit spread",
            _few_of_one_class,
            weight=0.5,
            reads="whitened",
        ),
        Trees(
            "trees",
            "thresholds and interactions; labelled rows, or one class against draws of U, "
            "columns and components",
            lambda s: not s.is_sparse,
        ),
        BestSplits(
            "forest",
            "a few columns that matter among many; best splits of labelled rows",
            _leans_only,
            weight=0.25,
        ),
        Processes(
            "processes",
            "smoothness chosen by evidence, which needs no held-out rows",
            lambda s: not s.is_sparse and s.both and s.n_labeled <= _PROCESS_LABELS,
            weight=0.75,
        ),
        Boosting(
            "boosting",
            "a hundred labels and more; weight by held-out rows",
            lambda s: not s.is_sparse and s.some,
            on_trial=True,
        ),
        Logistic(
            "linear",
            "a weighted sum of the columns; strongly regularised",
            _leans_only,
            weight=0.5,
            strength=0.1,
            even=True,
        ),
        Logistic(
            "logistic",
            "enough labels for a linear model, or a feature for each word",
            lambda s: s.many or s.is_sparse,
        ),
        Logistic(
            "latent",
            "words that occur together, from all rows",
            lambda s: s.is_sparse,
            reads="components",
            strength=10.0,
        ),
        NaiveBayes(
            "words",
            "counts of words by class; weight by held-out rows",
            lambda s: s.is_sparse and s.non_negative,
            on_trial=True,
        ),
        TextLinear(
            "text",
            "words that occur together, from all rows",
            strength=0.1,
            even=True,
            reads_latent=True,
        ),
        KernelAverage(
            "text_kernels",
            "AUC risk with unlabelled rows on the components of text",
            reads_latent=True,
            reads="latent",
        ),
    )
}
