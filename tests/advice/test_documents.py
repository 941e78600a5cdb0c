"""Topologies, finished studies and backup images: planted faults, clean twins."""

from __future__ import annotations

import shutil
import struct
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from linerate.advice import AuditResult, advice_lines
from linerate.advice.documents.finished_study import read_study
from linerate.advice.documents.image import read_image
from linerate.advice.documents.topology import read_topology
from linerate.errors import UserError
from linerate.san import parse_topology
from linerate.study import StudyDirectory, parse_study
from linerate.study.directory import JOURNAL
from linerate.study.journal import SessionBegan, SessionEnded, StepDone, StudyJournal

from tests.advice.outcomes import all_broken, broken, judged, mends, of_rule
from tests.support import need

_CLEAN = """
description = "a SAN that breaks no rule"
[link]
rate = "10gbit"
mtu = 9000
[[switch]]
name = "sw1"
flow_control = "pause"
[[switch]]
name = "sw2"
flow_control = "pause"
[[trunk]]
name = "isl"
a = "sw1"
b = "sw2"
[[host]]
name = "h1"
port = [
  { name = "p0", switch = "sw1", vlan = 11, nic = { rx_ring = 4096, tx_ring = 4096 } },
  { name = "p1", switch = "sw2", vlan = 12, nic = { rx_ring = 4096, tx_ring = 4096 } },
]
[[array]]
name = "a1"
port = [{ name = "p0", switch = "sw1", vlan = 11 }, { name = "p1", switch = "sw2", vlan = 12 }]
volume = [{ name = "v1", size = "1g", paths = "one-to-one" }]
storage = { disks = 14, disk_size = "8g", raid_level = "raid10", backing = "pool", chunk = "1m" }
"""
_ANSWERS = ("vendor=qnap", "load=random", "replication=quiet", "load_percent=70")


def _audit(text: str, *answers: str) -> AuditResult:
    return judged(read_topology(parse_topology(text)), answers=answers)


def test_a_clean_topology_breaks_no_rule() -> None:
    result = _audit(_CLEAN, *_ANSWERS)
    assert all_broken(result) == []
    kept = {one.rule.number for one in result.outcomes if one.state == "kept"}
    assert kept >= {1, 2, 3, 5, 6, 18, 20, 21, 24, 25, 27, 29, 30, 31, 33, 38, 39, 40, 42, 43, 44, 48, 49}


Changes = tuple[tuple[str, str], ...]
_MESH: Changes = (("vlan = 12", "vlan = 11"), ('"one-to-one"', '"mesh"'))
_ONE_PATH: Changes = (('"one-to-one"', '["h1.p0 -> a1.p0"]'),)
_THREE_PORTS: Changes = (
    ("vlan = 12 }]", 'vlan = 12 }, { name = "p2", switch = "sw2", vlan = 12 }]'),
    ('"one-to-one"', '["h1.p0 -> a1.p0", "h1.p1 -> a1.p1", "h1.p1 -> a1.p2"]'),
)
TOPOLOGY_FAULTS: tuple[tuple[int, Changes, tuple[str, ...], str, str], ...] = (
    (1, (("mtu = 9000", "mtu = 1500"),), (), "1500", "in a study: settings = { mtu = 9000 }"),
    (2, (("vlan = 11 }, {", "vlan = 11, mtu = 1500 }, {"),), (), "arrives: no", "smaller MTU"),
    (3, (('flow_control = "pause"', 'flow_control = "none"'),), (), "off", 'flow_control = "on"'),
    (5, (("rx_ring = 4096", "rx_ring = 512"),), (), "512", 'rx_ring_frames = "max"'),
    (6, (("tx_ring = 4096", "tx_ring = 512"),), (), "512", 'tx_ring_frames = "max"'),
    (18, (("vlan = 11, nic", "vlan = 11, links = 2, nic"),), (), "bond: yes", "take the port out"),
    (20, _THREE_PORTS, (), "1.5", "add a host port"),
    (21, _ONE_PATH, (), "reach it: 1", "second port"),
    (21, (('"p1", switch = "sw2"', '"p1", switch = "sw1"'),), (), "paths: 1", "another switch"),
    (24, _MESH, (), "array port: 2", "pair the ports"),
    (25, _MESH, (), "active paths: 4", "standby"),
    (27, (("vlan = 12", "vlan = 11"),), ("vendor=qnap",), "ports: 1; wanted: 2", "a subnet of its own"),
    (27, (), ("vendor=equallogic",), "ports: 2; wanted: 1", "all ports one subnet"),
    (29, (("vlan = 11 }, {", "vlan = 11, links = 2 }, {"),), (), "teams: 1", "address of its own"),
    (31, (("vlan = 12, nic", 'vlan = 12, rate = "1gbit", nic'),), (), "duplex): 2", "one speed"),
    (38, (('chunk = "1m"', 'chunk = "4k"'),), (), "4096", 'array.chunk = "64k"'),
    (39, (('size = "1g"', 'size = "50g"'),), (), "wanted: below 80", "add disks"),
    (42, _ONE_PATH, (), "sessions: 1; wanted: at least 2", "log in"),
    (43, (('chunk = "1m"', 'initialise = "background"'),), (), "work: yes", "assume_clean"),
    (44, (("raid10", "raid50"),), ("load=random",), "raid50", 'array.raid_level = "raid10"'),
    (44, (), ("load=capacity",), "raid10", 'array.raid_level = "raid50"'),
    (45, (('chunk = "1m"', 'chunk = "64k"'),), ("vendor=d-link",), "65536", 'array.chunk = "1m"'),
    (
        48,
        (('name = "isl"', 'name = "isl"\nmtu = 1500'),),
        (),
        "1500 bytes; wanted: at least 9000",
        "largest frames",
    ),
    (49, (), ("replication=busy",), "busy", "quiet"),
    (49, (), ("load_percent=85",), "85 %", "linerate scale"),
)
"""Rule, what is changed in the clean topology, answers of the faulty twin, what is found, what mends it."""
_CLEAN_ANSWERS = {"vendor": "qnap", "load": "random", "replication": "none", "load_percent": "10"}


@pytest.mark.parametrize(("rule", "changes", "answers", "found", "mend"), TOPOLOGY_FAULTS)
def test_a_planted_fault_is_found(
    rule: int, changes: Changes, answers: tuple[str, ...], found: str, mend: str
) -> None:
    of_twin = _CLEAN_ANSWERS | ({"vendor": "d-link"} if rule == 45 else {})
    twin = _audit(_CLEAN, *(f"{name}={value}" for name, value in of_twin.items()))
    assert broken(twin, rule) == []
    assert any(one.state == "kept" for one in of_rule(twin, rule))
    text = _CLEAN
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    result = _audit(text, *answers)
    assert any(found in line for line in broken(result, rule)), broken(result, rule)
    assert mend in mends(result, rule)


_CONVERGED = """
[link]
rate = "10gbit"
mtu = 9000
[[switch]]
name = "sw1"
flow_control = "pfc"
lossless = [4]
schedule = { kind = "ets", shares = { 4 = 50, 0 = 50 } }
[[host]]
name = "h1"
port = [{ name = "p0", switch = "sw1", interface = [
  { name = "san", vlan = 10, priority = 4 }, { name = "lan", vlan = 20 } ] }]
[[host]]
name = "h2"
port = [{ name = "p0", switch = "sw1", interface = [{ name = "lan", vlan = 20 }] }]
[[array]]
name = "a1"
port = [{ name = "p0", switch = "sw1", interface = [{ name = "san", vlan = 10, priority = 4 }] }]
volume = [{ name = "v1", size = "1g" }]
[[lan]]
name = "files"
source = "h1.lan"
sink = "h2.lan"
"""
CONVERGED_FAULTS = (
    (47, "lossless = [4]", "lossless = [3, 4]", "3,4; wanted: 4", "switch.flow_control"),
    (47, "4 = 50, 0 = 50", "4 = 20, 0 = 80", "20 %", "switch.schedule"),
)


@pytest.mark.parametrize(("rule", "old", "new", "found", "mend"), CONVERGED_FAULTS)
def test_a_fault_of_a_converged_network_is_found(
    rule: int, old: str, new: str, found: str, mend: str
) -> None:
    assert old in _CONVERGED
    twin = _audit(_CONVERGED)
    assert broken(twin, rule) == []
    assert {one.state for one in of_rule(twin, rule) if one.subject and one.subject.kind == "switch"} == {
        "kept"
    }
    result = _audit(_CONVERGED.replace(old, new))
    assert any(found in text for text in broken(result, rule)), broken(result, rule)
    assert mend in mends(result, rule)


def test_lan_traffic_in_the_network_of_the_array_is_found() -> None:
    h2 = 'name = "h2"\nport = [{ name = "p0", switch = "sw1", interface = [{ name = "lan", vlan = '
    assert f"{h2}20" in _CONVERGED
    assert broken(_audit(_CONVERGED), 33) == []
    text = _CONVERGED.replace(f"{h2}20", f"{h2}10").replace('source = "h1.lan"', 'source = "h1.san"')
    assert "h1.p0: other connections over the port: 1; wanted: 0" in broken(_audit(text), 33)


@pytest.mark.parametrize(("lossless", "found"), [(4, []), (3, ["4 on sw1; 3 on sw2"] * 2)])
def test_switches_with_different_lossless_priorities_are_found(lossless: int, found: list[str]) -> None:
    second = f'[[switch]]\nname = "sw2"\nflow_control = "pfc"\nlossless = [{lossless}]\n'
    texts = broken(_audit(_CONVERGED + second), 51)
    assert [text.partition("differ: ")[2].partition("; wanted")[0] for text in texts] == found


STUDY_RULES = (26, 41, 46)


def _study(
    folder: Path, *, depth: int = 16, faults: bool = True, errors: float = 0.0, age_days: int = 1
) -> Path:
    """A finished study with one run of a case with a pulled cable."""
    change = (
        'faults = [{ cable = "h1.p0", at = "3s", for = "4s" }]' if faults else "settings = { mtu = 8000 }"
    )
    (folder / "load.toml").write_text(
        f'outstanding = {depth}\n[[volume]]\nname = "v1"\n[[stream]]\nname = "s"\n'
        'size = "8k"\nread = 100\nrandom = 100\n'
    )
    (folder / "san.toml").write_text(_CLEAN)
    text = (
        'title = "cables"\n[[san]]\nname = "s"\ntopology = "san.toml"\n'
        '[[workload]]\nname = "w"\nfile = "load.toml"\nmetric = "iops"\nelapsed = "20s"\n'
        f'[baseline]\n[[case]]\nname = "pulled"\n{change}\n'
    )
    (folder / "study.toml").write_text(text)
    study = parse_study(text, str(folder / "study.toml"), name="cables", folder=folder)
    at = datetime(2026, 11, 26, tzinfo=UTC) - timedelta(days=age_days)
    directory = StudyDirectory.create(folder / "done", study)
    with StudyJournal(folder / "done" / JOURNAL) as journal:
        journal.add(SessionBegan(at=at))
        journal.add(
            StepDone(
                at=at,
                key="1",
                block=1,
                position=1,
                san="s",
                case="pulled",
                workload="w",
                replica=1,
                directory="runs/1",
                state="complete",
                values={"iops": 1000.0, "io_errors": errors},
            )
        )
        journal.add(SessionEnded(at=at, state="complete"))
    return directory.path


_NOW = datetime(2026, 11, 26, tzinfo=UTC)


def test_a_study_with_a_pulled_cable_and_a_deep_load_breaks_no_rule(tmp_path: Path) -> None:
    result = judged(read_study(_study(tmp_path), _NOW).sheet, answers=_ANSWERS)
    assert all_broken(result) == []
    assert {one.rule.number for one in result.outcomes if one.state == "kept"} >= {41, 46}


@pytest.mark.parametrize(
    ("rule", "change", "found", "mend"),
    [
        (41, {"faults": False}, "tested: no", "linerate run path-faults"),
        (41, {"age_days": 400}, "400 days", "path-faults"),
        (41, {"errors": 3.0}, "saw: 3; wanted: 0", "second path"),
        (46, {"depth": 1}, "1; wanted: at least 8", "raise"),
        (46, {"depth": 128}, "128; wanted: at most 64", "lower"),
    ],
)
def test_a_fault_of_a_study_is_found(
    rule: int, change: dict[str, float], found: str, mend: str, tmp_path: Path
) -> None:
    result = judged(read_study(_study(tmp_path, **change), _NOW).sheet)  # type: ignore[arg-type]
    assert any(found in text for text in broken(result, rule)), broken(result, rule)
    assert mend in mends(result, rule)


def test_what_a_study_measured_is_told_beside_the_rule(tmp_path: Path) -> None:
    result = judged(read_topology(parse_topology(_CLEAN.replace("mtu = 9000", "mtu = 1500"))))
    result.evidence["nic.jumbo.seqread"] = "+6.5 % (agrees)"
    assert any("your study: nic.jumbo.seqread: +6.5 % (agrees)" in line for _, line in advice_lines(result))


def _vhdx(flags: int, items: int = 1) -> bytes:
    """The parts of a VHDX that are read: identifier, region table, metadata table, file parameters."""
    region = 1 << 20
    image = bytearray(2 << 20)
    image[:8] = b"vhdxfile"
    image[192 << 10 : (192 << 10) + 16] = b"regi" + struct.pack("<III", 0, 1, 0)
    metadata = UUID("8b7ca206-4790-4b9a-b8fe-575f050f886e").bytes_le
    image[(192 << 10) + 16 : (192 << 10) + 48] = metadata + struct.pack("<QII", region, 1 << 20, 1)
    image[region : region + 12] = b"metadata" + struct.pack("<HH", 0, items)
    parameters = UUID("caa16737-fa36-4d43-b3b6-33f0aa44e76b").bytes_le
    image[region + 32 : region + 64] = parameters + struct.pack("<IIII", 65536, 8, 4, 0)
    image[region + 65536 : region + 65544] = struct.pack("<II", 32 << 20, flags)
    return bytes(image)


def _vhd(kind: int) -> bytes:
    footer = bytearray(512)
    footer[:8] = b"conectix"
    footer[60:64] = kind.to_bytes(4, "big")
    return bytes(4096) + bytes(footer)


@pytest.mark.parametrize(
    ("data", "format_name", "allocation"),
    [
        (_vhdx(1), "vhdx", "fixed"),
        (_vhdx(0), "vhdx", "dynamic"),
        (_vhdx(3), "vhdx", "differencing"),
        (_vhd(2), "vhd", "fixed"),
        (_vhd(3), "vhd", "dynamic"),
    ],
)
def test_an_image_is_judged_by_its_headers(
    data: bytes, format_name: str, allocation: str, tmp_path: Path
) -> None:
    path = tmp_path / "backup.vhdx"
    path.write_bytes(data)
    result = judged(read_image(path))
    texts = broken(result, 50)
    assert any("format: vhd;" in text for text in texts) == (format_name == "vhd")
    assert any(f"allocation: {allocation}" in text for text in texts) == (allocation != "fixed")
    if texts:
        assert "VHDX" in mends(result, 50) or "-Fixed" in mends(result, 50)


def test_a_damaged_image_is_unknown_and_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "image"
    for data in (_vhdx(1)[: 200 << 10], _vhdx(1, items=0), b"vhdxfile", _vhdx(1)[: (1 << 20) + 40]):
        path.write_bytes(data)
        assert {one.state for one in of_rule(judged(read_image(path)), 50) if one.subject} == {
            "kept",
            "unknown",
        }
    path.write_bytes(b"MZ" + bytes(1000))
    with pytest.raises(UserError, match="neither a VHDX nor a VHD"):
        read_image(path)
    with pytest.raises(UserError):
        read_image(tmp_path)
    with pytest.raises(UserError) as refused:
        read_image(Path("smb://nas/share/a.vhdx"))
    assert "mount the share" in refused.value.hint


@pytest.mark.parametrize(
    ("options", "kind"), [(("-f", "vhdx", "-o", "subformat=fixed"), "fixed"), (("-f", "vhdx"), "dynamic")]
)
def test_images_of_another_program_are_read(options: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    path = tmp_path / "qemu.vhdx"
    subprocess.run([need.tool("qemu-img"), "create", "-q", *options, str(path), "8M"], check=True)
    (image,) = read_image(path).subjects
    assert dict(image.facts) == {"format": "vhdx", "allocation": kind}
    shutil.rmtree(tmp_path)
