"""Compiled modules for a host: a slow one would spend most of its first start on compiling."""

from __future__ import annotations

import importlib.util
import py_compile
import struct
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath

from linerate.errors import InternalError

_HEADER = struct.Struct("<4sIII")
"""Magic number, flags, modification time and size of the source. Source: PEP 552 and `py_compile`."""
_BY_TIME = 0
_32_BITS = 0xFFFFFFFF


# `host hold`, which a study starts there through sudo, ends at once: its input is empty.
_LOADED = """\
import linerate.cluster.agent, linerate.cluster.worker, linerate.host, sys
if sys.platform == "linux": import linerate.host.linux.kernel
from linerate import cli
assert cli.main(["host", "hold"]) == 0
print(*{module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)}, sep="\\n")
"""


def loaded_there() -> frozenset[Path]:
    """The files of all modules that a load host loads when it starts or holds settings. Raises InternalError."""
    command = [sys.executable, "-P", "-c", _LOADED]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise InternalError(f"what a load host loads does not load here: {done.stderr}", "please report this")
    return frozenset(map(Path, done.stdout.splitlines()))


def place_of(module: str) -> str:
    """Where Python looks for what it has compiled from a module's file; both below the folder of packages."""
    path = PurePosixPath(module)
    return str(path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc")


def bytecode_of(source: Path, name: str) -> bytes | None:
    """What Python compiles from a file; None if that fails: some packages bring files that are no Python.

    `name` is the file's name in the traces of errors.
    """
    there = Path(importlib.util.cache_from_source(str(source)))
    try:
        found = there.read_bytes()
    except OSError:
        found = b""
    return found if _is_current(found, source) else _compiled(source, name)


def _is_current(found: bytes, source: Path) -> bool:
    if len(found) < _HEADER.size:
        return False
    state = source.stat()
    header = (importlib.util.MAGIC_NUMBER, _BY_TIME, int(state.st_mtime) & _32_BITS, state.st_size & _32_BITS)
    return _HEADER.unpack_from(found) == header


def _compiled(source: Path, name: str) -> bytes | None:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "made.pyc")
        try:
            py_compile.compile(
                str(source),
                cfile=str(made),
                dfile=name,
                doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP,
            )
        except (py_compile.PyCompileError, ValueError):
            return None
        return made.read_bytes()
