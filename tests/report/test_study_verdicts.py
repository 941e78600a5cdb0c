"""The verdicts of a study on a terminal, in a pipe and as JSON. All figures are made up."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from linerate.analysis.verdict import Effect
from linerate.report.study import closing_lines, verdict_lines, verdict_object, verdict_table, words
from rich.console import Console

from tests.support.samples.study_page import CASES, WORKLOADS, sample_page


def printed(width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, no_color=True).print(verdict_table(sample_page(), width))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_figure_is_ever_cut(width: int) -> None:
    lines = printed(width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "\u2026" not in text
    for effect in sample_page().judgement.primary():
        assert words.change(effect) in text


def worst() -> Effect:
    effect = sample_page().judgement.effect("no-autotuning", "256k-seq-read")
    assert effect is not None
    return effect


def test_a_wide_terminal_shows_intervals_and_a_narrow_one_marks() -> None:
    shown = f"{words.change(worst())} ({words.bounds(worst())})"
    assert any(shown in line for line in printed(200))
    narrow = "\n".join(printed(70))
    assert words.bounds(worst()) not in narrow
    assert "+ better" in narrow
    assert f"{words.change(worst())} -" in narrow


def test_a_pipe_gets_one_line_per_case_and_workload() -> None:
    lines = verdict_lines(sample_page())
    assert len(lines) == 1 + (len(CASES) - 1) * len(WORKLOADS) + 1
    (row,) = (line for line in lines if line.startswith("256k-seq-read") and " no-autotuning" in line)
    assert row.endswith("worse")
    assert words.change(worst()) in row
    assert lines[-1] == "not applicable  toe: no NIC here has a TCP offload engine"


def test_the_closing_lines_name_what_to_set_and_what_differs() -> None:
    text = "\n".join(closing_lines(sample_page()))
    assert "MTU (mtu): 9000 instead of 1500" in text
    assert "    brought  256K sequential read +5.5 %" in text
    assert "published findings: 1 agrees, 1 differs, 1 needs hardware, 1 not tested" in text
    twice = replace(sample_page(), claims=sample_page().claims * 2)
    counts = "published findings: 2 agree, 2 differ, 2 need hardware, 2 not tested"
    assert counts in "\n".join(closing_lines(twice))
    assert "result: valid with cautions" in text
    assert "other programs used 7.1 % of the CPUs [no-lso / 256k-seq-write, block 3]" in text
    assert (
        "nic.interrupt_moderation.off: published none for interrupt moderation off against on; measured "
        "(interrupt moderation off against baseline: jumbo frames, largest buffers) 8K random +7.2 %"
    ) in text


def test_json_holds_everything() -> None:
    told = json.loads(json.dumps(verdict_object(sample_page())))
    assert told["baseline"] == "baseline"
    assert len([effect for effect in told["effects"] if effect["primary"]]) == (len(CASES) - 1) * 3
    assert told["not_applicable"] == {"toe": "no NIC here has a TCP offload engine"}
    assert {claim["claim"] for claim in told["claims"]} >= {"nic.jumbo.seqread"}
