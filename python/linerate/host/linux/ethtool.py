"""Ethtool's netlink messages that a SAN's settings need, and a socket for them.

Source: include/uapi/linux/ethtool_netlink.h. pyroute2 knows the protocol and a few messages; the ones here
are given to it as tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from pyroute2.netlink import NLM_F_ACK, NLM_F_REQUEST, genlmsg
from pyroute2.netlink.generic import GenericNetlinkSocket
from pyroute2.netlink.generic.ethtool import ethtoolbitset, ethtoolheader

_VERSION = 1
_OMIT_REPLY = 2  # ETHTOOL_FLAG_OMIT_REPLY


@dataclass(frozen=True, slots=True)
class EthtoolMessage:
    """Numbers of a request and of a change, and the attributes after the header with their types."""

    get: int
    set: int
    attributes: tuple[tuple[str, str], ...]


def _u32(names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, "uint32") for name in names.split())


MESSAGES = {
    "features": EthtoolMessage(
        11, 12, tuple((name, "ethtoolbitset") for name in ("hw", "wanted", "active", "nochange"))
    ),
    "rings": EthtoolMessage(15, 16, _u32("rx_max rx_mini_max rx_jumbo_max tx_max rx rx_mini rx_jumbo tx")),
    "channels": EthtoolMessage(
        17, 18, _u32("rx_max tx_max other_max combined_max rx_count tx_count other_count combined_count")
    ),
    "coalesce": EthtoolMessage(
        19,
        20,
        (
            *_u32("rx_usecs rx_max_frames rx_usecs_irq rx_max_frames_irq"),
            *_u32("tx_usecs tx_max_frames tx_usecs_irq tx_max_frames_irq stats_block_usecs"),
            ("use_adaptive_rx", "uint8"),
            ("use_adaptive_tx", "uint8"),
        ),
    ),
    "pause": EthtoolMessage(21, 22, (("autoneg", "uint8"), ("rx", "uint8"), ("tx", "uint8"))),
}
"""Messages by the name of what they carry."""


def _message_class(message: EthtoolMessage) -> type[genlmsg]:
    """pyroute2's description of a message; attributes that the kernel has added since are ignored."""

    class Described(genlmsg):  # type: ignore[misc]
        nla_map = (("UNSPEC", "none"), ("HEADER", "ethtoolheader"), *message.attributes)

    Described.ethtoolheader = ethtoolheader
    Described.ethtoolbitset = ethtoolbitset
    return Described


class Ethtool:
    """Sends requests and changes from the network namespace in which it was made; one socket per kind of
    message."""

    def __init__(self) -> None:
        self._sockets: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for socket in self._sockets.values():
            socket.close()
        self._sockets.clear()

    def get(self, name: str, device: str) -> dict[str, Any]:
        """Attributes of the answer that the driver filled in: numbers, and bit sets as {bit: bool}.

        Raises NetlinkError, EOPNOTSUPP for a driver without such a setting.
        """
        answer = self._request(name, MESSAGES[name].get, device, flags=0, attributes={})
        found = ((key, answer.get_attr(key)) for key, _ in MESSAGES[name].attributes)
        return {
            key: _bits(value) if hasattr(value, "get_attr") else value
            for key, value in found
            if value is not None
        }

    def set(self, name: str, device: str, attributes: dict[str, Any]) -> None:
        """Changes the attributes given and leaves the others: a bit set is {bit: bool} of the bits to change."""
        self._request(name, MESSAGES[name].set, device, flags=_OMIT_REPLY, attributes=attributes)

    def _request(
        self, name: str, command: int, device: str, *, flags: int, attributes: dict[str, Any]
    ) -> Any:
        socket, described = self._socket(name)
        message = described()
        message["cmd"] = command
        message["version"] = _VERSION
        header = [("ETHTOOL_A_HEADER_DEV_NAME", device), ("ETHTOOL_A_HEADER_FLAGS", flags)]
        message["attrs"].append(("HEADER", {"attrs": header}))
        for key, value in attributes.items():
            message["attrs"].append((key, _bit_attributes(value) if isinstance(value, dict) else value))
        acknowledged = NLM_F_ACK if flags & _OMIT_REPLY else 0
        answers = socket.nlm_request(message, msg_type=socket.prid, msg_flags=NLM_F_REQUEST | acknowledged)
        return next(iter(answers), None)

    def _socket(self, name: str) -> tuple[Any, type[genlmsg]]:
        if name not in self._sockets:
            socket = GenericNetlinkSocket()
            self._sockets[name] = socket
            socket.bind("ethtool", _message_class(MESSAGES[name]))
        socket = self._sockets[name]
        return socket, socket.marshal.msg_map[socket.prid]


def _bits(bitset: Any) -> dict[str, bool]:
    """The named bits of an answer; without a mask every bit is listed, set or not."""
    bits = bitset.get_attr("ETHTOOL_A_BITSET_BITS")
    listed = [bit for _, bit, *_ in bits["attrs"]] if bits is not None else []
    masked = bitset.get_attr("ETHTOOL_A_BITSET_NOMASK") is None
    return {
        bit.get_attr("ETHTOOL_A_BITSET_BIT_NAME"): not masked
        or bool(bit.get_attr("ETHTOOL_A_BITSET_BIT_VALUE"))
        for bit in listed
    }


def _bit_attributes(wanted: dict[str, bool]) -> dict[str, Any]:
    bits = []
    for name, value in wanted.items():
        bit: list[tuple[str, Any]] = [("ETHTOOL_A_BITSET_BIT_NAME", name)]
        if value:
            bit.append(("ETHTOOL_A_BITSET_BIT_VALUE", True))
        bits.append(("ETHTOOL_A_BITSET_BITS_BIT", {"attrs": bit}))
    return {"attrs": [("ETHTOOL_A_BITSET_BITS", {"attrs": bits})]}
