"""Where the steps of a study run.

Open `base` first: it says what a laboratory must be able to do. `virtual` brings topologies up on this machine, or has
them computed (`modelled`); `hosts` is for hosts that exist. Both hold settings through `settings` (who applies
a setting) and `linerate.host`, those of a host elsewhere through `remote`, and carry runs out through `measure`.
"""

from linerate.study.laboratory.base import Laboratory, Measured, SetUp

__all__ = ["Laboratory", "Measured", "SetUp"]
