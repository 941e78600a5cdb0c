"""`linerate advise --apply` on a real kernel: consent, what is changed and put back, what is not touched and why."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from linerate.advice import AuditResult, AuditSources, UntouchedRule, apply_mends, judge, plan_mends, rules
from linerate.advice.facts import AuditSubject, SanFactSheet
from linerate.cli import main
from linerate.errors import HostError
from linerate.host import HostJournal, HostPlan, PlannedSetting, Restored, named
from linerate.host.change import Applied

from tests.host.conftest import may_make_namespaces
from tests.support import need

CONFIGS = Path(__file__).with_name("configs")
_BUILD = """
mount -t sysfs sysfs /sys
ip link add p0 type veth peer name x0
ip addr add 10.9.0.1/24 dev p0
for link in lo p0 x0; do ip link set $link up; done
"""


def _inside(tmp_path: Path, *commands: str) -> list[subprocess.CompletedProcess[str]]:
    """What commands do inside one namespace with a port p0: `linerate WORDS`, or `show` for the port's MTU."""
    if not may_make_namespaces():
        pytest.skip("needs root: an audit reads this host's /sys, which only root can mount for a namespace")
    need.tool("ip")
    unshare = [need.tool("unshare"), "--net", "--mount", "sh", "-ec"]
    lines = [_BUILD]
    for number, command in enumerate(commands):
        words = (
            "ip -o link show dev p0" if command == "show" else f"{sys.executable} -m linerate.cli {command}"
        )
        place = tmp_path / str(number)
        lines.append(
            f"{words} > {place}.out 2> {place}.err < /dev/null && code=0 || code=$?; echo $code > {place}.code"
        )
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    subprocess.run([*unshare, "\n".join(lines)], check=True, timeout=120, env=environment)
    return [
        subprocess.CompletedProcess(
            command,
            int((tmp_path / f"{number}.code").read_text()),
            (tmp_path / f"{number}.out").read_text(),
            (tmp_path / f"{number}.err").read_text(),
        )
        for number, command in enumerate(commands)
    ]


@pytest.mark.long
def test_settings_of_this_host_are_changed_with_consent_and_put_back(tmp_path: Path) -> None:
    switch = CONFIGS / "ios.txt"
    asked, shown, applied, changed, back, end = _inside(
        tmp_path,
        "advise -d p0 --apply",
        "show",
        f"advise -d p0 --switch {switch} --apply --yes --fail-on may",
        "show",
        "host restore",
        "show",
    )
    assert (asked.returncode, " mtu 1500 " in shown.stdout) == (2, True)
    assert "nothing was changed: --apply asks first" in asked.stderr
    assert "add --yes" in asked.stderr
    assert "mtu of p0: 1500, to be 9000 (rule 1 jumbo-frames)" in asked.stdout
    assert "    ip link set dev p0 mtu 9000" in asked.stdout
    assert "    set the MTU to 9000 on this port, after every switch port" in asked.stdout
    assert applied.stderr == ""
    done = applied.stdout[applied.stdout.index("\nchanged:\n") :].splitlines()
    assert "    mtu of p0: 9000 (was 1500)" in done
    assert done[-1] == "to put it back: linerate host restore"
    assert " mtu 9000 " in changed.stdout
    plan = applied.stdout[applied.stdout.index("\nnot touched:\n") :]
    assert "12 interrupt-moderation, p0: the driver of p0 has no adaptive moderation" in plan
    assert "19 only-ipv4, p0: no setting of a host mends it" in plan
    assert (back.returncode, "mtu of p0: back at 1500" in back.stdout) == (0, True)
    assert " mtu 1500 " in end.stdout


def _result(*subjects: AuditSubject, here: int) -> AuditResult:
    sheet = SanFactSheet(subjects)
    return AuditResult(sheet, judge(sheet, rules()), of_this_host=here)


def _reasons(untouched: tuple[UntouchedRule, ...], rule: int) -> list[str]:
    return [f"{one.subject}: {one.reason}" for one in untouched if one.rule.number == rule]


def test_what_is_not_of_this_host_is_named_with_the_reason() -> None:
    """Another host has a port of the same name, and a switch and a topology are audited beside them."""
    result = _result(
        AuditSubject("host", "this host", "linux", {"port_ratio": 3.0}),
        AuditSubject("path", "eth2 -> 10.0.0.5", "linux", {"carries_mtu": False}),
        AuditSubject("port", "eth2", "linux", {"mtu": 1500}),
        AuditSubject("port", "eth2", "windows", {"mtu": 1500}),
        AuditSubject("switch_port", "ethernet1/1", "nxos", {"mtu": 1500}),
        AuditSubject("port", "h1.p0", "topology", {"mtu": 1500}),
        here=2,
    )
    made = plan_mends(result, "server")
    assert made.mends == ()
    assert _reasons(made.untouched, 1) == [
        "eth2: it is on another host",
        "eth2: it is on another host",
        "h1.p0: it is on a topology",
        "ethernet1/1: it is on a switch or an image",
    ]
    assert _reasons(made.untouched, 20)[0].startswith("this host: it does not say on which port flow_control")
    assert "it does not say on which port mtu is wrong" in _reasons(made.untouched, 2)[0]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, object]]:
    """A host whose plans succeed; what is applied is listed."""
    done: list[tuple[str, object]] = []

    def plan(target: object, values: dict[str, object]) -> HostPlan:
        ((name, value),) = values.items()
        setting = named(name)
        device = target.devices[0] if target.devices else ""  # type: ignore[attr-defined]
        wanted = setting.parse(value)  # type: ignore[arg-type]
        step = PlannedSetting(setting, device, 1500, wanted, (f"set {name}",), ("back",))
        return HostPlan((step,), (), ())

    def apply(target: object, values: dict[str, object], journal: HostJournal) -> Applied:
        done.extend(values.items())
        return Applied(readback=dict(values))  # type: ignore[arg-type]

    def restore(journal: HostJournal, *, since: int) -> Restored:
        done.append(("restored since", since))
        return Restored()

    for name, function in (("plan", plan), ("apply", apply), ("restore", restore)):
        monkeypatch.setattr(f"linerate.advice.apply.{name}", function)
    return done


def test_a_change_that_breaks_a_must_is_put_back(
    planned: list[tuple[str, object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port's MTU is raised, and then a full frame no longer reaches the array."""
    port = AuditSubject("port", "eth2", "linux", {"mtu": 1500})
    path = AuditSubject("path", "eth2 -> 10.0.0.5", "linux", {"carries_mtu": True})
    before = _result(port, path, here=2)
    silent = replace(path, facts={"carries_mtu": False})
    monkeypatch.setattr("linerate.advice.apply.audit", lambda sources: _result(port, silent, here=2))
    made = plan_mends(before, "server")
    assert [mend.text for mend in made.mends] == ["mtu of eth2: 1500, to be 9000"]
    with HostJournal(tmp_path / "journal") as journal, pytest.raises(HostError) as error:
        apply_mends(made, AuditSources(), before, journal)
    assert "after the change these were broken: same-mtu (eth2 -> 10.0.0.5)" in error.value.message
    assert planned == [("mtu", 9000), ("restored since", 0)]


def test_an_interrupt_puts_everything_back(
    planned: list[tuple[str, object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(sources: AuditSources) -> AuditResult:
        raise KeyboardInterrupt

    before = _result(AuditSubject("port", "eth2", "linux", {"mtu": 1500}), here=1)
    monkeypatch.setattr("linerate.advice.apply.audit", interrupted)
    with HostJournal(tmp_path / "journal") as journal, pytest.raises(KeyboardInterrupt):
        apply_mends(plan_mends(before, "server"), AuditSources(), before, journal)
    assert planned[-1] == ("restored since", 0)


def test_without_root_nothing_is_changed(
    planned: list[tuple[str, object]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    result = _result(AuditSubject("port", "eth2", "linux", {"mtu": 1500}), here=1)
    monkeypatch.setattr("linerate.advice.audit", lambda sources: result)
    assert main(["advise", "-d", "eth2", "--apply", "--yes"]) == 1
    told = capsys.readouterr()
    assert "mtu of eth2: 1500, to be 9000" in told.out
    assert "only root may change these settings" in told.err
    assert "sudo" in told.err
    assert planned == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--yes"], "--yes is about --apply"),
        (["--apply", "--json"], "--apply tells what it does as text"),
        (["base-san", "--apply"], "the audit is not about it"),
    ],
)
def test_apply_is_for_this_host(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", *arguments]) == 2
    assert message in capsys.readouterr().err
