"""The kernel's fabric and our own carry the same frames at the same rate, and lose them for the same reason."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.lab.conftest import TIMEOUT_S, unique, with_rights
from tests.lab.fabrics import RATE_BITS_PER_S
from tests.support.patience import a_busy_machine_may_spoil

pytestmark = [pytest.mark.usefixtures("awake"), pytest.mark.long]

# Payload and wire bytes of a full frame: 52 bytes of headers with TCP timestamps, 38 of Ethernet with its gap.
PAYLOAD_SHARE = {1500: 1448 / 1538, 9000: 8948 / 9038}


def measured(fabric: str, rights: str) -> dict[str, dict[str, float]]:
    command = (sys.executable, "-m", "tests.lab.fabrics", unique(fabric), fabric)
    done = subprocess.run(
        with_rights(rights, command), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


@a_busy_machine_may_spoil
def test_both_fabrics_say_the_same(rights: str) -> None:
    kernel, user = measured("kernel", rights), measured("user", rights)
    for found in (kernel, user):
        for mtu, share in PAYLOAD_SHARE.items():
            line_bytes_per_s = RATE_BITS_PER_S / 8 * share
            alone = found[f"line {mtu}"]["bytes_per_s"]
            # The machine is not ours alone; what a fabric may never do is carry more than the line.
            assert alone == pytest.approx(line_bytes_per_s, rel=0.05)
            assert alone < 1.01 * line_bytes_per_s
            congested = found[f"congested {mtu}"]
            assert congested["segments_retransmitted"] > 0
            assert congested["drops"] > 0
            assert found[f"line {mtu}"]["drops"] == 0
            assert congested["bytes_per_s"] < 1.01 * line_bytes_per_s
    assert user["paused 9000"]["drops"] == 0
    # TCP may probe when the machine is late, without anything being lost.
    assert user["paused 9000"]["segments_retransmitted"] <= 5
    assert user["paused 9000"]["bytes_per_s"] == pytest.approx(user["line 9000"]["bytes_per_s"], rel=0.05)
