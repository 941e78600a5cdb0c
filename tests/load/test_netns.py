"""Volumes in network namespaces: each is reached from its own, by threads of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support import need

TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What `two_hosts` found."""
    for tool in ("ip", "nsenter"):
        need.tool(tool)
    command = [*need.unshare("--net"), sys.executable, "-m", "tests.load.two_hosts"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.long
def test_each_volume_is_reached_from_its_own_namespace(found: dict[str, Any]) -> None:
    hosts = [volume["session"]["local_address"].split(":")[0] for volume in found["facts"]["volumes"]]
    assert hosts == ["10.9.1.2", "10.9.2.2", "10.9.1.3", "10.9.2.2"], "the third one names its source"
    assert all(found["ios"][f"v{lun}"] > 10 for lun in range(4)), found["ios"]


def test_only_workers_enter_and_none_serves_two_namespaces(found: dict[str, Any]) -> None:
    assert found["main"] == found["here"]
    assert found["threads_inside"] == found["hosts"]
    workers = [volume["worker"] for volume in found["facts"]["volumes"]]
    assert workers[0] == workers[2] != workers[1] == workers[3]


def test_what_cannot_be_reached_is_told(found: dict[str, Any]) -> None:
    kind, message = found["unreachable"]
    assert kind == "PeerError"
    assert "unreachable" in message, "the first host has no way to the second one's network"
    kind, message = found["no_source"]
    assert kind == "UserError"
    assert "source address 192.0.2.7" in message
    kind, message = found["no_namespace"]
    assert kind == "UserError"
    assert message.startswith("volume v0: the network namespace /proc/self/stat is none"), message
