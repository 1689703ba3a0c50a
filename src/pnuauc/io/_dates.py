"""Dates written as text: the orders of day, month and year, and their moments."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc.io._arrow import pa, pc
from pnuauc.io._text_parts import Mask, fields, fraction, hours_of, integer, matches, to_numpy

__all__ = ["DATES", "DATE_ORDERS", "STRPTIME", "parse_dates"]

_TIME = (
    r"(?:(?:T|,?\s+)(?P<H>[0-9]{1,2})(?::(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})"
    r"(?:[.,](?P<f>[0-9]{1,9}))?)?)?\s*(?P<p>[aApP]\.?[mM]\.?)?)?"
    r"\s*(?P<z>Z|UTC|[-+][0-9]{2}:?(?:[0-9]{2})?)?$"
)
DATES = {
    "ymd": r"^(?P<y>[0-9]{4})[-/.](?P<m>[0-9]{1,2})(?:[-/.](?P<d>[0-9]{1,2}))?" + _TIME,
    "dmy": r"^(?P<d>[0-9]{1,2})[-/. ]+(?P<m>[0-9]{1,2})[-/. ]+(?P<y>[0-9]{4}|[0-9]{2})" + _TIME,
    "mdy": r"^(?P<m>[0-9]{1,2})[-/](?P<d>[0-9]{1,2})[-/](?P<y>[0-9]{4}|[0-9]{2})" + _TIME,
    "dby": r"^(?P<d>[0-9]{1,2})[-/. ]+(?P<b>[A-Za-z]{3,9})[-/., ]+(?P<y>[0-9]{4}|[0-9]{2})" + _TIME,
    "bdy": r"^(?P<b>[A-Za-z]{3,9})\.? (?P<d>[0-9]{1,2})(?:st|nd|rd|th)?,? (?P<y>[0-9]{4})" + _TIME,
}
#: What the command line and Python call two of them.
DATE_ORDERS = {"day-first": "dmy", "month-first": "mdy"}
#: Two digits of a year are believed only beside two of day and month: 1.2.10 is a version.
_SHORT_YEAR = r"^[0-9]{2}[-/. ][0-9]{2}[-/. ][0-9]{2}(?:[T ,]|$)"
_LONG_YEAR = r"[0-9]{4}"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
STRPTIME = re.compile(r"(?:%[dmyYHMSbBpjTFDR]|[-/:., T]|\\s)+")


def parse_dates(form: str, values: Any) -> tuple[NDArray[np.int64], Mask]:
    """Microseconds since 1970 (UTC) of tidy text, and which cells are such dates; shapes (n,).

    Cells without a time zone count as UTC.
    """
    if "%" in form:
        return _parse_strptime(form, values)
    parts, good = fields(values, DATES[form or "ymd"])
    month = _month_numbers(parts["b"]) if "b" in parts else integer(parts["m"])
    year, day = integer(parts["y"]), integer(parts["d"], default=1)
    if form in {"dmy", "mdy"}:
        good &= matches(_LONG_YEAR, values) | matches(_SHORT_YEAR, values)
        if form == "mdy":
            good &= ~matches(r"^[0-9]+\.", values)
    year = np.where(year < 69, year + 2000, np.where(year < 100, year + 1900, year))
    good &= (month >= 1) & (month <= 12) & (day >= 1)
    months = (12 * (year - 1970) + np.where(good, month, 1) - 1).astype("M8[M]")
    days = months.astype("M8[D]") + (day - 1).astype("m8[D]")
    good &= days < (months + np.timedelta64(1, "M")).astype("M8[D]")
    hour, minute, second = hours_of(parts), integer(parts["M"]), integer(parts["S"])
    good &= (hour < 24) & (minute < 60) & (second < 61)
    micros = np.rint(1e6 * fraction(parts["f"])).astype(np.int64)
    seconds = 3600 * hour + 60 * (minute - _offset_minutes(parts["z"])) + second
    total = days.astype(np.int64) * 86_400_000_000 + seconds * 1_000_000 + micros
    return np.where(good, total, 0), good


def _month_numbers(names: Any) -> NDArray[np.int64]:
    short = pc.utf8_slice_codeunits(pc.utf8_lower(names), 0, 3)
    places = pc.fill_null(pc.index_in(short, pa.array(_MONTHS, short.type)), -1)
    return np.asarray(places.to_numpy(zero_copy_only=False)).astype(np.int64) + 1


def _offset_minutes(zones: Any) -> NDArray[np.int64]:
    """Minutes east of Greenwich of Z, +02:00, -0530."""
    parts, _ = fields(zones, r"^(?P<s>[-+]?)(?P<h>[0-9]{2}):?(?P<m>[0-9]{2})?$")
    minutes = 60 * integer(parts["h"]) + integer(parts["m"])
    return np.where(to_numpy(pc.equal(parts["s"], "-")), -minutes, minutes)


def _parse_strptime(form: str, values: Any) -> tuple[NDArray[np.int64], Mask]:
    stamps = pc.strptime(values, format=form, unit="us", error_is_null=True)
    good = np.asarray(to_numpy(stamps.is_valid()), dtype=bool)
    return to_numpy(pc.fill_null(stamps.cast(pa.int64()), 0)), good
