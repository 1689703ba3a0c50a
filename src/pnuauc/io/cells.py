"""Text cells: how a column of them is written, and what they say as numbers, dates, yes or no.

A *form* is a short text that says how the cells of one column are written. It is chosen once, when
a table is fitted, by nearly all of its cells, and kept in the model: scoring reads every file
in the form that was fitted.

    number    ""          1.5, -2e3 (what every program writes)
              "n" + decimal mark + thousands mark: "n.,", "n,", "n,.", ...; percents, currencies
              "clock"     13:45, 13:45:30.5, 1:45 pm, in seconds
              "duration"  1 days 02:03:04, PT2H, in seconds
    date      "ymd", "dmy", "mdy", "dby", "bdy" (b: the month's name), or a strptime format
    boolean   ""          yes/no, true/false, ...
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnuauc._utils.arrays import Floats, Mask
from pnuauc._utils.extras import need
from pnuauc.exceptions import InputError

# pyarrow under its usual names, imported when something of it is first used: it is an extra.


class _Later:
    """A module that :func:`need` looks up whenever something of it is asked for."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(need(self._module), name)


pa: Any = _Later("pyarrow")
pc: Any = _Later("pyarrow.compute")


# Arrow text taken apart: which cells match a pattern, and the numbers in its named parts.


def matches(pattern: str, values: Any) -> Mask:
    return to_numpy(pc.fill_null(pc.match_substring_regex(values, pattern), False)).astype(bool)


def cast(values: Any) -> Floats:
    return to_numpy(values.cast(pa.float64()))


def to_numpy(values: Any) -> NDArray[Any]:
    if isinstance(values, pa.ChunkedArray):
        return np.asarray(values.to_numpy())
    return np.asarray(values.to_numpy(zero_copy_only=False))


def fields(values: Any, pattern: str) -> tuple[dict[str, Any], Mask]:
    """The named parts of each cell as arrow text ("" where it is not there), and which match."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    found = pc.extract_regex(values, pattern)
    good = np.asarray(found.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
    names = [found.type.field(i).name for i in range(found.type.num_fields)]
    parts = {name: pc.struct_field(found, [name]).cast(pa.string()) for name in names}
    return {name: pc.fill_null(part, "") for name, part in parts.items()}, good


def integer(texts: Any, default: int = 0) -> NDArray[np.int64]:
    filled = pc.if_else(pc.equal(texts, ""), str(default), texts)
    return np.asarray(filled.cast(pa.int64()).to_numpy(zero_copy_only=False))


def fraction(texts: Any) -> Floats:
    return cast(pc.binary_join_element_wise("0.", texts, "0", ""))


def hours_of(parts: dict[str, Any]) -> NDArray[np.int64]:
    """Hours on a clock of 24, whether or not a cell says am or pm."""
    hours = integer(parts["H"])
    if "p" not in parts:
        return hours
    half = np.asarray(pc.utf8_lower(pc.utf8_slice_codeunits(parts["p"], 0, 1)).to_pylist())
    hours = np.where((half == "a") & (hours == 12), 0, hours)
    return np.where((half == "p") & (hours < 12), hours + 12, hours)


# Dates written as text: the orders of day, month and year, and their moments.


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


#: Spellings of "nothing here", in every format.
MISSING_WORDS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
#: A form is that of a column if this share of its cells is written so; the rest is missing.
NEARLY_ALL = 0.9

_BLANK = r"[\s\x{00a0}\x{202f}\x{2009}]"
_MONEY = r"(?:[$€£¥₹₩₽₺]|R\$|USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK|kr\.?|Fr\.|zł)"
_EXPONENT = r"(?:[eE][-+]?[0-9]+)?"
_PLAIN = rf"^\s*[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+){_EXPONENT}|[iI]nf(?:inity)?)\s*$"
#: A code such as a zip number: a number would lose its zeros.
_CODE = r"^0[0-9]+$"
#: (decimal mark, thousands mark) in the order that settles a tie.
_MARKS = ((".", ""), (".", ","), (",", ""), (",", "."), (".", " "), (",", " "), (".", "'"))
_CLOCK = (
    r"^(?P<H>[0-9]{1,3}):(?P<M>[0-5][0-9])(?::(?P<S>[0-5][0-9])(?:[.,](?P<f>[0-9]{1,9}))?)?"
    r"\s*(?P<p>[aApP]\.?[mM]\.?)?$"
)
_DAYS = (
    r"^(?P<sign>[-+]?)(?:(?P<d>[0-9]{1,9}) days?(?:,? |$))?(?:(?P<minus>[-+]?)(?P<H>[0-9]{1,2})"
    r":(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:\.(?P<f>[0-9]{1,9}))?)?)?$"
)
_ISO_DURATION = (
    r"^(?P<sign>[-+]?)P(?:(?P<d>[0-9]{1,9})D)?(?:T(?:(?P<H>[0-9]{1,9})H)?(?:(?P<M>[0-9]{1,9})M)?"
    r"(?:(?P<S>[0-9]{1,9})(?:\.(?P<f>[0-9]{1,9}))?S)?)?$"
)
_YES_NO = (("true", "false"), ("yes", "no"), ("y", "n"), ("t", "f"), ("on", "off"))
_TRUE = {"true", "yes", "y", "t", "on", "1", "1.0"}
_FALSE = {"false", "no", "n", "f", "off", "0", "0.0"}


@dataclass(frozen=True)
class Reading:
    """How a column of text is to be read.

    odd : a cell that is not written so; such cells count as missing
    share : of the cells that are written so
    remark : what to report of it; None where no other reading is likely
    """

    kind: str
    form: str
    odd: str | None
    share: float
    remark: str | None


def is_vector(kind: Any) -> bool:
    """Whether an arrow type is a list of numbers."""
    types = pa.types
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return lists and is_number(kind.value_type)


def is_text(kind: Any) -> bool:
    """Whether an arrow type is text."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_number(kind: Any) -> bool:
    """Whether an arrow type is one of whole, floating or decimal numbers."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def tidy(values: Any) -> Any:
    """Text without blanks around it; what means "nothing here" is null."""
    if pa.types.is_string_view(values.type):
        values = values.cast(pa.large_string())
    values = pc.utf8_trim_whitespace(values)
    empty = pc.is_in(values, pa.array(MISSING_WORDS, values.type))
    if not pc.any(empty).as_py():
        return values
    return pc.if_else(empty, pa.scalar(None, values.type), values)


def recognise(
    values: Any, *, decimal: str | None = None, date_format: str | None = None, name: str = ""
) -> Reading | None:
    """The form of nearly all cells of tidy text; None: they are categories, names or free text.

    decimal : "." or "," where it is known
    date_format : "day-first", "month-first" or a strptime format where it is known
    name : of the column, for the question whether 01/02/2024 is in January or February
    """
    present = values.drop_null()
    counted = pc.value_counts(present)
    cells, weights = counted.field(0), counted.field(1).to_numpy(zero_copy_only=False)
    digits = matches("[0-9]", cells)
    if weights[digits].sum() < NEARLY_ALL * weights.sum() and not matches("[iI]nf", cells).any():
        return _yes_no_form(cells, weights)  # words: no form of numbers or dates need be tried
    given = date_format is not None and "%" in date_format  # 20240131 is a number to anyone else
    return (
        (_date_form(cells, weights, date_format, present, name) if given else None)
        or _numbers_form(cells, weights, decimal)
        or _other_form(cells, weights)
        or _date_form(cells, weights, date_format, present, name)
    )


def _reading(
    kind: str, form: str, good: Mask, cells: Any, weights: Any, words: str
) -> Reading | None:
    share = float(weights[good].sum() / weights.sum()) if len(weights) else 0.0
    if share < NEARLY_ALL:
        return None
    odd = None if good.all() else cells[int(np.flatnonzero(~good)[0])].as_py()
    example = cells[int(np.flatnonzero(good)[0])].as_py()
    return Reading(kind, form, odd, share, f"{words}, such as {example!r}" if words else None)


# ---------------------------------------------------------------------------- numbers


def _pattern(decimal: str, thousands: str) -> str:
    """Numbers with these marks, a sign, a percent sign or a currency before or after."""
    mark = re.escape(decimal)
    group = _BLANK if thousands == " " else "[']" if thousands == "'" else re.escape(thousands)
    whole = rf"(?:[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+|[0-9]+)" if thousands else "[0-9]+"
    number = rf"(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+){_EXPONENT}"
    sign, money = r"[-+\x{2212}]?", rf"{_MONEY}{_BLANK}*"
    return rf"^(?:{sign}(?:{money})?|{money}{sign}){number}{_BLANK}*(?:%|{_MONEY})?$"


def _numbers_form(cells: Any, weights: Any, decimal: str | None) -> Reading | None:
    """The marks by which most cells are numbers; leading zeros make codes of them."""
    if not len(weights):
        return None
    plain = matches(_PLAIN, cells)
    if plain.any() and _are_codes(cells, weights):
        return None
    form, good = _best_marks(cells, weights, decimal, plain)
    if decimal == "," and weights[good].sum() < NEARLY_ALL * weights.sum():
        # dots that are no thousands marks are decimal points
        form, good = _best_marks(cells, weights, ".", plain)
    if decimal == "," and not matches("[.,'%]|" + _MONEY + "|" + _BLANK, cells).any():
        form, good = "", plain
    return _reading("number", form, good, cells, weights, _number_words(form, cells, good))


def _best_marks(cells: Any, weights: Any, decimal: str | None, plain: Mask) -> tuple[str, Mask]:
    known = [marks for marks in _MARKS if decimal in (None, marks[0])]
    candidates = [(f"n{a}{b}", matches(_pattern(a, b), cells)) for a, b in known]
    if decimal != ",":
        candidates.insert(0, ("", plain))
    return max(candidates, key=lambda c: weights[c[1]].sum())


def _number_words(form: str, cells: Any, good: Mask) -> str:
    if not form:
        return ""
    shown = cells.filter(pa.array(good))
    signs = {"percents": "%", "amounts of money": _MONEY}
    found = [word for word, sign in signs.items() if matches(sign, shown).any()]
    word = "a decimal comma" if form[1] == "," else "thousands marks" if form[2:] else ""
    return f"{' and '.join(found) or 'numbers'}{f' with {word}' if word else ''}"


def _are_codes(cells: Any, weights: Any) -> bool:
    """Whether zeros in front belong to the value: 1% of the cells have them or all are as long."""
    zeros = matches(_CODE, cells)
    if not zeros.any():
        return False
    lengths = pc.min_max(pc.utf8_length(cells)).as_py()
    digits = matches("^[0-9]+$", cells)
    return bool(
        weights[zeros].sum() >= 0.01 * weights.sum()
        or (digits.all() and lengths["min"] == lengths["max"])
    )


def table_decimal(columns: Iterable[Any]) -> str | None:
    """ "," if a column of text can only be read with decimal commas, which then holds for all."""
    sure = r"(?:[0-9],[0-9]{1,2}$|[0-9],[0-9]{1,2}[^0-9]|[0-9]{4},[0-9]|^[-+]?0,|,[0-9]{4})"
    for values in columns:
        head = tidy(values.slice(0, 1000)).drop_null()
        if not len(head) or not matches(",", head).any():
            continue
        comma = matches(_pattern(",", ""), head) | matches(_pattern(",", "."), head)
        if comma.mean() >= NEARLY_ALL and (comma & matches(sure, head)).mean() >= 0.1:
            return ","
    return None


def parse_numbers(form: str, values: Any) -> Floats:
    """Numbers of tidy text, NaN where a cell is missing or written otherwise; shape (n,)."""
    if form == "clock":
        return _seconds(values, _CLOCK)
    if form == "duration":
        days = _seconds(values, _DAYS)
        return np.where(np.isnan(days), _seconds(values, _ISO_DURATION), days)
    pattern = _pattern(form[1], form[2:]) if form else _PLAIN
    good = pc.match_substring_regex(values, pattern)
    values = pc.if_else(good, values, pa.scalar(None, values.type))
    if not form:
        # arrow's parser knows no leading plus
        return cast(pc.replace_substring_regex(values, pattern=r"^\+", replacement=""))
    percent = matches("%", values)
    values = pc.replace_substring_regex(values, pattern=rf"{_MONEY}|{_BLANK}|[%+']", replacement="")
    values = pc.replace_substring(values, pattern="\u2212", replacement="-")
    if form[2:] in {",", "."}:
        values = pc.replace_substring(values, pattern=form[2:], replacement="")
    if form[1] == ",":
        values = pc.replace_substring(values, pattern=",", replacement=".")
    numbers = cast(values)
    return np.where(percent, numbers / 100.0, numbers)


def _seconds(values: Any, pattern: str) -> Floats:
    parts, good = fields(values, pattern)
    whole = 3600 * hours_of(parts) + 60 * integer(parts["M"]) + integer(parts["S"])
    total = whole + fraction(parts["f"])
    if "d" in parts:
        equal = pc.equal
        minus, days = to_numpy(equal(parts["sign"], "-")), 86_400.0 * integer(parts["d"])
        minus_clock = minus  # ISO negates the whole
        if "minus" in parts:
            # pandas writes -2 days +01:00:00: only the days are negative; without days it is all
            bare = to_numpy(equal(parts["d"], ""))
            minus_clock = to_numpy(equal(parts["minus"], "-")) | (minus & bare)
        total = np.where(minus, -days, days) + np.where(minus_clock, -total, total)
    return np.where(good & matches("[0-9]", values), total, np.nan)


def as_typed(values: Any) -> Any:
    """Tidy text as numbers, booleans or dates where every cell is one, else as it is."""
    present = values.drop_null()
    if not len(present):
        return values
    if matches(_PLAIN, present.slice(0, 100)).all() and matches(_PLAIN, present).all():
        if matches(_CODE, present).any():
            return values
        unsigned = pc.replace_substring_regex(values, pattern=r"^\+", replacement="")
        whole = matches("^[-+]?[0-9]{1,18}$", present).all()
        return unsigned.cast(pa.int64() if whole else pa.float64())
    if pc.all(pc.is_in(pc.utf8_lower(present), pa.array(["true", "false"], values.type))).as_py():
        return pc.equal(pc.utf8_lower(values), "true")
    if parse_dates("ymd", present.slice(0, 100))[1].all():
        micros, known = parse_dates("ymd", values)
        if known.sum() == len(present):
            return pa.chunked_array([pa.array(micros, pa.timestamp("us"), mask=~known)])
    return values


# ---------------------------------------------------------------------------- yes, no, clocks


def _other_form(cells: Any, weights: Any) -> Reading | None:
    for form, words in (("clock", "times of the day"), ("duration", "durations")):
        good = ~np.isnan(parse_numbers(form, cells))
        reading = _reading("number", form, good, cells, weights, words)
        if reading is not None:
            return reading
    return _yes_no_form(cells, weights)


def _yes_no_form(cells: Any, weights: Any) -> Reading | None:
    if not 0 < len(weights) <= 20:
        return None
    lowered = np.asarray(pc.utf8_lower(cells).to_pylist())
    for pair in _YES_NO:
        good = np.isin(lowered, pair)
        if len(set(lowered[good])) == 2:
            return _reading("boolean", "", good, cells, weights, "yes or no")
    return None


def parse_booleans(values: Any) -> Floats:
    """1, 0, or NaN where tidy text is missing or neither; shape (n,)."""
    words = pc.utf8_lower(values)
    true, false = (
        to_numpy(pc.is_in(words, pa.array(sorted(known), words.type)).cast(pa.uint8()))
        for known in (_TRUE, _FALSE)
    )
    return np.where(true == 1, 1.0, np.where(false == 1, 0.0, np.nan))


# ---------------------------------------------------------------------------- dates


def _date_form(
    cells: Any, weights: Any, date_format: str | None, present: Any, name: str
) -> Reading | None:
    if date_format is not None and date_format not in DATE_ORDERS:
        good = parse_dates(date_format, cells)[1]
        words = f"dates written {date_format}"
        return _reading("date", date_format, good, cells, weights, words)
    found = {form: parse_dates(form, cells)[1] for form in DATES}
    best = max(found, key=lambda form: weights[found[form]].sum())
    if best not in {"dmy", "mdy"}:
        words = "dates" if best != "ymd" else ""
        return _reading("date", best, found[best], cells, weights, words)
    day, month = (weights[found[form]].sum() for form in ("dmy", "mdy"))
    if max(day, month) < NEARLY_ALL * weights.sum():
        return None
    if date_format is not None:
        best = DATE_ORDERS[date_format]
    elif day == month:
        day, month = (parse_dates(form, present)[1].sum() for form in ("dmy", "mdy"))
        if day == month:
            shown = cells[int(np.flatnonzero(found[best])[0])].as_py()
            raise InputError(
                f"Column '{name}' holds dates such as '{shown}', which do not say whether the day "
                "or the month comes first; date_format must be 'day-first' or 'month-first'.",
                about="dates",
            )
        best = "dmy" if day > month else "mdy"
    order = "day first" if best == "dmy" else "month first"
    return _reading("date", best, found[best], cells, weights, f"dates with the {order}")


def is_form(kind: str, form: str) -> bool:
    """Whether a column of that kind can have the form; whoever wrote it down."""
    if kind == "date":
        return form in {"", *DATES} or (
            "%" in form and len(form) <= 60 and STRPTIME.fullmatch(form) is not None
        )
    if kind == "number":
        return form in {"", "clock", "duration", *(f"n{a}{b}" for a, b in _MARKS)}
    return form == ""
