"""What a port leads to, as far as its description and its commands say."""

from __future__ import annotations

import re
from dataclasses import dataclass

from linerate.advice.switch.config import ConfigBlock

_ARRAY = re.compile(
    r"\b(array|storage|target|portal|san controller|raid|(?<!domain )controller [ab12]\b|sp-?[ab]\b"
    r"|equallogic|powervault"
    r"|powerstore|unity|vnx|compellent|netapp|filer|nimble|3par|msa\d|hitachi|eternus|qnap|synology|readynas)"
)
_SWITCH = re.compile(
    r"\b(uplink|downlink|isl|peer-?link|peer link|switch|sw-?\d|san-sw|core-?(?:sw|\d)|spine|leaf|router"
    r"|firewall|wireless|access point|fex|stack)"
)
_HOST = re.compile(r"\b(esxi?|hv|hyper-?v|host|server|srv|vmware|blade|node|hba|initiator)")
_SWITCH_LINES = (
    "spanning-tree port type network",
    "spanning-tree portfast network",
    "switchport mode fex-fabric",
)


@dataclass(frozen=True, slots=True)
class PortNeighbour:
    """Whether an array or a switch is behind a port; None: the configuration does not say."""

    array: bool | None
    switch: bool | None


def neighbour(port: ConfigBlock, aggregated: bool) -> PortNeighbour:
    """A description that names both, or a trunk that names nothing, leaves it open."""
    description = port.value("description") or ""
    array, switch = bool(_ARRAY.search(description)), bool(_SWITCH.search(description))
    if any(port.has(line) for line in _SWITCH_LINES):
        return PortNeighbour(array=False, switch=True)
    if array and switch:
        return PortNeighbour(None, None)
    if array or switch or _HOST.search(description):
        return PortNeighbour(array, switch)
    trunk = port.has("switchport mode trunk")
    return PortNeighbour(None if aggregated and not description else False, None if trunk else False)
