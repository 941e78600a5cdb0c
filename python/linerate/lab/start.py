"""Starts a supervisor and ends it: the only place where a command and its supervisor are parent and child."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence

from linerate import rpc
from linerate.errors import HostError, InternalError
from linerate.lab import system
from linerate.san import Topology

UP_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0

_PEER = rpc.Peer("the lab's supervisor", late_hint="try again", gone_hint="see its message above")

_detached: list[subprocess.Popen[bytes]] = []
"""Supervisors that this process has started and let go: kept here, else Python would miss their end."""


def start_supervisor(
    name: str, topology: Topology, *, fabric: str, needs: Sequence[str], detached: bool
) -> subprocess.Popen[bytes]:
    """Starts the supervisor of a lab and waits until the lab is up.

    An attached supervisor ends when the pipe to its standard input closes, so also when this process is killed. Raises
    the error of the supervisor, which has then ended, and HostError when it died without one.
    """
    order = {
        "name": name,
        "topology": topology.model_dump_json(),
        "fabric": fabric,
        "needs": list(needs),
        "attached": not detached,
    }
    supervisor = _first_of_namespace([sys.executable, "-P", "-m", "linerate.lab.supervisor"])
    try:
        _FirstRequest(supervisor).ask("up", order)
        if detached:
            _let_go(supervisor)
    except BaseException:
        supervisor.kill()
        stop_supervisor(supervisor)
        raise
    return supervisor


class _FirstRequest(rpc.Client):
    """It goes over the pipes of the process, whose standard error is that of this command."""

    def __init__(self, supervisor: subprocess.Popen[bytes]) -> None:
        assert supervisor.stdin is not None
        assert supervisor.stdout is not None
        fds = supervisor.stdout.fileno(), supervisor.stdin.fileno()
        super().__init__(_PEER, *fds, timeout_s=UP_TIMEOUT_S)
        self._supervisor = supervisor

    def ended(self) -> HostError:
        self._supervisor.kill()
        status = self._supervisor.wait()
        return HostError(f"{_PEER.name} ended with status {status} before the lab was up", _PEER.gone_hint)


def stop_supervisor(supervisor: subprocess.Popen[bytes]) -> None:
    """Waits until a supervisor that was told to go has gone, with everything in its namespaces."""
    assert supervisor.stdin is not None
    assert supervisor.stdout is not None
    supervisor.stdin.close()
    try:
        supervisor.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        supervisor.kill()
        supervisor.wait()
        raise InternalError("the lab's supervisor did not end when told and was killed") from error
    finally:
        supervisor.stdout.close()


def _let_go(supervisor: subprocess.Popen[bytes]) -> None:
    assert supervisor.stdin is not None
    assert supervisor.stdout is not None
    supervisor.stdin.close()
    supervisor.stdout.close()
    _detached.append(supervisor)


def reap_detached() -> None:
    """Takes note of the supervisors that have ended since."""
    _detached[:] = [supervisor for supervisor in _detached if supervisor.poll() is None]


def _first_of_namespace(command: list[str]) -> subprocess.Popen[bytes]:
    """Starts a process that is number 1 of a new process namespace.

    The namespace is for the children of the thread that makes it; a thread of its own keeps this process's other
    children out of it.
    """
    started: list[subprocess.Popen[bytes]] = []
    failed: list[OSError] = []

    def start() -> None:
        try:
            system.unshare(system.CLONE_NEWPID)
            started.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    cwd="/",
                    env=_environment(),
                    bufsize=0,
                    start_new_session=True,  # Ctrl-C is for the command, which then takes the lab down
                )
            )
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    if failed:
        raise HostError(
            f"cannot make a process namespace: {failed[0]}", "run as root, or see `linerate lab probe`"
        )
    return started[0]


def _environment() -> dict[str, str]:
    """Ours, with module paths that stay right in another working directory."""
    paths = [os.path.abspath(path) for path in sys.path if path]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
