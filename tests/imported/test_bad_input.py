"""Files that are damaged, hostile, or of another kind: one clear error that names the file, and the line if known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from linerate.errors import UserError
from linerate.imported import KINDS, read_file

from tests.imported import files

FIO = files.fio_text(files.fio_job("night", read=files.READS))
IOMETER = files.iometer_text(files.ALL)


def refusal(folder: Path, content: str | bytes, kind: str | None = None) -> str:
    path = folder / "result"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError) as caught:
        read_file(path, kind)
    assert str(path) in caught.value.message
    assert caught.value.hint
    return caught.value.message.removeprefix(str(path))


def read_side(**changes: Any) -> str:
    return files.fio_text(files.fio_job("night", read={**files.READS, **changes}))


def test_an_unknown_kind_is_refused_with_the_kinds(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("shopping list\n")
    with pytest.raises(UserError) as caught:
        read_file(path)
    assert caught.value.message == f"{path}: not a result file that can be imported"
    assert all(kind.title in caught.value.hint for kind in KINDS.values())


def test_text_results_name_the_option_that_is_needed(tmp_path: Path) -> None:
    fio = "x: (groupid=0, jobs=1): err= 0: pid=1\n\nRun status group 0 (all jobs):\n"
    assert "a text result of fio" in refusal(tmp_path, fio)
    assert "a text result of diskspd" in refusal(tmp_path, "Command Line: diskspd t\n\nInput parameters:\n")


def test_another_kind_than_asked_for(tmp_path: Path) -> None:
    assert "this is not Iometer's CSV" in refusal(tmp_path, FIO, "iometer")


@pytest.mark.parametrize("content", [b"", b" \n\n", b"\xff\xfe"])
def test_an_empty_file(tmp_path: Path, content: bytes) -> None:
    assert refusal(tmp_path, content) == ": the file is empty"


def test_encodings_that_cannot_be_read(tmp_path: Path) -> None:
    assert "no UTF-16" in refusal(tmp_path, FIO.encode("utf-16")[:-1])
    assert "NUL bytes" in refusal(tmp_path, FIO.encode("utf-16-le"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        read_file(tmp_path / "absent")
    with pytest.raises(UserError, match="directory"):
        read_file(tmp_path)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.99])
def test_a_truncated_file_names_a_line(tmp_path: Path, share: float) -> None:
    for text in (FIO, files.DISKSPD_L):
        cut = text[: int(len(text) * share)]
        message = refusal(tmp_path, cut, "fio" if text is FIO else "diskspd")
        assert message[0] == ":"
        assert 0 < int(message[1:].split(":")[0]) <= text.count("\n") + 1
    average = files.FLAT.rindex("\n", 0, -1) + 1
    cut = files.FLAT[: average + int((len(files.FLAT) - average) * share) - 12]
    assert ":9: " in refusal(tmp_path, cut)
    before, begin, after = IOMETER.partition("\r\nALL")
    assert ":15: " in refusal(tmp_path, before + begin + after[: int(after.index("\r\n") * share)])


def test_nothing_that_has_ended(tmp_path: Path) -> None:
    only = files.flat_text(files.flat_line("10:00:05.000", 1, **files.MIXED))
    assert "no line of averages" in refusal(tmp_path, only)
    assert "no row ALL" in refusal(tmp_path, IOMETER.partition("\r\n'Results")[0])
    nothing = "<Results><TimeSpan><Error>The test was interrupted</Error></TimeSpan></Results>"
    assert "no time span with results" in refusal(tmp_path, nothing)
    assert "no list of jobs" in refusal(tmp_path, files.fio_text())


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (math.nan, "is nan, not a number"),
        (math.inf, "is inf, not a number"),
        (-1, "is -1: negative"),
        ("30000", "is str, not a number"),
        (True, "is bool, not a number"),
        (1e300, "is too large"),
        (None, "is missing"),
    ],
)
def test_fio_numbers(tmp_path: Path, value: Any, said: str) -> None:
    assert f"jobs[0] ('night').read.iops {said}" in refusal(tmp_path, read_side(iops=value))
    clat = {**files.READS["clat_ns"], "mean": value}
    assert f"read.clat_ns.mean {said}" in refusal(tmp_path, read_side(clat_ns=clat))


def test_fio_parts_of_another_form(tmp_path: Path) -> None:
    assert "jobs[0] ('night').read is no object" in refusal(
        tmp_path, files.fio_text(files.fio_job("night", read=[]))
    )
    table = {**files.READS["clat_ns"], "percentile": {"99th": 1}}
    assert "'99th' is no percentage" in refusal(tmp_path, read_side(clat_ns=table))
    assert "trims are not read" in refusal(tmp_path, files.fio_text(files.fio_job("t", trim=files.READS)))
    assert "client_stats" in refusal(tmp_path, files.fio_text(client_stats=[]))
    assert "jobs: no list" in refusal(tmp_path, json.dumps({"fio version": "fio-3.33", "jobs": {}}))


def test_fio_a_deep_nest_and_a_long_number(tmp_path: Path) -> None:
    head = '{\n"fio version": "fio-3.33",\n"jobs": '
    assert ":1: no JSON of fio: too deep" in refusal(tmp_path, head + "[" * 200_000)
    assert ":1: no JSON of fio: a number with too many digits" in refusal(tmp_path, head + "9" * 10_000 + "}")


@pytest.mark.parametrize("value", ["NaN", "-1", "Infinity", "1,5", "0x10", "", "1e999", "\u0661"])
def test_numbers_in_lines_and_elements(tmp_path: Path, value: str) -> None:
    if value:
        flat = files.FLAT.replace(" 40.2500 ", f" {value} ")
        assert ":9: resp_max: " in refusal(tmp_path, flat)
    wrong = {**files.ALL, "Read I/Os": value.replace(",", ".")}
    assert ":15: Read I/Os: " in refusal(tmp_path, files.iometer_text(wrong))
    xml = files.DISKSPD_L.replace("<TestTimeSeconds>20.00<", f"<TestTimeSeconds>{value}<")
    assert "TestTimeSeconds: " in refusal(tmp_path, xml)


def test_a_line_of_ten_megabytes(tmp_path: Path) -> None:
    long = "x" * 10_000_000
    assert f":10: a line of {len(long):,} characters" in refusal(tmp_path, files.FLAT + long)
    assert "characters" in refusal(tmp_path, IOMETER + long)
    assert "more than 32,768 characters" in refusal(tmp_path, files.DISKSPD_L.replace("LOADHOST", long))


@pytest.mark.parametrize(
    "subset", ['[<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]', 'SYSTEM "file:///etc/passwd"', "[]"]
)
def test_xml_with_a_document_type_is_refused(tmp_path: Path, subset: str) -> None:
    text = f'<?xml version="1.0"?>\n<!DOCTYPE Results {subset}>\n{files.DISKSPD_L}'
    assert refusal(tmp_path, text, "diskspd").startswith(":2: a document type")


def test_xml_that_is_deep_or_of_another_form(tmp_path: Path) -> None:
    assert "too deep" in refusal(tmp_path, "<Results>" + "<a>" * 100_000)
    assert "junk after document element" in refusal(tmp_path, files.DISKSPD_L + "\n" + files.DISKSPD_L)
    assert "without IOCount" in refusal(tmp_path, files.DISKSPD_L.replace("IOCount", "Count"))


def test_vdbench_columns(tmp_path: Path) -> None:
    assert "no column mb/sec" in refusal(tmp_path, files.FLAT.replace("MB/sec", "KB/sec"))
    ops = "tod timestamp Run Interval reqrate rate resp MB/sec Mkdir_rate\n"
    assert "file system workload" in refusal(tmp_path, ops)
    assert "read%: 170 is more than 100" in refusal(
        tmp_path, files.FLAT.replace("   70.0000 ", "  170.0000 ")
    )
    one = [
        files.flat_line("10:00:05.000", 2, **files.MIXED),
        files.flat_line("10:00:05.001", "avg_2-2", **files.MIXED),
    ]
    assert "takes two lines of intervals" in refusal(tmp_path, files.flat_text(*one))
    assert "avg_3-2 has no interval" in refusal(tmp_path, files.FLAT.replace("avg_2-3", "avg_3-2"))
