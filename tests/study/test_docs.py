"""The examples of the documentation are what they say: files that can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from linerate.san import parse_topology
from linerate.study import StudyPlan, parse_study

DOCS = Path(__file__).parents[2] / "docs"


def examples(page: str) -> list[str]:
    return re.findall(r"^```toml\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


def example(page: str, word: str) -> str:
    """The first example that holds a word."""
    return next(text for text in examples(page) if word in text)


def test_the_study_of_the_page_can_be_planned() -> None:
    study = parse_study(examples("studies.md")[0])
    assert [case.name for case in study.cases] == ["baseline", "default", "no-delayed-ack"]
    assert len(StudyPlan(study).block(1)) == 4


def test_the_case_with_paths_and_faults_can_be_added() -> None:
    first, case = examples("studies.md")[0], example("studies.md", 'name = "cable"')
    added = parse_study(first.replace("[repeat]", f"{case}\n[repeat]")).case("cable")
    assert added.changed == ("multipath.paths", "multipath.policy", "faults")


def test_its_other_table_is_one_of_hosts_that_exist() -> None:
    table = example("studies.md", "[[san.host]]")
    text = examples("studies.md")[0].replace('[[san]]\ntopology = "base-san"', table)
    (san,) = parse_study(text).sans
    assert san.topology is None
    assert san.hosts[0].devices == ("eth2", "eth3")


def test_its_cases_can_be_searched() -> None:
    table = example("studies.md", "[scale]")
    first = re.sub(r"^metric = .*\n", "", examples("studies.md")[0], flags=re.MULTILINE)
    first = re.sub(r"^claims = .*\n", "", first, flags=re.MULTILINE)
    text = re.sub(r"^\[(\[claim\]|repeat)\].*\n(.+\n)*", "", first, flags=re.MULTILINE) + table
    scale = parse_study(text).scale
    assert scale is not None
    assert scale.until.metric in table


@pytest.mark.parametrize("text", examples("lab.md"))
def test_the_topologies_of_the_page_can_be_built(text: str) -> None:
    topology = parse_topology(text)
    assert topology.hosts[0].name == "h1"
