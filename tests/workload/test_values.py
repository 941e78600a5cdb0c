"""Numbers, lists and ranges as vdbench reads them, and its known bugs as errors that say so."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.vdbench.lexer import Parameter, hide_quoted
from linerate.workload.vdbench.tables import Form, Keyword
from linerate.workload.vdbench.values import CURVE_RATE, MAX_RATE, Value, read_value


def value(text: str, form: Form, problems: Problems, *, lenient: bool = False) -> Value | None:
    parameter = Parameter(SourceLocation("f", 1), "key", hide_quoted(text))
    return read_value(parameter, Keyword("key", "value", "", form=form), problems, lenient=lenient)


def numbers(text: str, form: Form = Form.NUMBERS, *, lenient: bool = False) -> tuple[float, ...]:
    problems = Problems()
    read = value(text, form, problems, lenient=lenient)
    problems.raise_if_any()
    assert read is not None
    return read.numbers


def error(text: str, form: Form = Form.NUMBERS) -> str:
    problems = Problems()
    assert value(text, form, problems) is None
    return " | ".join(problems.errors[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4k", 4096),
        ("4K", 4096),
        ("10gb", 10 << 30),
        ("1.5m", 1.5 * (1 << 20)),
        ("2t", 2 << 40),
        ("24h", 86400),
        ("10%", -10),
        ("8192", 8192),
        (".5", 0.5),
        ("-1", -1),
    ],
)
def test_scalars(text: str, expected: float) -> None:
    assert numbers(text) == (expected,)


@pytest.mark.parametrize(("text", "expected"), [("5m", 300), ("2h", 7200), ("90", 90)])
def test_m_means_minutes_for_times(text: str, expected: float) -> None:
    assert numbers(text, Form.TIMES) == (expected,)


def test_seconds_have_no_suffix_in_strict_reading() -> None:
    assert "'30s' is not a number" in error("30s", Form.TIMES)
    assert numbers("30s", Form.TIMES, lenient=True) == (30,)


def test_rates_know_two_words() -> None:
    assert numbers("(MAX,curve,100,50%)", Form.RATES) == (MAX_RATE, CURVE_RATE, 100, -50)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(10-100,10)", (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)),
        ("(10-95,30)", (10, 40, 70)),
        ("(1-64,d)", (1, 2, 4, 8, 16, 32, 64)),
        ("(1-50,d)", (1, 2, 4, 8, 16, 32)),
        ("(64-1,d)", (64, 32, 16, 8, 4, 2, 1)),
        ("(4k-16k,4k,1m)", (4096, 8192, 12288, 16384, 1 << 20)),
        ("(5)", (5,)),
    ],
)
def test_number_lists_and_ranges(text: str, expected: tuple[float, ...]) -> None:
    assert numbers(text) == expected


def test_a_descending_range_is_an_error_that_says_what_vdbench_does() -> None:
    assert "the range goes down; vdbench would use 100 alone" in error("(100-0,10)")
    assert numbers("(100-0,50)", lenient=True) == (100, 50, 0)


@given(first=st.integers(1, 1 << 40), last=st.integers(1, 1 << 40))
def test_d_doubles_or_halves_up_to_the_last_number(first: int, last: int) -> None:
    """The rule of vdbench's guide: (1-64,d) doubles, and (64-1,d) halves."""
    found = numbers(f"({first}-{last},d)")
    factor = 2.0 if first <= last else 0.5
    assert found[0] == first
    assert all(after == before * factor for before, after in pairwise(found))
    low, high = sorted((first, last))
    assert all(low <= number <= high for number in found)
    assert not low <= found[-1] * factor <= high, "there would be one more"


@given(first=st.integers(0, 1000), last=st.integers(0, 1000), step=st.integers(1, 300))
def test_a_range_that_goes_down_by_a_step_has_every_number_when_read_leniently(
    first: int, last: int, step: int
) -> None:
    assume(last < first)
    expected = tuple(range(first, last - 1, -step))
    assert numbers(f"({first}-{last},{step})", lenient=True) == expected
    assert numbers(f"({first}-{last},-{step})", lenient=True) == expected


def test_steps_that_vdbench_does_not_know_are_read_leniently_with_a_notice() -> None:
    assert numbers("(64k-4k,/4)", lenient=True) == (65536, 16384, 4096)
    assert numbers("(10-3,/2)", lenient=True) == (10, 5)
    problems = Problems()
    assert value("(64-16,-16)", Form.NUMBERS, problems, lenient=True) is not None
    (notice,) = problems.notices
    assert "vdbench fails at the step -16" in notice.message
    assert "vdbench has no step -16" in error("(64-16,-16)")
    assert "vdbench has no step /2 | write (64-1,d) to halve" in error("(64-16,/2)")


@pytest.mark.parametrize("text", ["(4-64,/2)", "(64-4,/1)", "(64-4,/0)", "(64-0,/2)", "(4-64,-4)"])
def test_a_step_that_leads_nowhere_is_wrong_in_lenient_reading_too(text: str) -> None:
    problems = Problems()
    assert value(text, Form.NUMBERS, problems, lenient=True) is None
    assert problems.errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(10-100)", "the range 10-100 has no step | write (first-last,step)"),
        ("(1,64,d)", "d comes after a range | write (1-64,d), not (1,64,d)"),
        ("(1-10,0)", "the step 0 is not above 0"),
        ("(0-64,d)", "doubling and halving need numbers above 0"),
        ("(1-1000000,1)", "more than 10240 values"),
        ("fast", "'fast' is not a number"),
        ("(1,fast)", "'fast' is not a number"),
        ("4kk", "'4kk' is not a number"),
        ("()", "an empty list"),
        ("((1,2))", "one pair of parentheses"),
        ("1e999", "too large"),
    ],
)
def test_wrong_numbers(text: str, message: str) -> None:
    assert message in error(text)


def names(text: str) -> tuple[str, ...]:
    problems = Problems()
    read = value(text, Form.NAMES, problems)
    problems.raise_if_any()
    assert read is not None
    return read.texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(sd1-sd3)", ("sd1", "sd2", "sd3")),
        ("(sd8-sd10,x)", ("sd8", "sd9", "sd10", "x")),
        ("wd_20-80seq", ("wd_20-80seq",)),
        ('("wd-a",b)', ("wd-a", "b")),
        ("sd*", ("sd*",)),
        ("(5)", ("5",)),
    ],
)
def test_names(text: str, expected: tuple[str, ...]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize("text", ["(sd3-sd1)", "(sd1-wd3)", "(sd01-sd03)", "(a-b)", "(sd1-3)"])
def test_ranges_of_names_need_one_prefix_and_rising_numbers(text: str) -> None:
    assert "no range of names" in error(text, Form.NAMES)


def test_texts_keep_their_dashes_and_numbers() -> None:
    problems = Problems()
    read = value("(host-1,5220h)", Form.TEXT, problems)
    assert read is not None
    assert read.texts == ("host-1", "5220h")
