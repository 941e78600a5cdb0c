"""Our initiator on a stranger's array (tgt): what we write is what QEMU's tools read there, block by block."""

from __future__ import annotations

import json
import re
import struct
import subprocess
from pathlib import Path

import polars as pl
import pytest
from linerate.array import ArrayConfig, EmbeddedArray, TargetConfig, VolumeConfig
from linerate.results import RunDirectory

from tests.cli.conftest import Done, linerate
from tests.peers.conftest import TGT_IQN, VOLUME_BYTES, Tgt
from tests.support import need

TIMEOUT_S = 60.0
BLOCK_BYTES = 512
SEED = 9
FILL = """\
warm_up = "0s"
elapsed = "60s"
volume = [{ name = "v", outstanding = 8 }]
stream = [{ name = "fill", size = "256k", read = 0, random = 0, stop_at_end = true }]
run = [{ name = "fill", streams = "fill" }]
"""
MIXED = """\
warm_up = "0s"
elapsed = "1s"
interval = "0.5s"
volume = [{ name = "v", outstanding = 16 }]
stream = [{ name = "mixed", size = { min = "512", max = "64k", align = "512" }, read = 50 }]
run = [{ name = "mixed", streams = "mixed" }]
"""


def _qemu_img(*words: str) -> str:
    command = [need.tool("qemu-img"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def _verified_run(text: str, url: str, directory: Path, *words: str) -> Done:
    workload = directory.with_suffix(".toml")
    workload.write_text(text, "ascii")
    seeded = ("--verify", "--seed", str(SEED), "--output", directory, "--no-report")
    return linerate("run", workload, "--target", url, "--overwrite", "all", *seeded, *words)


def _unstamped(image: bytes) -> list[int]:
    """Blocks that are not the first writing of their own address by this seed."""
    heads = (struct.unpack_from("<3Q", image, at) for at in range(0, len(image), BLOCK_BYTES))
    return [n for n, head in enumerate(heads) if head != (n * BLOCK_BYTES, 1, SEED)]


@pytest.mark.long
def test_what_we_write_is_what_qemu_reads(tgt: Tgt, tmp_path: Path) -> None:
    """Every block is written once; the same writes on our array give the same content."""
    target = TargetConfig(
        name="iqn.2026-11.lab.linerate:twin",
        volumes=(VolumeConfig(lun=0, name="v", size_bytes=VOLUME_BYTES),),
    )
    with EmbeddedArray(ArrayConfig(portals=("127.0.0.1:0",), targets=(target,))) as array:
        for name, url in (("tgt", tgt.url), ("ours", array.url(0))):
            done = _verified_run(FILL, url, tmp_path / name)
            assert done.returncode == 0, done.stderr
            assert RunDirectory.open(tmp_path / name).intervals["bytes"].sum() == VOLUME_BYTES
        assert "Images are identical." in _qemu_img(
            "compare", "-f", "raw", "-F", "raw", tgt.url, array.url(0)
        )
    read_back = tmp_path / "back.img"
    _qemu_img("convert", "-f", "raw", "-O", "raw", tgt.url, str(read_back))
    image = read_back.read_bytes()
    assert len(image) == VOLUME_BYTES
    assert not _unstamped(image)
    assert image == tgt.backing.read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("digest", ["None", "CRC32C"])
def test_mixed_load_verifies(tgt: Tgt, tmp_path: Path, digest: str) -> None:
    """512 bytes to 64 KiB over 4 MiB: most reads meet blocks that were written before."""
    for key in ("HeaderDigest", "DataDigest"):
        allowed = ("--op", "update", "--mode", "target", "--tid", "1", "-n", key, "-v", digest)
        assert tgt.admin(*allowed).returncode == 0
    digests = (
        "--set",
        f"iscsi.header_digest={digest.lower()}",
        "--set",
        f"iscsi.data_digest={digest.lower()}",
    )
    done = _verified_run(MIXED, tgt.url, tmp_path / "run", "--size", "4m", *digests)
    assert done.returncode == 0, done.stderr
    run = RunDirectory.open(tmp_path / "run")
    assert run.intervals["errors"].sum() == 0
    assert not [event for event in run.events if event.blame]
    assert set(run.intervals.filter(pl.col("ios") > 0)["op"]) == {"read", "write"}
    facts = json.dumps(run.manifest.steps[0].facts).lower()
    assert ("crc32c" in facts) == (digest == "CRC32C")


def test_discover_finds_targets_luns_and_sizes(tgt: Tgt) -> None:
    done = linerate("discover", tgt.portal)
    assert done.returncode == 0, done.stderr
    assert TGT_IQN in done.stdout
    assert re.search(r"LUN 1 +64 MiB  512 B blocks  IET", done.stdout), done.stdout
    (target,) = json.loads(linerate("discover", tgt.portal, "--json").stdout)["targets"]
    assert target["iqn"] == TGT_IQN
    assert [lun["capacity_bytes"] for lun in target["luns"] if lun["lun"] == 1] == [VOLUME_BYTES]
