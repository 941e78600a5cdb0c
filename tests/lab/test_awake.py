"""Idle CPUs are kept awake where the machine permits it, and only for as long as it was asked for."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from linerate.lab.awake import DEVICE, POLLING, SLEEPING, kept_awake

needs_device = pytest.mark.skipif(not os.access(DEVICE, os.R_OK), reason=f"{DEVICE} is root's")


def latency_us() -> int:
    """The least wake-up latency that anyone asks for; asking for none at all is how it is read."""
    return int(struct.unpack("=i", DEVICE.read_bytes()[:4])[0])


@needs_device
def test_no_cpu_sleeps_until_it_ends() -> None:
    before = latency_us()
    with kept_awake() as idle_cpus:
        assert (idle_cpus, latency_us()) == (POLLING, 0)
    assert latency_us() == before


@needs_device
def test_a_failure_within_ends_it_too() -> None:
    before = latency_us()
    with pytest.raises(KeyError), kept_awake():
        raise KeyError
    assert latency_us() == before


def test_without_the_right_to_ask_nothing_changes(tmp_path: Path) -> None:
    with kept_awake(tmp_path / "absent") as idle_cpus:
        assert idle_cpus == SLEEPING
