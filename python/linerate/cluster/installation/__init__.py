"""Linerate on load hosts: brought there over SSH, checked and removed, without root and without internet there.

Open `visit` first. `closure` finds the files of Linerate and of everything that it needs, as they are installed here;
`pack` makes an archive of them, with what Python has compiled (`bytecode`). `there` is the program that is sent to the
host and unpacks it into a folder of its own; it needs only Python. `fit` says whether the host can use what runs here,
`check` tries all that a run needs.
"""

from linerate.cluster.installation.check import HostFinding, check
from linerate.cluster.installation.pack import Bundle, pack
from linerate.cluster.installation.visit import HostDone, Visitor, install, remove

__all__ = ["Bundle", "HostDone", "HostFinding", "Visitor", "check", "install", "pack", "remove"]
