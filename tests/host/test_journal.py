"""A journal whose changes were made elsewhere, by several, or whose lines were spoilt: restore comes to an end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from linerate.cli import main
from linerate.errors import HostError, UserError
from linerate.host import (
    HostJournal,
    HostTarget,
    apply,
    default_journal,
    find_namespace,
    inside,
    read,
    read_journal,
    restore,
)
from linerate.host.linux.adapter import LinkNumber
from linerate.host.linux.kernel import Kernel
from linerate.setting import Value

from tests.host.conftest import Namespace, may_make_namespaces
from tests.support import need


def _set(namespace: Namespace, *words: str) -> None:
    """`linerate host apply` as a user inside the namespace calls it, with the same home directory."""
    assert inside(namespace.target, partial(main, ["host", "apply", *words])) == 0


def _mtus(namespace: Namespace) -> list[Value | None]:
    return [one.value for one in read(namespace.target, ["mtu"])]


@pytest.mark.long
def test_what_was_applied_inside_a_lab_that_is_gone_is_named_and_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not may_make_namespaces():
        pytest.skip("needs root; test_rootless runs it inside a user namespace")
    unshare = [need.tool("unshare"), "--net"]
    there = [sys.executable, "-m", "linerate.cli", "host", "apply", "mtu=9000", "-d", "lo"]
    done = subprocess.run([*unshare, *there], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(read_journal(default_journal())) == 1
    assert main(["host", "restore"]) == 0
    assert capsys.readouterr().out == "mtu of lo: its device or network namespace is gone\n"
    assert main(["host", "restore"]) == 0
    assert capsys.readouterr().out == "all settings are as they were\n"
    assert not default_journal().exists()


def test_what_was_applied_inside_a_lab_that_lives_is_put_back_from_outside(
    namespace: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    _set(namespace, "mtu=9000", "-d", "p0")
    capsys.readouterr()
    assert main(["host", "restore", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["restored"] == [{"setting": "mtu", "device": "p0", "value": 1500}]
    assert (told["gone"], told["failed"]) == ([], [])
    assert _mtus(namespace) == [1500, 1500]


@pytest.mark.long
def test_a_namespace_that_may_not_be_entered_keeps_its_entries(
    make_namespace: Callable[[bool], Namespace], tmp_path: Path
) -> None:
    """It is in a user namespace of its own, which a process with threads cannot join."""
    theirs = make_namespace(True)
    path = tmp_path / "journal"
    script = (
        "import sys; from pathlib import Path; from linerate.host import HostTarget, HostJournal, apply\n"
        "with HostJournal(Path(sys.argv[2])) as journal: apply(HostTarget('h1', ('p0',)), {'mtu': 4000}, journal)"
    )
    program = tmp_path / "change.py"
    program.write_text(script)
    net = need.tool("nsenter")
    enter = [net, "--target", str(theirs.pid), "--net", "--user", "--preserve-credentials"]
    subprocess.run([*enter, sys.executable, str(program), "-", str(path)], check=True)
    if may_make_namespaces():
        with HostJournal(path) as journal:
            assert len(restore(journal).restored) == 1, "root may enter"
    else:
        with HostJournal(path) as journal:
            (refusal,) = restore(journal).failed
        assert "inside another network namespace" in refusal.reason
        assert len(read_journal(path)) == 1


def test_a_later_namespace_with_the_same_number_is_another_one(namespace: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with HostJournal(path) as journal:
        apply(namespace.target, {"mtu": 4000}, journal)
    (cookie,) = {change.cookie for change in read_journal(path)}
    assert cookie > 0
    path.write_text(path.read_text().replace(f'"cookie":{cookie}', f'"cookie":{cookie - 1}'))
    with HostJournal(path) as journal:
        back = restore(journal)
        assert (back.restored, len(back.gone), back.failed, journal.pending) == ((), 2, (), ())
    assert _mtus(namespace) == [4000, 4000]


def test_namespaces_are_found_by_processes_threads_and_descriptors(namespace: Namespace) -> None:
    identity = namespace.target.identity()
    assert find_namespace(identity) == f"/proc/{namespace.pid}/ns/net"
    held = os.open(f"/proc/{namespace.pid}/ns/net", os.O_RDONLY)
    try:
        os.kill(namespace.pid, 9)
        os.waitid(os.P_PID, namespace.pid, os.WEXITED | os.WNOWAIT)
        found = find_namespace(identity)
        assert found is not None
        assert (os.stat(found).st_dev, os.stat(found).st_ino) == identity
    finally:
        os.close(held)
    assert find_namespace((identity[0], 1)) is None


def test_a_take_back_that_did_not_hold_is_told_and_stays_in_the_journal(
    namespace: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver refuses the second port's MTU, and takes the first one's back without obeying."""
    write = LinkNumber.write

    def refused_on_p1(self: LinkNumber, kernel: Kernel, device: str, value: Value) -> None:
        if device == "p1":
            raise HostError("the driver of p1 refused")
        write(self, kernel, device, value)

    with HostJournal(tmp_path / "journal") as journal:
        monkeypatch.setattr(LinkNumber, "write", refused_on_p1)
        monkeypatch.setattr(LinkNumber, "restore", lambda *_: None)
        with pytest.raises(HostError, match="mtu of p0: is 4000, not 1500 again"):
            apply(namespace.target, {"mtu": 4000}, journal)
        monkeypatch.undo()
        assert [change.device for change in journal.pending] == ["p0"]
        restore(journal)
        assert journal.pending == ()
    assert _mtus(namespace) == [1500, 1500]


def test_changes_of_different_ports_go_back_in_their_order(namespace: Namespace, tmp_path: Path) -> None:
    one = HostTarget("h1", ("p0",), namespace.target.namespace)
    with HostJournal(tmp_path / "journal") as journal:
        for target, mtu in ((one, 4000), (namespace.target, 9000), (one, 5000)):
            apply(target, {"mtu": mtu}, journal)
        assert restore(journal).failed == ()
    assert _mtus(namespace) == [1500, 1500]


def test_changes_of_two_journals_go_back_in_their_order(namespace: Namespace, tmp_path: Path) -> None:
    """By hand, then a study that was killed, then by hand again."""
    _set(namespace, "mtu=4000", "-d", "p0")
    with HostJournal(tmp_path / "settings.jsonl") as journal:
        inside(namespace.target, lambda: apply(HostTarget("h1", ("p0", "p1")), {"mtu": 6000}, journal))
    _set(namespace, "mtu=9000", "-d", "p0")
    assert main(["host", "restore"]) == 0
    assert _mtus(namespace) == [1500, 1500]


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "[]",
        "torn in the mid",
        '{"schema":"linerate.host-journal/1"}',
        '{"undone":"first"}',
        '{"change":2}',
        '{"change":2,"target":{"name":"h1"},"namespace":[4],"setting":"mtu","device":"p0","before":1500}',
        "\x00\xff",
    ],
)
def test_a_spoilt_line_is_named_and_the_file_left_as_it_is(
    line: str, namespace: Namespace, tmp_path: Path
) -> None:
    path = tmp_path / "journal"
    with HostJournal(path) as journal:
        apply(HostTarget("h1", ("p0",), namespace.target.namespace), {"mtu": 4000}, journal)
    whole = path.read_bytes()
    spoilt = whole + line.encode("latin-1") + b"\n"
    path.write_bytes(spoilt)
    for use in (HostJournal, read_journal):
        with pytest.raises(UserError, match=r"journal:3: not a line of a journal"):
            use(path)
    assert path.read_bytes() == spoilt
    path.write_bytes(whole + line.encode("latin-1"))  # torn by a crash: no line
    with HostJournal(path) as journal:
        assert len(restore(journal).restored) == 1


def test_a_spoilt_state_is_told_and_does_not_hold_the_others_up(namespace: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with HostJournal(path) as journal:
        apply(namespace.target, {"mtu": 4000, "delayed_ack": "off"}, journal)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines[1:]:
        if line["setting"] == "delayed_ack" and line["device"] == "p1":
            good, line["state"] = line["state"], {}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with HostJournal(path) as journal:
        back = restore(journal)
        assert len(back.restored) == 3
        assert [(one.setting, one.device) for one in back.failed] == [("delayed_ack", "p1")]
        assert f"of {path} wants back is unfit" in back.failed[0].reason
    lines[-1]["state"] = good
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with HostJournal(path) as journal:
        assert restore(journal).failed == ()


def test_a_spoilt_journal_does_not_hold_the_others_up(
    namespace: Namespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _set(namespace, "mtu=4000", "-d", "p0")
    broken = tmp_path / "settings.jsonl"
    with HostJournal(broken) as journal:
        inside(namespace.target, lambda: apply(HostTarget("h1", ()), {"ecn": "on"}, journal))
    good = broken.read_bytes()
    broken.write_bytes(good + b"{}\n")
    capsys.readouterr()
    assert main(["host", "restore"]) == 2
    said = capsys.readouterr()
    assert said.out == "mtu of p0: back at 1500\n"
    assert "settings.jsonl:3: not a line of a journal" in said.err
    broken.write_bytes(good)
    assert main(["host", "restore"]) == 0


@pytest.mark.long
def test_of_commands_that_run_at_once_no_change_is_lost(namespace: Namespace) -> None:
    """Each is made under the lock and is in the journal, or was refused and changed nothing."""
    enter = [need.tool("nsenter"), "--target", str(namespace.pid), "--net"]
    asked = [f"mtu={mtu}" for mtu in (2000, 3000, 4000)] + ["ecn=on", "selective_ack=off"]
    command = [*enter, sys.executable, "-m", "linerate.cli", "host", "apply", "-d", "p0"]
    running = [subprocess.Popen([*command, one], stderr=subprocess.PIPE, text=True) for one in asked]
    codes = []
    for process in running:
        _, err = process.communicate(timeout=100)
        codes.append(process.returncode)
        assert process.returncode == 0 or "another Linerate" in err, err
    assert codes.count(0) >= 1
    names = {one.partition("=")[0] for one in asked}
    assert len(read_journal(default_journal())) == codes.count(0)
    assert main(["host", "restore"]) == 0
    found = {one.setting.name: one.value for one in read(namespace.target, names) if one.device != "p1"}
    assert found == {"mtu": 1500, "ecn": "passive", "selective_ack": True}
