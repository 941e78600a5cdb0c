"""Arrays in processes of their own, as `linerate array serve` starts them."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.conftest import COMMAND, TIMEOUT_S, Done, environment, linerate


@contextmanager
def serving(folder: Path, text: str, name: str = "lab") -> Iterator[str]:
    """An array that serves what the text says; gives its first portal."""
    file = folder / f"{name}.toml"
    file.write_text(text, "ascii")
    command = [*COMMAND, "array", "serve", str(file), "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment(), **pipes) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        try:
            yield json.loads(line)["portals"][0]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_S) == 0, process.stderr.read()


def fine(*words: str | Path) -> Done:
    """What a command said that must succeed."""
    done = linerate(*words)
    assert done.returncode == 0, done.stderr
    return done
