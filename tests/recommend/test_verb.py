"""`linerate study recommend` as a user calls it: the table, a file that is not replaced, mistakes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from linerate.cli import main
from linerate.recommend import recommended_configuration, table_lines
from linerate.study import StudyDirectory

from tests.recommend.planted import configuration, recommendation
from tests.support.samples.study_directory import make_study_directory


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> StudyDirectory:
    return make_study_directory(tmp_path_factory.mktemp("study") / "sample", blocks=5)


def test_the_table_has_settings_that_are_not_the_default_with_their_evidence(
    study: StudyDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "recommend", str(study.path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "nic-sample: NIC tuning (sample)"
    at = next(number for number, line in enumerate(lines) if line.startswith("Jumbo frames (mtu)"))
    assert lines[at].split()[3:] == ["9000", "bytes", "1500", "bytes"]
    assert any(line.startswith("    brought   256K sequential read: +") for line in lines[at:])
    assert "    measured  jumbo frames, default buffers against default settings" in lines[at:]
    assert not any("rx_ring_frames" in line for line in lines), "buffers were shown to make no difference"


def test_values_come_from_the_case_that_was_better(study: StudyDirectory) -> None:
    found = recommended_configuration(study)
    assert [one.text for one in found.settings] == ["mtu = 9000", "delayed_ack = off"]
    assert found.doubt == ""


def test_the_table_says_what_depends_on_the_load_and_what_is_not_decided() -> None:
    mixed = recommendation({"rsc": "off"}, mixed=True, cost=("256K sequential read: -4.0 % (-4.5 .. -3.5)",))
    lines = table_lines(configuration({"mtu": 9000, "multipath.ios_per_path": 4}, mixed))
    at = lines.index("depends on the load:")
    assert lines[at + 2].startswith("Receive segment coalescing  off")
    assert "    cost      256K sequential read: -4.0 % (-4.5 .. -3.5)" in lines[at:]
    (open_ones,) = [line for line in lines if line.startswith("not decided: ")]
    after = lines[lines.index(open_ones) + 1 :]
    assert open_ones == f"not decided: {len(after)} comparison{'s' if len(after) > 1 else ''}"
    assert any(line.startswith("    256K sequential write: receive coalescing off, ") for line in after)


def test_a_study_that_was_left_says_so_and_one_without_runs_recommends_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = make_study_directory(tmp_path / "left", blocks=3, state="interrupted")
    assert main(["study", "recommend", str(left.path)]) == 0
    assert "doubt: the study is interrupted (stopped by the user)" in capsys.readouterr().out
    empty = make_study_directory(tmp_path / "empty", blocks=0, state="interrupted")
    assert main(["study", "recommend", str(empty.path)]) == 0
    assert "no setting was shown to help, so there is nothing to set" in capsys.readouterr().out


def test_a_file_is_not_replaced_unasked(
    study: StudyDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "made" / "san.sh"
    command = ["study", "recommend", str(study.path), "--as", "linux", "-d", "eth2", "--out", str(path)]
    assert main(command) == 0
    assert capsys.readouterr().out == f"{path}\n"
    subprocess.run(["sh", "-n", str(path)], check=True)
    path.write_text("mine")
    assert main(command) == 2
    assert "exists already" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert main([*command, "--overwrite"]) == 0
    assert "write_mtu" in path.read_text()


def test_a_result_is_not_written_to(study: StudyDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    inside = study.path / "san.sh"
    assert main(["study", "recommend", str(study.path), "--as", "linux", "--out", str(inside)]) == 2
    assert "a result does not change after its end" in capsys.readouterr().err
    assert not inside.exists()


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--as", "bash"], "bash: there is no such form", "linux, powershell, ansible"),
        (["--as", "switch"], "switch: there is no such form", "switch:nxos"),
        (["--as", "udev"], "udev rules need the ports to the SAN", "--device eth2"),
        (["--as", "linux", "-d", "$(id)"], "is not the name of a network device", "eth2"),
    ],
)
def test_a_mistake_is_the_users(
    arguments: list[str], message: str, hint: str, study: StudyDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "recommend", str(study.path), *arguments]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert hint in told
