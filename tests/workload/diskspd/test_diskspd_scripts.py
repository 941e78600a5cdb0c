"""Commands in scripts: found, joined, unrolled, filled in, or refused with their line."""

from __future__ import annotations

import contextlib
import re
import string
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linerate.errors import UserError
from linerate.workload import load_workload
from linerate.workload.diskspd.lexer import FILE_BYTES_MAX, LINE_CHARACTERS_MAX
from linerate.workload.foreign import kind_of_file

from tests.cli.conftest import linerate

from .conftest import NULL, ReadScript

SCRIPT = r"""@echo off
REM diskspd -b4K must not run
set DUR=60
for %%b in (8 64) do for /l %%o in (1,1,2) do sqlio -kR -s%DUR% -frandom -o%%o -b%%b -BN E:\test.dat >> out.txt
timeout /T 10
"C:\my tools\diskspd.exe" -b64K ^
    -d%DUR% -W0 -w100 "E:\a file.dat" > "o.txt" 2>&1
echo diskspd -b8K x
"""


def test_a_script_of_cmd(script: ReadScript) -> None:
    runs = list(script(SCRIPT).steps())
    sizes = [run.spec.streams[0].sizes.model_dump()["parts"][0][0] >> 10 for run in runs]
    assert sizes == [8, 8, 64, 64, 64]
    assert [run.spec.volumes[0].outstanding for run in runs] == [1, 2, 1, 2, 2]
    assert {run.spec.elapsed_s for run in runs} == {60}
    assert [run.source for run in runs] == ["t.cmd:4"] * 4 + ["t.cmd:6"]
    assert len({run.label for run in runs}) == 5
    assert len({run.spec.volumes[0].name for run in runs}) == 2


def test_a_script_of_powershell(script: ReadScript) -> None:
    text = '$file = "E:\\x.dat"\n& C:\\t\\diskspd.exe -b8K `\n  -d5 $file | Out-Null\n# diskspd -d9 x\n'
    (run,) = script(text, name="t.ps1").steps()
    assert (run.spec.elapsed_s, run.source) == (5, "t.ps1:2")


def test_a_comment_over_several_lines_of_powershell(script: ReadScript) -> None:
    text = "<#\nDISKSPD - a load\ndiskspd -d9 x\n#>\ndiskspd -d5 y <# here #>\n"
    (run,) = script(text, name="t.ps1").steps()
    assert (run.spec.elapsed_s, run.source) == (5, "t.ps1:5")


@pytest.mark.parametrize(
    "line", ['.\\all.ps1 -time 3 -exe "C:\\t\\diskspd" -size 4k', "x.ps1 -to C:\\diskspd -go"]
)
def test_the_options_of_another_script_are_no_command(script: ReadScript, line: str) -> None:
    (run,) = script(f"powershell -file {line}\ndiskspd -d5 y\n", name="t.cmd").steps()
    assert (run.spec.elapsed_s, run.source) == (5, "t.cmd:2")


def test_values_in_parentheses_of_powershell(script: ReadScript) -> None:
    text = "$b = 4\ndiskspd `-b$($b)K -d5 y\n"
    (run,) = script(text, name="t.ps1").steps()
    assert run.spec.streams[0].sizes.model_dump()["parts"] == ((4096, 100.0),)


def test_targets_that_a_command_of_powershell_finds(script: ReadScript) -> None:
    with pytest.raises(
        UserError, match=re.escape("t.ps1:1: (dir: a value that only the running script knows")
    ):
        script("diskspd -d5 (dir C:\\x?.dat)\n", name="t.ps1")


def test_a_block_of_powershell_ends_a_command(script: ReadScript) -> None:
    text = "1..4 | % { Invoke-Command -VM VM$_ -ScriptBlock {C:\\t\\diskspd.exe -b8K -d5 x.bin} -Credential $who }\n"
    (run,) = script(text, name="t.ps1").steps()
    assert (run.spec.elapsed_s, [volume.name for volume in run.spec.volumes]) == (5, ["disk1"])


def test_values_come_from_the_command_line(script: ReadScript) -> None:
    text = "set SECS=%1\r\nset TOOL=C:\\t\\diskspd.exe\r\n%TOOL% -d%SECS% x\r\n"
    (run,) = script(text, substitutions={"secs": "7"}).steps()
    assert run.spec.elapsed_s == 7


def test_only_what_runs_the_tool_is_a_command(script: ReadScript) -> None:
    text = (
        'if (Test-Path "C:\\SQLIO\\") { Write-Verbose "SQLIO are there" }\n'
        "Copy-Item -Path D:\\DiskSpd.exe -Destination E:\\x\n"
        '$cmd = "diskspd -b4K -d1 x"\n'
        "cd C:\\diskspd; .\\diskspd -b8K -d2 x; diskspd -d3 x\n"
        "Invoke-Expression $cmd\n"
        "$result = C:\\t\\diskspd.exe -d5 x | Out-String\n"
    )
    assert [run.spec.elapsed_s for run in script(text, name="t.ps1").steps()] == [2, 3, 1, 5]
    text = 'set RUN=DiskSpd.exe -d4 x\necho %RUN%\n%RUN%\ncmd /c "diskspd -d6 x" & diskspd x.dat\n'
    assert [run.spec.elapsed_s for run in script(text).steps()] == [4, 6, 10]


def test_a_prompt_before_the_command(script: ReadScript) -> None:
    (run,) = script("D:\\SQLIO>sqlio -kR -frandom -s5 x\n").steps()
    assert (run.spec.elapsed_s, run.spec.streams[0].name) == (5, "sqlio")


@pytest.mark.parametrize("word", ["%SECS%", "%1", "%%i", "$x", "!x!", "$(get-x)", " %*", " @words"])
def test_a_value_of_a_running_script_is_refused(script: ReadScript, word: str) -> None:
    with pytest.raises(UserError, match="only the running script knows") as caught:
        script(f"\ndiskspd -b8K x{word}\n")
    assert "t.cmd:2: " in caught.value.message


@pytest.mark.parametrize(
    "line",
    [
        r"if exist c:\ ( bin\diskspd.exe -b8K -d7 x )",
        r'if not exist "c:\a b" diskspd -b8K -d7 x',
        r'if (Test-Path "x") { .\diskspd.exe -b8K -d7 x }',
        "IF (Get-Item (Join-Path a b)) { diskspd -b8K -d7 x }",
    ],
)
def test_a_command_behind_a_condition_runs_with_a_notice(script: ReadScript, line: str) -> None:
    plan = script(f"{line}\ndiskspd -b4K -d9 y\n")
    assert [run.spec.elapsed_s for run in plan.steps()] == [7, 9]
    assert [run.spec.volumes[0].name for run in plan.steps()] == ["disk1", "disk2"]
    assert any("behind a condition" in notice.message for notice in plan.warnings)


def test_an_else_is_refused(script: ReadScript) -> None:
    with pytest.raises(UserError, match="one side of an else"):
        script("if exist x (diskspd -b8K a) else (diskspd -b4K b)\n")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_encodings(script: ReadScript, encoding: str) -> None:
    (run,) = script("rem gr\xf6\xdfe\r\ndiskspd\t-b8K  x\r\n".encode(encoding)).steps()
    assert run.source == "t.cmd:2"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no command of diskspd or sqlio"),
        (b"echo hello\n", "no command of diskspd or sqlio"),
        (b"diskspd -b8K x\0y\n", "t.cmd:1: a NUL byte"),
        (b"diskspd -b8K " + b"x" * LINE_CHARACTERS_MAX, "a line of"),
        (b"diskspd -b8K x ^\n" * 40_000, "a line of"),
        (b"echo\n" + b"diskspd -b8K " * 800_000, "t.cmd:2: a line of"),
        (b"for %%a in (" + b"1 " * 12_000 + b") do diskspd -o%%a x\n", "more than 10,000 turns"),
        (
            "diskspd -b8K x\n".encode("utf-16")[:-7],
            "t.cmd: byte 24: no UTF-16, though it begins with its mark",
        ),
        (b"\xff\xfe" + "diskspd -b8K \ud800x\n".encode("utf-16-le", "surrogatepass"), "no UTF-16"),
        ("diskspd -b8K x\n".encode("utf-16-le"), "t.cmd:1: NUL bytes: UTF-16 without its mark"),
        (b"for /l %%a in (1,1,99999) do diskspd -o%%a x\n", "more than 10,000 turns"),
        (b"rem" + b" " * FILE_BYTES_MAX, "larger than 16 MiB"),
        (b"diskspd -t99 -q1 x\ndiskspd -w900 x\n", "t.cmd:2: "),
    ],
)
def test_bad_input(script: ReadScript, content: bytes, words: str) -> None:
    with pytest.raises(UserError) as caught:
        script(content)
    assert words in caught.value.message


@pytest.mark.parametrize(
    "unit", ["set A= ", " ", "=", "@/", "diskspd ", '"', "for %%a in (", "(((", "<!-- -->", "if not ", "%a%"]
)
def test_long_lines_are_read_at_once(script: ReadScript, unit: str) -> None:
    line = "set A=" + unit * ((LINE_CHARACTERS_MAX - 100) // len(unit)) + "x"
    began = time.process_time()
    with contextlib.suppress(UserError):
        script(f"{line}\n{line[6:]}\n" * 5)
    assert time.process_time() - began < 5


@given(st.text(alphabet=string.printable + "\xe4\u2028", max_size=80))
def test_no_text_crashes_the_reader(text: str) -> None:
    path = Path("/dev/shm") / "linerate-diskspd-property.cmd"
    path.write_text(f"diskspd {text}\n", "utf-8", newline="")
    try:
        with contextlib.suppress(UserError):
            assert len(load_workload(path, overrides=NULL)) >= 1
    finally:
        path.unlink()


def test_files_are_told_apart(tmp_path: Path) -> None:
    for name, text, kind in (
        ("a.txt", "# tests\nC:\\t\\sqlio.exe -kR -frandom x\n", "diskspd"),
        ("b.txt", "* sqlio -kR\nsd=sd1,lun=/dev/sdb\nwd=w,sd=*\nrd=r,wd=w\n", "vdbench"),
        ("c.bat", "echo\n", "diskspd"),
        ("d.fio", "; diskspd -b8K x\n[diskspd]\nfilename=x\n", "fio"),
    ):
        (tmp_path / name).write_text(text)
        assert kind_of_file(tmp_path / name) == kind, name


@pytest.mark.long
def test_a_command_runs(tmp_path: Path) -> None:
    words = ("--output", "run", "--no-report", "--target", "null:64m", "--overwrite", "all", "--")
    done = linerate(
        "run", "diskspd", *words, *["-b8K", "-d1", "-W0", "-r", "-w30", "-Sh", "E:\\x"], cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "8k random 70% reads 1x2" in done.stdout
    done = linerate("run", "diskspd", "--target", "null:1g", "--", "-b8K", "-q", "x", cwd=tmp_path)
    assert (done.returncode, "-q: diskspd has no such option" in done.stderr) == (2, True)
