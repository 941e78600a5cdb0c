"""A setting of a host: who holds it, its names on other systems, and the knobs that turn it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from linerate.errors import HostError
from linerate.setting import Applier, Setting

if TYPE_CHECKING:
    from linerate.host.linux.knob import Knob
    from linerate.host.windows.knob import WindowsKnob

Where = Literal["nic", "stack", "route", "session"]
"""Who holds the setting: the adapter and its driver, the TCP stack, the routes to the SAN, or the iSCSI session."""
Scope = Literal["port", "host", "session"]
"""What one value covers: one port, the whole host (or network namespace), or one session."""


class UnavailableError(HostError):
    """A setting that a host, device, kernel or system does not have, or does not let us change; it says why."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a setting is called elsewhere; empty where there is no such thing.

    linux: the tool and its word (ethtool, ip, sysctl). windows: the cmdlet's property or registry value.
    published: the words of the published NIC studies and their adapters' property pages. open_iscsi: the
    record of that initiator.
    """

    linux: str = ""
    windows: str = ""
    published: str = ""
    open_iscsi: str = ""

    @property
    def all(self) -> list[str]:
        """Every one of them."""
        texts = (self.windows, self.published, self.open_iscsi, self.linux)
        return [name for text in texts if text for name in text.split(", ")]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSetting(Setting):
    """A setting of a host or of its iSCSI sessions.

    `default` is what a host usually comes with; `absent` is why Linux has no knob for it, where it has none.
    `unproven` is why reading it back does not show that it takes effect; empty where it does.
    """

    where: Where
    scope: Scope
    names: Names
    absent: str = ""
    unproven: str = ""
    linux: Knob | None = field(default=None, repr=False, compare=False)
    windows: WindowsKnob | None = field(default=None, repr=False, compare=False)

    @property
    def applier(self) -> Applier:
        """The load opens the sessions; everything else is set on the host."""
        return "load" if self.where == "session" else "host"


Catalogue = Mapping[str, HostSetting]
"""Settings by name, in the order in which they are applied."""
