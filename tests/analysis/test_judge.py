"""From observations to verdicts: what is said, what is not, and what is said about what is missing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linerate.analysis.verdict import Effect, Judgement, Observation, judge, plan_looks
from linerate.errors import UserError
from pydantic import TypeAdapter

SEED = 5


def study(
    effects: Mapping[str, float],
    *,
    blocks: int = 6,
    baselines: int = 2,
    noise: float = 0.01,
    metric: str = "iops",
    drift: float = 0.0,
    shuffled: bool = True,
    seed: int = SEED,
) -> list[Observation]:
    """Runs of one workload `w`; effects are ratios."""
    rng = np.random.default_rng(seed)
    cases = [("baseline", 1.0)] * baselines + list(effects.items())
    seen = []
    for block in range(blocks):
        level = 1000 * math.exp(0.03 * rng.standard_normal())
        places = rng.permutation(len(cases)) if shuffled else np.arange(len(cases))
        for place, (case, ratio) in zip(places.tolist(), cases, strict=True):
            value = level * ratio * math.exp(noise * rng.standard_normal() + drift * place / (len(cases) - 1))
            seen.append(Observation(case, "w", block, {metric: value}, place))
    return seen


def judged(seen: Iterable[Observation], metric: str = "iops") -> Judgement:
    return judge(seen, "baseline", {"w": metric})


def only(judgement: Judgement) -> Effect:
    (effect,) = judgement.effects
    return effect


@pytest.mark.parametrize("blocks", [3, 6, 9])
@pytest.mark.parametrize("baselines", [1, 2])
def test_every_verdict_is_found(blocks: int, baselines: int) -> None:
    seen = study({"up": 1.3, "down": 0.7, "same": 1.0}, blocks=blocks, baselines=baselines, noise=0.004)
    verdicts = {effect.case: effect.verdict for effect in judged(seen).effects}
    assert verdicts == {"up": "better", "down": "worse", "same": "no difference"}


def test_less_is_better_where_it_is() -> None:
    seen = study({"up": 1.3, "down": 0.7}, metric="response_ms")
    judgement = judged(seen, "response_ms")
    assert {effect.case: effect.verdict for effect in judgement.effects} == {"up": "worse", "down": "better"}


def test_a_small_effect_that_is_certain_is_named_as_such() -> None:
    effect = only(judged(study({"little": 1.02}, noise=0.003)))
    assert effect.verdict == "slightly better"
    assert effect.is_small
    assert effect.p_adjusted is not None
    assert effect.p_adjusted < 0.05
    assert effect.change_low is not None
    assert 0 < effect.change_low < effect.change < 5


def test_noise_leaves_a_case_undecided_and_says_how_many_blocks_it_takes() -> None:
    effect = only(judged(study({"up": 1.08}, blocks=4, noise=0.05, baselines=1)))
    assert effect.verdict == "undecided"
    assert effect.blocks_needed is not None
    assert effect.blocks_needed > 4
    assert effect.blocks_more == effect.blocks_needed - 4


def test_the_predicted_number_of_blocks_does_decide() -> None:
    """Studies that begin undecided, carried on with as many blocks as were asked for."""
    asked = decided = 0
    for seed in range(60):
        first = only(judged(study({"up": 1.1}, blocks=4, baselines=1, noise=0.05, seed=seed)))
        if first.verdict == "undecided" and first.blocks_needed is not None:
            asked += 1
            longer = study({"up": 1.1}, blocks=first.blocks_needed, baselines=1, noise=0.05, seed=1000 + seed)
            decided += only(judged(longer)).verdict != "undecided"
    assert asked > 10
    assert decided > 0.6 * asked


def test_an_effect_on_the_margin_is_certain_all_the_same() -> None:
    seen = [
        Observation(case, "w", block, {"iops": value})
        for block, wobble in enumerate((0.99, 1.0, 1.01, 1.0))
        for case, value in (("baseline", 1000.0), ("edge", 1050.0 * wobble))
    ]
    effect = only(judged(seen))
    assert effect.verdict == "slightly better"
    assert not effect.is_small
    assert effect.blocks_needed is None


def test_value_baseline_and_change_fit_each_other() -> None:
    """Also where the case lacks a block, and runs scatter."""
    seen = study({"up": 1.1}, blocks=6, noise=0.1)
    seen.remove(next(item for item in seen if item.case == "up" and item.block == 2))
    effect = only(judged(seen))
    assert effect.blocks == 5
    assert effect.ratio == pytest.approx(effect.value / effect.baseline)


def test_equal_counts_of_few_ios_have_the_width_of_one_io() -> None:
    seen = [
        Observation(case, "w", block, {"iops": 110.0, "ios": 110.0})
        for block in range(4)
        for case in ("baseline", "same")
    ]
    effect = only(judged(seen))
    assert effect.verdict == "no difference"
    assert effect.change_high is not None
    assert 0.2 < effect.change_high < 0.9
    assert effect.change_low == pytest.approx(-effect.change_high, abs=0.01)


def test_a_later_look_needs_a_stronger_proof() -> None:
    seen = study({"up": 1.08}, blocks=6, noise=0.03, baselines=1, seed=4)
    alone = only(judge(seen, "baseline", {"w": "iops"}))
    late = only(judge(seen, "baseline", {"w": "iops"}, looks=plan_looks(3, 3, [(3, 6)])))
    assert alone.p == late.p
    assert alone.p_adjusted is not None
    assert late.p_adjusted == pytest.approx(min(10 * alone.p_adjusted, 1.0))
    assert alone.low is not None
    assert late.low is not None
    assert late.low < alone.low


def test_one_block_shows_a_ratio_and_proves_nothing() -> None:
    judgement = judged(study({"up": 1.3}, blocks=1))
    effect = only(judgement)
    assert effect.ratio == pytest.approx(1.3, rel=0.05)
    assert (effect.low, effect.high, effect.p, effect.verdict) == (None, None, None, "undecided")
    assert any("rest on 1 block:" in note for note in judgement.notes)


def test_two_blocks_that_disagree_wildly_bound_nothing() -> None:
    seen = [
        Observation(case, "w", block, {"iops": value})
        for block, (one, other) in enumerate(((1e-150, 1e150), (1e150, 1e-150)))
        for case, value in (("baseline", one), ("wild", other))
    ]
    effect = only(judged(seen))
    assert effect.verdict == "undecided"
    assert effect.low == 0
    assert effect.high is not None
    assert math.isfinite(effect.high)


def test_values_that_never_vary_are_equal() -> None:
    seen = [
        Observation(case, "w", block, {"iops": 100.0}) for block in range(3) for case in ("baseline", "same")
    ]
    effect = only(judged(seen))
    assert (effect.verdict, effect.estimate, effect.low, effect.high, effect.p) == (
        "no difference",
        1,
        1,
        1,
        1,
    )


def test_a_stray_run_is_named_and_leaves_the_case_undecided() -> None:
    """It widens the interval: the report then asks for more blocks, and calls nothing equal."""
    seen = study({"up": 1.1, "same": 1.0}, blocks=7)
    at = next(i for i, item in enumerate(seen) if item.case == "up" and item.block == 3)
    seen[at] = replace(seen[at], values={"iops": 0.75 * seen[at].values["iops"]})
    up = judged(seen).effect("up", "w")
    assert up is not None
    assert up.outliers == (3,)
    assert up.verdict == "undecided"
    assert up.change_low is not None
    assert up.change_high is not None
    assert up.change_low < 10 < up.change_high
    assert up.blocks_needed is not None
    assert len(up.points) == 7


def test_blocks_that_are_close_together_are_not_called_unsteady() -> None:
    ratios = (1.0472, 1.0443, 1.0444, 1.0416)
    seen = [
        Observation(case, "w", block, {"iops": 1000.0 * ratio})
        for block, measured in enumerate(ratios)
        for case, ratio in (("baseline", 1.0), ("jumbo", measured))
    ]
    judgement = judged(seen)
    assert only(judgement).outliers == ()
    assert not any("unsteady" in warning for warning in judgement.warnings)


def unsteady(ratios: tuple[float, ...]) -> Judgement:
    """A case with these ratios, beside one that is steady."""
    return judged(
        [
            Observation(case, "w", block, {"iops": 1000.0 * ratio})
            for block, measured in enumerate(ratios)
            for case, ratio in (("baseline", 1.0), ("steady", 1.0 + block / 1e5), ("case", measured))
        ]
    )


def test_an_unsteady_block_is_a_note_where_the_verdict_does_not_rest_on_it() -> None:
    judgement = unsteady((0.500, 0.501, 0.502, 0.44))
    effect = judgement.effect("case", "w")
    assert effect is not None
    assert (effect.verdict, effect.outliers) == ("worse", (3,))
    assert not any("unsteady" in warning for warning in judgement.warnings)
    assert any("w: case is unsteady: 1 of 4 blocks is far" in note for note in judgement.notes)


def test_unsteady_blocks_on_which_a_verdict_rests_are_a_caution_with_the_change_without_them() -> None:
    judgement = unsteady((1.048, 1.049, 1.048, 1.080))
    effect = judgement.effect("case", "w")
    assert effect is not None
    assert (effect.verdict, effect.outliers) == ("better", (3,))
    assert any("Without it the change is +4.8%: add blocks" in warning for warning in judgement.warnings)


def test_a_block_without_its_baseline_compares_with_nothing() -> None:
    seen = [item for item in study({"up": 1.3}) if not (item.case == "baseline" and item.block == 2)]
    judgement = judged(seen)
    assert only(judgement).blocks == 5
    assert [block for block, _ in only(judgement).points] == [0, 1, 3, 4, 5]
    assert any("no valid baseline in block 2" in note for note in judgement.notes)


def test_cases_with_different_numbers_of_blocks_are_judged_together() -> None:
    seen = [item for item in study({"up": 1.3, "down": 0.7}) if not (item.case == "down" and item.block > 3)]
    effects = {effect.case: effect for effect in judged(seen).effects}
    assert (effects["up"].blocks, effects["down"].blocks) == (6, 4)
    assert (effects["up"].verdict, effects["down"].verdict) == ("better", "worse")


def test_a_block_that_lost_one_of_its_baselines_still_counts() -> None:
    seen = study({"up": 1.3}, blocks=8)
    seen.remove(next(item for item in seen if item.case == "baseline" and item.block == 4))
    effect = only(judged(seen))
    assert (effect.blocks, effect.verdict) == (8, "better")


def test_a_rate_of_zero_has_no_ratio() -> None:
    seen = study({"up": 1.3})
    at = next(i for i, item in enumerate(seen) if item.case == "up")
    seen[at] = replace(seen[at], values={"iops": 0.0})
    judgement = judged(seen)
    assert only(judgement).blocks == 5
    assert any("1 runs without a positive i/o rate" in note for note in judgement.notes)


def test_retransmits_are_compared_by_difference() -> None:
    rng = np.random.default_rng(SEED)
    seen = [
        Observation(
            case,
            "w",
            block,
            {"iops": 100 + rng.random(), "retransmit_percent": again * rng.uniform(0.9, 1.1)},
        )
        for block in range(6)
        for case, again in (("baseline", 0.5), ("flow control", 0.0), ("other", 0.5))
    ]
    judgement = judged(seen)
    effect = judgement.effect("flow control", "w", "retransmit_percent")
    assert effect is not None
    assert (effect.scale, effect.ratio, effect.verdict, effect.primary) == (
        "difference",
        None,
        "better",
        False,
    )
    assert effect.change == pytest.approx(-0.5, abs=0.05)
    assert (effect.value, effect.baseline) == (0, pytest.approx(0.5, abs=0.05))
    primary = judgement.effect("flow control", "w")
    assert primary is not None
    assert (primary.metric, primary.verdict) == ("iops", "no difference")


def test_the_noise_floor_is_the_baseline_against_itself() -> None:
    judgement = judged(study({"same": 1.0}, blocks=40, noise=0.02))
    (floor,) = judgement.noise_floor
    assert floor.blocks == 40
    assert floor.clean
    assert floor.spread == pytest.approx(100 * 0.02 * math.sqrt(2), rel=0.3)
    assert floor.detectable is not None
    assert 0.5 < floor.detectable < 2.5
    assert judgement.floor("w", "iops") is floor


def test_a_baseline_that_differs_from_itself_is_doubted() -> None:
    seen = study({"same": 1.0}, noise=0.002)
    last = {}
    for item in seen:
        if item.case == "baseline":
            last[item.block] = max(last.get(item.block, 0), item.position or 0)
    spoiled = [
        replace(item, values={"iops": 1.1 * item.values["iops"]})
        if item.case == "baseline" and item.position == last[item.block]
        else item
        for item in seen
    ]
    judgement = judged(spoiled)
    assert not judgement.noise_floor[0].clean
    assert any("the baseline differs from itself by +10." in warning for warning in judgement.warnings)
    assert not any("differs from itself" in warning for warning in judged(seen).warnings)


def test_a_baseline_run_once_has_no_noise_floor() -> None:
    judgement = judged(study({"same": 1.0}, baselines=1))
    assert judgement.noise_floor == ()
    assert judgement.notes == ("the baseline ran once per block, so there is no noise floor for w",)
    assert judgement.warnings == ()


def test_drift_along_the_blocks_is_seen_and_said() -> None:
    judgement = judged(study({f"same{n}": 1.0 for n in range(6)}, drift=0.06))
    (drift,) = judgement.drifts
    assert drift.shown
    assert drift.low < 6 < drift.high
    assert any("moved by" in note for note in judgement.notes)
    (calm,) = judged(study({f"same{n}": 1.0 for n in range(6)})).drifts
    assert not calm.shown


def test_an_order_that_was_not_shuffled_is_doubted() -> None:
    fixed = judged(study({"same": 1.0}, shuffled=False)).warnings
    assert any("baseline ran at the same place" in warning for warning in fixed)
    assert not any("same place" in warning for warning in judged(study({"same": 1.0, "other": 1.0})).warnings)


def test_the_order_of_the_observations_does_not_matter() -> None:
    seen = study({"up": 1.1, "same": 1.0})
    assert judged(reversed(seen)).effect("up", "w") == judged(seen).effect("up", "w")


def test_a_judgement_survives_json() -> None:
    judgement = judged(study({"up": 1.3, "same": 1.0}, drift=0.06))
    text = json.dumps(asdict(judgement), allow_nan=False)
    assert TypeAdapter(Judgement).validate_json(text) == judgement


@pytest.mark.parametrize(
    ("seen", "baseline", "metric_of", "margin", "says"),
    [
        (study({"up": 1.3}), "default", {"w": "iops"}, 0.05, "no valid run of the baseline default"),
        (study({"up": 1.3}), "baseline", {}, 0.05, "workload w has no primary metric"),
        (study({"up": 1.3}), "baseline", {"w": "speed"}, 0.05, "no metric called speed"),
        (study({"up": 1.3}), "baseline", {"w": "iops"}, 5.0, "the margin is 5"),
    ],
)
def test_what_cannot_be_judged_is_refused(
    seen: list[Observation], baseline: str, metric_of: dict[str, str], margin: float, says: str
) -> None:
    with pytest.raises(UserError, match=says) as caught:
        judge(seen, baseline, metric_of, margin)
    assert caught.value.hint


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), min_size=2, max_size=8))
def test_swapping_case_and_baseline_inverts_the_ratio(pairs: list[tuple[float, float]]) -> None:
    seen = [
        Observation(case, "w", block, {"iops": value})
        for block, pair in enumerate(pairs)
        for case, value in zip(("a", "b"), pair, strict=True)
    ]
    there, back = (only(judge(seen, name, {"w": "iops"})) for name in ("a", "b"))
    assert there.ratio is not None
    assert back.ratio is not None
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert there.low is not None
    assert back.high is not None
    assert math.log(there.low) == pytest.approx(-math.log(back.high), abs=1e-9)
    assert there.low <= there.ratio * (1 + 1e-9)
