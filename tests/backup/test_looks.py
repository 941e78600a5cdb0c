"""What `backup-load` finds out about its volumes before the image is made, and what it says of the image afterwards."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from linerate.backup import BackupRequest, BackupSpec, PhaseResult, carry_out
from linerate.volumes import Consent
from linerate.workload.spec import VolumeSpec

from tests.cli.conftest import TIMEOUT_S, Done, linerate
from tests.support import need

DISK_BYTES = 12 << 20
SMALL = ("--size", "12m", "--used", "60", "--changed", "30", "--block", "1m", "--buffered")


def _asked(folder: Path, *more: str) -> tuple[Done, Path]:
    """A backup with these further words, and its image."""
    image = folder / "image.vhdx"
    return linerate("backup-load", image, *SMALL, *more, "--output", folder / "run"), image


@pytest.mark.parametrize(
    ("size_bytes", "said"),
    [(1 << 20, "has 1048576 bytes, fewer than the 12582912"), (None, "there is no such file")],
)
def test_a_source_that_cannot_be_used_is_refused_before_the_image_is_made(
    tmp_path: Path, size_bytes: int | None, said: str
) -> None:
    volume = tmp_path / "volume"
    if size_bytes is not None:
        volume.write_bytes(bytes(size_bytes))
    done, image = _asked(tmp_path, "--source", str(volume))
    assert done.returncode == 2
    assert said in done.stderr
    assert not image.exists()
    assert not (tmp_path / "run").exists()


def test_a_volume_without_a_folder_is_refused_before_the_image_is_made(tmp_path: Path) -> None:
    done, image = _asked(tmp_path, "--restore-to", str(tmp_path / "folder" / "restored"))
    assert done.returncode == 2
    assert "has no folder yet" in done.stderr
    assert not image.exists()


def test_a_restore_makes_its_file(tmp_path: Path) -> None:
    restored = tmp_path / "restored"
    done, _ = _asked(tmp_path, "--restore-to", str(restored))
    assert done.returncode == 0, done.stderr
    assert restored.stat().st_size == DISK_BYTES
    assert any(restored.read_bytes())


def test_an_image_whose_later_phase_does_not_begin_is_valid_and_said_to_be(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(DISK_BYTES))
    request = BackupRequest(
        data=BackupSpec(image_bytes=DISK_BYTES, used_percent=50, changed_percent=5),
        image=VolumeSpec(name="image", url=f"file:{tmp_path / 'image.vhdx'}", create=True, direct=False),
        source=VolumeSpec(name="source", url=f"file:{source}", direct=False),
        block_bytes=1 << 20,
    )

    def tell(told: object) -> None:
        if isinstance(told, PhaseResult):
            source.unlink(missing_ok=True)

    outcome = carry_out(request, Consent.nothing(), tmp_path / "run", tell)
    assert outcome.state == "failed"
    assert [one.phase for one in outcome.phases] == ["create"]
    assert outcome.image == "partial"
    words = (need.tool("qemu-img"), "check", "-f", "vhdx", str(tmp_path / "image.vhdx"))
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert "No errors were found" in done.stdout, done.stdout + done.stderr


def test_a_failed_restore_leaves_a_complete_image(tmp_path: Path) -> None:
    target = tmp_path / "target"
    request = BackupRequest(
        data=BackupSpec(image_bytes=DISK_BYTES, used_percent=50, changed_percent=5),
        image=VolumeSpec(name="image", url=f"file:{tmp_path / 'image.vhdx'}", create=True, direct=False),
        target=VolumeSpec(
            name="target", url=f"file:{target}", direct=False, create=True, size_bytes=DISK_BYTES
        ),
        block_bytes=1 << 20,
    )

    def tell(told: object) -> None:
        if isinstance(told, PhaseResult) and told.phase == "full":
            target.mkdir()

    outcome = carry_out(request, Consent.nothing(), tmp_path / "run", tell)
    assert (outcome.state, outcome.image) == ("failed", "complete")
