"""Which ports belong to which VLAN, and which ports a link aggregate has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from linerate.advice.switch.config import ConfigBlock, SwitchConfig
from linerate.advice.switch.names import key, members

_TAGS = ("tagged", "untagged")
_DEFAULT_VLAN = "1"
_ALLOWED = "switchport trunk allowed vlan"
_VLAN_MAX = 4094


class PortMembership:
    """VLANs and aggregates of the ports of one configuration."""

    def __init__(self, config: SwitchConfig, interfaces: Mapping[str, ConfigBlock]) -> None:
        self._ports = interfaces
        self._by_key = {key(name): name for name in interfaces}
        self._listed = _listed(config)
        self._aggregate_of = dict(self._aggregates())

    def is_member(self, name: str) -> bool:
        """Whether a port is in a link aggregate."""
        return name in self._aggregate_of or self._ports[name].has("port-channel-protocol")

    def carries(self, name: str, vlan: int) -> bool:
        """Whether a port, or the aggregate that it is in, carries this VLAN."""
        above = self._by_key.get(self._aggregate_of.get(name, ""), "")
        return any(one and self._carries(one, vlan) for one in (name, above))

    def in_default_vlan(self, name: str) -> bool:
        """Whether a port that is no trunk is in VLAN 1."""
        port = self._ports[name]
        if port.has("switchport mode trunk"):
            return False
        if vlan := port.value("switchport access vlan"):
            return vlan == _DEFAULT_VLAN
        return not any(
            key(name) in ports for vlan, ports in self._listed.items() if str(vlan) != _DEFAULT_VLAN
        )

    def _carries(self, name: str, vlan: int) -> bool:
        port = self._ports[name]
        if key(name) in self._listed.get(vlan, ()):
            return True
        if port.has("switchport mode trunk"):
            return vlan in _allowed(port.values(_ALLOWED))
        return port.value("switchport access vlan") == str(vlan)

    def _aggregates(self) -> Iterator[tuple[str, str]]:
        """Port -> its aggregate, as `key` has it. Dell lists the ports below the aggregate."""
        for name, port in self._ports.items():
            for text in (*port.values("channel-group"), *port.values("port-channel")):
                yield name, f"port-channel{text.partition(' ')[0]}"
            for text in port.values("channel-member"):
                yield from ((self._by_key.get(one, one), key(name)) for one in members(text))


def _listed(config: SwitchConfig) -> dict[int, set[str]]:
    """VLAN -> its ports, where the configuration lists ports below VLANs (Dell)."""
    found: dict[int, set[str]] = {}
    for rest, block in config.headed("interface vlan"):
        if rest.isdecimal():
            for tag in _TAGS:
                for text in block.values(tag):
                    found.setdefault(int(rest), set()).update(members(text))
    return found


def _allowed(texts: Iterable[str]) -> set[int]:
    """VLANs of a trunk: all, unless lines name some. A long list is in several lines with `add`."""
    found: set[int] | None = None
    for text in texts:
        word, _, rest = text.partition(" ")
        if word == "all":
            found = _vlans(f"1-{_VLAN_MAX}")
        elif word == "except":
            found = _vlans(f"1-{_VLAN_MAX}") - _vlans(rest)
        elif word == "remove":
            found = (_vlans(f"1-{_VLAN_MAX}") if found is None else found) - _vlans(rest)
        else:
            found = (found or set()) | _vlans(rest if word == "add" else text)
    return _vlans(f"1-{_VLAN_MAX}") if found is None else found


def _vlans(text: str) -> set[int]:
    pairs = re.findall(r"(\d{1,4})(?:\s*-\s*(\d{1,4}))?", text)
    return {vlan for first, last in pairs for vlan in range(int(first), int(last or first) + 1)}
