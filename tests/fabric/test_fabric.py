"""Every scenario in a process of its own; and the fabric's process with its protocol."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fabric.scenarios import SCENARIOS
from tests.support import need

ROOT = Path(__file__).resolve().parents[2]
# Only a process without threads may enter a user namespace, so it comes first; the network of this machine stays alone.
ENTER = "from linerate.lab import enter, system; enter(); system.unshare(system.CLONE_NEWNET)"
SERVE = f"{ENTER}; from linerate.lab.fabric.__main__ import main; raise SystemExit(main())"
PLAY = f"import sys; {ENTER}; from tests.fabric.scenarios import SCENARIOS; SCENARIOS[sys.argv[1]]()"


@pytest.fixture(scope="session", autouse=True)
def _namespaces() -> None:
    """Skips all where this kernel gives neither a user namespace nor TAP interfaces."""
    if not Path("/dev/net/tun").exists():
        need.missing("/dev/net/tun is not there (load the module tun)")
    tried = subprocess.run(
        [sys.executable, "-c", "from linerate.lab import enter; enter()"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    if tried.returncode:
        need.missing(f"no namespace: {tried.stderr.strip().splitlines()[-1]}")


@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str) -> None:
    need.tool("ip")
    command = [sys.executable, "-c", PLAY, name]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr


class Process:
    """The fabric's process, spoken to line by line."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )

    def ask(self, method: str, **params: Any) -> Any:
        """The result of one request, or the whole answer that refuses it."""
        answer = self.send(json.dumps({"id": 1, "method": method, "params": params}))
        return answer if "error" in answer else answer["result"]

    def send(self, text: str) -> dict[str, Any]:
        """The answer to one line."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert isinstance(answer, dict)
        return answer

    def end(self) -> int:
        """Closes the input and waits."""
        self.process.communicate(timeout=20)
        return self.process.returncode


def small(interface: str) -> dict[str, Any]:
    """A port with one TAP."""
    port = {"name": "h1", "switch": "sw1", "interfaces": [{"interface": interface}]}
    return {"version": 1, "switches": [{"name": "sw1"}], "ports": [port]}


def test_the_process_answers_line_by_line() -> None:
    process = Process()
    assert process.ask("stats")["blame"] == "user"
    assert process.ask("start", **small("tap0")) is None
    assert process.ask("stats")["ports"]["h1"]["sent"]["frames"] == 0
    before = time.monotonic_ns()
    changed_ns = process.ask("change", ports={"h1": {"wire": {"delay_ns": 5}}})
    assert before <= changed_ns <= time.monotonic_ns()
    assert process.ask("stats")["ports"]["h1"]["settings"]["wire"]["delay_ns"] == 5
    refusal = process.ask("change", ports={"h7": {}})
    assert refusal["blame"] == "user"
    assert "h7" in refusal["error"]
    assert process.send("nonsense")["blame"] == "user"
    assert process.ask("stats", stop={})["blame"] == "user"
    assert process.ask("stats")["elapsed_ns"] > 0
    assert process.end() == 0


def test_a_wrong_specification_is_refused_with_the_place() -> None:
    process = Process()
    spec = small("tap1")
    spec["ports"][0]["switch"] = "sw2"
    refusal = process.ask("start", **spec)
    assert (refusal["error"], refusal["blame"]) == ("ports.h1.switch: no such switch", "user")
    spec = small("tap1")
    spec["ports"][0]["interfaces"][0]["netns"] = "/nowhere"
    refusal = process.ask("start", **spec)
    assert refusal["blame"] == "host"
    assert "ports.h1.interfaces.tap1" in refusal["error"]
    assert process.end() == 0
