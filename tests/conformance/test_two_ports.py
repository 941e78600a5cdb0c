"""Two initiators at two ports of one target: libiscsi's tests that need a second one, and its tools on both at once."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest
from linerate.array import (
    AluaChange,
    ArrayChange,
    ArrayConfig,
    EmbeddedArray,
    Portal,
    TargetConfig,
    VolumeConfig,
)

from tests.conformance.suite import PROGRAM, known_failures, known_skip, listed_tests, run_test
from tests.support import need

pytestmark = pytest.mark.long

IQN = "iqn.2026-11.lab.linerate:two-ports"
SIZE_BYTES = 64 << 20
LAYOUT = "512n"
FAMILIES = ("Reserve6.", "ProutReserve.", "ProutPreempt.", "ProutClear.", "ProutRegister.", "MultipathIO.")
TESTS = tuple(test for test in listed_tests() if test.startswith(FAMILIES))
PERF_S = 2


@pytest.fixture(scope="module")
def array() -> Iterator[EmbeddedArray]:
    """Two portals, each in a group of its own: two target ports, so two nexuses with any initiator names."""
    need.tool(PROGRAM)
    portals = ("127.0.0.1:0", Portal(address="127.0.0.1:0", group=2))
    target = TargetConfig(name=IQN, volumes=(VolumeConfig(lun=0, name="vol1", size_bytes=SIZE_BYTES),))
    with EmbeddedArray(ArrayConfig(portals=portals, targets=(target,))) as array:
        yield array


@pytest.mark.parametrize("test", TESTS or ["suite"])
def test_a_second_initiator_at_another_port(array: EmbeddedArray, test: str) -> None:
    verdict = run_test(test, array.url(0), array.url(0, portal=1))
    if (why := known_failures(LAYOUT).get(test)) is not None:
        pytest.xfail(why)
    assert verdict.passed, verdict.output
    assert not verdict.skipped or known_skip(test, LAYOUT), verdict.skipped


def _port_name(url: str) -> str:
    """The name of the target port, as `iscsi-inq` shows it in the device identification page."""
    command = ["iscsi-inq", "-e", "1", "-c", str(0x83), url]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True)
    names = re.findall(r"^Designator:\[(.*,t,0x.*)\]$", done.stdout, re.MULTILINE)
    assert len(names) == 1, done.stdout
    return str(names[0])


def test_each_port_says_which_one_it_is(array: EmbeddedArray) -> None:
    assert [_port_name(array.url(0, portal=portal)) for portal in (0, 1)] == [
        f"{IQN},t,0x0001",
        f"{IQN},t,0x0002",
    ]


def test_tools_work_on_both_ports_at_once_and_stop_where_access_stops(array: EmbeddedArray) -> None:
    def perf(portal: int) -> subprocess.Popen[str]:
        command = ["iscsi-perf", "-t", str(PERF_S), "-b", "8", "-m", "8", array.url(0, portal=portal)]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )

    running = [perf(0), perf(1)]
    outputs = [tool.communicate(timeout=60)[0] for tool in running]
    assert [tool.returncode for tool in running] == [0, 0], outputs
    for output in outputs:
        iops = [int(figure) for figure in re.findall(r"iops average (\d+)", output)]
        assert iops, output
        assert iops[-1] > 0, output
    array.change(ArrayChange(alua=(AluaChange(group=2, state="standby"),)))
    try:
        refused, works = perf(1), perf(0)
        outputs = [tool.communicate(timeout=60)[0] for tool in (refused, works)]
        assert refused.returncode != 0
        assert "0x040b" in outputs[0], "target port in standby state"
        assert works.returncode == 0, outputs[1]
    finally:
        array.change(ArrayChange(alua=(AluaChange(group=2, state="active_optimized"),)))
