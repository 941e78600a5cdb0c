"""The tables of guards fit the code."""

from __future__ import annotations

import pytest

from tests.mutants import ROOT, Mutant, mutants
from tests.mutants.__main__ import SUITES


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_a_guard_stands_where_the_table_says(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text("utf-8")
    assert text.count(mutant.old) == 1
    assert mutant.old != mutant.new


def test_each_table_has_its_tests() -> None:
    assert {mutant.table for mutant in mutants()} == set(SUITES)


def test_names_are_given_once() -> None:
    names = [mutant.name for mutant in mutants()]
    assert len(names) == len(set(names))
