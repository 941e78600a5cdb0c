"""Published findings against measured effects: what agrees, what differs and why, what could not be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from linerate.analysis.verdict import (
    METRICS,
    Attribution,
    ClaimVerdict,
    Effect,
    Judgement,
    NoiseFloor,
    judge_claims,
    read_claims,
    shipped_claims,
)
from linerate.errors import UserError

CLAIMS = shipped_claims()


def effect(
    case: str, workload: str, change: float, verdict: str, metric: str = "mib_s", reach: float | None = None
) -> Effect:
    """An effect whose interval reaches one percent (or a hundredth of a point) to either side, or `reach`."""
    scale = METRICS[metric].scale
    reach = reach or (1.0 if scale == "ratio" else 0.01)
    low, middle, high = (
        1 + value / 100 if scale == "ratio" else value for value in (change - reach, change, change + reach)
    )
    return Effect(
        case=case,
        workload=workload,
        metric=metric,
        scale=scale,
        primary=metric in ("iops", "mib_s"),
        baseline=100.0,
        value=100.0,
        estimate=middle,
        low=low,
        high=high,
        p=0.01,
        p_adjusted=0.02,
        p_equivalent=0.5,
        verdict=verdict,  # type: ignore[arg-type]
        blocks=6,
        blocks_needed=9 if verdict == "undecided" else None,
        is_small=verdict == "no difference",
    )


def verdict_on(
    claim: str,
    *effects: Effect,
    cases: Sequence[str] = ("case",),
    figures: Mapping[str, Mapping[str, float]] | None = None,
    not_applicable: Mapping[str, str] | None = None,
    virtual: bool = True,
) -> ClaimVerdict:
    judgement = Judgement("baseline", 0.05, 0.05, effects, ())
    attributions = [
        Attribution("case", workload, "link", "The link h1.p0 was full.", values)
        for workload, values in (figures or {"seqread": {}}).items()
    ]
    (found,) = judge_claims(
        CLAIMS, {claim: tuple(cases)}, judgement, attributions, not_applicable or {}, virtual=virtual
    )
    return found


def test_a_gain_that_was_published_and_measured_agrees() -> None:
    found = verdict_on("nic.jumbo.seqread", effect("case", "seqread", 8.0, "better"))
    assert found.verdict == "agrees"
    assert found.measured == "seqread: throughput +8.0 % (+7.0 to +9.0)"
    assert found.published == CLAIMS["nic.jumbo.seqread"].published


def test_only_the_workload_of_the_claim_counts() -> None:
    found = verdict_on(
        "nic.jumbo.seqread",
        effect("case", "seqread", 8.0, "better"),
        effect("case", "seqwrite", -8.0, "worse"),
    )
    assert found.verdict == "agrees"
    alone = verdict_on(
        "nic.flow_control.congested", effect("case", "seqread", -0.2, "better", "retransmit_percent")
    )
    assert alone.verdict == "not tested"
    congested = effect("case", "congested-seqread", -0.2, "better", "retransmit_percent")
    assert verdict_on("nic.flow_control.congested", congested).verdict == "agrees"


def test_a_finding_about_workloads_that_a_study_does_not_have_says_so() -> None:
    found = verdict_on("nic.jumbo.seqread", effect("case", "mix", 8.0, "better"))
    assert found.verdict == "not tested"
    assert found.reason == "The finding is about workloads named seqread, and this comparison has mix."
    nothing = verdict_on("nic.jumbo.seqread")
    assert nothing.reason == "No run of this study could be compared."


@pytest.mark.parametrize(
    ("change", "verdict", "outcome", "says"),
    [
        (-30.0, "worse", "agrees", "-30.0 %"),
        (0.3, "no difference", "differs", "No difference that matters: seqread: throughput +0.3 %"),
        (12.0, "better", "differs", "The opposite was measured"),
        (-8.0, "worse", "differs", "In the published direction, but smaller than published"),
        (-70.0, "worse", "differs", "In the published direction, but larger than published"),
        (-4.0, "undecided", "not tested", "Undecided: seqread: throughput -4.0 % (-5.0 to -3.0)."),
    ],
)
def test_a_published_loss_of_30_percent(change: float, verdict: str, outcome: str, says: str) -> None:
    found = verdict_on("nic.autotuning.off", effect("case", "seqread", change, verdict))
    assert found.verdict == outcome
    assert says in found.reason
    if outcome == "differs":
        assert "The link h1.p0 was full." in found.reason
    if outcome == "not tested":
        assert "3 more blocks" in found.reason


@pytest.mark.parametrize(
    ("change", "reach", "outcome"),
    [
        (-30.0, 14.0, "agrees"),
        (-30.0, 20.0, "not tested"),
        (-60.0, 40.0, "not tested"),
        (-46.0, 10.0, "not tested"),
    ],
)
def test_a_wide_interval_never_agrees_more_easily(change: float, reach: float, outcome: str) -> None:
    """Published: 15 to 45 % less. An interval that is wider than that tells nothing about the size."""
    found = verdict_on("nic.autotuning.off", effect("case", "seqread", change, "worse", reach=reach))
    assert found.verdict == outcome
    if outcome == "not tested":
        assert "too wide for the published size, -45 to -15" in found.reason
        assert "more blocks would likely decide" in found.reason


def test_a_gain_below_the_margin_is_not_a_published_gain_without_a_size() -> None:
    found = verdict_on("nic.jumbo.seqread", effect("case", "seqread", 2.0, "slightly better"))
    assert found.verdict == "differs"
    assert "In the published direction, but below the margin" in found.reason


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        (("no difference", "no difference"), "agrees"),
        (("no difference", "undecided"), "not tested"),
        (("no difference", "slightly better"), "not tested"),
        (("undecided", "worse"), "differs"),
    ],
)
def test_no_difference_has_to_be_shown_everywhere(verdicts: tuple[str, str], outcome: str) -> None:
    effects = [
        effect("case", workload, 1.0, verdict)
        for workload, verdict in zip(("seqread", "random"), verdicts, strict=True)
    ]
    found = verdict_on("nic.interrupt_moderation.off", *effects)
    assert found.verdict == outcome
    assert found.measured.count("throughput") == 2


def test_what_the_hardware_alone_can_show_is_not_judged_on_a_virtual_san() -> None:
    measured = effect("case", "random", 40.0, "better", "iops")
    virtual = verdict_on(
        "nic.isoe.random", measured, not_applicable={"case": "p0 has no iSCSI offload engine"}
    )
    assert virtual.verdict == "needs hardware"
    assert CLAIMS["nic.isoe.random"].because in virtual.reason
    assert "Case case: p0 has no iSCSI offload engine." in virtual.reason
    assert verdict_on("nic.isoe.random", measured, virtual=False).verdict == "agrees"
    assert verdict_on("nic.isoe.random", virtual=False).verdict == "needs hardware"


def test_a_case_that_could_not_be_had_says_why() -> None:
    found = verdict_on("nic.rsc.off", not_applicable={"case": "the fabric has no RSC"})
    assert (found.verdict, found.measured) == ("not tested", "not measured")
    assert found.reason == "Case case: the fabric has no RSC."


def test_half_a_claim_is_not_the_claim() -> None:
    found = verdict_on("dsn.mtu", effect("case", "seqread", 8.0, "better"))
    assert found.verdict == "not tested"
    assert "Not measured: the change under seqwrite or write." in found.reason


@pytest.mark.parametrize(
    ("figures", "outcome"),
    [
        ({"iscsi_share_percent": 50.4, "array_retransmit_percent": 0.0}, "agrees"),
        ({"iscsi_share_percent": 61.0, "array_retransmit_percent": 0.0}, "differs"),
        ({"iscsi_share_percent": 50.4, "array_retransmit_percent": 0.4}, "differs"),
        ({"iscsi_share_percent": 50.4}, "not tested"),
    ],
)
def test_a_claim_may_speak_of_figures_alone(figures: dict[str, float], outcome: str) -> None:
    assert verdict_on("dcb.ets_split", figures={"both": figures}).verdict == outcome


def failovers(**seconds: float) -> ClaimVerdict:
    attributions = [
        Attribution(case, "mixed", "unknown", "", {"failover_s": s, "io_errors": 0.0, "paths_down": 0.0})
        for case, s in seconds.items()
    ]
    judgement = Judgement("sound", 0.05, 0.05, (), ())
    (found,) = judge_claims(CLAIMS, {"mpio.failover": tuple(seconds)}, judgement, attributions, {})
    return found


def test_the_figures_of_cases_are_written_by_metric_with_their_units() -> None:
    found = failovers(cable=0.01815, switch=0.04208)
    assert found.verdict == "agrees"
    assert found.measured == (
        "errors: 0 in each of 2 cases; failover: cable 0.02 s, switch 0.04 s; "
        "paths still down at the end: 0 in each of 2 cases"
    )
    assert found.against == "", "no comparison with the baseline"
    late = failovers(cable=0.02, switch=2.5)
    assert late.verdict == "differs"
    assert late.reason.startswith("Expected failover at most 1.5 s, measured: failover: switch 2.50 s.")


def test_claims_are_written_for_readers_of_the_report() -> None:
    for claim in CLAIMS.values():
        assert "seed" not in f"{claim.published} {claim.change} {claim.because}", claim.id


def test_the_shipped_claims_are_whole() -> None:
    assert sum(name.startswith("nic.") for name in CLAIMS) == 20
    assert sum(name.startswith("dcb.") for name in CLAIMS) == 3
    for claim in CLAIMS.values():
        assert claim.expect or not claim.id.startswith(("nic.", "dcb.")), claim.id
        assert bool(claim.because) == (claim.needs == "hardware"), claim.id
        for expected in claim.expect:
            has_value = expected.value_low is not None or expected.value_high is not None
            kinds = (expected.change is not None, has_value, expected.curve is not None)
            assert sum(kinds) == 1, claim.id
            assert expected.change is None or expected.metric in (None, *METRICS), claim.id


def test_an_unknown_claim_and_a_broken_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no claim nic\.colour"):
        judge_claims(CLAIMS, {"nic.colour": ()}, Judgement("b", 0.05, 0.05, (), ()), (), {})
    path = tmp_path / "claims.toml"
    path.write_text('[[claim]]\nid = "x"\ncolour = "red"\n')
    with pytest.raises(UserError, match=r"claims.toml: claim\.0"):
        read_claims(path)


def test_published_changes_stand_beside_the_measured_ones_and_the_noise() -> None:
    judgement = Judgement(
        "one",
        0.05,
        0.05,
        (
            effect("mesh", "seq-read", -60.0, "worse"),
            effect("mesh", "seq-write", -91.0, "worse"),
        ),
        (NoiseFloor("seq-read", "mib_s", "ratio", 6, 1.01, 0.99, 1.03, 1.5, 2.5),),
    )
    (found,) = judge_claims(CLAIMS, {"mpio.b_full_mesh_rr": ("mesh",)}, judgement, (), {})
    read, write = found.deviances
    assert (read.case, read.workload, read.metric, read.verdict) == ("mesh", "seq-read", "mib_s", "worse")
    assert (read.published, read.measured) == (-90.04, pytest.approx(-60))
    assert (read.low, read.high) == (pytest.approx(-61), pytest.approx(-59))
    assert (read.floor, read.floor_detectable) == (pytest.approx(1), 2.5)
    assert (write.published, write.floor) == (-96.16, None)


def test_a_finding_without_a_published_figure_has_no_deviance() -> None:
    assert verdict_on("nic.jumbo.seqread", effect("case", "seqread", 8.0, "better")).deviances == ()
