"""The table of guards fits the code."""

from __future__ import annotations

import pytest

from tests.mutants import ROOT, Mutant, mutants
from tests.mutants.__main__ import suite_of


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_a_guard_stands_where_the_table_says(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text("utf-8")
    assert text.count(mutant.old) == 1
    assert mutant.old != mutant.new


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_a_guard_has_tests(mutant: Mutant) -> None:
    assert suite_of(mutant).tests


def test_names_are_given_once() -> None:
    names = [mutant.name for mutant in mutants()]
    assert len(names) == len(set(names))
