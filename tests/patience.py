"""What a test says about time and rates another program on the machine may spoil: then it is tried again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

import pytest

ATTEMPTS = 3

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
        return test(*arguments, **named)

    return patient
