"""The program that `linerate hosts` sends to a host. It needs the standard library only, and its text is read by Python
3.6 too, so that an old Python can say how old it is. It runs from its text: `python -I -c TEXT serve|install FOLDER`.

`serve` answers JSON lines in the manner of `linerate.rpc`. `install` unpacks an archive from standard input into a new
folder `partial-...`, tries it, and only then gives it the name of its version: what was interrupted has no name that
anything would use. Every folder that it makes has a marker in it, and no folder without one is ever removed.
"""

import gzip
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib

MARKER = "linerate-hosts.json"
SCHEMA = "linerate.hosts/1"
PARTIAL = "partial-"
_LOCK = ".lock"
_TRY = "import linerate.cluster.worker; from linerate import _core; print(_core.__version__)"
_TRY_TIMEOUT_S = 120
_NETWORK_TIMEOUT_S = 5
_VERSION = r"[0-9A-Za-z][0-9A-Za-z.+-]*"


class VisitError(Exception):
    """Why something cannot be done here, and what to do about it."""

    def __init__(self, message: str, hint: str, blame: str = "host") -> None:
        super().__init__(message)
        self.answer = {"error": message, "hint": hint, "blame": blame}


class Root:
    """The folder that holds installations, one per version."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.abspath(os.path.expanduser(folder))

    def of(self, version: str) -> str:
        """The folder of a version."""
        if not re.fullmatch(_VERSION, version):
            raise VisitError(f"{version!r} is no version", "this is a defect of Linerate", "us")
        return os.path.join(self.path, version)

    def locked(self) -> int:
        """Makes the folder, and keeps others out until the descriptor is closed."""
        import fcntl

        try:
            os.makedirs(self.path, exist_ok=True)
            held = os.open(os.path.join(self.path, _LOCK), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _of_system(error, self.path) from error
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(held)
            raise VisitError(
                f"{self.path} is in use by another `linerate hosts`", "wait for its end, then try again"
            ) from error
        return held

    def sweep(self) -> None:
        """Removes what interrupted calls have left. The lock is held."""
        for name in os.listdir(self.path):
            path = os.path.join(self.path, name)
            if name.startswith(PARTIAL) and marker_of(path) is not None:
                shutil.rmtree(path, ignore_errors=True)

    def installed(self) -> "list[str]":
        """Versions that are here, complete."""
        try:
            names = os.listdir(self.path)
        except OSError:
            return []
        return sorted(
            name
            for name in names
            if not name.startswith(PARTIAL) and marker_of(self.of_name(name)) is not None
        )

    def of_name(self, name: str) -> str:
        """The path of an entry."""
        return os.path.join(self.path, name)


def marker_of(path: str) -> "dict[str, object] | None":
    """What a folder of ours says of itself; None for every other."""
    if os.path.islink(path):
        return None
    try:
        with open(os.path.join(path, MARKER), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("schema") == SCHEMA else None


def facts(folder: str, version: str) -> "dict[str, object]":
    """What the host is, and what of Linerate it has."""
    root = Root(folder)
    return {
        "python": list(sys.version_info[:3]),
        "executable": sys.executable,
        "cache_tag": sys.implementation.cache_tag,
        "system": platform.system(),
        "machine": platform.machine(),
        "libc": platform.libc_ver(sys.executable)[0],
        "user": _user(),
        "root": os.getuid() == 0,
        "folder": root.path,
        "free_bytes": _free_bytes(root.path),
        "spool_folder": tempfile.gettempdir(),
        "spool_free_bytes": _free_bytes(tempfile.gettempdir()),
        "installed": marker_of(root.of(version)),
        "versions": root.installed(),
    }


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _free_bytes(path: str) -> int:
    """On the file system that would hold the path."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def tried(path: str) -> "dict[str, object]":
    """Starts the Python of an installation and loads what a worker loads."""
    began = time.time()
    try:
        done = subprocess.run(
            [os.path.join(path, "bin", "python"), "-I", "-c", _TRY],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRY_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return {"version": "", "error": str(error)}
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    version = done.stdout.decode("utf-8", "replace").strip()
    failure = "" if done.returncode == 0 else (said[-1] if said else f"exit code {done.returncode}")
    return {"version": version if not failure else "", "error": failure, "seconds": time.time() - began}


def install(folder: str, version: str) -> "dict[str, object]":
    """Unpacks the archive on standard input; gives the path of the Python that has it."""
    root = Root(folder)
    final = root.of(version)
    held = root.locked()
    new = ""
    try:
        if os.path.lexists(final) and marker_of(final) is None:
            raise VisitError(
                f"{final} is there and is not ours", "move it away, or name another folder: --folder"
            )
        root.sweep()
        new = tempfile.mkdtemp(prefix=PARTIAL, dir=root.path)
        os.chmod(new, 0o755)
        _write_marker(new, {"schema": SCHEMA, "state": "partial"})
        packages = _environment(new)
        os.replace(_unpack(packages), os.path.join(new, MARKER))
        result = tried(new)
        if result["version"] != version:
            what = result["error"] or f"it is version {result['version']}"
            raise VisitError(
                f"what was brought there does not start: {what}",
                "its system libraries may be older than those here: install Linerate there by pip (docs/cluster.md)",
            )
        os.sync()
        if os.path.lexists(final):
            os.rename(final, tempfile.mkdtemp(prefix=PARTIAL, dir=root.path))
        os.rename(new, final)
        root.sweep()
    except OSError as error:
        raise _of_system(error, root.path) from error
    finally:
        if new:
            shutil.rmtree(new, ignore_errors=True)
        os.close(held)
    return {"path": final, "python": os.path.join(final, "bin", "python"), "seconds": result["seconds"]}


def _environment(path: str) -> str:
    """An empty environment of this Python; gives its folder of packages."""
    try:
        import venv
    except ImportError as error:
        raise VisitError(
            "its Python has no module venv", "install it there, on Debian: python3-venv"
        ) from error
    venv.EnvBuilder(with_pip=False, symlinks=True).create(path)
    return os.path.join(path, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")


def _unpack(packages: str) -> str:
    """Gives the path of the marker, the last file of the archive. Raises VisitError for one that was cut short."""
    count = 0
    cut = VisitError("the archive has not arrived whole", "the connection was interrupted: try again")
    options = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    try:
        # gzip finds an archive that was cut short; tarfile alone takes it for the end.
        with gzip.GzipFile(fileobj=sys.stdin.buffer) as plain:
            with tarfile.open(fileobj=plain, mode="r|") as archive:
                for member in archive:
                    archive.extract(member, packages, **options)  # type: ignore[arg-type]
                    count += 1
            while plain.read(1 << 20):
                pass
    except (EOFError, tarfile.TarError, gzip.BadGzipFile, zlib.error) as error:
        raise cut from error
    marker = marker_of(packages)
    if marker is None or marker.get("files") != count - 1:
        raise cut
    return os.path.join(packages, MARKER)


def _write_marker(path: str, content: "dict[str, object]") -> None:
    with open(os.path.join(path, MARKER), "w", encoding="utf-8") as file:
        json.dump(content, file)


def remove(folder: str, versions: "list[str] | None") -> "dict[str, object]":
    """Removes installations; all of this folder if no version is named."""
    root = Root(folder)
    if not os.path.isdir(root.path):
        return {"removed": []}
    held = root.locked()
    removed = []
    try:
        for version in root.installed() if versions is None else versions:
            path = root.of(version)
            if not os.path.lexists(path):
                continue
            if marker_of(path) is None:
                raise VisitError(f"{path} is not an installation of `linerate hosts`", "remove it by hand")
            away = tempfile.mkdtemp(prefix=PARTIAL, dir=root.path)  # from here on it is not used any more
            os.rename(path, away)
            shutil.rmtree(away)
            removed.append(path)
        root.sweep()
        if os.listdir(root.path) == [_LOCK]:
            os.unlink(os.path.join(root.path, _LOCK))
            os.rmdir(root.path)
    except OSError as error:
        raise _of_system(error, root.path) from error
    finally:
        os.close(held)
    return {"removed": removed}


def sudo() -> str:
    """What sudo would allow without a password: `settings`, `nothing`, or why it cannot say."""
    try:
        done = subprocess.run(
            ["sudo", "-n", "-l"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_NETWORK_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return getattr(error, "strerror", None) or str(error)
    said = done.stdout.decode("utf-8", "replace")
    allowed = "linerate.cli host hold" in said or re.search(r"NOPASSWD: ALL\s*$", said, re.MULTILINE)
    return "settings" if done.returncode == 0 and allowed else "nothing"


class ControlNetwork:
    """Tries both directions of the control network."""

    def __init__(self) -> None:
        self._server = None  # type: socket.socket | None

    def reach(self, address: str, port: int, word: str) -> "dict[str, object]":
        """Connects and says the word; gives the address that this host has on the way."""
        try:
            with socket.create_connection((address, port), timeout=_NETWORK_TIMEOUT_S) as end:
                end.sendall(word.encode("ascii"))
                return {"address": end.getsockname()[0], "error": ""}
        except OSError as error:
            return {"address": "", "error": error.strerror or str(error)}

    def listen(self, address: str, first: int, last: int) -> "dict[str, object]":
        """Listens on the first free port of a range (0: any)."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        why = ""
        for port in range(first, last + 1):
            server = socket.socket(family)
            try:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind((address, port))
                server.listen(1)
            except OSError as error:
                server.close()
                why = error.strerror or str(error)
                continue
            self._server = server
            return {"port": server.getsockname()[1], "error": ""}
        return {"port": 0, "error": why}


def _of_system(error: OSError, path: str) -> VisitError:
    import errno

    what = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return VisitError(f"no space left for {path}", "make room there, or name another folder: --folder")
    return VisitError(
        f"{error.filename or path}: {what}", "may this user write there? --folder names another"
    )


def serve(folder: str) -> None:
    """Answers questions until standard input ends."""
    network = ControlNetwork()
    methods = {
        "facts": lambda version: facts(folder, version),
        "tried": lambda version: tried(Root(folder).of(version)),
        "clock_ns": lambda: int(time.time() * 1e9),
        "remove": lambda versions: remove(folder, versions),
        "sudo": sudo,
        "reach": network.reach,
        "listen": network.listen,
    }
    for line in iter(sys.stdin.readline, ""):
        asked = json.loads(line)
        try:
            answer = {"result": methods[asked["method"]](**asked["params"])}  # type: ignore[operator]
        except VisitError as refused:
            answer = refused.answer
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}", "hint": "", "blame": "us"}
        say(asked["id"], answer)


def say(number: int, answer: "dict[str, object]") -> None:
    """One line to standard output."""
    sys.stdout.write(json.dumps(dict(answer, id=number)) + "\n")
    sys.stdout.flush()


def main(words: "list[str]") -> None:
    """`serve FOLDER`, or `install FOLDER VERSION`."""
    if words[0] == "serve":
        serve(words[1])
        return
    try:
        say(1, {"result": install(words[1], words[2])})
    except VisitError as refused:
        say(1, dict(refused.answer))


if __name__ == "__main__":
    main(sys.argv[1:])
