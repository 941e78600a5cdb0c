"""The kernel fabric: switches are namespaces with bridges, links are veth pairs, lines are HTB at their egress.

Open `fabric` first. It gives rate, MTU, buffers, VLANs, shares and unplugged cables, at next to no cost in time to
build or in CPU; what it has not (delay, loss, flow control and so on) the user fabric has. `shape` makes a line of an
interface; `receive` sees to it that frames stay frames and that receiving them is charged to whom they are for.

A VLAN is a bridge of its own in every switch, so that no tags are needed. Where several share a port or a trunk, each
has a veth pair, and what they send goes first through one interface that models the wire: its line has a class for
each of them, by whose shares the switch's schedule is kept.

A veth pair carries all that the sender's stack gives it, super-packets of 64 KiB included: a shaper would count too
few headers and a buffer would drop 45 frames at a time. So segmentation offload is off at every end, and merging at
the receiver is limited to one frame. Frames are shaped at the switch's egress, where they are frames; the shaper at a
node's own egress is there for its back pressure.
"""

from linerate.lab.kernel.fabric import KernelFabric

__all__ = ["KernelFabric"]
