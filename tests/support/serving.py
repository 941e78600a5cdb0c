"""Arrays in processes of their own, as `linerate array serve` starts them."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.cli.conftest import COMMAND, TIMEOUT_S, Done, environment, linerate


def free_ports(count: int) -> list[int]:
    """Free ports of the loopback."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in held]


def serve(file: Path, *more: str, enter: tuple[str, ...] = ()) -> tuple[subprocess.Popen[str], str]:
    """An array in a process of its own, once it serves, and its first portal. `enter` puts it somewhere else."""
    command = [*enter, *COMMAND, "array", "serve", str(file), "--json", *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, env=environment(), **pipes)
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return process, json.loads(line)["portals"][0]


@contextmanager
def serving(
    folder: Path, text: str, name: str = "lab", *, more: tuple[str, ...] = (), enter: tuple[str, ...] = ()
) -> Iterator[str]:
    """An array that serves what the text says; gives its first portal."""
    file = folder / f"{name}.toml"
    file.write_text(text, "ascii")
    process, portal = serve(file, *more, enter=enter)
    with process:
        try:
            yield portal
        finally:
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0, said


def fine(*words: str | Path) -> Done:
    """What a command said that must succeed."""
    done = linerate(*words)
    assert done.returncode == 0, done.stderr
    return done
