"""Sizes, times, numbers, splits: what fio reads, and what is refused."""

from __future__ import annotations

import pytest
from linerate.workload.fio.values import (
    Amount,
    JobValueError,
    amount,
    by_direction,
    filenames,
    flag,
    numbers_by_direction,
    percent,
    size_bytes,
    size_range,
    size_split,
    time_s,
    whole,
)
from linerate.workload.spec import SizeMix, SizeRange

SIZES = {
    "512": 512, "4k": 4096, "4K": 4096, "4kb": 4096, "4kB": 4096, "4ki": 4096, "4kib": 4000, "4KiB": 4000,
    "1m": 1 << 20,
    "2g": 2 << 30, "1t": 1 << 40, "1p": 1 << 50, "0x1000": 4096, "010": 10, "512b": 512, "(4*1024)": 4096,
    "(2k + 2k)": 4096, "(2^12)": 4096, "((1+1)*2k)": 4096, "(9000/2-404)": 4096, "(4100%8+4)": 8,
}  # fmt: skip


@pytest.mark.parametrize("text", SIZES)
def test_sizes(text: str) -> None:
    assert size_bytes(text) == SIZES[text]


@pytest.mark.parametrize(("text", "size"), [("4k", 4000), ("4ki", 4000), ("4kib", 4096), ("1m", 1_000_000)])
def test_sizes_with_kb_base_1000(text: str, size: int) -> None:
    assert size_bytes(text, 1000) == size


NO_SIZES = (
    *(
        "",
        "k",
        "1.5k",
        "4kk",
        "-4k",
        "4 k",
        "1e3",
        "4q",
        "(4",
        "()",
        "(a)",
        "(1/0)",
        "(2^99)",
        "9" * 30,
        "99999p",
    ),
    *("(__import__('os'))", "(1 if 1 else 2)", "(" * 150 + "1" + ")" * 150, "(9^62)", "(3-4)"),
)


@pytest.mark.parametrize("text", NO_SIZES)
def test_no_sizes(text: str) -> None:
    with pytest.raises(JobValueError):
        size_bytes(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        ("90s", 90),
        ("5m", 300),
        ("2h", 7200),
        ("1d", 86_400),
        ("500ms", 0.5),
        ("10sec", 10),
        ("7us", 7e-6),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert time_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "1.5", "1m30s", "-1", "soon", "400d", "(3)"])
def test_no_times(text: str) -> None:
    with pytest.raises(JobValueError):
        time_s(text)


def test_numbers_flags_and_percentages() -> None:
    assert (whole("8"), whole("(2*4)"), percent("70"), percent("70%")) == (8, 8, 70.0, 70.0)
    assert (flag("0"), flag("1")) == (False, True)
    assert amount("50%") == Amount(50, is_percent=True)
    assert amount("50") == Amount(50)
    assert (whole("8k"), whole("0x10")) == (8192, 16)
    for wrong in ("8kk", "2.5", "", "x"):
        with pytest.raises(JobValueError):
            whole(wrong)
    for wrong in ("101", "x"):
        with pytest.raises(JobValueError):
            percent(wrong)
    with pytest.raises(JobValueError):
        flag("yes")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (",8k", ("", "8k")),
        ("4k:8k", ("4k", "8k")),
        ("4k-8k-16k", ("4k", "8k")),
        ("-1", ("-1", "-1")),
        ("(4k-1k)", ("(4k-1k)", "(4k-1k)")),
        ("4k,8k-1", ("4k", "8k")),
        ("8k-", ("8k", "")),
        ("", ("", "")),
    ],
)
def test_numbers_by_direction(text: str, parts: tuple[str, str]) -> None:
    assert numbers_by_direction(text) == parts


def test_values_by_direction() -> None:
    assert by_direction("4k") == ("4k", "4k")
    assert by_direction("4k,8k") == ("4k", "8k")
    assert by_direction("4k,8k,16k") == ("4k", "8k")
    assert by_direction(",8k") == ("", "8k")
    with pytest.raises(JobValueError):
        by_direction("1,2,3,4")


def test_ranges_and_splits() -> None:
    assert size_range("4k-64k", 1024) == SizeRange(min_bytes=4096, max_bytes=65536, align_bytes=4096)
    assert size_range("64k:4k", 1024) == SizeRange(min_bytes=4096, max_bytes=65536, align_bytes=4096)
    assert size_range("4k-4k", 1024) == SizeMix.one(4096)
    assert size_split("4k/60:8k/40", 1024) == SizeMix(parts=((4096, 60.0), (8192, 40.0)))
    assert size_split("4k/60:8k:16k/", 1024) == SizeMix(parts=((4096, 60.0), (8192, 20.0), (16384, 20.0)))
    assert size_split("4k/100:8k/0", 1024) == SizeMix.one(4096)
    for wrong in ("4k/60:8k/50", "4k/60", "4k/x", "", "0/100", "2g/100"):
        with pytest.raises(JobValueError):
            size_split(wrong, 1024)
    for wrong in ("4k", "4k-8k-16k", "-4k", "0-4k"):
        with pytest.raises(JobValueError):
            size_range(wrong, 1024)


def test_names_of_files() -> None:
    assert filenames("/dev/sda:/dev/sdb") == ("/dev/sda", "/dev/sdb")
    assert filenames(r"C\:\x:b") == (r"C:\x", "b")
    assert filenames("iscsi://10.0.0.5:3260/iqn.2026-11.lab:d/0") == (
        "iscsi://10.0.0.5:3260/iqn.2026-11.lab:d/0",
    )
