"""What all forms share: comments, the head with the evidence, and the end with what the form cannot express."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from linerate import _core
from linerate.errors import UserError
from linerate.host import HostSetting
from linerate.recommend.configuration import Configuration, RecommendedSetting

_WIDTH = 100
_PORT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,14}")
NOTHING = "no setting was shown to help, so there is nothing to set"


@dataclass(frozen=True, slots=True)
class FormText:
    """What a form can express, as lines with their comments, and what it cannot: setting -> why."""

    lines: Sequence[str]
    missing: Mapping[str, str]


def commented(text: str, mark: str = "#", indent: str = " ") -> list[str]:
    """A text as comment lines. Texts of a study may hold anything: only printable characters of one line are kept."""
    plain = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    start = f"{mark}{indent}"
    return textwrap.wrap(
        plain,
        _WIDTH,
        initial_indent=start,
        subsequent_indent=f"{start}  ",
        break_long_words=False,
        break_on_hyphens=False,
    ) or [mark]


def evidence_lines(one: RecommendedSetting, mark: str = "#") -> list[str]:
    """Title and evidence of a setting, as comments before its lines."""
    lines = commented(f"{one.setting.title}: {one.text}", mark)
    return lines + [line for text in one.evidence for line in commented(f"brought {text}", mark, "   ")]


def head(configuration: Configuration, what: str, mark: str = "#") -> list[str]:
    """The first lines of every form: where it comes from, and once what speaks against it."""
    made = f"{what}, as the study {configuration.study} ({configuration.title}) recommends."
    lines = commented(f"{made} Written by Linerate {_core.__version__}.", mark)
    if configuration.doubt:
        lines += commented(f"Doubt: {configuration.doubt}.", mark)
    if configuration.is_empty:
        lines += commented(f"{NOTHING[0].upper()}{NOTHING[1:]}.", mark)
    return lines


def tail(configuration: Configuration, missing: Mapping[str, str], mark: str = "#") -> list[str]:
    """What is not set by the lines above, setting by setting, with the reason."""
    texts = {one.name: one.text for one in configuration.settings}
    reasons = [(texts[name], why) for name, why in missing.items()]
    reasons += [*configuration.depending.items(), *configuration.open.items()]
    if not reasons:
        return []
    lines = ["", *commented("Not set here:", mark)]
    return lines + [line for name, why in reasons for line in commented(f"{name}: {why}", mark, "   ")]


def host_settings(configuration: Configuration) -> Iterator[tuple[RecommendedSetting, HostSetting]]:
    """Those of hosts and of their iSCSI sessions."""
    for one in configuration.settings:
        if isinstance(one.setting, HostSetting):
            yield one, one.setting


def not_of_hosts(configuration: Configuration) -> dict[str, str]:
    """The others: setting -> where it is set."""
    return {
        one.name: _place(one) for one in configuration.settings if not isinstance(one.setting, HostSetting)
    }


def _place(one: RecommendedSetting) -> str:
    setting = one.setting
    names = {} if isinstance(setting, HostSetting) else dict(setting.elsewhere)
    also = "".join(f"; {system}: {name}" for system, name in names.items())
    match setting.applier:
        case "multipath":
            return f"it is a setting of multipath (--as multipath){also}"
        case "fabric":
            return "it is a property of links and switches (--as switch:KIND)"
        case "load":
            return f"it belongs to the load, or to what opens its sessions{also}"
        case _:
            return "it belongs to arrays or to faults, not to hosts"


def checked_ports(ports: Sequence[str]) -> Sequence[str]:
    """Names of network devices of Linux. Raises UserError for a text that is none."""
    for port in ports:
        if not _PORT.fullmatch(port):
            raise UserError(f"{port!r} is not the name of a network device", "write one such as eth2")
    return ports
