"""Values: scalars, lists in parentheses, ranges of names and of numbers.

A number may carry k, m, g or t (1024-based) with an optional b, h (3600 times) or %; a percentage becomes a
negative number, as vdbench does to distinguish `10%` from `10`. For times, m means minutes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.vdbench.lexer import Parameter, unhide
from linerate.workload.vdbench.tables import Form, Keyword

MAX_RATE = 9_999_988.0
"""vdbench's number for iorate=max."""
CURVE_RATE = 9_999_977.0
"""vdbench's number for iorate=curve."""
_RATE_WORDS = {"max": MAX_RATE, "curve": CURVE_RATE, "999988": MAX_RATE, "999977": CURVE_RATE}

_MOST_VALUES = 10_240
"""vdbench's limit for one list."""
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)([kmgt]b?|[hs%])?", re.IGNORECASE | re.ASCII)
_FACTORS = {"": 1.0, "k": 2.0**10, "m": 2.0**20, "g": 2.0**30, "t": 2.0**40, "h": 3600.0, "%": -1.0, "s": 1.0}
_NAME_RANGE = re.compile(r"(.*?)(\d{1,9})-(.*?)(\d{1,9})", re.ASCII | re.DOTALL)

_NUMBER_FORMS = "a number, or one with k, m, g, t, h or %"
_RANGE_FORMS = "(first-last,step), (1-64,d) to double, (64-1,d) to halve"


@dataclass(frozen=True, slots=True)
class Value:
    """A parameter's value: `numbers` or `texts`, in order, ranges expanded."""

    place: SourceLocation
    shown: str
    """`keyword=value` as typed, for messages."""
    numbers: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()


class BadValueError(Exception):
    """A value that does not have the accepted form; args: what is wrong, what is right."""


def matches(pattern: str, name: str) -> bool:
    """Whether a name, or a prefix with a trailing *, means `name`."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def read_value(parameter: Parameter, keyword: Keyword, problems: Problems, *, lenient: bool) -> Value | None:
    """The value by its keyword's form, or None after a problem was noted."""
    reader = _ValueReader(parameter, keyword.form, problems, lenient)
    accepted = f"write {keyword.name}={keyword.accepted}"
    try:
        return reader.read()
    except BadValueError as error:
        what, right = error.args
        problems.error(parameter.place, f"{parameter.text}: {what}", right or accepted)
        return None


class _ValueReader:
    def __init__(self, parameter: Parameter, form: Form, problems: Problems, lenient: bool) -> None:
        self._parameter = parameter
        self._form = form
        self._problems = problems
        self._lenient = lenient

    def read(self) -> Value:
        value = self._parameter.value
        items = [value]
        listed = value.startswith("(")
        if listed:
            if not value.endswith(")") or "(" in value[1:] or ")" in value[1:-1]:
                raise BadValueError("a list has one pair of parentheses", "write (value,value)")
            items = [item for item in value[1:-1].split(",") if item]
        elif "(" in value:
            raise BadValueError("a list starts right after the =", "write keyword=(value,value)")
        if not items:
            raise BadValueError("an empty list", "")
        place, shown = self._parameter.place, self._parameter.text
        if self._form is Form.NAMES and listed:
            return Value(place, shown, texts=tuple(name for item in items for name in _names(item)))
        if self._form in (Form.TEXT, Form.NAMES):
            return Value(place, shown, texts=tuple(map(unhide, items)))
        if self._form is Form.WORDS_OR_NUMBERS:
            return self._words_or_numbers(items)
        return Value(place, shown, numbers=tuple(self._number_list(items, listed)))

    def _words_or_numbers(self, items: list[str]) -> Value:
        texts = tuple(map(unhide, items))
        numbers = tuple(math.nan if (n := self._plain_number(text)) is None else n for text in texts)
        return Value(self._parameter.place, self._parameter.text, numbers, texts)

    def _number_list(self, items: list[str], listed: bool) -> list[float]:
        numbers: list[float] = []
        index = 0
        while index < len(items):
            item = items[index]
            index += 1
            first, dash, last = item.partition("-")
            if listed and dash and first:
                if index == len(items):
                    raise BadValueError(f"the range {item} has no step", f"write {_RANGE_FORMS}")
                numbers += self._range(first, last, items[index])
                index += 1
            elif item.lower() == "d":
                raise BadValueError("d comes after a range", "write (1-64,d), not (1,64,d)")
            else:
                numbers.append(self._number(item))
            if len(numbers) > _MOST_VALUES:
                raise BadValueError(f"more than {_MOST_VALUES} values", "")
        return numbers

    def _range(self, first_text: str, last_text: str, step_text: str) -> list[float]:
        first, last = self._number(first_text), self._number(last_text)
        if step_text.lower() == "d":
            return _doubling(first, last)
        if step_text.startswith("/"):
            self._not_of_vdbench(step_text, "write (64-1,d) to halve")
            return _dividing(first, last, self._number(step_text[1:]))
        step = self._number(step_text)
        if step < 0 and last < first:
            self._not_of_vdbench(step_text, "list the values, or write (64-1,d) to halve")
            step = -step
        if step <= 0:
            raise BadValueError(f"the step {step_text} is not above 0", f"write {_RANGE_FORMS}")
        if abs(last - first) / step > _MOST_VALUES:
            raise BadValueError(f"more than {_MOST_VALUES} values", "")
        if last < first:
            if not self._lenient:
                raise BadValueError(
                    f"the range goes down; vdbench would use {first_text} alone",
                    "list the values, or read leniently to get them all",
                )
            if not step_text.startswith("-"):
                self._problems.notice(
                    self._parameter.place,
                    f"{self._parameter.text}: counted down; vdbench would use {first_text} alone",
                )
            step = -step
        return [first + step * index for index in range(int((last - first) / step + 1e-9) + 1)]

    def _not_of_vdbench(self, step_text: str, accepted: str) -> None:
        """A step of a range that goes down, as people write it: vdbench ends with an error of its own."""
        if not self._lenient:
            raise BadValueError(f"vdbench has no step {step_text}", accepted)
        self._problems.notice(
            self._parameter.place,
            f"{self._parameter.text}: read as a range that goes down; vdbench fails at the step {step_text}",
        )

    def _number(self, item: str) -> float:
        text = unhide(item)
        if self._form is Form.RATES and text.lower() in _RATE_WORDS:
            return _RATE_WORDS[text.lower()]
        number = self._plain_number(text)
        if number is None:
            raise BadValueError(f"{text!r} is not {_NUMBER_FORMS}", "")
        return number

    def _plain_number(self, text: str) -> float | None:
        match = _NUMBER.fullmatch(text)
        if match is None:
            return None
        suffix = (match.group(2) or "").lower()[:1]
        if suffix == "s":
            if self._form is not Form.TIMES or not self._lenient:
                return None
            self._problems.notice(
                self._parameter.place, f"{self._parameter.text}: read as seconds; vdbench knows no suffix s"
            )
        factor = 60.0 if suffix == "m" and self._form is Form.TIMES else _FACTORS[suffix]
        number = float(match.group(1)) * factor
        if not math.isfinite(number):
            raise BadValueError(f"{text} is too large", "")
        return number


def _doubling(first: float, last: float) -> list[float]:
    if first <= 0 or last <= 0:
        raise BadValueError("doubling and halving need numbers above 0", f"write {_RANGE_FORMS}")
    factor = 2.0 if first <= last else 0.5
    numbers = [first]
    while (numbers[-1] * factor <= last) if factor > 1 else (numbers[-1] * factor >= last):
        numbers.append(numbers[-1] * factor)
    return numbers


def _dividing(first: float, last: float, divisor: float) -> list[float]:
    """Down from `first`, divided again and again, as long as it is not below `last`."""
    if not (first >= last > 0 and divisor > 1):
        raise BadValueError(
            "dividing goes down to a number above 0, by more than 1", "write (64-1,/2), or (64-1,d)"
        )
    numbers = [first]
    while numbers[-1] / divisor >= last and len(numbers) <= _MOST_VALUES:
        numbers.append(numbers[-1] / divisor)
    return numbers


def _names(item: str) -> list[str]:
    """One name, or the names of a range such as sd1-sd8."""
    if "-" not in item:
        return [unhide(item)]
    accepted = "write (sd1-sd8): same letters, rising numbers, no leading zeros; quote a name that holds a -"
    match = _NAME_RANGE.fullmatch(item)
    if match is None:
        raise BadValueError(f"{unhide(item)} is no range of names", accepted)
    prefix, first, other, last = match.groups()
    leading_zero = first != str(int(first)) or last != str(int(last))
    if prefix != other or leading_zero or int(first) > int(last):
        raise BadValueError(f"{unhide(item)} is no range of names", accepted)
    if int(last) - int(first) >= _MOST_VALUES:
        raise BadValueError(f"more than {_MOST_VALUES} names", accepted)
    return [f"{unhide(prefix)}{number}" for number in range(int(first), int(last) + 1)]
