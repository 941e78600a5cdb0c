"""`linerate probe` as a user calls it: on an array, and in a virtual SAN with planted faults."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from linerate.probe.sizes import SIZES_BYTES

from tests.cli.conftest import COMMAND, environment, linerate
from tests.lab.conftest import unique, with_rights
from tests.support import need
from tests.support.serving import serving

IQN = "iqn.2026-11.lab.linerate:probe"
ARRAY = """
portals = ["127.0.0.1:0"]

[[targets]]
name = "iqn.2026-11.lab.linerate:probe"

[[targets.volumes]]
lun = 0
name = "v1"
kind = "memory"
size = "64m"

[[targets.volumes]]
lun = 1
name = "v2"
kind = "file"
path = "{path}"

[[targets.volumes]]
lun = 2
name = "v3"
kind = "memory"
size = "64m"
read_only = true
"""
SLOW_DISKS = 'storage = { disks = 8, model = "sata_7200_3_5_512e", disk_size = "1g", raid_level = "raid6" }'
SAN = """
[link]
rate = "100mbit"
delay = "100us"

[[switch]]
name = "sw1"

[[host]]
name = "h1"
port = [{{ name = "p0", switch = "sw1" }}]

[[array]]
name = "a1"
port = [{{ name = "p0", switch = "sw1" }}]
volume = [{{ name = "v1", size = "{size}" }}]
{storage}
"""
TIMEOUT_S = 120.0
TRIALS = {"floor", "cached", "small", "large", "sessions", "connections"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("array")
    (folder / "mail").write_bytes(b"mail of a user\n" * 100_000)
    os.truncate(folder / "mail", 64 << 20)
    with serving(folder, ARRAY.format(path=folder / "mail")) as portal:
        yield f"iscsi://{portal}/{IQN}/0"


@pytest.mark.long
def test_text_and_trials(url: str) -> None:
    done = linerate("probe", url, "--seconds", "5")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("path    127.0.0.1:")
    assert "not tried: writes; they destroy data (--write)" in lines
    assert sum(line.startswith("limit: ") for line in lines) == 1
    assert [line[:5] for line in lines[-2:]] == ["try 1", "try 2"]
    assert "frame sizes" in done.stderr
    tcp = next(number for number, line in enumerate(lines) if line.startswith("TCP of one connection"))
    assert [line[:17] for line in lines[tcp + 1 : tcp + 4]] == [
        "256K sequential r",
        "the same over 4 s",
        "the same, 4 conne",
    ]


@pytest.mark.long
def test_json(url: str) -> None:
    options = ("--set", "iscsi.header_digest=crc32c", "--set", "iscsi.send_buffer_bytes=1048576")
    done = linerate("probe", url, "--seconds", "5", "--json", *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["schema"] == "linerate.probe/1"
    assert set(found["trials"]) == TRIALS
    assert all(one["iops"] > 0 for one in found["trials"].values())
    assert [one["size_bytes"] for one in found["sizes"]] == list(SIZES_BYTES)
    assert all(one["ios"] > 0 and 0 < one["p50_ms"] <= one["p95_ms"] for one in found["sizes"])
    assert found["trials"]["floor"]["session"]["header_digest"] == "crc32c"
    assert found["trials"]["connections"]["session"]["connections"] == 4
    states = {name: one["tcp_state"] for name, one in found["trials"].items()}
    assert found["trials"]["large"]["fixed_buffers"] == ["send_buffer_bytes"]
    assert {name: state["connections"] for name, state in states.items() if state} == {
        "large": 1,
        "sessions": 4,
        "connections": 4,
    }


@pytest.mark.long
def test_writes_need_a_word(url: str) -> None:
    done = linerate("probe", url, "--seconds", "5", "--write", "--overwrite", "all", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["trials"]) == TRIALS | {"write_floor", "write"}
    assert {one["is_write"] for one in found["sizes"]} == {False, True}
    refused = linerate("probe", f"{url[:-1]}1", "--seconds", "5", "--write")
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr
    assert linerate("probe", f"{url[:-1]}1", "--seconds", "5").returncode == 0


@pytest.mark.long
def test_a_protected_volume_is_probed_by_reads(url: str) -> None:
    done = linerate("probe", f"{url[:-1]}2", "--seconds", "5", "--write", "--overwrite", "all")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the array protects the volume from writes") == 2
    assert "they destroy data" not in done.stdout
    assert sum(line.startswith("limit: ") for line in done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("null:8g", "name a LUN: iscsi://host[:port]/target/lun"),
        ("iscsi://127.0.0.1:1/iqn.2026-11.lab:none/0", "volume LUN: iqn.2026-11.lab:none at 127.0.0.1:1"),
        ("iscsi://127.0.0.1:1", "name is missing"),
    ],
)
def test_bad_targets(target: str, words: str) -> None:
    done = linerate("probe", target, "--seconds", "5")
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert "Traceback" not in done.stderr


class San:
    """A virtual SAN of one host and one array, and probes from its host."""

    def __init__(self, name: str) -> None:
        self._name = name

    def lab(self, *words: str) -> None:
        """Runs `linerate lab ...` on it."""
        self._run(*COMMAND, "lab", *words, "--lab", self._name)

    def probe(self, *more: str) -> dict[str, Any]:
        """What `linerate probe --json` says."""
        inside = [*COMMAND, "probe", "iscsi://10.231.1.101/iqn.2026-11.lab.linerate:a1/0", "--json"]
        said = self._run(
            *COMMAND, "lab", "exec", "--lab", self._name, "h1", "--", *inside, "--seconds", "10", *more
        )
        return dict(json.loads(said.splitlines()[-1]))

    @contextmanager
    def serving_raw(self, port: int) -> Iterator[None]:
        """`linerate probe --serve` on the array's side, once it listens."""
        inside = [*COMMAND, "probe", "--serve", str(port)]
        command = [*COMMAND, "lab", "exec", "--lab", self._name, "a1", "--", *inside]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:
            assert process.stderr is not None
            assert f"port {port}" in process.stderr.readline()
            try:
                yield
            finally:
                process.terminate()

    def sysctl(self, node: str, assignment: str) -> None:
        """Sets a sysctl of a host or an array."""
        self._run(*COMMAND, "lab", "exec", "--lab", self._name, node, "--", "sysctl", "-qw", assignment)

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment(), timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def brought_up(folder: Path, topology: str, name: str) -> Iterator[San]:
    """A virtual SAN on the user-space fabric, without root. Skips where the machine gives none."""
    file = folder / f"{name}.toml"
    file.write_text(topology)
    up = with_rights("user", (*COMMAND, "lab", "up", str(file), "--fabric", "user", "--name", name))
    done = subprocess.run(up, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        need.missing(f"a virtual SAN: {done.stderr.strip().splitlines()[-1]}")
    try:
        yield San(name)
    finally:
        subprocess.run([*COMMAND, "lab", "down", name], timeout=TIMEOUT_S, check=True, capture_output=True)


@pytest.mark.paced
@pytest.mark.long
def test_planted_faults_of_the_network(tmp_path: Path) -> None:
    """One after the other: each probe sees one fault."""
    with brought_up(tmp_path, SAN.format(storage="", size="64m"), unique("probe")) as san:
        san.lab("link", "h1.p0", "--delay", "2ms")
        small = san.probe("--set", "iscsi.recv_buffer_bytes=32768")
        assert small["limit"] == "window", small
        assert "It is the receive window of this host" in small["sentence"]
        san.lab("link", "h1.p0", "--delay", "100us", "--loss", "0.1%")
        lossy = san.probe()
        assert lossy["limit"] == "loss", lossy
        san.lab("link", "h1.p0", "--loss", "0", "--mtu", "9000")
        mismatch = san.probe()
        assert mismatch["limit"] == "line", mismatch
        assert {"lso", "rsc", "checksum_offload"} <= mismatch["adapter"].keys()
        assert [one["device"] for one in mismatch["below"]["adapters"]] == [mismatch["port"]]
        assert mismatch["below"]["connections"] == 8
        assert not mismatch["below"]["bonds"]
        assert "above 1500 bytes vanish" in mismatch["notes"][0]
        san.lab("link", "a1.p0", "--mtu", "9000")
        san.lab("fault", "mtu", "h1.p0", "1500")
        hole = san.probe()
        assert (hole["limit"], hole["trials"]) == ("mtu black hole", {})


@pytest.mark.paced
@pytest.mark.long
def test_a_small_window_of_the_array_holds_writes_back(tmp_path: Path) -> None:
    """64 KiB is the third value of tcp_rmem in the array's namespace; reads are not concerned."""
    topology = SAN.format(storage="", size="64m").replace("100mbit", "200mbit").replace("100us", "5ms")
    writes = ("--write", "--overwrite", "all")
    with brought_up(tmp_path, topology, unique("window")) as san:
        wide = san.probe(*writes)
        san.sysctl("a1", "net.ipv4.tcp_rmem=4096 65536 65536")
        small = san.probe(*writes)
    assert wide["limit"] != "window", wide
    assert not any("window" in note for note in wide["notes"]), wide
    assert small["limit"] == "window", small
    assert small["sentence"].startswith("Writes of one session are held back by a TCP window")
    assert "It is the receive window of the array" in small["sentence"]
    assert 48 << 10 < small["trials"]["write"]["tcp_state"]["peer_window_bytes"] < 128 << 10
    assert "net.ipv4.tcp_rmem there, third value" in small["hints"][0]["why"]
    assert small["trials"]["large"]["mb_s"] > 0.9 * wide["trials"]["large"]["mb_s"], "reads as before"


@pytest.mark.alone
@pytest.mark.long
def test_slow_disks_beside_a_full_line(tmp_path: Path) -> None:
    with brought_up(tmp_path, SAN.format(storage=SLOW_DISKS, size="4g"), unique("disks")) as san:
        found = san.probe()
        assert found["limit"] == "disks", found
        assert found["notes"][0].startswith("For large sequential I/O: The line is full"), found


@pytest.mark.paced
@pytest.mark.long
def test_raw_tcp_on_a_line_of_an_unusual_rate(tmp_path: Path) -> None:
    """Raw TCP tells that a line of 40 Mbit/s is full; without it, reads of all sizes that share its rate do."""
    topology = SAN.format(storage="", size="64m").replace("100mbit", "40mbit")
    with brought_up(tmp_path, topology, unique("raw")) as san, san.serving_raw(9000):
        found = san.probe("--raw", "10.231.1.101:9000")
        alone = san.probe()
    assert found["limit"] == "line", found
    assert alone["limit"] == "line", alone
    assert alone["sentence"].startswith("A line, or a limit on its rate, is full"), alone
    assert found["sentence"].startswith("The line or TCP is the limit: raw TCP carries"), found
    assert all(one["mb_s"] < 5.0 for one in found["raw"]), "more than the line carries"
