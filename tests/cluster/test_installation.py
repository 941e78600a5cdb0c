"""`linerate hosts`: what is brought to a host, what a failure leaves there, what is never touched."""

from __future__ import annotations

import dataclasses
import fcntl
import importlib.util
import io
import json
import os
import runpy
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from linerate import _core
from linerate.cluster import Endpoint, ssh_endpoints
from linerate.cluster.installation import Bundle, HostDone, check, install, pack, remove
from linerate.cluster.installation.bytecode import bytecode_of, loaded_there, place_of
from linerate.cluster.installation.closure import STAYS_HERE, Packed, files_of, needed
from linerate.cluster.installation.fit import check_fit
from linerate.errors import HostError, LinerateError, UserError

from tests.cluster import fake_ssh
from tests.support.need import missing

BELOW_HOME = ".local/share/linerate-hosts"
WORKER = "import sys\nif __name__ == '__main__':\n    print('WORDS', sys.prefix, *sys.argv[1:])\n"
Make = Callable[..., Bundle]


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", fake_ssh.search_path(tmp_path))
    return fake_ssh.put(tmp_path)


@pytest.fixture
def bundle(tmp_path: Path) -> Iterator[Make]:
    """Makes bundles of a Linerate of a few lines."""
    stack = ExitStack()

    def make(worker: str = WORKER, version: str = _core.__version__) -> Bundle:
        folder = tmp_path / "packages" / "linerate"
        (folder / "cluster").mkdir(parents=True, exist_ok=True)
        texts = {
            "__init__.py": "",
            "_core.py": f"__version__ = {version!r}",
            "cluster/__init__.py": "",
            "cluster/worker.py": worker,
            "cluster/data.bin": "",
        }
        for name, text in texts.items():
            (folder / name).write_text(text)
        (folder / "cluster" / "data.bin").write_bytes(os.urandom(100_000))
        files = [Packed(f"linerate/{name}", folder / name) for name in texts]
        return stack.enter_context(pack(files, _core.__version__))

    with stack:
        yield make


def _one(done: list[HostDone]) -> str:
    (one,) = done
    if one.error is not None:
        raise one.error
    return one.text


def _started(place: Endpoint) -> str:
    """What a worker of it would say."""
    command = place.command("linerate.cluster.worker", "a b")
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return next((line for line in done.stdout.splitlines() if line.startswith("WORDS")), done.stderr)


@pytest.mark.long
def test_the_closure_is_what_linerate_needs_and_no_more() -> None:
    found = needed()
    assert {"linerate-san", "distributed", "dask", "tornado", "cryptography"} <= set(found)
    assert not {"pytest", "mypy", "ruff", "pip", *STAYS_HERE} & set(found)
    files = [one.name for one in files_of(found)]
    assert len(files) == len(set(files))
    assert {"linerate/cluster/worker.py", "linerate/_core.abi3.so", "distributed/worker.py"} <= set(files)
    assert not [
        name for name in files if name.endswith(".pyc") or "/tests/" in name or name.startswith((".", "/"))
    ]


_WITHOUT = """\
import importlib, sys
from importlib.metadata import packages_distributions
from linerate.cluster.installation import closure
there = set(closure.needed())
closure.STAYS_HERE = frozenset()
stays = set(closure.needed()) - there
left_out = {name for name, of in packages_distributions().items() if set(map(closure._normal, of)) & stays}
for name in [one for one in sys.modules if one.partition(".")[0] in {*left_out, "linerate"}]:
    del sys.modules[name]
sys.modules.update(dict.fromkeys(left_out))
import linerate.cluster.agent, linerate.cluster.worker, linerate.cli.host.verbs
print(*sorted(left_out))
"""


@pytest.mark.long
def test_what_a_host_runs_does_without_the_packages_that_stay_here() -> None:
    command = [sys.executable, "-c", _WITHOUT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"altair", "scipy", "vl_convert", "xlsxwriter", "pyDOE3", "numpy", "polars", "starlette"} <= set(
        done.stdout.split()
    )


def test_what_python_compiles_is_brought_and_belongs_to_its_source(homes: Path, bundle: Make) -> None:
    assert "installed" in _one(install(ssh_endpoints(["load1"]), bundle()))
    (there,) = homes.glob(f"load1/{BELOW_HOME}/*/lib/python*/site-packages")
    for name in ("linerate/__init__.py", "linerate/cluster/worker.py"):
        header = (there / place_of(name)).read_bytes()[:16]
        state = (there / name).stat()
        assert header[:8] == importlib.util.MAGIC_NUMBER + bytes(4)
        assert struct.unpack("<II", header[8:]) == (int(state.st_mtime), state.st_size), (
            "or it is compiled again"
        )


@pytest.mark.skipif(sys.platform != "linux", reason="settings are held on Linux")
def test_what_a_study_starts_on_a_host_is_brought_compiled() -> None:
    """A worker, and `host hold` with the kernel's interfaces: each start would compile them where root reads only."""
    found = {path.as_posix() for path in loaded_there()}
    for name in (
        "linerate/cluster/worker.py",
        "linerate/cli/app.py",
        "linerate/cli/host/verbs.py",
        "linerate/host/linux/kernel.py",
        "linerate/host/linux/ethtool.py",
        "pyroute2/__init__.py",
        "typer/main.py",
    ):
        assert any(path.endswith(f"/{name}") for path in found), name


@pytest.mark.parametrize("found", [b"", b"short", b"x" * 100])
def test_only_what_belongs_to_the_source_is_taken_for_compiled(tmp_path: Path, found: bytes) -> None:
    source = tmp_path / "one.py"
    source.write_text("VALUE = 7\n")
    place = tmp_path / place_of("one.py")
    place.parent.mkdir()
    place.write_bytes(found)
    made = bytecode_of(source, "one.py")
    assert made is not None
    (tmp_path / "made.pyc").write_bytes(made)
    assert runpy.run_path(str(tmp_path / "made.pyc"))["VALUE"] == 7
    place.write_bytes(made[:16] + b"as it is")
    assert bytecode_of(source, "one.py") == made[:16] + b"as it is"
    source.write_text("VALUE = 71\n")
    assert bytecode_of(source, "one.py") != made[:16] + b"as it is"
    source.write_text("VALUE =\n")
    assert bytecode_of(source, "one.py") is None


@pytest.mark.long
def test_it_is_brought_found_and_removed(homes: Path, bundle: Make) -> None:
    places = ssh_endpoints(["load1", "tester@load2"])
    done = install(places, bundle())
    for name, one in zip(("load1", "load2"), done, strict=True):
        path = homes / name / BELOW_HOME / _core.__version__
        assert one == HostDone(name, f"{_core.__version__} installed, {path}/bin/python")
    for place in places:
        path = homes / place.name / BELOW_HOME / _core.__version__
        assert _started(place) == f"WORDS {path} a b", "--hosts finds it without a name"
    path = homes / "load1" / BELOW_HOME
    assert _one(remove(places[:1])) == f"removed {path / _core.__version__}"
    assert not path.exists()
    assert "WORDS" not in _started(places[0])
    assert (homes / "load2" / BELOW_HOME / _core.__version__).exists()


@pytest.mark.long
def test_the_same_files_are_sent_once_and_others_replace_them(homes: Path, bundle: Make) -> None:
    places = ssh_endpoints(["load1"])
    first = bundle()
    _one(install(places, first))
    assert "is there already" in _one(install(places, first))
    assert "installed" in _one(install(places, first, again=True))
    _one(install(places, bundle(WORKER.replace("sys.prefix", "'second'"))))
    assert _started(places[0]) == "WORDS second a b"
    assert os.listdir(homes / "load1" / BELOW_HOME) in (
        [".lock", _core.__version__],
        [_core.__version__, ".lock"],
    )


def test_a_folder_of_the_users_own_choice(homes: Path, bundle: Make) -> None:
    places = ssh_endpoints(["load1"])
    python = homes / "load1" / "data" / "lr" / _core.__version__ / "bin" / "python"
    assert _one(install(places, bundle(), "~/data/lr")).endswith(f", {python}")
    (named,) = ssh_endpoints(["load1"], str(python))
    assert _started(named).startswith("WORDS")
    assert "removed" in _one(remove(places, "~/data/lr"))


@pytest.mark.parametrize(
    ("host", "said", "hint"),
    [
        ("away", "Connection timed out", "is it up"),
        ("stranger", "Host key verification failed", "compare its fingerprint"),
        ("denied", "Permission denied", "ssh-copy-id"),
        ("bare", "no python3 there", "--python"),
    ],
)
def test_a_host_that_cannot_be_reached_is_named_with_the_way_out(
    homes: Path, bundle: Make, host: str, said: str, hint: str
) -> None:
    away, there = install(ssh_endpoints([host, "load1"]), bundle())
    assert there.error is None, "the other host has it"
    assert isinstance(away.error, HostError)
    assert host in away.error.message
    assert said in away.error.message
    assert hint in away.error.hint
    (line,) = check(ssh_endpoints([host])[0], "digest")
    assert (line.name, line.state) == ("SSH", "fails")


FACTS: Mapping[str, Any] = {
    "python": list(sys.version_info[:3]),
    "executable": "/usr/bin/python3",
    "cache_tag": sys.implementation.cache_tag,
    "system": "Linux",
    "machine": os.uname().machine,
    "libc": "glibc",
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"python": [3, 9, 2]}, "host h1: its Python .* is 3.9.2; Linerate needs 3.11 or later"),
        ({"python": [3, 99, 0]}, "host h1 has Python 3.99.0 .*, and Linerate runs on 3"),
        ({"cache_tag": "pypy311"}, "host h1 has Python"),
        ({"machine": "riscv64"}, "host h1 is Linux on riscv64, this machine Linux on"),
        ({"system": "FreeBSD"}, "host h1 is FreeBSD on"),
        ({"libc": ""}, "host h1 has the C library of another kind, this machine glibc"),
    ],
)
def test_what_would_not_run_there_is_not_sent(change: Mapping[str, Any], message: str) -> None:
    check_fit("h1", FACTS)
    with pytest.raises(HostError, match=message) as caught:
        check_fit("h1", {**FACTS, **change})
    assert caught.value.hint


def test_another_version_than_was_announced_is_not_kept(homes: Path, bundle: Make) -> None:
    with pytest.raises(HostError, match=r"does not start: it is version 0\.0\.9"):
        _one(install(ssh_endpoints(["load1"]), bundle(version="0.0.9")))
    assert os.listdir(homes / "load1" / BELOW_HOME) == [".lock"]


def test_packages_that_do_not_load_there_are_not_kept(homes: Path, bundle: Make) -> None:
    broken = bundle("raise ImportError('version `GLIBC_2.99` not found')")
    with pytest.raises(HostError, match=r"GLIBC_2\.99") as caught:
        _one(install(ssh_endpoints(["load1"]), broken))
    assert "by pip" in caught.value.hint
    assert os.listdir(homes / "load1" / BELOW_HOME) == [".lock"]


def test_an_interrupted_installation_is_never_used(homes: Path, bundle: Make) -> None:
    """The connection carries 3 kB, then ends."""
    made = bundle()
    assert made.packed_bytes > 50_000
    (place,) = ssh_endpoints(["cut"])
    with pytest.raises(HostError, match="host cut: the archive has not arrived whole"):
        _one(install([place], made))
    assert os.listdir(homes / "cut" / BELOW_HOME) == [".lock"]
    assert "WORDS" not in _started(place)


def test_a_cut_between_two_files_is_noticed(homes: Path, bundle: Make) -> None:
    """Compressed streams can end well and be short: as of an archive that was made while the disk here filled."""
    import gzip
    import tarfile

    made = bundle()
    made.file.seek(0)
    short = io.BytesIO()
    with (
        tarfile.open(fileobj=made.file, mode="r:gz") as whole,
        gzip.GzipFile(fileobj=short, mode="wb") as squeezed,
        tarfile.open(fileobj=squeezed, mode="w|") as cut,
    ):
        for member in whole.getmembers()[:-2]:
            cut.addfile(member, whole.extractfile(member))
    made.file.seek(0)
    made.file.truncate()
    made.file.write(short.getvalue())
    made.file.flush()
    with pytest.raises(HostError, match="has not arrived whole"):
        _one(install(ssh_endpoints(["load1"]), made))


def test_what_a_killed_installation_left_is_swept_by_the_next(homes: Path, bundle: Make) -> None:
    root = homes / "load1" / BELOW_HOME
    for name, marker in (("partial-dead", '{"schema": "linerate.hosts/1"}'), ("partial-of-the-user", None)):
        (root / name).mkdir(parents=True)
        (root / name / "file").write_text("x")
        if marker:
            (root / name / "linerate-hosts.json").write_text(marker)
    _one(install(ssh_endpoints(["load1"]), bundle()))
    assert set(os.listdir(root)) == {".lock", _core.__version__, "partial-of-the-user"}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["folder", "file", "link to an installation"])
def test_what_is_not_ours_is_never_removed(homes: Path, bundle: Make, kind: str) -> None:
    places = ssh_endpoints(["load1"])
    root = homes / "load1" / BELOW_HOME
    root.mkdir(parents=True)
    there = root / _core.__version__
    if kind == "folder":
        there.mkdir()
        (there / "precious").write_text("x")
    elif kind == "file":
        there.write_text("x")
    else:
        _one(install(places, bundle(), "~/elsewhere"))
        there.symlink_to(homes / "load1" / "elsewhere" / _core.__version__)
    with pytest.raises(HostError, match="is there and is not ours"):
        _one(install(places, bundle()))
    with pytest.raises(HostError, match="is not an installation of `linerate hosts`"):
        _one(remove(places))
    assert "nothing of" in _one(remove(places, every=True))
    assert there.is_symlink() or (there.read_text() if kind == "file" else (there / "precious").read_text())
    assert kind != "link to an installation" or (there / "bin" / "python").exists()


def test_two_at_once_are_kept_apart(homes: Path, bundle: Make) -> None:
    root = homes / "load1" / BELOW_HOME
    root.mkdir(parents=True)
    with (root / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(HostError, match="is in use by another `linerate hosts`"):
            _one(install(ssh_endpoints(["load1"]), bundle()))


def test_a_full_disk_is_told_before_and_while_it_fills(homes: Path, bundle: Make) -> None:
    tried = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"],
        capture_output=True,
        check=False,
    )
    if tried.returncode:
        missing("no right to mount a small disk")
    places = ssh_endpoints(["small"])
    large = dataclasses.replace(bundle(), unpacked_bytes=5 << 30)
    with pytest.raises(HostError, match=r"host small: [01] MB are free for .*, and Linerate takes 5,906 MB"):
        _one(install(places, large))
    filling = bundle(WORKER + "# " + "x" * 600_000)
    with pytest.raises(HostError, match="host small: no space left for"):
        _one(install(places, dataclasses.replace(filling, unpacked_bytes=0)))


@pytest.mark.long
def test_the_lines_of_a_check(homes: Path, bundle: Make) -> None:
    (place,) = ssh_endpoints(["load1"])
    made = bundle()
    before = {line.name: line for line in check(place, made.digest, address="127.0.0.1")}
    assert [line.name for line in before.values() if line.state == "fails"] == ["Linerate"]
    assert "`linerate hosts install` brings it" in before["Linerate"].text
    _one(install([place], made))
    after = {line.name: line for line in check(place, made.digest, address="127.0.0.1")}
    assert list(after) == ["SSH", "Python", "Linerate", "clock", "space", "sudo", "ports"]
    assert not [line for line in after.values() if line.state == "fails"]
    other = {line.name: line for line in check(place, "another digest", address="192.0.2.1")}
    assert "not the same files as here" in other["Linerate"].text
    assert "cannot listen on 192.0.2.1" in other["ports"].text


def test_an_option_that_names_no_place_is_refused() -> None:
    from linerate.cli.hosts.verbs import _folder

    with pytest.raises(UserError, match="relative to what"):
        _folder("data/lr")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_whole_of_linerate_is_brought_and_loads(homes: Path, tmp_path: Path) -> None:
    """As a user does it: install, check, run without naming a Python, remove."""

    def linerate(*words: str) -> list[dict[str, Any]]:
        command = [sys.executable, "-m", "linerate.cli", *words, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr + done.stdout
        return [json.loads(line) for line in done.stdout.splitlines()]

    # One host: 200 MB are packed, sent and unpacked. The other tests install on several, with a few lines.
    hosts = ["load1"]
    assert [one["host"] for one in linerate("hosts", "install", *hosts)] == hosts
    for one in linerate("hosts", "check", *hosts, "--hosts-address", "127.0.0.1"):
        assert {finding["state"] for finding in one["findings"]} <= {"ok", "note"}, one
    workload = "warm_up = 0\nelapsed = 1\nvolume = [{ name = 'v' }]\nstream = [{ name = 's', rate = 100 }]\n"
    (tmp_path / "load.toml").write_text(workload)
    reach = ["--hosts", ",".join(hosts), "--hosts-address", "127.0.0.1", "--hosts-ports", "23200-23260"]
    linerate("run", "load.toml", "--target", "null:1g", *reach, "--output", "run", "--no-report")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_bytes())
    assert manifest["state"] == "complete"
    linerate("hosts", "remove", *hosts)
    assert not list(homes.glob("*/.local/share/linerate-hosts"))


def test_errors_of_a_host_say_whose_fault_they_are(homes: Path, bundle: Make) -> None:
    (done,) = install(ssh_endpoints(["load1"], "/nonexistent/python"), bundle())
    assert isinstance(done.error, LinerateError)
    assert done.error.blame == "host"
    assert "/nonexistent/python" in done.error.message
