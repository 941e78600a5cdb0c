"""Strangers' clients on our array: QEMU's tools and libiscsi's, on memory and file volumes."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path

import pytest

from tests.peers.conftest import VOLUME_BYTES
from tests.support import need

TIMEOUT_S = 60.0


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture
def qemu_img() -> str:
    """qemu-img with its iSCSI driver."""
    return need.tool("qemu-img")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A raw image as large as the LUN: random stretches, zeros between them."""
    path = tmp_path / "source.img"
    draw = random.Random(7)
    with path.open("wb") as file:
        for _ in range(24):
            file.seek(draw.randrange(VOLUME_BYTES >> 12) << 12)
            file.write(draw.randbytes(min(VOLUME_BYTES - file.tell(), draw.randrange(1, 64) << 12)))
        file.truncate(VOLUME_BYTES)
    return path


@pytest.mark.long
def test_qemu_img_converts_and_compares(lun: str, qemu_img: str, image: Path, tmp_path: Path) -> None:
    _run(qemu_img, "convert", "-n", "-f", "raw", "-O", "raw", str(image), lun)
    assert "Images are identical." in _run(qemu_img, "compare", "-f", "raw", "-F", "raw", str(image), lun)
    back = tmp_path / "back.img"
    _run(qemu_img, "convert", "-f", "raw", "-O", "raw", lun, str(back))
    assert back.read_bytes() == image.read_bytes()


def test_qemu_img_creates_a_format_on_the_lun(lun: str, qemu_img: str) -> None:
    _run(qemu_img, "create", "-f", "qcow2", lun, "32M")
    info = json.loads(_run(qemu_img, "info", "--output", "json", "-f", "qcow2", lun))
    assert info["virtual-size"] == 32 << 20
    _run(qemu_img, "check", "-f", "qcow2", lun)


@pytest.mark.parametrize("direction", [[], ["-w"]], ids=["read", "write"])
def test_qemu_img_bench(lun: str, qemu_img: str, direction: list[str]) -> None:
    command = (qemu_img, "bench", "-f", "raw", "-c", "2000", "-d", "32", "-s", "4096", *direction, lun)
    assert "Run completed" in _run(*command)


def test_qemu_io_patterns_survive(lun: str, qemu_img: str) -> None:
    qemu_io = need.tool("qemu-io")
    writes = ["write -P 0x5a 0 1M", "write -P 0xa5 1M 192k", "write -z 512k 64k", "flush"]
    reads = ["read -P 0x5a 0 512k", "read -P 0 512k 64k", "read -P 0x5a 576k 448k", "read -P 0xa5 1M 192k"]
    output = _run(qemu_io, "-f", "raw", *(word for line in (*writes, *reads) for word in ("-c", line)), lun)
    assert "verification failed" not in output
    assert len(re.findall(r"^read \d+/\d+ bytes", output, re.MULTILINE)) == len(reads)


def test_qemu_io_discard_reads_zeros(lun: str, qemu_img: str) -> None:
    qemu_io = need.tool("qemu-io")
    lines = ["write -P 0x11 8M 1M", "discard 8M 1M", "flush", "read -P 0 8M 1M"]
    output = _run(
        qemu_io, "-f", "raw", "-d", "unmap", *(word for line in lines for word in ("-c", line)), lun
    )
    assert "verification failed" not in output


def test_iscsi_perf_runs(lun: str) -> None:
    output = _run(need.tool("iscsi-perf"), "-m", "16", "-b", "8", "-t", "1", "-r", lun)
    rates = [int(rate) for rate in re.findall(r"iops average (\d+)", output)]
    assert rates, output
    assert max(rates) > 0


def test_iscsi_ls_shows_the_lun(lun: str) -> None:
    portal = lun.split("/iqn")[0]
    output = _run(need.tool("iscsi-ls"), "-s", portal)
    assert "Target:iqn.2026-11.lab.linerate:peers" in output
    assert re.search(r"Lun:0\s+Type:DIRECT_ACCESS \(Size:6[34]M\)", output), output


def test_iscsi_inq_shows_identity(lun: str) -> None:
    inquiry = need.tool("iscsi-inq")
    assert "Peripheral Device Type:DIRECT_ACCESS" in _run(inquiry, lun)
    assert "Device Identification" in _run(inquiry, "-e", "1", "-c", "0", lun) or "0x83" in _run(
        inquiry, "-e", "1", "-c", "0", lun
    )


def test_iscsi_readcapacity_shows_the_size(lun: str) -> None:
    output = _run(need.tool("iscsi-readcapacity16"), lun)
    assert str(VOLUME_BYTES) in output, output
