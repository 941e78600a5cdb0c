"""The adapter's settings as they are read, and the notes that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from linerate.host import HostJournal, HostTarget, apply
from linerate.probe import judge
from linerate.probe.port.adapter import SETTINGS, adapter_of
from linerate.setting import Value
from linerate.settings import find
from linerate.study import load_study

from tests.host.conftest import Namespace, make_namespace, may_make_namespaces
from tests.probe.evidence import evidence

__all__ = ["make_namespace"]

ALL_ON: dict[str, Value] = {
    "lso": True,
    "rsc": True,
    "checksum_offload": "on",
    "interrupt_moderation_us": "adaptive",
    "rx_ring_frames": 512,
}
FAST = {"large": {"mb_s": 1000.0}, "write": {"mb_s": 900.0}}
READ_FRAMES, WRITE_FRAMES = "690,608", "621,547"  # of 1000 and 900 MB/s in segments of 1448 bytes


def notes(changes: dict[str, Value], load: dict[Any, Any] = FAST) -> tuple[str, ...]:
    return judge(replace(evidence(load), adapter=ALL_ON | changes)).notes


def test_nothing_is_said_of_an_adapter_that_does_all_it_can() -> None:
    assert notes({}) == ()
    assert judge(evidence(FAST)).notes == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rsc": False}, [("rsc=on", READ_FRAMES)]),
        ({"lso": False}, [("lso=on", WRITE_FRAMES)]),
        ({"checksum_offload": "tx"}, [("checksum_offload=on", READ_FRAMES)]),
        ({"checksum_offload": "rx"}, [("checksum_offload=on", WRITE_FRAMES)]),
        (
            {"checksum_offload": "off"},
            [("checksum_offload=on", READ_FRAMES), ("checksum_offload=on", WRITE_FRAMES)],
        ),
        ({"interrupt_moderation_us": 125}, [("interrupt_moderation_us=off", "125 us")]),
        ({"interrupt_moderation_us": 20}, []),
    ],
)
def test_what_is_off_and_matters_is_a_note(changes: dict[str, Value], words: list[tuple[str, str]]) -> None:
    said = notes(changes)
    assert len(said) == len(words)
    for note, (setting, figure) in zip(said, words, strict=True):
        assert note.startswith(f"Try {setting} on this host")
        assert figure in note


def test_offloads_do_not_matter_at_a_low_rate() -> None:
    assert notes({"rsc": False, "lso": False, "checksum_offload": "off"}, {}) == ()


def test_the_study_that_is_named_has_a_case_for_each_setting() -> None:
    study = load_study("nic-tuning")
    tried = {name for case in (*study.cases, study.baseline) for name in case.settings}
    assert {"rsc", "lso", "checksum_offload", "interrupt_moderation_us"} <= tried
    for name in SETTINGS:
        find(name)


def test_a_port_is_read_as_it_is_set(make_namespace: Callable[[bool], Namespace], tmp_path: Path) -> None:
    if not may_make_namespaces():
        pytest.skip("needs root to enter a network namespace")
    port = replace(make_namespace(False).target, devices=("p0",))
    before = adapter_of(port)
    assert {"lso", "rsc", "checksum_offload"} <= before.keys()
    assert "rx_ring_frames" not in before, "a veth has no rings"
    with HostJournal(tmp_path / "journal") as journal:
        assert not apply(port, {"lso": not before["lso"], "checksum_offload": "off"}, journal).refused
    after = adapter_of(port)
    assert after["lso"] is not before["lso"]
    assert after["checksum_offload"] == "off"


def test_a_port_that_is_gone_has_no_settings() -> None:
    assert adapter_of(HostTarget("this host", ("p-none",))) == {}
