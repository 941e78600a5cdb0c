"""The user fabric as the supervisor sees it: the process that carries frames, and what a topology is to it.

Open `fabric` first. `mapping` turns the SAN's words into those of `linerate.lab.fabric`, where switches, links and
adapters are described in the fabric's own units.
"""

from linerate.lab.user.fabric import UserFabric

__all__ = ["UserFabric"]
