"""`linerate array`: what the verbs send, what they say, and what they ask before something is lost."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from linerate.array.control import ControlClient, find
from linerate.array.control.report import DiskReport, ReplicationReport
from linerate.array.control.server import ControlServer
from linerate.array.figures.rates import rates
from linerate.cli.array import replicas
from linerate.cli.array.picture import picture
from linerate.cli.array.reach import in_options
from linerate.errors import PeerError
from rich.console import Console

from tests.array.fake import IQN, PretendArray
from tests.cli.conftest import Done, linerate

Served = tuple[PretendArray, ControlServer]


def _array(*words: str) -> Done:
    return linerate("array", *words)


def _fine(*words: str) -> str:
    done = _array(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_volumes_come_grow_and_go(served: Served) -> None:
    array, _ = served
    assert (
        _fine("create-volume", "v2", "20g", "--sector", "4k", "--lun", "5")
        == f"volume v2 is LUN 5 of {IQN}\n"
    )
    assert array.commands[-1]["sector_bytes"] == 4096
    assert _fine("resize", "v2", "40g") == "v2 has 40 GiB now\n"
    assert _fine("snapshot", "v1", "v2", "--name", "s") == "v1@s\nv2@s\n"
    assert array.commands[-1]["volumes"] == ["v1", "v2"]
    assert _fine("clone", "v1@s", "v3") == f"volume v3 is LUN 2 of {IQN}\n"
    assert array.commands[-1]["target"] == IQN, "beside the volume that it was made from"
    assert _fine("restore", "v2@s", "--yes").startswith("v2 is what it was at s")
    assert _fine("delete", "v2@s", "--yes") == "v2@s is deleted\n"
    assert _fine("delete", "v1", "--with-snapshots", "--yes") == "v1 is deleted\n"
    assert list(array.volumes) == ["v2", "v3"]


def test_a_snapshot_without_a_name_is_named_after_the_time(served: Served) -> None:
    told = json.loads(_fine("snapshot", "v1", "--json"))
    assert told["schema"] == "linerate.array-reply/1"
    assert told["name"] == served[0].volumes["v1"]["snapshots"][0]["name"]


@pytest.mark.parametrize(
    "words",
    [
        ("delete", "v1"),
        ("delete", "v1@s"),
        ("restore", "v1@s"),
        ("resize", "v1", "1g"),
        ("fail-disk", "d0"),
    ],
)
def test_nothing_is_lost_unasked(served: Served, words: tuple[str, ...]) -> None:
    """Without a terminal there is no question: only --yes is an answer."""
    _array("snapshot", "v1", "--name", "s")
    before = list(served[0].commands)
    done = _array(*words)
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert served[0].commands == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("resize", "v9", "1t"), 'there is no volume "v9"; there are: v1'),
        (("resize", "v1", "big"), "SIZE: 'big' is not a size"),
        (("restore", "v1", "--yes"), "v1: not a snapshot"),
        (("restore", "v1@gone", "--yes"), "v1 has no snapshot gone"),
        (("delete", "v9"), "there is no volume v9"),
        (("create-volume", "a/b", "1g"), "create_volume: name: must match"),
        (("fail-disk", "d77", "--yes"), "there is no disk d77"),
        (("replicate", "mail"), "this array replicates nothing"),
        (("show", "--array", "nonesuch"), "no array named nonesuch serves; there are: lab"),
        (("show", "--array", "http://127.0.0.1:1"), "its token is missing"),
    ],
)
def test_mistakes_name_what_is_wrong(served: Served, words: tuple[str, ...], message: str) -> None:
    done = _array(*words)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_array_elsewhere_is_reached_by_url_and_token_file(served: Served, tmp_path: Path) -> None:
    token = tmp_path / "t"
    token.write_text(find(None).token, "ascii")
    token.chmod(0o600)
    assert "array lab" in _fine(
        "show", "--array", served[1].url, "--token-file", str(token), "--seconds", "0.1"
    )
    token.write_text("x" * 40, "ascii")
    done = _array("show", "--array", served[1].url, "--token-file", str(token))
    assert (done.returncode, "not this array's" in done.stderr) == (2, True)
    assert "x" * 40 not in done.stderr


def test_a_failed_disk_and_its_spare_are_seen(served: Served) -> None:
    assert _fine("fail-disk", "d3", "--yes") == "d3 has failed; r0 is degraded and fills a spare: 25%\n"
    shown = _fine("show", "--seconds", "0.1")
    assert "[d2][d3 failed][d4]" in shown
    assert "[d8 rebuilding]" in shown
    assert "degraded  rebuild" in shown


def test_access_states_are_changed(served: Served) -> None:
    assert _fine("set-access", "2", "standby", "--volume", "v1") == "portal group 2 is standby now\n"
    (change,) = served[0].commands[-1]["alua"]
    assert change == {"group": 2, "state": "standby", "target": None, "volume": "v1"}
    assert _array("set-access", "2", "asleep").returncode == 2


def test_the_array_is_answered_in_the_words_of_the_command_line() -> None:
    said = "delete them first, or with it: `with_snapshots`; `size_bytes` is a multiple of 512; raise `overcommit`"
    expected = (
        "delete them first, or with it: --with-snapshots; the size is a multiple of 512; raise `overcommit`"
    )
    assert in_options(said) == expected


def test_work_is_waited_for(served: Served) -> None:
    """The array says that it is done the third time that it is asked, after one time for its disks."""
    array, _ = served
    looks, plain = [0], array.stats

    def stats() -> dict[str, object]:
        looks[0] += 1
        if looks[0] > 4:
            array.task = None
            array.states["n"] = "online"
        return plain()

    array.states["d3"] = "failed"
    array.stats = stats  # type: ignore[method-assign]
    told = _fine("replace-disk", "d3", "n", "--path", "new.img")
    assert told.startswith("n takes the place of d3: write that into the array file, too\nrebuild r0: 0%\n")
    assert told.endswith("r0 is optimal\n")
    new = array.commands[-1]["new"]
    assert (new["kind"], new["path"], new["size_bytes"]) == ("file", str(Path("new.img").absolute()), 4 << 30)


def test_a_disk_of_files_is_not_replaced_by_memory(served: Served) -> None:
    array, _ = served
    array.paths = {"d0": "/srv/d0.img", "d3": "/srv/d3.img"}
    done = _array("replace-disk", "d3", "n", "--no-wait")
    assert (done.returncode, "n would be in memory, and r0 is kept in files" in done.stderr) == (2, True)
    assert "--path FILE" in done.stderr
    done = _array("replace-disk", "d3", "n", "--no-wait", "--path", "/srv/d0.img")
    assert (done.returncode, "/srv/d0.img is the disk d0 of r0" in done.stderr) == (2, True)
    assert not array.commands


def test_a_missing_disk_may_come_back_where_it_was(served: Served) -> None:
    array, _ = served
    array.paths = {"d0": "/srv/d0.img", "d3": "/srv/d3.img"}
    array.states["d3"] = "out"
    done = _array("replace-disk", "d3", "d3", "--no-wait", "--path", "/srv/d3.img")
    assert (done.returncode, "/srv/d3.img is the disk d3 of r0" in done.stderr) == (2, True)
    assert "once that one has taken its place, this one is free" in done.stderr
    array.states["d3"] = "missing"
    _fine("replace-disk", "d3", "d3", "--no-wait", "--path", "/srv/d3.img")
    assert array.commands[-1]["new"]["path"] == "/srv/d3.img"


def test_the_disk_of_another_raid_set_of_the_array_is_named(served: Served, tmp_path: Path) -> None:
    array, _ = served
    (tmp_path / "d8.img").touch()
    (tmp_path / "link.img").symlink_to("d8.img")
    array.paths, array.unused = {"d3": "/srv/d3.img", "d8": str(tmp_path / "d8.img")}, {"d8"}
    done = _array("replace-disk", "d3", "n", "--no-wait", "--path", str(tmp_path / "link.img"))
    assert (done.returncode, "link.img is the disk d8 in no RAID set, in this array" in done.stderr) == (
        2,
        True,
    )
    assert not array.commands


def test_a_disk_whose_file_is_gone_is_replaced_by_one_of_the_size_of_the_others(served: Served) -> None:
    array, _ = served
    array.states["d3"] = "missing"
    array.gone = {"d3"}
    _fine("replace-disk", "d3", "n", "--no-wait", "--path", "new.img")
    assert array.commands[-1]["new"]["size_bytes"] == 4 << 30


def test_a_disk_of_no_raid_set_is_not_replaced(served: Served) -> None:
    array, _ = served
    array.states["old"] = "out"
    array.unused = {"old"}
    done = _array("replace-disk", "old", "n", "--no-wait", "--path", "new.img")
    assert (done.returncode, "old is in no RAID set: no disk takes its place" in done.stderr) == (2, True)
    assert not array.commands


def test_a_scrub_tells_what_it_found(served: Served) -> None:
    array, _ = served
    array._scrub = lambda asked: None  # type: ignore[method-assign]
    assert _fine("scrub", "r0") == "r0 is optimal\neverything agrees\n"


def test_a_scrub_that_a_failed_set_broke_off_is_no_good_news(served: Served) -> None:
    array, _ = served
    array._scrub = lambda asked: array.states.update(d1="failed", d2="failed", d3="failed")  # type: ignore[method-assign]
    told = _array("scrub", "r0")
    assert (told.returncode, told.stdout.splitlines()[-1]) == (1, "r0 is failed")


def test_show_has_everything(served: Served) -> None:
    shown = _fine("show", "--seconds", "0.1")
    for text in (
        "array lab  127.0.0.1:3260  0 sessions",
        "3 GiB of 24 GiB used (12%)  10 GiB provisioned",
        "RAID set r0  RAID 6, 24 GiB of 32 GiB  optimal",
        "[d7]  spare [d8]",
        f"target {IQN}",
        "v1      pool p0    0  10 GiB  3 GiB\n",
    ):
        assert text in shown
    told = json.loads(_fine("show", "--json"))
    assert told["schema"] == "linerate.array-status/1"
    assert len(told["storage"]["disks"]) == 9


def test_volumes_are_below_their_targets(served: Served) -> None:
    report = ControlClient.at(find(None)).report()
    (target,) = report.targets
    memory = target.volumes[0].model_copy(
        update={"name": "fast", "kind": "memory", "lun": 0, "size_bytes": 1 << 30}
    )
    other = target.model_copy(update={"name": f"{IQN}2", "chap": True, "volumes": (memory,)})
    (volume,) = report.storage.volumes
    made = volume.model_copy(update={"name": "v2", "target": other.name, "lun": 1})
    copy = volume.model_copy(update={"name": "copy", "target": None, "lun": None})
    storage = report.storage.model_copy(update={"volumes": (volume, made, copy)})
    out = Console(width=120, color_system=None)
    with out.capture() as drawn:
        out.print(
            picture(report, report.model_copy(update={"targets": (target, other), "storage": storage}), 1.0)
        )
    told = [
        line.split()[0]
        for line in drawn.get().splitlines()
        if line.startswith(("target", "v", "fast", "copy"))
    ]
    assert told == ["target", "volume", "v1", "target", "volume", "fast", "v2", "volumes", "volume", "copy"]
    assert f"target {IQN}2 (CHAP)\n" in drawn.get().replace(" \n", "\n")


def test_an_over_committed_pool_and_a_full_one_are_pointed_out(served: Served) -> None:
    served[0].volumes["v1"] |= {"size_bytes": 60 << 30, "used_bytes": 22 << 30}
    assert "60 GiB provisioned, 2.5 times its size  nearly full" in _fine("show", "--seconds", "0.1")


def test_replications_are_shown(served: Served) -> None:
    told = ReplicationReport(
        name="mail",
        partner="pair",
        role="primary",
        state="copying",
        done=0.5,
        rate_bytes_per_s=2e7,
        lag_s=600,
    )
    report = ControlClient.at(find(None)).report()
    out = Console(width=120, color_system=None)
    with out.capture() as drawn:
        out.print(picture(report, report.model_copy(update={"replications": (told,)}), 1.0))
    assert "replication mail  to pair  newest copy 10 min old  copying" in drawn.get()
    assert "50%, 19.1 MB/s" in drawn.get()


def test_a_copy_that_failed_says_why_and_the_way_out_once(served: Served) -> None:
    told = ReplicationReport(
        name="mail",
        partner="pair",
        role="primary",
        state="failed",
        error='pair says: a volume "v" exists -> rename it',
    )
    report = ControlClient.at(find(None)).report().model_copy(update={"replications": (told,)})
    with pytest.raises(PeerError) as caught:
        replicas._await(SimpleNamespace(report=lambda: report), "mail", "done")  # type: ignore[arg-type]
    assert caught.value.message == 'mail: pair says: a volume "v" exists'
    assert caught.value.hint == "rename it"


def test_rates_are_differences() -> None:
    before = DiskReport(name="d", state="online", size_bytes=1, reads=100, response_ns=10**9)
    after = before.model_copy(
        update={
            "reads": 300,
            "writes": 200,
            "read_bytes": 8 << 20,
            "response_ns": 5 * 10**9,
            "busy_ns": 10**9,
        }
    )
    found = rates((before,), (after,), 2.0)
    assert found is not None
    assert (found.reads, found.writes, found.mib_s, found.outstanding) == (100.0, 100.0, 4.0, 2.0)
    assert (found.service_us, found.busy) == (10_000.0, 0.5)
    assert rates((after,), (before,), 2.0) is None, "the array was started anew in between"
    assert rates((), (after,), 2.0) is None


@pytest.mark.parametrize("verb", ["promote", "demote", "forget", "rejoin"])
def test_nobody_is_asked_about_a_replication_that_there_is_not(served: Served, verb: str) -> None:
    done = _array(verb, "nosuch")
    assert done.returncode == 2
    assert "there is no replication nosuch" in done.stderr
    assert "--yes" not in done.stderr
