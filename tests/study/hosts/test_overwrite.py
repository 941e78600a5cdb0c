"""A study of hosts that exist asks once for all that it writes to, before anything is changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from linerate.array import ArrayConfig, EmbeddedArray, TargetConfig, VolumeConfig
from linerate.cli.study.laboratory import laboratory_for
from linerate.errors import UserError
from linerate.study import Study, load_study
from linerate.study.laboratory import SetUp
from linerate.study.laboratory.hosts import HostLaboratory
from linerate.volumes import Consent, Look, RefusedError

from tests.cli.conftest import linerate
from tests.study.hosts.test_here import STUDY
from tests.volumes.test_look import make, make_ext4

TARGET = "iqn.2026-11.lab.linerate:study"
MIB = 1 << 20
WRITES = """\
[[volume]]
name = "v1"
target = "null:1m"

[[stream]]
name = "write"
size = "64k"
read = 0
"""


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The contents of the LUN."""
    return make(tmp_path / "image", 64 * MIB)


@pytest.fixture
def folder(tmp_path: Path, image: Path) -> Iterator[Path]:
    """A study of this machine that writes to a LUN."""
    volume = VolumeConfig(lun=0, name="image", kind="file", path=str(image), size_bytes=64 * MIB)
    config = ArrayConfig(portals=("127.0.0.1:0",), targets=(TargetConfig(name=TARGET, volumes=(volume,)),))
    (tmp_path / "load.toml").write_text(WRITES, "ascii")
    with EmbeddedArray(config) as array:
        text = STUDY.replace("BLOCKS", "1").replace('"null:67108864"', f'"{array.url(0)}"')
        (tmp_path / "writes.toml").write_text(text.replace('"read"', '"write"'), "ascii")
        yield tmp_path


class _Applier:
    """Holds no setting."""

    def __init__(self) -> None:
        self.held = 0

    def hold(self, settings: Any) -> SetUp:
        self.held += 1
        return SetUp(dict(settings), {})

    def restore(self) -> None:
        pass


def _study(folder: Path) -> Study:
    return load_study(folder / "writes.toml")


@pytest.mark.long
def test_a_pipe_is_refused_before_anything_is_changed(folder: Path, image: Path) -> None:
    done = linerate("run", folder / "writes.toml", "--output", folder / "out")
    assert done.returncode == 2
    assert "this run would overwrite" in done.stderr
    assert "blank" in done.stderr
    assert not (folder / "out").exists()
    assert not any(image.read_bytes())
    done = linerate("study", "run", folder / "writes.toml", "--output", folder / "out", "--overwrite", "v9")
    assert "--overwrite v9: no volume has this name, path or URL" in done.stderr


def test_a_file_system_must_be_named(folder: Path, image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_ext4(image)
    study = _study(folder)
    with pytest.raises(RefusedError, match="ext4 file system"):
        laboratory_for(study, folder / "out", Consent.of(["all"]))
    url = study.sans[0].hosts[0].volumes[0]
    for name in (url, "v1"):
        laboratory_for(study, folder / "out", Consent.of([name]))


@pytest.mark.long
def test_one_question_is_for_all_runs(folder: Path, image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[Look]] = []

    def ask(looks: Any) -> bool:
        asked.append(list(looks))
        return True

    applier = _Applier()
    monkeypatch.setattr(HostLaboratory, "_applier", lambda self, host, stack: applier)
    study = _study(folder)
    laboratory = laboratory_for(study, folder, Consent.of([], ask))
    assert [look.words for looks in asked for look in looks] == ["blank"]
    assert applier.held == 0
    laboratory.bring_up(study.sans[0], [])
    for number in range(2):
        laboratory.apply({})
        found = laboratory.measure(study.workloads[0], folder / f"run{number}", {})
        assert found.values["iops"] > 0
    assert len(asked) == 1
    make_ext4(image)  # another program, between two runs
    with pytest.raises(UserError, match="ext4 file system"):
        laboratory.measure(study.workloads[0], folder / "run2", {})
    laboratory.close()
