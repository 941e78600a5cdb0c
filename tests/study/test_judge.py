"""Planted effects come out of a whole study as verdicts, claims and repeats; nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.report.study import study_page
from linerate.study import StudyDirectory, parse_study
from linerate.study.conduct import conduct
from linerate.study.judge import judged, write_verdicts

from tests.study.conftest import TEXT
from tests.support.simulated import SimulatedLaboratory

CLAIMED = TEXT.replace("blocks_min = 3", "blocks_min = 5") + (
    '\n[[claim]]\nid = "nic.jumbo.seqread"\ncase = "baseline"\nagainst = "default"\n'
    '\n[[claim]]\nid = "nic.nagle.off"\ncase = "baseline"\nagainst = "nagle on"\n'
    '\n[[claim]]\nid = "nic.toe.throughput"\ncase = "offload"\nagainst = "baseline"\n'
)


@pytest.fixture
def done(tmp_path: Path) -> StudyDirectory:
    place = StudyDirectory.create(tmp_path / "study", parse_study(CLAIMED)).path
    laboratory = SimulatedLaboratory(
        effects={("mtu", 1500): 0.8}, lacking={"toe": "no such adapter"}, noise=0.005
    )
    return conduct(place, laboratory, lambda event: None, settle=lambda seconds: None)


@pytest.mark.long
def test_a_planted_loss_is_worse_and_no_effect_is_equivalent(done: StudyDirectory) -> None:
    judgement = judged(done).judgement
    slow, same = judgement.effect("default", "seqread"), judgement.effect("nagle on", "seqread")
    assert slow is not None
    assert same is not None
    assert (slow.verdict, same.verdict) == ("worse", "no difference")
    assert slow.change == pytest.approx(-20, abs=2)
    floor = judgement.floor("seqread", "mib_s")
    assert floor is not None
    assert abs(floor.change) < 2


@pytest.mark.long
def test_claims_are_judged_by_the_comparison_that_they_name(done: StudyDirectory) -> None:
    claims = {claim.claim: claim for claim in judged(done).claims}
    assert claims["nic.jumbo.seqread"].verdict == "agrees"
    assert claims["nic.jumbo.seqread"].cases == ("baseline",)
    assert claims["nic.jumbo.seqread"].against == "default"
    assert "throughput +2" in claims["nic.jumbo.seqread"].measured, (
        "in the claim's direction, not the table's"
    )
    assert claims["nic.nagle.off"].verdict == "agrees"
    assert claims["nic.toe.throughput"].verdict == "needs hardware"
    assert "no such adapter" in claims["nic.toe.throughput"].reason


def test_verdicts_are_kept_and_read_back_as_they_were(done: StudyDirectory) -> None:
    written = write_verdicts(done)
    assert StudyDirectory.open(done.path).verdicts == written
    assert written.not_applicable == {"offload": "toe: no such adapter"}
    by_case = {(one.case, one.workload): one for one in written.repeated}
    assert by_case["default", "seqread"].verdict == "worse"
    assert by_case["default", "seqread"].runs == 5


def test_a_study_without_a_run_has_no_verdicts(place: Path) -> None:
    directory = StudyDirectory.open(place)
    assert directory.verdicts is None
    with pytest.raises(UserError, match="nothing has been measured"):
        judged(directory)


def test_the_page_of_an_unfinished_study_does_not_repeat_what_was_judged_earlier(place: Path) -> None:
    def blocks(last: int) -> int:
        with pytest.raises(KeyboardInterrupt):
            conduct(
                place,
                SimulatedLaboratory(faults={last: KeyboardInterrupt()}),
                lambda event: None,
                settle=lambda seconds: None,
            )
        page = study_page(StudyDirectory.open(place))
        return max(effect.blocks for effect in page.judgement.effects)

    earlier = blocks(last=18)
    write_verdicts(StudyDirectory.open(place))
    assert blocks(last=18) > earlier


def test_damaged_verdicts_are_told_and_made_again(done: StudyDirectory) -> None:
    (done.path / "verdicts.json").write_text("{}")
    with pytest.raises(UserError, match="damaged"):
        assert StudyDirectory.open(done.path).verdicts
    write_verdicts(done)
    assert StudyDirectory.open(done.path).verdicts is not None


@pytest.mark.long
def test_a_claim_may_be_put_to_the_test_under_some_workloads_only(tmp_path: Path) -> None:
    table = '[[claim]]\nid = "nic.jumbo.seqread"\ncase = "baseline"\nagainst = "default"\n'
    for workloads, verdict in ((None, "agrees"), ("random", "not tested")):
        only = f'workloads = ["{workloads}"]\n' if workloads else ""
        study = parse_study(TEXT.replace("[repeat]", f"{table}{only}\n[repeat]"))
        place = StudyDirectory.create(tmp_path / verdict, study).path
        laboratory = SimulatedLaboratory(effects={("mtu", 9000): 1.2})
        done = conduct(place, laboratory, lambda event: None, settle=lambda seconds: None)
        (claim,) = judged(done).claims
        assert claim.verdict == verdict
