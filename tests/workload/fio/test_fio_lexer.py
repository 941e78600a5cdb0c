"""Sections, comments, includes, variables: the five ways in which fio is no INI file, and bad input."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linerate.errors import UserError
from linerate.workload.fio.lexer import JobSection, read_sections
from linerate.workload.problems import Problems
from linerate.workload.spec import SizeMix

from .conftest import ReadFio, only_run, refusal


def lexed(path: Path, text: str | bytes, **names: str) -> list[JobSection]:
    file = path / "w.fio"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    problems = Problems()
    sections = read_sections(file, names, problems)
    problems.raise_if_any()
    return sections


def options(sections: list[JobSection]) -> list[tuple[str, list[str]]]:
    return [(section.name, [option.text for option in section.options]) for section in sections]


def test_keywords_alone_repeated_sections_and_a_second_global(tmp_path: Path) -> None:
    text = "[global]\nbs=4k\n[a]\nstonewall\nrw=read\n[a]\nrw=write\n[global]\ntime_based\n[b]\n"
    assert options(lexed(tmp_path, text)) == [
        ("global", ["bs=4k"]),
        ("a", ["stonewall", "rw=read"]),
        ("a", ["rw=write"]),
        ("global", ["time_based"]),
        ("b", []),
    ]


def test_a_second_global_adds_to_the_first_for_the_jobs_below_it(fio: ReadFio) -> None:
    plan = fio(
        "[global]\nfilename=x\ntime_based\nruntime=9\nbs=4k\nrw=randread\n[a]\n"
        "[global]\nbs=8k\nstonewall\n[b]\n[c]\nbs=16k\n"
    )
    sizes = [run.spec.streams[0].sizes for run in plan.steps()]
    assert sizes == [SizeMix.one(4096), SizeMix.one(8192), SizeMix.one(16384)]
    assert {run.spec.streams[0].random_percent for run in plan.steps()} == {100}


def test_comments_blanks_tabs_and_crlf(tmp_path: Path) -> None:
    text = "; first\r\n  [a]  # the job\r\n\trw=read ; no\r\n   # none\r\n\r\nbs=4k#x\r\niodepth = 3\r\n"
    assert options(lexed(tmp_path, text)) == [("a", ["rw=read", "bs=4k", "iodepth=3"])]


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    assert options(lexed(tmp_path, b"\xef\xbb\xbf[a]\nrw=read")) == [("a", ["rw=read"])]


def test_a_percent_sign_is_just_a_character(tmp_path: Path) -> None:
    assert options(lexed(tmp_path, "[a]\nsize=50%\n")) == [("a", ["size=50%"])]


def test_an_include_is_read_in_place_from_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "more.inc").write_text("bs=8k\ninclude deep.inc\n")
    (tmp_path / "deep.inc").write_text("iodepth=4\n")
    assert options(lexed(tmp_path, "[a]\nrw=read\ninclude more.inc\nsize=1m\n")) == [
        ("a", ["rw=read", "bs=8k", "iodepth=4", "size=1m"])
    ]
    assert options(lexed(tmp_path, "[a]\ninclude=deep.inc\n")) == [("a", ["iodepth=4"])]


def test_variables_come_from_the_command_line_then_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISK", "/dev/sdq")
    monkeypatch.setenv("DEPTH", "4")
    text = "[a]\nfilename=${DISK}:${DISK}1\niodepth=${DEPTH}\n"
    assert options(lexed(tmp_path, text, DEPTH="32")) == [
        ("a", ["filename=/dev/sdq:/dev/sdq1", "iodepth=32"])
    ]


def test_words_for_facts_of_the_host_are_numbers(tmp_path: Path) -> None:
    ((_, texts),) = options(lexed(tmp_path, "[a]\nnumjobs=$ncpus\nbs=$pagesize\nsize=$mb_memory\n"))
    assert all(text.partition("=")[2].isdigit() for text in texts)


def test_a_value_for_no_variable_is_an_error(fio: ReadFio) -> None:
    with pytest.raises(UserError, match=r"w\.fio: SIZE=1g was given, but no \$\{SIZE\} is there"):
        fio("[a]\nrw=read\n", SIZE="1g")


CPU_S_MAX = 4.0
BAD = {
    "nothing": (b"", "w.fio: no job in the file"),
    "comments alone": (b"# x\n; y\n", "w.fio: no job in the file"),
    "only a global": (b"[global]\nbs=4k\n", "w.fio: no job in the file"),
    "no section": (b"rw=read\n", "w.fio:1: rw=read: outside of a section"),
    "an open bracket": (b"[a]\nrw=read\n[b", "w.fio:3: [b: not the name of a section"),
    "text behind a bracket": (b"[a]x\n", "w.fio:1: [a]x: not the name of a section"),
    "a name that cannot be shown": (b"[a\x1b[2J]\n", "w.fio:1: [a?[2J]: not the name of a section"),
    "no name": (b"[]\n", "w.fio:1: []: not the name of a section"),
    "no value": (b"[a]\nbs=\n", "w.fio:2: bs=: no value"),
    "a keyword alone that needs a value": (b"[a]\nbs\n", "w.fio:2: bs: no value"),
    "two words": (b"[a]\nrw read\n", "w.fio:2: rw read: not keyword=value"),
    "UTF-16 without its mark": (
        "[a]\nrw=read\n".encode("utf-16-le"),
        "w.fio:1: NUL bytes: UTF-16 without its mark",
    ),
    "a NUL": (b"[a]\nrw=re\0ad\n", "w.fio:2: a NUL byte"),
    "a variable without value": (b"[a]\nsize=${NO_SUCH_NAME_1}\n", "w.fio:2: ${NO_SUCH_NAME_1} has no value"),
    "an open variable": (b"[a]\nnumjobs=${HOME\n", "w.fio:2: numjobs=${HOME: not a whole number"),
    "an include of nothing": (b"[a]\ninclude\n", "w.fio:2: include : no such file"),
    "an include that is not there": (b"[a]\ninclude no.fio\n", "w.fio:2: include no.fio: no such file"),
    "an include outside": (b"include w.fio\n", "w.fio:1: include w.fio: outside of a section"),
    "itself": (b"[a]\nrw=read\ninclude w.fio\n", "w.fio:3: include w.fio: the file includes itself"),
    "an unknown keyword": (b"[a]\nrunime=4\n", "w.fio:2: runime=4: unknown keyword 'runime'"),
    "capital letters": (b"[a]\nRW=read\n", "w.fio:2: RW=read: unknown keyword 'RW'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_its_line(name: str, fio: ReadFio) -> None:
    text, expected = BAD[name]
    assert refusal(fio, text).message == expected


def test_includes_in_a_circle_end(fio: ReadFio) -> None:
    Path("x.inc").write_text("bs=4k\ninclude y.inc\n")
    Path("y.inc").write_text("iodepth=4\ninclude x.inc\n")
    assert (
        refusal(fio, "[a]\nrw=read\ninclude x.inc\n").message
        == "y.inc:2: include x.inc: the file includes itself"
    )


def test_a_file_included_twice_is_no_circle(fio: ReadFio) -> None:
    Path("x.inc").write_text("bs=8k\n")
    assert len(fio("[a]\ninclude x.inc\ninclude x.inc\nfilename=x\ntime_based\nruntime=4\n")) == 1


def test_an_included_file_has_no_sections(fio: ReadFio) -> None:
    Path("x.inc").write_text("bs=4k\n[b]\nrw=read\n")
    assert (
        "x.inc:2: [b]: an included file has no sections of its own"
        in refusal(fio, "[a]\ninclude x.inc\n").message
    )


@pytest.mark.parametrize(
    "text",
    [
        b"[a]\nfilename=" + b"x" * 10_000_000,
        b"[" + b"a" * 10_000_000,
        b"[a]\n" + b"#" * 10_000_000 + b"\nrw=read\n",
        b"[a]\n" + b"${" * 5_000_000,
        b"[a]\n" + b"bs=4k\n" * 500_000,
        b"\n" * 10_000_000,
        b"[a]\nsize=(" + b"(" * 8000 + b"\n",
        b"[a]\n" + b"exitall=1\nnonsense=1\n" * 24_000,
        b"".join(b"[j%d]\nthread=1\n" % number for number in range(20_000)),
        b"[a]\nbs=" + b"9" * 8000 + b"\n",
    ],
    ids=[
        "value",
        "name",
        "comment",
        "variables",
        "lines",
        "empty lines",
        "parentheses",
        "mistakes",
        "jobs",
        "digits",
    ],
)
def test_long_input_ends_soon(text: bytes, fio: ReadFio) -> None:
    # CPU time: other programs do not count.
    start = time.process_time()
    error = refusal(fio, text)
    assert time.process_time() - start < CPU_S_MAX
    assert error.message.startswith("w.fio")
    assert len(error.message) < 4000


def test_a_long_line_is_named(fio: ReadFio) -> None:
    message = refusal(fio, "[a]\nrw=read\ndescription=" + "x" * 9000 + "\n").message
    assert message == "w.fio:3: a line of 9,012 characters; fio reads at most 8192"


def test_a_name_that_begins_with_global_is_global_as_in_fio(fio: ReadFio) -> None:
    plan = fio("[globals]\nfilename=x\nbs=8k\n[a]\ntime_based\nruntime=4\n")
    assert "w.fio:1: [globals] is read as [global]" in str(plan.warnings[0])
    assert only_run(plan).streams[0].sizes == SizeMix.one(8192)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(fio: ReadFio, content: bytes) -> None:
    with contextlib.suppress(UserError):
        fio(b"[a]\n" + content)


_WORDS = st.sampled_from(
    (
        *(
            "bs",
            "rw",
            "size",
            "iodepth",
            "numjobs",
            "filename",
            "offset",
            "runtime",
            "bssplit",
            "bsrange",
            "rate",
        ),
        *(
            "rate_iops",
            "stonewall",
            "time_based",
            "nrfiles",
            "percentage_random",
            "loops",
            "offset_increment",
        ),
    )
)
_VALUES = st.text(st.sampled_from("0123456789kmg%,:-/().$ {}*x^"), max_size=8) | st.sampled_from(
    ["randrw", "4k", "4k/60:8k", "1k-4k", "10s", "(2*3)", "50%", "a:b", "read", "1"]
)


@pytest.mark.long
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(_WORDS, _VALUES), max_size=8))
def test_any_values_are_read_or_refused(fio: ReadFio, pairs: list[tuple[str, str]]) -> None:
    with contextlib.suppress(UserError):
        plan = fio("[a]\n" + "".join(f"{word}={value}\n" for word, value in pairs))
        assert all(run.spec.seam_json() for run in plan.steps())
