"""An `ssh` that runs its words in a shell of this machine, with a home folder elsewhere; some hosts fail."""

from __future__ import annotations

import os
from pathlib import Path

# As the real one: the words after the host make one line for the remote user's shell.
_SSH = """\
#!/bin/sh
while [ "$1" != "--" ]; do shift; done
shift
host=$1
shift
case "$host" in
*away*) echo "ssh: connect to host $host port 22: Connection timed out" >&2; exit 255 ;;
*stranger*) echo "Host key verification failed." >&2; exit 255 ;;
*denied*) echo "$host: Permission denied (publickey)." >&2; exit 255 ;;
*bare*) PATH=HOMES/../bare; export PATH ;;
esac
unset PYTHONPATH PYTHONPYCACHEPREFIX PYTHONDONTWRITEBYTECODE
HOME=HOMES/${host#*@}
export HOME
/bin/mkdir -p "$HOME"
echo "Welcome to $host"
case "$host $*" in
cut\\ *"' install "*) /usr/bin/head -c 3000 | /bin/sh -c "exec $*" ;;
small\\ *) exec /usr/bin/unshare --map-root-user --mount /bin/sh -c \\
    '/bin/mount -t tmpfs -o size=512k none "$HOME" && exec /bin/sh -c "$1"' sh "exec $*" ;;
*) exec /bin/sh -c "exec $*" ;;
esac
"""


def put(folder: Path) -> Path:
    """Writes it into `folder/bin`; gives the folder of its hosts' home folders."""
    (folder / "bin").mkdir()
    (folder / "bare").mkdir()
    (folder / "bare" / "sh").symlink_to("/bin/sh")
    ssh = folder / "bin" / "ssh"
    ssh.write_text(_SSH.replace("HOMES", str(folder / "homes")), "ascii")
    ssh.chmod(0o755)
    return folder / "homes"


def search_path(folder: Path) -> str:
    """PATH with this `ssh` first."""
    return f"{folder / 'bin'}:{os.environ['PATH']}"
