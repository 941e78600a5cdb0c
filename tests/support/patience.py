"""Tests of time and rates that another program on the machine may spoil: they get a second and a third attempt.

Attempts that failed are counted and reported at the end of the run (`summary`): a test that often needs a second
try hides a fault.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import ParamSpec

import pytest

ATTEMPTS = 3
SECOND_TRY = "SECOND TRY"
"""First words of a line of the summary."""

_failed: Counter[str] = Counter()
"""Attempts that failed, by test."""

_Arguments = ParamSpec("_Arguments")


def a_busy_machine_may_spoil(test: Callable[_Arguments, None]) -> Callable[_Arguments, None]:
    """Makes a test pass if one of three attempts does, and run alone. Only for what is exact on a quiet machine."""

    @pytest.mark.alone
    @functools.wraps(test)
    def patient(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> None:
        for _ in range(ATTEMPTS - 1):
            try:
                return test(*arguments, **named)
            except AssertionError as error:
                print(f"tried again after: {error}")
                _failed[os.environ.get("PYTEST_CURRENT_TEST", test.__name__).split(" ")[0]] += 1
        return test(*arguments, **named)

    return patient


def summary() -> Iterator[str]:
    """A line for each test that needed more than one attempt."""
    for test, count in sorted(_failed.items()):
        yield f"{SECOND_TRY} {test}: {count} of {ATTEMPTS} attempts failed"
