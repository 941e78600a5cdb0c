"""FSDs and FWDs on several hosts: which hosts run what, and what is refused."""

from __future__ import annotations

import pytest
from linerate.errors import UserError
from linerate.workload.hosts import LoadHost

from tests.workload.conftest import Read
from tests.workload.vdbench.file_plans import read_plan, runs_of

HD = "hd=h1,system=10.0.0.1\nhd=h2,system=10.0.0.2\nhd=x3,system=localhost\n"
FSD = "fsd=fsd1,anchor=/data/a,depth=1,width=2,files=4,shared=yes\n"
FWD = "fwd=fwd1,fsd=fsd1,operation=read,threads=8\n"
RD = "rd=rd1,fwd=fwd*,fwdrate=100,elapsed=60,interval=5\n"


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("", ("h1", "h2", "x3")),
        (",host=(x3,h1)", ("h1", "x3")),
        (",host=h*", ("h1", "h2")),
        (",hd=h2", ("h2",)),
    ],
)
def test_an_fwd_runs_on_its_hosts(read: Read, host: str, found: tuple[str, ...]) -> None:
    plan = read_plan(read, HD + FSD + FWD.replace("\n", f"{host}\n") + RD)
    (run,) = runs_of(plan)
    assert (run.hosts, run.shared) == ((found,), ("fsd1",))
    assert plan.hosts is not None
    assert plan.hosts.hosts == (
        LoadHost("h1", "10.0.0.1"),
        LoadHost("h2", "10.0.0.2"),
        LoadHost("x3", ""),
    )


def test_a_workload_has_the_hosts_of_its_fwd(read: Read) -> None:
    text = HD + FSD + FSD.replace("fsd1,anchor=/data/a", "fsd2,anchor=/data/b")
    text += "fwd=fwd1,fsd=fsd*,threads=12,host=h*\nfwd=fwd2,fsd=fsd2,operation=getattr,host=x3\n"
    (run,) = runs_of(read_plan(read, text + RD.replace("elapsed", "operations=(read,open),elapsed")))
    assert [(work.name, work.structure, work.operation) for work in run.files.workloads] == [
        ("fwd1", 0, "read"),
        ("fwd1", 0, "open"),
        ("fwd1", 1, "read"),
        ("fwd1", 1, "open"),
        ("fwd2", 1, "read"),
        ("fwd2", 1, "open"),
    ]
    assert run.hosts == (*[("h1", "h2")] * 4, ("x3",), ("x3",))


def test_a_format_is_made_by_the_hosts_that_use_the_fsd_in_its_rd(read: Read) -> None:
    text = HD + FSD + FSD.replace("fsd1,anchor=/data/a", "fsd2,anchor=/data/b")
    text += (
        "fwd=fwd1,fsd=fsd*,threads=12,host=(x3,h2)\nfwd=fwd2,fsd=fsd2,host=h1\nfwd=other,fsd=fsd1,host=h1\n"
    )
    for words in ("(clean,only)", "(restart,only)"):
        (run,) = runs_of(read_plan(read, text + RD.replace("elapsed", f"format={words},elapsed")))
        assert run.hosts == (("h2", "x3"), ("h1", "h2", "x3"))
        assert [work.name for work in run.files.workloads] == ["format", "format"]


def test_each_host_has_an_anchor_of_its_own_by_its_label(read: Read) -> None:
    text = HD + FSD.replace("fsd1,anchor=/data/a", "fsd_$host,anchor=/data/$host").replace(",shared=yes", "")
    text += "fwd=fwd_$host,fsd=fsd_$host,host=$host\n" + RD.replace("elapsed", "format=yes,elapsed")
    formatting, run = runs_of(read_plan(read, text))
    assert [structure.anchor for structure in run.files.structures] == ["/data/h1", "/data/h2", "/data/x3"]
    assert formatting.hosts == run.hosts == (("h1",), ("h2",), ("x3",))
    assert run.shared == ()


@pytest.mark.parametrize("hd", ["", "hd=localhost,jvms=2\n"])
def test_this_machine_alone_needs_no_hosts(read: Read, hd: str) -> None:
    plan = read_plan(read, hd + FSD + FWD + RD.replace("elapsed", "format=yes,elapsed"))
    assert plan.hosts is None
    assert [run.hosts for run in runs_of(plan)] == [(), ()]


def test_one_fsd_may_have_another_host_in_another_rd(read: Read) -> None:
    text = HD + FSD.replace(",shared=yes", "") + "fwd=fwd1,fsd=fsd1,host=h1\nfwd=fwd2,fsd=fsd1,host=h2\n"
    first, second = runs_of(
        read_plan(read, text + RD.replace("fwd*", "fwd1") + RD.replace("rd1,fwd=fwd*", "rd2,fwd=fwd2"))
    )
    assert (first.hosts, second.hosts) == ((("h1",),), (("h2",),))


ALONE = FSD.replace(",shared=yes", "")
TWO = FSD + FSD.replace("fsd1,anchor=/data/a", "fsd2,anchor=/data/b")


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (FSD + FWD.replace("\n", ",host=h9\n") + RD, 5, "host=h9: no hd=h9; there is h1, h2, x3"),
        (
            ALONE + FWD + RD,
            4,
            "rd=rd1: fsd=fsd1 without shared=yes has 3 hosts (h1, h2, x3); write shared=yes if",
        ),
        (
            ALONE + "fwd=fwd1,fsd=fsd1,host=h1\nfwd=fwd2,fsd=fsd1,host=h2\n" + RD,
            4,
            "rd=rd1: fsd=fsd1 without shared=yes has 2 hosts (h1, h2)",
        ),
        (
            ALONE + FWD + RD.replace("elapsed", "format=(clean,only),elapsed"),
            4,
            "rd=rd1: fsd=fsd1 without shared=yes has 3 hosts (h1, h2, x3)",
        ),
        (
            FSD + FWD + RD.replace("elapsed", "format=yes,elapsed"),
            6,
            "rd=rd1: a format of fsd=fsd1 on 3 hosts removes or makes: one host would remove what another has made; "
            "write an RD with format=(clean,only), then one with format=(restart,only)",
        ),
        (
            FSD.replace("width=2,files=4", "width=1,files=2") + FWD + RD,
            4,
            "rd=rd1: fsd=fsd1 has 2 files for 3 hosts, each of which needs one of its own; write more files=",
        ),
        (
            FSD + FWD.replace("threads=8", "threads=2") + RD,
            5,
            "rd=rd1: fwd=fwd1 has 2 threads for each FSD and operation, and 3 hosts; write threads= so that",
        ),
        (
            FSD + FWD + RD.replace("elapsed", "forthreads=(4,1),elapsed"),
            5,
            "rd=rd1: fwd=fwd1 has 1 thread for each FSD and operation, and 3 hosts",
        ),
        (
            FSD + "fwd=fwd1,fsd=fsd1,skew=60,threads=3\nfwd=fwd2,fsd=fsd1,host=h1\n" + RD,
            6,
            "rd=rd1: with skew= all FWDs need the same hosts; fwd=fwd1 has h1, h2, x3, fwd=fwd2 has h1",
        ),
        (
            TWO + "fwd=fwd1,fsd=fsd1,operation=copy,target=fsd2,host=h1\nfwd=fwd2,fsd=fsd2,host=h2\n" + RD,
            6,
            "rd=rd1: fwd=fwd1 copies from fsd=fsd1 on h1 to fsd=fsd2 on h1, h2; use both FSDs on the same hosts",
        ),
        (
            FSD.replace("fsd1", "fsd_h1") + "fwd=fwd_$host,fsd=fsd_$host,host=$host\n" + RD,
            5,
            "fwd=fwd_h2: fsd=fsd_h2: there is no such fsd (there is fsd_h1)",
        ),
        (FSD + "fwd=fwd1,host=h1\n" + RD, 5, "fwd=fwd1: no fsd="),
    ],
)
def test_what_is_wrong_is_named_with_its_line(read: Read, text: str, line: int, told: str) -> None:
    with pytest.raises(UserError) as raised:
        read_plan(read, HD + text)
    said = f"{raised.value.message}; {raised.value.hint}"
    assert told in said
    assert f":{line}" in said


def test_data_that_are_checked_have_the_same_hosts_in_all_rds(read: Read) -> None:
    text = "validate=yes\n" + HD + FSD + FWD + "fwd=other,fsd=fsd1,host=h1\n"
    runs = RD.replace("fwd*", "fwd1") + RD.replace("rd1,fwd=fwd*", "rd2,fwd=fwd1")
    assert len(runs_of(read_plan(read, text + runs))) == 2
    with pytest.raises(
        UserError, match="rd=rd2: data are checked, and fsd=fsd1 has other hosts than in an RD before"
    ):
        read_plan(read, text + runs.replace("rd2,fwd=fwd1", "rd2,fwd=other"))
