"""Words that people write into label columns, and the roles they name without being asked."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

__all__ = ["PLAIN", "nearest", "word_role"]

#: Words that name the class one looks for.
_POSITIVE = frozenset((
    "yes", "y", "true", "t", "positive", "pos", "p", "fraud", "fraudulent", "fraudster",
    "scam", "spam", "malicious", "malware", "phishing", "attack", "anomaly", "anomalous",
    "outlier", "abnormal", "suspicious", "malignant", "cancer", "sick", "ill", "diseased",
    "disease", "infected", "affected", "case", "patient", "event", "hit", "present",
    "detected", "relevant", "active", "toxic", "churn", "churned", "default", "defaulted",
    "defective", "faulty", "responder", "converted",
))  # fmt: skip
#: Words that name everybody else.
_NEGATIVE = frozenset((
    "no", "n", "false", "f", "negative", "neg", "legit", "legitimate", "genuine", "ok", "okay",
    "normal", "regular", "clean", "ham", "benign", "healthy", "well", "unaffected",
    "uninfected", "control", "inlier", "absent", "undetected", "irrelevant", "inactive",
    "nontoxic", "harmless", "innocent", "honest", "retained",
))  # fmt: skip
#: Words for a row that nobody has looked at.
_UNLABELED = frozenset((
    "unknown", "unlabeled", "unlabelled", "unchecked", "unreviewed", "unverified", "undecided",
    "pending", "open", "todo", "tbd", "missing", "na", "n/a", "nan", "null", "none", "?", "??",
    "-", "--", ".", "<na>", "#n/a", "not checked", "not reviewed", "not labelled",
    "not labeled", "to do", "not looked at",
))  # fmt: skip
_PREFIXES = ("not ", "non ", "non-", "no ", "not-", "no-", "not_", "non_", "no_")
#: Pairs that nobody reads otherwise: they need no word of explanation.
PLAIN = frozenset((
    "yes", "no", "y", "n", "true", "false", "t", "f", "positive", "negative", "pos", "neg", "p",
))  # fmt: skip


def word_role(value: Any, others: Iterable[Any]) -> int | None:
    """1, 0 or -1 for a word that says so by itself, or as "not" another of the values; else None.

    Examples
    --------
    >>> word_role("Fraud", []), word_role("legit", []), word_role("?", []), word_role("cat", [])
    (1, 0, -1, None)
    >>> word_role("non-member", ["member"]), word_role("member", ["non-member"])
    (0, 1)
    """
    if not isinstance(value, str):
        return None
    word = _plain(value)
    if word in _UNLABELED:
        return -1
    if word in _POSITIVE:
        return 1
    if word in _NEGATIVE:
        return 0
    rest = {_plain(other) for other in others if isinstance(other, str)} - {word}
    if any(word == prefix + other for prefix in _PREFIXES for other in rest):
        return 0
    if any(other == prefix + word for prefix in _PREFIXES for other in rest):
        return 1
    stem = next((word.removeprefix(p) for p in _PREFIXES if word.startswith(p)), None)
    return 0 if stem in _POSITIVE else None


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def nearest(value: Any, known: Iterable[Any]) -> Any:
    """The one of ``known`` that is spelled most like ``value``, or None if none is at all like it.

    Examples
    --------
    >>> nearest("Yes", ["yes", "no"]), nearest("fruad", ["fraud", "ok"]), nearest("x", ["yes"])
    ('yes', 'fraud', None)
    """
    spelled = {_plain(str(item)): item for item in known}
    close = difflib.get_close_matches(_plain(str(value)), list(spelled), n=1, cutoff=0.6)
    return spelled[close[0]] if close else None
