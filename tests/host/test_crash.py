"""Nothing is lost: kill -9 at any point, a full disk, a torn journal, an interrupt."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from linerate.errors import HostError, UserError
from linerate.host import HostJournal, HostTarget, apply, read, read_journal, restore
from linerate.host.linux.adapter import LinkNumber
from linerate.host.linux.kernel import Kernel
from linerate.setting import Value

from tests.host.conftest import Namespace, may_make_namespaces
from tests.host.test_namespace import EVERYWHERE

_KILLED = """
import json, os, signal, sys
from pathlib import Path
from linerate.host import HostTarget, HostJournal, apply, inside, read, read_journal, restore
from linerate.host.linux.kernel import Kernel
from linerate.host.linux.routes import _unicast

target = HostTarget("h1", ("p0", "p1"), sys.argv[1])
values, folder = json.loads(sys.argv[2]), Path(sys.argv[3])

def values_now():
    return [(one.setting.name, one.device, one.value) for one in read(target, values)], inside(target, routes)

def routes():
    with Kernel(target.devices) as kernel:
        return [(route["oif"], route.get("dst"), route.get("metrics")) for route in _unicast(kernel)]

def dies_after(left):
    def counted(method):
        def instead(self, *arguments, **named):
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return method(self, *arguments, **named)
        return instead
    for name in ("set_link", "set_ethtool", "set_sysctl", "change_route"):
        setattr(Kernel, name, counted(getattr(Kernel, name)))

found = []
before = values_now()
for writes in json.loads(sys.argv[4]):
    path = folder / f"journal-{writes}"
    if (child := os.fork()) == 0:
        dies_after(writes)
        with HostJournal(path) as journal:
            apply(target, values, journal)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    changed = values_now() != before
    with HostJournal(path) as journal:
        back = restore(journal)
    found.append({"writes": writes, "status": status, "changed": changed, "back": values_now() == before,
                  "failed": [str(one) for one in back.failed], "left": len(read_journal(path))})
print(json.dumps(found))
"""


@pytest.mark.long
@pytest.mark.parametrize("rootless", [True, False])
def test_after_kill_9_restore_brings_every_value_back(
    rootless: bool, make_namespace: Callable[[bool], Namespace], tmp_path: Path
) -> None:
    """The process dies in place of its first write, at many a later one, and when all is set."""
    if not rootless and not may_make_namespaces():
        pytest.skip("needs root; test_rootless runs it inside a user namespace")
    namespace = make_namespace(rootless)
    program = tmp_path / "killed.py"
    program.write_text(_KILLED)
    moments = [*range(0, 30, 3 if rootless else 7), 1000]
    process = namespace.python(program, json.dumps(EVERYWHERE), str(tmp_path), json.dumps(moments))
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    found = json.loads(out)
    assert [one["writes"] for one in found] == moments
    for one in found:
        assert one["status"] == (0 if one["writes"] == 1000 else -signal.SIGKILL), one
        assert one["changed"] is (one["writes"] > 0), one
        assert (one["back"], one["failed"], one["left"]) == (True, [], 0), one


_FULL_DISK = """
import json, sys
from pathlib import Path
from linerate.errors import HostError
from linerate.host import HostTarget, HostJournal, apply, read

target = HostTarget("h1", ("p0", "p1"), sys.argv[1])
values = json.loads(sys.argv[2])
values_now = lambda: [one.value for one in read(target, values)]
before = values_now()
with HostJournal(Path(sys.argv[3])) as journal:
    try:
        apply(target, values, journal)
        words = "no error"
    except HostError as error:
        words = error.message
    left = len(journal.pending)
print(json.dumps({"words": words, "same": values_now() == before, "left": left, "text": Path(sys.argv[3]).read_text()}))
"""


@pytest.mark.long
def test_a_disk_that_fills_up_on_the_way_takes_everything_back(
    make_namespace: Callable[[bool], Namespace], tmp_path: Path
) -> None:
    """The journal is on a file system with one page, which holds about half of the changes."""
    namespace = make_namespace(True)
    program = tmp_path / "full.py"
    program.write_text(_FULL_DISK)
    disk = tmp_path / "disk"
    disk.mkdir()
    process = namespace.python(
        program,
        json.dumps(EVERYWHERE),
        str(disk / "journal"),
        before=f"mount -t tmpfs -o size=4k none {disk}",
    )
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    found = json.loads(out)
    assert "No space left on device" in found["words"]
    assert (found["same"], found["left"]) == (True, 0)
    assert found["text"].count("\n") > 10
    assert found["text"].endswith("}\n")


def test_a_write_that_the_kernel_refuses_takes_the_others_back(
    namespace: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The MTU of the second port is refused when its turn has come, not when it was looked at."""
    write = LinkNumber.write

    def refused_on_p1(self: LinkNumber, kernel: Kernel, device: str, value: Value) -> None:
        if device == "p1" and value == 4000:
            raise HostError("the driver of p1 refused")
        write(self, kernel, device, value)

    monkeypatch.setattr(LinkNumber, "write", refused_on_p1)
    with HostJournal(tmp_path / "journal") as journal:
        applied = apply(namespace.target, {"mtu": 4000, "ecn": "on"}, journal)
        assert [str(one) for one in applied.refused] == ["mtu of p1: the driver of p1 refused"]
        assert journal.pending == ()
    assert [one.value for one in read(namespace.target, ["mtu", "ecn"])] == [1500, 1500, "passive"]


def test_a_change_that_is_not_permitted_leaves_nothing_to_undo(
    namespace: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user without the right may not write the old value either."""

    def not_permitted(*_: object) -> None:
        raise HostError("not permitted", "be root")

    monkeypatch.setattr(LinkNumber, "write", not_permitted)
    monkeypatch.setattr(LinkNumber, "restore", not_permitted)
    with HostJournal(tmp_path / "journal") as journal:
        applied = apply(namespace.target, {"mtu": 4000}, journal)
        assert [str(one) for one in applied.refused] == ["mtu of p0: not permitted (be root)"]
        assert journal.pending == ()
    assert read_journal(tmp_path / "journal") == []


def test_what_is_read_back_otherwise_is_refused(
    namespace: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LinkNumber, "write", lambda *_: None)
    with HostJournal(tmp_path / "journal") as journal:
        applied = apply(namespace.target, {"mtu": 4000}, journal)
    assert str(applied.refused[0]) == "mtu of p0: 4000 was written and 1500 read back"


def test_restore_follows_the_namespace_and_not_its_path(
    make_namespace: Callable[[bool], Namespace], tmp_path: Path
) -> None:
    if not may_make_namespaces():
        pytest.skip("needs root; test_rootless runs it inside a user namespace")
    first, second = make_namespace(False), make_namespace(False)
    place = tmp_path / "h1"
    place.symlink_to(f"/proc/{first.pid}/ns/net")
    target = HostTarget("h1", ("p0", "p1"), str(place))
    with HostJournal(tmp_path / "journal") as journal:
        apply(target, {"mtu": 4000}, journal)
    second.run("ip", "link", "set", "p0", "mtu", "5000")
    place.unlink()
    place.symlink_to(f"/proc/{second.pid}/ns/net")
    with HostJournal(tmp_path / "journal") as journal:
        back = restore(journal)
        assert (len(back.restored), back.gone, back.failed) == (2, (), ())
    assert read_journal(tmp_path / "journal") == []
    assert [one.value for one in read(first.target, ["mtu"])] == [1500, 1500]
    assert [one.value for one in read(second.target, ["mtu"])] == [5000, 1500]


def test_a_port_that_is_gone_took_its_settings_along(namespace: Namespace, tmp_path: Path) -> None:
    with HostJournal(tmp_path / "journal") as journal:
        apply(namespace.target, {"mtu": 4000}, journal)
        namespace.run("ip", "link", "del", "p1")
        back = restore(journal)
        assert [change.device for change in back.restored] == ["p0"]
        assert [change.device for change in back.gone] == ["p1"]
        assert journal.pending == ()


def test_since_a_mark_only_later_changes_go_back(namespace: Namespace, tmp_path: Path) -> None:
    with HostJournal(tmp_path / "journal") as journal:
        apply(namespace.target, {"mtu": 4000}, journal)
        mark = journal.mark
        apply(namespace.target, {"mtu": 9000, "ecn": "on"}, journal)
        restore(journal, since=mark)
        assert [one.value for one in read(namespace.target, ["mtu", "ecn"])] == [4000, 4000, "passive"]
        restore(journal)
        assert [one.value for one in read(namespace.target, ["mtu"])] == [1500, 1500]


def test_a_torn_last_line_is_no_line(namespace: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with HostJournal(path) as journal:
        apply(namespace.target, {"mtu": 4000}, journal)
    with path.open("a") as file:
        file.write('{"change":3,"target":{"na')
    assert [change.number for change in read_journal(path)] == [1, 2]
    with HostJournal(path) as journal:
        assert len(restore(journal).restored) == 2
    assert read_journal(path) == []


def test_after_a_reboot_there_is_nothing_to_put_back(namespace: Namespace, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with HostJournal(path) as journal:
        apply(namespace.target, {"mtu": 4000}, journal)
        restored = path.read_text()
        restore(journal)
    lines = restored.splitlines()
    head = json.loads(lines[0]) | {"boot": "another"}
    path.write_text("\n".join([json.dumps(head), *lines[1:], ""]))
    assert read_journal(path) == []


@pytest.mark.parametrize(
    "text", ["no journal\n", '{"change":1}\n', '{"schema":"linerate.host-journal/9","boot":""}\n']
)
def test_what_is_no_journal_is_not_touched(text: str, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text(text)
    with pytest.raises(UserError):
        HostJournal(path)
    assert path.read_text() == text


def test_one_at_a_time_writes_a_journal(tmp_path: Path) -> None:
    """Else two would give changes the same numbers, or one take away what the other has just begun."""
    path = tmp_path / "journal"
    with HostJournal(path):
        with pytest.raises(HostError, match="another Linerate"):
            HostJournal(path)
        path.unlink()
        with HostJournal(path):
            pass
    with HostJournal(path):
        pass
