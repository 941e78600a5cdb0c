"""Lines of a switch for PFC (802.1Qbb) and ETS (802.1Qaz): classes of the whole switch, and what each port gets.

The grammar is that of the documents that rule dcb-whole of `linerate advise` names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from linerate.advice.facts import System
from linerate.advice.switch.classes import ISCSI_PRIORITY, PRIORITIES
from linerate.san import Schedule

_NAME = "LINERATE"
_LARGEST_MTU = 9216
_HALF = 50


@dataclass(frozen=True, slots=True)
class DcbPlan:
    """The priority of iSCSI, whether PFC is on for it, and shares by priority in percent; none: not measured."""

    priority: str
    pfc: bool
    shares: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DcbLines:
    """Lines of the whole switch, lines of a port, and what to know before they are entered."""

    of_switch: list[str]
    of_port: list[str]
    notes: tuple[str, ...]


def dcb_plan(pfc: bool, schedule: Schedule | None) -> DcbPlan:
    """The plan of a switch's flow control and schedule. Raises ValueError with the reason where there is none."""
    if schedule is None:
        return DcbPlan(ISCSI_PRIORITY, pfc, {})
    if schedule.kind == "strict":
        raise ValueError("strict priority has no lines of its own here: only PFC and ETS are written")
    if any(share != round(share) for share in schedule.shares.values()):
        raise ValueError("switches take shares in whole percent")
    shares = {str(priority): round(share) for priority, share in schedule.shares.items()}
    above = [one for one in shares if one != "0"]
    if len(above) != 1 and ISCSI_PRIORITY not in above:
        raise ValueError("the shares do not say which priority is that of iSCSI")
    return DcbPlan(above[0] if len(above) == 1 else ISCSI_PRIORITY, pfc, shares)


def dcb_lines(system: System, plan: DcbPlan) -> DcbLines:
    """The lines. Raises ValueError for a kind of switch that has no such classes."""
    if system not in _WRITERS:
        raise ValueError("this kind of switch has no classes with PFC or ETS")
    made = _WRITERS[system](plan)
    given = f"iSCSI frames must carry priority {plan.priority}: hosts and arrays give it to them, in tagged frames"
    return DcbLines(made.of_switch, made.of_port, (given, *made.notes))


def _dell(plan: DcbPlan) -> DcbLines:
    """Group 0 has all priorities without a share of their own."""
    shares = dict(plan.shares) or {plan.priority: _HALF}
    groups = {priority: at for at, priority in enumerate((one for one in shares if one != "0"), start=1)}
    lines = ["dcb enable", f"dcb-map {_NAME}", f" priority-group 0 bandwidth {_rest(shares)} pfc off"]
    for priority, group in groups.items():
        on = plan.pfc and priority == plan.priority
        lines.append(f" priority-group {group} bandwidth {shares[priority]} pfc {'on' if on else 'off'}")
    lines.append(f" priority-pgid {' '.join(str(groups.get(one, 0)) for one in PRIORITIES)}")
    notes = ["`dcb enable` counts after the configuration was saved and the switch was started again"]
    if not plan.shares:
        notes.append(f"the study measured no shares, and a DCB map needs some: {_HALF} and {_HALF} are usual")
    off = ["flowcontrol rx off tx off"] if plan.pfc else []
    return DcbLines(lines, [*off, f"dcb-map {_NAME}"], tuple(notes))


def _rest(shares: Mapping[str, int]) -> int:
    """The share of priorities without one of their own, which go with priority 0."""
    return shares.get("0", 100 - sum(shares.values()))


def _nxos(plan: DcbPlan) -> DcbLines:
    """The number of a group is that of its priority."""
    of_port: list[str] = []
    own = sorted({plan.priority, *plan.shares} - {"0"})
    lines = [
        line for one in own for line in (f"class-map type qos match-all {_NAME}-{one}", f"  match cos {one}")
    ]
    lines.append(f"policy-map type qos {_NAME}-IN")
    lines += [line for one in own for line in (f"  class {_NAME}-{one}", f"    set qos-group {one}")]
    applied = []
    if plan.pfc:
        lines += [
            f"policy-map type network-qos {_NAME}-NQ",
            f"  class type network-qos c-8q-nq{plan.priority}",
            f"    mtu {_LARGEST_MTU}",
            f"    pause pfc-cos {plan.priority}",
            "  class type network-qos c-8q-nq-default",
            f"    mtu {_LARGEST_MTU}",
        ]
        applied.append(f"  service-policy type network-qos {_NAME}-NQ")
        of_port += ["flowcontrol receive off", "flowcontrol send off", "priority-flow-control mode on"]
    if plan.shares:
        lines += [f"policy-map type queuing {_NAME}-OUT", *_nxos_queues(plan)]
        applied.append(f"  service-policy type queuing output {_NAME}-OUT")
    of_port.append(f"service-policy type qos input {_NAME}-IN")
    return DcbLines(
        [*lines, "system qos", *applied], of_port, ("written for Nexus 9000 with eight queues for each port",)
    )


def _nxos_queues(plan: DcbPlan) -> Iterator[str]:
    for one in reversed(PRIORITIES):
        share = _rest(plan.shares) if one == "0" else plan.shares.get(one, 0)
        yield f"  class type queuing c-out-8q-q{'-default' if one == '0' else one}"
        yield f"    bandwidth remaining percent {share}"


def _eos(plan: DcbPlan) -> DcbLines:
    """Queues come last: what follows a queue would belong to it. The default maps have priority 0 in queue 1."""
    lines = ["qos trust cos"]
    if plan.pfc:
        lines += [
            "flowcontrol receive off",
            "flowcontrol send off",
            "priority-flow-control on",
            f"priority-flow-control priority {plan.priority} no-drop",
        ]
    for priority in sorted(plan.shares, reverse=True):
        queue = "1" if priority == "0" else "0" if priority == "1" else priority
        lines += [f"tx-queue {queue}", "   no priority", f"   bandwidth percent {plan.shares[priority]}"]
    notes = (
        "on Trident platforms tx-queue is uc-tx-queue",
        "the maps of priorities to queues are the default ones",
    )
    return DcbLines([], lines, notes if plan.shares else ())


_WRITERS: Mapping[System, Callable[[DcbPlan], DcbLines]] = {"dell": _dell, "nxos": _nxos, "eos": _eos}
