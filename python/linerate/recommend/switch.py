"""Lines for the configuration of a switch: Cisco IOS and NX-OS, Dell OS9 (FTOS), Arista EOS.

The lines for jumbo frames are those of the rules of advice, those for pause frames come from the dialect that reads
them. What a study calls `flow_control` is what it measured: ports that obey pause frames and send them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from linerate.advice import rules
from linerate.advice.facts import System
from linerate.advice.switch.config import ConfigBlock, parse_config
from linerate.advice.switch.dialect import DIALECTS, SwitchDialect
from linerate.errors import UserError
from linerate.recommend.configuration import Configuration, RecommendedSetting
from linerate.recommend.dcb import DcbLines, dcb_lines, dcb_plan
from linerate.recommend.form import FormText, commented, evidence_lines

MARK = "!"
SWITCH_KINDS = tuple(one.system for one in DIALECTS)
_FRAME_BYTES = 22  # Ethernet header, VLAN tag and check sequence
_PORT = re.compile(r"[A-Za-z][A-Za-z0-9 /,.-]{0,79}")
_PAUSE = {"on": (True, True), "pause": (True, True), "rx": (False, True), "tx": (True, False)}
"""Value of a host's or a switch's flow control -> whether the switch obeys pause frames, and sends them.

A host that obeys (rx) needs a switch that sends."""
_ADVICE = (
    "Rule flow-control-switch of `linerate advise` wants a switch that sends no pause frames; this study measured "
    "one that does."
)


def switch_form(configuration: Configuration, ports: Sequence[str], kind: System) -> FormText:
    """The lines. `ports` are interfaces of the switch; without them a word stands for their names."""
    dialect = next(one for one in DIALECTS if one.system == kind)
    global_lines: list[str] = []
    port_lines: list[str] = []
    missing: dict[str, str] = {}
    names = {one.name for one in configuration.settings}
    classes = [one for one in configuration.settings if _is_of_classes(one)]
    for one in configuration.settings:
        if one in classes:
            continue
        try:
            if one.name == "flow_control" and "switch.flow_control" in names:
                raise ValueError("switch.flow_control says it for the switch")
            made = list(_lines(one, dialect))
        except ValueError as error:
            missing[one.name] = str(error)
            continue
        comments = evidence_lines(one, MARK)
        is_global = any(line.startswith("system ") for line in made)
        (global_lines if is_global else port_lines).extend([*comments, *made])
    if classes:
        try:
            made_of = _classes(classes, dialect)
        except ValueError as error:
            missing |= {one.name: str(error) for one in classes}
        else:
            comments = [line for one in classes for line in evidence_lines(one, MARK)]
            comments += [line for note in made_of.notes for line in commented(f"Note: {note}.", MARK)]
            (global_lines if made_of.of_switch else port_lines).extend([*comments, *made_of.of_switch])
            port_lines += made_of.of_port
    lines = ["", *global_lines] if global_lines else []
    for name in (_checked(ports) or ("PORT",)) if port_lines else ():
        lines += ["", f"interface {name}"]
        lines += [line if line.startswith(MARK) else f" {line}" for line in port_lines]
    if port_lines and not ports:
        lines[:0] = commented("Put the names of the ports to hosts and arrays in place of PORT.", MARK)
    return FormText(lines, missing)


def _is_of_classes(one: RecommendedSetting) -> bool:
    """Whether a setting is about classes of priorities, which a switch has in one place."""
    return one.name == "switch.schedule" or (one.name == "switch.flow_control" and one.value == "pfc")


def _classes(settings: Sequence[RecommendedSetting], dialect: SwitchDialect) -> DcbLines:
    """Raises ValueError with the reason where a switch has none."""
    schedules = [one.setting.meaning(one.value) for one in settings if one.name == "switch.schedule"]
    plan = dcb_plan(any(one.name == "switch.flow_control" for one in settings), next(iter(schedules), None))
    return dcb_lines(dialect.system, plan)


def _checked(ports: Sequence[str]) -> tuple[str, ...]:
    for port in ports:
        if not _PORT.fullmatch(port):
            raise UserError(f"{port!r} is not the name of a switch port", "write one such as Ethernet1/1")
    return tuple(ports)


def _lines(one: RecommendedSetting, dialect: SwitchDialect) -> Iterator[str]:
    """The lines of one setting. Raises ValueError with the reason where a switch has none."""
    if one.name == "mtu":
        yield from _mtu_lines(int(one.value), dialect)
    elif one.name in ("flow_control", "switch.flow_control"):
        yield from _pause_lines(str(one.value), dialect)
    elif one.setting.applier == "fabric":
        raise ValueError("it is a property of cables and of the switch as it was built")
    else:
        raise ValueError("it is no setting of a switch")


def _mtu_lines(mtu: int, dialect: SwitchDialect) -> Sequence[str]:
    if mtu <= 1500:
        raise ValueError("switches carry frames of this size as they come")
    lines = _advised("mtu", dialect)
    config = parse_config("\n".join(lines))
    carried = dialect.mtu(config, ConfigBlock("", list(lines)))
    if carried < mtu + _FRAME_BYTES:
        raise ValueError(f"{dialect.name} carries {carried} bytes at most, headers included")
    return lines


def _pause_lines(value: str, dialect: SwitchDialect) -> Iterator[str]:
    receive, send = _PAUSE.get(value, (False, False))
    lines = dialect.pause(receive, send)
    if send and not any("send" in line or "tx" in line for line in lines):
        yield from commented(
            f"{dialect.name} sends no pause frames on most switches, which this study measured.", MARK
        )
    elif send:
        yield from commented(_ADVICE, MARK)
    yield from lines


def _advised(fact: str, dialect: SwitchDialect) -> tuple[str, ...]:
    """The lines that the rules of advice have for a fact of a switch or of its ports."""
    return next(
        (
            check.commands[dialect.system]
            for rule in rules()
            for check in rule.checks
            if check.test.fact == fact and dialect.system in check.commands
        ),
        (),
    )
