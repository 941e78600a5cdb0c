"""`make test-vm`: sets up what the tests with a virtual machine need, and runs them; `python -m tests.vm [WORDS]`.

WORDS go to pytest. The tests run in network, process and mount namespaces of their own: their interfaces, the virtual
machine and everything that they start end with them, also after Ctrl-C and `kill -9`. Where something is missing that
cannot be set up, the reason is printed and the exit code is 0 (under LINERATE_CI 1).
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from typing import NoReturn

from tests.support.need import IN_CI
from tests.vm import image, installation
from tests.vm.conftest import IN_NAMESPACES

PACKAGES = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "ip": "iproute2",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "unshare": "util-linux",
}
"""Programs and their Debian packages."""
_FOR_THE_IMAGE = ("mmdebstrap",)
_CONTAINED = ("unshare", "--net", "--mount-proc", "--pid", "--fork", "--kill-child")


def main(words: list[str]) -> NoReturn:
    """Ends with pytest's exit code."""
    reason = _reason() or _set_up()
    if reason:
        print(f"make test-vm: {'failed' if IN_CI else 'skipped'}: {reason}", file=sys.stderr)
        sys.exit(int(IN_CI))
    image.made()
    installation.made()
    tests = ("-m", "pytest", "-m", "vm", "tests/vm", "-v", "-rs", "--durations=0", *words)
    # This process becomes the one with whose end the namespaces end.
    os.execvpe(_CONTAINED[0], [*_CONTAINED, sys.executable, *tests], os.environ | {IN_NAMESPACES: "1"})


def _reason() -> str:
    """Why this machine cannot, even with all packages installed; empty if it can."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return (
            f"the virtual machine is Linux on x86_64, and this is {platform.system()} on {platform.machine()}"
        )
    if os.getuid() != 0:
        return "root is needed: for interfaces of a virtual machine, and to make its system (mmdebstrap)"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "there is no /dev/net/tun: the kernel's module tun is needed"
    return ""


def _set_up() -> str:
    """Installs what is missing, where apt is there. Gives what is still missing."""
    missing = _missing()
    if missing and shutil.which("apt-get"):
        install = "apt-get update -q && apt-get install -q -y --no-install-recommends " + " ".join(missing)
        title = f"installing {', '.join(missing)}"
        step = [str(image.ROOT / "packaging" / "step"), title, "sh", "-c", install]
        subprocess.run(step, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, check=False)
    if still := _missing():
        return f"not installed: {', '.join(still)} (names of Debian's packages)"
    return ""


def _missing() -> list[str]:
    needed = (name for name in PACKAGES if image.kept() is None or name not in _FOR_THE_IMAGE)
    return sorted({PACKAGES[name] for name in needed if not shutil.which(name)})


if __name__ == "__main__":
    main(sys.argv[1:])
