"""`linerate advise`: text, JSON, exit codes, facts of another host, nothing opened for writing, under 3 s."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from linerate.advice import rules
from linerate.advice.linux.read import read_linux
from linerate.cli.app import main

from tests.advice.linux_host import TARGET, LinuxHost

CONFIGS = Path(__file__).with_name("configs")
_SECONDS_MAX = 3.0

_WATCHED = """
import os, sys
written = []
writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
changes = ("remove", "rename", "mkdir", "rmdir", "truncate", "chmod", "chown", "link", "symlink", "utime")
def watch(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        if (isinstance(flags, int) and flags & writing) or (isinstance(mode, str) and set(mode) & set("wax+")):
            written.append(str(path))
    elif event.startswith("os.") and event[3:] in changes:
        written.append(f"{event} {arguments}")
    elif event == "subprocess.Popen":
        print("run", os.path.basename(str(arguments[0])), *map(str, arguments[1][1:]), file=sys.stderr)
sys.addaudithook(watch)
from linerate.cli.app import main
code = main(["advise", *sys.argv[1:]])
print("written", [path for path in written if path != os.devnull], file=sys.stderr)
sys.exit(code)
"""


def _watched(*arguments: str) -> tuple[list[str], str]:
    """What the command runs, and what it opened for writing."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", _WATCHED, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    lines = done.stderr.splitlines()
    return [line for line in lines if line.startswith("run ")], next(
        line for line in lines if line.startswith("written ")
    )


@pytest.mark.long
@pytest.mark.parametrize("arguments", [(), ("base-san",), ("--switch", str(CONFIGS / "ios.txt"))], ids=str)
def test_nothing_is_opened_for_writing_and_only_showing_commands_run(arguments: tuple[str, ...]) -> None:
    ran, written = _watched(*arguments)
    assert written == "written []"
    for line in ran:
        words = line.split()
        assert words[1] in ("ip", "ss", "ping", "ethtool", "lldpctl", "dcb", "multipathd", "iscsiadm")
        assert not {"set", "add", "del", "change", "-o", "-K", "-G", "-A"} & set(words)


def test_the_watch_notices_a_file_that_is_written(tmp_path: Path) -> None:
    program = _WATCHED.replace(
        'code = main(["advise", *sys.argv[1:]])', 'code = 0; open(sys.argv[1], "w").close()'
    )
    path = tmp_path / "file"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert f"written ['{path}']" in done.stderr


@pytest.mark.alone
def test_an_audit_of_this_host_takes_under_three_seconds() -> None:
    """Of CPU time, its commands included; on a machine with a CPU to spare it does not wait for anything else."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "linerate.cli", "advise"], capture_output=True, timeout=60, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < _SECONDS_MAX


def test_silent_portals_are_waited_for_side_by_side(tmp_path: Path) -> None:
    """Sixty portals on record that answer nothing, each of which takes 0.2 s."""
    host = LinuxHost()
    records = [f"10.0.9.{number}:3260,1 {TARGET}" for number in range(1, 61)]
    host.commands["iscsiadm -m node"] = "\n".join(records)
    source = host.source(tmp_path)

    def connects(address: str, port: int) -> bool:
        time.sleep(0.2)
        return False

    start = time.monotonic()
    sheet = read_linux(replace(source, connects=connects))
    assert time.monotonic() - start < 60 * 0.2 / 2
    assert sum(one.facts.get("portal_answers") is False for one in sheet.of("path")) >= 60


def test_the_text_names_what_is_broken_why_and_the_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "base-san"]) == 1
    text = capsys.readouterr().out
    assert "should  1 jumbo-frames: Jumbo frames on SAN ports" in text
    assert "h1.p0, h1.p1: MTU: 1500 bytes; wanted: at least 9000" in text
    assert "in a study: settings = { mtu = 9000 }" in text
    assert "measured: nic-tuning --quick: sequential read +4.7 %" in text
    assert "UNKNOWN: not checked, and so not known to be right" in text
    assert "NOT LOOKED AT, it needs a switch (--switch): 4 flow-control-switch" in text
    assert "\x1b" not in text


def test_programs_get_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "base-san", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "linerate.advice/1"
    assert sum(found["rules"].values()) == len(rules())
    first = next(one for one in found["outcomes"] if one["state"] == "broken" and one["id"] == "jumbo-frames")
    assert (first["subject"], first["setting"], first["sources"][0]) == ("h1.p0", "mtu", "000:199")
    assert first["commands"] == ["in a study: settings = { mtu = 9000 }"]
    assert all(one["mend"] is None for one in found["outcomes"] if one["state"] != "broken")


@pytest.mark.parametrize(("severity", "code"), [("must", 0), ("should", 0), ("may", 0)])
def test_the_exit_code_of_a_clean_switch_is_zero(
    severity: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", "--switch", str(CONFIGS / "nxos.txt"), "--fail-on", severity]) == code
    assert "0 rules broken" in capsys.readouterr().out


def test_the_exit_code_follows_the_severity(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sw.txt"
    path.write_text((CONFIGS / "nxos.txt").read_text().replace("  spanning-tree port type edge\n", ""))
    assert main(["advise", "--switch", str(path)]) == 0
    assert main(["advise", "--switch", str(path), "--fail-on", "should"]) == 1
    assert "48 edge-ports" in capsys.readouterr().out


def test_facts_that_were_printed_are_judged_alike_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", "base-san", "--show-facts"]) == 0
    path = tmp_path / "facts.json"
    path.write_text(capsys.readouterr().out)
    main(["advise", "base-san", "--json"])
    here = json.loads(capsys.readouterr().out)
    main(["advise", "--facts", str(path), "--json"])
    assert json.loads(capsys.readouterr().out)["outcomes"] == here["outcomes"]


def test_the_script_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "--facts-script"]) == 0
    assert "ConvertTo-Json" in capsys.readouterr().out


CONFIGS = Path(__file__).parent / "configs"


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["no-such-san"], "no such topology", "base-san"),
        (["--answer", "upps=yes"], "there is no question 'upps'", "there is ups"),
        (["--answer", "ups=maybe"], "behind a UPS", "answer yes or no"),
        (["--answer", "load_percent=many"], "How busy", "0 to 100"),
        (["--facts", "missing.json"], "missing.json", "--show-facts"),
        (["--switch", "missing.txt"], "missing.txt", "show running-config"),
        (["--image", "missing.vhdx"], "missing.vhdx", "VHDX or VHD"),
        (["--vlan", "5000", "base-san"], "at most 4094", "--help"),
        (["--device", "eth99"], "there is no device eth99", "there is "),
        (["iscsi://10.0.0.5/iqn.2026-11.lab:disks/0"], "a LUN cannot be asked for alone", "leave it out"),
        (["smb://joe%hidden@nas"], "smb://***@nas: this kind of URL", "iscsi://"),
        ([f"{CONFIGS}/ios.txt"], "a configuration of Cisco IOS", "--switch"),
        ([f"{CONFIGS}/nxos.txt"], "a configuration of Cisco NX-OS", "--switch"),
    ],
)
def test_a_mistake_is_the_users_and_says_what_to_do(
    arguments: list[str], message: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", *arguments]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert hint in told


@pytest.mark.parametrize(
    ("name", "data", "hint"),
    [
        ("facts.json", b'{"schema": "linerate.facts/1"}', "--facts"),
        ("backup.vhdx", b"vhdxfile" + bytes(100), "--image"),
    ],
)
def test_a_file_for_an_option_is_told_apart_from_a_topology(
    name: str, data: bytes, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(data)
    assert main(["advise", str(tmp_path / name)]) == 2
    assert f"{hint} {tmp_path / name}" in capsys.readouterr().err


def test_a_folder_that_is_no_study_says_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text("{}")
    assert main(["advise", str(tmp_path / "run")]) == 2
    assert f"it is a run: linerate report {tmp_path / 'run'}" in capsys.readouterr().err
    (tmp_path / "search" / "1-pilot").mkdir(parents=True)
    (tmp_path / "search" / "1-pilot" / "study.json").write_text("{}")
    assert main(["advise", str(tmp_path / "search")]) == 2
    assert f"the studies are inside of it: {tmp_path / 'search' / '1-pilot'}" in capsys.readouterr().err


def test_facts_of_another_host_are_not_called_those_of_this_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = {
        "schema": "linerate.facts/1",
        "subjects": [{"kind": "host", "name": "this host", "system": "linux"}],
        "sessions": [{"host": "this host", "port": "eth2", "portal": "10.0.0.5", "array": TARGET}],
    }
    (tmp_path / "hv1.json").write_text(json.dumps(document), "ascii")
    assert main(["advise", "--facts", str(tmp_path / "hv1.json"), "--show-facts"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["subjects"][0]["name"] == shown["sessions"][0]["host"] == "host of hv1.json"


def test_a_vlan_without_a_switch_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "base-san", "--vlan", "10"]) == 2
    assert "--vlan is about the ports of a switch" in capsys.readouterr().err
