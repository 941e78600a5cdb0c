"""The tables of labels: spellings of all versions, values by the names of their label, and the page made from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.workload.iometer.documentation import page
from linerate.workload.iometer.tables import FIELDS, LABELS, TESTS, find_label

from .conftest import ReadIcf, only_run, refusal, specs_of
from .writer import NEW_LINE_LABEL, Icf, Spec, Work

TEXT = Icf().text()


def test_rows_are_complete_and_spellings_are_unique() -> None:
    spellings = [spelling.lower() for row in LABELS for spelling in (row.name, *row.older)]
    assert len(spellings) == len(set(spellings))
    for row in LABELS:
        assert row.meaning
        assert find_label(row.text) is row
    for field in FIELDS:
        row = next(row for row in LABELS if row.name == field.label)
        assert field.name in row.fields
    assert [test.number for test in TESTS] == list(range(8))


def test_a_ramp_up_time_is_known_by_its_beginning(icf: ReadIcf) -> None:
    for label in ("'Ramp Up Time", "'RAMP UP TIME in seconds"):
        text = Icf(ramp_s=4).text().replace("'Ramp Up Time (s)", label)
        assert only_run(icf(text)).warmup_s == 4


def test_files_without_seeds_and_patterns_have_iometers_defaults(icf: ReadIcf) -> None:
    old = only_run(
        icf(Icf(workers=(Work(old=True, outstanding=4, sectors=8192, start=64),), version="2006.07.27"))
    )
    new = only_run(icf(Icf(workers=(Work(pattern=0, outstanding=4, sectors=8192, start=64),))))
    assert old == new
    volume = new.volumes[0]
    assert (volume.first_byte, volume.size_bytes, volume.outstanding) == (64 * 512, 8192 * 512, 4)


def test_values_are_read_by_the_names_of_their_label(icf: ReadIcf) -> None:
    turned = TEXT.replace(NEW_LINE_LABEL, "'size,% random,% reads,% of size,delay,burst,reply,align")
    turned = turned.replace("4096,100,67,100,0,1,4096,0", "4096,100,67,100,0,1,0,4096")
    assert specs_of(icf(turned)) == specs_of(icf(TEXT))


def test_lines_without_align_and_reply_have_sectors_and_no_reply(icf: ReadIcf) -> None:
    old = TEXT.replace(",align,reply", "").replace("4096,100,67,100,0,1,4096,0", "4096,100,67,100,0,1")
    new = Icf(specs=(Spec(lines=((4096, 100, 67, 100, 0, 1, 0, 0),)),))
    assert specs_of(icf(old)) == specs_of(icf(new))


OLD = "'size, % of size, % reads, % random, delay, burst\n"


def old_file(lines: str, assigned: str) -> str:
    text = Icf(version="1998.02.01").text()
    start = text.index("'Access specification name")
    text = text[:start] + OLD + lines + text[text.index("'END access") :]
    return text.replace("'Assigned access specs\n\t4k\n'End assigned access specs\n", assigned)


def test_specifications_without_names_are_run_by_all_workers(icf: ReadIcf) -> None:
    lines = "2048 100 67 100 0 1\n512 50 100 0 0 1\n1024 50 0 0 0 1\n1048576 100 0 0 0 1\n"
    plan = icf(old_file(lines, ""))
    assert [run.name for run in plan.steps()] == [
        "2 KiB random 67% reads",
        "Untitled 1",
        "1 MiB sequential writes",
    ]


def test_specifications_without_names_are_assigned_by_iometers_names(icf: ReadIcf) -> None:
    lines = "512 100 100 30 0 1\n512 100 100 30 0 1\n"
    assigned = "'Assigned access specs\n512 B 30% random reads 2\n'End assigned access specs\n"
    assert [run.name for run in icf(old_file(lines, assigned)).steps()] == ["512 B 30% random reads 2"]


def test_old_lines_that_pass_100_percent_are_refused(icf: ReadIcf) -> None:
    assert "add up to 120, not 100" in refusal(icf, old_file("512 60 9 9 0 1\n512 60 9 9 0 1\n", "")).message
    assert "add up to 60, not 100" in refusal(icf, old_file("512 60 9 9 0 1\n", "")).message


def test_a_test_setup_of_1998_needs_no_end(icf: ReadIcf) -> None:
    text = Icf(version="1998.10.08").text().replace("'END test setup\n", "")
    assert len(icf(text)) == 1
    assert "'END is missing" in refusal(icf, text.replace("1998.10.08", "2004.07.30")).message


@pytest.mark.parametrize(
    "version", ["1998.01.05", "3.26.97", "2003.12.16", "2008.06.18", "1.1.0", "1.1.0-rc1"]
)
def test_all_versions_are_read(icf: ReadIcf, version: str) -> None:
    assert specs_of(icf(Icf(version=version))) == specs_of(icf(TEXT))


def test_numbers_of_old_versions_stand_for_words(icf: ReadIcf) -> None:
    words = Icf(test="CYCLE_OUTSTANDING_IOS", depth_cycling="1 8 2 EXPONENTIAL")
    numbers = Icf(test="6", depth_cycling="1 8 2 1")
    assert specs_of(icf(words)) == specs_of(icf(numbers))


WRONG = {
    "a name that is no value": ("% random,delay", "% rnd,delay", "no value is called '% rnd'"),
    "a missing name": (
        NEW_LINE_LABEL,
        "'size,% of size,% reads,delay,burst,align,reply,reply",
        "% random is missing",
    ),
    "too few values": ("4096,100,67,100,0,1,4096,0", "4096,100,67", "3 values for 8 names"),
    "a size with a unit": ("4096,100,67", "4K,100,67", "size 4K: not a whole number"),
    "a percentage above 100": ("4096,100,67", "4096,100,670", "% reads 670: out of range"),
    "a sum that is not 100": ("4096,100,67", "4096,99,67", "4k: the percentages add up to 99, not 100"),
    "no lines": ("\t4096,100,67,100,0,1,4096,0\n", "", "4k: the percentages add up to 0, not 100"),
    "no name": ("\t4k,NONE", "\t,NONE", "no name"),
    "an odd size": ("4096,100,67", "1000,100,67", "size 1000: not a multiple of 512 bytes"),
    "an odd align": ("1,4096,0", "1,1000,0", "align 1000: not a multiple of 512 bytes"),
    "a time of two numbers": ("0          0          10", "0 10", "not three numbers"),
    "a time of words": ("0          0          10", "0 0 ten", "seconds ten: not a whole number"),
    "a time without end": ("0          0          10", "9999999 0 0", "more than 366 days"),
    "a test type": ("NORMAL", "ABNORMAL", "no test type"),
    "a cycle": ("1 32 2 EXPONENTIAL", "1 32", "not start, end, step and step type"),
    "a step type": ("1 32 2 EXPONENTIAL", "1 32 2 CUBIC", "step type CUBIC: not known"),
    "a switch": ("1,DISABLED,1", "1,OFF,1", "test connection rate OFF: not known"),
    "no I/O in flight": ("\t1,DISABLED", "\t0,DISABLED", "outstanding I/Os 0: out of range"),
    "a pattern": ("0,0,1\n", "0,0,7\n", "data pattern 7: out of range"),
    "a worker type": ("'Worker type\n\tDISK", "'Worker type\n\tTAPE", "no type of a worker"),
    "a target without a name": ("\tPHYSICALDRIVE:1\n", "", "'Target without a name"),
    "a specification that is not there": (
        "specs\n\t4k\n",
        "specs\n\t8k\n",
        "worker Worker 1: no access specification '8k'",
    ),
    "a label twice": ("'Test Type", "'Test Type\n\tNORMAL\n'Test Type", "'Test Type comes twice"),
    "two values": ("\tNORMAL", "\tNORMAL\n\tNORMAL", "NORMAL: a second value of 'Test Type"),
    "a worker outside": ("'End worker\n", "'End worker\n'Target\n\tx\n", "outside of a worker"),
    "no manager above": ("'Manager ID, manager name\n\t1,HOST1\n", "", "no manager above it"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_refused_with_their_line(icf: ReadIcf, name: str) -> None:
    old, new, expected = WRONG[name]
    assert old in TEXT
    error = refusal(icf, TEXT.replace(old, new))
    assert expected in error.message
    assert error.message.startswith("w.icf:")
    assert error.hint


def test_the_page_is_current() -> None:
    shown = Path(__file__).parents[3] / "docs" / "iometer.md"
    assert shown.read_text() == page(), (
        "run: python -m linerate.workload.iometer.documentation > docs/iometer.md"
    )
