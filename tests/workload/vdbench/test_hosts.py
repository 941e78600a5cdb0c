"""vdbench's hosts: what hd= and host= say, and what is wrong in them."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload import LunMap, Overrides, RunPlan
from linerate.workload.hosts import LoadHost, LoadHosts
from linerate.workload.vdbench import load_vdbench

from tests.workload.conftest import Read

TWO = "hd=h1,system=10.0.0.1\nhd=h2,system=10.0.0.2\n"
TAIL = "sd=sd1,lun=x\nsd=sd2,lun=y\nwd=wd1,sd=sd*\nrd=rd1,wd=wd1\n"
AS_WRITTEN = Overrides(luns=LunMap())


def hosts_of(plan: RunPlan) -> LoadHosts:
    assert plan.hosts is not None
    return plan.hosts


@pytest.mark.parametrize(
    ("hd", "found"),
    [
        ("hd=h1,system=load1.lab,user=root", [("h1", "root@load1.lab")]),
        ("hd=load1", [("load1", "load1")]),
        ("hd=(10.0.0.1,h1)", [("h1", "10.0.0.1")]),
        # vdbench honors `host=` in the place of `hd=`, with a message that it has been deprecated
        ("host=(10.0.0.1,h1)", [("h1", "10.0.0.1")]),
        ("host=default,user=tester\nhd=h1,system=a", [("h1", "tester@a")]),
        (
            "hd=default,user=tester\nhd=h1,system=a\nhd=h2,system=b,user=x",
            [("h1", "tester@a"), ("h2", "x@b")],
        ),
        ("hd=localhost,user=root\nhd=h2,system=fe80::1", [("localhost", ""), ("h2", "fe80::1")]),
        ("hd=a,system=localhost\nhd=b,system=127.0.0.1", [("a", ""), ("b", "")]),
        ("hd=h1,system=s,clients=2\nhd=h2", [("h1_cl0", "s"), ("h1_cl1", "s"), ("h2", "h2")]),
        ("hd=default,clients=2\nhd=h1", [("h1_cl0", "h1"), ("h1_cl1", "h1")]),
    ],
)
def test_an_hd_becomes_an_address_for_ssh_or_this_machine(
    read: Read, hd: str, found: list[tuple[str, str]]
) -> None:
    assert hosts_of(read(f"{hd}\n{TAIL}")).hosts == tuple(LoadHost(*one) for one in found)


@pytest.mark.parametrize(
    "hd", ["", "hd=localhost,jvms=4\n", f"hd=x,system={socket.gethostname()},shell=rsh\n"]
)
def test_this_machine_alone_needs_no_hosts(read: Read, hd: str) -> None:
    assert read(hd + TAIL).hosts is None


def test_a_file_of_windows_reads_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, ends in (("unix.vdb", "\n"), ("windows.vdb", "\r\n")):
        Path(name).write_bytes((TWO + TAIL).replace("\n", ends).encode())
    null = Overrides(luns=LunMap({"*": "null:8g"}))
    unix, windows = (load_vdbench([Path(name)], overrides=null) for name in ("unix.vdb", "windows.vdb"))
    assert unix.hosts == windows.hosts == hosts_of(unix)


def test_host_chooses_who_uses_an_sd_and_who_runs_a_wd(read: Read) -> None:
    plan = read(
        TWO + "hd=x3,system=10.0.0.3\n"
        "sd=sd1,lun=x,host=h*\nsd=sd2,lun=y,host=(x3,h1)\nsd=sd3,lun=z,hd=10.0.0.2\nsd=sd4,lun=u\n"
        "wd=wd1,sd=sd*,host=(h2,h1)\nwd=wd2,sd=sd2\nrd=rd1,wd=wd*\n"
    )
    found = hosts_of(plan)
    assert found.running("wd1", "sd1") == ("h2", "h1"), "in the order in which the WD names them"
    assert found.running("wd1", "sd2") == ("h1",)
    assert found.running("wd1", "sd3") == ("h2",), "an SD may name a system"
    assert found.running("wd1", "sd4") == ("h2", "h1")
    assert found.running("wd2", "sd2") == ("h1", "x3")


def test_an_sd_that_no_host_of_a_wd_uses_is_left_out(read: Read) -> None:
    text = TWO + "sd=sd1,lun=x,host=h1\nsd=sd2,lun=y,host=h2\nwd=wd1,sd=sd*,host=h2\nrd=rd1,wd=wd1\n"
    spec = next(read(text).steps()).spec
    assert [volume.name for volume in spec.volumes] == ["sd2"]
    assert spec.streams[0].volumes == ("sd2",)


def test_luns_and_hosts_go_in_pairs(read: Read) -> None:
    text = TWO + "sd=sd,lun=/dev/a*,host=h1,host=h2,lun=/dev/b*,count=(1,2),size=1g\nwd=w,sd=sd*\nrd=r,wd=w\n"
    plan = read(text, overrides=AS_WRITTEN)
    assert hosts_of(plan).urls == {
        "sd1": {"h1": "file:/dev/a1", "h2": "file:/dev/b1"},
        "sd2": {"h1": "file:/dev/a2", "h2": "file:/dev/b2"},
    }
    spec = next(plan.steps()).spec
    assert all(volume.direct and not volume.create for volume in spec.volumes), "devices of another machine"
    assert spec.streams[0].skip_first_block


def test_files_of_another_machine_are_made_there(read: Read) -> None:
    plan = read(TWO + "sd=sd1,lun=/none/such,size=1g\nwd=w,sd=sd1\nrd=r,wd=w\n", overrides=AS_WRITTEN)
    (volume,) = next(plan.steps()).spec.volumes
    assert (volume.url, volume.create, volume.direct) == ("file:/none/such", True, False)


def test_map_means_an_sd_on_all_hosts_or_one_lun(read: Read) -> None:
    text = TWO + "sd=sd1,lun=a,host=h1,lun=b,host=h2\nwd=w,sd=sd1\nrd=r,wd=w\n"
    whole = read(text, overrides=Overrides(luns=LunMap({"sd1": "null:1k"})))
    each = read(text, overrides=Overrides(luns=LunMap({"a": "null:1k", "b": "null:2k"})))
    assert hosts_of(whole).urls == {"sd1": {"h1": "null:1024", "h2": "null:1024"}}
    assert hosts_of(each).urls == {"sd1": {"h1": "null:1024", "h2": "null:2048"}}


@pytest.mark.parametrize("shell", ["rsh", "vdbench"])
def test_another_shell_is_noted(read: Read, shell: str) -> None:
    plan = read(f"hd=h1,system=10.0.0.1,shell={shell}\n{TAIL}")
    assert [str(note) for note in plan.warnings] == [
        f"w.vdb:1: hd=h1: shell={shell}: the host is reached by SSH all the same"
    ]


@pytest.mark.parametrize("keys", ["jvms=8", "vdbench=/opt/vdbench", "master=10.0.0.9"])
def test_what_is_not_needed_is_noted(read: Read, keys: str) -> None:
    (note,) = read(f"hd=h1,system=10.0.0.1,shell=ssh,{keys}\n{TAIL}").warnings
    assert str(note).startswith(f"w.vdb:1: {keys}: no effect, ")


SD, WD = "sd=sd1,lun=x{}\nwd=w,sd=sd1\nrd=r,wd=w\n", "sd=sd1,lun=x\nwd=w,sd=sd1{}\nrd=r,wd=w\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("hd=h1,system=-oProxyCommand=sh\n" + TAIL, 1, "'-oProxyCommand=sh' is no system"),
        ('hd=h1,system="a b"\n' + TAIL, 1, "'a b' is no system"),
        ("hd=h1,system=a,user=-x\n" + TAIL, 1, "'-x' is no user"),
        ("hd=h1,system=(a,b)\n" + TAIL, 1, "one value expected"),
        ("hd=h/1,system=a\n" + TAIL, 1, "a label has letters, digits"),
        ("hd=h1\nhd=h1,system=b\n" + TAIL, 2, "hd=h1: named twice"),
        ("hd=h1,system=a,shell=telnet\n" + TAIL, 1, "shell=telnet: no such shell"),
        ("hd=h1,clients=0\n" + TAIL, 1, "not a number of clients"),
        ("hd=h1,mount=x\n" + TAIL, 1, "mount=x: is not supported"),
        (TWO + SD.format(",host=h3"), 3, "host=h3: no hd=h3"),
        (TWO + WD.format(",host=(h1,g*)"), 4, r"host=\(h1,g\*\): no hd=g\*"),
        (TWO + WD.format(",host=10.0.0.1"), 4, r"no hd=10\.0\.0\.1"),
        (TWO + SD.format(",lun=y"), 3, "2 lun= and 0 host="),
        (TWO + SD.format(",host=h1,host=h2"), 3, "1 lun= and 2 host="),
        (TWO + SD.format(",host=h1,lun=y,host=*"), 3, "two luns for host h1"),
        (TWO + SD.format(",host=h1,lun=null:1g,host=h2"), 3, "differ in more than their place"),
        (TWO + "sd=sd1,lun=x,host=h1\nwd=w,sd=sd1,host=h2\nrd=r,wd=w\n", 4, "wd=w has no SD on its hosts"),
        (TWO + WD.format(",streams=2,seekpct=seq"), 4, "streams= on several hosts is not supported"),
        (TWO + SD.format("") .replace("rd=r,", "rd=r,host=h1,"), 5, "no keyword 'host' in the rd block"),
        ("hd=h1,clients=2\n" + WD.format(",host=h1"), 3, "host=h1: no hd=h1"),
        (TWO + "sd=sd1,lun=x\nwd=w,sd=sd1,host=h1\nrd=r,wd=w\nrd=w,sd=sd1\n", 6, "a WD of this name has other"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(read: Read, text: str, line: int, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read(text, overrides=AS_WRITTEN)
    assert caught.value.message.startswith(f"w.vdb:{line}: ")
