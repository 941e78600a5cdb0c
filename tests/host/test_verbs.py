"""`linerate host` as a user calls it, inside a network namespace of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from linerate.cli import main
from linerate.host import HostJournal, HostTarget, apply, inside, read

from tests.host.conftest import Namespace

STUDY = """
title = "Two adapters"

[[san]]
name = "lab"

[[san.host]]
name = "server"
devices = ["p0", "p1"]
volumes = [VOLUMES]

[[workload]]
name = "seqread"
file = "dell-nic/256k-seq-read.vdb"
metric = "mib_s"

[baseline]
settings = { mtu = 9000, ecn = "on", nagle = "on" }

[[case]]
name = "small frames"
settings = { mtu = 1500 }
""".replace("VOLUMES", ", ".join(f'"iscsi://10.9.0.5:3260/iqn.2026-11.lab:a/{lun}"' for lun in range(8)))


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Verbs = Callable[..., Said]


@pytest.fixture
def linerate(namespace: Namespace, capsys: pytest.CaptureFixture[str]) -> Verbs:
    """Calls `linerate host` in a thread inside the namespace."""

    def call(*arguments: str) -> Said:
        capsys.readouterr()
        code = inside(namespace.target, partial(main, ["host", *arguments]))
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return call


def test_apply_then_restore(linerate: Verbs, tmp_path: Path) -> None:
    changed = linerate("apply", "mtu=9000", "delayed_ack=off", "ecn=on", "-d", "p0", "-d", "p1")
    assert (changed.code, changed.err) == (0, "")
    assert changed.out.splitlines() == [
        "mtu: 9000 (was 1500)",
        "delayed_ack: off (was on)",
        "ecn: on (was passive)",
        "to put it back: linerate host restore",
    ]
    shown = json.loads(linerate("show", "mtu", "ecn", "--json").out)
    assert [(one["name"], one["device"], one["value"]) for one in shown["settings"]] == [
        *(("mtu", device, 9000 if device.startswith("p") else 1500) for device in ("p0", "p1", "x0", "x1")),
        ("ecn", None, "on"),
    ]
    back = linerate("restore")
    assert (back.code, back.err) == (0, "")
    assert back.out.splitlines() == [
        "ecn: back at passive",
        "delayed_ack of p1: back at on",
        "delayed_ack of p0: back at on",
        "mtu of p1: back at 1500",
        "mtu of p0: back at 1500",
    ]
    assert linerate("restore").out == "all settings are as they were\n"
    assert [path for path in (tmp_path / "state").rglob("*") if not path.is_dir()] == []


def test_restore_finds_the_journal_of_whoever_was_killed(
    linerate: Verbs, namespace: Namespace, tmp_path: Path
) -> None:
    """A study on this host keeps its journal in its own directory; which one need not be named."""

    def study() -> None:
        with HostJournal(tmp_path / "study" / "settings.jsonl") as journal:
            apply(HostTarget("server", ("p0",)), {"mtu": 9000}, journal)

    inside(namespace.target, study)
    assert linerate("apply", "ecn=on").code == 0
    back = linerate("restore")
    assert sorted(back.out.splitlines()) == ["ecn: back at passive", "mtu of p0: back at 1500"]
    assert linerate("restore").out == "all settings are as they were\n"


@pytest.mark.parametrize("study_first", [True, False])
def test_restore_puts_back_first_what_was_changed_last(
    study_first: bool, linerate: Verbs, namespace: Namespace, tmp_path: Path
) -> None:
    """Two journals hold the same setting: the older one knows what the host came with."""

    def study() -> None:
        with HostJournal(tmp_path / "study" / "settings.jsonl") as journal:
            apply(HostTarget("server", ("p0",)), {"mtu": 4000}, journal)

    if study_first:
        inside(namespace.target, study)
    assert linerate("apply", "mtu=9000", "-d", "p0").code == 0
    if not study_first:
        inside(namespace.target, study)
    assert linerate("restore").code == 0
    assert [one.value for one in read(namespace.target, ["mtu"])] == [1500, 1500]


def test_an_interrupted_apply_leaves_nothing_changed(
    linerate: Verbs, namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any) -> None:
        assert apply(*arguments).readback == {"mtu": 9000}
        raise KeyboardInterrupt

    assert linerate("apply", "ecn=on").code == 0
    monkeypatch.setattr("linerate.host.apply", interrupted)
    assert linerate("apply", "mtu=9000", "-d", "p0").code == 130
    monkeypatch.undo()
    found = read(HostTarget("h1", ("p0",), namespace.target.namespace), ["mtu", "ecn"])
    assert [one.value for one in found] == [1500, "on"], "an earlier change stays"


def test_what_cannot_be_had_changes_nothing(linerate: Verbs, tmp_path: Path) -> None:
    said = linerate("apply", "mtu=9000", "rx_ring_frames=max", "nagle=on", "-d", "p0")
    assert said.code == 1
    assert said.out == ""
    assert said.err.startswith(
        "linerate: nothing was changed: rx_ring_frames of p0: the driver of p0 has no such setting; nagle: "
    )
    assert linerate("show", "mtu", "-d", "p0").out.splitlines()[-1].split() == ["p0", "1500", "bytes"]
    assert [path for path in (tmp_path / "state").rglob("*") if not path.is_dir()] == []


@pytest.mark.long
def test_a_study_with_hosts_is_planned_and_undone(linerate: Verbs, tmp_path: Path) -> None:
    study = tmp_path / "two.toml"
    study.write_text(STUDY)
    there, back = linerate("plan", str(study)), linerate("plan", str(study), "--undo", "--case", "baseline")
    assert (there.err, back.err) == ("", "")
    assert there.out.splitlines() == [
        "ip link set dev p0 mtu 9000",
        "ip link set dev p1 mtu 9000",
        "sysctl -w net.ipv4.tcp_ecn=1",
    ]
    assert back.out.splitlines() == [
        "sysctl -w net.ipv4.tcp_ecn=2",
        "ip link set dev p0 mtu 1500",
        "ip link set dev p1 mtu 1500",
    ]
    assert linerate("apply", str(study)).out.splitlines()[:2] == [
        "mtu: 9000 (was 1500)",
        "ecn: on (was passive)",
    ]
    script = linerate("plan", str(study), "--windows", "--case", "small frames")
    assert "$Ports = @('p0', 'p1')" in script.out
    assert "-RegistryKeyword '*JumboPacket' -RegistryValue 1514" in script.out
    assert "there is baseline, small frames" in linerate("plan", str(study), "--case", "large").err


def test_show_says_what_is_here_and_what_is_not(linerate: Verbs) -> None:
    lines = linerate("show", "-d", "p0", "-d", "p1").out.splitlines()
    assert lines[0] == "adapter and driver"
    assert lines[1].split() == ["mtu", "1500", "bytes", "usually", "1500", "ip", "link", "mtu"]
    here, absent = "\n".join(lines).split("not here")
    assert "flow_control" not in here
    assert "rx_ring_frames of p0" in absent
    assert "irqbalance" in absent


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "mut=9000"], "did you mean mtu?"),
        (["plan", "mtu=1"], "write 576 to 16110 bytes"),
        (["apply", "mtu=9000", "lso"], "neither settings nor one study file"),
        (["plan", "mtu=9000", "--case", "x"], "--case needs a study file"),
        (["show", "mut"], "did you mean mtu?"),
        (["restore", "nowhere.jsonl"], "there is no such journal"),
        (["plan", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_mistakes_are_the_user_s(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["host", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_port_must_be_named_for_what_belongs_to_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["host", "plan", "mtu=9000"]) == 1
    said = capsys.readouterr().err
    assert "mtu: no port was named to set it on" in said
    assert "name the port: --device eth2" in said
