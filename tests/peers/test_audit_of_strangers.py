"""`linerate advise` on a stranger's array (tgt): what its LUN tells, planted faults, and nothing written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import linerate
from tests.peers.conftest import TGT_IQN, Tgt


def _report(tgt: Tgt, *answers: str) -> dict[str, Any]:
    given = [word for one in answers for word in ("--answer", one)]
    done = linerate("advise", f"{tgt.portal}/{TGT_IQN}", "--json", *given)
    assert done.returncode in (0, 1), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _texts(report: dict[str, Any], number: int, state: str) -> list[str]:
    return [one["text"] for one in report["outcomes"] if one["rule"] == number and one["state"] == state]


def _change(tgt: Tgt, *params: str) -> None:
    lun = ("--op", "update", "--mode", "logicalunit", "--tid", "1", "--lun", "1")
    for one in params:
        done = tgt.admin(*lun, "--params", one)
        assert done.returncode == 0, done.stderr


def test_what_tgt_tells_is_judged_and_nothing_is_written(tgt: Tgt) -> None:
    before = tgt.backing.stat().st_mtime_ns
    facts = json.loads(linerate("advise", tgt.portal, "--show-facts").stdout)
    array, volume = facts["subjects"]
    assert (array["kind"], array["facts"]["vendor_id"], array["facts"]["portals"]) == ("array", "IET", 1)
    assert volume["name"] == f"LUN 1 of {TGT_IQN}", "its controller, LUN 0, is no volume"
    told = {
        name: volume["facts"][name] for name in ("write_cache", "logical_block_bytes", "physical_block_bytes")
    }
    assert told == {"write_cache": "on", "logical_block_bytes": 512, "physical_block_bytes": 4096}
    report = _report(tgt, "ups=no")
    assert _texts(report, 37, "broken") == ["a UPS protects the array: no; wanted: yes"]
    assert _texts(report, 21, "broken") == ["portals of the array that lead to it: 1; wanted: at least 2"]
    assert "the vendor 'iet' is not in the table" in _texts(report, 27, "unknown")[0]
    assert _texts(_report(tgt, "ups=yes"), 37, "kept")
    assert tgt.backing.stat().st_mtime_ns == before
    assert not any(tgt.backing.read_bytes())


def test_faults_that_tgt_is_given_are_found(tgt: Tgt) -> None:
    assert _texts(_report(tgt), 40, "broken") == []
    _change(tgt, "optimal_xfer_len=32", "la_lba=7")
    report = _report(tgt)
    assert _texts(report, 38, "broken") == ["optimal I/O size: 16384 bytes; wanted: at least 65536"]
    assert _texts(report, 40, "broken") == [
        "bytes by which a partition misses a physical block: 3584; wanted: 0"
    ]
    _change(tgt, "optimal_xfer_len=128", "la_lba=0", "thin_provisioning=1")
    report = _report(tgt)
    assert _texts(report, 38, "kept") == ["optimal I/O size: 65536 bytes"]
    assert _texts(report, 40, "broken") == []
    assert _texts(report, 39, "unknown") == [
        "the array does not say how full the space behind the thin volume is"
    ]


@pytest.mark.parametrize(
    ("login", "is_right"), [("", False), ("joe%wrong-secret-1@", False), ("joe%secret-of-tgt@", True)]
)
def test_tgt_with_chap_lets_in_by_its_secret_alone(tgt: Tgt, login: str, is_right: bool) -> None:
    """tgt takes CHAP_A=7 for SHA-1, IANA and our initiator for SHA-256: the second attempt is by MD5."""
    account = ("--mode", "account", "--user", "joe")
    assert tgt.admin("--op", "new", *account, "--password", "secret-of-tgt").returncode == 0
    assert tgt.admin("--op", "bind", "--tid", "1", *account).returncode == 0
    place = tgt.portal.removeprefix("iscsi://")
    empty = {"LIBISCSI_CHAP_USERNAME": "", "LIBISCSI_CHAP_PASSWORD": ""}
    done = linerate("advise", f"iscsi://{login}{place}", **empty)
    assert "secret-" not in done.stdout + done.stderr
    if is_right:
        assert "optimal I/O size" in done.stdout, done.stderr
        return
    assert done.returncode == 2, "the user's fault"
    assert f"{TGT_IQN} at {place}: " in done.stderr
    assert "authentication" in done.stderr
    assert not done.stdout
