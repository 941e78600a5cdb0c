"""A host's ports as captured facts: a tree of sysfs, answers of ethtool, counters of drivers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from linerate.host.setting import UnavailableError


@dataclass
class CapturedPorts:
    """Stands for `linerate.host.linux.kernel.Kernel`; the files are below sys/class/net of `root`."""

    root: Path
    rings: dict[str, dict[str, int]] = field(default_factory=dict)
    channels: dict[str, dict[str, int]] = field(default_factory=dict)
    own: dict[str, dict[str, int]] = field(default_factory=dict)

    def device(self, name: str, lower: tuple[str, ...] = (), **files: str) -> None:
        """A device with these files; `bonding__mode` is bonding/mode."""
        folder = self._folder(name)
        for place, text in {"statistics__rx_bytes": "0", "statistics__tx_bytes": "0", **files}.items():
            file = folder / place.replace("__", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n", "ascii")
        for below in lower:
            (folder / f"lower_{below}").symlink_to(f"../{below}")

    def count(self, name: str, counter: str, more: int) -> None:
        """A counter of sysfs, or else of the driver, goes up."""
        if counter in self.own.get(name, {}):
            self.own[name][counter] += more
            return
        file = self._folder(name) / "statistics" / counter
        file.write_text(f"{int(file.read_text('ascii')) + more}\n", "ascii")

    def _folder(self, name: str) -> Path:
        return self.root / "sys/class/net" / name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def lower_devices(self, device: str) -> list[str]:
        return sorted(one.name.removeprefix("lower_") for one in self._folder(device).glob("lower_*"))

    def attribute(self, device: str, name: str) -> str:
        try:
            return (self._folder(device) / name).read_text("ascii").strip()
        except OSError as error:
            raise UnavailableError(f"no {name}") from error

    def ethtool(self, message: str, device: str) -> dict[str, Any]:
        tables = {"rings": self.rings, "channels": self.channels}
        if device not in tables[message]:
            raise UnavailableError(f"the driver of {device} has no such setting")
        return dict(tables[message][device])

    def counters(self, device: str) -> dict[str, int]:
        return dict(self.own.get(device, {}))
