"""Starts a keeper and ends it: the only place where a command and its keeper are parent and child."""

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

_PEER = rpc.Peer("the lab's keeper", late_hint="try again", gone_hint="see its message above")

_detached: list[subprocess.Popen[bytes]] = []
"""Keepers that this process has started and let go: kept here, else Python would miss their end."""


def start_keeper(
    name: str, topology: Topology, *, fabric: str, needs: Sequence[str], detached: bool
) -> subprocess.Popen[bytes]:
    """Starts the keeper of a lab and waits until the lab is up.

    An attached keeper ends when the pipe to its standard input closes, so also when this process is killed. Raises the
    error that the keeper met, and HostError when it died of it; then it has gone.
    """
    order = {
        "name": name,
        "topology": topology.model_dump_json(),
        "fabric": fabric,
        "needs": list(needs),
        "attached": not detached,
    }
    keeper = _first_of_namespace([sys.executable, "-P", "-m", "linerate.lab.keeper"])
    try:
        _FirstRequest(keeper).ask("up", order)
        if detached:
            _let_go(keeper)
    except BaseException:
        keeper.kill()
        stop_keeper(keeper)
        raise
    return keeper


class _FirstRequest(rpc.Client):
    """It goes over the pipes of the process, whose standard error is that of this command."""

    def __init__(self, keeper: subprocess.Popen[bytes]) -> None:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        fds = keeper.stdout.fileno(), keeper.stdin.fileno()
        super().__init__(_PEER, *fds, timeout_s=UP_TIMEOUT_S)
        self._keeper = keeper

    def ended(self) -> HostError:
        self._keeper.kill()
        status = self._keeper.wait()
        return HostError(f"{_PEER.name} ended with status {status} before the lab was up", _PEER.gone_hint)


def stop_keeper(keeper: subprocess.Popen[bytes]) -> None:
    """Waits until a keeper that was told to go has gone, with everything in its namespaces."""
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    keeper.stdin.close()
    try:
        keeper.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        keeper.kill()
        keeper.wait()
        raise InternalError("the lab's keeper did not end when told and was killed") from error
    finally:
        keeper.stdout.close()


def _let_go(keeper: subprocess.Popen[bytes]) -> None:
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    keeper.stdin.close()
    keeper.stdout.close()
    _detached.append(keeper)


def reap_detached() -> None:
    """Takes note of the keepers that have ended since."""
    _detached[:] = [keeper for keeper in _detached if keeper.poll() is None]


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
