"""An array that several threads of its process look at: the control API, the log, the record."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.conftest import TIMEOUT_S, environment

LOOKS = """
import sys, threading
from linerate import _core
from linerate.array import parse_array_text

text = '''
portals = ["127.0.0.1:0"]
[[targets]]
name = "iqn.2026-11.lab.linerate:threads"
[[targets.volumes]]
lun = 0
name = "v0"
kind = "memory"
size = "1m"
'''
sys.setswitchinterval(1e-6)
array = _core.Array.start(parse_array_text(text).seam_json())

def look():
    for _ in range(500):
        array.stats()
        array.portals

threads = [threading.Thread(target=look) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
array.stop()
print("looked", array.stats(), array.portals)
"""


def test_threads_that_look_at_an_array_do_not_block_each_other() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOKS],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "looked {} []\n"), done.stderr
