"""Studies of hosts elsewhere: two namespaces of a lab behind a command, one host behind an `ssh` of this test's own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Collection
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from linerate.cli import main
from linerate.cluster import Endpoint
from linerate.errors import HostError, LinerateError, UserError
from linerate.host import HostTarget
from linerate.results import RunDirectory
from linerate.run import LocalLoad
from linerate.study import load_study
from linerate.study.laboratory.hosts import HostLaboratory
from linerate.study.laboratory.places import placed_volume
from linerate.study.laboratory.remote import RemoteSettings
from linerate.study.model import RealHost, San
from linerate.volumes import Cleared, Consent, Look, virtual

from tests.study.hosts.test_here import STUDY, WORKLOAD, inside
from tests.support.cleared import cleared
from tests.support.need import missing

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).with_name("two_hosts.py")


def _two_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> dict[str, Any]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    command = [sys.executable, str(PROGRAM), str(tmp_path), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    if done.returncode and "no right to build a lab" in done.stderr:
        missing(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.timeout(240)
def test_a_study_of_several_hosts_changes_all_loads_from_all_and_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _two_hosts(tmp_path, monkeypatch)
    assert found["code"] == 0, found["err"]
    assert found["before"] == found["after"]
    assert found["before"]["h1"] == found["before"]["h2"] == [1500, True]
    assert [path for path in (tmp_path / "state").rglob("*") if not path.is_dir()] == []
    cases = {}
    for path in (tmp_path / "out/runs").iterdir():
        run = RunDirectory.open(path)
        (step,) = run.manifest.steps
        assert [volume["name"] for volume in step.spec["volumes"]] == ["h1/v1", "h2/v2", "me/v3"]
        rows = run.intervals.select("volume", "ios").group_by("volume").sum()
        ios = rows.get_column("ios").to_list()
        assert min(ios) > 0.5 * max(ios), "each host makes its part of the rate"
        h1, h2, me = step.san["settings_by_host"].values()
        assert h1 == h2 == me
        cases[step.san["case"]] = step.san["settings_by_host"]["h2"]
    assert cases == {
        "baseline": {"mtu": 1450, "delayed_ack": True},
        "acknowledge at once": {"mtu": 1450, "delayed_ack": False},
        "small": {"mtu": 1400, "delayed_ack": True},
    }
    verdicts = json.loads((tmp_path / "out/verdicts.json").read_bytes())
    assert "acknowledge at once" in json.dumps(verdicts)
    assert "engine on pair: not applicable: toe: Linux has no TCP offload engine" in found["out"]


@pytest.mark.timeout(240)
def test_hosts_put_everything_back_when_the_study_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _two_hosts(tmp_path, monkeypatch, "kill")
    assert found["code"] == -9
    for host, mtu_and_ack in found["before"].items():
        assert found["during"][host] != mtu_and_ack
        assert found["after"][host] == mtu_and_ack


SSH = """\
#!/bin/sh
for word in "$@"; do printf '%s\\n' "$word"; done >> SAID
while [ "$1" != "--" ]; do shift; done
shift 2
echo "Welcome to load1"
exec sh -c "exec $*"
"""
BY_SSH = """
import os
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
os.environ["PATH"] = f"{Path('bin').absolute()}:{os.environ['PATH']}"
os.environ["XDG_STATE_HOME"] = str(Path("state").absolute())
before = mtu()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study of one host by SSH, and an `ssh` that stays here and writes down what it was told."""
    (tmp_path / "load.toml").write_text(WORKLOAD)
    host = f'name = "load1"\nssh = "root@load1"\npython = "{sys.executable}"'
    there = STUDY.replace('name = "me"', host).replace(
        'name = "here"', 'name = "there"\ncontrol_address = "127.0.0.1"'
    )
    (tmp_path / "frames.toml").write_text(there.replace("BLOCKS", "1"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ssh").write_text(SSH.replace("SAID", str(tmp_path / "said")))
    (tmp_path / "bin" / "ssh").chmod(0o755)
    return tmp_path


@pytest.mark.timeout(240)
def test_a_study_of_one_host_by_ssh(folder: Path) -> None:
    body = BY_SSH + "linerate('run', 'frames.toml', '--output', 'out'); print([before, mtu()])"
    before, after = inside(folder, body)
    assert before == after
    journal = (folder / "out/journal.jsonl").read_text()
    assert json.dumps("ssh root@load1") in journal
    asked = {}
    for path in (folder / "out/runs").iterdir():
        san = json.loads((path / "manifest.json").read_bytes())["steps"][0]["san"]
        asked[san["case"]] = san["settings"]["mtu"]
    assert asked == {"baseline": 1500, "jumbo": 9000}
    said = (folder / "said").read_text().splitlines()
    commands = [line for line in said if line.startswith(sys.executable)]
    assert commands[0] == f"{sys.executable} -P -m linerate.cli host hold", "the study left nothing there"
    assert [line.split()[:4] for line in commands[1:]] == [
        [sys.executable, "-P", "-m", "linerate.cluster.worker"]
    ]
    assert [path for path in (folder / "state").rglob("*") if not path.is_dir()] == []


def test_a_killed_holder_leaves_a_journal_that_restores_its_host(folder: Path) -> None:
    body = (
        BY_SSH
        + """
hold = subprocess.Popen([sys.executable, "-m", "linerate.cli", "host", "hold"], text=True,
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for line in ('{"id": 1, "method": "open", "params": {"name": "load1", "devices": ["lo"]}}',
             '{"id": 2, "method": "hold", "params": {"settings": {"mtu": 9000}}}'):
    print(line, file=hold.stdin, flush=True)
    hold.stdout.readline()
hold.kill()
hold.wait()
killed = mtu()
linerate("host", "restore")
print([before, killed, mtu()])
"""
    )
    before, killed, restored = inside(folder, body)
    assert (killed, restored) == (9000, before)
    assert [path for path in (folder / "state").rglob("*") if not path.is_dir()] == []


def test_a_holder_answers_line_by_line_and_puts_everything_back_in_the_end(folder: Path) -> None:
    lines = [
        "no request",
        *(
            json.dumps({"id": number, "method": method, "params": params})
            for number, (method, params) in enumerate(
                (
                    ("hold", {"settings": {"mtu": 9000}}),
                    ("open", {"name": "load1", "devices": ["lo"]}),
                    ("open", {"name": "load1", "devices": ["lo"]}),
                    ("hold", {"settings": {"mtu": 9000, "toe": True}}),
                    ("hold", {"settings": {"mut": 9000}}),
                    ("restore", {}),
                    ("hold", {"settings": {"mtu": 4000}}),
                ),
                1,
            )
        ),
    ]
    body = (
        BY_SSH
        + f"""
done = subprocess.run([sys.executable, "-m", "linerate.cli", "host", "hold"], input={chr(10).join(lines)!r} + chr(10),
                      text=True, stdout=subprocess.PIPE)
import json
print(json.dumps([before, mtu(), done.returncode, done.stdout]))
"""
    )
    before, after, code, out = inside(folder, body)
    assert (before, code) == (after, 0)
    answers = [json.loads(line) for line in str(out).splitlines()]
    assert [answer["id"] for answer in answers] == [None, 1, 2, 3, 4, 5, 6, 7]
    assert [answer.get("blame") for answer in answers] == [
        *("user", "user", None, "user", None, "user", None, None)
    ]
    assert answers[4]["result"]["readback"] == {"mtu": 9000}
    assert "Linux has no TCP offload engine" in answers[4]["result"]["refused"]["toe"]


def _at(script: str) -> Callable[[], RemoteSettings]:
    place = Endpoint("load1", lambda _: [sys.executable, "-c", script])
    return lambda: RemoteSettings(place, HostTarget("load1", ("eth2",)))


def _saying(answer: object) -> str:
    return f"print({json.dumps(answer)!r}, flush=True); input()"


@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        ("raise SystemExit('Permission denied (publickey).')", HostError, "Permission denied (publickey)."),
        (_saying({"id": 1, "result": {"linerate": "0.0.1"}}), UserError, "host load1 has Linerate 0.0.1"),
        (
            _saying({"id": 1, "error": "locked", "hint": "", "blame": "host"}),
            HostError,
            "host load1: locked",
        ),
    ],
)
def test_a_host_that_cannot_be_had_is_named(script: str, error: type[LinerateError], words: str) -> None:
    with pytest.raises(error) as raised:
        _at(script)()
    assert words in raised.value.message


def test_ssh_that_is_not_installed_is_told() -> None:
    with pytest.raises(HostError, match="host load1: No such file or directory: nowhere/ssh"):
        RemoteSettings(Endpoint("load1", lambda _: ["nowhere/ssh"]), HostTarget("load1", ("eth2",)))


class _Applier:
    """Settings of a host on paper that lacks some."""

    def __init__(self, *lacks: str) -> None:
        self.lacks = lacks
        self.held: list[set[str]] = []

    def hold(self, settings: Any) -> Any:
        from linerate.study.laboratory import SetUp

        self.held.append(set(settings))
        have = {name: value for name, value in settings.items() if name not in self.lacks}
        return SetUp(have, dict.fromkeys(settings.keys() - have, "the driver has no such setting"))

    def restore(self) -> None:
        self.held.append(set())


def test_what_one_host_lacks_is_held_on_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    appliers = {"h1": _Applier(), "h2": _Applier("rsc", "lso"), "h3": _Applier("lso")}
    monkeypatch.setattr(HostLaboratory, "_applier", lambda self, host, stack: appliers[host.name])
    monkeypatch.setattr(RealHost, "is_here", True)
    hosts = tuple(RealHost(name=name, devices=("p0",), volumes=("null:1048576",)) for name in appliers)
    laboratory = HostLaboratory(tmp_path, Consent.nothing())
    laboratory.bring_up(San(name="three", hosts=hosts), [])
    done = laboratory.apply(
        {"mtu": 9000, "rsc": True, "lso": True, "switch.buffer": "64k", "outstanding": 4, "faults": "x"}
    )
    assert dict(done.readback) == {"mtu": 9000, "outstanding": 4}
    assert done.refused == {
        "switch.buffer": "a host cannot change it",
        "faults": "only a virtual SAN has the paths and faults that it needs",
        "rsc": "host h2: the driver has no such setting",
        "lso": "host h2: the driver has no such setting; host h3: the driver has no such setting",
    }
    assert [one.held[-1] for one in appliers.values()] == [{"mtu"}] * 3
    laboratory.close()
    assert [one.held[-1] for one in appliers.values()] == [set()] * 3


class _Losing:
    """A cluster that loads from here and says that it has lost a host."""

    def about(self) -> dict[str, Any]:
        return {}

    def look_at_parts(self, divided: Any, names: Collection[str]) -> tuple[Look, ...]:
        return virtual(divided[1], names)

    def start_parts(self, divided: Any, run: Cleared) -> Any:
        load: Any = LocalLoad(cleared(divided[1]))
        load.lost = {"h2": "its worker has ended"}
        return load


def test_a_run_that_loses_a_host_is_degraded_and_does_not_count(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostLaboratory, "_applier", lambda self, host, stack: _Applier())
    monkeypatch.setattr("linerate.cluster.workers.Cluster", lambda *_, **__: nullcontext(_Losing()))
    study = load_study(folder / "frames.toml")
    laboratory = HostLaboratory(folder, Consent.nothing())
    laboratory.bring_up(study.sans[0], [])
    laboratory.apply({"mtu": 9000})
    with pytest.raises(HostError, match=r"degraded: host h2 was lost \(its worker has ended\)"):
        laboratory.measure(study.workloads[0], folder / "run", {})
    assert RunDirectory.open(folder / "run").manifest.state == "complete", "what was measured is kept"
    laboratory.close()


def test_secrets_come_from_the_environment_and_into_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIBISCSI_CHAP_USERNAME", "tester")
    monkeypatch.setenv("LIBISCSI_CHAP_PASSWORD", "not to be shown")
    volume = placed_volume("iscsi://10.0.0.5/iqn.2026-11.lab:disks/0?header_digest=crc32c")
    assert volume.url == "iscsi://10.0.0.5:3260/iqn.2026-11.lab:disks/0"
    assert (volume.access["user"], volume.iscsi.header_digest) == ("tester", "crc32c")
    assert volume.access["secret"].get_secret_value() == "not to be shown"
    assert "not to be shown" not in repr(volume)


def test_a_dry_run_says_what_runs_where(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = folder / "frames.toml"
    here = '[[san.host]]\nname = "me"\ndevices = ["lo"]\nvolumes = ["null:1048576"]\n\n[[workload]]'
    study.write_text(study.read_text().replace("[[workload]]", here))
    assert main(["run", str(study), "--dry-run"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:11] == [
        "SAN there: hosts that exist",
        f"load1: ssh root@load1, {sys.executable}",
        "settings of lo: mtu, toe",
        "volumes null:67108864",
        "load read: v1",
        "me: this machine",
        "settings of lo: mtu, toe",
        "volumes null:1048576",
        "load read: none, its volumes are all on other hosts",
        "this machine gathers at 127.0.0.1; hosts connect to it, and it to them",
    ]
