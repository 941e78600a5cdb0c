"""The rules: complete, in agreement with claims and settings, each with a planted fault; their tables in the docs."""

from __future__ import annotations

import re

import pytest
from linerate.advice import QUESTIONS, AdviceRule, rules
from linerate.advice.rule import FactTest
from linerate.analysis.verdict import shipped_claims
from linerate.host import catalogue as host_catalogue
from linerate.settings import find
from pydantic import ValidationError

from tests.advice.planted import linux_faults, switch_faults, windows_faults
from tests.advice.tables import PAGE, current
from tests.advice.test_documents import CONVERGED_FAULTS, STUDY_RULES, TOPOLOGY_FAULTS


def test_rules_are_numbered_and_have_names_of_their_own() -> None:
    assert [rule.number for rule in rules()] == list(range(1, 52))
    assert len({rule.id for rule in rules()}) == 51


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)
def test_a_rule_names_claims_and_settings_that_exist(rule: AdviceRule) -> None:
    assert set(rule.claims) <= shipped_claims().keys()
    for check in rule.checks:
        assert bool(check.setting) == bool(check.value)
        if check.setting:
            find(check.setting).parse(check.value)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)
def test_texts_are_sentences(rule: AdviceRule) -> None:
    assert rule.why.endswith((".", "?"))
    assert not rule.title.endswith(".")
    for check in rule.checks:
        assert check.mend[0].islower() or check.mend.startswith("New-")
        assert not check.mend.endswith(".")


def test_every_rule_has_a_planted_fault() -> None:
    tested = {fault.rule for table in (linux_faults, windows_faults, switch_faults) for fault in table.FAULTS}
    tested |= {fault[0] for fault in (*TOPOLOGY_FAULTS, *CONVERGED_FAULTS)} | {*STUDY_RULES, 50}
    assert {rule.number for rule in rules()} - tested == set()


def test_a_rule_that_a_host_setting_mends_reads_it_by_that_name() -> None:
    """So that `linerate host apply` changes what the rule has looked at."""
    aliases = {
        "pause_beside_pfc",
        "os_rss",
        "nagle",
        "toe",
        "offload_mtu",
        "port_ratio",
        "carries_mtu",
        "iscsi_share_percent",
    }
    for rule in rules():
        for check in rule.checks:
            if check.setting in host_catalogue() and check.test.fact not in aliases:
                assert check.setting in (check.test.fact, "mtu"), rule.id


def test_questions_are_those_of_the_rules() -> None:
    asked = {fact for rule in rules() for check in rule.checks for fact in _facts(check.test, check.when)}
    answered = {name.removeprefix("answered_") for name in asked if name.startswith("answered_")}
    # These become facts of their own.
    assert answered | {"vendor", "converged", "iscsi_priority"} == {one.name for one in QUESTIONS}


def _facts(*tests: FactTest | None) -> set[str]:
    return {fact for test in tests if test for fact in test.needs}


@pytest.mark.parametrize("wrong", [{}, {"at_least": 1, "at_most": 2}, {"equals": 1, "known": True}])
def test_a_test_has_one_operator(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="needs one operator"):
        FactTest.model_validate({"fact": "mtu", **wrong})


def test_the_table_of_the_documentation_is_current() -> None:
    text = PAGE.read_text()
    assert text == current(text), "run `make docs`"
    assert len(re.findall(r"^\| \d+ \| `", text, re.MULTILINE)) == 51


def test_a_table_that_is_not_current_is_noticed() -> None:
    text = PAGE.read_text()
    assert current(text.replace("at least 9000", "at least 8000")) == text
