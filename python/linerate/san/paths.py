"""What follows from a topology: who reaches which array how, where volumes are, what needs the user fabric."""

from __future__ import annotations

from linerate.san.model import ISCSI_PORT, Link, Path, Topology


def paths(topology: Topology, host: str) -> tuple[Path, ...]:
    """Every way from a host to an array: all pairs of ports in one network, array by array, port by port.

    Each port of the host first meets the array's port of the same number, then the next one, and so on.
    """
    initiator = topology.node(host)
    found: list[Path] = []
    for array in topology.arrays:
        pairs = [
            ((theirs_at - ours_at) % len(array.interfaces), ours_at, ours, theirs)
            for ours_at, ours in enumerate(initiator.interfaces)
            for theirs_at, theirs in enumerate(array.interfaces)
            if ours.network == theirs.network
        ]
        found += [
            Path(
                host=host,
                host_interface=ours.name,
                host_address=ours.address,
                array=array.name,
                array_interface=theirs.name,
                array_address=theirs.address,
            )
            for _, _, ours, theirs in sorted(pairs, key=lambda pair: pair[:2])
        ]
    return tuple(found)


def volume_urls(topology: Topology, host: str) -> dict[str, tuple[Path, str]]:
    """`array.volume` -> the path that it is given and its URL, volumes spread evenly over the paths to their array."""
    found: dict[str, tuple[Path, str]] = {}
    every = paths(topology, host)
    for array in topology.arrays:
        ways = [path for path in every if path.array == array.name]
        if not ways:
            continue
        for volume in array.volumes:
            path = ways[volume.lun % len(ways)]
            url = f"iscsi://{path.array_address}:{ISCSI_PORT}/{array.target}/{volume.lun}"
            found[f"{array.name}.{volume.name}"] = (path, url)
    return found


def beyond_kernel(topology: Topology) -> tuple[str, ...]:
    """Parts of a topology that bridges and HTB cannot give: a reason each, empty if there is none."""
    reasons = [f"{name}: {reason}" for name, link in topology.links.items() for reason in _of_link(link)]
    for node in topology.nodes:
        for port in node.ports:
            if port.nic.moderation_us or port.nic.rsc:
                reasons.append(f"{node.name}.{port.name}: interrupt moderation or RSC")
    for switch in topology.switches:
        if switch.flow_control != "none":
            reasons.append(f"{switch.name}: flow control")
        if switch.ecn_threshold_bytes is not None:
            reasons.append(f"{switch.name}: ECN marking")
    reasons += [f"{trunk.name}: several links" for trunk in topology.trunks if trunk.links > 1]
    return tuple(reasons)


def _of_link(link: Link) -> list[str]:
    named = {"delay": link.delay_us, "jitter": link.jitter_us, "loss": link.loss}
    return [name for name, value in named.items() if value]
