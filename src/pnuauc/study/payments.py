"""Made-up card payments: the demo's table, with a truth that only its maker knows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc.io.cells import pa

_SHOPS = ("groceries", "fuel", "restaurant", "clothing", "electronics", "travel", "gift cards")
_NORMAL_SHOPS = (0.34, 0.16, 0.2, 0.12, 0.08, 0.07, 0.03)
_FRAUD_SHOPS = (0.2, 0.1, 0.12, 0.14, 0.2, 0.1, 0.14)
_COUNTRIES = ("home", "neighbour", "far away")


def make_payments(
    n: int = 6000, *, share: float = 0.06, labelled: int = 160, seed: int = 0
) -> tuple[Any, NDArray[np.bool_]]:
    """A table of ``n`` payments, ``labelled`` of them reviewed, and which ones are fraud.

    Reviewers looked at a random draw in which fraud is over-represented (a third), as happens when
    complaints are looked at first; all other payments have no label. Amounts are log-normal,
    hours circle around two in the afternoon (fraud: around eight in the evening, more spread); the
    card's home country, the kind of shop, the age of the account and the days since the card was
    last used carry the rest. Some cells are missing.

    Returns
    -------
    table : pyarrow.Table
        ``payment_id``, features, ``is_fraud`` (1, 0 or null).
    fraud : ndarray of bool, shape (n,)
    """
    rng = np.random.default_rng(seed)
    fraud = rng.random(n) < share
    amount = np.exp(rng.normal(np.where(fraud, 4.0, 3.3), np.where(fraud, 1.1, 0.9)))
    hour = np.where(fraud, rng.normal(20.0, 6.0, n), rng.normal(14.0, 4.5, n)) % 24
    day = rng.integers(0, 90, n)
    minutes = (day * 1440 + hour * 60).astype("timedelta64[m]")
    foreign = rng.random(n) < np.where(fraud, 0.35, 0.12)
    country = np.where(foreign, rng.choice(_COUNTRIES[1:], n), _COUNTRIES[0]).astype(object)
    shop = np.where(
        fraud, rng.choice(_SHOPS, n, p=_FRAUD_SHOPS), rng.choice(_SHOPS, n, p=_NORMAL_SHOPS)
    ).astype(object)
    age = rng.gamma(np.where(fraud, 2.0, 3.0), np.where(fraud, 350.0, 400.0))
    idle = rng.exponential(np.where(fraud, 9.0, 4.0))
    online = rng.random(n) < np.where(fraud, 0.65, 0.4)
    country[rng.random(n) < 0.03] = None
    idle[rng.random(n) < 0.08] = np.nan
    start = np.datetime64("2024-01-01T00:00", "m")
    table = pa.table(
        {
            "payment_id": [f"P{seed:02d}-{i:06d}" for i in range(n)],
            "time": pa.array((start + minutes).astype("datetime64[s]")),
            "amount": np.round(amount, 2),
            "shop": pa.array(shop, pa.string()),
            "country": pa.array(country, pa.string()),
            "online": online,
            "account_age_days": np.round(age),
            "days_since_last_use": pa.array(np.round(idle, 1), from_pandas=True),
            "is_fraud": pa.array(_review(fraud, labelled, rng), pa.int8()),
        }
    )
    return table, fraud


def _review(fraud: NDArray[np.bool_], labelled: int, rng: np.random.Generator) -> NDArray[Any]:
    labels = np.full(len(fraud), None, dtype=object)
    n_fraud = labelled // 3
    for value, n in ((1, n_fraud), (0, labelled - n_fraud)):
        rows = np.flatnonzero(fraud == value)
        labels[rng.choice(rows, min(n, len(rows)), replace=False)] = value
    return labels
