"""What commands of sqlio become beyond sizes and mixes: its defaults, names, and parameter files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload import LunMap, Overrides, load_workload

from .conftest import ReadScript, command, only_run, refusal

MIB = 1 << 20


@pytest.mark.parametrize("depth", ["", "-o0", "-o1"])
def test_without_a_queue_a_thread_waits_for_each_io(depth: str) -> None:
    (volume,) = only_run(command(f"sqlio -kR -t8 -frandom {depth} x")).volumes
    assert volume.outstanding == 8


def test_without_a_target_the_file_is_testfile() -> None:
    luns = LunMap.parse(["testfile.dat=null:1g"])
    plan = load_workload(["sqlio", "-kR", "-frandom"], overrides=Overrides(luns=luns))
    assert [volume.url for volume in only_run(plan).volumes] == ["null:1073741824"]


def test_the_first_block() -> None:
    (volume,) = only_run(command("sqlio -kR -frandom -b64 -S32 x")).volumes
    assert volume.first_byte == 2 * MIB


@pytest.mark.parametrize(
    ("options", "firsts", "skip_blocks", "passes", "used_blocks"),
    [
        ("-t2", (0, 32), 63, 32, 4096),
        ("-t1 -i10", (0,), 63, 64, 640),
        ("-f4 -t4 -i8", (0, 1, 2, 3), 3, 1, 32),
        ("-f4 -t2 -i8 -S10", (10, 12), 3, 2, 32),
    ],
)
def test_stripes(
    options: str, firsts: tuple[int, ...], skip_blocks: int, passes: int, used_blocks: int
) -> None:
    size = 8 << 10
    plan = command(f"sqlio -kR -b8 -o3 {options} x")
    spec = only_run(plan)
    assert tuple(volume.first_byte // size for volume in spec.volumes) == firsts
    ends = {volume.first_byte + (volume.size_bytes or 0) for volume in spec.volumes}
    assert ends == {(firsts[0] + used_blocks) * size}
    assert {volume.outstanding for volume in spec.volumes} == {3}
    (stream,) = spec.streams
    assert stream.stride is not None
    assert (stream.stride.min_bytes, stream.stride.max_bytes) == (skip_blocks * size,) * 2
    assert stream.stride.passes == passes
    assert any("again and again" in notice.message for notice in plan.warnings)


def test_stripes_of_one_block_are_sequential() -> None:
    spec = only_run(command("sqlio -kR -b64 -f1 x"))
    assert (spec.volumes[0].size_bytes, spec.streams[0].stride, spec.streams[0].random_percent) == (
        4 * MIB,
        None,
        0,
    )
    assert only_run(command("sqlio -kR -b64 -f1 -i2000000 x")).volumes[0].size_bytes is None


def test_threads_of_a_parameter_file_share_a_stripe(script: ReadScript, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("d:\\x.dat 4 0x0 100\ne:\\x.dat 4 0x0 1\n")
    spec = only_run(script("sqlio -kR -b64 -f8 -Fp.txt\n"))
    assert len(spec.volumes) == 8
    sizes = {volume.first_byte + (volume.size_bytes or 0) for volume in spec.volumes}
    assert sizes == {MIB, 32 * MIB}, "a file that is smaller ends the stripes"
    (tmp_path / "p.txt").write_text("d:\\x.dat 4\ne:\\x.dat 2\n")
    with pytest.raises(UserError, match="-f64 with files of 2 and of 4 threads is not supported"):
        script("sqlio -kR -Fp.txt\n")


def test_a_blank_before_a_number(script: ReadScript) -> None:
    (volume,) = only_run(script('sqlio -kR -frandom "-o 8" -t2 x\n')).volumes
    assert volume.outstanding == 16


def test_options_without_a_load() -> None:
    assert only_run(command("sqlio -kR -frandom -64 -D11 -s7 x")).elapsed_s == 7


@pytest.mark.parametrize("tool", [r"c:\sqlio\sqlio2.exe -T100", "sqlio2 -kR"])
def test_sqlio2(script: ReadScript, tool: str) -> None:
    (run,) = script(f"{tool} -s30 -frandom -b8 -t4 -o16 -BN f:\\file1.dat\n").steps()
    assert (run.spec.volumes[0].outstanding, run.spec.streams[0].read_percent) == (64, 100)


@pytest.mark.parametrize("name", ["param.txt", "PARAM.TXT", r"C:\SQLIO\param.txt", r"\\host\share\Param.txt"])
def test_a_parameter_file_is_found_as_on_windows(name: str, script: ReadScript, tmp_path: Path) -> None:
    (tmp_path / "param.txt").write_text("d:\\x.dat 4 0x0 100 * a comment\n")
    plan = script(f"sqlio -kR -frandom -o2 -F{name}\n")
    (volume,) = only_run(plan).volumes
    assert (volume.outstanding, volume.size_bytes) == (8, 100 * MIB)
    is_elsewhere = "\\" in name
    assert any("a path of Windows" in notice.message for notice in plan.warnings) == is_elsewhere


def test_two_files_that_differ_in_case_alone_are_not_mixed_up(script: ReadScript, tmp_path: Path) -> None:
    for name in ("param.txt", "Param.txt"):
        (tmp_path / name).write_text(f"d:\\{name} 1\n")
    with pytest.raises(UserError, match=r"PARAM\.TXT: No such file"):
        script("sqlio -kR -frandom -FPARAM.TXT\n")


def test_drives_beside_a_parameter_file_are_named(script: ReadScript, tmp_path: Path) -> None:
    (tmp_path / "param.txt").write_text("d:\\x.dat 4\n")
    plan = script("sqlio -kR -frandom -dE -Fparam.txt\n")
    assert any("no effect beside -F" in notice.message for notice in plan.warnings)


def test_a_parameter_file_that_names_itself_is_a_target_like_others(
    script: ReadScript, tmp_path: Path
) -> None:
    (tmp_path / "param.txt").write_text("-Fparam.txt\nparam.txt 2\n")
    with pytest.raises(UserError, match=r"param.txt:1: -Fparam.txt: no target"):
        script("sqlio -kR -frandom -Fparam.txt\n")


@pytest.mark.parametrize("option", ["-kR -frandom -F", "-X"])
def test_a_pipe_is_not_waited_for(option: str, script: ReadScript) -> None:
    os.mkfifo("pipe")
    tool = "diskspd" if option == "-X" else "sqlio"
    with pytest.raises(UserError, match=r"t.cmd:1: .*pipe: not a file"):
        script(f"{tool} {option}pipe\n")


@pytest.mark.parametrize("name", ["x" * 5000, "C:\\" + "x" * 300, "p\xfcx"])
def test_a_parameter_file_that_cannot_be_is_refused(name: str, script: ReadScript) -> None:
    with pytest.raises(UserError, match=r"t.cmd:1: -F"):
        script(f"sqlio -kR -frandom -F{name}\n")


def test_a_bad_parameter_file_names_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.txt").write_text("x 2\n\ny two\n")
    assert "p.txt:3: y two: no target" in refusal("sqlio -kR -frandom -Fp.txt").message
