"""A topology's parts in a few words each: what the tree and the picture say about a link, a switch, an array."""

from __future__ import annotations

from linerate.plural import plural
from linerate.quantity import number_text, size_text
from linerate.san.model import Array, ArrayPort, Interface, LanStream, Link, Nic, Node, Port, Switch, Trunk
from linerate.san.storage import Storage
from linerate.san.units import delay_text, rate_text, share_text

_USUAL = ArrayPort.model_fields["alua"].default


def link_labels(link: Link) -> list[str]:
    """Rate and MTU; delay, jitter, loss and being down only where there is any."""
    words = [rate_text(link.rate_bits_per_s), f"MTU {link.mtu}"]
    if link.delay_us:
        words.append(f"delay {delay_text(link.delay_us)}")
    if link.jitter_us:
        words.append(f"jitter {delay_text(link.jitter_us)}")
    if link.loss:
        words.append(f"loss {share_text(link.loss)}")
    if not link.up:
        words.append("down")
    return words


def trunk_labels(trunk: Trunk) -> list[str]:
    """As of a link; the number of links where there are several."""
    words = link_labels(trunk.link)
    if trunk.links > 1:
        words[0] = f"{trunk.links} x {words[0]}"
    return words


def port_labels(node: Node, port: Port) -> list[str]:
    """Its link, a team as so many times that; its adapter; its ALUA state where the array's ports differ in it."""
    words = link_labels(port.link)
    if port.links > 1:
        words[0] = f"{port.links} x {words[0]}"
    words += nic_labels(port.nic)
    if isinstance(node, Array) and {one.alua for one in node.ports} != {_USUAL}:
        words.append(_of_array(node, port).alua.replace("active_", "").replace("_", "-"))
    return words


def place_labels(node: Node, port: Port) -> list[str]:
    """Controller and portal group of an array's port, each where the array has several."""
    if not isinstance(node, Array):
        return []
    mine = _of_array(node, port)
    words = [f"controller {mine.controller}"] if len(node.controllers) > 1 else []
    several = len({one.portal_group for one in node.ports}) > 1
    return [*words, f"group {mine.portal_group}"] if several else words


def _of_array(array: Array, port: Port) -> ArrayPort:
    return next(one for one in array.ports if one.name == port.name)


def nic_labels(nic: Nic) -> list[str]:
    """Moderation and RSC where they are on."""
    words = [f"moderation {delay_text(nic.moderation_us)}"] if nic.moderation_us else []
    return [*words, "RSC"] if nic.rsc else words


def interface_labels(interface: Interface) -> list[str]:
    """VLAN and priority where they are not 0."""
    words = [f"VLAN {interface.vlan}"] if interface.vlan else []
    return [*words, f"priority {interface.priority}"] if interface.priority else words


def switch_labels(switch: Switch) -> list[str]:
    """Buffer, flow control, schedule, marking."""
    words = [f"buffer {size_text(switch.buffer_bytes)}"]
    if switch.flow_control == "pause":
        words.append("pause frames")
    elif switch.flow_control == "pfc":
        words.append(f"PFC for priority {', '.join(map(str, switch.lossless_priorities))}")
    else:
        words.append("no flow control")
    if switch.schedule.kind == "ets":
        shares = sorted(switch.schedule.shares.items(), reverse=True)
        words.append("ETS " + ", ".join(f"{priority}: {number_text(share)} %" for priority, share in shares))
    if switch.ecn_threshold_bytes is not None:
        words.append(f"ECN from {size_text(switch.ecn_threshold_bytes)}")
    return words


def array_labels(array: Array) -> list[str]:
    """Whether it is a NAS; how many volumes of what size; the disks behind them, and their RAID sets, if it has any."""
    sizes = sorted({volume.size_bytes for volume in array.volumes})
    size = size_text(sizes[0]) if len(sizes) == 1 else f"{size_text(sizes[0])} to {size_text(sizes[-1])}"
    words = ["NAS"] if array.kind == "nas" else []
    words.append(f"{plural(len(array.volumes), 'volume')} of {size}")
    return words if array.storage is None else [*words, *_storage_words(array.storage)]


def _storage_words(storage: Storage) -> list[str]:
    """`28 disks sas_10k_2_5`, `2 x raid10 of 12 + 2 spares`."""
    spares = f" + {plural(storage.spares, 'spare')}" if storage.spares else ""
    sets = f"{storage.sets} x " if storage.sets > 1 else ""
    model = f" {storage.model}" if storage.model else ""
    return [f"{storage.disks} disks{model}", f"{sets}{storage.raid_level} of {storage.members}{spares}"]


def lan_labels(stream: LanStream) -> str:
    """Connections and rate."""
    rate = rate_text(stream.rate_bits_per_s) if stream.rate_bits_per_s else "as fast as it goes"
    return f"{plural(stream.connections, 'connection')}, {rate}"
